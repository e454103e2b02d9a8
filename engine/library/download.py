"""Models fetched from the Hugging Face Hub: the files that a plan names, whole and checked.

Goes on with a download that has stopped, and repairs what is damaged. What the hub says is `hub`'s,
what is needed of it `plan`'s.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from engine.api import Progress
from engine.errors import DownloadError, heed
from engine.library import answers, begun, files, hub, starter
from engine.library.begun import PARTIAL, folder_of
from engine.library.hub import ANYONE, Access, RemoteFile
from engine.library.patience import patiently, wait
from engine.library.plan import Plan, plan

PIECE = 2**18
# Seconds before another try, for each time that a connection breaks without a byte in between.
WAITS = (0.0, 1.0, 2.0, 4.0, 8.0)

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Space:
    """Bytes that a download takes still, and bytes free where it goes."""

    needed: int
    free: int

    @property
    def fits(self) -> bool:
        return self.needed <= self.free


def space(wanted: Plan, models: Path) -> Space:
    """What `wanted` takes still, and what is free. Raises DownloadError where nobody can tell."""
    left = wanted.size - begun.come(wanted, models)
    target = folder_of(wanted.repository, models)
    try:
        return Space(left, _free(target))
    except OSError as error:
        raise _not_writable(error, models) from error


def fetch(
    wanted: Plan,
    models: Path,
    progress: Report,
    stopped: Stopped,
    access: Access = ANYONE,
) -> Path:
    """The folder below `models` that has every file of `wanted`, whole and checked.

    A file that is there and right is not fetched again; one that is damaged is. What was begun
    goes on where it stopped. Under a final name there is never anything but a whole file. Raises
    DownloadError; Cancelled when stopped, with what has come so far kept.
    """
    hub.require_online(access)
    target = folder_of(wanted.repository, models)
    room = space(wanted, models)
    if not room.fits:
        raise _no_space(room, models)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with files.alone(target / ".download.lock"):
            _Errand(wanted, target, models, progress, stopped, access).run()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _no_space(space(wanted, models), models) from error
        raise _not_writable(error, target) from error
    return target


def repair(
    path: Path, models: Path, progress: Report, stopped: Stopped, access: Access = ANYONE
) -> Path:
    """Fetch again what is wrong of the model at `path` below `models`; its folder or file.

    Raises DownloadError where it was not fetched by this program, and as `plan` and `fetch` do.
    """
    if path == models / starter.STARTER.file:
        hub.require_online(access)
        return starter.fetch(models, progress, stopped)
    wanted = patiently(lambda: plan_of(path, models, access), progress, stopped)
    fetch(wanted, models, progress, stopped, access)
    return path


def plan_of(path: Path, models: Path, access: Access = ANYONE) -> Plan:
    """By what the model at `path` was fetched; where that was not noted, its newest state.

    Raises DownloadError where it was not fetched by this program, and as `plan` does.
    """
    file = path.name if path.suffix.lower() == ".gguf" else None
    target = path.parent if file else path
    parts = target.relative_to(models).parts if target.is_relative_to(models) else ()
    repository = "/".join(parts)
    if len(parts) != 2 or not hub.is_name(repository):
        raise DownloadError(
            "not_fetched",
            "{name} was not fetched by this program, so it cannot be completed or repaired here.",
            name=path.name,
        )
    for known in sorted(begun.read(target), key=lambda known: known.whole):
        names = {remote.name for remote in known.plan.files}
        if known.plan.repository == repository and (file is None or file in names):
            return known.plan
    return plan(repository, None, file, access)


@dataclass(frozen=True)
class _Errand:
    """One download on its way."""

    wanted: Plan
    target: Path
    models: Path
    progress: Report
    stopped: Stopped
    access: Access

    def run(self) -> None:
        """Fetch what is missing or wrong. Raises DownloadError, Cancelled, OSError."""
        left, looked = [], 0
        for file in self.wanted.files:
            if not self._is_right(file, looked):
                left.append(file)
            looked += file.size
        self._require_space(left)
        # Not before: what is refused was not begun.
        begun.note(self.wanted, self.target, whole=False)
        done = self.wanted.size - sum(file.size for file in left)
        for file in left:
            self._fetch(file, done)
            done += file.size
        begun.note(self.wanted, self.target, whole=True)
        self._tell("download", self.wanted.size)

    def _require_space(self, left: Sequence[RemoteFile]) -> None:
        """As `space`, now that it is known which files are damaged."""
        come = sum(begun.length(self.target / f"{file.name}{PARTIAL}") for file in left)
        room = Space(sum(file.size for file in left) - come, _free(self.target))
        if not room.fits:
            raise _no_space(room, self.models)

    def _tell(self, stage: str, done: int) -> None:
        total = self.wanted.size
        self.progress(Progress(stage, min(done, total), total))

    def _is_right(self, file: RemoteFile, before: int) -> bool:
        """Whether the file is there, whole, and of the right hash where that is known."""
        path = self.target / file.name
        if begun.length(path) != file.size or not path.is_file():
            return False
        if file.sha256 is None and file.blob is None:
            return True
        with path.open("rb") as data:
            return _is_hash(self._hashed(data, file, before).digest.hexdigest(), file)

    def _fetch(self, file: RemoteFile, done: int) -> None:
        partial = self.target / f"{file.name}{PARTIAL}"
        with partial.open("a+b") as out:
            come = patiently(lambda: self._receive(file, out, done), self.progress, self.stopped)
        found = come.digest.hexdigest()
        if come.have != file.size or not _is_hash(found, file):
            partial.unlink(missing_ok=True)
            raise _wrong(file, come.have, found)
        partial.replace(self.target / file.name)

    def _receive(self, file: RemoteFile, out: IO[bytes], done: int) -> "_Come":
        """Append what is missing of a file, and make sure that it is on the disk."""
        if out.seek(0, os.SEEK_END) > file.size:
            out.truncate(0)
        come = self._hashed(out, file, done)
        with answers.said(self.wanted.repository):
            self._complete(file, out, come, done)
        out.flush()
        os.fsync(out.fileno())
        return come

    def _complete(self, file: RemoteFile, out: IO[bytes], come: "_Come", done: int) -> None:
        """Append what follows. A connection that breaks is made again."""
        import httpx2

        broken = 0
        while come.have < file.size:
            before = come.have
            try:
                self._append(file, out, come, done)
                if come.have < file.size:
                    raise httpx2.RemoteProtocolError("the answer ended early")
            except (httpx2.TransportError, httpx2.StreamError):
                broken = 0 if come.have > before else broken + 1
                if broken >= len(WAITS):
                    raise
                wait(WAITS[broken], self.stopped)

    def _append(self, file: RemoteFile, out: IO[bytes], come: "_Come", done: int) -> None:
        """Write and hash what follows on what has come, but never more than one piece too many."""
        wanted = self.wanted
        for piece in hub.stream(wanted.repository, wanted.commit, file, come.have, self.access):
            heed(self.stopped)
            if piece is None:
                # the server begins anew
                out.truncate(0)
                come.digest, come.have = _new_hash(file), 0
                continue
            out.write(piece)
            come.add(piece)
            self._tell("download", done + come.have)
            if come.have > file.size:
                return

    def _hashed(self, data: IO[bytes], file: RemoteFile, before: int) -> "_Come":
        """What is there already, read and hashed."""
        data.seek(0)
        come = _Come(_new_hash(file))
        while piece := data.read(PIECE):
            heed(self.stopped)
            come.add(piece)
            self._tell("check", before + come.have)
        return come


@dataclass
class _Come:
    """What is there of a file: the hash so far, and its bytes."""

    digest: Any
    have: int = 0

    def add(self, piece: bytes) -> None:
        self.digest.update(piece)
        self.have += len(piece)


def _new_hash(file: RemoteFile) -> Any:
    """SHA-256 where it is known, else the one by which git knows a file."""
    if file.sha256 is not None:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)


def _is_hash(found: str, file: RemoteFile) -> bool:
    expected = file.sha256 or file.blob
    return expected is None or found == expected


def _wrong(file: RemoteFile, have: int, found: str) -> DownloadError:
    if have != file.size:
        return DownloadError(
            "wrong_size",
            "{file} is not the expected file: it has more than the {size} bytes announced.",
            file=file.name,
            size=file.size,
        )
    return DownloadError(
        "wrong_hash",
        "{file} is not the expected file: its {kind} is {found}, not {expected}.",
        file=file.name,
        kind="SHA-256" if file.sha256 else "SHA-1",
        found=found,
        expected=file.sha256 or file.blob or "",
    )


def _free(path: Path) -> int:
    """Bytes free on the drive where `path` lies or would lie. Raises OSError."""
    there = next(part for part in (path, *path.parents) if part.exists())
    return shutil.disk_usage(there).free


def _no_space(room: Space, models: Path) -> DownloadError:
    return DownloadError(
        "no_space",
        "{needed} are needed, {free} are free in {folder}.",
        needed=_amount(-(-room.needed // 10**6)),
        free=_amount(room.free // 10**6),
        folder=str(models),
    )


def _amount(megabytes: int) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes} MB"


def _not_writable(error: OSError, target: Path) -> DownloadError:
    return DownloadError(
        "not_writable",
        "{folder} cannot be written to: {reason}.",
        folder=str(target),
        reason=error.strerror or type(error).__name__,
    )
