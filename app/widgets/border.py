"""The line between the chat and what stands beside it, which can be dragged.

The part beside the chat draws the line; here is what is taken hold of, and how wide it wants that
part to be. How wide it is in the end, the window says, which knows its room.
"""

from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QWidget

from app import resources

DRAWN = 13  # pixels of the font's em in which spans are meant
REACH = 5  # pixels; from the line on as one reads, since scroll bars end before it


@dataclass(frozen=True)
class Span:
    """How wide a part is at first, at least and at most, in pixels; at first `ems` times the font's
    size, where that is more, and the others grow with it."""

    usual: int
    least: int
    most: int
    ems: int = 0

    def grown(self, width: int) -> int:
        """`width` in the font that is set."""
        return round(width * max(1.0, self.ems * resources.pixels() / self.usual))


class Border(QWidget):
    """Lies over the line that ends the part at the window's beginning, or, with `ending`, begins
    the part at its end. A double click gives the part its usual width again."""

    moved = Signal()

    def __init__(self, parent: QWidget, span: Span, *, ending: bool = False) -> None:
        super().__init__(parent)
        self._whole = parent
        self._span, self._ending = span, ending
        self.wanted = 0  # pixels; 0 for the usual
        self._width = self._room = span.usual
        self._grip: int | None = None  # the part's width less where the pointer took hold
        self.setCursor(Qt.CursorShape.SplitHCursor)

    @property
    def least(self) -> int:
        """The least width of the part: its words need more in a larger font, at most what is
        usual then."""
        words = round(self._span.least * max(1.0, resources.pixels() / DRAWN))
        return min(words, self._span.grown(self._span.usual))

    @property
    def most(self) -> int:
        """The greatest."""
        return self._span.grown(self._span.most)

    @property
    def grown(self) -> int:
        """By how much the usual width is more than in the usual font."""
        return self._span.grown(self._span.usual) - self._span.usual

    def wish(self) -> int:
        """The width that the part is to have, where there is room."""
        usual = self._span.usual + self.grown
        return min(max(self.wanted or usual, self.least), self.most)

    def want(self, width: int) -> None:
        """Have another width; 0 for the usual."""
        if width != self.wanted:
            self.wanted = width
            self.moved.emit()

    def fit(self, room: int) -> int:
        """The width that the part has where there is `room` for it."""
        self._room = max(self.least, room)
        self._width = min(self.wish(), self._room)
        return self._width

    def place(self, *, shown: bool) -> None:
        """Lie over the line, where the part is shown."""
        whole, width, mirrored = self._whole.rect(), self._width, self._is_mirrored()
        line = width - 1 if self._ending == mirrored else whole.width() - width
        self.setGeometry(line - REACH + 1 if mirrored else line, 0, REACH, whole.height())
        self.setVisible(shown)
        self.raise_()

    def _is_mirrored(self) -> bool:
        return self.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def _outward(self, event: QMouseEvent) -> int:
        """Where the pointer is, counted in the direction in which the part grows."""
        at = round(event.globalPosition().x())
        return at if self._ending == self._is_mirrored() else -at

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._grip = self._width - self._outward(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            width = self._grip + self._outward(event)
            self.want(max(self.least, min(width, self.most, self._room)))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.want(0)
