"""One file on its way: what has come goes on where it stopped, and is checked before it counts.

Knows pieces, hashes and broken connections. Does not know whom the pieces come from.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from engine.api import Progress
from engine.errors import DownloadError, heed
from engine.library import begun
from engine.library.begun import PARTIAL
from engine.library.hub import RemoteFile
from engine.library.patience import patiently, wait

PIECE = 2**18
# Seconds before another try, for each time that a connection breaks without a byte in between.
WAITS = (0.0, 1.0, 2.0, 4.0, 8.0)

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Transfer:
    """`file` into the folder `target`. `stream` gives its pieces from a byte on, None first where
    the other side begins anew; `said` puts failures into words; `tell` hears a stage and how many
    bytes of the file are there."""

    file: RemoteFile
    target: Path
    stream: Callable[[int], Iterator[bytes | None]]
    said: Callable[[], AbstractContextManager[None]]
    tell: Callable[[str, int], None]
    progress: Report
    stopped: Stopped

    def is_right(self) -> bool:
        """Whether the file is there, whole, and of the right hash where that is known."""
        file, path = self.file, self.target / self.file.name
        if begun.length(path) != file.size or not path.is_file():
            return False
        if file.sha256 is None and file.blob is None:
            return True
        with path.open("rb") as data:
            return _is_hash(self._hashed(data).digest.hexdigest(), file)

    def run(self) -> None:
        """Fetch what is missing of the file. Raises DownloadError, Cancelled, OSError."""
        file, partial = self.file, self.target / f"{self.file.name}{PARTIAL}"
        with partial.open("a+b") as out:
            come = patiently(lambda: self._receive(out), self.progress, self.stopped)
        found = come.digest.hexdigest()
        if come.have != file.size or not _is_hash(found, file):
            partial.unlink(missing_ok=True)
            raise _wrong(file, come.have, found)
        partial.replace(self.target / file.name)

    def _receive(self, out: IO[bytes]) -> "_Come":
        """Append what is missing of a file, and make sure that it is on the disk."""
        if out.seek(0, os.SEEK_END) > self.file.size:
            out.truncate(0)
        come = self._hashed(out)
        with self.said():
            self._complete(out, come)
        out.flush()
        os.fsync(out.fileno())
        return come

    def _complete(self, out: IO[bytes], come: "_Come") -> None:
        """Append what follows. A connection that breaks is made again."""
        import httpx2

        broken = 0
        while come.have < self.file.size:
            before = come.have
            try:
                self._append(out, come)
                if come.have < self.file.size:
                    raise httpx2.RemoteProtocolError("the answer ended early")
            except (httpx2.TransportError, httpx2.StreamError):
                broken = 0 if come.have > before else broken + 1
                if broken >= len(WAITS):
                    raise
                wait(WAITS[broken], self.stopped)

    def _append(self, out: IO[bytes], come: "_Come") -> None:
        """Write and hash what follows on what has come, but never more than one piece too many."""
        for piece in self.stream(come.have):
            heed(self.stopped)
            if piece is None:
                # the server begins anew
                out.truncate(0)
                come.digest, come.have = _new_hash(self.file), 0
                continue
            out.write(piece)
            come.add(piece)
            self.tell("download", come.have)
            if come.have > self.file.size:
                return

    def _hashed(self, data: IO[bytes]) -> "_Come":
        """What is there already, read and hashed."""
        data.seek(0)
        come = _Come(_new_hash(self.file))
        while piece := data.read(PIECE):
            heed(self.stopped)
            come.add(piece)
            self.tell("check", come.have)
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
