"""How many tokens a text has that is being written, for the model that runs.

Waits until the writing pauses, and asks a tokenizer that is not the engine's. Knows no widget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app import paths
from app.lanes import Job, Report, Stopped
from app.viewmodels.binding import Property
from app.viewmodels.models import Models
from app.worker import Worker
from engine.api import Loaded
from engine.counting import Count, Counter, tokenizer_file

PAUSE_MS = 150


class CounterLike(Protocol):
    """What is needed of `engine.counting.Counter`; called in the counting lane only."""

    def count(self, text: str, stopped: Callable[[], bool]) -> Count: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Counted:
    number: int
    count: Count


def counter_for(loaded: Loaded) -> CounterLike | None:
    """The counter of a model that runs; None where its tokenizer is not in a file."""
    file = tokenizer_file(loaded.info.path, loaded.vocabulary, paths.cache_folder())
    return Counter(file) if file.is_file() else None


class Counting(QObject):
    """The tokens of the text last given to `count`; `about` says that it was too long to count
    all of it. None: not counted yet, or there is no model to count for."""

    tokens_changed = Signal(object)
    about_changed = Signal(object)

    tokens = Property[int | None](None)
    about = Property[bool](False)

    def __init__(
        self,
        worker: Worker,
        models: Models,
        opening: Callable[[Loaded], CounterLike | None] = counter_for,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker, self._opening = worker, opening
        self._counter: CounterLike | None = None
        self._retired: list[CounterLike] = []
        self._text = ""
        self._number = 0
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE_MS)
        self._pause.timeout.connect(self._ask)
        worker.finished.connect(self._finished)
        models.loaded_changed.connect(self._follow)
        self._follow(models.loaded)

    def count(self, text: str) -> None:
        """Count `text` when no other has been given for a moment."""
        self._text = text
        self._number += 1
        self._pause.stop()
        if text:
            self.tokens = None
            self._pause.start()
        else:
            self.about = False
            self.tokens = 0

    def _follow(self, loaded: Loaded | None) -> None:
        """Another model counts otherwise."""
        if self._counter is not None:
            self._retired.append(self._counter)
            self._worker.count(lambda _, __: self._close_retired())
        self._counter = self._opening(loaded) if loaded is not None else None
        self.count(self._text)

    def _ask(self) -> None:
        counter, text, number = self._counter, self._text, self._number
        if counter is None:
            return

        def task(_: Report, stopped: Stopped) -> _Counted:
            self._close_retired()
            return _Counted(number, counter.count(text, stopped))

        self._worker.count(task)

    def _close_retired(self) -> None:
        """Called in the counting lane, by the next job there: one that waits may be dropped."""
        while self._retired:
            self._retired.pop().close()

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.COUNT and isinstance(result, _Counted) and result.number == self._number:
            self.about = result.count.about
            self.tokens = result.count.tokens
