"""The field in which chats are searched, with its keys as a hint while it is empty."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit

from app import resources
from app.widgets.common import LOOKS, takes_escape
from app.widgets.input_method import InputMethod

KEYS = "Ctrl+K"
LENS = 14  # pixels


class Search(QLineEdit):
    """`down`: to the first result; `entered`: open it."""

    down = Signal()
    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        InputMethod(self)
        self._clear = QAction(self.tr("Clear the search"), self)
        self.setPlaceholderText(self.tr("Search chats"))
        self.setAccessibleName(self.tr("Search chats"))
        self.setFont(resources.font())
        self.setMaxLength(200)
        self._make_room()
        self._clear.triggered.connect(self.clear)
        self.textChanged.connect(self._update_clear)
        self._dress()

    def _update_clear(self, text: str) -> None:
        if bool(text) != (self._clear in self.actions()):
            if text:
                self.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
            else:
                self.removeAction(self._clear)

    def _make_room(self) -> None:
        """For the lens."""
        sides = Qt.AlignmentFlag
        mirrored = self.isRightToLeft()
        side = sides.AlignRight if mirrored else sides.AlignLeft
        self.setAlignment(side | sides.AlignAbsolute | sides.AlignVCenter)
        room = resources.scaled(LENS) + 6
        self.setTextMargins(0 if mirrored else room, 0, room if mirrored else 0, 0)

    def _dress(self) -> None:
        self._clear.setIcon(resources.icon("x", "text2"))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in LOOKS:
            self._dress()
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.LayoutDirectionChange):
            self._make_room()

    def event(self, event: QEvent) -> bool:
        # Escape empties the field before it stops an answer.
        return (bool(self.text()) and takes_escape(event)) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.down.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        mirrored = self.isRightToLeft()
        size = resources.scaled(LENS)
        left = self.width() - size - 9 if mirrored else 9
        ink, ratio = resources.colour("text2"), self.devicePixelRatioF()
        drawn = resources.pixmap("search", ink, LENS, ratio)
        painter.drawPixmap(left, (self.height() - size) // 2, drawn)
        if self.text():
            return
        painter.setFont(resources.font("small"))
        painter.setPen(resources.colour("text3"))
        taken = QFontMetrics(self.font()).horizontalAdvance(self.placeholderText())
        keys = hint()
        width = QFontMetrics(painter.font()).horizontalAdvance(keys)
        if taken + width + size + 48 < self.width():
            # The painter mirrors what is aligned.
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(self.rect().adjusted(9, 0, -9, 0), side, keys)


def hint() -> str:
    """The keys as keyboards of the language in force have them: "Ctrl+K", "Strg+K"."""
    return QKeySequence(KEYS).toString(QKeySequence.SequenceFormat.NativeText)
