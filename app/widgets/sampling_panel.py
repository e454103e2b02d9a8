"""The button that names how the chat's tokens are chosen, and the frame with the numbers."""

from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QHideEvent, QKeyEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.chats.conversation import Choices
from app.viewmodels import sampling
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.viewmodels.presets import Presets, reshaped, shape
from app.viewmodels.sampling import Setting
from app.widgets.common import Button, IconButton, label, rule, tooltip
from app.widgets.preset_list import Flyout, PresetChooser
from app.widgets.system_prompt import NamedButton
from app.widgets.text_box import TextBox
from engine.api import Sampling

WIDTH = 640
HEAD = 24  # pixels at the usual font size, of the line over a field
APPLY_MS = 400
MAX_STOP = 2_000  # characters of all stop strings


class SamplingPanel(NamedButton):
    """ "Precise"; opens the frame."""

    def __init__(self, chat: Chat, models: Models, presets: Presets) -> None:
        super().__init__("sliders-horizontal", self.tr("Sampling"))
        self._presets = presets
        self.popover = SamplingFlyout(self, chat, models, presets)
        self.clicked.connect(self._open)
        bind(chat, Chat.choices, self.update_name)
        presets.samplings.presets_changed.connect(lambda _: self.update_name(chat.choices))

    def update_name(self, choices: Choices) -> None:
        self.show_name(self._presets.sampling_name(choices.sampling))

    def _open(self) -> None:
        self.popover.show_sampling()
        self.popover.open_over(self)
        self.popover.knobs[0].field.setFocus(Qt.FocusReason.TabFocusReason)


