"""The button that names the chat's system prompt, and the frame where it is chosen or written."""

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFontMetrics, QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Choices
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.presets import Presets
from app.widgets.common import Button, label, rule, tooltip
from app.widgets.preset_list import Flyout, PresetChooser
from app.widgets.text_box import TextBox

WIDTH = 620
NAME_WIDTH = 13  # times the font's size; longer names are shortened
TEXT_WIDTH = 16  # times the font's size that the text has at least
APPLY_MS = 400
LINES = 13
MAX_CHARACTERS = 50_000


class NamedButton(Button):
    """A flat button with an icon and a name that may be long; says what it is the name of."""

    def __init__(self, icon: str, what: str) -> None:
        super().__init__("", icon=icon, kind="flat")
        self._what, self._name = what, ""
        self.setProperty("tone", "text2")

    def show_name(self, name: str) -> None:
        """Another name; all of it is in the tooltip."""
        self._name = name
        metrics = QFontMetrics(self.font())
        room = NAME_WIDTH * resources.pixels()
        self.set_words(metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room))
        self.setAccessibleName(f"{self._what}: {name}")
        self.setToolTip(tooltip(f"{self._what}: {name}"))

    def fit_font(self) -> None:
        self.show_name(self._name)


class SystemPrompt(NamedButton):
    """ "Code reviewer"; opens the frame."""

    def __init__(self, chat: Chat, presets: Presets) -> None:
        super().__init__("scroll-text", self.tr("System prompt"))
        self._presets = presets
        self.popover = PromptFlyout(self, chat, presets)
        self.clicked.connect(self._open)
        bind(chat, Chat.choices, self.update_name)
        presets.prompts.presets_changed.connect(lambda _: self.update_name(chat.choices))

    def update_name(self, choices: Choices) -> None:
        self.show_name(self._presets.prompt_name(choices.system))

    def _open(self) -> None:
        self.popover.show_prompt()
        self.popover.open_over(self)
        self.popover.edit.setFocus(Qt.FocusReason.TabFocusReason)


class PromptFlyout(Flyout):
    """Presets at the left, the text at the right; what is written holds at once."""

    def __init__(self, parent: QWidget, chat: Chat, presets: Presets) -> None:
        super().__init__(parent, "", WIDTH)
        self.setAccessibleName(self.tr("System prompt"))
        self._chat = chat
        self._soon = QTimer(self, singleShot=True, interval=APPLY_MS)
        self._soon.timeout.connect(self._apply)
        self.chooser = PresetChooser(self.tr("Presets"), presets.prompts, self._text, least=220)
        self.chooser.chosen.connect(self._take)
        self.box = TextBox(
            self.tr("System prompt of this chat"), LINES, most=MAX_CHARACTERS, grows=True
        )
        self.edit = self.box.edit
        self.edit.setPlaceholderText(self.tr("What the model is told before this chat begins"))
        self.edit.textChanged.connect(self._changed)
        self._build()
        self.fit_font()

    def fit_font(self) -> None:
        self.box.setMinimumWidth(TEXT_WIDTH * resources.pixels())

    def _build(self) -> None:
        text = QVBoxLayout()
        text.setSpacing(6)
        text.addWidget(label(self.tr("System prompt"), "heading"))
        text.addWidget(self.box, 1)
        text.addWidget(
            label(
                self.tr("Belongs to this chat and holds from the next answer on."),
                "caption",
                "text2",
                wrap=True,
            )
        )
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.chooser)
        row.addWidget(rule(vertical=True))
        row.addLayout(text, 1)
        self.column.addLayout(row)

    def show_prompt(self) -> None:
        """Show what the chat has."""
        system = self._chat.choices.system
        if self._text() != system.strip():
            self.edit.setPlainText(system)
        self._soon.stop()
        self.chooser.show_value(system.strip())

    def _text(self) -> str:
        return self.edit.text().strip()

    def _take(self, text: str) -> None:
        self.edit.setPlainText(text)
        self._apply()

    def _changed(self) -> None:
        self._soon.start()

    def _apply(self) -> None:
        self._soon.stop()
        text = self._text()
        if text != self._chat.choices.system:
            self._chat.choose(replace(self._chat.choices, system=text))
        self.chooser.show_value(text)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._soon.isActive():
            self._apply()
