"""Wheels unpacked as data: checked names, bounded sizes, and nothing of them run.

Knows zip files and what of torch a program never needs. Does not know where wheels come from nor
what becomes of them.
"""

import stat
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from engine.errors import DownloadError, heed
from engine.library.pins import Wheel

PIECE = 2**20  # bytes
MOST_MEMBERS = 50_000  # of a wheel; torch's has 15,000
# Tests, tools, and what is for compilers alone.
SPARE = ("torch/test/", "torch/bin/", "torch/include/", "torch/share/")
WANTED = ("torch/bin/torch_shm_manager",)


def is_needed(name: str) -> bool:
    """Whether a member of a wheel is unpacked."""
    if name in WANTED:
        return True
    return not name.startswith(SPARE) and not name.endswith((".a", "/"))


def unpack(
    wheel: Wheel,
    archive: Path,
    folder: Path,
    tell: Callable[[int], object],
    stopped: Callable[[], bool],
) -> None:
    """Write what is needed of the wheel at `archive` into `folder`; `tell` hears of each piece.

    Raises DownloadError for a wheel that is not as pinned, Cancelled, OSError.
    """
    try:
        with zipfile.ZipFile(archive) as held:
            for member in _members(wheel, held):
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with held.open(member) as data, target.open("wb") as out:
                    while piece := data.read(PIECE):
                        heed(stopped)
                        out.write(piece)
                        tell(len(piece))
                if member.external_attr >> 16 & stat.S_IXUSR:
                    target.chmod(0o755)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _odd(wheel, archive.name) from error


def _members(wheel: Wheel, held: zipfile.ZipFile) -> Sequence[zipfile.ZipInfo]:
    """What is unpacked, every name looked at before a byte is written."""
    members = held.infolist()
    if len(members) > MOST_MEMBERS:
        raise _odd(wheel, f"{len(members)}")
    for member in members:
        if not _is_sound(member, wheel.tops) and is_needed(member.filename):
            raise _odd(wheel, member.filename)
    needed = [member for member in members if is_needed(member.filename)]
    # zipfile gives no more bytes of a member than it says here
    if sum(member.file_size for member in needed) > wheel.unpacked:
        raise _odd(wheel, f"{sum(m.file_size for m in needed) / 1e6:.0f} MB")
    return needed


def _is_sound(member: zipfile.ZipInfo, tops: frozenset[str]) -> bool:
    """Whether it is a plain file inside one of the known folders, on every system."""
    name = member.filename
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    return (
        not (posix.is_absolute() or windows.drive or windows.root or "\\" in name or ":" in name)
        and ".." not in posix.parts
        and name.isprintable()
        and posix.parts[:1] != ()
        and posix.parts[0] in tops
        and not stat.S_ISLNK(member.external_attr >> 16)
    )


def _odd(wheel: Wheel, what: str) -> DownloadError:
    return DownloadError(
        "odd_wheel",
        "{file} does not hold what it should ({what}), so nothing of it is used.",
        file=wheel.name,
        what=what[:200],
    )
