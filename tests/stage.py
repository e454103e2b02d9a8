"""One program on a stage: scripted session and shelf, shown, played and photographed."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from app import resources, start
from engine.api import Chunk
from tests.fakes import FakeShelf, ScriptedSession, info, shaped

DEEP = 8  # layouts within one another
SCHEMES: tuple[resources.Scheme, ...] = ("light", "dark")


def exact(*script: Sequence[Chunk | Exception], pause: float = 0.0) -> ScriptedSession:
    """A session whose target is bit-exact in 8 bits."""
    session = ScriptedSession(*script, pause=pause)
    session.auto, session.bit_exact = "int8", True
    return session


class Stage:
    """One program, played and photographed."""

    def __init__(
        self,
        out: Path,
        session: ScriptedSession,
        shelf: FakeShelf,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """`prepare` writes what is kept from before the program starts."""
        self.out, self.session = out, session
        session.describe = lambda path: shaped(info(path))
        os.environ["SLIPSTREAM_HOME"] = tempfile.mkdtemp()
        prepare()
        self.program = start.build(["screens"], session_factory=lambda: session, shelf=shelf)

    def show(self, scheme: resources.Scheme, width: int, height: int) -> None:
        """Open the window and wait until the model is loaded."""
        resources.apply_theme(self.program.app, scheme)
        self.program.window.resize(width, height)
        self.program.window.show()
        self.program.window.activateWindow()
        self.program.begin()
        self.settle(0.35)

    def settle(self, seconds: float) -> None:
        """Let the event loop run."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            QApplication.processEvents()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            time.sleep(0.005)

    def ask(self, text: str, *, wait: Callable[[], bool] | None = None) -> None:
        """Send and wait for the end, or for `wait`."""
        self.program.chat.send(text)
        done = wait or (lambda: not self.program.chat.answering)
        end = time.monotonic() + 20
        while not done() and time.monotonic() < end:
            QApplication.processEvents()
            time.sleep(0.002)
        self.settle(0.4)

    def shoot(self, name: str, *over: QWidget) -> None:
        """Write the picture, with these windows `over` the program's."""
        self.settle(0.1)
        for _ in range(DEEP):  # what came last is not in its place yet
            QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        window = self.program.window
        shot: QPixmap = window.grab()
        painter = QPainter(shot)
        for other in over:
            place = window.mapFromGlobal(other.mapToGlobal(QPoint(0, 0)))
            painter.drawPixmap(place, other.grab())
        painter.end()
        shot.save(str(self.out / f"{name}.png"))

    def end(self) -> None:
        """Take it down."""
        self.program.chat.stop()
        self.program.window.close()
        self.program.worker.close(closing=self.program.history.close)
        self.program.window.deleteLater()
        QApplication.sendPostedEvents()
        self.settle(0.05)

    def until(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        """Let the event loop run until `condition` holds. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError
            self.settle(0.02)
        self.settle(0.1)

    def in_both(self, name: str, *over: QWidget) -> None:
        """Write the picture in both schemes, with these windows `over` the program's."""
        for scheme in SCHEMES:
            resources.apply_theme(self.program.app, scheme)
            self.settle(0.1)
            self.shoot(f"{name}-{scheme}", *over)
