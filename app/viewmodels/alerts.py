"""What went wrong, as state: the one bar above the composer shows it."""

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal

from app.viewmodels.binding import Property
from engine.errors import Reason


class Action(StrEnum):
    """What a bar's button does."""

    NONE = "none"
    NEW_CHAT = "new_chat"


@dataclass(frozen=True)
class Alert:
    """A sentence and what can be done."""

    text: str
    action: Action = Action.NONE


class Alerts(QObject):
    """The one alert that is shown, or None."""

    current_changed = Signal(object)
    current = Property[Alert | None](None)

    def show(self, text: str, action: Action = Action.NONE) -> None:
        """Show a sentence in place of the one before."""
        self.current = Alert(text, action)

    def show_reason(self, reason: Reason, action: Action = Action.NONE) -> None:
        """Show what the engine says."""
        self.show(reason.text, action)

    def dismiss(self) -> None:
        """Take the bar away."""
        self.current = None
