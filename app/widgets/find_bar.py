"""Find in this chat: a field above the transcript, with how many places there are.

Knows nothing of turns; it asks, and is told a count.
"""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.viewmodels import words
from app.widgets.common import IconButton, label, rule, takes_escape
from app.widgets.input_method import InputMethod

WIDTH = 720


class FindBar(QWidget):
    """Enter goes on, Shift+Enter back, Esc closes."""

    asked = Signal(str, bool)  # a text, and whether the one before is meant
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("centre")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.field = _Field()
        InputMethod(self.field)
        self.field.setPlaceholderText(self.tr("Find in this chat"))
        self.field.setAccessibleName(self.tr("Find in this chat"))
        self.count = label("", "caption", "text2", tabular=True)
        self.back = IconButton(self.tr("Previous place"), "chevron-up")
        self.on = IconButton(self.tr("Next place"), "chevron-down")
        self.close_button = IconButton(self.tr("Close"), "x")
        inner = QHBoxLayout()
        inner.setContentsMargins(0, 8, 0, 8)
        inner.setSpacing(4)
        inner.addWidget(self.field, 1)
        inner.addSpacing(8)
        for widget in (self.count, self.back, self.on, self.close_button):
            inner.addWidget(widget)
        held = QWidget()
        held.setLayout(inner)
        held.setMaximumWidth(WIDTH)
        row = QHBoxLayout()
        row.setContentsMargins(50, 0, 50, 0)
        row.addStretch(1)
        row.addWidget(held, 1000)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(rule())
        self.field.textChanged.connect(lambda text: self.asked.emit(text, False))
        self.field.stepped.connect(self._step)
        self.field.left.connect(self.closed)
        self.back.clicked.connect(lambda: self._step(True))
        self.on.clicked.connect(lambda: self._step(False))
        self.close_button.clicked.connect(self.closed)
        self.hide()

    def open(self) -> None:
        """Show it with the last text, ready to be written over."""
        self.adjustSize()
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        if self.field.text():
            self.asked.emit(self.field.text(), False)

    def show_count(self, place: int, total: int, whole: bool) -> None:
        """ "3 of 12"; while not all are counted, "3 of 12 or more"."""
        if not self.field.text():
            said = ""
        elif not total:
            said = self.tr("Not found") if whole else ""
        else:
            many = self.tr("{place} of {total}") if whole else self.tr("{place} of {total} or more")
            said = many.format(place=words.grouped(place), total=words.grouped(total))
        self.count.setText(said)
        self.field.setAccessibleDescription(said)
        for button in (self.back, self.on):
            button.setEnabled(total > 0)

    def _step(self, backwards: bool) -> None:
        self.asked.emit(self.field.text(), backwards)


class _Field(QLineEdit):
    stepped = Signal(bool)
    left = Signal()

    def event(self, event: QEvent) -> bool:
        # Else the window's own use of Esc, to stop, would come first.
        return takes_escape(event) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().keyPressEvent(event)
