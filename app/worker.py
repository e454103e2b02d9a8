"""The only threads of the program, and the way back from them to the window.

A sampler reads a gauge once a second. Seven lanes, each one long-lived thread that does one job
after another: the model lane owns the engine's session, the files lane looks at models on disk, the
hub lane asks the network what there is, the download lane fetches, the history lane owns the chats'
file, the counting lane a tokenizer for what is being written, the card lane sets the graphics card
up. What they have to say goes into
one locked list, which a timer of the GUI thread empties 30 times a second: no Qt object is touched
from another thread, and a burst of tokens is one update. Knows nothing of what is shown.
"""

import contextlib
import gc
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from engine.api import Chunk, Drafting, Loaded, Message, Precision, Progress, Sampling
from engine.errors import Cancelled, EngineError, Reason
from engine.fit import Pair

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]
Task = Callable[[Report, Stopped], object]

FLUSH_MS = 33
SAMPLE_MS = 1000
log = logging.getLogger(__name__)


class SessionLike(Protocol):
    """What the model lane needs of `engine.session.Session`."""

    def load_target(
        self,
        path: Path,
        *,
        precision: Precision | None,
        pair: Pair | None,
        progress: Report,
        stopped: Stopped,
    ) -> Loaded: ...

    def choose_draft(
        self,
        choice: str | Path,
        *,
        precision: Precision | None,
        progress: Report,
        stopped: Stopped,
    ) -> None: ...

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        drafting: Drafting,
        *,
        resume: bool,
        stopped: Stopped,
    ) -> Iterator[Chunk]: ...

    def oldest(self, messages: Sequence[Message], room: int) -> int: ...

    def limit_context(self, tokens: int | None) -> None: ...

    def close(self) -> None: ...


class Job(StrEnum):
    """What a lane was asked to do."""

    SCAN = "scan"
    READ = "read"  # files that go with a question
    JUDGE = "judge"
    LOAD = "load"
    DRAFT = "draft"
    REPLY = "reply"
    ROOM = "room"  # in a full context
    FETCH = "fetch"  # the starter model
    HUB = "hub"
    DOWNLOAD = "download"
    TIDY = "tidy"
    KEEP = "keep"  # chats
    COUNT = "count"
    NOTICE = "notice"  # of third parties
    RELEASE = "release"  # a newer version
    CARD = "card"
    LIMIT = "limit"
    CLOSE = "close"


@dataclass(frozen=True)
class _Moved:
    job: Job
    progress: Progress


@dataclass(frozen=True)
class _Finished:
    job: Job
    result: object


@dataclass(frozen=True)
class _Failed:
    job: Job
    reason: Reason


@dataclass(frozen=True)
class _Sampled:
    value: object


_Event = Chunk | _Moved | _Finished | _Failed | _Sampled


