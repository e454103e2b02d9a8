"""A question that is written anew in its place: its files, a field, Save and Cancel.

Says what is to be saved; whether it is, the caller decides.
"""

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment
from app.viewmodels import text_files
from app.viewmodels.writing import Attached
from app.widgets.attachments import Chips
from app.widgets.common import Button, label, takes_escape
from app.widgets.field import Field, Room
from app.widgets.paged import ALL

LINES = 14  # of the field; more are scrolled to


class MessageEditor(QWidget):
    """Ctrl+Enter saves, Esc leaves."""

    saved = Signal(str, tuple)  # tuple[Attachment, ...]
    changed = Signal(str, tuple)
    left = Signal()
    resized = Signal()
    moved = Signal()  # the caret

    def __init__(self, text: str, attachments: tuple[Attachment, ...] = ()) -> None:
        super().__init__()
        self._attached = tuple(Attached(one, text_files.size_of(one.text)) for one in attachments)
        self.chips = Chips()
        self.chips.removed.connect(self._remove)
        self.field = _Field()
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
        column.addWidget(self.chips)
        column.addWidget(self.field)
        column.addWidget(Room(self.field))
        column.addLayout(row)
        self.setFocusProxy(self.field)
        self.chips.left.connect(self.field.setFocus)
        self.cancel.clicked.connect(self.left)
        self.save.clicked.connect(self._save)
        self.field.saved.connect(self._save)
        self.field.left.connect(self.left)
        self.field.textChanged.connect(self._check)
        self.field.resized.connect(self.resized)
        self.field.setPlainText(text)
        self.field.moveCursor(QTextCursor.MoveOperation.End)
        self.field.cursorPositionChanged.connect(self.moved)
        self.chips.show_files(self._attached)
        self._check()

    def sizeHint(self) -> QSize:
        return QSize(ALL, super().sizeHint().height())

    def refuse(self, why: str) -> None:
        """Say why it was not saved."""
        self._hint.setText(why)
        self._hint.show()

    def _check(self) -> None:
        self.save.setEnabled(bool(self._attached or self.field.text().strip()))
        self._hint.hide()
        self.changed.emit(*self._written())

    def _remove(self, attached: Attached) -> None:
        self._attached = tuple(one for one in self._attached if one is not attached)
        self.chips.show_files(self._attached)
        self._check()
        self.resized.emit()

    def _save(self) -> None:
        if self.save.isEnabled():
            self.saved.emit(*self._written())

    def _written(self) -> tuple[str, tuple[Attachment, ...]]:
        return self.field.text(), tuple(one.attachment for one in self._attached)


class _Field(Field):
    """As high as its text, up to a limit."""

    saved = Signal()
    left = Signal()

    def __init__(self) -> None:
        super().__init__(resources.font("reading"), lines=LINES)

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
