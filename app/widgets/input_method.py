"""Keys while an input method composes: they are its own, in every field.

Platforms differ in whether such keys reach the field at all; where they do, nothing may happen.
"""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QWidget

KEYS = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape})


class InputMethod(QObject):
    """Keeps Enter and Escape from `field`, and from the window's shortcuts, while `composing`."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self.composing = False
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QInputMethodEvent):
            self.composing = bool(event.preeditString())
        elif self.composing and isinstance(event, QKeyEvent) and event.key() in KEYS:
            event.accept()
            return True
        return False
