"""Where the window was, how large its dialogs and how wide what can be dragged in it, kept between
two starts.

Whatever is followed is kept soon after it changes, so that it is not lost with a program that
does not end cleanly. The file is its own, beside the settings.
"""

import contextlib
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import (
    QByteArray,
    QEvent,
    QObject,
    QRect,
    QSettings,
    QSize,
    QTimer,
    SignalInstance,
)
from PySide6.QtWidgets import QWidget

from app import paths

FILE_NAME = "window.ini"
SEEN = 64  # pixels of a window, in both directions, that must lie on a screen
REST_MS = 1000  # without a change, after which what is followed is written
TURNS = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.WindowStateChange)


class Draggable(Protocol):
    """A border between two parts of the window."""

    @property
    def wanted(self) -> int:
        """Where it was dragged to; 0 for nowhere."""

    @property
    def moved(self) -> SignalInstance: ...

    def want(self, width: int) -> None: ...


class Geometry(QObject):
    """The file in `folder`; one that cannot be read or written is as none."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._kept = QSettings(str(folder / FILE_NAME), QSettings.Format.IniFormat)
        self._window: QWidget | None = None
        self._dialogs: dict[str, tuple[QWidget, QSize]] = {}  # with the size that it has at first
        self._borders: dict[str, Draggable] = {}
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self.save)

    def follow_window(self, window: QWidget) -> None:
        """Put `window` where it was, as far as that is on a screen, and keep where it goes."""
        self._window = window
        place = self._kept.value("window")
        window.restoreGeometry(place if isinstance(place, QByteArray) else QByteArray())
        mend(window)
        window.installEventFilter(self)

    def follow_dialog(self, name: str, dialog: QWidget) -> None:
        """Give a dialog the size that it was given, and keep its next one."""
        self._dialogs[name] = dialog, dialog.size()
        size = self._kept.value(f"dialog/{name}")
        if isinstance(size, QSize) and size.isValid():
            room = dialog.screen().availableGeometry().size()
            dialog.resize(size.boundedTo(room).expandedTo(dialog.minimumSize()))
        dialog.installEventFilter(self)

    def follow_border(self, name: str, border: Draggable) -> None:
        """Put a border where it was dragged to, and keep where it goes."""
        self._borders[name] = border
        with contextlib.suppress(TypeError, ValueError):
            border.want(int(str(self._kept.value(f"border/{name}"))))
        border.moved.connect(self._rest.start)

    def save(self) -> None:
        """Write what is followed, as it is now."""
        self._rest.stop()
        if self._window is not None:
            self._kept.setValue("window", self._window.saveGeometry())
        for name, (dialog, first) in self._dialogs.items():
            self._put(f"dialog/{name}", dialog.size() if dialog.size() != first else None)
        for name, border in self._borders.items():
            self._put(f"border/{name}", border.wanted or None)
        with contextlib.suppress(OSError):
            paths.ensure(self._folder)
        self._kept.sync()

    def _put(self, key: str, value: QSize | int | None) -> None:
        """Keep `value`; nothing where all is as it was made."""
        if value is None:
            self._kept.remove(key)
        else:
            self._kept.setValue(key, value)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in TURNS:
            self._rest.start()
        elif event.type() == QEvent.Type.Close and watched is self._window:
            self.save()
        return False


def mend(window: QWidget) -> None:
    """Bring a window that nobody would find back onto a screen, no larger than that."""
    if window.isMaximized() or window.isFullScreen():
        return
    place = window.geometry()
    rooms = [screen.availableGeometry() for screen in window.screen().virtualSiblings()]
    if any(_is_seen(place, room) for room in rooms):
        return
    room = window.screen().availableGeometry()
    size = place.size().boundedTo(QSize(room.width(), room.height()))
    found = QRect(room.topLeft(), size)
    found.moveCenter(room.center())
    window.setGeometry(found)


def _is_seen(place: QRect, room: QRect) -> bool:
    """Whether enough of the window's upper edge, by which it is moved, lies in `room`."""
    shared = room.intersected(place)
    top = room.top() <= place.top() <= room.bottom() - SEEN
    return top and shared.width() >= SEEN and shared.height() >= SEEN
