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
RULE = "=" * 78


def notice(inside: Path) -> str:
    """The text, for the bundle whose files lie in `inside`."""
    parts = [packages.collect(), _part("Python", _python()), *_system(inside)]
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
    owners: dict[str, list[str]] = {}
    for name in names:
        if package := _owner(name):
            owners.setdefault(package, []).append(name)
    texts = {
        package: Path(f"/usr/share/doc/{package}/copyright").read_text("utf-8", "replace")
        for package in sorted(owners)
    }
    found = [
        _part(f"{package} ({', '.join(sorted(owners[package]))})", text)
        for package, text in texts.items()
    ]
    named = sorted(
        {name for text in texts.values() for name in re.findall(rf"{COMMON}/([\w.+-]*\w)", text)}
    )
    return found + [
        _part(name, (COMMON / name).read_text("utf-8", "replace"))
        for name in named
        if (COMMON / name).is_file()
    ]


def _owner(name: str) -> str | None:
    """The Debian package of a library, None where it came with Python or with a wheel."""
    try:
        return libraries.packages([name])[name]
    except LookupError:
        return None
