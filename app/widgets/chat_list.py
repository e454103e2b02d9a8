"""The left column, and the rail of icons that stands for it where there is no room.

From the rail the column is opened over the window, and closes once a chat is chosen.
"""

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.conversations import Conversations, Note
from app.viewmodels.hub import Hub
from app.widgets.chat_column import Column
from app.widgets.common import Glyph, IconButton, rule, takes_escape

RAIL = 52


class ChatList(QWidget):
    """The column, or the rail. `opened`: a chat was opened or begun, and can be written in."""

    models_asked = Signal()
    settings_asked = Signal()
    opened = Signal()

    def __init__(self, conversations: Conversations, hub: Hub) -> None:
        super().__init__()
        self._narrow = False
        self._over: _Over | None = None
        self.column = Column(conversations, hub)
        self._width = self.column.minimumWidth()
        self.rail = Rail(conversations)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(self.rail)
        self._row.addWidget(self.column)
        for part in (self.column, self.rail):
            part.models_asked.connect(self.models_asked)
            part.settings_asked.connect(self.settings_asked)
            part.opened.connect(self._opened)
        self.column.models_asked.connect(self.fold)
        self.column.settings_asked.connect(self.fold)
        self.rail.search_asked.connect(self.focus_search)
        self.rail.chats_asked.connect(self.focus_chats)
        self.set_narrow(False)

    @property
    def is_narrow(self) -> bool:
        """Whether the rail is shown."""
        return self._narrow

    def set_narrow(self, narrow: bool) -> None:
        """Show the rail, or the whole column."""
        self.fold()
        self._narrow = narrow
        self.rail.setVisible(narrow)
        self.column.setVisible(not narrow)
        self.fit_font()

    def set_width(self, width: int) -> None:
        """Another width of the column, where it is shown beside the chat."""
        if width != self._width:
            self._width = width
            self.column.setFixedWidth(width)
            self.fit_font()

    def fit_font(self) -> None:
        self.setFixedWidth(RAIL if self._narrow else self._width)

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._unfold()
        self.column.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.column.search.selectAll()

    def focus_chats(self) -> None:
        """Go to the list."""
        self._unfold()
        self.column.chats.enter()

    def fold(self) -> None:
        """Close the column that was opened over the rail."""
        if self._over is not None:
            over, self._over = self._over, None
            self.column.hide()
            self._row.addWidget(self.column)
            over.hide()
            over.deleteLater()

    def _unfold(self) -> None:
        if self._narrow and self._over is None:
            self._over = _Over(self.window(), self.column)
            self._over.left.connect(self._leave)

    def _leave(self) -> None:
        self.fold()
        self.rail.chats.setFocus(Qt.FocusReason.OtherFocusReason)

    def _opened(self) -> None:
        self.fold()
        self.opened.emit()


class Rail(QWidget):
    """What the column has, as icons; 52 pixels wide."""

    models_asked = Signal()
    settings_asked = Signal()
    opened = Signal()
    search_asked = Signal()
    chats_asked = Signal()

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self._conversations = conversations
        self.setAutoFillBackground(True)
        self.setFixedWidth(RAIL)
        self.new = IconButton(self.tr("New chat"), "square-pen", size=32)
        self.search = IconButton(self.tr("Search chats"), "search", size=32)
        self.chats = IconButton(self.tr("Chats"), "message-square", size=32)
        self.undo = IconButton(self.tr("Undo"), "undo-2", size=32)
        self.models = IconButton(self.tr("Models"), "hard-drive", size=32)
        self.settings = IconButton(self.tr("Settings"), "settings", size=32)
        self._build()
        self.new.clicked.connect(self._begin)
        self.search.clicked.connect(self.search_asked)
        self.chats.clicked.connect(self.chats_asked)
        self.undo.clicked.connect(conversations.undo)
        self.models.clicked.connect(self.models_asked)
        self.settings.clicked.connect(self.settings_asked)
        bind(conversations, Conversations.note, self.show_note)

    def _build(self) -> None:
        column = QVBoxLayout()
        column.setContentsMargins(4, 11, 3, 8)
        column.setSpacing(6)
        centre = Qt.AlignmentFlag.AlignHCenter
        column.addWidget(Glyph("mark", "accent", 24), 0, centre)
        column.addSpacing(8)
        for button in (self.new, self.search, self.chats):
            column.addWidget(button, 0, centre)
        column.addStretch()
        for button in (self.undo, self.models, self.settings):
            column.addWidget(button, 0, centre)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(column)
        row.addWidget(rule(vertical=True))

    def show_note(self, note: Note | None) -> None:
        undo = note is not None and note.undo
        self.undo.setVisible(undo)
        if note is not None and undo:
            said = self.tr("{done} Undo").format(done=note.text)
            self.undo.setToolTip(said)
            self.undo.setAccessibleName(said)

    def _begin(self) -> None:
        self._conversations.new()
        self.opened.emit()


class _Over(QWidget):
    """The column over the window; a click beside it or Escape leaves it."""

    left = Signal()

    def __init__(self, window: QWidget, column: QWidget) -> None:
        super().__init__(window)
        self._window, self._column = window, column
        column.setParent(self)
        window.installEventFilter(self)
        self._place()
        column.show()
        self.show()
        self.raise_()

    def _place(self) -> None:
        self.setGeometry(self._window.rect())
        width = self._column.minimumWidth()
        left = self.width() - width if self.isRightToLeft() else 0
        self._column.setGeometry(QRect(left, 0, width, self.height()))

    def fit_font(self) -> None:
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def event(self, event: QEvent) -> bool:
        # Before the window's own Escape, which stops an answer.
        return takes_escape(event) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.left.emit()
