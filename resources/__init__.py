"""Data files of the program: icons, style sheet, tables. Knows no Qt."""

from importlib.resources import files
from pathlib import Path


def read(name: str) -> bytes:
    """The bytes of the data file `name`, a path below this package."""
    return files(__name__).joinpath(name).read_bytes()


def read_text(name: str) -> str:
    """The text (UTF-8) of the data file `name`."""
    return read(name).decode("utf-8")


def path(name: str) -> Path:
    """Where the data file `name` lies, for those who want no bytes."""
    return Path(str(files(__name__))) / name
