"""What is said is kept, sooner or later: writes that fail wait, and are told of once."""

import pytest
from PySide6.QtCore import Qt

from app import paths
from app.chats.conversation import Attachment, ChatRecord, Entry, Unsent, branch
from app.chats.store import Reader
from app.viewmodels.history import History
from app.worker import Worker
from engine.errors import EngineError, Reason
from tests.fakes import ScriptedSession, chunks_of

FULL = EngineError("history_disk_full", "The disk is full: {path}", path="chats.db")
LOCKED = EngineError("history_locked", "Another program keeps it locked: {path}", path="chats.db")
GONE = EngineError("chat_gone", "This chat is no longer there.")


class Rows:
    """A store that notes what is written, and fails while `error` is set."""

    def __init__(self) -> None:
        self.notices: list[Reason] = []
        self.error: EngineError | None = None
        self.written: list[str] = []
        self.rows: dict[str, Entry] = {}

    def _note(self, written: str) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(written)

    def put_chat(self, chat: ChatRecord) -> None:
        self._note(f"chat {chat.title}")

    def put(self, entry: Entry) -> None:
        self._note(f"put {entry.text}")
        self.rows[entry.id] = entry

    def choose(self, entry: str) -> None:
        self._note(f"choose {entry}")

    def drop(self, entry: str) -> None:
        self._note(f"drop {entry}")

    def chats(self) -> list[ChatRecord]:
        return []

    def entries(self, chat: str) -> list[Entry]:
        return [entry for entry in self.rows.values() if entry.chat == chat]

    def close(self) -> None:
        pass


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def history(qtbot, rows):
    worker = Worker(lambda: ScriptedSession())
    made = History(worker, lambda: rows)
    made.told = []
    made.unkept.connect(lambda reason: made.told.append(reason.code))
    made.kept.connect(lambda reason: made.told.append(f"no more {reason.code}"))
    made.failed.connect(lambda reason: made.told.append(f"failed {reason.code}"))
    made.settle = lambda: qtbot.waitUntil(lambda: worker._pending == 0)
    yield made
    worker.close(closing=made.close)


def entry(name: str, parent: str | None, text: str) -> Entry:
    return Entry(name, "c", parent, "user", text)


def test_what_fails_waits_and_is_written_in_its_order(history, rows):
    rows.error = FULL
    history.put_chat(ChatRecord("c", "first"))
    history.put(entry("a", None, "1"))
    history.put(entry("b", "a", "2"))
    history.choose("a")
    history.choose("b")
    history.choose("a")
    history.put(entry("a", None, "1 and more"))
    history.settle()
    assert rows.written == []
    rows.error = None
    history.drop("z")
    history.settle()
    assert rows.written == [
        *("chat first", "put 1 and more", "put 2", "choose b", "choose a", "drop z")
    ]


def test_that_nothing_is_kept_is_told_once_and_when_it_is_again(history, rows):
    rows.error = FULL
    for number in range(3):
        history.put(entry("a", None, f"{number}"))
        history.settle()
    assert history.told == ["history_disk_full"]
    rows.error = LOCKED
    history.write()
    history.settle()
    assert history.told[1:] == ["no more history_disk_full", "history_locked"]
    rows.error = None
    history.write()
    history.settle()
    assert history.told[3:] == ["no more history_locked"]
    assert rows.written == ["put 2"]


def test_it_is_tried_again_by_itself_and_at_the_end(qtbot, history, rows):
    rows.error = FULL
    history._again.setInterval(10)
    history.put(entry("a", None, "1"))
    history.settle()
    rows.error = None
    qtbot.waitUntil(lambda: rows.written == ["put 1"])
    rows.error = FULL
    history._again.setInterval(10**6)
    history.put(entry("b", "a", "2"))
    history.settle()
    rows.error = None
    history.close()
    assert rows.written == ["put 1", "put 2"]


def test_what_belongs_to_a_chat_that_is_gone_holds_nothing_up(history, rows):
    rows.error = GONE
    history.put(entry("a", None, "1"))
    history.settle()
    rows.error = None
    history.put(entry("b", None, "2"))
    history.settle()
    assert (rows.written, history.told) == (["put 2"], [])


def test_a_chat_opens_with_what_waits(qtbot, history, rows):
    history.put(entry("a", None, "1"))
    history.settle()
    rows.error = FULL
    history.put(entry("b", "a", "2"))
    with qtbot.waitSignal(history.opened) as opened:
        history.open(ChatRecord("c", "first"))
    assert [one.text for one in branch(opened.args[1])] == ["1", "2"]


def test_a_file_that_cannot_be_opened_is_told_of_once(qtbot, rows, history):
    tries = []

    def factory():
        tries.append(1)
        if len(tries) < 3:
            raise LOCKED
        return rows

    history._factory = factory
    history.look()
    history.put(entry("a", None, "1"))
    history.settle()
    assert history.told == ["history_locked"]
    with qtbot.waitSignal(history.listed):
        history.write()
    assert history.told[1:] == ["no more history_locked"]
    assert rows.written == ["put 1"]


def test_after_a_full_disk_the_whole_chat_is_there(qtbot, open_program, monkeypatch):
    session = ScriptedSession(*(chunks_of([text]) for text in ("one", "two", "three")))
    program = open_program(session)
    chat, store = program.chat, program.history._store
    put = type(store).put

    def ask(text):
        with qtbot.waitSignal(chat.answered):
            assert chat.send(text)

    ask("before")
    monkeypatch.setattr(store, "put", lambda entry: (_ for _ in ()).throw(FULL), raising=False)
    ask("in between")
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.alerts.current.reason.code == "history_disk_full"
    program.alerts.dismiss()  # something new begins; it stands
    assert program.alerts.current is not None
    monkeypatch.setattr(store, "put", lambda entry: put(store, entry), raising=False)
    ask("after")
    qtbot.waitUntil(lambda: program.alerts.current is None)
    read = Reader(paths.history_file())
    assert [one.text for one in branch(read.entries(chat.chat_id))] == [
        *("before", "one", "in between", "two", "after", "three")
    ]


def test_what_was_being_written_is_there_at_the_next_start(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]))
    program = open_program(session)
    edit = program.window.composer.edit
    edit.setPlainText("hi")
    with qtbot.waitSignal(program.chat.answered):
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    first = program.chat.chat_id
    edit.setPlainText("half a thought")
    program.window.composer._writing.attach([Attachment("notes.txt", "text")])
    program.chat.new_chat()
    edit.setPlainText("another")
    program.window.close()
    program.worker.close(closing=program.history.close)

    program = open_program(ScriptedSession())
    edit = program.window.composer.edit
    qtbot.waitUntil(lambda: edit.toPlainText() == "another")
    qtbot.waitUntil(lambda: program.conversations.record(first) is not None)
    program.conversations.open(first)
    qtbot.waitUntil(lambda: program.chat.chat_id == first)
    assert edit.toPlainText() == "half a thought"
    assert program.window.composer._writing.attachments == (Attachment("notes.txt", "text"),)
    assert program.window.composer._writing.unsent.keys() == {first, ""}
    assert program.window.composer._writing.unsent[""] == Unsent("another")
