"""The whole chat list: search, the chats by day, what was just done, models and settings."""

from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFontMetrics,
    QResizeEvent,
)
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.chat_lines import Line
from app.viewmodels.conversations import Conversations, Note
from app.viewmodels.hub import Hub
from app.widgets import chat_menu
from app.widgets.chat_search import Search
from app.widgets.chats import Chats
from app.widgets.common import (
    Button,
    Elided,
    Glyph,
    IconButton,
    bar_height,
    label,
    rule,
    set_tone,
)

WIDTH = 248  # pixels at least
EMS = 14  # times the font's size
FOOT = 5
LETTERS = 6  # of a title that a note has room for at least


class Column(QWidget):
    """`opened`: a chat was opened or begun."""

    models_asked = Signal()
    settings_asked = Signal()
    opened = Signal()

    def __init__(self, conversations: Conversations, hub: Hub) -> None:
        super().__init__()
        self._conversations = conversations
        self.setAutoFillBackground(True)
        self.search = Search()
        self.chats = Chats(self.tr("Chats"))
        self.said = label("", tone="text2", wrap=True)
        self.note = NoteBar(conversations)
        self.foot = Foot(hub)
        self.setFixedWidth(WIDTH)
        self._build()
        self.fit_font()
        self._connect()
        bind(conversations, Conversations.lines, self.chats.show_lines)
        bind(conversations, Conversations.said, self._say)

    def _build(self) -> None:
        self.said.setContentsMargins(20, 12, 16, 0)
        noted = QHBoxLayout()
        noted.setContentsMargins(8, 0, 8, 8)
        noted.addWidget(self.note)
        field = QHBoxLayout()
        field.setContentsMargins(12, 0, 12, 0)
        field.addWidget(self.search)
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._head())
        column.addLayout(field)
        column.addSpacing(8)
        column.addWidget(self.said)
        column.addWidget(self.chats, 1)
        column.addLayout(noted)
        column.addWidget(rule())
        column.addWidget(self.foot)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(column)
        row.addWidget(rule(vertical=True))

    def _head(self) -> QWidget:
        self.new = IconButton(self.tr("New chat"), "square-pen")
        self.more = IconButton(self.tr("Import and export"), "menu")
        self._top = head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(11, 0, 9, 0)
        row.setSpacing(2)
        row.addWidget(Glyph("mark", "accent", 22))
        row.addSpacing(7)
        row.addWidget(label("Slipstream", "title"))
        row.addStretch()
        row.addWidget(self.new)
        row.addWidget(self.more)
        return head

    def fit_font(self) -> None:
        """Its line goes on over the transcript."""
        self._top.setFixedHeight(bar_height())

    def _connect(self) -> None:
        chats, conversations = self.chats, self._conversations
        self.new.clicked.connect(self._begin)
        self.more.clicked.connect(self._show_menu)
        self.search.textChanged.connect(conversations.search)
        self.search.down.connect(chats.enter)
        self.search.entered.connect(self._open_first)
        chats.opened.connect(self._open)
        chats.renamed.connect(conversations.rename)
        chats.deleted.connect(conversations.delete)
        chats.undone.connect(conversations.undo)
        chats.asked.connect(self._show_chat_menu)
        chats.left.connect(lambda: self.search.setFocus(Qt.FocusReason.BacktabFocusReason))
        self.foot.models.clicked.connect(self.models_asked)
        self.foot.settings.clicked.connect(self.settings_asked)

    def _begin(self) -> None:
        self._conversations.new()
        self.opened.emit()

    def _open(self, line: Line) -> None:
        self._conversations.open(line.id, line.entry)
        self.opened.emit()

    def _open_first(self) -> None:
        lines = self._conversations.lines
        if self._conversations.query and lines:
            self._open(lines[0])

    def _say(self, said: str) -> None:
        self.said.setText(said)
        self.said.setVisible(bool(said))

    def _show_menu(self) -> None:
        menu = chat_menu.list_menu(self, self._conversations)
        chat_menu.pop_up(menu, chat_menu.below(self.more, menu))

    def _show_chat_menu(self, line: Line, corner: QPoint) -> None:
        rename = partial(self.chats.rename, line.id)
        chat_menu.pop_up(chat_menu.chat_menu(self, self._conversations, line.id, rename), corner)


