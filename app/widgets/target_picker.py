"""The card of the target: what runs, how, and the list to choose another from."""

from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.viewmodels.binding import bind
from app.viewmodels.models import Models
from app.viewmodels.rows import facts
from app.widgets.choices import ChoiceList
from app.widgets.common import Elided, Glyph, Meter, label, rule
from app.widgets.popover import Popover
from engine.api import Loaded

EDGE = 24  # pixels between the list and the end of the screen
LEAST = 240  # pixels of the list, however low the window stands


class TargetPicker(QFrame):
    """Name and facts open the list; precision and device are told, not chosen."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models
        self.setObjectName("card")
        self._build()
        self.head.clicked.connect(self._open)
        self.choices.chosen.connect(self._choose)
        bind(models, Models.targets, self.choices.show_rows)
        bind(models, Models.loaded, self.update_target)
        bind(models, Models.loading, self.update_target)
        bind(models, Models.loading_share, self._meter.set_share)

    def _build(self) -> None:
        self.head = _Head()
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
        self._precision, self._device = Elided(), Elided()
        self._details = QWidget()
        grid = QGridLayout(self._details)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(0)
        for place, (name, value) in enumerate(
            ((self.tr("Precision"), self._precision), (self.tr("Device"), self._device))
        ):
            cell = QVBoxLayout()
            cell.setContentsMargins(12, 7, 12, 8)
            cell.setSpacing(1)
            cell.addWidget(label(name, "section", "text2"))
            cell.addWidget(value)
            grid.addLayout(cell, 0, 2 * place)
            grid.setColumnStretch(2 * place, 1)
        grid.addWidget(rule(vertical=True), 0, 1)
        self._rule = rule()
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 1)
        column.setSpacing(0)
        for widget in (self.head, self._rule, self._details):
            column.addWidget(widget)
        self._popover = Popover(self, self.tr("Choose the target"), 320)
        self._popover.column.setContentsMargins(1, 4, 1, 4)
        self.choices = ChoiceList(self.tr("Targets"))
        self._popover.column.addWidget(self.choices)

    def update_target(self, *_: object) -> None:
        """What runs, or what is being loaded in its place."""
        models, loaded = self._models, self._models.loaded
        self._name.show_text(models.target_name or self.tr("No model is loaded"))
        about = facts(loaded.info) if loaded else self.tr("Choose one to start")
        self._facts.setText(models.loading or about)
        self._meter.setVisible(bool(models.loading))
        for widget in (self._rule, self._details):
            widget.setVisible(loaded is not None)
        if loaded is not None:
            self._precision.show_text(self._precision_words(loaded))
            self._device.show_text(self._device_words(loaded))
        self.head.setAccessibleName(
            self.tr("Target: {name}").format(name=self._models.target_name or self.tr("none"))
        )

    def _precision_words(self, loaded: Loaded) -> str:
        bits = {"fp32": self.tr("32-bit"), "bf16": self.tr("16-bit")}[loaded.precision]
        packed = loaded.info.quantisation
        return self.tr("{bits}, from {file}").format(bits=bits, file=packed) if packed else bits

    def _device_words(self, loaded: Loaded) -> str:
        return self.tr("Processor") if loaded.device == "cpu" else loaded.device

    def _open(self) -> None:
        below = self.head.mapToGlobal(QPoint(0, self.head.height())).y()
        room = self.screen().availableGeometry().bottom() - below - EDGE
        self.choices.limit_height(max(room, LEAST))
        self._popover.open_under(self.head)
        self.choices.setFocus(Qt.FocusReason.TabFocusReason)

    def _choose(self, key: str) -> None:
        self._popover.hide()
        self._models.choose_target(key)


class _Head(QAbstractButton):
    """The upper half of the card as one button."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("targetHead")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        held = self.layout()
        return held.sizeHint() if held is not None else QSize(200, 48)

    def heightForWidth(self, width: int) -> int:
        held = self.layout()
        return held.totalHeightForWidth(width) if held is not None else 48

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isDown() or self.underMouse():
            fill = "selected" if self.isDown() else "hover"
            painter.setBrush(resources.colour(fill))
            painter.drawRoundedRect(self.rect(), 7, 7)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 7, 7)
