"""The chats on disk, as the window asks for them: every call returns at once, answers are signals.

Knows the order of questions and answers, not how a chat is kept: the store is made and used in the
history lane only.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats.conversation import ChatRecord, Entry, Hit, Unsent
from app.lanes import Job
from app.worker import Worker
from engine.errors import EngineError, Reason

Form = Literal["markdown", "json"]
AGAIN_MS = 5_000  # until what could not be written is tried again
log = logging.getLogger(__name__)


class StoreLike(Protocol):
    """What is needed of `app.chats.store.Store`. Every method may raise an EngineError."""

    @property
    def notices(self) -> Sequence[Reason]: ...

    def chats(self) -> list[ChatRecord]: ...

    def entries(self, chat: str) -> list[Entry]: ...

    def search(self, text: str) -> list[Hit]: ...

    def put_chat(self, chat: ChatRecord) -> None: ...

    def put(self, entry: Entry) -> None: ...

    def choose(self, entry: str) -> None: ...

    def drop(self, entry: str) -> None: ...

    def first_questions(self, count: int) -> list[str]: ...

    def unsent(self) -> dict[str, Unsent]: ...

    def put_unsent(self, unsent: Mapping[str, Unsent]) -> None: ...

    def remove(self, chat: str) -> None: ...

    def restore(self, chat: str) -> None: ...

    def purge(self) -> None: ...

    def forget_learned(self) -> None: ...

    def export(self, chats: Sequence[str], path: Path, form: Form) -> int: ...

    def take_in(self, path: Path) -> list[str]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Told:
    """What a job of this lane has to say: a signal and its arguments."""

    signal: str
    values: tuple[object, ...]


@dataclass(frozen=True)
class _Write:
    """Something to be written, and the message that it writes, if it does."""

    work: Callable[[StoreLike], None]
    entry: Entry | None = None


class History(QObject):
    """Questions to the store. `listed` follows every change of the list.

    What could not be written, since the disk is full or the file locked, waits in its order until
    it can: nothing that follows is written before it, and a chat is opened with it.
    """

    listed = Signal(list)  # list[ChatRecord]
    opened = Signal(object, list)  # ChatRecord, list[Entry]
    found = Signal(str, list)  # what was searched for, list[Hit]
    exported = Signal(object, int)  # Path, how many chats
    forgot = Signal()
    taken_in = Signal(list)  # the ids of chats that were imported
    questions = Signal(list)  # what chats began with
    unsent = Signal(dict)  # Unsent by chat, "" of the chat that is none yet
    noticed = Signal(object)  # Reason
    failed = Signal(object)  # Reason
    unkept = Signal(object)  # Reason: nothing is kept for now; said once
    kept = Signal(object)  # that Reason: everything is kept again

    def __init__(
        self, worker: Worker, factory: Callable[[], StoreLike], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._worker, self._factory = worker, factory
        self._store: StoreLike | None = None
        self._told = 0  # of what befell the store
        self._unwritten: dict[tuple[str, str], _Write] = {}  # of the history lane
        self._trouble: Reason | None = None  # why nothing is kept
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._again.timeout.connect(self.write)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)

    def look(self) -> None:
        """All chats: `listed`."""
        self._keep(self._listed)

    def open(self, chat: ChatRecord) -> None:
        """The messages of a chat: `opened`."""
        self._keep(lambda store: _Told("opened", (chat, self._entries(store, chat.id))))

    def look_for_unsent(self) -> None:
        """What was being written when the program ended: `unsent`."""
        self._keep(lambda store: _Told("unsent", (store.unsent(),)))

    def look_for_questions(self, count: int) -> None:
        """What the last chats began with: `questions`."""
        self._keep(lambda store: _Told("questions", (store.first_questions(count),)))

    def put_unsent(self, unsent: Mapping[str, Unsent]) -> None:
        """Write all that is being written."""
        self._write("unsent", "", lambda store: store.put_unsent(unsent))

    def search(self, text: str) -> None:
        """Where `text` stands: `found`."""
        self._keep(lambda store: _Told("found", (text, store.search(text))))

    def put_chat(self, chat: ChatRecord) -> None:
        """Write what a list shows of a chat."""
        self._write("chat", chat.id, lambda store: store.put_chat(chat))
        self.look()

    def put(self, entry: Entry) -> None:
        """Write a message, or what has become of it."""
        self._write("entry", entry.id, lambda store: store.put(entry), entry)

    def choose(self, entry: str) -> None:
        """Show this version of a message."""
        self._write("choice", entry, lambda store: store.choose(entry))

    def drop(self, entry: str) -> None:
        """Forget a message and all that follows it."""
        self._write("drop", entry, lambda store: store.drop(entry))

    def write(self) -> None:
        """Write what waits."""
        self._worker.keep(lambda _, __: self._write_all())

    def remove(self, chat: str) -> None:
        """Take a chat out of the list; until `purge` it can be restored."""
        self._change(lambda store: store.remove(chat))

    def restore(self, chat: str) -> None:
        """Undo `remove`."""
        self._change(lambda store: store.restore(chat))

    def purge(self) -> None:
        """Wipe what was removed."""
        self._keep(lambda store: store.purge())

    def forget_learned(self) -> None:
        """Forget what drafters learned: `forgot`."""

        def task(store: StoreLike) -> _Told:
            store.forget_learned()
            return _Told("forgot", ())

        self._keep(task)

    def export(self, chats: Sequence[str], path: Path, form: Form) -> None:
        """Write chats into a file: `exported`."""
        self._keep(lambda store: _Told("exported", (path, store.export(chats, path, form))))

    def take_in(self, path: Path) -> None:
        """Read the chats of a file: `taken_in`, then `listed`."""
        self._keep(lambda store: _Told("taken_in", (store.take_in(path),)))
        self.look()

    def close(self, *_: object) -> None:
        """Called in the history lane, as its last job."""
        self._write_all()
        if self._store is not None:
            self._store.close()

    def _listed(self, store: StoreLike) -> _Told:
        return _Told("listed", (store.chats(),))

    def _change(self, work: Callable[[StoreLike], None]) -> None:
        def task(store: StoreLike) -> _Told:
            work(store)
            return self._listed(store)

        self._keep(task)

    def _keep(self, work: Callable[[StoreLike], object]) -> None:
        def task(*_: object) -> object:
            try:
                store = self._open()
            except EngineError as error:
                return _turned(error.reason)
            return work(store)

        self._worker.keep(task)

    def _write(
        self,
        kind: str,
        name: str,
        work: Callable[[StoreLike], None],
        entry: Entry | None = None,
    ) -> None:
        def task(*_: object) -> _Told:
            if kind == "choice":  # the last one of several counts
                self._unwritten.pop((kind, name), None)
            self._unwritten[kind, name] = _Write(work, entry)
            return self._write_all()

        self._worker.keep(task)

    def _write_all(self) -> _Told:
        """Write what waits, in its order, up to what cannot be written now. What belongs to a chat
        that is gone is not written at all."""
        try:
            store = self._open()
            while self._unwritten:
                _write_next(store, self._unwritten)
        except EngineError as error:
            return _turned(error.reason)
        return _turned(None)

    def _entries(self, store: StoreLike, chat: str) -> list[Entry]:
        """The messages of a chat, those among them that wait to be written."""
        held = {entry.id: entry for entry in store.entries(chat)}
        waiting = (write.entry for write in self._unwritten.values() if write.entry is not None)
        held.update((entry.id, entry) for entry in waiting if entry.chat == chat)
        return list(held.values())

    def _open(self) -> StoreLike:
        """The store, made in its lane by the first question."""
        if self._store is None:
            self._store = self._factory()
        return self._store

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.KEEP:
            return
        self._tell_notices()
        match result:
            case _Told("turned", (None | Reason() as trouble,)):
                self._turn(trouble)
            case _Told(signal, values):
                getattr(self, signal).emit(*values)

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.KEEP:
            self._tell_notices()
            self.failed.emit(reason)

    def _turn(self, trouble: Reason | None) -> None:
        """Writing has failed or gone well: what is new about that is told."""
        before, self._trouble = self._trouble, trouble
        if trouble is not None:
            self._again.start()
        if before is not None and (trouble is None or trouble.code != before.code):
            self.kept.emit(before)
            self.look()
        if trouble is not None and (before is None or trouble.code != before.code):
            self.unkept.emit(trouble)

    def _tell_notices(self) -> None:
        """A file may be mended when it is opened, and at any time later."""
        new = self._store.notices[self._told :] if self._store is not None else ()
        self._told += len(new)
        for notice in new:
            self.noticed.emit(notice)


def _turned(trouble: Reason | None) -> _Told:
    if trouble is not None:
        log.warning("%s", trouble.text)
    return _Told("turned", (trouble,))


def _write_next(store: StoreLike, waiting: dict[tuple[str, str], _Write]) -> None:
    """The first that waits; where that is not possible now, it stays the first."""
    key = next(iter(waiting))
    write = waiting.pop(key)
    try:
        write.work(store)
    except EngineError as error:
        if error.reason.code != "chat_gone":
            rest = dict(waiting)
            waiting.clear()
            waiting.update({key: write, **rest})
            raise
