"""Stand-ins for the chat list's tests: chats in memory, a lane that runs when told, a chat."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from PySide6.QtCore import QObject, Signal

from app.chats.conversation import ChatRecord, Hit, Unsent
from app.lanes import Job
from app.viewmodels.binding import Property
from app.viewmodels.conversations import Conversations
from app.viewmodels.history import History
from engine.errors import EngineError

NOW = datetime(2026, 11, 18, 12, 0).timestamp()
DRAWN = (
    # title, days ago, pinned: as in look.md's pictures
    ("Prompts that work", 40, True),
    ("Mean of one CSV column", 0, False),
    ("Letter to the landlord", 0, False),
    ("Rust: borrowed value does not live long enough", 0, False),
    ("Slowest queries in Postgres", 1, False),
    ("Four days in Lisbon by train", 1, False),
    ("Regex for ISO 8601 durations", 1, False),
    ("Refactor the parser tests", 3, False),
    ("Explain CRDTs with a shopping list", 4, False),
    ("Sourdough at 78 % hydration", 5, False),
    ("systemd timer instead of cron", 5, False),
    ("Summary of the board minutes", 6, False),
    ("Birthday poem, not too sweet", 25, False),
    ("Kubernetes probe timeouts", 30, False),
)


def at(days: float) -> float:
    """The time so many days before now."""
    return (datetime.fromtimestamp(NOW) - timedelta(days=days)).timestamp()


def record(title: str, days: float = 0, *, pinned: bool = False, id: str = "") -> ChatRecord:
    """A chat last changed so many days ago."""
    return ChatRecord(id or title, title, pinned, at(days), at(days))


def drawn() -> list[ChatRecord]:
    """The chats of the pictures."""
    return [record(title, days, pinned=pinned) for title, days, pinned in DRAWN]


class MemoryStore:
    """Chats in memory; `texts` are what can be found in them, by chat."""

    def __init__(self, records: Sequence[ChatRecord], texts: dict[str, str] | None = None) -> None:
        self.notices = ()
        self.records = {one.id: one for one in records}
        self.texts = texts or {}
        self.removed: dict[str, ChatRecord] = {}
        self.calls: list[str] = []
        self.error: EngineError | None = None

    def chats(self) -> list[ChatRecord]:
        return list(self.records.values())

    def entries(self, chat: str) -> list[object]:
        return []

    def search(self, text: str) -> list[Hit]:
        self.calls.append(f"search {text}")
        titles = [
            Hit(one.id, one.title, None, one.title)
            for one in self.records.values()
            if text.lower() in one.title.lower()
        ]
        return titles + [
            Hit(chat, self.records[chat].title, f"in {chat}", around)
            for chat, around in self.texts.items()
            if chat in self.records and text.lower() in around.lower()
        ]

    def put_chat(self, chat: ChatRecord) -> None:
        self._fail()
        self.calls.append(f"put {chat.title}")
        self.records[chat.id] = chat

    def put(self, entry: object) -> None:
        pass

    def choose(self, entry: str) -> None:
        pass

    def first_questions(self, count: int) -> list[str]:
        return list(self.texts.values())[:count]

    def unsent(self) -> dict[str, Unsent]:
        return {}

    def put_unsent(self, unsent: Mapping[str, Unsent]) -> None:
        pass

    def remove(self, chat: str) -> None:
        self._fail()
        self.calls.append(f"remove {chat}")
        self.removed[chat] = self.records.pop(chat)

    def restore(self, chat: str) -> None:
        self.calls.append(f"restore {chat}")
        self.records[chat] = self.removed.pop(chat)

    def purge(self) -> None:
        self.calls.append("purge")
        self.removed = {}

    def forget_learned(self) -> None:
        self._fail()
        self.calls.append("forget")

    def export(self, chats: Sequence[str], path: Path, form: str) -> int:
        self._fail()
        self.calls.append(f"export {len(chats)} {path.name} {form}")
        return len(chats)

    def take_in(self, path: Path) -> list[str]:
        self._fail()
        self.records["imported"] = replace(record("An imported chat"), id="imported")
        return ["imported"]

    def close(self) -> None:
        pass

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class Lane(QObject):
    """The history lane: what it is given waits for `run`."""

    finished = Signal(object, object)
    failed = Signal(object, object)

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[object] = []

    def keep(self, task) -> None:
        self.tasks.append(task)

    def run(self) -> None:
        """Do all that waits, and what that leads to."""
        while self.tasks:
            task = self.tasks.pop(0)
            try:
                result = task(None, None)
            except EngineError as error:
                self.failed.emit(Job.KEEP, error.reason)
            else:
                self.finished.emit(Job.KEEP, result)


class FakeChat(QObject):
    """As much of the chat in the window as the list and the header ask for."""

    chat_id_changed = Signal(object)
    title_changed = Signal(object)
    answering_changed = Signal(object)
    opened = Signal()
    answered = Signal()

    chat_id = Property[str]("")
    title = Property[str]("New chat")
    answering = Property[bool](False)

    def __init__(self, history: History) -> None:
        super().__init__()
        self.turns: list[object] = []
        self._history, self._record, self._awaited = history, None, ""
        history.opened.connect(self._opened)

    def open(self, chat: ChatRecord) -> None:
        self._awaited = chat.id
        self._history.open(chat)

    def new_chat(self) -> None:
        self._awaited, self._record = "", None
        self.chat_id, self.title = "", "New chat"

    def rename(self, title: str) -> None:
        self._put(replace(self._record, title=title))

    def pin(self, on: bool) -> None:
        self._put(replace(self._record, pinned=on))

    def _put(self, record: ChatRecord) -> None:
        self._record, self.title = record, record.title
        self._history.put_chat(record)

    def _opened(self, chat: ChatRecord, _: list[object]) -> None:
        if chat.id == self._awaited:
            self._record, self.chat_id, self.title = chat, chat.id, chat.title
            self.opened.emit()


class FakeHub(QObject):
    """The switch at the foot of the list."""

    offline_changed = Signal(object)
    offline = Property[bool](False)
    fixed = False

    def set_offline(self, wanted: bool) -> None:
        self.offline = wanted


def made(records: Sequence[ChatRecord] = (), texts: dict[str, str] | None = None):
    """Conversations over a store in memory, listed once, with `store`, `lane` and `chat`."""
    store, lane = MemoryStore(records, texts), Lane()
    history = History(lane, lambda: store)  # type: ignore[arg-type]
    chat = FakeChat(history)
    conversations = Conversations(history, chat, lambda: NOW)  # type: ignore[arg-type]
    conversations.start()
    lane.run()
    return SimpleNamespace(
        conversations=conversations,
        store=store,
        lane=lane,
        chat=chat,
        history=history,
    )


def took(work) -> float:
    """How many seconds of the processor `work` takes."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


class FakeModels(QObject):
    """A target and a draft, as the header names them."""

    loaded_changed = Signal(object)
    draft_changed = Signal(object)
    loading_changed = Signal(object)
    loaded = Property[object](None)
    draft = Property[str]("none")
    loading = Property[str]("")
    target_name, draft_name = "Llama 3.1 8B", "Llama 3.2 1B"


class FakeStats(QObject):
    """How many tokens were accepted."""

    figures_changed = Signal(object)
    figures = SimpleNamespace(rate="61 %")
