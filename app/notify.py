"""Tells of a long answer that ended while another window is used.

Knows the window and how this system shows a message; of a chat no more than its title.
"""

import time

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app.settings import Settings

LONG = 10.0  # seconds that an answer takes for its end to be told
SHOWN_MS = 10_000


class Notifier(QObject):
    """`begin` when an answer begins, `end` when it ended, `follow` the settings."""

    def __init__(self, window: QWidget, settings: Settings) -> None:
        super().__init__(window)
        self._window = window
        self._wanted = settings.notifications
        self._began: float | None = None
        self._icon: QSystemTrayIcon | None = None

    def follow(self, settings: Settings) -> None:
        """Tell, or do not, as these settings say."""
        self._wanted = settings.notifications

    def begin(self) -> None:
        """An answer begins."""
        self._began = time.monotonic()

    def end(self, title: str, complete: bool) -> None:
        """It ended, in the chat called `title`, as it should or not."""
        began, self._began = self._began, None
        late = began is not None and time.monotonic() - began >= LONG
        if late and self._wanted and not self._window.isActiveWindow():
            self._tell(title, complete)

    def _tell(self, title: str, complete: bool) -> None:
        QApplication.alert(self._window)
        if not (QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()):
            return
        if self._icon is None:
            self._icon = QSystemTrayIcon(self._window.windowIcon(), self)
            self._icon.messageClicked.connect(self._come)
        # It can send messages only while it is shown; when the window is used it goes again.
        self._icon.show()
        said = (
            self.tr("The answer is complete.") if complete else self.tr("The answer ended early.")
        )
        self._icon.showMessage(title, said, msecs=SHOWN_MS)

    def rest(self) -> None:
        """The window is used again."""
        if self._icon is not None:
            self._icon.hide()

    def _come(self) -> None:
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()