class SamplingFlyout(Flyout):
    """Presets at the left, all numbers at the right; what is typed and sound holds at once."""

    def __init__(self, parent: QWidget, chat: Chat, models: Models, presets: Presets) -> None:
        super().__init__(parent, "", WIDTH)
        self.setAccessibleName(self.tr("Sampling"))
        self._chat, self._models = chat, models
        self._soon = QTimer(self, singleShot=True, interval=APPLY_MS)
        self._soon.timeout.connect(self._apply)
        self.chooser = PresetChooser(
            self.tr("Presets"), presets.samplings, self._shape, sampling.in_words, least=210
        )
        self.chooser.chosen.connect(self._take)
        self.knobs = tuple(Knob(setting) for setting in sampling.settings())
        for knob in self.knobs:
            knob.edited.connect(self._changed)
        self.again = Button(self.tr("Same again"), kind="flat", role="caption")
        self.again.setProperty("tone", "accent_text")
        self.again.setToolTip(self.tr("Answer with the seed of the last answer"))
        self.again.clicked.connect(self._same_again)
        self.knobs[-1].add_button(self.again)
        self._stops = TextBox(self.tr("Stop strings, one a line"), 2, most=MAX_STOP, code=True)
        self.stop = self._stops.edit
        self.stop.textChanged.connect(self._changed)
        self._told = label("", "caption", "text2", wrap=True)
        self._build()

    def fit_font(self) -> None:
        """Two lines are kept free, so that a sentence moves nothing."""
        self._told.setMinimumHeight(2 * QFontMetrics(self._told.font()).lineSpacing())
        for widget in (self.again, self._stop_name):
            widget.setFixedHeight(resources.scaled(HEAD))

    def _build(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        for column in (0, 1):
            grid.setColumnStretch(column, 1)
            grid.setColumnMinimumWidth(column, 170)
        for number, knob in enumerate(self.knobs):
            grid.addWidget(knob, number // 2, number % 2, Qt.AlignmentFlag.AlignTop)
        stop = QVBoxLayout()
        stop.setSpacing(0)
        self._stop_name = label(self.tr("Stop strings, one a line"), "section", "text2")
        stop.addWidget(self._stop_name)
        stop.addWidget(self._stops)
        stop.addStretch()
        grid.addLayout(stop, len(self.knobs) // 2, 1)
        self.fit_font()
        self._told.setAlignment(Qt.AlignmentFlag.AlignTop)
        side = QVBoxLayout()
        side.setSpacing(8)
        side.addWidget(label(self.tr("Sampling"), "heading"))
        side.addLayout(grid)
        side.addWidget(self._told)
        side.addStretch()
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.chooser)
        row.addWidget(rule(vertical=True))
        row.addLayout(side, 1)
        self.column.addLayout(row)

    def show_sampling(self) -> None:
        """Show what the chat has."""
        held, defaults = self._chat.choices.sampling, self._defaults()
        for knob in self.knobs:
            knob.show_value(held, defaults)
        self.stop.setPlainText(sampling.stop_text(held.stop))
        self.again.setEnabled(self._last_seed() is not None)
        self._soon.stop()
        self.chooser.show_value(shape(held))
        self._tell()

    def _defaults(self) -> Sampling:
        loaded = self._models.loaded
        return loaded.defaults if loaded is not None else Sampling()

    def _last_seed(self) -> int | None:
        answers = [turn for turn in self._chat.turns if turn.role == "assistant"]
        return answers[-1].usage.seed if answers else None

    def _typed(self) -> Sampling:
        """What the chat has, with every sound value that was typed."""
        values: dict[str, Any] = {}
        for knob in self.knobs:
            try:
                values[knob.setting.field] = knob.setting.read(knob.field.text())
            except ValueError:
                continue
        stop = sampling.stop_strings(self.stop.text())
        return replace(self._chat.choices.sampling, stop=stop, **values)

    def _shape(self) -> Sampling:
        return shape(self._typed())

    def _changed(self) -> None:
        self._tell()
        self._soon.start()

    def _apply(self) -> None:
        self._soon.stop()
        typed = self._typed()
        if typed != self._chat.choices.sampling:
            self._chat.choose(replace(self._chat.choices, sampling=typed))
        self.chooser.show_value(shape(typed))

    def _take(self, preset: Sampling) -> None:
        taken = reshaped(self._typed(), preset)
        self._chat.choose(replace(self._chat.choices, sampling=taken))
        self.show_sampling()

    def _same_again(self) -> None:
        seed = self._last_seed()
        if seed is not None:
            self.knobs[-1].set_text(str(seed))

    def _tell(self) -> None:
        """What is wrong, else what the numbers mean together."""
        problems = [problem for knob in self.knobs if (problem := knob.problem())]
        self._told.setProperty("tone", "bad" if problems else "text2")
        self._told.style().unpolish(self._told)
        self._told.style().polish(self._told)
        if problems:
            self._told.setText(problems[0])
        elif self._typed().temperature == 0:
            self._told.setText(
                self.tr(
                    "Temperature 0 always takes the likeliest token; "
                    "top-k, top-p, min-p and the seed change nothing."
                )
            )
        else:
            self._told.setText(
                self.tr("Empty fields follow the model's files. This belongs to this chat.")
            )

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._soon.isActive():
            self._apply()


class Knob(QWidget):
    """One setting: its name, a field that shows the default while it is empty, and a reset."""

    edited = Signal()

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting
        self._defaults = Sampling()
        self.field = _Number()
        self.field.setAccessibleName(setting.name)
        self.field.setAccessibleDescription(setting.about)
        self.field.textEdited.connect(self._edited)
        self.field.stepped.connect(self._step)
        self.reset = IconButton(
            self.tr("Reset {name} to the model's default").format(name=setting.name),
            "undo-2",
            size=HEAD - 4,
        )
        self.reset.clicked.connect(lambda: self.set_text(""))
        self._name = name = label(setting.name, "section", "text2")
        name.setBuddy(self.field)
        self.fit_font()
        self.setToolTip(tooltip(setting.about))
        self._head = QHBoxLayout()
        self._head.setSpacing(2)
        self._head.addWidget(name)
        self._head.addStretch()
        self._head.addWidget(self.reset)
        kept = self.reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(kept)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._head)
        column.addWidget(self.field)

    def fit_font(self) -> None:
        """All heads are of one height."""
        self._name.setFixedHeight(resources.scaled(HEAD))

    def add_button(self, button: Button) -> None:
        """One more at the right of the name."""
        self._head.insertWidget(2, button)

    def show_value(self, held: Sampling, defaults: Sampling) -> None:
        """Show what is set, and the default that holds else."""
        self._defaults = defaults
        self.field.setPlaceholderText(self.setting.default(defaults))
        self.field.setText(self.setting.value(held))
        self._mark()

    def set_text(self, text: str) -> None:
        """Another text, as if it was typed."""
        self.field.setText(text)
        self._edited()
        self.field.setFocus()

    def problem(self) -> str:
        """The sentence against what is typed, or ""."""
        try:
            self.setting.read(self.field.text())
        except ValueError as error:
            return str(error)
        return ""

    def _edited(self, *_: object) -> None:
        self._mark()
        self.edited.emit()

    def _mark(self) -> None:
        self.reset.setVisible(bool(self.field.text()))

    def _step(self, steps: int) -> None:
        self.field.setText(self.setting.stepped(self.field.text(), steps, self._defaults))
        self._edited()


class _Number(QLineEdit):
    """A number that the arrow keys change, too."""

    stepped = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setMaxLength(40)
        self.setFont(resources.font("body", tabular=True))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {
            Qt.Key.Key_Up: 1,
            Qt.Key.Key_Down: -1,
            Qt.Key.Key_PageUp: 10,
            Qt.Key.Key_PageDown: -10,
        }.get(Qt.Key(event.key()))
        if steps is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(steps)
