"""The only threads of the program: lanes, which do one job after another, and a sampler.

What they have to say goes into one locked list; see app/worker.py for the way back to the window.
Imports no Qt, so that none of it can be touched from another thread.
"""

import logging
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from queue import SimpleQueue

from engine.api import Chunk, Progress
from engine.errors import Cancelled, EngineError, Reason

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]
Task = Callable[[Report, Stopped], object]

SAMPLE_MS = 1000
log = logging.getLogger(__name__)


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
    COMPARE = "compare"
    PROMPTS = "prompts"  # to compare with
    EXPORT = "export"  # of what came out
    CLOSE = "close"


@dataclass(frozen=True)
class Moved:
    job: Job
    progress: Progress


@dataclass(frozen=True)
class Finished:
    job: Job
    result: object


@dataclass(frozen=True)
class Failed:
    job: Job
    reason: Reason


@dataclass(frozen=True)
class Sampled:
    value: object


Event = Chunk | Moved | Finished | Failed | Sampled


class Outbox:
    """Events on their way to the GUI thread, in the order in which they were put."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []

    def put(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def take(self) -> list[Event]:
        with self._lock:
            events, self._events = self._events, []
        return events


@dataclass
class _Order:
    job: Job
    task: Task
    stop: threading.Event
    done: bool = False


class Lane:
    """One thread that does orders one after another; it starts with the first."""

    def __init__(self, name: str, outbox: Outbox) -> None:
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

    def _outcome(self, order: _Order) -> Finished | Failed:
        """Do the order. Nothing of an exception is kept: its frames would hold tensors."""
        if order.stop.is_set():
            return Finished(order.job, None)
        try:
            result = order.task(
                lambda progress: self._outbox.put(Moved(order.job, progress)), order.stop.is_set
            )
        except Cancelled:
            return Finished(order.job, None)
        except EngineError as error:
            log.warning("%s: %s", order.job, error.reason.text)
            return Failed(order.job, error.reason)
        except Exception as error:
            log.error("%s failed\n%s", order.job, traceback.format_exc())
            return Failed(order.job, _unforeseen(error))
        return Finished(order.job, result)


class Sampler:
    """A thread that reads `gauge` once a second until it is closed; what fails is left out."""

    def __init__(self, gauge: Callable[[], object], outbox: Outbox) -> None:
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
                self._outbox.put(Sampled(self._gauge()))
            except Exception:
                # a driver may go away and come back; the log need not fill with it
                log.debug("the gauge failed", exc_info=True)
            if self._end.wait(SAMPLE_MS / 1000):
                return


def _unforeseen(error: Exception) -> Reason:
    kind = type(error).__name__
    return Reason(
        "unforeseen",
        "The program met an error it does not know: {kind}: {detail}",
        {"kind": kind, "detail": str(error)[:300]},
    )
