"""The whole program for measures: without a screen, in a home of its own that is new and empty."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["SLIPSTREAM_HOME"] = tempfile.mkdtemp()

from PySide6.QtCore import QEventLoop, QTimer

from app import paths, start
from app.settings import Settings, save
from app.viewmodels.shelf import Judgement
from app.worker import SessionLike
from engine.errors import Reason
from engine.guidance import Level, Verdict
from engine.library.inspect import inspect
from engine.library.scan import Entry
from tests.fakes import FakeShelf

DEFAULTS = Settings()
LOOK_MS = 20


class OneModel(FakeShelf):
    """A real model, and nothing else."""

    def __init__(self, path: Path) -> None:
        super().__init__([Entry(path.stem, path, inspect(path), None)])

    def judge(self, target: Entry, draft: Entry, stopped: Callable[[], bool]) -> Judgement:
        verdict = Verdict(Level.REFUSED, Reason("own_draft", "This is the target itself"))
        return Judgement(target.path, draft.path, verdict)


def opened(
    session: SessionLike, shelf: FakeShelf, settings: Settings | None = None
) -> start.Program:
    """The program with its window, ready to answer."""
    paths.ensure(paths.data_folder())
    save(settings or Settings(), paths.ensure(paths.config_folder()))
    program = start.build(["measure"], session_factory=lambda: session, shelf=shelf)
    program.window.show()
    program.begin()
    until(lambda: program.chat.can_send and not program.models.choosing, 300)
    return program


def until(done: Callable[[], bool], seconds: float) -> None:
    """Let the event loop run until `done`, which is looked at now and then: looking takes the time
    of what is measured. Ends the measure where that takes too long."""
    end = time.monotonic() + seconds
    loop, looks = QEventLoop(), QTimer(interval=LOOK_MS)
    looks.timeout.connect(lambda: loop.quit() if done() or time.monotonic() > end else None)
    looks.start()
    if not done():
        loop.exec()
    if not done():
        sys.exit("it took too long")
