"""The notice of everything that a bundle holds and others wrote.

What the program itself can tell of Python's packages comes from there; here is added what only the
building machine knows: the licences of Python, of PyInstaller's launcher, of the system's libraries
that were collected, and of those that Qt's own hold, as Debian's packages of the same tell them.
"""

import re
import sysconfig
from importlib import metadata
from pathlib import Path

import libraries

from app import notice as packages

COMMON = Path("/usr/share/common-licenses")
DOCUMENTS = Path("/usr/share/doc")
# Which wheels name and do not bring.
NAMED = {"LGPL-3", "GPL-3", "Apache-2.0"}
# In Qt's libraries, or beside them.
IN_QT = {
    "libicu72", "libharfbuzz0b", "libfreetype6", "libpng16-16", "libjpeg62-turbo", "libwebp7",
    "libpcre2-8-0", "zlib1g",
}  # fmt: skip
QT = """\
Qt's libraries hold ICU, HarfBuzz, FreeType, libpng, libjpeg-turbo, libwebp, PCRE2, zlib, md4c and
double-conversion, among others. Their licences are below, as far as Debian has them; all that are
in Qt, with their texts, are at https://doc.qt.io/qt-6/licenses-used-in-qt.html."""
RULE = "=" * 78


def notice(inside: Path) -> str:
    """The text, for the bundle whose files lie in `inside`. Raises FileNotFoundError where a
    licence is not on this machine."""
    parts = [
        packages.collect(packages.runtime()),
        _part("PyInstaller, which made the launcher", _launcher()),
        _part("Python", _python()),
        _part("Qt", QT),
        *_debians(inside),
    ]
    return "\n".join(parts)


def _part(title: str, text: str) -> str:
    return f"{RULE}\n{title}\n{RULE}\n\n{text.strip()}\n"


def _launcher() -> str:
    """PyInstaller's licence, with the exception for what is made with it."""
    files = metadata.files("pyinstaller") or []
    (path,) = (file for file in files if file.name == "COPYING.txt")
    return path.read_text(encoding="utf-8")


def _python() -> str:
    """Its licence, with those of what is built into it."""
    path = Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt"
    if not path.is_file():  # as Debian has it
        path = DOCUMENTS / "python3.11" / "copyright"
    return path.read_text(encoding="utf-8")


def _debians(inside: Path) -> list[str]:
    """One part for each Debian package, then the licences they name."""
    names = [path.name for path in inside.glob("lib*.so*") if not path.is_symlink()]
    carried = [name for name in names if not name.startswith("libpython")]
    texts = {
        package: (DOCUMENTS / package / "copyright").read_text("utf-8", "replace")
        for package in sorted({*libraries.owners(carried).values(), *IN_QT})
    }
    named = NAMED.union(*(re.findall(rf"{COMMON}/([\w.+-]*\w)", text) for text in texts.values()))
    common = {name: COMMON / name for name in sorted(named)}
    return [
        *(_part(package, text) for package, text in texts.items()),
        *(_part(n, p.read_text("utf-8", "replace")) for n, p in common.items() if p.is_file()),
    ]