class _Outbox:
    """Events on their way to the GUI thread, in the order in which they were put."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[_Event] = []

    def put(self, event: _Event) -> None:
        with self._lock:
            self._events.append(event)

    def take(self) -> list[_Event]:
        with self._lock:
            events, self._events = self._events, []
        return events


@dataclass
class _Order:
    job: Job
    task: Task
    stop: threading.Event
    done: bool = False


class _Lane:
    """One thread that does orders one after another; it starts with the first."""

    def __init__(self, name: str, outbox: _Outbox) -> None:
        self._outbox = outbox
        self._queue: SimpleQueue[_Order | None] = SimpleQueue()
        self._open: list[_Order] = []
        # A daemon, so that a load that cannot be stopped never keeps the program from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def submit(self, job: Job, task: Task) -> None:
        """Queue an order."""
        if not self._thread.is_alive():
            self._thread.start()
        order = _Order(job, task, threading.Event())
        self._open = [o for o in self._open if not o.done] + [order]
        self._queue.put(order)

    def stop(self) -> None:
        """Ask the running order and all queued ones to end."""
        for order in self._open:
            order.stop.set()

    def stop_running(self) -> None:
        """Ask the running order to end, or the one about to run."""
        running = next((order for order in self._open if not order.done), None)
        if running is not None:
            running.stop.set()

    def stop_all(self, job: Job) -> None:
        """Ask the running and queued orders of a kind to end."""
        for order in self._open:
            if order.job is job:
                order.stop.set()

    def close(self, seconds: float, last: Task | None = None, *, whole: bool = False) -> bool:
        """End the thread, after `last`, and after all that is queued if `whole`; whether it ended
        within `seconds`."""
        if not self._thread.is_alive():
            return True
        if not whole:
            self.stop()
        if last is not None:
            self._queue.put(_Order(Job.CLOSE, last, threading.Event()))
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (order := self._queue.get()) is not None:
            self._outbox.put(self._outcome(order))
            order.done = True

    def _outcome(self, order: _Order) -> _Finished | _Failed:
        """Do the order. Nothing of an exception is kept: its frames would hold tensors."""
        if order.stop.is_set():
            return _Finished(order.job, None)
        try:
            result = order.task(
                lambda progress: self._outbox.put(_Moved(order.job, progress)), order.stop.is_set
            )
        except Cancelled:
            return _Finished(order.job, None)
        except EngineError as error:
            log.warning("%s: %s", order.job, error.reason.text)
            return _Failed(order.job, error.reason)
        except Exception as error:
            log.error("%s failed\n%s", order.job, traceback.format_exc())
            return _Failed(order.job, _unforeseen(error))
        return _Finished(order.job, result)


class _Sampler:
    """A thread that reads `gauge` once a second until it is closed; what fails is left out."""

    def __init__(self, gauge: Callable[[], object], outbox: _Outbox) -> None:
        self._gauge, self._outbox = gauge, outbox
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def close(self, seconds: float) -> bool:
        """End the thread; whether it ended within `seconds`."""
        self._end.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                self._outbox.put(_Sampled(self._gauge()))
            except Exception:
                # a driver may go away and come back; the log need not fill with it
                log.debug("the gauge failed", exc_info=True)
            if self._end.wait(SAMPLE_MS / 1000):
                return


@contextlib.contextmanager
def _kept_from_the_collector() -> Iterator[None]:
    """What is there at the end, torch and a model above all, is not looked through for garbage
    again: 400,000 objects, for which every thread, the window's too, stands still for 0.2 s and
    more. What was kept from it before is looked through again: it may be a model that is gone.
    """
    gc.unfreeze()
    try:
        yield
    finally:
        gc.freeze()


def _unforeseen(error: Exception) -> Reason:
    kind = type(error).__name__
    return Reason(
        "unforeseen",
        "The program met an error it does not know: {kind}: {detail}",
        {"kind": kind, "detail": str(error)[:300]},
    )


class Worker(QObject):
    """The lanes' face in the GUI thread: methods queue jobs, signals tell how they end.

    Every job ends in exactly one `finished` (the result, None if it was stopped) or `failed`.
    `online` raises an EngineError while nothing may be asked of the network.
    """

    pieces = Signal(list)  # list[Chunk]
    moved = Signal(object, object)  # Job, Progress
    finished = Signal(object, object)  # Job, result
    failed = Signal(object, object)  # Job, Reason
    sampled = Signal(object)  # what the gauge told

    def __init__(
        self,
        session_factory: Callable[[], SessionLike],
        parent: QObject | None = None,
        online: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(parent)
        self._factory, self._online = session_factory, online
        self._session: SessionLike | None = None
        self._outbox = _Outbox()
        self._model = _Lane("model", self._outbox)
        self._files = _Lane("files", self._outbox)
        self._hub = _Lane("hub", self._outbox)
        self._downloads = _Lane("downloads", self._outbox)
        self._history = _Lane("history", self._outbox)
        self._counting = _Lane("counting", self._outbox)
        self._card = _Lane("card", self._outbox)
        self._others = (self._files, self._hub, self._downloads, self._counting, self._card)
        self._pending = 0
        self._closed = self._ended = False
        self._timer = QTimer(self)
        self._timer.setInterval(FLUSH_MS)
        self._timer.timeout.connect(self.flush)
        self._sampler: _Sampler | None = None
        self._slow = QTimer(self)
        self._slow.setInterval(SAMPLE_MS)
        self._slow.timeout.connect(self.flush)

    def sample(self, gauge: Callable[[], object]) -> None:
        """Read `gauge` once a second from now on, in a thread of its own: `sampled`."""
        if self._sampler is None and not self._closed:
            self._sampler = _Sampler(gauge, self._outbox)
            self._slow.start()

    def limit_context(self, tokens: int | None) -> None:
        """Let the target hold at most `tokens` from the next answer on; None: all it can."""
        self._submit(self._model, Job.LIMIT, lambda _, __: self._engine().limit_context(tokens))

    def load_target(
        self, path: Path, precision: Precision | None = None, pair: Pair | None = None
    ) -> None:
        """Load the model at `path`, in the precision that suits it where none is given, on graphics
        cards as it was judged in `pair`; finishes with a Loaded. A failure leaves the old one."""

        def task(report: Report, stopped: Stopped) -> Loaded:
            with _kept_from_the_collector():
                return self._engine().load_target(
                    path, precision=precision, pair=pair, progress=report, stopped=stopped
                )

        self._submit(self._model, Job.LOAD, task)

    def choose_draft(self, choice: str | Path, precision: Precision | None = None) -> None:
        """Draft with "none", "ngram" or the model at a path, in the target's precision where none
        is given; finishes with the choice."""

        def task(report: Report, stopped: Stopped) -> str | Path:
            with _kept_from_the_collector():
                self._engine().choose_draft(
                    choice, precision=precision, progress=report, stopped=stopped
                )
            return choice

        self._submit(self._model, Job.DRAFT, task)

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        drafting: Drafting,
        *,
        resume: bool = False,
    ) -> None:
        """Answer the conversation, or go on with the answer that it ends with: `pieces`, then
        finished."""

        def task(_: Report, stopped: Stopped) -> None:
            for chunk in self._engine().reply(
                messages, sampling, drafting, resume=resume, stopped=stopped
            ):
                self._outbox.put(chunk)

        self._submit(self._model, Job.REPLY, task)

    def make_room(self, task: Callable[[SessionLike, Stopped], object]) -> None:
        """Do `task` with the session in the model lane: finishes as ROOM."""
        self._submit(self._model, Job.ROOM, lambda _, stopped: task(self._engine(), stopped))

    def look(self, job: Job, task: Task) -> None:
        """Do `task` in the files lane."""
        self._submit(self._files, job, task)

    def ask(self, task: Task, job: Job = Job.HUB) -> None:
        """Do `task` in the hub lane."""
        self._submit(self._hub, job, task)

    def fetch(self, task: Task) -> None:
        """Get the starter model: do `task` in the download lane, if that may be asked for."""

        def allowed(report: Report, stopped: Stopped) -> object:
            self._online()
            return task(report, stopped)

        self._submit(self._downloads, Job.FETCH, allowed)

    def download(self, task: Task) -> None:
        """Do `task` in the download lane."""
        self._submit(self._downloads, Job.DOWNLOAD, task)

    def tidy(self, task: Task) -> None:
        """Do `task` while nothing is downloaded."""
        self._submit(self._downloads, Job.TIDY, task)

    def keep(self, task: Task) -> None:
        """Do `task` in the history lane, which is never stopped: what it writes is the user's."""
        self._submit(self._history, Job.KEEP, task)

    def count(self, task: Task) -> None:
        """Do `task` in the counting lane, in place of what waits there."""
        self._counting.stop()
        self._submit(self._counting, Job.COUNT, task)

    def set_up_card(self, task: Task) -> None:
        """Do `task` in the card lane."""
        self._submit(self._card, Job.CARD, task)

    def stop_setting_up(self) -> None:
        """End what the card lane does now."""
        self._card.stop_running()

    def stop(self) -> None:
        """End what the model lane does, and the answer that waits for it.

        A model or draft that was chosen meanwhile is still loaded.
        """
        self._model.stop_running()
        self.stop_reply()

    def stop_reply(self) -> None:
        """End the answer, between two rounds or two chunks of the prompt."""
        self._model.stop_all(Job.REPLY)

    def stop_making_room(self) -> None:
        """End what was asked with `make_room`."""
        self._model.stop_all(Job.ROOM)

    def stop_looking(self) -> None:
        """End what the files lane does."""
        self._files.stop()

    def stop_fetching(self) -> None:
        """End the starter model's download."""
        self._downloads.stop_all(Job.FETCH)

    def stop_downloading(self) -> None:
        """End the other download."""
        self._downloads.stop_all(Job.DOWNLOAD)

    def close(self, seconds: float = 1.8, closing: Task | None = None) -> bool:
        """Stop everything and end the threads, the history lane after `closing`; whether all of
        them ended in time."""
        deadline = time.monotonic() + seconds
        self._closed = True
        self._timer.stop()
        self._slow.stop()
        for lane in (self._model, *self._others):
            lane.stop()
        if self._sampler is not None:
            self._sampler.close(0.2)
        closed = self._model.close(max(0.1, deadline - time.monotonic()), last=self._close_session)
        for lane in self._others:
            closed &= lane.close(max(0.1, deadline - time.monotonic()))
        self.flush()
        # Last: what is known of an answer that was just stopped is written too.
        closed &= self._history.close(max(0.5, deadline - time.monotonic()), closing, whole=True)
        self._ended = True
        self._timer.stop()
        return closed

    def flush(self) -> None:
        """Hand out what the lanes have said since the last time; runs of chunks as one list."""
        chunks: list[Chunk] = []
        for event in self._outbox.take():
            if isinstance(event, Chunk):
                chunks.append(event)
                continue
            if chunks:
                self.pieces.emit(chunks)
                chunks = []
            self._tell(event)
        if chunks:
            self.pieces.emit(chunks)
        if self._pending == 0:
            self._timer.stop()

    def _tell(self, event: _Moved | _Finished | _Failed | _Sampled) -> None:
        match event:
            case _Sampled(value):
                self.sampled.emit(value)
            case _Moved(job, progress):
                self.moved.emit(job, progress)
            case _Finished(Job.CLOSE, _) | _Failed(Job.CLOSE, _):
                pass
            case _Finished(job, result):
                self._pending -= 1
                self.finished.emit(job, result)
            case _Failed(job, reason):
                self._pending -= 1
                self.failed.emit(job, reason)

    def _submit(self, lane: _Lane, job: Job, task: Task) -> None:
        if self._ended or (self._closed and lane is not self._history):
            return
        self._pending += 1
        lane.submit(job, task)
        self._timer.start()

    def _engine(self) -> SessionLike:
        """The session, made in the model lane by its first job: torch is imported there."""
        if self._session is None:
            self._session = self._factory()
        return self._session

    def _close_session(self, _: Report, __: Stopped) -> None:
        if self._session is not None:
            self._session.close()
