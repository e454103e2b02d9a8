"""The draft made visible: what was drafted has a tint behind it, a round under the pointer a line.

Only painted, never part of the text: switching it on repaints, and copies stay clean.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QPainter, QTextDocument, QTextLine

from app import resources
from app.chats.conversation import Round
from app.widgets.places import Places

RADIUS = 3.0
OBJECT = "\ufffc"


class Tint:
    """The rounds of one answer over its document."""

    def __init__(self) -> None:
        self.shown = False
        self.hovered: int | None = None
        self._rounds: list[Round] = []
        # A run from each start: characters of the source, its round, whether it was drafted.
        self._starts: list[int] = []
        self._runs: list[tuple[int, bool]] = []
        self._end = 0

    def show_rounds(self, rounds: Sequence[Round], *, tinted: bool) -> None:
        """Take over `rounds`, most of which are known while an answer grows."""
        known = len(self._rounds)
        if len(rounds) < known or (known and rounds[known - 1] != self._rounds[-1]):
            known = self._end = 0
            self._rounds, self._starts, self._runs, self.hovered = [], [], [], None
        for number in range(known, len(rounds)):
            for length, drafted in rounds[number].runs:
                self._starts.append(self._end)
                self._runs.append((number, drafted))
                self._end += length
            self._rounds.append(rounds[number])
        self.shown = tinted

    def hover(self, source: int | None) -> bool:
        """The pointer is over this character of the source; whether that changes anything."""
        before, self.hovered = self.hovered, None
        if self.shown and source is not None and 0 <= source < self._end:
            self.hovered = self._runs[bisect_right(self._starts, source) - 1][0]
        return self.hovered != before

    def words(self) -> str:
        """What is said of the round under the pointer."""
        if self.hovered is None:
            return ""
        told = self._rounds[self.hovered]
        said = QCoreApplication.translate(
            "tint", "Round {number}: drafted {drafted}, accepted {accepted}, {time} ms"
        )
        return said.format(
            number=self.hovered + 1,
            drafted=told.drafted,
            accepted=told.accepted,
            time=round(1_000 * told.seconds),
        )

    def paint(
        self, painter: QPainter, document: QTextDocument, places: Places, first: int, last: int
    ) -> None:
        """Tint what was drafted between two positions of the document."""
        if not self.shown or not self._runs:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("tint"))
        for a, b in self._drafted(places, first, last):
            for place in boxes(document, a, b):
                painter.drawRoundedRect(place, RADIUS, RADIUS)

    def underline(self, painter: QPainter, document: QTextDocument, places: Places) -> None:
        """A line under the round that the pointer is over."""
        if not self.shown or self.hovered is None:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("accent"))
        for a, b in self._of_round(places, self.hovered):
            for place in boxes(document, a, b):
                painter.drawRect(QRectF(place.left(), place.bottom() - 1, place.width(), 2))

    def _drafted(self, places: Places, first: int, last: int) -> Iterator[tuple[int, int]]:
        shown = places.between(first, last)
        if not shown:
            return
        begin, end = shown[0].source, shown[-1].source + shown[-1].length
        index = max(bisect_right(self._starts, begin) - 1, 0)
        while index < len(self._starts) and self._starts[index] < end:
            if self._runs[index][1]:
                yield from places.spans(self._starts[index], self._run_end(index))
            index += 1

    def _of_round(self, places: Places, number: int) -> Iterator[tuple[int, int]]:
        """The drafted runs of a round, or all where nothing was accepted."""
        own = [i for i, (owner, _) in enumerate(self._runs) if owner == number]
        for index in [i for i in own if self._runs[i][1]] or own:
            yield from places.spans(self._starts[index], self._run_end(index))

    def _run_end(self, index: int) -> int:
        return self._starts[index + 1] if index + 1 < len(self._starts) else self._end


def boxes(document: QTextDocument, first: int, last: int) -> Iterator[QRectF]:
    """Where the text between two positions stands, line by line, without the blanks at the
    beginning of the text and of each line."""
    block = document.findBlock(first)
    while block.isValid() and block.position() < last:
        layout, text = block.layout(), block.text()
        corner = document.documentLayout().blockBoundingRect(block).topLeft()
        start, end = max(first - block.position(), 0), last - block.position()
        # Positions are UTF-16 units; a text with wider characters is looked at through them.
        raw = text.encode("utf-16-le", "surrogatepass") if not text.isascii() else b""
        for number in range(layout.lineCount()):
            line = layout.lineAt(number)
            a = max(start, line.textStart())
            b = min(end, line.textStart() + line.textLength())
            shown = raw[2 * a : 2 * b].decode("utf-16-le", "replace") if raw else text[a:b]
            a += len(shown) - len(shown.lstrip(" \t\u00a0\u2028"))
            b -= len(shown) - len(shown.rstrip("\u2028"))
            if a < b:
                yield _box(line, a, b).translated(corner)
        block = block.next()


def _box(line: QTextLine, first: int, last: int) -> QRectF:
    left, right = sorted((x_of(line, first), x_of(line, last)))
    return QRectF(left, line.y(), right - left, line.ascent() + line.descent())


def x_of(line: QTextLine, position: int) -> float:
    """Where in a line a position of its block is."""
    found: Any = line.cursorToX(position)
    return float(found[0] if isinstance(found, tuple) else found)
