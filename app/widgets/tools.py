"""Buttons beside a message, and the arrows between its versions.

The buttons step back until the pointer or the focus is near; their room is kept, so nothing moves
and every one of them is reached by Tab. Knows no turn and no view model.
"""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.widgets.common import IconButton, label, set_tone

SIZE = 26


class Versions(QWidget):
    """ "2 / 3" between two arrows."""

    chosen = Signal(str)  # the id of a version

    def __init__(self, ids: Sequence[str], current: str) -> None:
        super().__init__()
        self._idle = True
        self.earlier = IconButton(self.tr("Earlier version"), "", size=SIZE)
        self.later = IconButton(self.tr("Later version"), "", size=SIZE)
        self._place = label("", "caption", "text2", tabular=True)
        self.earlier.clicked.connect(lambda: self._step(-1))
        self.later.clicked.connect(lambda: self._step(1))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.earlier, self._place, self.later):
            row.addWidget(widget)
        self._dress()
        self.show_versions(ids, current)

    def show_versions(self, ids: Sequence[str], current: str) -> None:
        """Say which of `ids` is shown; `current` is one of them."""
        self._ids, self._current = tuple(ids), self._index(ids, current)
        said = self.tr("{number} / {count}")
        self._place.setText(said.format(number=self._current + 1, count=len(ids)))
        spoken = self.tr("Version {number} of {count}")
        spoken = spoken.format(number=self._current + 1, count=len(ids))
        self._place.setAccessibleName(spoken)
        for button in (self.earlier, self.later):
            button.setAccessibleDescription(spoken)
        self.set_idle(self._idle)

    def set_idle(self, idle: bool) -> None:
        """Versions are not changed while something is answered."""
        self._idle = idle
        self.earlier.setEnabled(idle and self._current > 0)
        self.later.setEnabled(idle and self._current < len(self._ids) - 1)

    def set_tone(self, tone: str) -> None:
        """Another colour of the numbers."""
        set_tone(self._place, tone)

    def focus(self, later: bool) -> None:
        """Put the focus on an arrow, on the other one where that has come to its end."""
        first, second = (self.later, self.earlier) if later else (self.earlier, self.later)
        (first if first.isEnabled() else second).setFocus(Qt.FocusReason.TabFocusReason)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._dress()

    def _dress(self) -> None:
        names = ("chevron-left", "chevron-right")
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        self.earlier.set_icon(names[mirrored])
        self.later.set_icon(names[not mirrored])

    def _step(self, by: int) -> None:
        at = self._current + by
        if 0 <= at < len(self._ids):
            self.chosen.emit(self._ids[at])

    @staticmethod
    def _index(ids: Sequence[str], current: str) -> int:
        return ids.index(current) if current in ids else len(ids) - 1


class Tools(QWidget):
    """Versions, then icon buttons."""

    version_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.versions: Versions | None = None
        self._buttons: dict[IconButton, str] = {}
        self._off: set[IconButton] = set()
        self._near, self._ready, self._idle = False, True, True
        self._tone = "text2"
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)

    def add(self, name: str, icon: str) -> IconButton:
        """A button at the end of the row."""
        button = _Tool(name, self)
        self._buttons[button] = icon
        self._row.addWidget(button)
        return button

    def show_versions(self, ids: Sequence[str], current: str) -> None:
        """The arrows, where there are several versions."""
        if len(ids) < 2:
            if self.versions is not None:
                self.versions.hide()
            return
        if self.versions is None:
            self.versions = Versions(ids, current)
            self.versions.chosen.connect(self.version_chosen)
            self._row.insertWidget(0, self.versions)
            self.set_tone(self._tone)
        self.versions.show_versions(ids, current)
        self.versions.set_idle(self._idle)
        self.versions.show()

    def set_tone(self, tone: str) -> None:
        """The colour of the version's number."""
        self._tone = tone
        if self.versions is not None:
            self.versions.set_tone(tone)

    def set_near(self, near: bool) -> None:
        """Show the buttons, or only what has the focus."""
        self._near = near
        self.update_icons()

    def set_ready(self, ready: bool) -> None:
        """Without it there is nothing yet for the buttons to work on."""
        self._ready = ready
        self.update_icons()

    def set_idle(self, idle: bool) -> None:
        """Whether nothing is answered now."""
        self._idle = idle
        if self.versions is not None:
            self.versions.set_idle(idle)

    def set_off(self, button: IconButton, off: bool) -> None:
        """There is nothing for `button` to do now."""
        (self._off.add if off else self._off.discard)(button)
        self.update_icons()

    def update_icons(self) -> None:
        """Show or hide the icons."""
        focused = any(button.hasFocus() for button in self._buttons)
        seen = self._ready and (self._near or focused)
        for button, icon in self._buttons.items():
            button.setEnabled(self._ready and button not in self._off)
            if seen or not button.icon().isNull():
                button.set_icon(icon if seen else "")


class _Tool(IconButton):
    """A button that is seen while it has the focus."""

    def __init__(self, name: str, tools: Tools) -> None:
        super().__init__(name, "", size=SIZE)
        self._tools = tools

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._tools.update_icons()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._tools.update_icons()
