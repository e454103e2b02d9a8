"""The chats on disk, as the window asks for them: every call returns at once, answers are signals.

Knows the order of questions and answers, not how a chat is kept: the store is made and used in the
history lane only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from PySide6.QtCore import QObject, Signal

from app.chats.conversation import ChatRecord, Entry, Hit
from app.worker import Job, Worker
from engine.errors import Reason

Form = Literal["markdown", "json"]


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

    def remove(self, chat: str) -> None: ...

    def restore(self, chat: str) -> None: ...

    def purge(self) -> None: ...

    def export(self, chats: Sequence[str], path: Path, form: Form) -> int: ...

    def take_in(self, path: Path) -> list[str]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Told:
    """What a job of this lane has to say: a signal and its arguments."""

    signal: str
    values: tuple[object, ...]


class History(QObject):
    """Questions to the store. `listed` follows every change of the list."""

    listed = Signal(list)  # list[ChatRecord]
    opened = Signal(object, list)  # ChatRecord, list[Entry]
    found = Signal(str, list)  # what was searched for, list[Hit]
    exported = Signal(object, int)  # Path, how many chats
    taken_in = Signal(list)  # the ids of chats that were imported
    noticed = Signal(object)  # Reason
    failed = Signal(object)  # Reason

    def __init__(
        self, worker: Worker, factory: Callable[[], StoreLike], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._worker, self._factory = worker, factory
        self._store: StoreLike | None = None
        self._told = 0  # of what befell the store
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)

    def look(self) -> None:
        """All chats: `listed`."""
        self._keep(self._listed)

    def open(self, chat: ChatRecord) -> None:
        """The messages of a chat: `opened`."""
        self._keep(lambda store: _Told("opened", (chat, store.entries(chat.id))))

    def search(self, text: str) -> None:
        """Where `text` stands: `found`."""
        self._keep(lambda store: _Told("found", (text, store.search(text))))

    def put_chat(self, chat: ChatRecord) -> None:
        """Write what a list shows of a chat."""
        self._change(lambda store: store.put_chat(chat))

    def put(self, entry: Entry) -> None:
        """Write a message, or what has become of it."""
        self._keep(lambda store: store.put(entry))

    def choose(self, entry: str) -> None:
        """Show this version of a message."""
        self._keep(lambda store: store.choose(entry))

    def drop(self, entry: str) -> None:
        """Forget a message and all that follows it."""
        self._keep(lambda store: store.drop(entry))

    def remove(self, chat: str) -> None:
        """Take a chat out of the list; until `purge` it can be restored."""
        self._change(lambda store: store.remove(chat))

    def restore(self, chat: str) -> None:
        """Undo `remove`."""
        self._change(lambda store: store.restore(chat))

    def purge(self) -> None:
        """Wipe what was removed."""
        self._keep(lambda store: store.purge())

    def export(self, chats: Sequence[str], path: Path, form: Form) -> None:
        """Write chats into a file: `exported`."""
        self._keep(lambda store: _Told("exported", (path, store.export(chats, path, form))))

    def take_in(self, path: Path) -> None:
        """Read the chats of a file: `taken_in`, then `listed`."""
        self._keep(lambda store: _Told("taken_in", (store.take_in(path),)))
        self.look()

    def close(self, *_: object) -> None:
        """Called in the history lane, as its last job."""
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
        self._worker.keep(lambda _, __: work(self._open()))

    def _open(self) -> StoreLike:
        """The store, made in its lane by the first question."""
        if self._store is None:
            self._store = self._factory()
        return self._store

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.KEEP:
            return
        self._tell_notices()
        if isinstance(result, _Told):
            getattr(self, result.signal).emit(*result.values)

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.KEEP:
            self._tell_notices()
            self.failed.emit(reason)

    def _tell_notices(self) -> None:
        """A file may be mended when it is opened, and at any time later."""
        new = self._store.notices[self._told :] if self._store is not None else ()
        self._told += len(new)
        for notice in new:
            self.noticed.emit(notice)
