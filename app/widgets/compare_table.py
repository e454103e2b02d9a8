"""The table of a comparison: a row for each draft, with a box to tick and what came out.

Rows stay the same widgets while their numbers change. Knows lines by their words.
"""

from PySide6.QtCore import QCoreApplication, QRect, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QWidget

from app import resources
from app.viewmodels.compare_words import Line, heads
from app.viewmodels.models import NONE
from app.widgets.common import Elided, label, set_tone
from app.widgets.controls import BOX, Tick

TICK, NAME, FIRST = 0, 1, 2  # columns
NAME_EMS = 12  # times the font's size that a name has at least
LEFT = 12
BETWEEN = 16  # pixels between two columns
LESS = (4, 5, 6)  # cells that a narrow table leaves out
ROOM = 6  # pixels above and below a row


class CompareTable(QFrame):
    """`ticked` tells the key of a draft, and whether it is to be compared."""

    ticked = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.rows: dict[str, TableRow] = {}
        self._heads: list[QLabel] = []
        self._narrow = False
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(LEFT, 0, LEFT, 0)
        self._grid.setHorizontalSpacing(0)  # it would stay beside columns that are left out
        self._grid.setVerticalSpacing(0)
        self._grid.setColumnStretch(NAME, 1)
        self._head()
        self.fit_font()

    def fit_font(self) -> None:
        """The names keep some room."""
        self._grid.setColumnMinimumWidth(TICK, resources.scaled(BOX) + BETWEEN)
        self._grid.setColumnMinimumWidth(NAME, NAME_EMS * resources.pixels())
        self._grid.setRowMinimumHeight(0, 2 * resources.pixels() + ROOM)

    def set_narrow(self, narrow: bool) -> None:
        """Without the columns that a verdict needs least, where there is no room for them."""
        if narrow != self._narrow:
            self._narrow = narrow
            for column in LESS:
                self._heads[column].setVisible(not narrow)
            for row in self.rows.values():
                row.set_narrow(narrow)

    def _head(self) -> None:
        self._grid.addWidget(label(self.tr("Draft"), "caption", "text2"), 0, NAME)
        for column, text in enumerate(heads(), FIRST):
            head = label(text, "caption", "text2")
            head.setContentsMargins(BETWEEN // 2, 0, BETWEEN // 2, 0)
            head.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self._grid.addWidget(head, 0, column)
            self._heads.append(head)

    def show_lines(self, lines: tuple[Line, ...], *, locked: bool) -> None:
        """Show these; nothing can be ticked while it is `locked`."""
        if list(self.rows) != [line.key for line in lines]:
            self._build([line.key for line in lines])
        for line in lines:
            self.rows[line.key].show_line(line, locked)
        self.update()

    def _build(self, keys: list[str]) -> None:
        for row in self.rows.values():
            row.remove(self._grid)
        self.rows = {key: TableRow(self._grid, at, key) for at, key in enumerate(keys, 1)}
        for key, row in self.rows.items():
            row.narrow = self._narrow
            row.tick.clicked.connect(lambda on, k=key: self.ticked.emit(k, on))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inside = self.rect().adjusted(1, 1, -1, -1)
        for row in self.rows.values():
            place = row.place(self._grid)
            band = QRect(inside.left(), place.top(), inside.width(), place.height())
            if row.fastest:
                card = QPainterPath()
                card.addRoundedRect(inside, 7, 7)
                painter.save()
                painter.setClipPath(card)
                painter.fillRect(band, resources.colour("selected"))
                painter.restore()
            painter.setPen(QPen(resources.colour("line"), 1))
            painter.drawLine(band.left(), band.top(), band.right(), band.top())


class TableRow:
    """The widgets of a row of the table."""

    def __init__(self, grid: QGridLayout, at: int, key: str) -> None:
        self.fastest = self.narrow = False
        self._at, self._plain = at, key == NONE
        self.tick = Tick("")
        self.name = Elided("body")
        self.chip = label(_tr("Fastest"), "caption_strong", "on_accent")
        self.chip.setObjectName("chip")
        self.note = label("", "body", "text2", wrap=True)
        self.cells: list[QLabel] = []
        self.note.setContentsMargins(BETWEEN // 2, ROOM, BETWEEN // 2, ROOM)
        named = QWidget()
        inner = QHBoxLayout(named)
        inner.setContentsMargins(0, ROOM, 0, ROOM)
        inner.setSpacing(8)
        inner.addWidget(self.name, 1)
        inner.addWidget(self.chip)
        grid.addWidget(self.tick, at, TICK)
        grid.addWidget(named, at, NAME)
        for column in range(FIRST, FIRST + len(heads())):
            cell = label("", "body", tabular=True)
            cell.setContentsMargins(BETWEEN // 2, 0, BETWEEN // 2, 0)
            cell.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(cell, at, column)
            self.cells.append(cell)
        grid.addWidget(self.note, at, FIRST, 1, len(self.cells))
        self._all: list[QWidget] = [self.tick, named, self.note, *self.cells]

    def show_line(self, line: Line, locked: bool) -> None:
        """What is known of the draft now."""
        self.fastest = line.fastest
        self.tick.setAccessibleName(line.name)
        self.tick.setAccessibleDescription(line.note or ", ".join(line.cells))
        self.tick.setChecked(line.ticked)
        self.tick.setEnabled(not locked)
        self.tick.setVisible(not self._plain)
        self.name.show_text(line.name)
        self.chip.setVisible(line.fastest)
        self.note.setText(line.note)
        self.note.setVisible(bool(line.note))
        set_tone(self.note, "bad" if line.bad else "text2")
        for at, (cell, text) in enumerate(zip(self.cells, line.cells, strict=True)):
            cell.setText(text)
            cell.setVisible(not line.note and not (self.narrow and at in LESS))
            strong = line.fastest and at < 2
            cell.setFont(resources.font("heading" if strong else "body", tabular=True))

    def set_narrow(self, narrow: bool) -> None:
        """Show fewer cells, or all."""
        self.narrow = narrow
        for at in LESS:
            self.cells[at].setVisible(self.note.isHidden() and not narrow)

    def place(self, grid: QGridLayout) -> QRect:
        """Where it lies in the table."""
        return grid.cellRect(self._at, NAME)

    def remove(self, grid: QGridLayout) -> None:
        """Take it out of the table."""
        for widget in self._all:
            grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()


def _tr(text: str) -> str:
    return QCoreApplication.translate("compare_table", text)
