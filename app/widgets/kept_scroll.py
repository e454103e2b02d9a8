"""A scroll area over a column that keeps in its place what is read, whatever grows around it.

Either the end is followed, or an edge of one turn stays where it is in the view. Knows nothing of
which turns are built.
"""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QWidget

from app.widgets.column import Column, Shown
from app.widgets.text import Text

MARGIN = 40
BAR = 10  # width of the scroll bar in the style sheet
NEAR = 8  # pixels from the end that still count as the end


@dataclass(frozen=True)
class Anchor:
    """What stays in its place: an edge of a turn, so many pixels below the top of the view."""

    id: str
    offset: int
    bottom: bool = False


@dataclass(frozen=True)
class Reading:
    """A line that is read: the turn and the text it is in, a position in that text, and so many
    pixels below the top of the view."""

    id: str
    text: Text
    position: int
    offset: int


class KeptScroll(QScrollArea):
    """`following`: the end is kept in view, else the `anchor` in its place."""

    moved = Signal()  # by the reader
    resettled = Signal()  # what is in it, or the room for it, has another size

    def __init__(self, column: Column) -> None:
        super().__init__()
        self.column = column
        self.following = True
        self.anchor: Anchor | None = None
        self._read: Reading | None = None  # what was at the top before the font changed
        self._holding = False  # the bar is moved to keep something in its place
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._page = QWidget()
        self._page.setObjectName("page")
        self._row = QHBoxLayout(self._page)
        self._row.addStretch(1)
        self._row.addWidget(column, 1000)
        self._row.addStretch(1)
        self.setWidget(self._page)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._moved)
        bar.rangeChanged.connect(self._ranged)
        column.arranged.connect(self.hold)
        self._leave_room()

    def settle(self) -> None:
        """Lay out what is new now, so that nobody sees it jump."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        self.hold()

    def hold(self) -> None:
        """Keep the end, or what was seen, in its place."""
        bar, anchor = self.verticalScrollBar(), self.anchor
        self._holding = True
        if self.following:
            bar.setValue(bar.maximum())
        elif anchor is not None and anchor.id in self.column.turns:
            shown = self.column.turns[anchor.id]
            edge = self.top_of(shown) + (shown.height() if anchor.bottom else 0)
            bar.setValue(edge - anchor.offset)
        self._holding = False

    def keep(self, anchor: Anchor) -> None:
        """Have an edge of a turn at a place, and keep it there."""
        self.following, self.anchor = False, anchor
        self.settle()

    def topmost(self) -> Anchor | None:
        """The first turn that is seen, and where."""
        value = self.verticalScrollBar().value()
        for name, shown in self.column.turns.items():
            top = self.top_of(shown)
            if top + shown.height() > value:
                return Anchor(name, top - value)
        return None

    def _reading(self) -> Reading | None:
        """The first line that is seen, which is not where it was once its font is another."""
        anchor = None if self.following else self.topmost()
        if anchor is None:
            return None
        shown, top = self.column.turns[anchor.id], self.verticalScrollBar().value()
        texts = [text for text in shown.findChildren(Text) if text.isVisible()]
        texts.sort(key=lambda text: text.mapTo(self._page, QPoint()).y())
        for text in texts:
            at = text.mapFrom(self._page, QPoint(0, top))
            if at.y() < text.height() or text is texts[-1]:
                cursor = text.cursorForPosition(QPoint(0, max(at.y(), 0)))
                offset = text.cursorRect(cursor).top() - at.y()
                return Reading(anchor.id, text, cursor.position(), offset)
        return None

    def _return_to(self, read: Reading) -> None:
        """Have a line where it was, of the turn that keeps its place from now on."""
        cursor = read.text.textCursor()
        cursor.setPosition(min(read.position, read.text.document().characterCount() - 1))
        shown = self.column.turns[read.id]
        line = read.text.mapTo(shown, QPoint(0, read.text.cursorRect(cursor).top())).y()
        self.keep(Anchor(read.id, read.offset - line))

    def top_of(self, shown: Shown) -> int:
        """Pixels from the beginning of what is built to a turn."""
        return shown.y() + self.column.y()

    def away(self) -> int:
        """Pixels of what is built that lie below the view."""
        return self.verticalScrollBar().maximum() - self.verticalScrollBar().value()

    def reveal(self, part: QWidget) -> None:
        """Scroll no more than it takes to see `part`, its beginning if not all of it fits."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        top = part.mapTo(self._page, part.rect().topLeft()).y()
        bar, page = self.verticalScrollBar(), self.viewport().height()
        bottom = top + part.height() + NEAR - page
        bar.setValue(min(max(bar.value(), bottom), max(top - NEAR, 0)))

    def reveal_caret(self, field: QWidget) -> None:
        """Scroll no more than it takes to see the caret of `field`, which may be higher than the
        view."""
        caret = field.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
        top = field.mapTo(self._page, caret.topLeft()).y()
        bar, page = self.verticalScrollBar(), self.viewport().height()
        bottom = top + caret.height() + NEAR - page
        bar.setValue(min(max(bar.value(), bottom), top - NEAR))

    def reveal_line(self, part: QWidget, y: int) -> None:
        """Scroll to what is `y` pixels below the top of `part`, unless it is well in view."""
        line = part.mapTo(self._page, QPoint(0, y)).y()
        bar, page = self.verticalScrollBar(), self.viewport().height()
        if not bar.value() + page // 8 <= line <= bar.value() + page * 3 // 4:
            bar.setValue(line - page // 3)

    def leave_above(self, high: int) -> None:
        """Leave so many pixels free above the view."""
        self.setViewportMargins(0, high, 0, 0)

    def _is_at_end(self) -> bool:
        """Whether the end of all there is, is seen."""
        return self.away() <= NEAR

    def _moved(self) -> None:
        if not self._holding:
            self.following = self._is_at_end()
            self.anchor = self.topmost()
            self.moved.emit()

    def _ranged(self) -> None:
        self._leave_room()
        self.hold()
        self.resettled.emit()

    def _leave_room(self) -> None:
        # The bar's room is kept while there is none: the column stands still, centred.
        left, right = MARGIN + BAR, MARGIN + BAR * (self.verticalScrollBar().maximum() == 0)
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            left, right = right, left
        self._row.setContentsMargins(left, 0, right, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.hold()
        self.resettled.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._leave_room()

    def note_place(self) -> None:
        """The fonts are about to change."""
        self._read = self._reading()

    def fit_font(self) -> None:
        """What was read is read on."""
        read, self._read = self._read, None
        self.settle()
        if read is not None and read.id in self.column.turns:
            self._return_to(read)
