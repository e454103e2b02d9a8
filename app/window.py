"""Places the widgets, hands them their view models, and answers to keys and to its own width."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QDialog, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app import actions, paths
from app.setting import Value
from app.viewmodels.about import About
from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.compare import Compare
from app.viewmodels.conversations import Conversations
from app.viewmodels.gpu import Gpu
from app.viewmodels.hub import Hub
from app.viewmodels.models import Models
from app.viewmodels.presets import Presets
from app.viewmodels.stats import Stats
from app.viewmodels.writing import Writing
from app.widgets import chat_column, sidebar
from app.widgets.about import AboutDialog
from app.widgets.border import Border, Span
from app.widgets.chat_column import NoteBar
from app.widgets.chat_list import RAIL, ChatList
from app.widgets.compare import CompareDialog
from app.widgets.composer import Composer
from app.widgets.context_meter import ContextMeter, OverflowBar
from app.widgets.error_bar import ErrorBar
from app.widgets.first_run import FirstRun, scrolled
from app.widgets.gpu import GpuSection
from app.widgets.header import Header
from app.widgets.hub import HubDialog
from app.widgets.learned import LearnedSection
from app.widgets.settings_dialog import SettingsDialog
from app.widgets.shortcuts import ShortcutSheet
from app.widgets.sidebar import Sidebar
from app.widgets.transcript import COLUMN, Transcript
from engine.errors import Reason

# Pixels at the usual font size, to which comes what sidebar and list take more in a larger one:
WIDE = 1200  # from here on the sidebar stands beside the chat
ROOMY = 960  # and from here on the list of chats
LIST = Span(chat_column.WIDTH, 200, 400, chat_column.EMS)
SIDE = Span(sidebar.WIDTH, 280, 480, sidebar.EMS)
LEAST = 480  # pixels of the chat, whatever is dragged
OUTSIDE = 16  # what is written stands under what is said, so its frame lies that far outside


@dataclass(frozen=True)
class Parts:
    """The view models that the window shows."""

    about: About
    chat: Chat
    conversations: Conversations
    writing: Writing
    presets: Presets
    models: Models
    stats: Stats
    alerts: Alerts
    hub: Hub
    gpu: Gpu
    compare: Compare


class Window(QWidget):
    """Chats, transcript and sidebar; or the first-run screen. `closing` is called once at the
    end; `used` tells that the window was turned to."""

    used = Signal()
    dialog_made = Signal(str, QWidget)  # its name

    def __init__(self, parts: Parts, closing: Callable[[], object]) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(900, 600))
        self.setAcceptDrops(True)
        self.resize(1440, 900)
        self._parts, self._closing = parts, closing
        self._chat, self._models = parts.chat, parts.models
        self._overlaid = False
        self._build()
        self._connect()
        bind(parts.models, Models.first_run, self.update_screen)
        bind(parts.models, Models.settings, self.update_settings)

    def _build(self) -> None:
        parts = self._parts
        self.chats = ChatList(parts.conversations, parts.hub)
        self.header = Header(parts.chat, parts.models, parts.stats, parts.conversations)
        self.transcript = Transcript(parts.chat)
        self.note = NoteBar(parts.conversations)
        self.overflow_bar = OverflowBar(parts.chat)
        self.error_bar = ErrorBar(parts.alerts)
        self.composer = Composer(
            parts.chat, parts.models, parts.alerts, parts.writing, parts.presets
        )
        self.meter = ContextMeter(
            parts.chat,
            parts.models,
            parts.writing,
            lambda way: self.set("overflow", way),
        )
        self.sidebar = Sidebar(parts.models, parts.stats, parts.gpu)
        self.first_run = FirstRun(parts.models, parts.alerts)
        self.hub = HubDialog(parts.hub, self)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._centre())
        self._stack.addWidget(scrolled(self.first_run))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(self.chats)
        self._row.addWidget(self._stack, 1)
        self._row.addWidget(self.sidebar)
        self.list_border = Border(self, LIST)
        self.side_border = Border(self, SIDE, ending=True)

    @cached_property
    def settings(self) -> SettingsDialog:
        """The dialog; made when it is first asked for."""
        made = SettingsDialog(self._models.settings, self)
        made.changed.connect(self.set)
        made.about_asked.connect(lambda: self.about.open_up())
        self.gpu = GpuSection(self._parts.gpu)
        self.learned = LearnedSection(self._parts.conversations)
        made.add(self.learned)
        made.add(self.gpu)
        self.dialog_made.emit("settings", made)
        return made

    @cached_property
    def compare(self) -> CompareDialog:
        """The dialog that compares drafts; made when it is first asked for."""
        made = CompareDialog(self._parts.compare, self)
        self.dialog_made.emit("compare", made)
        return made

    @cached_property
    def about(self) -> AboutDialog:
        """What the program is; made when it is first asked for."""
        return AboutDialog(self._parts.about, self)

    def _centre(self) -> QWidget:
        """The chat: its header, its turns, and below them where it is written."""
        foot = QVBoxLayout()
        foot.setSpacing(8)
        foot.setContentsMargins(24, 0, 24, 10)
        for widget in (
            self.note,
            self.overflow_bar,
            self.error_bar,
            self.composer,
            self.meter,
        ):
            widget.setMaximumWidth(COLUMN + 2 * OUTSIDE)
            row = QHBoxLayout()
            row.addStretch(1)
            row.addWidget(widget, 1000)
            row.addStretch(1)
            foot.addLayout(row)
        centre = QWidget()
        centre.setObjectName("centre")
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.transcript, 1)
        column.addLayout(foot)
        return centre

    def _connect(self) -> None:
        parts = self._parts
        self.chats.opened.connect(self.composer.edit.setFocus)
        self.chats.models_asked.connect(parts.hub.open)
        self.chats.settings_asked.connect(lambda: self.settings.open_up())
        parts.conversations.sought.connect(self.transcript.show_turn)
        self.header.opened.connect(self.toggle_sidebar)
        self.header.find_asked.connect(self.transcript.open_find)
        self.header.tint_toggled.connect(lambda on: self.set("tint", on))
        self.sidebar.folded.connect(self.toggle_sidebar)
        self.sidebar.drafts.compare_asked.connect(self.show_compare)
        self.sidebar.gpu.asked.connect(self.show_gpu)
        for border in (self.list_border, self.side_border):
            border.moved.connect(self._place)
        self.error_bar.acted.connect(self._act)
        self.sidebar.target.more.connect(parts.hub.open)
        bind(parts.hub, Hub.word, self.sidebar.target.show_state)
        entries = actions.table(
            {
                "new_chat": self.new_chat,
                "search_chats": self.chats.focus_search,
                "find": self.transcript.open_find,
                "rename": self.header.rename,
                "stop": self.escape,
                "regenerate": self.regenerate,
                "copy_answer": self.copy_answer,
                "choose_model": self.choose_model,
                "get_models": parts.hub.open,
                "compare": self.show_compare,
                "toggle_sidebar": self.toggle_sidebar,
                "settings": lambda: self.settings.open_up(),
                "shortcuts": self.show_shortcuts,
                "quit": self.close,
            }
        )
        actions.install(self, entries)
        self._sheet: ShortcutSheet | None = None

    def set(self, name: str, value: Value) -> None:
        """Give a setting another value."""
        if name == "offline":
            self._parts.hub.set_offline(value is True)
        else:
            self._models.set(name, value)

    def new_chat(self) -> None:
        """An empty transcript, ready to be written for."""
        self._parts.conversations.new()
        self.composer.edit.setFocus()

    def escape(self) -> None:
        """Close what lies on top, else stop."""
        if self._overlaid:
            self._overlay(False)
        else:
            self._chat.stop()

    def regenerate(self) -> None:
        """Have the last question answered, anew or at all."""
        if self._chat.turns:
            self._chat.regenerate(self._chat.turns[-1].id)

    def copy_answer(self) -> None:
        """The last answer's source into the clipboard."""
        answers = [turn.text for turn in self._chat.turns if turn.role == "assistant"]
        if answers and answers[-1]:
            QGuiApplication.clipboard().setText(answers[-1])

    def choose_model(self) -> None:
        """Open the list of targets."""
        if self._models.first_run:
            return
        if not self.sidebar.isVisible():
            self.toggle_sidebar()
        self.sidebar.target.open()

    def show_shortcuts(self) -> None:
        """All keys, in a sheet."""
        if self._sheet is None:
            self._sheet = ShortcutSheet(actions.listed(), self)
        self._sheet.show()
        self._sheet.raise_()
        self._sheet.activateWindow()

    def show_compare(self) -> None:
        """Which draft is fastest here."""
        if not self._models.first_run:
            self.compare.open_up()

    def show_gpu(self) -> None:
        """What the settings say of the graphics card."""
        dialog = self.settings
        dialog.open_up(self.gpu)

    def toggle_sidebar(self) -> None:
        """Beside the chat where there is room, else over it."""
        if self._models.first_run:
            return
        if self._is_wide():
            self.set("sidebar", not self._is_docked())
        else:
            self._overlay(not self._overlaid)

    def update_screen(self, *_: object) -> None:
        """First run, or the chat."""
        first = self._models.first_run
        self._stack.setCurrentIndex(1 if first else 0)
        self._place()
        self._focus()

    def update_settings(self, *_: object) -> None:
        """What was set, in whichever way."""
        settings = self._models.settings
        self.header.set_tint(settings.tint)
        self.transcript.set_tinted(settings.tint)
        self.transcript.set_unfolded(settings.thinking)
        if "settings" in vars(self):
            self.settings.show_settings(settings)
        self._place()

    def _focus(self) -> None:
        # On the first screen nothing is focused, so that no ring shows before a key is used.
        first = self._models.first_run
        (self.first_run if first else self.composer.edit).setFocus()

    def _act(self, action: Action) -> None:
        alerts = self._parts.alerts
        match action:
            case Action.NEW_CHAT:
                self.new_chat()
            case Action.USE_SHORTER_CONTEXT:
                self._models.choose_context(max(self._models.context // 2, 1))
            case Action.NO_DRAFT:
                self._models.choose_draft("none")
            case Action.CHOOSE_MODEL:
                self.choose_model()
            case Action.ANSWER:
                self.regenerate()
            case Action.LOAD_CHATS_MODEL:
                self._models.choose_target(self._chat.choices.target or "")
            case Action.GRAPHICS_CARD:
                self.show_gpu()
            case Action.OPEN_LOG:
                if not self._open(str(paths.log_folder())):
                    return
            case Action.OPEN_REPORT if (
                alerts.current is not None and alerts.current.reason is not None
            ):
                if not self._open(str(alerts.current.reason.values["path"])):
                    return
                alerts.close()
        alerts.dismiss()

    def _open(self, path: str) -> bool:
        """Have the system open it; where nothing does, that is said and where it lies."""
        if QDesktopServices.openUrl(QUrl.fromLocalFile(path)):
            return True
        said = "No program here opens {path}. Under Details a report can be copied."
        self._parts.alerts.show_reason(Reason("nothing_opens", said, {"path": path}))
        return False

    def _is_docked(self) -> bool:
        """Whether the sidebar stands beside the chat: the user's choice, where there is room."""
        wanted = self._models.settings.sidebar
        return self._is_wide() and wanted is not False and not self._models.first_run

    def _is_wide(self) -> bool:
        return self.width() >= WIDE + self.side_border.grown + self.list_border.grown

    def _place(self) -> None:
        wanted = self._models.settings.chats
        roomy = ROOMY + self.list_border.grown
        self.chats.set_narrow(self.width() < roomy if wanted is None else not wanted)
        self.chats.setVisible(not self._models.first_run)
        # The rail has no room for words.
        self.note.set_wanted(self.chats.is_narrow)
        docked = self._is_docked()
        self.header.summary.setVisible(not docked)
        if docked and self._row.indexOf(self.sidebar) < 0:
            self._row.addWidget(self.sidebar)
        if docked or self._is_wide() or self._models.first_run:
            self._overlaid = False
        self._share(docked)
        if not docked:
            self._row.removeWidget(self.sidebar)
            self.sidebar.setGeometry(self._overlay_place())
            self.sidebar.raise_()
        self.sidebar.setVisible(docked or self._overlaid)
        self.side_border.raise_()

    def _share(self, docked: bool) -> None:
        """Give list and sidebar their widths; where the chat would have too little, the sidebar is
        the first to be cut."""
        room, narrow = self.width() - LEAST, self.chats.is_narrow
        begin = RAIL if narrow else self.list_border.wish()
        side = self.side_border.fit(room - begin if docked else room)
        self.sidebar.setFixedWidth(side)
        self.chats.set_width(self.list_border.fit(room - side if docked else room))
        self.list_border.place(shown=not narrow and not self._models.first_run)
        self.side_border.place(shown=docked or self._overlaid)

    def _overlay_place(self) -> QRect:
        width = self.sidebar.width()
        left = 0 if self.isRightToLeft() else self.width() - width
        return QRect(left, 0, width, self.height())

    def _overlay(self, shown: bool) -> None:
        self._overlaid = shown
        self._place()
        if shown:
            self.sidebar.setFocus()
        else:
            self.composer.edit.setFocus()

    def focusNextPrevChild(self, forward: bool) -> bool:
        # only now: while an answer streams, parts come all the time
        self.transcript.order_tabs(self.header.more)
        return super().focusNextPrevChild(forward)

    def fit_font(self) -> None:
        self._place()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() and not self._models.first_run:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if self.composer.take(event.mimeData()):
            event.acceptProposedAction()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._place()
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.used.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._focus()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._closing()
        for dialog in self.findChildren(QDialog):
            dialog.close()
        super().closeEvent(event)
