"""Code cards within a document: their colours, laid over the text bit by bit, and the copy button.

Knows the document that a card is in; does not know what else is in it.
"""

import time
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QGuiApplication,
    QPainter,
    QPen,
    QTextBlock,
    QTextCharFormat,
    QTextDocument,
    QTextLayout,
)
from PySide6.QtWidgets import QToolButton, QWidget

from app import resources
from app.widgets import code
from app.widgets.markdown import visible
from app.widgets.writer import Card

SLICE_SECONDS = 0.006
FIRST_COLOURS = 120  # characters of an open block
GROWTH = 1.4  # an open block is coloured again when it has grown by so much


class Colouring:
    """Colours the cards of one document in slices. The text itself is not touched."""

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._card: Card | None = None
        self._work: Iterator[None] = iter(())
        self._dirty: tuple[int, int] | None = None  # from where to where it was laid in this slice
        self._formats: dict[str, QTextCharFormat] = {}

    def go_on(self, cards: list[Card], *, growing: bool, seconds: float = SLICE_SECONDS) -> bool:
        """Colour for so long; whether something is left to do."""
        end = time.monotonic() + seconds
        self._dirty = None
        left = self._colour_until(end, cards, growing)
        if self._dirty is not None:
            first, last = self._dirty
            self._document.markContentsDirty(first, last - first)
        return left

    def _colour_until(self, end: float, cards: list[Card], growing: bool) -> bool:
        if not any(card is self._card for card in cards):
            self._card = None
        while time.monotonic() < end:
            if self._card is None or next(self._work, self) is self:
                waiting = (c for c in reversed(cards) if _is_due(c, growing and c is cards[-1]))
                self._card = next(waiting, None)
                if self._card is None:
                    return False
                self._work = self._colour(self._card)
        return True

    def _colour(self, card: Card) -> Iterator[None]:
        text = "".join(sign or piece for piece, sign in code.unseen(card.source))
        card.coloured = len(card.source)
        block = self._document.findBlock(card.position)
        lines = code.lines_of_tones(text[: code.MAX_CHARACTERS], card.language)
        for number, line in enumerate(lines):
            if number == len(card.lines):
                card.lines.append([])
            if line != card.lines[number]:
                card.lines[number] = line
                self._lay(block, line)
            yield
            block = block.next()

    def _lay(self, block: QTextBlock, line: list[tuple[int, int, str]]) -> None:
        ranges = []
        for start, length, tone in line:
            laid = QTextLayout.FormatRange()
            laid.start, laid.length, laid.format = start, length, self._format(tone)
            ranges.append(laid)
        block.layout().setFormats(ranges)
        end = block.position() + block.length()
        first = self._dirty[0] if self._dirty is not None else block.position()
        self._dirty = (min(first, block.position()), max(end, self._dirty[1] if self._dirty else 0))

    def _format(self, tone: str) -> QTextCharFormat:
        if tone not in self._formats:
            shape = QTextCharFormat()
            shape.setForeground(resources.colour(tone))
            self._formats[tone] = shape
        return self._formats[tone]


def _is_due(card: Card, growing: bool) -> bool:
    if (
        not card.seen
        or not card.language
        or card.coloured >= min(len(card.source), code.MAX_CHARACTERS)
    ):
        return False
    wanted = max(GROWTH * card.coloured, FIRST_COLOURS) if growing else 0
    return len(card.source) >= wanted


class CopyCode(QToolButton):
    """Copies the source of one code card."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.card: Card | None = None
        self._corner = QPoint()
        self._unseen = 0
        self.setObjectName("copyCode")
        self.setText("\u2009" + self.tr("Copy"))
        self.setAccessibleName(self.tr("Copy the code"))
        self.setFont(resources.font("caption"))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        size = resources.scaled(14)
        self.setIconSize(QSize(size, size))
        self.setIcon(resources.icon("copy", "text2", 14))
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        # As the code, whatever the direction of the window.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.clicked.connect(self._copy)

    def show_card(self, card: Card, corner: QPoint) -> None:
        """Copy `card` from now on, at the corner of it; what in it cannot be seen is said."""
        if self.card is not card or self._corner != corner:
            self.card, self._corner = card, corner
            self.resize(self.sizeHint())
            self.move(corner + QPoint(-self.sizeHint().width() - 8, 7))
            self.show()
        if card.unseen == self._unseen:
            return
        self._unseen = card.unseen
        notice = unseen_notice(card.unseen)
        self.setAccessibleDescription(notice)
        self.setToolTip(notice)

    def _copy(self) -> None:
        if self.card is not None:
            QGuiApplication.clipboard().setText(self.card.source)


def unseen_notice(count: int) -> str:
    """What is said of code with characters that cannot be seen; "" where there are none."""
    if not count:
        return ""
    said = QCoreApplication.translate("card", "%n invisible characters are copied too", None, count)
    return said.replace("%n", str(count))


def paint_task(painter: QPainter, place: QRectF, *, done: bool) -> None:
    """The box of a task, ticked when it is done."""
    box = QRectF(place.left(), place.center().y() - 7, 14, 14)
    painter.setPen(QPen(resources.colour("edge"), 1))
    painter.setBrush(resources.colour("base"))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
    if done:
        ratio = painter.device().devicePixelRatio()
        ticked = resources.pixmap("check", resources.colour("accent"), 12, ratio)
        painter.drawPixmap(box.topLeft() + QPointF(1, 1), ticked)


def paint_card(painter: QPainter, place: QRectF, card: Card, seen: QRectF) -> None:
    """The card behind the code, with its language and what cannot be seen in it, as far as it is
    `seen`: a path of thousands of lines would take its time."""
    painter.setPen(QPen(resources.colour("line"), 1))
    painter.setBrush(resources.colour("sunken"))
    shown = place.intersected(seen.adjusted(-50, -50, 50, 50))
    painter.drawRoundedRect(shown.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
    if seen.top() > place.top() + 40:
        return
    painter.setFont(resources.font("caption"))
    # Code is read from the left, and its head with it.
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    head = place.adjusted(14, 10, -100, 0)
    if card.unseen:
        notice = unseen_notice(card.unseen)
        painter.setPen(resources.colour("caution"))
        used = painter.boundingRect(head, Qt.AlignmentFlag.AlignRight, notice)
        painter.drawText(head, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, notice)
        head.setRight(used.left() - 14)
    painter.setPen(resources.colour("text2"))
    title = painter.fontMetrics().elidedText(
        visible(card.title), Qt.TextElideMode.ElideRight, int(head.width())
    )
    painter.drawText(head, Qt.AlignmentFlag.AlignTop, title)
