"""The file of settings while the window is open: what a terminal command sets there is taken up.

Knows the table of settings, and no widget.
"""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

from app import paths, settings
from app.settings import TABLE, Settings


class SettingsFile(QObject):
    """Writes what the window sets, and tells what others did."""

    set_elsewhere = Signal(str, object)  # the name of a setting of the table, and its value

    def __init__(self, folder: Path, kept: Settings, parent: QObject | None = None) -> None:
        """`kept` was read from the file in `folder`."""
        super().__init__(parent)
        self._folder, self._known = folder, kept
        self._watch = QFileSystemWatcher(self)
        with contextlib.suppress(OSError):  # a folder that cannot be made: saving will tell
            # the folder, for with each change the file is another one
            self._watch.addPath(str(paths.ensure(folder)))
        self._watch.directoryChanged.connect(self.look)

    def save(self, wanted: Settings) -> None:
        """Write `wanted`, and with it what was set elsewhere meanwhile. Raises OSError."""
        found = self._found()
        written = replace(wanted, **found)
        settings.save(written, paths.ensure(self._folder))
        self._known = written
        self._tell(found)

    def look(self) -> None:
        """Take up what was set elsewhere."""
        found = self._found()
        self._known = replace(self._known, **found)
        self._tell(found)

    def _found(self) -> dict[str, Any]:
        """What stands in the file and is not from here; of one that cannot be read, nothing."""
        try:
            read = settings.read(self._folder)
        except (OSError, ValueError):
            return {}
        values = {entry.name: getattr(read, entry.name) for entry in TABLE}
        return {name: v for name, v in values.items() if v != getattr(self._known, name)}

    def _tell(self, found: dict[str, Any]) -> None:
        for name, value in found.items():
            self.set_elsewhere.emit(name, value)
