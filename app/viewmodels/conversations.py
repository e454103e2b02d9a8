"""The chats that are kept: listed, searched, opened, renamed, pinned, deleted, exported.

Decides what the list shows and when what was deleted is wiped. Asks the history, which answers
by signals; knows neither a file's format nor a widget.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats import exchange
from app.chats.conversation import ChatRecord, Hit
from app.viewmodels import chat_lines, words
from app.viewmodels.binding import Property
from app.viewmodels.chat import Chat
from app.viewmodels.chat_lines import Line
from app.viewmodels.history import Form, History

SEARCH_MS = 150  # after the last key
NOTE_MS = 10_000
MINUTE_MS = 60_000


@dataclass(frozen=True)
class Note:
    """What was just done, and whether it can be undone. Where there is a `title`, `{title}` stands
    for it in what is `said`."""

    said: str
    undo: bool = False
    title: str | None = None

    @property
    def text(self) -> str:
        """All of it."""
        return self.with_title(self.title or "")

    def with_title(self, short: str) -> str:
        """The sentence with another title, such as one that there is room for."""
        return self.said if self.title is None else self.said.replace("{title}", short)


@dataclass(frozen=True)
class _Removed:
    """A chat that is not wiped yet. `shown`: it was the one in the window."""

    record: ChatRecord
    shown: bool


class Conversations(QObject):
    """The list of chats. `sought` has the id of a message that is to be scrolled to."""

    sought = Signal(str)
    lines_changed = Signal(object)
    said_changed = Signal(object)
    query_changed = Signal(object)
    note_changed = Signal(object)

    lines = Property[tuple[Line, ...]](())
    said = Property[str]("")  # what stands in place of lines
    query = Property[str]("")
    note = Property[Note | None](None)

    def __init__(
        self,
        history: History,
        chat: Chat,
        clock: Callable[[], float] = time.time,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._history, self._chat, self._clock = history, chat, clock
        self._records: dict[str, ChatRecord] = {}
        self._listed = False
        self._hidden: set[str] = set()  # deleted; a list that was on its way may still have them
        self._hits: tuple[str, Sequence[Hit]] | None = None  # and what was searched for
        self._searching = self._again = False  # a search is on its way, another is to follow
        self._removed: _Removed | None = None
        self._next_note = ""
        self._asked = ""  # a chat that will be in the window
        self._entry = ""  # to be scrolled to once its chat is open
        self._arrived = ""  # an imported or named chat, to be opened once it is listed
        self._delay = self._timer(SEARCH_MS, self._ask)
        self._expiry = self._timer(NOTE_MS, self.dismiss_note)
        self._minutes = QTimer(self)
        self._minutes.timeout.connect(self._show)  # at midnight, today becomes yesterday
        history.listed.connect(self._take)
        history.found.connect(self._take_hits)
        history.exported.connect(self._exported)
        history.taken_in.connect(self._taken_in)
        history.forgot.connect(self._forgot)
        history.failed.connect(self._failed)
        chat.chat_id_changed.connect(self._follow)
        chat.opened.connect(self._seek)
        chat.answered.connect(self._search_again)

    def start(self) -> None:
        """Ask for the list."""
        self._minutes.start(MINUTE_MS)
        self._history.look()

    def close(self) -> None:
        """Wipe what was deleted; called before the history is closed."""
        for timer in (self._delay, self._expiry, self._minutes):
            timer.stop()
        self._purge()

    def record(self, chat: str) -> ChatRecord | None:
        """The chat with this id, None if it is not kept (yet)."""
        return None if chat in self._hidden else self._records.get(chat)

    @property
    def titles(self) -> list[str]:
        """Of all chats, deleted ones that can be restored among them."""
        return [record.title for record in self._records.values()]

    @property
    def is_empty(self) -> bool:
        """Whether no chat is kept."""
        return not self._kept()

    def search(self, text: str) -> None:
        """Show where `text` is found, shortly after it was typed; nothing shows all chats."""
        self.query = text.strip()
        if self.query:
            self._delay.start()
            return
        self._delay.stop()
        self._hits = None
        self._show()

    def open(self, chat: str, entry: str = "") -> None:
        """Show this chat, scrolled to `entry` where one is given."""
        record = self.record(chat)
        if record is None:
            return
        self._entry = entry
        if chat == self._chat.chat_id:
            self._seek()
        else:
            self._asked = chat
            self._chat.open(record)

    def open_named(self, chat: str) -> None:
        """Show the chat that another program names, once it is known which there are."""
        if not self._listed:
            self._arrived = chat
        elif self.record(chat) is None:
            self._say(Note(self.tr("There is no chat with this id.")))
        else:
            self.open(chat)

    def new(self) -> None:
        """Begin another chat."""
        self._asked = ""
        self._chat.new_chat()

    def rename(self, chat: str, title: str) -> None:
        """Give a chat another title; an empty one changes nothing."""
        title, record = chat_lines.clean(title), self.record(chat)
        if not title or record is None or title == record.title:
            return
        self._change(replace(record, title=title))
        if chat == self._chat.chat_id:
            self._chat.rename(title)
        else:
            self._history.put_chat(replace(record, title=title))

    def pin(self, chat: str, on: bool) -> None:
        """Keep a chat at the top, or no longer."""
        record = self.record(chat)
        if record is None or record.pinned == on:
            return
        self._change(replace(record, pinned=on))
        if chat == self._chat.chat_id:
            self._chat.pin(on)
        else:
            self._history.put_chat(replace(record, pinned=on))

    def delete(self, chat: str) -> None:
        """Take a chat away. It can be had back for a while, or until the next one is deleted."""
        record = self.record(chat)
        if record is None:
            return
        self._purge()
        shown = chat in (self._chat.chat_id, self._asked)
        beside = self._beside(chat)
        self._hidden.add(chat)
        self._removed = _Removed(record, shown)
        if shown:
            # First, so that an answer which still runs is written while its chat is there.
            self._chat.new_chat()
        self._history.remove(chat)
        if shown and beside is not None:
            self.open(beside.id)
        self._say(Note(self.tr("Deleted “{title}”."), undo=True, title=record.title))
        self._show()

    def undo(self) -> None:
        """Have back what was deleted last."""
        removed, self._removed = self._removed, None
        if removed is None:
            return
        self._hidden.discard(removed.record.id)
        self._history.restore(removed.record.id)
        self.dismiss_note()
        if removed.shown:
            self._asked = removed.record.id
            self._chat.open(removed.record)

    def dismiss_note(self) -> None:
        """Take the note away; what could be undone no longer can."""
        self._purge()
        self._expiry.stop()
        self.note, waiting = None, self._next_note
        self._next_note = ""
        if waiting:
            self._say(Note(waiting))

    def export(self, chats: Sequence[str] | None, path: Path, form: Form) -> None:
        """Write these chats, or all, into a file."""
        kept = [record.id for record in self._kept()]
        wanted = kept if chats is None else [chat for chat in kept if chat in chats]
        if wanted:
            self._history.export(wanted, path, form)

    def take_in(self, path: Path) -> None:
        """Add the chats of a file."""
        self._history.take_in(path)

    def forget_learned(self) -> None:
        """Forget what drafters learned of all chats; those stay."""
        self._history.forget_learned()

    def markdown(self) -> str:
        """The chat in the window, as it is shown."""
        chat = self._chat
        entries = [turn.entry(chat.chat_id) for turn in chat.turns]
        parts = [f"# {chat_lines.clean(chat.title)}", *map(exchange.markdown, entries)]
        return "\n\n".join(parts) + "\n"

    def file_name(self, chat: str | None, form: Form) -> str:
        """What a file with this chat, or all, might be called."""
        record = self.record(chat) if chat else None
        title = record.title if record is not None else self.tr("Slipstream chats")
        return chat_lines.file_name(title, "md" if form == "markdown" else "json")

    def _timer(self, interval: int, action: Callable[[], object]) -> QTimer:
        timer = QTimer(self, interval=interval, singleShot=True)
        timer.timeout.connect(action)
        return timer

    def _kept(self) -> list[ChatRecord]:
        return [one for one in self._records.values() if one.id not in self._hidden]

    def _take(self, records: list[ChatRecord]) -> None:
        self._listed = True
        self._records = {record.id: record for record in records}
        self._show()
        self._search_again()
        arrived, self._arrived = self._arrived, ""
        if arrived and not self._chat.answering:
            self.open_named(arrived)

    def _change(self, record: ChatRecord) -> None:
        """Show it at once; the next list will say the same."""
        self._records[record.id] = record
        self._show()

    def _beside(self, chat: str) -> ChatRecord | None:
        """What follows in the list, else what stands before."""
        ids = [line.id for line in self.lines if line.id]
        others = [self.record(one) for one in ids if one != chat]
        place = ids.index(chat) if chat in ids else 0
        return others[min(place, len(others) - 1)] if others else None

    def _ask(self) -> None:
        """Search, once the search that is on its way has come."""
        if self._searching:
            self._again = True
        elif self.query:
            self._searching = True
            self._history.search(self.query)

    def _search_again(self) -> None:
        """What is kept has changed: the results are no longer all that can be found."""
        if self.query and not self._delay.isActive():
            self._ask()

    def _searched(self) -> None:
        self._searching, again = False, self._again
        self._again = False
        if again:
            self._ask()

    def _take_hits(self, text: str, hits: list[Hit]) -> None:
        if text == self.query:
            self._hits = text, hits
            self._show()
        self._searched()

    def _follow(self, *_: object) -> None:
        self._asked = ""
        self._show()

    def _show(self) -> None:
        current = self._chat.chat_id
        kept = self._kept()
        if self._hits is not None:
            text, hits = self._hits
            records = {record.id: record for record in kept}
            self.lines = chat_lines.found(hits, text, records, current)
            self.said = "" if self.lines else self._nothing(text)
        else:
            self.lines = chat_lines.grouped(kept, self._clock(), current)
            self.said = self._invitation() if self._listed and not kept else ""

    def _seek(self) -> None:
        entry, self._entry = self._entry, ""
        if entry:
            self.sought.emit(entry)

    def _purge(self) -> None:
        if self._removed is not None:
            self._removed = None
            self._history.purge()

    def _say(self, note: Note) -> None:
        """Show a note for a while; one that offers nothing waits for one that does."""
        if self._removed is not None and not note.undo:
            self._next_note = note.text
            return
        self.note = note
        self._expiry.start()

    def _exported(self, path: Path, count: int) -> None:
        one, many = self.tr("Exported to {file}."), self.tr("Exported {count} chats to {file}.")
        self._say(Note((one if count == 1 else many).format(count=count, file=path.name)))

    def _taken_in(self, chats: list[str]) -> None:
        one, many = self.tr("Imported {count} chat."), self.tr("Imported {count} chats.")
        none = self.tr("There is no chat in this file that is not here already.")
        self._say(Note(words.counted(len(chats), one, many) if chats else none))
        self._arrived = chats[0] if chats else ""

    def _forgot(self) -> None:
        self._say(Note(self.tr("What was learned is forgotten.")))

    def _failed(self, *_: object) -> None:
        """The reason is shown elsewhere. It may be that of a deletion: show what is there."""
        self._asked = ""
        self._searched()
        if self._hidden:
            self._hidden.clear()
            self._history.look()

    def _nothing(self, text: str) -> str:
        return self.tr("No chat has “{text}” in it.").format(text=text)

    def _invitation(self) -> str:
        return self.tr("No chats yet. They are kept here, on this computer only.")
