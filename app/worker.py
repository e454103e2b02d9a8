"""The way from the window to the program's threads, and back.

Seven lanes: the model lane owns the engine's session, the files lane looks at models on disk, the
hub lane asks the network what there is, the download lane fetches, the history lane owns the chats'
file, the counting lane a tokenizer for what is being written, the card lane sets the graphics card
up. A timer of the GUI thread hands out what they have to say, 30 times a second: no Qt object is
touched from another thread, and a burst of tokens is one update. Knows nothing of what is shown.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app.lanes import (
    SAMPLE_MS,
    Event,
    Failed,
    Finished,
    Job,
    Lane,
    Moved,
    Outbox,
    Report,
    Sampled,
    Sampler,
    Stopped,
    Task,
)
from engine.api import Chunk, Drafting, Loaded, Message, Precision, Sampling
from engine.bench import asking
from engine.bench.asking import Asked, Heat
from engine.bench.runs import Run
from engine.fit import Pair

FLUSH_MS = 33


class SessionLike(Asked, Protocol):
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

    def oldest(self, messages: Sequence[Message], room: int) -> int: ...

    def limit_context(self, tokens: int | None) -> None: ...

    def close(self) -> None: ...


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
        self._outbox = Outbox()
        self._model = Lane("model", self._outbox)
        self._files = Lane("files", self._outbox)
        self._hub = Lane("hub", self._outbox)
        self._downloads = Lane("downloads", self._outbox)
        self._history = Lane("history", self._outbox)
        self._counting = Lane("counting", self._outbox)
        self._card = Lane("card", self._outbox)
        self._others = (self._files, self._hub, self._downloads, self._counting, self._card)
        self._pending = 0
        self._closed = self._ended = False
        self._timer = QTimer(self)
        self._timer.setInterval(FLUSH_MS)
        self._timer.timeout.connect(self.flush)
        self._sampler: Sampler | None = None
        self._slow = QTimer(self)
        self._slow.setInterval(SAMPLE_MS)
        self._slow.timeout.connect(self.flush)

    def sample(self, gauge: Callable[[], object]) -> None:
        """Read `gauge` once a second from now on, in a thread of its own: `sampled`."""
        if self._sampler is None and not self._closed:
            self._sampler = Sampler(gauge, self._outbox)
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

    def choose_draft(
        self, choice: str | Path, precision: Precision | None = None, model: Path | None = None
    ) -> None:
        """Draft with one of `measured.WITHOUT_MODEL` or the model at a path; "auto" holds `model`
        too. In the target's precision where none is given. Finishes with the choice."""

        def task(report: Report, stopped: Stopped) -> str | Path:
            with _kept_from_the_collector():
                self._engine().choose_draft(
                    choice, model=model, precision=precision, progress=report, stopped=stopped
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
        chat: str | None = None,
    ) -> None:
        """Answer the conversation, or go on with the answer that it ends with: `pieces`, then
        finished. `chat` is the id of the chat that it is kept as."""

        def task(_: Report, stopped: Stopped) -> None:
            for chunk in self._engine().reply(
                messages, sampling, drafting, resume=resume, chat=chat, stopped=stopped
            ):
                self._outbox.put(chunk)

        self._submit(self._model, Job.REPLY, task)

    def compare(self, heat: Heat) -> None:
        """Measure a heat on the running target, whose draft is then another: finishes with a list
        of runs."""

        def task(report: Report, stopped: Stopped) -> list[Run]:
            with _kept_from_the_collector():
                return asking.run(self._engine(), heat, report, stopped)

        self._submit(self._model, Job.COMPARE, task)

    def stop_comparing(self) -> None:
        """End the heat, between two rounds or two chunks of a prompt."""
        self._model.stop_all(Job.COMPARE)

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

    def _tell(self, event: Event) -> None:
        match event:
            case Sampled(value):
                self.sampled.emit(value)
            case Moved(job, progress):
                self.moved.emit(job, progress)
            case Finished(Job.CLOSE, _) | Failed(Job.CLOSE, _):
                pass
            case Finished(job, result):
                self._pending -= 1
                self.finished.emit(job, result)
            case Failed(job, reason):
                self._pending -= 1
                self.failed.emit(job, reason)

    def _submit(self, lane: Lane, job: Job, task: Task) -> None:
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
