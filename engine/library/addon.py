"""The folder of the graphics card add-on: another build of torch beside the program's own.

In it lie `wheels/` on their way, `unpacking/`, half done, the folder that torch is imported from,
and a note, written last: without it there is no add-on. Imports nothing of what it holds, and
needs little itself, since every start of the packaged program looks here.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError, Reason
from engine.library import files
from engine.library.pins import tag

NOTE, REFUSAL = "addon.json", "refused.json"
WHEELS, HALF, SITE = "wheels", "unpacking", "site"
LARGE = 2**20  # bytes; of files from here on the length is noted and looked at
LIMIT = 2**20  # bytes of a note
DAMAGED = (
    "The graphics card add-on is damaged ({file}), so the processor is used. Remove it in the "
    "settings and fetch it anew."
)


@dataclass(frozen=True)
class Addon:
    """One that was tried: public version of torch, its CUDA, `pins.tag` of the program it was made
    for, its folder's name, and the lengths of its large files."""

    torch: str
    cuda: str | None
    tag: str
    site: str
    lengths: dict[str, int]

    def suits(self, torch: str) -> bool:
        """Whether it is for this program."""
        return self.torch == torch and self.tag == tag()


def read(home: Path) -> Addon | None:
    """The add-on whose note lies there; None where there is none, or no sound one."""
    try:
        told = files.read_json(home / NOTE, LIMIT)
        found = Addon(told["torch"], told["cuda"], told["tag"], told["site"], told["lengths"])
        return found if Path(found.site).name == found.site and found.site else None
    except (EngineError, KeyError, TypeError, ValueError):
        return None


def trouble(home: Path, found: Addon) -> Reason | None:
    """Why it cannot be used, as far as can be told without importing it."""
    for folder in (home, home / found.site):
        if not _is_ours(folder):
            return Reason(
                "addon_not_ours",
                "The folder of the graphics card add-on, {folder}, can be written to by others, "
                "so nothing is run from it. Remove the add-on in the settings and fetch it anew.",
                {"folder": str(folder)},
            )
    for name, length in found.lengths.items():
        with suppress(OSError):
            if (home / found.site / name).stat().st_size == length:
                continue
        return Reason(
            "addon_damaged",
            DAMAGED,
            {"file": Path(name).name},
        )
    return None


def write(home: Path, half: Path, torch: str, cuda: str | None) -> Addon:
    """Make what was unpacked in `half` the add-on, in place of any before it. Raises OSError."""
    site = next(n for n in (f"{SITE}{i}" for i in range(1000)) if not (home / n).exists())
    half.rename(home / site)
    made = Addon(torch, cuda, tag(), site, _lengths(home / site))
    with suppress(FileNotFoundError):
        (home / REFUSAL).unlink()
    _write(home / NOTE, asdict(made))
    return made


def forget(home: Path) -> None:
    """From the next start on there is no add-on; its files stay until `tidy`. Raises OSError."""
    for name in (NOTE, REFUSAL):
        (home / name).unlink(missing_ok=True)


def tidy(home: Path, *, keep_wheels: bool = True) -> None:
    """Remove what belongs to no add-on of this program; what is in use stays for another time."""
    found = read(home)
    kept = {NOTE, REFUSAL, found.site if found else "", WHEELS if keep_wheels else ""}
    with suppress(OSError):
        for path in list(home.iterdir()):
            if path.is_dir() and path.name not in kept and not _is_held(path):
                shutil.rmtree(path, ignore_errors=True)


def hold(site: Path) -> Callable[[], None]:
    """Keep `site` from `tidy`, in every process, until what is returned is called or this process
    ends. Does nothing on Windows, which itself keeps libraries that are in use."""
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):
            held = os.open(site, os.O_RDONLY)
            with suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_SH)
            return lambda: os.close(held)
    return lambda: None


def _is_held(folder: Path) -> bool:
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):
            held = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(held)
    return False


def refuse(home: Path, reason: Reason, *, told: bool = False) -> None:
    """Use the add-on no more until `allow`, for this `reason`; `told`: the user knows."""
    with suppress(OSError):
        values = dict(reason.values)
        _write(home / REFUSAL, [reason.code, reason.template, values, told])


def refusal(home: Path) -> tuple[Reason, bool] | None:
    """Why it is not used, and whether that was told; None where it may be."""
    if not files.exists(home / REFUSAL):
        return None
    with suppress(EngineError, ValueError, TypeError, KeyError):
        data = files.read_bytes(home / REFUSAL, LIMIT)
        code, template, values, told = json.loads(data)
        reason = Reason(str(code), str(template), dict(values))
        reason.text  # noqa: B018  a damaged note is found here
        return reason, told is True
    return Reason("addon_damaged", DAMAGED, {"file": REFUSAL}), False


def allow(home: Path) -> None:
    """It may be used again. Raises OSError."""
    (home / REFUSAL).unlink(missing_ok=True)


def _lengths(site: Path) -> dict[str, int]:
    found = {}
    for folder, _, names in os.walk(site):
        for name in names:
            path = Path(folder, name)
            if (length := path.stat().st_size) >= LARGE:
                found[path.relative_to(site).as_posix()] = length
    return found


def _is_ours(folder: Path) -> bool:
    """Whether only this user, and the system's administrator, can write there."""
    if sys.platform == "win32":
        return True  # the folders of a user are theirs there
    with suppress(OSError):
        told = folder.stat()
        return told.st_uid in (os.getuid(), 0) and not told.st_mode & 0o022
    return False


def _write(path: Path, value: Any) -> None:
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8") as out:
        json.dump(value, out)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
