"""The cell that tells the target's precision and opens the list to choose another from."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.models import Models
from app.widgets.choices import ChoiceList
from app.widgets.common import CardButton, Elided, Glyph, label
from app.widgets.popover import Popover


class PrecisionPicker(CardButton):
    """ "auto: int8"; the list opens under `anchor`."""

    def __init__(self, models: Models, anchor: QWidget) -> None:
        super().__init__()
        self._models, self._anchor = models, anchor
        self._value = Elided()
        about = QVBoxLayout()
        about.setSpacing(1)
        about.addWidget(label(self.tr("Precision"), "section", "text2"))
        about.addWidget(self._value)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 7, 12, 8)
        row.addLayout(about, 1)
        row.addWidget(Glyph("chevron-down"))
        self.popover = Popover(self, self.tr("Choose the precision"), 320)
        self.popover.column.setContentsMargins(1, 4, 1, 4)
        self.choices = ChoiceList(self.tr("Precisions"))
        self.popover.column.addWidget(self.choices)
        self.clicked.connect(self._open)
        self.choices.chosen.connect(self._choose)
        bind(models, Models.target_precisions, self.choices.show_rows)
        bind(models, Models.precision, self.update_value)

    def update_value(self, words: str) -> None:
        """What the target runs in."""
        self._value.show_text(words)
        self.setAccessibleName(self.tr("Precision: {precision}").format(precision=words))

    def _open(self) -> None:
        self.popover.open_under(self._anchor)
        self.choices.setFocus(Qt.FocusReason.TabFocusReason)

    def _choose(self, key: str) -> None:
        self.popover.hide()
        self._models.choose_precision(key)
