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
    QLabel,
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
from app.widgets.common import ICON, Glyph, IconButton, Label, bar_height, label, rule, tooltip

# Pixels at the usual font size:
NAME_WIDTH = 170  # of a model's name at most
LEAST_NAME = 60  # with less than that, the summary says less
STEP = 5  # by so many pixels a name is shortened
SPACING = 5
TITLE_WIDTH = 260  # with less than that the tools are reduced to icons
LEAST_TITLE = 140  # with less than that, finding is left to the menu, then the summary says less


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
        self.summary.changed.connect(self._fit)
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
        self.fit_font()

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
        """Reduce the tools, then the summary, where little room is left for the title."""
        least, taken = resources.scaled(LEAST_TITLE), self.seek.width() + self.more.width() + 60
        summed = self.summary.isVisibleTo(self)
        asked = self.summary.wide_width() if summed else 0
        left = self.width() - taken - asked
        narrow = left - self.tint.wide_width() < resources.scaled(TITLE_WIDTH)
        self.tint.set_narrow(narrow)
        left -= self.tint.sizeHint().width()
        self.seek.setVisible(left >= least)
        if summed:
            beside = 0 if self.seek.isVisibleTo(self) else self.seek.width()
            self.summary.fit(asked + min(left + beside - least, 0))
        self._row.setContentsMargins(20 if narrow else 24, 0, 11, 0)

    def fit_font(self) -> None:
        """Its line goes on beside that of the list of chats."""
        self.setFixedHeight(bar_height())
        self._fit()

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
    """ "Llama 3.1 8B with Llama 3.2 1B | 61 % accepted" as a button, or as much of it as there is
    room for."""

    changed = Signal()  # what it says, and with it how much room it asks for

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
        row.setSpacing(SPACING)
        self._glyphs = (Glyph("layers", "accent_text"), Glyph("chevron-down"))
        row.addWidget(self._glyphs[0])
        row.addSpacing(4)
        for widget in (self._target, self._with, self._draft):
            row.addWidget(widget)
        row.addSpacing(4)
        self._bar.setFixedHeight(16)
        row.addWidget(self._bar)
        row.addWidget(self._rate)
        row.addWidget(self._accepted)
        row.addSpacing(4)
        row.addWidget(self._glyphs[1])
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
        said = self.tr("Target and draft: {target}, {draft}")
        told = said.format(target=target, draft=models.draft_name or "–")
        self.setAccessibleName(told)
        self.setToolTip(tooltip(told))
        self.changed.emit()

    def update_rate(self, *_: object) -> None:
        self._rate.setText(self._stats.figures.rate)
        self.changed.emit()

    def wide_width(self) -> int:
        """How many pixels it takes with all that it says."""
        return self._width(resources.scaled(NAME_WIDTH), self._parts()[0])

    def fit(self, room: int) -> None:
        """Be at most `room` pixels wide: shorten the names, then leave out words."""
        least = resources.scaled(LEAST_NAME)
        for parts in self._parts():
            name = resources.scaled(NAME_WIDTH)
            while name > least and self._width(name, parts) > room:
                name -= STEP
            if name > least:
                break
        for part in (self._with, self._draft, self._accepted):
            part.setVisible(part in parts)
        for held in (self._target, self._draft):
            held.shorten(name)
        # The style sheet measures a button by its own text, of which this one has none.
        self.setFixedWidth(self._width(None, parts))

    def _parts(self) -> tuple[tuple[QLabel, ...], ...]:
        """What it says: all, without a word, and without the draft."""
        draft = (self._with, self._draft) if self._models.draft_name else ()
        few = (self._target, self._rate)
        return (*few, *draft, self._accepted), (*few, *draft), few

    def _width(self, name: int | None, parts: tuple[QLabel, ...]) -> int:
        """Pixels of it with `parts`, names at most `name` wide each; None: as they are shown."""
        wide = 2 + 11 + 10 + 3 * 4 + 1 + 2 * SPACING + sum(g.width() for g in self._glyphs)
        for part in parts:
            if name is not None and isinstance(part, _Name):
                wide += SPACING + part.long(name)
            else:
                wide += SPACING + part.sizeHint().width()
        return wide


class _Name(Label):
    """A name of at most so many pixels, shortened in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self._full = ""
        self.setFont(resources.font("body"))

    def show_text(self, text: str) -> None:
        """Another name."""
        self._full = text

    def long(self, room: int) -> int:
        """Pixels that it takes of `room`."""
        return min(QFontMetrics(self.font()).horizontalAdvance(self._full) + 1, room)

    def shorten(self, room: int) -> None:
        """Show as much of it as there is room for."""
        metrics = QFontMetrics(self.font())
        self.setText(metrics.elidedText(self._full, Qt.TextElideMode.ElideMiddle, room))
