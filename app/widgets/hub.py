"""The dialog that gets models: search, what a model takes, what is on its way."""

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.viewmodels.binding import bind
from app.viewmodels.downloads import Downloads
from app.viewmodels.hub import Detail, Hub
from app.viewmodels.rows import Row
from app.widgets import folders
from app.widgets.choices import ChoiceList
from app.widgets.common import Button, Elided, label
from app.widgets.downloads import DownloadList
from app.widgets.input_method import InputMethod
from app.widgets.token_panel import TokenPanel

MARGIN = 18
LEAST = 60  # pixels of a list


class HubDialog(QDialog):
    """Stays beside the window; downloads go on when it is closed."""

    def __init__(self, hub: Hub, parent: QWidget) -> None:
        super().__init__(parent)
        self._hub = hub
        self._wants_token = False
        self.setWindowTitle(self.tr("Get models"))
        self.setMinimumSize(600, 480)
        self.resize(820, 560)
        self._build()
        # Return belongs to the search field, not to whichever button Qt would choose.
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.field.returnPressed.connect(self._search)
        self.look.clicked.connect(self._search)
        self.results.chosen.connect(hub.choose)
        self.offline.clicked.connect(self._switch)
        self.link.clicked.connect(self._show_token)
        hub.opened.connect(self.open_up)
        bind(hub, Hub.results, self.update_results)
        bind(hub, Hub.said, self.update_said)
        bind(hub, Hub.detail, self.update_detail)
        bind(hub, Hub.offline, self.update_offline)
        bind(hub.downloads, Downloads.items, self.update_locked)

    def _build(self) -> None:
        self.link = Button(self.tr("Access token"), kind="flat")
        self.link.setCheckable(True)
        self.offline = Button(self.tr("Offline"), kind="flat")
        self.offline.setCheckable(True)
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Get models"), "title"))
        head.addStretch()
        head.addWidget(self.link)
        head.addWidget(self.offline)
        self.note = label("", "caption", "text2", wrap=True)
        self.field = QLineEdit()
        InputMethod(self.field)
        self.field.setPlaceholderText(self.tr("Search the Hugging Face Hub"))
        self.field.setAccessibleName(self.tr("Search the Hugging Face Hub"))
        self.look = Button(self.tr("Search"))
        search = QHBoxLayout()
        search.setSpacing(8)
        search.addWidget(self.field)
        search.addWidget(self.look)
        self.token = TokenPanel(self._hub)
        self.token.hide()
        self.detail = DetailPane(self._hub)
        middle = QHBoxLayout()
        middle.setSpacing(12)
        middle.addWidget(self._left(), 1)
        middle.addWidget(self.detail, 1)
        self.downloads = DownloadList(self._hub.downloads)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 14, MARGIN, MARGIN)
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(self.note)
        column.addLayout(search)
        column.addWidget(self.token)
        column.addLayout(middle, 1)
        column.addWidget(self.downloads)

    def _left(self) -> QFrame:
        """The results, or the sentence in their place."""
        self.said = label("", "body", "text2", wrap=True)
        self.said.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.said.setMargin(12)
        self.results = ChoiceList(self.tr("Models found"))
        self._stack = QStackedWidget()
        self._stack.addWidget(self.said)
        self._stack.addWidget(_Place(self.results))
        card = QFrame()
        card.setObjectName("card")
        inner = QVBoxLayout(card)
        inner.setContentsMargins(1, 1, 1, 1)
        inner.addWidget(self._stack)
        return card

    def open_up(self) -> None:
        """Show it, or bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)
        self.field.selectAll()

    def update_results(self, rows: tuple[Row, ...]) -> None:
        self.results.show_rows(rows)
        self._stack.setCurrentIndex(1 if rows else 0)

    def update_said(self, said: str) -> None:
        self.said.setText(said)

    def update_detail(self, detail: Detail | None) -> None:
        self.detail.setVisible(detail is not None)
        self.update_locked()

    def update_locked(self, *_: object) -> None:
        """The token is asked for where one may be what is missing."""
        detail, items = self._hub.detail, self._hub.downloads.items
        locked = (detail is not None and detail.locked) or any(item.locked for item in items)
        if locked != self._wants_token:
            self._show_token(locked)
        self._wants_token = locked

    def update_offline(self, offline: bool) -> None:
        self.offline.setChecked(offline)
        self.note.setVisible(offline)
        self.note.setText(
            self.tr("Offline: HF_HUB_OFFLINE is set, so it cannot be switched off in this window.")
            if self._hub.fixed
            else self.tr("Offline: nothing is searched for or fetched until it is switched off.")
        )

    def _switch(self, wanted: bool) -> None:
        self._hub.set_offline(wanted)
        self.update_offline(self._hub.offline)

    def _show_token(self, shown: bool) -> None:
        self.link.setChecked(shown)
        self.token.setVisible(shown)

    def _search(self) -> None:
        self._hub.search(self.field.text())


class DetailPane(QFrame):
    """The chosen repository: its models, what it takes, Get; or why not."""

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.setObjectName("card")
        self._hub = hub
        self._build()
        self.get.clicked.connect(hub.get)
        self.elsewhere.clicked.connect(self._move)
        self.again.clicked.connect(self._look_again)
        self.page.clicked.connect(self._open_page)
        self.choices.chosen.connect(hub.choose_file)
        bind(hub, Hub.detail, self.update_detail)
        bind(hub, Hub.offline, lambda _: self.update_detail(hub.detail))
        bind(hub.downloads, Downloads.items, self.update_items)

    def _build(self) -> None:
        self._name = Elided("heading")
        self._about = label("", "caption", "text2", wrap=True)
        self.state = label("", "body", "text2", wrap=True)
        self.problem = label("", "body", "bad", wrap=True)
        # their names differ at the end
        self.choices = ChoiceList(self.tr("Models of this repository"), Qt.TextElideMode.ElideLeft)
        self._place = _Place(self.choices)
        self.takes = label("", "name", tabular=True)
        self.room = label("", "caption", "text2", wrap=True)
        self.place = label("", "caption", "text2", wrap=True)
        self.get = Button(self.tr("Get"), icon="download", ink="on_accent", kind="primary")
        self.elsewhere = Button(self.tr("Another folder…"))
        self.elsewhere.setToolTip(self.tr("Downloads go there from then on"))
        self.again = Button(self.tr("Retry"))
        self.page = Button(self.tr("Open its page"))
        self.page.setToolTip(self.tr("In the browser"))
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.get, self.elsewhere, self.again, self.page):
            row.addWidget(button)
        row.addStretch()
        held = QWidget()
        held.setObjectName("column")
        column = QVBoxLayout(held)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(6)
        for widget in (self._name, self._about, self.state, self.problem):
            column.addWidget(widget)
        column.addWidget(self._place, 1)
        column.addWidget(self.takes)
        column.addWidget(self.room)
        column.addWidget(self.place)
        column.addLayout(row)
        column.addStretch()
        # in a low dialog, beside the token and downloads, it has little room
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(held)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.addWidget(scroll)

    def update_detail(self, detail: Detail | None) -> None:
        if detail is None:
            return
        self._name.show_text(detail.repository)
        self._show(self._about, detail.about)
        choose = bool(detail.choices) and not detail.size and not detail.problem
        choosing = self.tr("Several models are here. Choose one.") if choose else ""
        reading = detail.waiting or self.tr("Reading what it holds")
        self._show(self.state, reading if detail.reading else choosing)
        self._show(self.problem, detail.problem)
        self._place.setVisible(bool(detail.choices))
        self.choices.show_rows(detail.choices)
        self._show(self.takes, detail.size)
        self._show(self.room, detail.room)
        self._tone(self.room, "text2" if detail.fits else "bad")
        self._show(self.place, detail.place)
        self.elsewhere.setVisible(detail.elsewhere)
        self.again.setVisible(bool(detail.problem))
        self.page.setVisible(detail.locked and not self._hub.offline)
        self.update_items()

    def update_items(self, *_: object) -> None:
        """What comes or waits already is not to be got twice."""
        detail = self._hub.detail
        self.get.setVisible(detail is not None and not detail.problem)
        self.get.setEnabled(detail is not None and detail.ready and not self._hub.is_coming)

    def _show(self, held: QLabel, text: str) -> None:
        held.setVisible(bool(text))
        held.setText(text)

    def _tone(self, held: QWidget, tone: str) -> None:
        held.setProperty("tone", tone)
        held.style().unpolish(held)
        held.style().polish(held)

    def _move(self) -> None:
        chosen = folders.ask_folder(self, self.tr("Folder for downloads"))
        if chosen is not None:
            self._hub.move(chosen)

    def _look_again(self) -> None:
        detail = self._hub.detail
        if detail is not None:
            self._hub.choose(detail.repository)

    def _open_page(self) -> None:
        detail = self._hub.detail
        if detail is not None:
            QDesktopServices.openUrl(QUrl(detail.page))


class _Place(QWidget):
    """Room for a list, which fills it as far as it has rows and scrolls beyond."""

    def __init__(self, choices: ChoiceList) -> None:
        super().__init__()
        self._choices = choices
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(choices)
        column.addStretch()

    # Without these the list would ask for its whole height, and what stands below be out of sight.

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), LEAST)

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), LEAST)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._choices.limit_height(self.height())
