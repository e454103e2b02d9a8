"""Who drafts, and behind one button how much and by which rule."""

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QSlider, QVBoxLayout, QWidget

from app.settings import Settings
from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.models import Models
from app.viewmodels.rows import Row
from app.widgets.choices import MAX_HEIGHT, ChoiceList
from app.widgets.common import Button, label, rule
from app.widgets.popover import Popover

LONGEST = 16
LEAST = 120  # pixels of the list of precisions, however low the screen is


class DraftPicker(QWidget):
    """The section "Draft" of the sidebar."""

    compare_asked = Signal()

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models
        self.options = Button("", kind="flat")
        self.options.setProperty("tone", "accent_text")
        self.compare = Button(self.tr("Compare…"), kind="flat")
        self.compare.setProperty("tone", "accent_text")
        self.compare.setToolTip(self.tr("Find out which draft is fastest here"))
        self.choices = ChoiceList(self.tr("Drafts"))
        self._card = QFrame()
        self._card.setObjectName("card")
        self._card.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._none = label(
            self.tr("The drafts for a target are listed here."), tone="text2", wrap=True
        )
        self.popover = DraftOptions(self, models)
        self._build()
        self.options.clicked.connect(self._open)
        self.compare.clicked.connect(self.compare_asked)
        self.choices.chosen.connect(models.choose_draft)
        self.choices.acted.connect(models.act)
        bind(models, Models.drafts, self.update_rows)
        bind(models, Models.settings, self.update_options)

    def _build(self) -> None:
        inner = QVBoxLayout(self._card)
        inner.setContentsMargins(1, 1, 1, 1)
        inner.addWidget(self.choices)
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 0)
        head.addWidget(label(self.tr("Draft"), "heading"))
        head.addStretch()
        head.addWidget(self.compare)
        foot = QHBoxLayout()
        foot.setContentsMargins(0, 0, 0, 0)
        foot.addWidget(self.options)
        foot.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self._card)
        column.addWidget(self._none)
        column.addLayout(foot)

    def _open(self) -> None:
        self.popover.fit(self.screen().availableGeometry().height())
        self.popover.open_under(self.options)

    def update_rows(self, rows: tuple[Row, ...]) -> None:
        self.choices.show_rows(rows)
        self._card.setVisible(bool(rows))
        self._none.setVisible(not rows)

    def update_options(self, settings: Settings) -> None:
        length = settings.draft_length
        said = self.tr("Auto length") if length is None else words.tokens(length)
        self.options.set_words(said + "…")
        self.options.setAccessibleName(self.tr("Draft options: {length}").format(length=said))


class DraftOptions(Popover):
    """Draft length and verification, and the precision of a draft that is a model."""

    def __init__(self, parent: QWidget, models: Models) -> None:
        super().__init__(parent, QCoreApplication.translate("draft_picker", "Draft options"), 320)
        self._models = models
        self._build()
        self.auto.toggled.connect(self._apply)
        self.slider.valueChanged.connect(self._apply)
        self.rules.chosen.connect(self._judge_by)
        self.precisions.chosen.connect(models.choose_draft_precision)
        bind(models, Models.settings, self.update_settings)
        bind(models, Models.draft_precisions, self.update_precisions)

    def _build(self) -> None:
        self.auto = Button(self.tr("Auto"), kind="flat", role="caption")
        self.auto.setCheckable(True)
        self.auto.setToolTip(self.tr("As many as are expected to pay, 8 at most"))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, LONGEST)
        self.slider.setAccessibleName(self.tr("Draft length"))
        self._value = label("", "body")
        self._value.setMinimumWidth(70)
        self._value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.rules = ChoiceList(self.tr("Verification"))
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Draft length"), "heading"))
        head.addStretch()
        head.addWidget(self.auto)
        row = QHBoxLayout()
        row.addWidget(self.slider)
        row.addWidget(self._value)
        self.column.addLayout(head)
        self.column.addLayout(row)
        self.column.addWidget(rule())
        self.column.addWidget(label(self.tr("Verification"), "heading"))
        self.column.addWidget(self.rules)
        self.precisions = ChoiceList(self.tr("Precisions of the draft"))
        self._of_a_model = (
            rule(),
            label(self.tr("Precision of the draft"), "heading"),
            self.precisions,
        )
        for widget in self._of_a_model:
            self.column.addWidget(widget)

    def update_settings(self, settings: Settings) -> None:
        length = settings.draft_length
        for widget in (self.auto, self.slider):
            widget.blockSignals(True)
        self.auto.setChecked(length is None)
        self.slider.setEnabled(length is not None)
        if length is not None:
            self.slider.setValue(length)
        for widget in (self.auto, self.slider):
            widget.blockSignals(False)
        self._value.setText(self.tr("automatic") if length is None else words.tokens(length))
        self.rules.show_rows(self._rules(settings.verification))

    def fit(self, room: int) -> None:
        """Be at most `room` pixels high: the list of precisions scrolls then."""
        self.precisions.limit_height(MAX_HEIGHT)
        others = self.sizeHint().height() - self.precisions.height()
        self.precisions.limit_height(max(room - others, LEAST))

    def update_precisions(self, rows: tuple[Row, ...]) -> None:
        self.precisions.show_rows(rows)
        for widget in self._of_a_model:
            widget.setVisible(bool(rows))

    def _rules(self, chosen: str) -> tuple[Row, ...]:
        return (
            Row(
                "coupled",
                self.tr("Same text with any draft"),
                "",
                self.tr("A seed fixes the answer, whatever drafts"),
                checked=chosen == "coupled",
            ),
            Row(
                "rejection",
                self.tr("Same odds, different text"),
                "",
                self.tr("Another draft may lead to another answer, equally likely"),
                checked=chosen == "rejection",
            ),
        )

    def _apply(self, *_: object) -> None:
        length = None if self.auto.isChecked() else self.slider.value()
        self._models.draft_with(length=length, verification=self._models.settings.verification)

    def _judge_by(self, key: str) -> None:
        self._models.draft_with(
            length=self._models.settings.draft_length,
            verification="rejection" if key == "rejection" else "coupled",
        )
