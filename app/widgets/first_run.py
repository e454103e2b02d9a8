"""The first screen where there is no model: one offer, and its progress in the same place."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.viewmodels import words
from app.viewmodels.alerts import Alert, Alerts
from app.viewmodels.binding import bind
from app.viewmodels.models import Models
from app.viewmodels.rows import Row
from app.viewmodels.starter import Fetching, Starter
from app.widgets.common import Button, CardButton, Glyph, label, rule
from app.widgets.meter import Meter

WIDTH = 480
MOST_NAMED = 5


class FirstRun(QWidget):
    """Get a model, then ask it something."""

    hub_asked = Signal()
    folders_asked = Signal()

    def __init__(self, models: Models, alerts: Alerts) -> None:
        super().__init__()
        self.setObjectName("page")
        self._models = models
        self._build()
        self.get.clicked.connect(models.starter.get)
        self.cancel.clicked.connect(models.starter.cancel)
        self.hub.clicked.connect(self.hub_asked)
        self.folders.clicked.connect(self.folders_asked)
        bind(models.starter, Starter.fetching, self.update_fetching)
        bind(models, Models.targets, self.update_broken)
        bind(alerts, Alerts.current, self.update_alert)

    def _build(self) -> None:
        heading = label(self.tr("Get a model, then ask it something"), "display", wrap=True)
        about = (
            self.tr("Slipstream runs language models on this computer."),
            self.tr("What you write never leaves it."),
        )
        centred = Qt.AlignmentFlag.AlignHCenter
        column = QVBoxLayout(self)
        column.addStretch(2)
        column.addWidget(Glyph("mark", "accent", 60), 0, centred)
        column.addSpacing(18)
        column.addWidget(heading)
        column.addSpacing(8)
        said = [label(sentence, "reading", "text2", wrap=True) for sentence in about]
        for sentence in said:
            column.addWidget(sentence)
        for shown in (heading, *said):
            shown.setAlignment(centred)
        column.addSpacing(24)
        column.addLayout(_centred(self._offer()))
        column.addSpacing(16)
        self.broken = label("", "caption", "text2", wrap=True)
        column.addLayout(_centred(self.broken))
        column.addStretch(3)
        self.fit_font()

    def _offer(self) -> QFrame:
        offer = self._models.starter.offer
        size = words.megabytes(offer.size)
        self._card = card = QFrame()
        card.setObjectName("offer")
        facts = self.tr("{size}, {licence}, runs on any computer")
        inner = QVBoxLayout()
        inner.setContentsMargins(20, 18, 20, 12)
        inner.setSpacing(0)
        inner.addWidget(label(offer.name, "title"))
        inner.addSpacing(2)
        told = facts.format(size=size, licence=offer.licence)
        inner.addWidget(label(told, "body", "text2", wrap=True))
        inner.addSpacing(10)
        inner.addWidget(
            label(
                self.tr(
                    "A small first model. It answers at once and shows how drafting works, "
                    "but it gets many facts wrong. You can add a larger one at any time."
                ),
                wrap=True,
            )
        )
        inner.addSpacing(14)
        inner.addWidget(self._place(size))
        self._error = label("", "caption", "bad", wrap=True)
        inner.addSpacing(6)
        inner.addWidget(self._error)
        self.hub = _way(
            "search",
            self.tr("Find a model on the Hub"),
            self.tr("Sizes are shown before anything is fetched"),
        )
        self.folders = _way(
            "folder-open", self.tr("Add a folder of models"), self.tr("Safetensors and GGUF files")
        )
        outer = QVBoxLayout(card)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.setSpacing(0)
        outer.addLayout(inner)
        for way in (self.hub, self.folders):
            outer.addWidget(rule())
            outer.addWidget(way)
        return card

    def _place(self, size: str) -> QStackedWidget:
        """The button and, in its place, the progress."""
        self.get = Button(
            self.tr("Get the starter model, {size}").format(size=size),
            icon="download",
            ink="on_accent",
            kind="primary",
            role="heading",
        )
        self.get.setObjectName("offerButton")
        self.cancel = Button(self.tr("Cancel"))
        self._meter = Meter(self.tr("Download"), 6)
        self._amount = label("", "caption", "text2", tabular=True)
        progress = QWidget()
        left = QVBoxLayout()
        left.setSpacing(5)
        left.addWidget(self._meter)
        left.addWidget(self._amount)
        row = QHBoxLayout(progress)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        row.addLayout(left, 1)
        row.addWidget(self.cancel)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.get)
        self._stack.addWidget(progress)
        return self._stack

    def fit_font(self) -> None:
        """As wide as in the usual size, and more where the window has it."""
        self._stack.setFixedHeight(round(2.8 * resources.pixels()) + 2)
        self._card.setMaximumWidth(resources.scaled(WIDTH))
        self.broken.setMaximumWidth(resources.scaled(WIDTH - 40))

    def update_fetching(self, fetching: Fetching | None) -> None:
        self._stack.setCurrentIndex(0 if fetching is None else 1)
        if fetching is not None:
            self._meter.set_share(fetching.share)
            self._amount.setText(fetching.text)

    def update_broken(self, rows: tuple[Row, ...]) -> None:
        """Models that were found and cannot be loaded, each with its reason."""
        broken = [row for row in rows if row.key and not row.usable]
        lines = [self.tr("Found, but cannot be loaded:")]
        lines += [
            f"{row.name}. {f'{row.word} {row.detail}'.strip()}" for row in broken[:MOST_NAMED]
        ]
        if len(broken) > MOST_NAMED:
            lines.append(self.tr("and {count} more").format(count=len(broken) - MOST_NAMED))
        self.broken.setText("\n".join(lines))
        self.broken.setVisible(bool(broken))

    def update_alert(self, alert: Alert | None) -> None:
        self._error.setText(alert.text if alert else "")
        self._error.setVisible(alert is not None)


def _centred(widget: QWidget) -> QHBoxLayout:
    """Not by alignment: that would give a widget its hint's height, not its text's."""
    row = QHBoxLayout()
    row.addStretch(1)
    row.addWidget(widget, 1000)
    row.addStretch(1)
    return row


def scrolled(screen: FirstRun) -> QScrollArea:
    """The screen, however low the window and large the font."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(screen)
    return area


def _way(icon: str, title: str, about: str) -> CardButton:
    """Another way to a model."""
    button = CardButton()
    button.setAccessibleName(title)
    button.setAccessibleDescription(about)
    said = QVBoxLayout()
    said.setSpacing(1)
    said.addWidget(label(title, wrap=True))
    said.addWidget(label(about, "caption", "text2", wrap=True))
    row = QHBoxLayout(button)
    row.setContentsMargins(20, 9, 20, 9)
    row.setSpacing(14)
    row.addWidget(Glyph(icon))
    row.addLayout(said, 1)
    row.addWidget(Glyph("chevron-right"))
    return button
