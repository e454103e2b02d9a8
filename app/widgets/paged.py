"""Texts of a message whose paging keys scroll the transcript, as its wheel does."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from app.widgets.text import Answer, Text

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
    """What a user wrote."""

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
