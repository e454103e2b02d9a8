"""Texts of a message whose paging keys scroll the transcript, as its wheel does."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent

from app.widgets.text import Answer, Text

SHORT = 2_000  # characters; what is longer takes all the width there is
ALL = 10_000  # pixels that are asked for where all there are is meant

KEYS = frozenset(
    {
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
    }
)


class PagedText(Text):
    """What a user wrote; it asks for no more width than its longest line takes."""

    def show_plain(self, text: str) -> None:
        super().show_plain(text)
        self.fit_font()

    def fit_font(self) -> None:
        """How wide it would be is asked of Qt, which takes its time for a long text."""
        document = self.document()
        document.setTextWidth(-1)
        short = document.characterCount() < SHORT
        self._ideal = round(document.idealWidth()) + 2 if short else ALL
        document.setTextWidth(self.viewport().width())
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(self._ideal, self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in KEYS:
            event.ignore()
        else:
            super().keyPressEvent(event)


class PagedAnswer(Answer):
    """What a model wrote."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in KEYS:
            event.ignore()
        else:
            super().keyPressEvent(event)
