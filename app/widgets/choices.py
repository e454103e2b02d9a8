"""A list to choose one from: radio, name, and lines with the verdict or the reason.

Rows that cannot be chosen stay reachable, so that everybody can read why. Arrow keys move, Enter
or Space chooses, or presses the button that a row has. Knows rows only, not what they stand for.
"""

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QListView

from app.viewmodels.rows import Row
from app.widgets.choice_row import ROOT, ROW, Index, RowPainter, action_words, button_place
from app.widgets.common import tooltip

MARGIN = 4
MAX_HEIGHT = 2**24 - 1  # Qt's own limit of a widget


class _Rows(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[Row, ...] = ()

    def show(self, rows: tuple[Row, ...]) -> None:
        before = self.rows
        if len(rows) != len(before):
            self.beginResetModel()
            self.rows = rows
            self.endResetModel()
            return
        self.rows = rows
        for i, (old, new) in enumerate(zip(before, rows, strict=True)):
            if old != new:
                self.dataChanged.emit(self.index(i), self.index(i))

    def place(self, key: str) -> int | None:
        """Where the row `key` is."""
        return next((i for i, row in enumerate(self.rows) if row.key == key), None)

    def rowCount(self, parent: Index = ROOT) -> int:
        return len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.ToolTipRole:
            told = row.tooltip or f"{row.name}\n{row.word} {row.detail}".strip()
            return tooltip(f"{told}\n{row.fit}".strip())
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            chosen = self.tr("Chosen") if row.checked else ""
            verdict = f"{row.word} {row.detail}".strip()
            said = (row.name, row.aside, verdict, row.fit, action_words(row), chosen)
            return ". ".join(part for part in said if part)
        if role == Qt.ItemDataRole.CheckStateRole and row.key and not row.action:
            return Qt.CheckState.Checked if row.checked else Qt.CheckState.Unchecked
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        # Enabled even where it cannot be chosen: a disabled row could not be reached by key.
        heading = not self.rows[index.row()].key
        return Qt.ItemFlag.NoItemFlags if heading else Qt.ItemFlag.ItemIsEnabled


class ChoiceList(QListView):
    """The list; as high as its rows, or as its limit, and then it scrolls."""

    chosen = Signal(str)  # the row's key
    acted = Signal(str)  # the key of the row whose button was pressed
    stepped = Signal(QRect)  # where the row is that the keyboard moved to

    def __init__(self, name: str, elide: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle) -> None:
        super().__init__()
        self._rows = _Rows()
        self._keyboard = False
        self._limit = MAX_HEIGHT
        self.setModel(self._rows)
        self.setItemDelegate(RowPainter(self, self.rings, elide))
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setViewportMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.fit_font()

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        """Show other rows; the current one stays current wherever it went."""
        if rows == self._rows.rows:
            return
        current: Row | None = self.currentIndex().data(ROW)
        self._rows.show(rows)
        place = None if current is None else self._rows.place(current.key)
        if place is not None:
            self.setCurrentIndex(self._rows.index(place))
        self.fit_font()

    def limit_height(self, pixels: int) -> None:
        """Be at most so high."""
        self._limit = pixels
        self.fit_font()

    def rings(self, index: Index) -> bool:
        """Whether the row at `index` has the focus, and by keyboard."""
        return self._keyboard and self.hasFocus() and index == self.currentIndex()

    def fit_font(self) -> None:
        """As high as its rows."""
        self.scheduleDelayedItemsLayout()
        count = self._rows.rowCount()
        height = sum(self.sizeHintForIndex(self._rows.index(i)).height() for i in range(count))
        whole = height + 2 * MARGIN
        policies = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAlwaysOn if whole > self._limit else policies.ScrollBarAlwaysOff
        )
        self.setFixedHeight(min(whole, self._limit))

    def _choose(self, index: QModelIndex, at: QPoint | None = None) -> None:
        """Choose the row, or press its button: by the keyboard, or where the pointer is on it."""
        row: Row | None = index.data(ROW) if index.isValid() else None
        if row is None:
            return
        if row.usable:
            self.chosen.emit(row.key)
        elif row.action and (at is None or button_place(self.visualRect(index), row).contains(at)):
            self.acted.emit(row.key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._keyboard = True
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._choose(self.currentIndex())
        else:
            super().keyPressEvent(event)
            self.stepped.emit(self.visualRect(self.currentIndex()))
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._keyboard = False
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            at = event.position().toPoint()
            self._choose(self.indexAt(at), at)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._keyboard = event.reason() in (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
        )
        if not self.currentIndex().isValid():
            checked = [i for i, r in enumerate(self._rows.rows) if r.checked]
            self.setCurrentIndex(self._rows.index(checked[0] if checked else 0))
        super().focusInEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_font()
