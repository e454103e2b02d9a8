"""The notice of everything that a bundle holds and others wrote.

What the program itself can tell of Python's packages comes from there; here is added what only the
building machine knows: Python's licence, and those of the system's libraries that were collected.
"""

import re
import sysconfig
from pathlib import Path

import libraries

from app import notice as packages

COMMON = Path("/usr/share/common-licenses")
QTS = {"LGPL-3", "GPL-3"}  # which the wheels of Qt name and do not bring
RULE = "=" * 78


def notice(inside: Path) -> str:
    """The text, for the bundle whose files lie in `inside`."""
    parts = [packages.collect(packages.runtime()), _part("Python", _python()), *_system(inside)]
    return "\n".join(parts)


def _part(title: str, text: str) -> str:
    return f"{RULE}\n{title}\n{RULE}\n\n{text.strip()}\n"


def _python() -> str:
    """Its licence, with those of what is built into it."""
    path = Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt"
    if not path.is_file():  # as Debian has it
        path = Path("/usr/share/doc/python3.11/copyright")
    return path.read_text(encoding="utf-8")


def _system(inside: Path) -> list[str]:
    """One part for each Debian package a library was taken from, then the licences they name."""
    names = [path.name for path in inside.glob("lib*.so*") if not path.is_symlink()]
    taken: dict[str, list[str]] = {}
    for name, package in libraries.owners(names).items():
        taken.setdefault(package, []).append(name)
    texts = {
        package: Path(f"/usr/share/doc/{package}/copyright").read_text("utf-8", "replace")
        for package in sorted(taken)
    }
    named = {
        name for text in texts.values() for name in re.findall(rf"{COMMON}/([\w.+-]*\w)", text)
    }
    found = [_part(f"{p} ({', '.join(sorted(taken[p]))})", text) for p, text in texts.items()]
    common = [COMMON / name for name in sorted(named)]
    return found + [_part(c.name, c.read_text("utf-8", "replace")) for c in common if c.is_file()]
