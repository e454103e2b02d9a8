"""Pictures of the dialog that compares drafts, in each state; nothing is measured."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication

from engine.errors import OutOfMemory
from tests.comparing import ComparingSession
from tests.fakes import DRAFT
from tests.model_screens import usual
from tests.stage import Stage


def compare(out: Path) -> None:
    """Before it, while it measures, at its end, with a draft that failed; wide and narrow."""
    session = ComparingSession()
    stage = Stage(out, session, usual())
    stage.show("light", 1440, 900)
    window, model = stage.program.window, stage.program.compare
    window.show_compare()
    stage.settle(0.2)
    _centre(stage)
    stage.in_both("compare-before", window.compare)
    session.limit = 0
    model.run()
    stage.settle(0.3)
    stage.shoot("compare-waiting", window.compare)
    session.limit = 55  # of each way a warm-up and 20 answers
    stage.until(lambda: len(session.answered) == session.limit)
    stage.settle(0.4)
    stage.in_both("compare-running", window.compare)
    session.limit = 10**9
    stage.until(lambda: not model.running)
    stage.settle(0.4)
    stage.in_both("compare", window.compare)
    window.compare.resize(1060, 1000)
    stage.settle(0.2)
    stage.shoot("compare-high", window.compare)
    session.broken[str(DRAFT)] = OutOfMemory("no_memory", "The device's memory ran out.")
    model.run()
    stage.until(lambda: not model.running)
    stage.settle(0.4)
    stage.shoot("compare-failed", window.compare)
    window.compare.close()
    window.resize(900, 600)
    window.show_compare()
    window.compare.resize(window.compare.minimumSize().width(), 560)
    stage.settle(0.3)
    _centre(stage)
    stage.in_both("compare-narrow", window.compare)
    stage.end()


def _centre(stage: Stage) -> None:
    """Over the middle of the window, as a window manager puts it."""
    window = stage.program.window
    window.compare.move(window.geometry().center() - window.compare.rect().center())
    QApplication.processEvents()


PICTURES: dict[str, Callable[[Path], None]] = {"compare": compare}
