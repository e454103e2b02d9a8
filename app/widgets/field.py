"""The text that is being written: keys, input methods, pastes and drops.

Knows how much text Qt lays out in time; not what becomes of it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from app import resources

MAX_LINES = 8
MAX_CHARACTERS = 100_000
MAX_WORD = 5_000
LONG = 20_000  # characters; a longer paste is a file

Recall = Callable[[bool, Sequence[str]], str | None]


def files_of(data: QMimeData) -> list[Path]:
    """The files of this machine in a paste or drop."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


class Field(QPlainTextEdit):
    """The text itself. `recall` is asked for the earlier question before or after the one shown,
    given those of the chat, which `questions` tells."""

    submitted = Signal()
    focused = Signal()
    shortened = Signal()
    files_came = Signal(list)  # list[Path]
    long_came = Signal(str)
    unreadable_came = Signal()

    def __init__(self, recall: Recall) -> None:
        super().__init__()
        self._recall = recall
        self.questions: Callable[[], Sequence[str]] = tuple
        self._composing = False
        self.setAccessibleName(self.tr("Message"))
        self.setFont(resources.font("reading"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setCursorWidth(2)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self.fit_font)
        self.textChanged.connect(self._shorten)
        self.fit_font()

    def paste_as_text(self) -> None:
        """The clipboard's text, however long, cut where it must be."""
        self._insert(QGuiApplication.clipboard().text())

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
            self._insert(text)
        elif source.hasImage():
            self.unreadable_came.emit()

    def _insert(self, text: str) -> None:
        cursor = self.textCursor()
        kept = self.document().characterCount() - 1 - len(cursor.selectedText())
        room = max(MAX_CHARACTERS - kept, 0)
        self._wrap_for(text[:room])
        self.insertPlainText(text[:room])
        self.ensureCursorVisible()
        if len(text) > room:
            self.shortened.emit()

    def setPlainText(self, text: str) -> None:
        cut = text[:MAX_CHARACTERS]
        self._wrap_for(cut)
        super().setPlainText(cut)
        if cut != text:
            self.shortened.emit()

    def clear(self) -> None:
        self._wrap_for("")
        super().clear()

    def _wrap_for(self, text: str) -> None:
        """Qt takes quadratic time to find that an endless word cannot be wrapped elsewhere."""
        modes = QTextOption.WrapMode
        endless = max(map(len, text.split()), default=0) > MAX_WORD
        if endless or not text:
            self.setWordWrapMode(
                modes.WrapAnywhere if endless else modes.WrapAtWordBoundaryOrAnywhere
            )

    def _shorten(self) -> None:
        """Typed or put in by an input method: what is too much is taken from the end."""
        document = self.document()
        if document.characterCount() - 1 <= MAX_CHARACTERS:
            return
        cursor = QTextCursor(document)
        cursor.setPosition(MAX_CHARACTERS)
        cursor.movePosition(cursor.MoveOperation.End, cursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self.shortened.emit()

    def fit_font(self, *_: object) -> None:
        """As high as its lines, up to eight of them."""
        line = QFontMetrics(self.font()).lineSpacing()
        # QPlainTextEdit measures its document in lines.
        lines = min(max(round(self.document().size().height()), 1), MAX_LINES)
        policies = Qt.ScrollBarPolicy
        full = lines == MAX_LINES
        # Where it scrolls, no part of the next line is to be seen.
        self.setFixedHeight(lines * line + (1 if full else 6))
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAsNeeded if full else policies.ScrollBarAlwaysOff
        )

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = event.key(), event.modifiers()
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        if enter and self._composing:
            event.accept()
        elif enter and modifiers & Qt.KeyboardModifier.ShiftModifier:
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
        if self._composing or plain != Qt.KeyboardModifier.NoModifier:
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_font()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit()
