"""How much of the context the chat has used, what happens when it is full, and the choice then."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.settings import Overflow as WhenFull
from app.settings import Settings
from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.viewmodels.overflow import Overflow
from app.viewmodels.rows import Row
from app.viewmodels.writing import Tokens, Writing
from app.widgets.choices import ChoiceList
from app.widgets.common import Button, CardButton, Glyph, label, set_tone, tooltip
from app.widgets.meter import Meter
from app.widgets.preset_list import Flyout

HEIGHT = 20  # pixels at least; a larger font takes more
MENU_WIDTH = 330


class ContextMeter(QWidget):
    """ "649 of 8,192 tokens used" with what is being written, and "When full: ask me". `choose`
    is told what shall happen."""

    def __init__(
        self,
        chat: Chat,
        models: Models,
        writing: Writing,
        choose: Callable[[WhenFull], object],
    ) -> None:
        super().__init__()
        self._chat, self._models, self._writing = chat, models, writing
        self._meter = Meter(self.tr("Context used"))
        self._meter.setFixedWidth(96)
        self._text = label("", "caption", "text2", tabular=True)
        self._warning = Glyph("triangle-alert", "caution", 12)
        self.when_full = WhenFullButton(models, choose)
        row = QHBoxLayout(self)
        # A spacing is mirrored where a margin is not.
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(10)
        row.addSpacing(8)
        row.addWidget(self._meter)
        row.addWidget(self._warning)
        row.addWidget(self._text)
        row.addStretch()
        row.addWidget(self.when_full)
        self.setMinimumHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        bind(chat, Chat.used, self.update_meter)
        bind(models, Models.loaded, self.update_meter)
        bind(models, Models.context, self.update_meter)
        bind(writing, Writing.tokens, self.update_meter)

    def update_meter(self, *_: object) -> None:
        loaded = self._models.loaded
        self._meter.setVisible(loaded is not None)
        self.when_full.setVisible(loaded is not None)
        if loaded is None:
            self._warning.hide()
            self._text.setText("")
            return
        context = self._models.context
        written = self._writing.tokens or Tokens()
        used = self._chat.used + written.count
        full = used > context > 0
        self._warning.setVisible(full)
        self._meter.set_share(used / context if context else 0.0)
        said = (
            self.tr("{used} of {context} tokens: more than fits")
            if full
            else self.tr("{used} of {context} tokens used")
        )
        self._text.setText(said.format(used=words.grouped(used), context=words.grouped(context)))
        set_tone(self._text, "caution" if full else "text2")
        told = self.tr("Of them, {tokens} are being written and not sent yet.")
        told = told.format(tokens=written.words)
        self._text.setToolTip(tooltip(told) if written.count else "")


class WhenFullButton(CardButton):
    """ "When full: ask me"; opens the four ways."""

    def __init__(self, models: Models, choose: Callable[[WhenFull], object]) -> None:
        super().__init__()
        self._choose_way = choose
        self._value = label("", "caption", "text")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(label(self.tr("When full:"), "caption", "text2"))
        row.addWidget(self._value)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setMinimumHeight(HEIGHT)
        self.popover = Flyout(self, self.tr("When the context is full"), MENU_WIDTH)
        self.popover.column.setContentsMargins(1, 4, 1, 4)
        self.choices = ChoiceList(self.tr("When the context is full"))
        self.popover.column.addWidget(self.choices)
        self.clicked.connect(self._open)
        self.choices.chosen.connect(self._choose)
        bind(models, Models.settings, self.update_way)

    def update_way(self, settings: Settings) -> None:
        way = settings.overflow
        short, _, about = _ways()[way]
        self._value.setText(short)
        said = self.tr("When full: {way}").format(way=short)
        self.setAccessibleName(said)
        self.setAccessibleDescription(about)
        self.setToolTip(tooltip(f"{said}\n{about}"))
        self.choices.show_rows(
            tuple(
                Row(key, name, detail=told, checked=key == way)
                for key, (_, name, told) in _ways().items()
            )
        )
        self.updateGeometry()

    def _open(self) -> None:
        self.popover.open_over(self, right=True)
        self.choices.setFocus(Qt.FocusReason.TabFocusReason)

    def _choose(self, key: str) -> None:
        self.popover.hide()
        way = next((way for way in _ways() if way == key), None)
        if way is not None:
            self._choose_way(way)


class OverflowBar(QFrame):
    """The chat is full: what can be done. Hidden while it is not."""

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self.setObjectName("errorBar")
        self._text = label("", "body", wrap=True)
        self.drop = Button(self.tr("Drop the oldest turns"), kind="small")
        self.summarise = Button(self.tr("Summarise"), kind="small")
        self.end = Button(self.tr("Stop here"), kind="small")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 8, 8, 8)
        row.setSpacing(8)
        row.addSpacing(4)
        row.addWidget(Glyph("circle-x", "bad"))
        row.addWidget(self._text, 1)
        ways: dict[Button, tuple[WhenFull, Callable[[], None]]] = {
            self.drop: ("drop", chat.drop_oldest),
            self.summarise: ("summarise", chat.summarise),
            self.end: ("stop", chat.dismiss_overflow),
        }
        self._buttons = tuple(ways)
        for button, (way, act) in ways.items():
            row.addWidget(button)
            button.clicked.connect(act)
            about = _ways()[way][2]
            button.setToolTip(tooltip(about))
            button.setAccessibleDescription(about)
        bind(chat, Chat.overflow, self.update_overflow)

    def update_overflow(self, overflow: Overflow | None) -> None:
        self.setVisible(overflow is not None)
        if overflow is None:
            return
        for button in self._buttons:
            button.setVisible(not overflow.making)
        told = self._told(overflow)
        self._text.setText(told)
        self.setAccessibleName(told)

    def _told(self, overflow: Overflow) -> str:
        if overflow.making == "summarise":
            return self.tr("The model sums up the oldest turns. Esc stops it.")
        if overflow.making == "drop":
            return self.tr("Room is being made.")
        if overflow.needed > overflow.context:
            said = self.tr("The chat would have {needed} tokens; {context} fit.")
        else:
            said = self.tr("The chat has reached {context} tokens.")
        context, needed = words.grouped(overflow.context), words.grouped(overflow.needed)
        return said.format(context=context, needed=needed)


def _ways() -> dict[WhenFull, tuple[str, str, str]]:
    """What can happen: in the middle of a sentence, alone, and what it means."""
    return {
        "ask": (
            _tr("ask me"),
            _tr("Ask me"),
            _tr("Nothing is left out before you have chosen."),
        ),
        "drop": (
            _tr("drop the oldest turns"),
            _tr("Drop the oldest turns"),
            _tr("The model no longer sees them; they stay in the chat."),
        ),
        "summarise": (
            _tr("summarise"),
            _tr("Summarise"),
            _tr("The model sums up the oldest turns and sees that in their place."),
        ),
        "stop": (
            _tr("stop"),
            _tr("Stop"),
            _tr("No answer is written beyond the context."),
        ),
    }


def _tr(text: str) -> str:
    return QCoreApplication.translate("context_meter", text)
