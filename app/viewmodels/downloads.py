"""Models on their way from the hub: one comes at a time, the others wait, pause or have failed.

Decides what each line of the list says and what can be done with it. Fetches nothing itself: the
worker's download lane does. Knows no widget.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import paths, places, resources
from app.lanes import Job, Report, Stopped
from app.places import Wanted
from app.settings import Settings
from app.viewmodels import words
from app.viewmodels.binding import Property
from app.worker import Worker
from engine.api import Progress
from engine.errors import Cancelled, Reason
from engine.library import download
from engine.library.hub import Access
from engine.library.plan import Plan

LOOK = 0.25  # seconds; numbers that change faster cannot be read
LATELY = 10.0  # seconds over which the rate is taken
# With these, a token may be what is missing.
LOCKED = ("gated", "refused", "no_repository")


class Phase(StrEnum):
    """How far a download is."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    FINISHED = "finished"


@dataclass(frozen=True)
class Download:
    """A line of the list. `text`: amount, rate and time left, or what went wrong; `locked`: a
    token may help."""

    key: str
    name: str
    phase: Phase
    text: str
    share: float = 0.0
    locked: bool = False


@dataclass
class _Errand:
    """What a line stands for. `wanted`: what comes into which folder, None of a repair, which finds
    that out. `thrown`: nothing of it is to be kept."""

    name: str
    run: Callable[[Report, Stopped, Access], Path]
    wanted: Wanted | None
    thrown: bool = False


