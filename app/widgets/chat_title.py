"""A chat's title over the transcript, changed in its place."""

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QSizePolicy, QWidget
from shiboken6 import isValid

from app import resources
from app.viewmodels.chat_lines import LONGEST_TITLE
from app.widgets.common import Elided, takes_escape
from app.widgets.input_method import InputMethod


class Title(QWidget):
    """A chat's title, or the field in which it is changed: Enter keeps it, Escape does not."""

    asked = Signal()
    changed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._before: QWidget | None = None  # had the focus, and gets it back
        self._left = True
        self._shown = Elided("title", mode=Qt.TextElideMode.ElideRight)
        self._shown.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.field = _Field(self)
        InputMethod(self.field)
        self.field.setFont(resources.font("title"))
        self.field.setAccessibleName(self.tr("Title of the chat"))
        self.field.setMaxLength(LONGEST_TITLE)
        self.field.left.connect(self._leave)
        self.field.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._shown, 1)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self._align()

    def _align(self) -> None:
        # As the window, whatever the direction of the title.
        sides = Qt.AlignmentFlag
        side = sides.AlignRight if self.isRightToLeft() else sides.AlignLeft
        self.field.setAlignment(side | sides.AlignAbsolute | sides.AlignVCenter)

    def show_text(self, title: str) -> None:
        """Show a title; one that is being changed is left alone."""
        self._text = title
        self._shown.show_text(title)

    def edit(self) -> None:
        """Show the field."""
        self._before, self._left = QApplication.focusWidget(), False
        self.field.setText(self._text)
        self.field.selectAll()
        self._place()
        self.field.show()
        self.field.raise_()
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _leave(self, keep: bool) -> None:
        before, self._before = self._before, None
        if self._left:
            return
        self._left = True  # giving the focus back makes the field tell once more
        if self.field.hasFocus() and before is not None and isValid(before):
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        self.field.hide()
        if keep and self.field.text() != self._text:
            self.changed.emit(self.field.text())

    def _place(self) -> None:
        # Its text stands where the title stood.
        height = self.field.sizeHint().height()
        width = min(self.width() + 10, 420)
        left = self.width() + 10 - width if self.isRightToLeft() else -10
        self.field.setParent(self.parentWidget())
        corner = self.mapToParent(QPoint(left, (self.height() - height) // 2))
        self.field.setGeometry(QRect(corner, QSize(width, height)))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._align()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.asked.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.field.isVisible():
            self._place()


class _Field(QLineEdit):
    """Tells when it is left, and whether what was typed is to be kept."""

    left = Signal(bool)

    def event(self, event: QEvent) -> bool:
        # Before the window's own Escape, which stops an answer.
        return takes_escape(event) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape):
            self.left.emit(event.key() != Qt.Key.Key_Escape)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self.left.emit(True)
