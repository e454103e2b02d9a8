"""A field for some lines of plain text, with the border and the focus ring of a one-line field."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout

from app import resources
from app.widgets.field import Field, Room

RADIUS = 6


class TextBox(QFrame):
    """`edit` is the text itself, of `most` characters; Tab leaves it. It is at least `lines` high,
    or just so high."""

    def __init__(
        self, name: str, lines: int, *, most: int, grows: bool = False, code: bool = False
    ) -> None:
        super().__init__()
        self.edit = Field(resources.code_font() if code else resources.font("body"), most=most)
        self.edit.setAccessibleName(name)
        self.edit.installEventFilter(self)
        self._lines, self._grows = lines, grows
        self.fit_font()
        column = QVBoxLayout(self)
        column.setContentsMargins(9, 6, 3, 6)
        column.addWidget(self.edit)
        column.addWidget(Room(self.edit))
        self.setFocusProxy(self.edit)

    def fit_font(self) -> None:
        """As high as its lines."""
        height = self._lines * QFontMetrics(self.edit.font()).lineSpacing() + 2
        self.edit.setMinimumHeight(height)
        if not self._grows:
            self.edit.setMaximumHeight(height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.edit.hasFocus()
        width = 2 if focused else 1
        painter.setPen(QPen(resources.colour("accent" if focused else "control"), width))
        painter.setBrush(resources.colour("base"))
        box = self.rect().toRectF()
        inset = width / 2
        painter.drawRoundedRect(box.adjusted(inset, inset, -inset, -inset), RADIUS, RADIUS)
