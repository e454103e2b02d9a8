"""The note of a download beside its files: to go on with it, and to repair the model by.

Knows the note's format, and reads it as if strangers had written it. Fetches nothing.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.library import files, hub
from engine.library.hub import RemoteFile
from engine.library.plan import Plan

NOTE = ".download.json"
PARTIAL = ".partial"
LIMIT = 10 * 2**20  # bytes of a note
SHA256, SHA1 = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class Begun:
    """A download that was begun: `whole` where it has ended; `fresh` where no file of it had been
    there before."""

    plan: Plan
    whole: bool = False
    fresh: bool = False


def folder_of(repository: str, models: Path) -> Path:
    """Where a repository is kept; `hub.is_name` is true of it."""
    owner, name = repository.split("/")
    return models / owner / name


def path_of(wanted: Plan, models: Path) -> Path:
    """What the library calls it by: the folder, or the first of its GGUF files there."""
    target = folder_of(wanted.repository, models)
    first = wanted.files[0].name
    return target / first if first.lower().endswith(".gguf") else target


def note(wanted: Plan, target: Path, *, whole: bool) -> None:
    """Write down how far `wanted` is; other models of the folder stay noted. Raises OSError."""
    names = {file.name for file in wanted.files}
    kept, before = [], None
    for known in read(target):
        if known.plan == wanted:
            before = known
        elif names.isdisjoint(file.name for file in known.plan.files):
            kept.append(known)
    if before is not None:
        # One that had ended is being repaired: its files are not to go with what is thrown away.
        fresh = before.fresh and not before.whole
    else:
        fresh = not any((target / name).exists() for name in names)
    _write([*kept, Begun(wanted, whole, fresh)], target)


def read(target: Path) -> list[Begun]:
    """What was noted in a model's folder; nothing where that is damaged."""
    try:
        table = files.parse_object(files.read_bytes(target / NOTE, LIMIT), NOTE)
        return [_begun(entry) for entry in table["downloads"]]
    except (EngineError, KeyError, TypeError, ValueError):
        return []


def unfinished(models: Path) -> list[Begun]:
    """Every download below `models` that has not ended."""
    found = []
    for file in _notes(models):
        repository = "/".join(file.parent.relative_to(models).parts)
        begun = (known for known in read(file.parent) if not known.whole)
        found += [known for known in begun if known.plan.repository == repository]
    return found


def come(wanted: Plan, models: Path) -> int:
    """Bytes of `wanted` that are there, whole files by their size alone."""
    target = folder_of(wanted.repository, models)
    return sum(_come(file, target) for file in wanted.files)


def forget(wanted: Plan, models: Path) -> None:
    """Delete what a broken-off download left. Files that were there before it stay, be they a
    model's of which some were to be repaired."""
    target = folder_of(wanted.repository, models)
    noted = read(target)
    this = next((known for known in noted if known.plan == wanted), Begun(wanted))
    for file in wanted.files:
        _remove(target / f"{file.name}{PARTIAL}")
        if this.fresh and not this.whole:
            _remove(target / file.name)
    # What was there before is as whole or damaged as it was, and can still be repaired.
    rest = [known for known in noted if known is not this]
    rest += [] if this.fresh and not this.whole else [replace(this, whole=True)]
    if rest and target.is_dir():
        _write(rest, target)
    else:
        _remove(target / NOTE)
    for empty in (target, target.parent):
        with suppress(OSError):
            empty.rmdir()


def is_noted(path: Path) -> bool:
    """Whether the model at `path` was fetched by this program."""
    folder = path.parent if path.suffix.lower() == ".gguf" else path
    return length(folder / NOTE) > 0


def _notes(models: Path) -> Iterator[Path]:
    try:
        yield from sorted(models.glob(f"*/*/{NOTE}"))
    except OSError:
        return


def _come(file: RemoteFile, target: Path) -> int:
    if length(target / file.name) == file.size:
        return file.size
    return min(length(target / f"{file.name}{PARTIAL}"), file.size)


def length(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


def _write(noted: list[Begun], target: Path) -> None:
    beside = target / f"{NOTE}.new"
    with beside.open("w", encoding="utf-8") as out:
        json.dump({"downloads": [asdict(known) for known in noted]}, out)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(target / NOTE)


def _begun(entry: Any) -> Begun:
    """Raises ValueError, KeyError, TypeError for what `_write` did not write."""
    plan = entry["plan"]
    remote = tuple(_remote(file) for file in plan["files"])
    repository, commit = plan["repository"], plan["commit"]
    if not (hub.is_name(repository) and SHA1.fullmatch(commit) and remote):
        raise ValueError
    return Begun(Plan(repository, commit, remote), entry["whole"] is True, entry["fresh"] is True)


def _remote(file: Any) -> RemoteFile:
    made = RemoteFile(file["name"], file["size"], file["sha256"], file["blob"])
    sound = (
        hub.is_plain(made.name)
        and type(made.size) is int
        and made.size >= 0
        and (made.sha256 is None or SHA256.fullmatch(made.sha256))
        and (made.blob is None or SHA1.fullmatch(made.blob))
    )
    if not sound:
        raise ValueError
    return made
