"""Where the window and what can be dragged in it were, kept between two starts.

Knows widgets by the names they are given here; what is kept is Qt's own bytes, in a file of its
own beside the settings.
"""

from pathlib import Path

from PySide6.QtCore import QByteArray, QRect, QSettings, QSize
from PySide6.QtWidgets import QSplitter, QWidget

FILE_NAME = "window.ini"
SEEN = 64  # pixels of a window, in both directions, that must lie on a screen


class Geometry:
    """The file in `folder`; one that cannot be read or written is as none."""

    def __init__(self, folder: Path) -> None:
        self._kept = QSettings(str(folder / FILE_NAME), QSettings.Format.IniFormat)

    def save(self, window: QWidget, **splitters: QSplitter) -> None:
        """Keep where `window` is, and the sizes in `splitters`."""
        self._kept.setValue("window", window.saveGeometry())
        for name, splitter in splitters.items():
            self._kept.setValue(f"splitter/{name}", splitter.saveState())
        self._kept.sync()

    def restore(self, window: QWidget, **splitters: QSplitter) -> None:
        """Put `window` where it was, as far as that is on a screen, and splitters likewise."""
        window.restoreGeometry(self._bytes("window"))
        mend(window)
        for name, splitter in splitters.items():
            splitter.restoreState(self._bytes(f"splitter/{name}"))

    def _bytes(self, name: str) -> QByteArray:
        value = self._kept.value(name)
        return value if isinstance(value, QByteArray) else QByteArray()


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
