"""The starter model: what the first-run screen offers, and its download.

Fetches nothing itself: the worker's download lane does. Knows no widget.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.lanes import Job
from app.viewmodels import words
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Property
from app.viewmodels.shelf import Offer, ShelfLike
from app.worker import Worker
from engine.api import Progress
from engine.errors import Reason


@dataclass(frozen=True)
class Fetching:
    """A running download: a sentence on amount, rate and time left, and the share done."""

    text: str
    share: float


class Starter(QObject):
    """`fetched` once the model is there."""

    fetching_changed = Signal(object)
    fetched = Signal()

    fetching = Property[Fetching | None](None)

    def __init__(self, worker: Worker, shelf: ShelfLike, alerts: Alerts, parent: QObject) -> None:
        super().__init__(parent)
        self._worker, self._shelf, self._alerts = worker, shelf, alerts
        self._began = 0.0
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)

    @property
    def offer(self) -> Offer:
        """What can be got."""
        return self._shelf.offer

    def get(self) -> None:
        """Fetch the model."""
        if self.fetching is None:
            self._alerts.dismiss()
            self._began = time.monotonic()
            self.fetching = Fetching(self.tr("Starting the download"), 0.0)
            self._worker.fetch(self._shelf.fetch)

    def cancel(self) -> None:
        """End the download."""
        self._worker.stop_fetching()

    def _moved(self, job: Job, progress: Progress) -> None:
        if job is Job.FETCH and self.fetching is not None:
            rate = progress.done / max(time.monotonic() - self._began, 0.001)
            share = progress.done / progress.total if progress.total > 0 else 0.0
            self.fetching = Fetching(words.coming(progress, rate), share)

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.FETCH:
            self.fetching = None
            if isinstance(result, Path):
                self.fetched.emit()

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.FETCH:
            self.fetching = None
            self._alerts.show_reason(reason)
