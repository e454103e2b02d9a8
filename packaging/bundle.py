"""The program as a folder that runs without Python: frozen, with torch, the starter model and the
notices beside it.

Run inside the environment that build.py makes. Knows what is left out, and what must not be in.
"""

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import binaries
import libraries

TOP = Path(__file__).resolve().parents[1]
MOST = 1_100_000_000  # bytes unpacked
# Of torch: its own tests, and what only a compiler reads.
LEFT_OUT = (
    "torch/test", "torch/include", "torch/share", "torch/bin/*", "torch/lib/*test*",
    "torch/lib/libbackend_with_compiler.so", "torch/lib/libaoti_custom_ops.so",
    "torchgen/packaged", "torch/fx/passes/tests", "*.a", "*.lib", "*/__pycache__", "*.pyi",
)  # fmt: skip
OF_CUDA = ("libcu", "libnv", "libnccl", "libtorch_cuda", "libc10_cuda")
KEPT = ("torch/bin/torch_shm_manager",)


def build(out: Path, announced: Sequence[str] | None = None) -> Path:
    """The folder `slipstream` (on macOS `Slipstream.app`) in `out`. `announced`: the two addresses
    of new versions. Raises RuntimeError where something is in it that must not be."""
    check_environment()
    work = TOP / "build" / "freeze"
    subprocess.run(
        [
            sys.executable, "-m", "PyInstaller", "--clean", "--noconfirm", "--log-level", "WARN",
            "--distpath", out, "--workpath", work, TOP / "packaging" / "slipstream.spec",
        ],
        cwd=TOP,
        check=True,
    )  # fmt: skip
    bundle = out / ("Slipstream.app" if sys.platform == "darwin" else "slipstream")
    inside = internal(bundle)
    add_torch(inside / "torch-cpu")
    add_starter(inside / "models")
    if sys.platform == "linux":
        libraries.shed(bundle)
        binaries.mend(bundle)
    if announced:
        feed, page = announced
        named = json.dumps({"feed": feed, "page": page})
        (inside / "release.json").write_text(named, encoding="utf-8")
    check(bundle)
    return bundle


def internal(bundle: Path) -> Path:
    """Where the frozen program looks for its files."""
    return bundle / ("Contents/Frameworks" if bundle.suffix == ".app" else "_internal")


def check_environment() -> None:
    """Raises RuntimeError where a wheel for CUDA slipped in: the bundle is for every machine."""
    names = {(each.name or "").lower() for each in metadata.distributions()}
    cuda = {n for n in names if n.startswith(("nvidia-", "cuda-", "triton"))} - {"nvidia-ml-py"}
    version = metadata.version("torch")
    if cuda or (sys.platform != "darwin" and not version.endswith("+cpu")):
        raise RuntimeError(f"not a CPU build: torch {version} {' '.join(sorted(cuda))}")


def add_torch(folder: Path) -> None:
    """torch as pip lays it out, compiled ahead: what is installed cannot be written to."""
    site = Path(str(metadata.distribution("torch").locate_file("")))
    for name in tops("torch"):
        shutil.copytree(site / name, folder / name, ignore=ignored(site), symlinks=True)
    compileall.compile_dir(
        folder,
        quiet=2,
        workers=os.cpu_count() or 1,
        stripdir=str(folder),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def tops(distribution: str) -> list[str]:
    """The folders that a distribution has put into site-packages."""
    files = metadata.files(distribution) or []
    return sorted(
        {f.parts[0] for f in files if len(f.parts) > 1 and f.parts[0] not in ("..", "bin")}
    )


def ignored(site: Path) -> Callable[[str, list[str]], set[str]]:
    """For copytree: which of a folder's names stay behind."""

    def ignore(folder: str, names: list[str]) -> set[str]:
        here = Path(folder).relative_to(site)
        return {name for name in names if is_left_out(here / name)}

    return ignore


def is_left_out(path: Path) -> bool:
    """Whether a file or folder of site-packages is not shipped."""
    name = path.as_posix()
    return name not in KEPT and any(fnmatch(name, pattern) for pattern in LEFT_OUT)


def add_starter(folder: Path) -> None:
    """The model that answers before anything was downloaded."""
    from engine.library import starter

    folder.mkdir()
    starter.fetch(folder, lambda _: None, lambda: False)


def check(bundle: Path) -> None:
    """Raises RuntimeError where the bundle is too large or holds a library of CUDA."""
    files = [path for path in bundle.rglob("*") if path.is_file() and not path.is_symlink()]
    cuda = [path.name for path in files if path.name.startswith(OF_CUDA)]
    if cuda:
        raise RuntimeError(f"libraries of CUDA in the bundle: {' '.join(sorted(cuda))}")
    size = sum(path.stat().st_size for path in files)
    if size > MOST:
        raise RuntimeError(f"{size / 1e6:.0f} MB unpacked, at most {MOST / 1e6:.0f} are allowed")
    print(f"{bundle}: {size / 1e6:.0f} MB unpacked in {len(files)} files")
