"""The card of the target: what runs, how, and the list to choose another from."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.fit import Fitting
from app.viewmodels.models import Models
from app.viewmodels.precisions import Badge
from app.viewmodels.rows import facts
from app.widgets.choices import ChoiceList
from app.widgets.common import (
    Button,
    CardButton,
    Elided,
    Glyph,
    device_name,
    label,
    rule,
    tooltip,
)
from app.widgets.meter import Meter
from app.widgets.popover import Popover
from app.widgets.precision_picker import PrecisionPicker
from engine.api import Loaded

EDGE = 24  # pixels between the list and the end of the screen
LEAST = 240  # pixels of the list, however low the window stands


class TargetPicker(QFrame):
    """Name and facts open the list; the precision is chosen below, the device told. The last
    lines say whether drafts can change an answer, and what was chosen for the user."""

    more = Signal()  # models are to be got
    folders_asked = Signal()

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models
        self.setObjectName("card")
        self._build()
        self.head.clicked.connect(self.open)
        self.choices.chosen.connect(self._choose)
        self.choices.acted.connect(self._act)
        bind(models, Models.targets, self.choices.show_rows)
        bind(models, Models.loaded, self.update_target)
        bind(models, Models.loading, self.update_target)
        bind(models, Models.loading_share, self._meter.set_share)
        bind(models, Models.badge, self.update_badge)
        bind(models.memory, Fitting.view, self.update_device)

    def _build(self) -> None:
        self.head = CardButton()
        self._name = Elided("heading")
        self._facts = label("", "caption", "text2", wrap=True)
        self._meter = Meter(self.tr("Loading"))
        about = QVBoxLayout()
        about.setSpacing(2)
        about.addWidget(self._name)
        about.addWidget(self._facts)
        about.addWidget(self._meter)
        row = QHBoxLayout(self.head)
        row.setContentsMargins(12, 9, 12, 9)
        row.addLayout(about, 1)
        row.addWidget(Glyph("chevron-down"))
        self._details = self._told()
        self._foot = self._footed()
        self._rules = (rule(), rule())
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 1)
        column.setSpacing(0)
        for widget in (self.head, self._rules[0], self._details, self._rules[1], self._foot):
            column.addWidget(widget)
        self._popover = Popover(self, self.tr("Choose the target"), 320)
        self._popover.column.setContentsMargins(1, 4, 1, 4)
        self.choices = ChoiceList(self.tr("Targets"))
        self._popover.column.addWidget(self.choices)
        self._popover.column.addWidget(rule())
        self._popover.column.addLayout(self._more())

    def _more(self) -> QHBoxLayout:
        """The ways to the hub and to the folders, and how the hub stands in a word."""
        self.get = Button(self.tr("Get models"), icon="download", kind="flat")
        self.get.clicked.connect(self._popover.hide)
        self.get.clicked.connect(self.more)
        self.state = label("", "caption", "text2", tabular=True)
        self.folders = Button(self.tr("Folders"), kind="flat")
        self.folders.clicked.connect(self._popover.hide)
        self.folders.clicked.connect(self.folders_asked)
        row = QHBoxLayout()
        row.setContentsMargins(6, 0, 12, 0)
        row.addWidget(self.get)
        row.addWidget(self.folders)
        row.addStretch()
        row.addWidget(self.state)
        return row

    def show_state(self, word: str) -> None:
        """Say how the hub stands: offline, or how far a download is."""
        self.state.setText(word)
        self.get.setAccessibleDescription(word)

    def _told(self) -> QWidget:
        """Precision and device side by side."""
        self._device = Elided()
        held = QWidget()
        self.precision = PrecisionPicker(self._models, held)
        cell = QVBoxLayout()
        cell.setContentsMargins(12, 7, 12, 8)
        cell.setSpacing(1)
        cell.addWidget(label(self.tr("Device"), "section", "text2"))
        cell.addWidget(self._device)
        row = QHBoxLayout(held)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.precision, 1)
        row.addWidget(rule(vertical=True))
        row.addLayout(cell, 1)
        return held

    def _footed(self) -> QWidget:
        """The badge and the notes."""
        self._exact = Glyph("circle-check", "accent_text", 12)
        self.badge = label("", "caption")
        self.notes = label("", "caption", "text2", wrap=True)
        held = QWidget()
        line = QHBoxLayout()
        line.setSpacing(5)
        line.addWidget(self._exact)
        line.addWidget(self.badge)
        line.addStretch()
        column = QVBoxLayout(held)
        column.setContentsMargins(12, 7, 12, 8)
        column.setSpacing(3)
        column.addLayout(line)
        column.addWidget(self.notes)
        return held

    def update_badge(self, badge: Badge | None) -> None:
        """Whether a draft can change the answer."""
        if badge is None:
            return
        self._exact.setVisible(badge.exact)
        self.badge.setText(badge.words)
        self.badge.setProperty("tone", "accent_text" if badge.exact else "text2")
        self.badge.style().unpolish(self.badge)
        self.badge.style().polish(self.badge)
        self.badge.setToolTip(tooltip(badge.sentence))
        self.badge.setAccessibleDescription(badge.sentence)

    def update_target(self, *_: object) -> None:
        """What runs, or what is being loaded in its place."""
        models, loaded = self._models, self._models.loaded
        self._name.show_text(models.target_name or self.tr("No model is loaded"))
        about = facts(loaded.info) if loaded else self.tr("Choose one to start")
        self._facts.setText(models.loading or about)
        self._meter.setVisible(bool(models.loading))
        for widget in (*self._rules, self._details, self._foot):
            widget.setVisible(loaded is not None)
        if loaded is not None:
            self.update_device()
            self.notes.setText("\n".join(note.text for note in loaded.notes))
            self.notes.setVisible(bool(loaded.notes))
        self.head.setAccessibleName(
            self.tr("Target: {name}").format(name=self._models.target_name or self.tr("none"))
        )

    def update_device(self, *_: object) -> None:
        """What the target runs on."""
        if self._models.loaded is not None:
            self._device.show_text(self._device_words(self._models.loaded))

    def _device_words(self, loaded: Loaded) -> str:
        """The card by its name, several by their number."""
        if loaded.device == "cpu":
            return self.tr("Processor")
        view = self._models.memory.view
        held = [
            bar.device
            for bar in (view.bars if view is not None else ())
            if any(part.name == "target_weights" for part in bar.parts)
        ]
        if len(held) > 1:
            return self.tr("{count} graphics cards").format(count=len(held))
        return device_name(held[0]) if held else loaded.device

    def open(self) -> None:
        """Show the list of targets."""
        below = self.head.mapToGlobal(QPoint(0, self.head.height())).y()
        room = self.screen().availableGeometry().bottom() - below - EDGE
        others = self._popover.sizeHint().height() - self.choices.minimumHeight()
        self.choices.limit_height(max(room - others, LEAST))
        self._popover.open_under(self.head)
        self.choices.setFocus(Qt.FocusReason.TabFocusReason)

    def _choose(self, key: str) -> None:
        self._popover.hide()
        self._models.choose_target(key)

    def _act(self, key: str) -> None:
        self._popover.hide()
        self._models.act(key)
