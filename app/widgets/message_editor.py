"""A question that is written anew in its place: a field, Save and Cancel.

Says what is to be saved; whether it is, the caller decides.
"""

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app import resources
from app.widgets.common import Button, label, takes_escape
from app.widgets.paged import ALL

LINES = 14  # of the field; more are scrolled to


class MessageEditor(QWidget):
    """Ctrl+Enter saves, Esc leaves."""

    saved = Signal(str)
    left = Signal()
    resized = Signal()
    moved = Signal()  # the caret

    def __init__(self, text: str) -> None:
        super().__init__()
        self.field = _Field(text)
        self.field.setAccessibleName(self.tr("Your message"))
        self.cancel = Button(self.tr("Cancel"), kind="small")
        self.save = Button(self.tr("Save"), kind="small")
        self.save.setToolTip(self.tr("Asks this instead. What was there stays as a version."))
        self._hint = label("", "caption", "text2", wrap=True)
        self._hint.hide()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._hint, 1)
        row.addStretch()
        row.addWidget(self.cancel)
        row.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.field)
        column.addLayout(row)
        self.setFocusProxy(self.field)
        self.cancel.clicked.connect(self.left)
        self.save.clicked.connect(self._save)
        self.field.saved.connect(self._save)
        self.field.left.connect(self.left)
        self.field.textChanged.connect(self._check)
        self.field.resized.connect(self.resized)
        self.field.cursorPositionChanged.connect(self.moved)
        self._check()

    def sizeHint(self) -> QSize:
        return QSize(ALL, super().sizeHint().height())

    def refuse(self, why: str) -> None:
        """Say why it was not saved."""
        self._hint.setText(why)
        self._hint.show()

    def _check(self) -> None:
        self.save.setEnabled(bool(self.field.toPlainText().strip()))
        self._hint.hide()

    def _save(self) -> None:
        if self.save.isEnabled():
            self.saved.emit(self.field.toPlainText())


class _Field(QPlainTextEdit):
    """As high as its text, up to a limit."""

    saved = Signal()
    left = Signal()
    resized = Signal()

    def __init__(self, text: str) -> None:
        super().__init__()
        self.setFont(resources.font("reading"))
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.setPlainText(text)
        self.moveCursor(QTextCursor.MoveOperation.End)
        self.document().documentLayout().documentSizeChanged.connect(self.fit_font)
        self.fit_font()

    def fit_font(self, *_: object) -> None:
        """As high as its lines."""
        lines = round(self.document().size().height())  # that layout counts in lines
        high = min(max(lines, 1), LINES) * self.fontMetrics().lineSpacing() + 4
        if high != self.height():
            self.setFixedHeight(high)
            self.resized.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # In another width it is another line, in another height another part is seen.
        self.ensureCursorVisible()

    def event(self, event: QEvent) -> bool:
        # Else the window's own use of Esc, to stop, would come first.
        return takes_escape(event) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        elif enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.saved.emit()
        else:
            super().keyPressEvent(event)
