"""One running copy of the program for a data folder and its user.

A lock file tells who runs, a local socket takes the message of a second start. Knows nothing of
windows: what a message means is for others to say.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from app import paths
from engine.errors import EngineError

LOCK, ADDRESS = "running.lock", "running.address"
LONGEST_ADDRESS = 100  # bytes; systems take 104 to 108
LONGEST_MESSAGE = 4096  # bytes
PATIENCE = 2.5  # seconds for the running copy to start listening and answer, or to end
STEP_MS = 500
SILENCE_MS = 2000  # after which a caller who says nothing is cut off
HEARD = b"+"


class Instance(QObject):
    """The claim to be the one running copy for `folder`."""

    called = Signal(str)  # what a second start hands over: an id, a path or nothing

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = paths.ensure(folder)
        self._lock = QLockFile(str(folder / LOCK))
        # Age makes no lock stale, only the end of the process that it names.
        self._lock.setStaleLockTime(0)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.setMaxPendingConnections(8)
        self._server.newConnection.connect(self._greet)

    def claim(self, message: str = "") -> bool:
        """Whether this process is the running copy from now on; if another is, it has been handed
        `message`. Raises EngineError when that one does not answer."""
        deadline = time.monotonic() + PATIENCE
        while not self._lock.tryLock(0):
            if self._lock.error() is not QLockFile.LockError.LockFailedError:
                return True  # a folder that takes no locks: better two copies than none
            if self._lock.getLockInfo()[0] == os.getpid() and not _is_held(self._folder / LOCK):
                # of one that had our number: in a container all have the same
                (self._folder / LOCK).unlink(missing_ok=True)
                continue
            if self._hand_over(message, deadline):
                return False
            if time.monotonic() > deadline:
                raise self._silent()
            time.sleep(0.05)
        self._listen()
        return True

    def hang_up(self) -> None:
        """Take no more calls, and hold the claim: who starts now waits until it is given up."""
        self._server.close()

    def close(self) -> None:
        """Give the claim up."""
        self.hang_up()
        if self._lock.isLocked():
            with contextlib.suppress(OSError):
                (self._folder / ADDRESS).unlink(missing_ok=True)
            self._lock.unlock()

    def _silent(self) -> EngineError:
        """What the one that runs and says nothing can be told by."""
        return EngineError(
            "already_running",
            "Slipstream is already running, as process {process}, but does not answer. Wait a "
            "moment and start it again, or end that process. If there is none, delete {path}.",
            process=self._lock.getLockInfo()[0],
            path=str(self._folder / LOCK),
        )

    def _listen(self) -> None:
        """Take calls. Where no address can be listened at, a second start says so."""
        for address in _addresses(self._folder):
            QLocalServer.removeServer(address)
            if self._server.listen(address):
                with contextlib.suppress(OSError):
                    (self._folder / ADDRESS).write_text(address, encoding="utf-8")
                return

    def _hand_over(self, message: str, deadline: float) -> bool:
        """Whether the running copy has taken `message` by then, by the monotonic clock."""
        try:
            with (self._folder / ADDRESS).open(encoding="utf-8") as file:
                address = file.read(LONGEST_ADDRESS)
        except (OSError, ValueError):
            return False
        socket = QLocalSocket()
        socket.connectToServer(address)
        if not socket.waitForConnected(STEP_MS):
            return False
        socket.write(_clean(os.fsencode(message))[:LONGEST_MESSAGE] + b"\n")
        socket.flush()
        heard = socket.waitForReadyRead(max(0, int((deadline - time.monotonic()) * 1000)))
        return heard and socket.readAll().data() == HEARD

    def _greet(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            caller = _Caller(socket, self)
            caller.said.connect(self.called)
            caller.read()


class _Caller(QObject):
    """A second start while it talks: one line, then it is answered and done with."""

    said = Signal(str)

    def __init__(self, socket: QLocalSocket, parent: QObject) -> None:
        super().__init__(parent)
        self._socket = socket
        socket.setParent(self)
        socket.setReadBufferSize(LONGEST_MESSAGE + 1)
        socket.readyRead.connect(self.read)
        socket.disconnected.connect(self.deleteLater)
        QTimer.singleShot(SILENCE_MS, self, socket.abort)

    def read(self) -> None:
        """Take in what has come."""
        socket = self._socket
        if socket.canReadLine():
            line = socket.readLine(LONGEST_MESSAGE + 2).data()
            socket.write(HEARD)
            socket.flush()
            socket.disconnectFromServer()
            self.said.emit(_clean(bytes(line)).decode("utf-8", "replace"))
        elif socket.bytesAvailable() > LONGEST_MESSAGE:
            socket.abort()


def _clean(message: bytes) -> bytes:
    """`message` as one line without control characters."""
    return bytes(byte for byte in message if byte >= 0x20 and byte != 0x7F)


def _addresses(folder: Path) -> Iterable[str]:
    """Where to listen: short whatever the folder is called, and out of others' reach."""
    name = "slipstream-" + hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:20]
    if sys.platform == "win32":
        return [name]
    folders = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), str(folder), "/tmp"]
    whole = [os.path.join(place, name) for place in folders if place and os.path.isdir(place)]
    return [address for address in whole if len(os.fsencode(address)) <= LONGEST_ADDRESS]


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock file, as Qt does where there is `flock`."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
