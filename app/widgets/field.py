"""A field for plain text, wherever one writes more than a line: pastes, bounds, input methods.

Knows how much text Qt lays out in time; not what becomes of it.
"""

import math

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFont, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit

from app import resources
from app.viewmodels import words
from app.widgets.input_method import InputMethod

MAX_CHARACTERS = 100_000
MAX_WORD = 5_000
NEAR = 0.9  # of the characters that fit; from here on they are told

# Shift+Enter and pastes may bring the second one.
_LINE_ENDS = {0x2029: "\n", 0x2028: "\n"}


class Field(QPlainTextEdit):
    """Holds `most` characters; `shortened` tells that there were more. With `lines` it is as high
    as its text, up to so many, and `resized` tells; else as high as its place."""

    shortened = Signal()
    resized = Signal()

    def __init__(self, font: QFont, *, most: int = MAX_CHARACTERS, lines: int = 0) -> None:
        super().__init__()
        self.most, self._lines = most, lines
        self.input_method = InputMethod(self)
        self.setFont(font)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self._shorten)
        if lines:
            self.document().documentLayout().documentSizeChanged.connect(self.fit_font)
            self.fit_font()

    def text(self) -> str:
        """What was written, as it was: `toPlainText` makes blanks of no-break spaces."""
        return self.document().toRawText().translate(_LINE_ENDS)

    def count(self) -> int:
        """How many of the `most` characters there are."""
        return self.document().characterCount() - 1

    def setPlainText(self, text: str) -> None:
        cut = text[: self.most]
        self._wrap_anywhere(_has_endless_word(cut))
        super().setPlainText(cut)
        if cut != text:
            self.shortened.emit()

    def clear(self) -> None:
        self._wrap_anywhere(False)
        super().clear()

    def insert(self, text: str) -> None:
        """Put `text` in place of what is selected, as much of it as fits."""
        cursor = self.textCursor()
        cut = text[: max(self.most - self.count() + len(cursor.selectedText()), 0)]
        if _has_endless_word(cursor.block().text() + cut):
            self._wrap_anywhere(True)
        self.insertPlainText(cut)
        self.ensureCursorVisible()
        if cut != text:
            self.shortened.emit()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """A paste or drop."""
        self.insert(source.text())

    def createMimeDataFromSelection(self) -> QMimeData:
        """The selected text as it was written."""
        copied = QMimeData()
        copied.setText(self.textCursor().selectedText().translate(_LINE_ENDS))
        return copied

    def _wrap_anywhere(self, endless: bool) -> None:
        """Qt takes quadratic time to find that an endless word cannot be wrapped elsewhere."""
        modes = QTextOption.WrapMode
        self.setWordWrapMode(modes.WrapAnywhere if endless else modes.WrapAtWordBoundaryOrAnywhere)

    def _shorten(self) -> None:
        """Typed or put in by an input method: what is too much is taken from the end."""
        if self.count() <= self.most:
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(self.most)
        cursor.movePosition(cursor.MoveOperation.End, cursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self.shortened.emit()

    def fit_font(self, *_: object) -> None:
        """As high as its lines, up to those it shows."""
        rows = self._rows()
        full = len(rows) == self._lines
        # Where it scrolls, no part of the next line is to be seen.
        high = math.ceil(sum(rows)) + (1 if full else 6)
        policies = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAsNeeded if full else policies.ScrollBarAlwaysOff
        )
        if high != self.minimumHeight():
            self.setFixedHeight(high)
            self.resized.emit()

    def _rows(self) -> list[float]:
        """The heights of the first lines, as they are laid out: a font's own may be another."""
        rows: list[float] = []
        block = self.document().firstBlock()
        while block.isValid() and len(rows) < self._lines:
            self.blockBoundingRect(block)  # lays it out
            layout = block.layout()
            count = min(layout.lineCount(), self._lines - len(rows))
            rows += [layout.lineAt(row).height() for row in range(count)]
            block = block.next()
        return rows

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._lines:
            self.fit_font()


class Room(QLabel):
    """ "47,000 of 50,000 characters", from where a field is nearly full; then that it was cut."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self._field = field
        self._cut = False
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setFont(resources.font("caption"))
        self.setProperty("tone", "text2")
        self.setWordWrap(True)
        self.hide()
        field.textChanged.connect(self._update)
        field.shortened.connect(self._tell_cut)

    def _update(self) -> None:
        # A character of two units that did not fit leaves one free.
        self._cut = self._cut and self._field.count() >= self._field.most - 1
        self._say()

    def _tell_cut(self) -> None:
        self._cut = True
        self._say()

    def _say(self) -> None:
        count, most = self._field.count(), self._field.most
        said = self.tr("{count} of {most} characters")
        if self._cut:
            said = self.tr("The text was cut at {most} characters.")
        self.setText(said.format(count=words.grouped(count), most=words.grouped(most)))
        self.setVisible(self._cut or count >= NEAR * most)


def _has_endless_word(text: str) -> bool:
    return max(map(len, text.split()), default=0) > MAX_WORD
