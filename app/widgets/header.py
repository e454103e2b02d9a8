"""The line over the transcript: the chat's title, its tools and menu, and the button that stands
for a sidebar without room."""

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.conversations import Conversations
from app.viewmodels.models import Models
from app.viewmodels.stats import Stats
from app.widgets import chat_menu
from app.widgets.chat_title import Title
from app.widgets.common import ICON, Glyph, IconButton, Label, label, rule, tooltip

HEIGHT = 48
NAME_WIDTH = 170
TITLE_WIDTH = 260  # pixels; with less than that the tools are reduced to icons
LEAST_TITLE = 140  # with less than that, finding is left to the menu


class Header(QWidget):
    """Title, tools and, where the sidebar is not shown, what it would say in one line."""

    opened = Signal()
    tint_toggled = Signal(bool)
    find_asked = Signal()

    def __init__(
        self, chat: Chat, models: Models, stats: Stats, conversations: Conversations
    ) -> None:
        super().__init__()
        self._chat, self._conversations = chat, conversations
        self.title = Title()
        self.summary = Summary(models, stats)
        self.tint = Toggle(self.tr("Draft tint"), "highlighter")
        self.seek = IconButton(self.tr("Find in this chat"), "search")
        self.more = IconButton(self.tr("More"), "ellipsis")
        self._build()
        self.title.asked.connect(self.rename)
        self.title.changed.connect(self._rename)
        self.summary.clicked.connect(self.opened)
        self.tint.toggled.connect(self.tint_toggled)
        self.seek.clicked.connect(self.find_asked)
        self.more.clicked.connect(self._show_menu)
        bind(chat, Chat.title, self.title.show_text)

    def _build(self) -> None:
        self._row = row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(self.title, 1)
        row.addSpacing(16)
        row.addWidget(self.summary)
        row.addSpacing(8)
        for widget in (self.tint, self.seek, self.more):
            row.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row, 1)
        column.addWidget(rule())
        self.setFixedHeight(HEIGHT)

    def set_tint(self, on: bool) -> None:
        """Show whether drafted text is tinted."""
        self.tint.setChecked(on)

    def rename(self) -> None:
        """Let the title be changed in its place, once there is a chat."""
        if self._chat.chat_id:
            self.title.edit()

    def _rename(self, title: str) -> None:
        self._conversations.rename(self._chat.chat_id, title)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._conversations.markdown())

    def _show_menu(self) -> None:
        more = (
            (self.tr("Find in this chat"), self.find_asked.emit),
            (self.tr("Copy as Markdown"), self._copy),
        )
        menu = chat_menu.chat_menu(self, self._conversations, self._chat.chat_id, self.rename, more)
        chat_menu.pop_up(menu, chat_menu.below(self.more, menu))

    def _fit(self) -> None:
        """Reduce the tools where little room is left for the title."""
        taken = self.seek.width() + self.more.width() + 60
        if self.summary.isVisibleTo(self):
            taken += self.summary.width()
        narrow = self.width() - taken - self.tint.wide_width() < TITLE_WIDTH
        self.tint.set_narrow(narrow)
        left = self.width() - taken - self.tint.sizeHint().width()
        self.seek.setVisible(left >= LEAST_TITLE)
        self._row.setContentsMargins(20 if narrow else 24, 0, 11, 0)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class Toggle(QAbstractButton):
    """A switch with an icon and a word, or the icon alone."""

    def __init__(self, word: str, icon: str) -> None:
        super().__init__()
        self._icon, self._narrow = icon, False
        self.setText(word)
        self.setAccessibleName(word)
        self.setCheckable(True)
        self.setFont(resources.font())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def set_narrow(self, narrow: bool) -> None:
        """Show the icon alone."""
        if narrow != self._narrow:
            self._narrow = narrow
            self.setToolTip(self.text() if narrow else "")
            self.updateGeometry()

    def wide_width(self) -> int:
        """How many pixels it takes with its word."""
        return (
            9
            + resources.scaled(ICON)
            + 5
            + QFontMetrics(self.font()).horizontalAdvance(self.text())
            + 9
        )

    def sizeHint(self) -> QSize:
        height = round(2.15 * resources.pixels())
        return QSize(
            max(30, resources.scaled(ICON) + 8) if self._narrow else self.wide_width(), height
        )

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isChecked() or self.isDown() or self.underMouse():
            filled = self.isChecked() or self.isDown()
            painter.setBrush(resources.colour("selected" if filled else "hover"))
            painter.drawRoundedRect(self.rect(), 6, 6)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        ink = resources.colour("accent_text" if self.isChecked() else "text2")
        size = resources.scaled(ICON)
        beside = (self.width() - size) // 2 if self._narrow else 9
        left = self.width() - size - beside if self.isRightToLeft() else beside
        drawn = resources.pixmap(self._icon, ink, ICON, self.devicePixelRatioF())
        painter.drawPixmap(left, (self.height() - size) // 2, drawn)
        if not self._narrow:
            painter.setPen(ink)
            painter.setFont(self.font())
            place = self.rect().adjusted(9, 0, -9, 0)
            # The painter mirrors what is aligned.
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(place, side, self.text())


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


class _Name(Label):
    """A name of at most so many pixels, shortened in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.setFont(resources.font("body"))

    def show_text(self, text: str) -> None:
        metrics = QFontMetrics(self.font())
        short = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, NAME_WIDTH)
        self.setText(short)
        self.setToolTip("" if short == text else tooltip(text))
