"""Chats, models and a counter that do what a test says, for the widgets of a chat."""

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.chats.conversation import Attachment, Choices
from app.settings import Settings
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Property
from app.viewmodels.chat import Chat
from app.viewmodels.overflow import Overflow
from app.viewmodels.presets import Presets
from app.viewmodels.turns import Turn
from app.viewmodels.writing import Writing
from app.worker import Worker
from engine.api import Loaded, Sampling, Usage
from tests.fakes import TARGET, info


@dataclass
class Said:
    """A turn, as far as the composer looks at it."""

    role: str
    text: str = ""
    usage: Usage = field(default_factory=Usage)


class FakeChat(QObject):
    """Takes questions and answers nothing; what was called is in `calls`."""

    question_returned = Signal(str, tuple)
    withdrawn = Signal()
    opened = Signal()
    cleared = Signal()
    answering_changed = Signal(object)
    can_send_changed = Signal(object)
    used_changed = Signal(object)
    choices_changed = Signal(object)
    chat_id_changed = Signal(object)
    overflow_changed = Signal(object)

    answering = Property[bool](False)
    can_send = Property[bool](True)
    used = Property[int](0)
    choices = Property[Choices](Choices())
    chat_id = Property[str]("")
    overflow = Property[Overflow | None](None)

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[Said] = []
        self.sent: list[tuple[str, tuple[Attachment, ...]]] = []
        self.calls: list[str] = []

    def send(self, text: str, attachments: tuple[Attachment, ...] = ()) -> bool:
        if not self.can_send or not (text.strip() or attachments):
            return False
        self.chat_id = self.chat_id or "first"
        self.turns.append(Said("user", text.strip()))
        self.sent.append((text, attachments))
        return True

    def choose(self, choices: Choices) -> None:
        self.choices = choices

    def show(self, name: str, *questions: str) -> None:
        """Another chat with these questions."""
        self.chat_id = name
        self.turns = [Said("user", question) for question in questions]
        (self.opened if name else self.cleared).emit()

    def stop(self) -> None:
        self.calls.append("stop")

    def drop_oldest(self) -> None:
        self.calls.append("drop_oldest")

    def summarise(self) -> None:
        self.calls.append("summarise")

    def dismiss_overflow(self) -> None:
        self.calls.append("dismiss_overflow")
        self.overflow = None


class ScriptedChat(Chat):
    """A chat without an engine: its turns are given, what is asked of it is noted."""

    def __init__(self) -> None:
        QObject.__init__(self)
        self._turns: list[Turn] = []
        self.asked: list[tuple[object, ...]] = []
        self.refuses = False
        self.rewritten = {}
        self.can_send = True
        self.chat_id = "one"

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    def say(self, turn: Turn) -> Turn:
        """Add a turn as the chat does."""
        self._turns.append(turn)
        self.turn_added.emit(turn)
        return turn

    def show_chat(self, turns: list[Turn], chat_id: str = "one") -> None:
        """Another chat, or another branch."""
        self._turns, self.chat_id = list(turns), chat_id
        self.opened.emit()

    def cut(self, at: int) -> None:
        """Take the turns from `at` on away."""
        gone, self._turns = self._turns[at:], self._turns[:at]
        for turn in reversed(gone):
            self.turn_removed.emit(turn)

    def edit(self, name: str, text: str, attachments: tuple[Attachment, ...] | None = None) -> bool:
        self.asked.append(("edit", name, text, attachments))
        return not self.refuses

    def regenerate(self, name: str, *, same: bool = False) -> None:
        self.asked.append(("regenerate", name, same))

    def resume(self, name: str) -> None:
        self.asked.append(("resume", name))

    def show_version(self, name: str) -> None:
        self.asked.append(("version", name))


class FakeModels(QObject):
    """A target is loaded, with the defaults of its files."""

    loaded_changed = Signal(object)
    loading_changed = Signal(object)
    fitting_changed = Signal(object)
    settings_changed = Signal(object)
    context_changed = Signal(object)

    loaded = Property[Loaded | None](None)
    loading = Property[str]("")
    fitting = Property[bool](False)
    settings = Property[Settings](Settings())
    context = Property[int](8_192)
    busy = False

    def load(self, defaults: Sampling = Sampling(temperature=0.7, top_p=0.95)) -> None:  # noqa: B008
        """A target with these defaults."""
        self.loaded = Loaded(info(TARGET), "cpu", "fp32", 8_192, "a vocabulary", defaults, 1, 0.5)


class FakeCounter(QObject):
    """A word is a token. With `held` it counts only when told to, by `release`."""

    tokens_changed = Signal(object)
    tokens = Property[int | None](0)
    about = False

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.counted: list[str] = []

    def count(self, text: str) -> None:
        self.counted.append(text)
        self.tokens = None
        if not self.held:
            self.release()

    def release(self) -> None:
        self.tokens = len(self.counted[-1].split())


class Desk:
    """All of it together, with a real worker for the files."""

    def __init__(self, folder: Path) -> None:
        self.chat, self.models, self.counter = FakeChat(), FakeModels(), FakeCounter()
        self.models.load()
        self.alerts = Alerts()
        self.worker = Worker(lambda: None)
        self.writing = Writing(self.worker, self.counter)
        self.presets = Presets(folder / "presets.toml")

    def close(self) -> None:
        """End the worker's threads."""
        self.worker.close()
