"""Where a text stands in a chat, in the turns that are built and in those that are not.

Looks at what is shown, not at the source: marks of Markdown are no part of it. Counting a long
chat is done in slices, so that nothing waits for it. Scrolls nothing.
"""

import html
import time
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit

from app import resources
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.column import Column, Shown
from app.widgets.markdown import legible
from app.widgets.text import Answer

SLICE = 0.012  # seconds
MARKED = 500  # places in one message that are marked
_MARKS = str.maketrans("", "", "*_~`\\")


@dataclass(frozen=True)
class Hit:
    """The place `number` (from 0) in the message `id`, which is the chat's `turn`-th."""

    turn: int
    id: str
    number: int


class Finding(QObject):
    """One search: its text, the place where it is, and how many there are."""

    counted = Signal()

    def __init__(self, chat: Chat, column: Column) -> None:
        super().__init__(column)
        self._chat, self._column = chat, column
        self.text = ""
        self.hit: Hit | None = None
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}  # as shown, of turns that are not built
        self._counting = QTimer(self)
        self._counting.setInterval(0)
        self._counting.timeout.connect(self._count_on)

    def step(self, text: str, backwards: bool, top: int) -> Hit | None:
        """The next place of `text`, around the end if need be; a new text is looked for from
        the last place on, or from the turn `top`."""
        turn, number = (self.hit.turn, self.hit.number) if self.hit else (top, -1)
        if text != self.text:
            self.text, self._counts, number = text, {}, -1
        self.hit = self._next(turn, number, -1 if backwards else 1)
        self._counting.start()
        if self.hit is None:
            self.mark()
        return self.hit

    def _next(self, start: int, number: int, by: int) -> Hit | None:
        turns = self._chat.turns
        if not turns or not self.text:
            return None
        for hop in range(len(turns) + 1):
            at = (start + by * hop) % len(turns)
            count = self._count(turns[at])
            place = number + by if hop == 0 else (0 if by > 0 else count - 1)
            if 0 <= place < count:
                return Hit(at, turns[at].id, place)
        return None

    def place(self) -> tuple[int, int, bool]:
        """Which place this is, how many are known, and whether that is all of them."""
        turns = self._chat.turns
        whole = len(self._counts) >= len(turns)
        total = sum(self._counts.values())
        if self.hit is None:
            return 0, total, whole
        before = sum(self._counts.get(turn.id, 0) for turn in turns[: self.hit.turn])
        return before + self.hit.number + 1, total, whole

    def forget(self, name: str | None = None) -> None:
        """The message `name` has changed; without it, all may have."""
        if name is None:
            self._counts.clear()
            self._texts.clear()
            self.hit = None
        else:
            self._counts.pop(name, None)
            self._texts.pop(name, None)
        if self.text:
            self._counting.start()
            self.mark()

    def clear(self) -> None:
        """No search any more."""
        self.text = ""
        self._counting.stop()
        self.forget()
        self.mark()

    def mark(self) -> QTextCursor | None:
        """Mark all places in what is built; the cursor of the one that is looked at."""
        current = None
        for name, shown in self._column.turns.items():
            number = self.hit.number if self.hit and self.hit.id == name else None
            found = self._mark_in(shown, number)
            current = found if number is not None else current
        return current

    def _mark_in(self, shown: Shown, number: int | None) -> QTextCursor | None:
        body = shown.body
        if not self.text or not self._counts.get(shown.turn.id, 1):
            if body.extraSelections():
                body.setExtraSelections([])
            return None
        cursors: list[QTextCursor] = []
        cursor = QTextCursor(body.document())
        while len(cursors) < MARKED:
            cursor = body.document().find(self.text, cursor)
            if cursor.isNull():
                break
            cursors.append(cursor)
        at = None if number is None else cursors[min(number, len(cursors) - 1)] if cursors else None
        if cursors or body.extraSelections():
            body.setExtraSelections([_selection(c, c is at) for c in cursors])
        return at

    def _count(self, turn: Turn) -> int:
        if turn.id not in self._counts:
            needle = self.text.casefold()
            lines = self._shown(turn).casefold().split("\n")
            self._counts[turn.id] = sum(line.count(needle) for line in lines)
        return self._counts[turn.id]

    def _shown(self, turn: Turn) -> str:
        """What is to be seen of a turn."""
        built = self._column.turns.get(turn.id)
        if built is not None:
            return built.body.toPlainText()
        if turn.role == "user":
            return legible(turn.text)
        if turn.id not in self._texts:
            if not self._possible(turn.text):
                return ""
            self._texts[turn.id] = _rendered(turn.text)
        return self._texts[turn.id]

    def _possible(self, source: str) -> bool:
        """Whether the text may stand in what is made of `source`, without making it."""
        needle = self.text.translate(_MARKS).casefold()
        plain = html.unescape(source).translate(_MARKS).casefold()
        return all(word in plain for word in needle.split())

    def _count_on(self) -> None:
        end = time.monotonic() + SLICE
        for turn in self._chat.turns:
            if turn.id not in self._counts:
                self._count(turn)
                if time.monotonic() > end:
                    break
        else:
            self._counting.stop()
        self.counted.emit()


def _rendered(source: str) -> str:
    hidden = Answer("")
    hidden.grow(source, finished=True)
    shown = hidden.toPlainText()
    hidden.deleteLater()
    return shown


def _selection(cursor: QTextCursor, current: bool) -> QTextEdit.ExtraSelection:
    made = QTextEdit.ExtraSelection()
    made.cursor = cursor
    shape = QTextCharFormat()
    fill, ink = ("accent", "on_accent") if current else ("control", "text")
    shape.setBackground(resources.colour(fill))
    shape.setForeground(resources.colour(ink))
    made.format = shape
    return made
