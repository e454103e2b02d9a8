"""The system's libraries that a finished bundle needs and does not carry, and whose packages
they are.

Reads what the linker will read, by `objdump` of binutils, which PyInstaller needs as well; the
packages are those of the Debian machine that builds. Libraries that a file opens by name while it
runs are not seen here.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME = "system-libraries.json"
LIBC = "libc6"
ELF = b"\x7fELF"
# What Python itself needs goes along: systems differ in it more than in Qt's libraries; and of
# those, small ones that many desktops lack.
CARRIED = re.compile(
    r"lib(python|ssl|crypto|ffi|sqlite3|z|bz2|lzma|expat|uuid|crypt)[.\d].*"
    r"|libxcb-(cursor|icccm|image|keysyms|render-util|util)\.so.*"
)
LOOKED_IN = re.compile(r"lib64|.+-linux-gnu")  # the linker's own folders


@dataclass
class Binary:
    """What one program or library asks of the linker."""

    path: Path
    needs: list[str] = field(default_factory=list)  # sonames
    search: list[str] = field(default_factory=list)  # where it has them looked for
    glibc: list[tuple[int, ...]] = field(default_factory=list)  # versions of symbols


def needed(bundle: Path) -> dict[str, str]:
    """The soname of each library that files of `bundle` need and cannot reach in it, with the
    Debian package that has it. Raises LookupError where this machine has no package for one."""
    return _packages(_missing(bundle, read(bundle)))


def depends(bundle: Path) -> str:
    """The field of a Debian package that names them all, and the oldest glibc that will do."""
    packages = set(needed(bundle).values()) - {LIBC}
    return ", ".join([f"{LIBC} (>= {glibc(bundle)})", *sorted(packages)])


def shed(bundle: Path) -> list[str]:
    """Take the system's own libraries, which PyInstaller gathers, out of the bundle; their names.

    They have data and settings of the system beside them, such as fonts and keyboards, and get its
    corrections; and a newer graphics driver does not work with an older C++ library.
    """
    carried = [path for path in (bundle / "_internal").glob("lib*.so*") if not path.is_symlink()]
    known = owners(path.name for path in carried)
    systems = [p for p in carried if p.name in known and not CARRIED.fullmatch(p.name)]
    for path in systems:
        path.unlink()
    return sorted(path.name for path in systems)


def glibc(bundle: Path) -> str:
    """The oldest version of it that has all that is asked for."""
    versions = [version for one in read(bundle) for version in one.glibc]
    return ".".join(map(str, max(versions)))


def folders(one: Binary, search: Iterable[str]) -> list[Path]:
    """Those of a search path, as it is read in that file."""
    return [Path(path.replace("$ORIGIN", str(one.path.parent))) for path in search]


def write(bundle: Path) -> Path:
    """Leave the table in the bundle, for the program to name what is missing."""
    path = bundle / "_internal" / NAME
    path.write_text(json.dumps(needed(bundle), indent=1) + "\n", encoding="utf-8")
    return path


def read(bundle: Path) -> list[Binary]:
    """All programs and libraries in `bundle`."""
    files = [path for path in sorted(bundle.rglob("*")) if is_elf(path)]
    if not files:
        raise LookupError(f"{bundle} holds no programs and no libraries")
    told = subprocess.run(
        ["objdump", "-p", *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    return list(_parse(told.stdout.splitlines()))


def is_elf(path: Path) -> bool:
    """Whether it is a program or library, and not only a name for one."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == ELF


def _parse(lines: Iterable[str]) -> Iterator[Binary]:
    one: Binary | None = None
    for line in lines:
        if begin := re.fullmatch(r"(.*):\s+file format elf.*", line):
            if one:
                yield one
            one = Binary(Path(begin[1]))
        elif one and (found := re.fullmatch(r"  NEEDED +(\S+)", line)):
            one.needs.append(found[1])
        elif one and (found := re.fullmatch(r"  (?:RUNPATH|RPATH) +(.+)", line)):
            one.search += [folder for folder in found[1].split(":") if folder]
        elif one and (found := re.search(r" GLIBC_(\d+(?:\.\d+)+)$", line)):
            one.glibc.append(tuple(map(int, found[1].split("."))))
    if one:
        yield one


def _missing(bundle: Path, binaries: Iterable[Binary]) -> set[str]:
    """A library is reached by the file's own search path, as far as that lies in the bundle, or in
    the folder that PyInstaller's launcher adds to everybody's."""
    top = bundle.resolve()
    missing = set()
    for one in binaries:
        own = [f for f in folders(one, one.search) if f.resolve().is_relative_to(top)]
        for name in one.needs:
            if not any((folder / name).exists() for folder in [*own, bundle / "_internal"]):
                missing.add(name)
    return missing


def _packages(names: Iterable[str]) -> dict[str, str]:
    wanted = sorted(names)
    known = owners(wanted)
    if strange := [name for name in wanted if name not in known]:
        raise LookupError(
            f"needed, not in the bundle, and of no package here: {', '.join(strange)}. "
            "Install the packages that have them on the machine that builds, or leave out what "
            "needs them."
        )
    return {name: known[name] for name in wanted}


def owners(names: Iterable[str]) -> dict[str, str]:
    """The packages of those libraries that have one."""
    # it ends with 1 where one of them is nobody's
    told = subprocess.run(
        ["dpkg-query", "--search", *(f"*/{name}" for name in names)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LC_ALL": "C"},
    )
    found: dict[str, str] = {}
    for line in told.stdout.splitlines():
        package, _, path = line.partition(": ")
        if LOOKED_IN.fullmatch(Path(path).parent.name) and not package.startswith("diversion"):
            found.setdefault(Path(path).name, re.split("[:,]", package)[0])
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(json.dumps(needed(folder), indent=1))
    print(depends(folder))
