"""The text that is being written in the composer: its keys, earlier questions, files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QFocusEvent, QGuiApplication, QKeyEvent, QTextCursor

from app import resources
from app.widgets.field import Field

LINES = 8
LONG = 20_000  # characters; a longer paste is a file

Recall = Callable[[bool, Sequence[str]], str | None]


def files_of(data: QMimeData) -> list[Path]:
    """The files of this machine in a paste or drop."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


class ComposerField(Field):
    """`recall` is asked for the earlier question before or after the one shown, given those of
    the chat, which `questions` tells."""

    submitted = Signal()
    focused = Signal()
    files_came = Signal(list)  # list[Path]
    long_came = Signal(str)
    unreadable_came = Signal()

    def __init__(self, recall: Recall) -> None:
        super().__init__(resources.font("reading"), lines=LINES)
        self._recall = recall
        self.questions: Callable[[], Sequence[str]] = tuple
        self.setAccessibleName(self.tr("Message"))
        self.setCursorWidth(2)

    def paste_as_text(self) -> None:
        """The clipboard's text, however long, cut where it must be."""
        self.insert(QGuiApplication.clipboard().text())

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or source.hasText() or source.hasImage()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste or drop: files and long texts go elsewhere, laying them out would block."""
        files, text = files_of(source), source.text()
        if files:
            self.files_came.emit(files)
        elif len(text) > LONG:
            self.long_came.emit(text)
        elif text:
            self.insert(text)
        elif source.hasImage():
            self.unreadable_came.emit()

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = event.key(), event.modifiers()
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        if enter and modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        elif enter:
            self.submitted.emit()
        elif key == Qt.Key.Key_V and modifiers == both:
            self.paste_as_text()
        elif not (key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._walk(event)):
            super().keyPressEvent(event)

    def _walk(self, event: QKeyEvent) -> bool:
        """Up in the first line, Down in the last: another question, if there is one to recall."""
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if self.input_method.composing or plain != Qt.KeyboardModifier.NoModifier:
            return False
        back = event.key() == Qt.Key.Key_Up
        moves = QTextCursor.MoveOperation
        if self.textCursor().movePosition(moves.Up if back else moves.Down):
            return False
        text = self._recall(back, self.questions())
        if text is None:
            return False
        self.setPlainText(text)
        self.moveCursor(moves.End)
        return True

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files are for the whole composer, which shows that it takes them."""
        if files_of(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit()