class NoteBar(QFrame):
    """What was just done, and Undo where it can be undone: below it where words are long."""

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self._conversations = conversations
        self._wanted = True
        self.setObjectName("card")
        self.said = _Said()
        self.undo = Button(self.tr("Undo"), kind="flat")
        self.undo.setProperty("tone", "accent_text")
        self.undo.clicked.connect(conversations.undo)
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(11, 3, 3, 3)
        row.setSpacing(2)
        row.addWidget(self.said, 1)
        row.addWidget(self.undo, 0, Qt.AlignmentFlag.AlignRight)
        bind(conversations, Conversations.note, self.show_note)

    def set_wanted(self, wanted: bool) -> None:
        """Whether notes are shown here."""
        if wanted != self._wanted:
            self._wanted = wanted
            self.setVisible(wanted and self._conversations.note is not None)

    def show_note(self, note: Note | None) -> None:
        self.setVisible(self._wanted and note is not None)
        if note is None:
            return
        self.undo.setVisible(note.undo)
        self.said.show_note(note)
        self._fit()
        if self.isVisible():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, note.text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        beside = self.undo.sizeHint().width() if self.undo.isVisibleTo(self) else 0
        ways = QBoxLayout.Direction
        few = self.width() - 16 - beside < self.said.least_width()
        self._row.setDirection(ways.TopToBottom if few and beside else ways.LeftToRight)


class _Said(Elided):
    """A note in one line. What it names is shortened first: what was done to it stays to be read,
    which in German is the sentence's last word."""

    def __init__(self) -> None:
        super().__init__(mode=Qt.TextElideMode.ElideRight)
        self._note = Note("")

    def show_note(self, note: Note) -> None:
        self._note = note
        self.show_text(note.text)

    def least_width(self) -> int:
        """How many pixels it takes with a few letters of a title."""
        few = self._note.with_title((self._note.title or "")[:LETTERS] + "…")
        return 0 if self._note.title is None else QFontMetrics(self.font()).horizontalAdvance(few)

    def _fit(self) -> None:
        super()._fit()
        note = self._note
        if note.title is None or self.text() == note.text:
            return
        metrics, width = QFontMetrics(self.font()), self.width()
        room = width - metrics.horizontalAdvance(note.with_title(""))
        # At least a sign of it stays.
        short = metrics.elidedText(note.title, Qt.TextElideMode.ElideRight, room) or "…"
        said = note.with_title(short)
        self.setText(metrics.elidedText(said, Qt.TextElideMode.ElideRight, width))


class Foot(QWidget):
    """Models, settings and the offline switch: icons and words, or what of them there is room
    for."""

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self.models = _FootButton(self.tr("Models"), "hard-drive")
        self.settings = _FootButton(self.tr("Settings"), "settings")
        self.offline = _FootButton(self.tr("Offline"), "wifi-off", self._told())
        self.offline.setCheckable(True)
        self.offline.clicked.connect(self._switch)
        self._buttons = (self.models, self.settings, self.offline)
        row = QHBoxLayout(self)
        row.setContentsMargins(FOOT, 9, FOOT, 9)
        row.setSpacing(0)
        for button in self._buttons:
            row.addWidget(button)
            row.addStretch()
        row.takeAt(row.count() - 1)
        bind(hub, Hub.offline, self.show_offline)

    def show_offline(self, offline: bool) -> None:
        self.offline.setChecked(offline)
        self.offline.set_ink("accent_text" if offline else "text2")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() - 2 * FOOT
        for icon, words in ((True, True), (False, True), (True, False)):
            for button in self._buttons:
                button.show_parts(icon=icon, words=words)
            if sum(button.sizeHint().width() for button in self._buttons) <= room:
                return

    def _switch(self, wanted: bool) -> None:
        self._hub.set_offline(wanted)
        self.show_offline(self._hub.offline)  # it may be fixed

    def _told(self) -> str:
        if self._hub.fixed:
            return self.tr("The environment says so: HF_HUB_OFFLINE is set.")
        return self.tr("When this is on, nothing is asked of the network.")


class _FootButton(Button):
    """An icon and a word close to it, or one of them. `told`: what its tooltip says besides."""

    def __init__(self, word: str, icon: str, told: str = "") -> None:
        super().__init__(word, icon=icon, kind="flat", role="caption")
        self._name, self._told = icon, told
        set_tone(self, "text2")
        self.show_parts(icon=True, words=True)

    def set_words(self, text: str) -> None:
        self._word = text
        super().set_words(text)

    def set_ink(self, ink: str) -> None:
        """Another colour of icon and word."""
        set_tone(self, ink)
        self.set_icon(self._icon, ink)

    def show_parts(self, *, icon: bool, words: bool) -> None:
        """With its icon, its word or both; the tooltip has a word that is not shown."""
        self.set_icon(self._name if icon else "", self._ink)
        self.setText(f"\u2009{self._word}" if words else "")
        said = (self._told,) if words else (self._word, self._told)
        self.setToolTip("\n".join(filter(None, said)))