class Downloads(QObject):
    """The list, and what is done with its lines; `fetched` has the model's path."""

    items_changed = Signal(object)
    fetched = Signal(object)  # Path

    items = Property[tuple[Download, ...]](())

    def __init__(
        self,
        worker: Worker,
        settings: Callable[[], Settings],
        access: Callable[[], Access],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._worker, self._settings, self._access = worker, settings, access
        self._errands: dict[str, _Errand] = {}
        self._queue: list[str] = []
        self._current = ""
        self._pace = Pace()
        self._shown = 0.0
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)

    def get(self, wanted: Wanted) -> None:
        """Fetch a model; while another one comes, afterwards."""
        if wanted.key not in self._errands or not self.is_busy(wanted.key):
            self._errands[wanted.key] = self._errand(wanted)
            self.resume(wanted.key)

    def repair(self, path: Path) -> None:
        """Fetch again what is wrong of a model, or what is missing still."""
        key, settings = str(path), self._settings()
        errands = self._errands.items()
        known = next((k for k, e in errands if e.wanted and path == e.wanted.path), None)
        if known is not None:
            self.resume(known)
        elif not self.is_busy(key):
            self._errands[key] = _Errand(
                self.tr("{name} (repair)").format(name=path.name),
                lambda report, stopped, access: download.repair(
                    path, places.root_of(path, settings), report, stopped, access
                ),
                None,
            )
            self.resume(key)

    def resume(self, key: str) -> None:
        """Go on with what was paused or has failed."""
        if self.is_busy(key):
            return
        self._queue.append(key)
        self._put(Download(key, self._errands[key].name, Phase.WAITING, self.tr("Waiting")))
        self._next()

    def pause(self, key: str) -> None:
        """Stop for now; what has come is kept."""
        if key == self._current:
            self._worker.stop_downloading()
            if self.running is not None:
                self._put(replace(self.running, text=self.tr("Stopping")))
        elif key in self._queue:
            self._queue.remove(key)
            self._rest(key)

    def pause_all(self) -> None:
        """Stop everything for now."""
        for key in (*self._queue, self._current):
            self.pause(key)

    def throw_away(self, key: str) -> None:
        """Stop and delete what has come of it; files that were there before stay."""
        errand = self._errands[key]
        errand.thrown = True
        if key == self._current:
            self._worker.stop_downloading()
            return
        self._drop(key)
        wanted = errand.wanted
        if wanted is not None:
            # In the same lane, so that it is over before the same is fetched anew.
            self._worker.tidy(lambda _, __: wanted.forget())

    def show_begun(self, found: list[Wanted]) -> None:
        """Add what was begun earlier; what has ended here leaves the list."""
        for item in self.items:
            if item.phase is Phase.FINISHED:
                self._drop(item.key)
        for wanted in found:
            if wanted.key not in self._errands and str(wanted.path) not in self._errands:
                self._errands[wanted.key] = self._errand(wanted)
                self._rest(wanted.key)

    def is_busy(self, key: str) -> bool:
        """Whether it comes or waits."""
        return key == self._current or key in self._queue

    def is_coming(self, plan: Plan) -> bool:
        """Whether a model comes or waits, into whichever folder."""
        same = (k for k, e in self._errands.items() if e.wanted and e.wanted.plan.key == plan.key)
        return any(self.is_busy(key) for key in same)

    @property
    def running(self) -> Download | None:
        """The one that comes."""
        return next((item for item in self.items if item.phase is Phase.RUNNING), None)

    def _errand(self, wanted: Wanted) -> _Errand:
        name = name_of(wanted.plan)
        if wanted.folder != paths.model_folder():
            name = self.tr("{name}, in {folder}").format(name=name, folder=wanted.folder)
        return _Errand(name, wanted.fetch, wanted)

    def _next(self) -> None:
        if self._current or not self._queue:
            return
        key = self._current = self._queue.pop(0)
        errand, access = self._errands[key], self._access

        def task(report: Report, stopped: Stopped) -> Path:
            try:
                return errand.run(report, stopped, access())
            except Cancelled:
                if errand.thrown and errand.wanted is not None:
                    errand.wanted.forget()
                raise

        self._pace = Pace()
        self._put(Download(key, errand.name, Phase.RUNNING, self.tr("Starting the download")))
        self._worker.download(task)

    def _moved(self, job: Job, progress: Progress) -> None:
        now = time.monotonic()
        if job is not Job.DOWNLOAD or not self._current or progress.total <= 0:
            return
        running = self.running
        share = progress.done / progress.total
        if progress.stage == "wait":
            share, text = running.share if running is not None else 0.0, words.waiting(progress)
        elif progress.stage == "check":
            said = self.tr("Checking what is here, {share}")
            text = said.format(share=words.percent(share))
        else:
            self._pace.note(now, progress.done)
            text = words.coming(progress, self._pace.rate)
        if now - self._shown >= LOOK:
            self._shown = now
            name = self._errands[self._current].name
            self._put(Download(self._current, name, Phase.RUNNING, text, share))

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.DOWNLOAD:
            return
        key, self._current = self._current, ""
        errand = self._errands[key]
        if isinstance(result, Path):
            self._put(Download(key, errand.name, Phase.FINISHED, self.tr("In the library"), 1.0))
            self.fetched.emit(result)
        elif errand.thrown:
            self._drop(key)
        else:
            self._rest(key)
        self._next()

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is not Job.DOWNLOAD:
            return
        key, self._current = self._current, ""
        if self._errands[key].thrown:
            self.throw_away(key)
            self._next()
            return
        share = next((item.share for item in self.items if item.key == key), 0.0)
        name, locked = self._errands[key].name, reason.code in LOCKED
        self._put(Download(key, name, Phase.FAILED, resources.translate(reason), share, locked))
        self._next()

    def _rest(self, key: str) -> None:
        """It is paused, with what is there of it."""
        errand = self._errands[key]
        text, share = self.tr("Paused"), 0.0
        if errand.wanted is not None and errand.wanted.plan.size:
            come, size = errand.wanted.come, errand.wanted.plan.size
            share = come / size
            amount = words.amount(Progress("download", come, size))
            text = self.tr("Paused at {amount}").format(amount=amount)
        self._put(Download(key, errand.name, Phase.PAUSED, text, share))

    def _put(self, item: Download) -> None:
        keys = [held.key for held in self.items]
        if item.key in keys:
            self.items = tuple(item if held.key == item.key else held for held in self.items)
        else:
            self.items = (*self.items, item)

    def _drop(self, key: str) -> None:
        self._errands.pop(key, None)
        if key in self._queue:
            self._queue.remove(key)
        self.items = tuple(item for item in self.items if item.key != key)


class Pace:
    """Bytes a second, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, done: int) -> None:
        self._seen.append((now, done))
        while now - self._seen[0][0] > LATELY:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """0 while it cannot be told."""
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        return max(0.0, (last - first) / (now - began)) if now - began > 0.5 else 0.0


def name_of(wanted: Plan) -> str:
    """The repository, and of a collection the file."""
    first = wanted.files[0].name if wanted.files else ""
    return f"{wanted.repository}, {first}" if first.lower().endswith(".gguf") else wanted.repository
