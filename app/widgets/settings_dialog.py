"""The settings, made from their table. A change holds at once."""

from itertools import groupby

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.setting import Entry, Value
from app.settings import TABLE, Settings
from app.widgets.common import Button, isolated, label
from app.widgets.controls import Select, Tick

MARGIN = 18
WIDTH, HEIGHT = 560, 700
LABEL = 12  # times the font's size that a name has at least
CONTROL = 180  # pixels that a choice has at least, so that they stand in a column


class _Choice(Select):
    """As wide as the widest of its `peers`, so that their edges are in line."""

    def __init__(self, name: str, about: str, peers: "list[_Choice]") -> None:
        super().__init__(name, about)
        self._peers = peers
        peers.append(self)

    def sizeHint(self) -> QSize:
        own = super().sizeHint()
        widest = max(QComboBox.sizeHint(peer).width() for peer in self._peers)
        return QSize(max(CONTROL, widest), own.height())


class _Scroll(QScrollArea):
    """Scrolls up and down only, so it is at least as wide as what it holds, in any font."""

    def minimumSizeHint(self) -> QSize:
        held, least = self.widget(), super().minimumSizeHint()
        if held is not None:
            bar = self.verticalScrollBar().sizeHint().width()
            least.setWidth(held.minimumSizeHint().width() + bar)
        return least

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class SettingsDialog(QDialog):
    """Stays beside the window. `changed` tells the name of an entry and its new value."""

    changed = Signal(str, object)
    about_asked = Signal()

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self.controls: dict[str, Select | Tick] = {}
        self._choices: list[_Choice] = []
        self._grids: list[QGridLayout] = []
        self.setWindowTitle(self.tr("Settings"))
        self.setMinimumHeight(320)
        self.resize(resources.scaled(WIDTH), HEIGHT)
        self._build()
        self.fit_font()
        self.show_settings(settings)

    def fit_font(self) -> None:
        """Beside the choices there is room for some words."""
        for grid in self._grids:
            grid.setColumnMinimumWidth(0, LABEL * resources.pixels())

    def _build(self) -> None:
        held = QWidget()
        held.setObjectName("column")
        self._groups = groups = QVBoxLayout(held)
        groups.setContentsMargins(0, 0, 8, 0)
        groups.setSpacing(14)
        for group, entries in groupby(TABLE, lambda entry: entry.group):
            groups.addWidget(self._group(group, list(entries)))
        groups.addStretch()
        self._scroll = scroll = _Scroll()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(held)
        close = Button(self.tr("Close"))
        close.clicked.connect(self.close)
        self.about = Button(self.tr("About Slipstream"), kind="flat")
        self.about.clicked.connect(self.about_asked)
        foot = QHBoxLayout()
        foot.addWidget(self.about)
        foot.addStretch()
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 14, MARGIN, MARGIN)
        column.setSpacing(12)
        column.addWidget(label(self.tr("Settings"), "title"))
        column.addWidget(scroll, 1)
        column.addLayout(foot)

    def _group(self, name: str, entries: list[Entry]) -> QFrame:
        card = QFrame()
        card.setObjectName("card")
        grid = QGridLayout(card)
        grid.setContentsMargins(12, 10, 12, 12)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(0)
        grid.setColumnStretch(0, 1)
        self._grids.append(grid)
        grid.addWidget(label(_tr(name), "section", "text3"), 0, 0, 1, 2)
        for entry in entries:
            self._add(grid, entry)
        return card

    def _add(self, grid: QGridLayout, entry: Entry) -> None:
        at = grid.rowCount()
        control = self._control(entry)
        self.controls[entry.name] = control
        name = label(_tr(entry.label), wrap=True)
        name.setBuddy(control)
        said = QVBoxLayout()
        said.setContentsMargins(0, 6, 0, 4)
        said.setSpacing(1)
        said.addWidget(name)
        if entry.help:
            said.addWidget(label(_tr(entry.help), "caption", "text2", wrap=True))
        said.addStretch()
        grid.addLayout(said, at, 0)
        grid.addWidget(control, at, 1, Qt.AlignmentFlag.AlignRight)

    def _control(self, entry: Entry) -> Select | Tick:
        name, about = _tr(entry.label), _tr(entry.help) if entry.help else ""
        if entry.is_switch:
            tick = Tick(name, about)
            tick.clicked.connect(lambda on: self.changed.emit(entry.name, on))
            return tick
        select = _Choice(name, about, self._choices)
        for choice in entry.choices:
            select.addItem(isolated(_tr(choice.label)), choice.value)
        for number in entry.numbers or ():
            _add_number(select, entry, number)
        select.activated.connect(lambda at: self.changed.emit(entry.name, select.itemData(at)))
        return select

    def show_settings(self, settings: Settings) -> None:
        """What is set now."""
        for entry in TABLE:
            value: Value = getattr(settings, entry.name)
            control = self.controls[entry.name]
            if isinstance(control, Tick):
                control.setChecked(value is True)
            else:
                _choose(control, entry, value)

    def add(self, section: QWidget) -> None:
        """What the table does not have, below it."""
        self._groups.insertWidget(self._groups.count() - 1, section)

    def open_up(self, section: QWidget | None = None) -> None:
        """Show it, or bring it to the front; with `section` in sight."""
        self.show()
        self.raise_()
        self.activateWindow()
        if section is not None:
            self._groups.activate()
            self._scroll.ensureWidgetVisible(section)


def _add_number(select: Select, entry: Entry, number: int) -> None:
    told = f"{number} {_tr(entry.unit)}" if entry.unit else str(number)
    select.addItem(isolated(told), number)


def _choose(select: Select, entry: Entry, value: Value) -> None:
    """Show `value`; a number between the steps, as the terminal takes it, is added."""
    values = [select.itemData(i) for i in range(select.count())]
    if value not in values and isinstance(value, int):
        _add_number(select, entry, value)
        values.append(value)
    select.setCurrentIndex(values.index(value))


def _tr(text: str) -> str:
    return QCoreApplication.translate("settings", text)
