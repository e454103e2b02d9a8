"""What `slipstream --self-test` checks of the window: it opens, paints, answers and closes.

The same window, worker and engine as always; only the typing and the closing are done for the
user. The first checks of all, so that the time until the window shows is that of a usual start.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from PySide6.QtCore import QCoreApplication, QEventLoop, QSize, QTimer
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageReader
from PySide6.QtWidgets import QDialogButtonBox

from app import paths, resources, start
from app.checks import Check, CheckFailed, icons
from app.start import Program
from app.viewmodels.shelf import Shelf, guidance_table
from engine.library.index import Index
from engine.library.starter import STARTER

QUESTION = "Say hello in one sentence."
# An answer this long is proof enough; the Stop button ends it.
ENOUGH_TOKENS = 48
FORMATS = ("png", "svg")


def every(model: Path | None) -> Iterator[tuple[str, Check]]:
    """Names and checks, in their order; without a `model` nothing is answered."""
    script = Script()
    if model is None:
        yield "starter model", _missing
    else:
        yield "starter model", lambda: _put(model)
    yield "window", script.open
    if model is not None:
        yield "answer in the window", script.answer
    yield "closing", script.close
    yield "pictures", pictures
    yield "languages", languages


def _missing() -> str:
    raise CheckFailed(f"{STARTER.file} is not there; “slipstream get starter” fetches it")


def _put(model: Path) -> str:
    """Into the library of the checks, and nothing else with it."""
    place = paths.ensure(paths.model_folder()) / model.name
    try:
        os.symlink(model, place)
    except OSError:
        shutil.copyfile(model, place)
    return str(model)


class Script:
    """What a user would do, and what it looks like."""

    def __init__(self) -> None:
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The open one."""
        if self._program is None:
            raise CheckFailed("the window did not open")
        return self._program

    def open(self) -> str:
        """The window opens, and shows something."""
        start.open_log(paths.ensure(paths.log_folder()))
        shelf = Shelf(
            [paths.model_folder()],
            paths.model_folder(),
            guidance_table(),
            Index(paths.index_file()),
        )
        program = start.build([], shelf=shelf)
        program.window.show()
        _until(program.window.isVisible)
        took = time.time() - psutil.Process().create_time()
        self._program = program
        colours = _colours(program.window.grab().toImage())
        if colours < 8:
            raise CheckFailed(f"it is blank: {colours} colours")
        size, platform = program.window.size(), QGuiApplication.platformName()
        program.begin()
        return f"window on {platform}, after {took:.2f} s, {size.width()} x {size.height()}"

    def answer(self) -> str:
        """The model is loaded in the engine's thread, and an answer streams into the transcript."""
        program, began = self.program, time.monotonic()
        _until(self._is_ready)
        self._raise_trouble()
        loaded = time.monotonic()
        if not program.chat.send(QUESTION):
            raise CheckFailed("the question was not taken")
        _until(self._answered)
        self._raise_trouble()
        turn = program.chat.turns[-1]
        if turn.role != "assistant" or not turn.text:
            raise CheckFailed("the answer is empty")
        first, tokens = turn.usage.time_to_first_token or 0.0, turn.usage.tokens
        took = time.monotonic() - loaded
        return (
            f"model after {loaded - began:.1f} s, first token after {first:.2f} s, "
            f"{tokens} tokens after {took:.1f} s"
        )

    def _is_ready(self) -> bool:
        can = self.program.chat.can_send and not self.program.models.choosing
        return can or self._trouble() is not None

    def _answered(self) -> bool:
        chat = self.program.chat
        if self._trouble() is not None or not chat.turns:
            return True
        if chat.turns[-1].usage.tokens >= ENOUGH_TOKENS:
            chat.stop()
        return not chat.answering

    def _trouble(self) -> str | None:
        program = self.program
        if program.models.first_run:
            return "no model was found"
        alert = program.alerts.current
        return alert.text if alert is not None else None

    def _raise_trouble(self) -> None:
        if (trouble := self._trouble()) is not None:
            raise CheckFailed(trouble)

    def close(self) -> str:
        """Closing ends every thread, within the time that it may take."""
        program, began = self.program, time.monotonic()
        program.window.close()
        ended = program.worker.close(start.END_SECONDS, closing=program.history.close)
        took = time.monotonic() - began
        left = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
        if not ended or left:
            raise CheckFailed(f"still running after {took:.1f} s: {', '.join(left) or 'a job'}")
        return f"all threads ended after {took:.2f} s"


def _until(met: Callable[[], bool]) -> None:
    """Let the window live until something holds; that it never does is the time limit's to tell."""
    loop = QEventLoop()
    look = QTimer(interval=20)
    look.timeout.connect(lambda: loop.quit() if met() else None)
    look.start()
    loop.exec()
    look.stop()


def _colours(image: QImage) -> int:
    """How many there are in a coarse look at it."""
    small = image.scaled(QSize(160, 100))
    return len({small.pixel(x, y) for x in range(160) for y in range(100)})


def pictures() -> str:
    """Icons are drawn, and Qt reads pictures by its plugins."""
    for file in icons():
        drawn = resources.pixmap(file.stem, QColor("black"), 16).toImage()
        if _colours(drawn) < 2:
            raise CheckFailed(f"{file.name} is drawn blank")
    known = [bytes(name.data()).decode() for name in QImageReader.supportedImageFormats()]
    lacking = [name for name in FORMATS if name not in known]
    if lacking:
        raise CheckFailed(f"Qt reads no {', '.join(lacking)}; it reads {', '.join(known)}")
    if QImage(str(icons()[0])).isNull():
        raise CheckFailed(f"Qt does not read {icons()[0].name}")
    return f"icons are drawn; Qt reads {', '.join(known)}"


def languages() -> str:
    """Each has the program's words and Qt's own."""
    app = QCoreApplication.instance()
    if app is None:
        raise CheckFailed("there is no window")
    told, cancel = [], QDialogButtonBox.StandardButton.Cancel
    for language in resources.LANGUAGES:
        resources.speak(app, language)
        box = QDialogButtonBox(cancel)
        told.append(box.button(cancel).text())
        if resources.language_now() != language:
            raise CheckFailed(f"the program's words in “{language}” are not there")
    if len(set(told)) < len(told):
        raise CheckFailed(f"Qt's words are not translated: {', '.join(told)}")
    return f"{', '.join(resources.LANGUAGES)}: {', '.join(told)}"
