"""The window: places the widgets and hands them their view models. Decides nothing else."""

from collections.abc import Callable

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QCloseEvent, QGuiApplication, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app import actions
from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.hub import Hub
from app.viewmodels.models import Models
from app.viewmodels.stats import Stats
from app.widgets.composer import Composer
from app.widgets.context_meter import ContextMeter
from app.widgets.error_bar import ErrorBar
from app.widgets.first_run import FirstRun
from app.widgets.header import Header, Rail
from app.widgets.hub import HubDialog
from app.widgets.sidebar import Sidebar
from app.widgets.transcript import COLUMN, Transcript

WIDE = 1200  # pixels; from here on the sidebar stands beside the chat
MARGIN = 16


class Window(QWidget):
    """Rail, chat and sidebar; or the first-run screen. `closing` is called once at the end."""

    def __init__(
        self,
        chat: Chat,
        models: Models,
        stats: Stats,
        alerts: Alerts,
        hub: Hub,
        closing: Callable[[], object],
    ) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(900, 600))
        self.resize(1440, 900)
        self._chat, self._models, self._alerts, self._hub = chat, models, alerts, hub
        self._closing = closing
        self._overlaid = False
        self._build(stats)
        self._connect()
        bind(models, Models.first_run, self.update_screen)

    def _build(self, stats: Stats) -> None:
        chat, models = self._chat, self._models
        self.rail = Rail()
        self.header = Header(chat, models, stats)
        self.transcript = Transcript(chat)
        self.error_bar = ErrorBar(self._alerts)
        self.composer = Composer(chat, models, self._alerts)
        self.sidebar = Sidebar(models, stats)
        self.first_run = FirstRun(models, self._alerts)
        self.hub = HubDialog(self._hub, self)
        foot = QVBoxLayout()
        foot.setSpacing(8)
        foot.setContentsMargins(24, 0, 24, 10)
        for widget in (self.error_bar, self.composer, ContextMeter(chat, models)):
            widget.setMaximumWidth(COLUMN + 2 * MARGIN)
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
        self._stack = QStackedWidget()
        self._stack.addWidget(centre)
        self._stack.addWidget(self.first_run)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(self.rail)
        self._row.addWidget(self._stack, 1)
        self._row.addWidget(self.sidebar)

    def _connect(self) -> None:
        self.rail.new_chat.connect(self.new_chat)
        self.header.opened.connect(self.toggle_sidebar)
        self.sidebar.folded.connect(self.toggle_sidebar)
        self.error_bar.acted.connect(self._act)
        self.sidebar.target.more.connect(self._hub.open)
        bind(self._hub, Hub.word, self.sidebar.target.show_state)
        actions.install(
            self,
            actions.table(
                new_chat=self.new_chat,
                stop=self.escape,
                toggle_sidebar=self.toggle_sidebar,
                get_models=self._hub.open,
                copy_answer=self.copy_answer,
                quit_=self.close,
            ),
        )

    def new_chat(self) -> None:
        """An empty transcript, ready to be written for."""
        self._chat.new_chat()
        self.composer.edit.setFocus()

    def escape(self) -> None:
        """Close what lies on top, else stop."""
        if self._overlaid:
            self._overlay(False)
        else:
            self._chat.stop()

    def copy_answer(self) -> None:
        """The last answer's source into the clipboard."""
        answers = [turn for turn in self._chat.turns if turn.role == "assistant"]
        if answers:
            QGuiApplication.clipboard().setText(answers[-1].text)

    def toggle_sidebar(self) -> None:
        """Beside the chat where there is room, else over it."""
        if self._models.first_run:
            return
        if self.width() >= WIDE:
            self._models.show_sidebar(not self._models.settings.sidebar)
            self._place_sidebar()
        else:
            self._overlay(not self._overlaid)

    def update_screen(self, *_: object) -> None:
        """First run, or the chat."""
        first = self._models.first_run
        self._stack.setCurrentIndex(1 if first else 0)
        self._place_sidebar()
        self._focus()

    def _focus(self) -> None:
        # On the first screen nothing is focused, so that no ring shows before a key is used.
        first = self._models.first_run
        (self.first_run if first else self.composer.edit).setFocus()

    def _act(self, action: Action) -> None:
        if action is Action.NEW_CHAT:
            self.new_chat()

    def _place_sidebar(self) -> None:
        first = self._models.first_run
        wide = self.width() >= WIDE
        docked = wide and self._models.settings.sidebar and not first
        self.header.summary.setVisible(not docked)
        if docked and self._row.indexOf(self.sidebar) < 0:
            self._row.addWidget(self.sidebar)
        if docked or wide or first:
            self._overlaid = False
        if not docked:
            self._row.removeWidget(self.sidebar)
            self.sidebar.setGeometry(self._overlay_place())
            self.sidebar.raise_()
        self.sidebar.setVisible(docked or self._overlaid)

    def _overlay_place(self) -> QRect:
        width = self.sidebar.width()
        return QRect(self.width() - width, 0, width, self.height())

    def _overlay(self, shown: bool) -> None:
        self._overlaid = shown
        self._place_sidebar()
        if shown:
            self.sidebar.setFocus()
        else:
            self.composer.edit.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_sidebar()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._focus()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._closing()
        self.hub.close()
        super().closeEvent(event)
