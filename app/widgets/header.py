"""The line over the transcript, and the button that stands for a sidebar without room."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.viewmodels.stats import Stats
from app.widgets.common import Elided, Glyph, IconButton, label, rule, tooltip

HEIGHT = 48
NAME_WIDTH = 170


class Header(QWidget):
    """Title and, where the sidebar is not shown, what it would say in one line."""

    opened = Signal()

    def __init__(self, chat: Chat, models: Models, stats: Stats) -> None:
        super().__init__()
        self._title = Elided("title", mode=Qt.TextElideMode.ElideRight)
        self.summary = Summary(models, stats)
        self.summary.clicked.connect(self.opened)
        self._title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        row = QHBoxLayout()
        row.setContentsMargins(20, 0, 16, 0)
        row.setSpacing(16)
        row.addWidget(self._title, 1)
        row.addWidget(self.summary)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row, 1)
        column.addWidget(rule())
        self.setFixedHeight(HEIGHT)
        bind(chat, Chat.title, self._title.show_text)


class Summary(QPushButton):
    """ "Llama 3.1 8B with Llama 3.2 1B | 61 % accepted" as a button."""

    def __init__(self, models: Models, stats: Stats) -> None:
        super().__init__()
        self._models, self._stats = models, stats
        self._target, self._draft = _Name(), _Name()
        self._with = label(self.tr("with"), tone="text2")
        self._rate = label("", "heading", tabular=True)
        self._accepted = label(self.tr("accepted"), tone="text2")
        self._bar = rule(vertical=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(11, 0, 10, 0)
        row.setSpacing(5)
        row.addWidget(Glyph("layers", "accent_text"))
        row.addSpacing(4)
        for widget in (self._target, self._with, self._draft):
            row.addWidget(widget)
        row.addSpacing(4)
        self._bar.setFixedHeight(16)
        row.addWidget(self._bar)
        row.addWidget(self._rate)
        row.addWidget(self._accepted)
        row.addSpacing(4)
        row.addWidget(Glyph("chevron-down"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        bind(models, Models.loaded, self.update_names)
        bind(models, Models.draft, self.update_names)
        bind(models, Models.loading, self.update_names)
        stats.figures_changed.connect(self.update_rate)
        self.update_rate()

    def update_names(self, *_: object) -> None:
        models = self._models
        target = models.target_name or models.loading or self.tr("No model is loaded")
        self._target.show_text(target)
        self._draft.show_text(models.draft_name)
        for widget in (self._with, self._draft):
            widget.setVisible(bool(models.draft_name))
        said = self.tr("Target and draft: {target}, {draft}")
        self.setAccessibleName(said.format(target=target, draft=models.draft_name or "–"))
        self._resize()

    def update_rate(self, *_: object) -> None:
        self._rate.setText(self._stats.figures.rate)
        self._resize()

    def _resize(self) -> None:
        held = self.layout()
        assert held is not None
        held.activate()
        # The style sheet measures a button by its own text, of which this one has none.
        self.setFixedWidth(held.sizeHint().width() + 2)


class _Name(QLabel):
    """A name of at most so many pixels, shortened in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setFont(resources.font("body"))

    def show_text(self, text: str) -> None:
        metrics = QFontMetrics(self.font())
        short = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, NAME_WIDTH)
        self.setText(short)
        self.setToolTip("" if short == text else tooltip(text))


class Rail(QWidget):
    """The narrow strip at the left: the mark and a new chat."""

    new_chat = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("rail")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(52)
        new = IconButton(self.tr("New chat"), "square-pen", size=32)
        new.clicked.connect(self.new_chat)
        column = QVBoxLayout()
        column.setContentsMargins(10, 11, 9, 10)
        column.setSpacing(10)
        mark = Glyph("mark", "accent", 26)
        centre = Qt.AlignmentFlag.AlignHCenter
        column.addWidget(mark, 0, centre)
        column.addWidget(new, 0, centre)
        column.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(column)
        row.addWidget(rule(vertical=True))
