"""What went wrong, as state: the one bar above the composer shows it.

Knows what can be done about which failure; the words of a failure come from the engine.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal

from app import report, resources
from app.viewmodels.binding import Property
from engine.errors import Reason


class Action(StrEnum):
    """What a bar's button does."""

    NEW_CHAT = "new_chat"
    USE_SHORTER_CONTEXT = "use_shorter_context"
    NO_DRAFT = "no_draft"
    CHOOSE_MODEL = "choose_model"
    OPEN_LOG = "open_log"
    LOAD_CHATS_MODEL = "load_chats_model"
    ANSWER = "answer"
    OPEN_REPORT = "open_report"
    GRAPHICS_CARD = "graphics_card"


# What helps, by the engine's code; where nothing stands here, the sentence says what helps, or
# nothing does.
HELP: dict[Action, tuple[str, ...]] = {
    Action.NEW_CHAT: ("context_full", "context_reached", "foreign_token", "no_memory"),
    Action.USE_SHORTER_CONTEXT: ("no_memory", "no_memory_loading"),
    Action.NO_DRAFT: ("no_memory", "draft_failed", "draft_lacks_token", "draft_context_full"),
    Action.CHOOSE_MODEL: (
        *("no_target", "cannot_answer", "cannot_load", "load_failed", "not_a_number"),
        *("template_refused", "template_long", "template_slow", "template_crashed"),
        *("file_missing", "file_damaged", "file_cut_off", "file_empty", "file_unreadable"),
        *("tensor_missing", "tensor_damaged", "no_tokenizer", "tokenizer_damaged", "pickle"),
        *("custom_code", "gguf_damaged", "gguf_cut_off", "gguf_architecture", "cannot_run"),
    ),
    Action.OPEN_LOG: ("unforeseen", "tokenizer_crashed"),
    Action.OPEN_REPORT: ("crashed",),
    Action.GRAPHICS_CARD: (
        *("addon_failed", "addon_damaged", "addon_ended_program", "addon_not_ours"),
    ),
}


@dataclass(frozen=True)
class Alert:
    """A sentence, what can be done, and the engine's own words where it was the engine's."""

    text: str
    actions: tuple[Action, ...] = ()
    reason: Reason | None = None

    def is_about(self, code: str) -> bool:
        """Whether the engine says it under this code."""
        return self.reason is not None and self.reason.code == code

    @property
    def details(self) -> tuple[str, ...]:
        """Code and values; empty where there are none."""
        if self.reason is None:
            return ()
        values = (f"{name}: {value}" for name, value in self.reason.values.items())
        return (self.reason.code, *values)


class Alerts(QObject):
    """The one alert that is shown, or None: what just failed, else the last of those that stand
    until they are read or no longer true.

    `private` tells what must not stand in a report: the texts of chats.
    """

    current_changed = Signal(object)
    closed = Signal(object)  # Alert: one that stood, and has been read
    current = Property[Alert | None](None)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.private: Callable[[], Iterable[str]] = lambda: ()
        self._passing: Alert | None = None
        self._standing: list[Alert] = []

    def show(self, text: str, *actions: Action) -> None:
        """Show a sentence in place of the one before, until something new begins."""
        self._pass(Alert(text, actions))

    def show_reason(self, reason: Reason, *actions: Action) -> None:
        """Show what the engine says; without `actions`, with those that help."""
        self._pass(_alert(reason, actions))

    def stand(self, reason: Reason, *actions: Action) -> None:
        """Show it until the user has closed it, or it is withdrawn."""
        self._standing.append(_alert(reason, actions))
        self._pass(None)

    def withdraw(self, code: str) -> None:
        """What stands under `code` is no longer true."""
        self._standing = [a for a in self._standing if not a.is_about(code)]
        self._show()

    def dismiss(self) -> None:
        """Something new begins: what just failed is of no interest any more."""
        self._pass(None)

    def close(self) -> None:
        """The user has read what is shown."""
        if self._passing is None and self._standing:
            self.closed.emit(self._standing.pop())
        self._pass(None)

    def report(self) -> str:
        """What a bug report needs of the alert that is shown: no chat text and no token."""
        details = self.current.details if self.current is not None else ()
        return report.report(details, self.private())

    def _pass(self, alert: Alert | None) -> None:
        self._passing = alert
        self._show()

    def _show(self) -> None:
        self.current = self._passing or next(reversed(self._standing), None)


def _alert(reason: Reason, actions: tuple[Action, ...]) -> Alert:
    helpful = tuple(action for action, codes in HELP.items() if reason.code in codes)
    return Alert(resources.translate(reason), actions or helpful, reason)
