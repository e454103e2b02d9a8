"""Bounded reading of small files that come from strangers.

Knows sizes, missing files and JSON. Does not know what any key means.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from engine.errors import DownloadError, Incomplete

CONFIG_LIMIT = 10 * 2**20  # bytes; the largest known config.json has 200 kB
LONGEST_NUMBER = 100  # digits; the lowest float32, written as a whole number, has 39
NO_TEXT = re.compile("[\ud800-\udfff]")  # by these Python keeps bytes that are no UTF-8
TEXT_LIMIT = 2**20  # bytes; the largest known chat template has 30 kB


def read_bytes(path: Path, limit: int) -> bytes:
    """All bytes of a regular file. Raises Incomplete: missing, unreadable, over `limit` bytes."""
    try:
        with opened(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(data) > limit:
        raise Incomplete(
            "file_too_large",
            "{file} is larger than the {limit} bytes such a file may have.",
            file=path.name,
            limit=limit,
        )
    return data


def read_start(path: Path, count: int) -> bytes:
    """The first `count` bytes of a regular file, or fewer. Raises Incomplete."""
    try:
        with opened(path) as file:
            return file.read(count)
    except OSError as error:
        raise unreadable(path, error) from error


def read_part(path: Path, start: int, count: int) -> bytes:
    """`count` bytes from `start` on, or fewer. Raises Incomplete."""
    try:
        with opened(path) as file:
            file.seek(start)
            return file.read(count)
    except OSError as error:
        raise unreadable(path, error) from error


def read_json(path: Path, limit: int = CONFIG_LIMIT) -> dict[str, Any]:
    """The JSON object in `path`. Raises Incomplete when it is missing or no JSON object."""
    return parse_object(read_bytes(path, limit), path.name)


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """The UTF-8 text in `path`. Raises Incomplete when it is missing or not UTF-8."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise damaged(path.name) from error


def parse_object(data: bytes, file: str) -> dict[str, Any]:
    """The JSON object in `data`. Raises Incomplete naming `file`, also for a key given twice."""
    try:
        value = json.loads(data, object_pairs_hook=_without_repeats, parse_int=_number)
    # json raises RecursionError for thousands of brackets.
    except (ValueError, RecursionError) as error:
        raise damaged(file) from error
    if not isinstance(value, dict):
        raise damaged(file)
    return value


def present(path: Path) -> bool:
    """Whether a name is taken, be it by a link that leads nowhere."""
    return os.path.lexists(path)


def exists(path: Path) -> bool:
    """Whether something can be reached there; unlike `Path.exists` it raises nothing."""
    return os.path.exists(path)


def is_folder(path: Path) -> bool:
    """Whether a folder can be reached there; unlike `Path.is_dir` it raises nothing."""
    return os.path.isdir(path)


def listed(folder: Path) -> list[Path]:
    """What is in a folder, in a fixed order. Raises Incomplete when it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


def shown(name: str) -> str:
    """The name of a file as it can be shown: what is no text in it becomes marks."""
    return NO_TEXT.sub("\ufffd", name)


def missing(file: str) -> Incomplete:
    """`file` should be there."""
    return Incomplete("file_missing", "{file} is missing.", file=file)


def damaged(file: str) -> Incomplete:
    """`file` is not what its name says."""
    return Incomplete("file_damaged", "{file} is damaged and cannot be read.", file=file)


def opened(path: Path) -> BufferedReader:
    """A regular file, to be read. Raises OSError, and Incomplete when it is none."""
    # Asked before opening: a pipe or device would block or never end.
    if not stat.S_ISREG(path.stat().st_mode):
        raise damaged(path.name)
    return path.open("rb")


def unreadable(path: Path, error: OSError) -> Incomplete:
    """The system's own reason why `path` cannot be read."""
    if isinstance(error, FileNotFoundError):
        return missing(path.name)
    return Incomplete(
        "file_unreadable",
        "{file} cannot be read: {reason}.",
        file=path.name,
        reason=error.strerror or type(error).__name__,
    )


def _number(text: str) -> int:
    # Python refuses to write out what has thousands of digits, so that no message could name it.
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return int(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Holds `lock`; the system lets go of it when the program ends in any way. Raises
    DownloadError where another holds it."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                # Before it is let go: a later holder's file is never the one removed. Windows
                # keeps an open file; an empty one left there does no harm.
                with suppress(OSError):
                    lock.unlink()
    except Timeout as error:
        raise DownloadError("already_running", "This download is already running.") from error
