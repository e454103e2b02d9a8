"""A list to choose one from: radio, name, and a line with the verdict or the reason.

Rows that cannot be chosen stay reachable, so that everybody can read why. Arrow keys move, Enter
or Space chooses. Knows rows only, not what they stand for.
"""

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
    QPen,
    QResizeEvent,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from app import resources
from app.viewmodels.rows import Row
from app.widgets.common import tooltip

Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole
MARGIN = 4
LEFT = 8
RADIO = 14
MAX_HEIGHT = 2**24 - 1  # Qt's own limit of a widget
TEXT_LEFT = LEFT + RADIO + 9
STATUS = {
    "good": ("circle-check", "accent_text"),
    "caution": ("triangle-alert", "caution"),
    "refused": ("ban", "text2"),
}


class _Rows(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[Row, ...] = ()

    def show(self, rows: tuple[Row, ...]) -> None:
        if len(rows) != len(self.rows):
            self.beginResetModel()
            self.rows = rows
            self.endResetModel()
        elif rows:
            self.rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(row.tooltip or f"{row.name}\n{row.word} {row.detail}".strip())
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            chosen = self.tr("Chosen") if row.checked else ""
            said = (row.name, row.aside, f"{row.word} {row.detail}".strip(), chosen)
            return ". ".join(part for part in said if part)
        if role == Qt.ItemDataRole.CheckStateRole and row.key:
            return Qt.CheckState.Checked if row.checked else Qt.CheckState.Unchecked
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        # Enabled even where it cannot be chosen: a disabled row could not be reached by key.
        heading = not self.rows[index.row()].key
        return Qt.ItemFlag.NoItemFlags if heading else Qt.ItemFlag.ItemIsEnabled


class _Painter(QStyledItemDelegate):
    """Draws a row; heights follow the font and the wrapped second line."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row: Row = index.data(ROW)
        width = _width(option)
        if not row.key:
            return QSize(width, 30)
        height = 8 + QFontMetrics(resources.font("name")).height() + 4
        if row.word or row.detail:
            height += round(_second_line(row, width, QPalette()).boundingRect().height())
        return QSize(width, max(height, 28))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ROW)
        # PySide keeps an option's fields out of the type checker's sight.
        rect: QRect = option.rect
        colours: QPalette = option.palette
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.key:
            self._background(painter, option, rect, row, colours)
            _radio(painter, rect, row, colours)
            self._name(painter, rect, row, colours)
            _status(painter, rect, row, colours)
        else:
            _heading(painter, rect, row, colours)
        painter.restore()

    def _background(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        rect: QRect,
        row: Row,
        colours: QPalette,
    ) -> None:
        state: QStyle.StateFlag = option.state
        over = bool(state & QStyle.StateFlag.State_MouseOver) and row.usable
        fill = "selected" if row.checked else "hover" if over else ""
        painter.setPen(Qt.PenStyle.NoPen)
        if fill:
            painter.setBrush(resources.colour(fill))
            painter.drawRoundedRect(rect, 6, 6)
        view = option.widget
        if isinstance(view, ChoiceList) and view.rings(option):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), 6, 6)

    def _name(self, painter: QPainter, rect: QRect, row: Row, colours: QPalette) -> None:
        font = resources.font("name" if row.usable else "body")
        metrics = QFontMetrics(font)
        base = rect.top() + 5 + metrics.ascent()
        room = rect.width() - TEXT_LEFT - LEFT - _aside(painter, rect, row, base)
        painter.setFont(font)
        painter.setPen(resources.colour("text" if row.usable else "text3"))
        painter.drawText(
            rect.left() + TEXT_LEFT,
            base,
            metrics.elidedText(row.name, Qt.TextElideMode.ElideMiddle, room),
        )


def _width(option: QStyleOptionViewItem) -> int:
    view = option.widget
    return view.viewport().width() if isinstance(view, QListView) else 300


def _heading(painter: QPainter, rect: QRect, row: Row, colours: QPalette) -> None:
    painter.setPen(resources.colour("line"))
    painter.drawLine(rect.left() + LEFT, rect.top() + 4, rect.right() - LEFT, rect.top() + 4)
    painter.setFont(resources.font("section"))
    painter.setPen(resources.colour("text3"))
    lower = rect.adjusted(LEFT, 8, 0, 0)
    painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, row.name)


def _radio(painter: QPainter, rect: QRect, row: Row, colours: QPalette) -> None:
    line = QFontMetrics(resources.font("name")).height()
    top = rect.top() + 5 + (line - RADIO) / 2
    box = QRectF(rect.left() + LEFT, top, RADIO, RADIO)
    if row.checked:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("accent"))
        painter.drawEllipse(box)
        painter.setBrush(resources.colour("on_accent"))
        painter.drawEllipse(box.center(), 3, 3)
        return
    edge = resources.colour("edge" if row.usable else "control")
    painter.setPen(QPen(edge, 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(box.adjusted(0.6, 0.6, -0.6, -0.6))


def _aside(painter: QPainter, rect: QRect, row: Row, base: int) -> int:
    """The number at the right of the name and its unit; pixels that they take."""
    number, space, unit = row.aside.partition(" ")
    right = rect.right() - LEFT
    for text, role, ink in ((space + unit, "body", "text2"), (number, "name", "text")):
        font = resources.font(role, tabular=True)
        right -= QFontMetrics(font).horizontalAdvance(text)
        painter.setFont(font)
        painter.setPen(resources.colour(ink))
        painter.drawText(right, base, text)
    return rect.right() - LEFT - right + (LEFT if number else 0)


def _status(painter: QPainter, rect: QRect, row: Row, colours: QPalette) -> None:
    if not (row.word or row.detail):
        return
    layout = _second_line(row, rect.width(), colours)
    top = rect.top() + 5 + QFontMetrics(resources.font("name")).height() + 1
    indent = _status_indent(row)
    if indent:
        icon, ink = STATUS[row.tone]
        size = 12
        line = QFontMetrics(resources.font("caption")).height()
        drawn = resources.pixmap(
            icon, resources.colour(ink), size, painter.device().devicePixelRatioF()
        )
        painter.drawPixmap(QPointF(rect.left() + TEXT_LEFT, top + (line - size) / 2), drawn)
    layout.draw(painter, QPointF(rect.left() + TEXT_LEFT + indent, top))


def _status_indent(row: Row) -> int:
    return 17 if row.tone in STATUS else 0


def _second_line(row: Row, width: int, colours: QPalette) -> QTextLayout:
    """The verdict, wrapped to `width`: its word in its own colour and weight."""
    font = resources.font("caption")
    text = f"{row.word} {row.detail}".strip()
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WordWrap)
    layout.setTextOption(option)
    ink = STATUS[row.tone][1] if row.tone in STATUS else "text2"
    layout.setFormats(
        [
            _run(0, len(text), resources.colour("text2"), font),
            _run(
                0,
                len(row.word),
                resources.colour(ink),
                resources.font("caption_strong"),
            ),
        ]
    )
    room = width - TEXT_LEFT - LEFT - _status_indent(row)
    layout.beginLayout()
    top = 0.0
    while (line := layout.createLine()).isValid():
        line.setLineWidth(room)
        line.setPosition(QPointF(0, top))
        top += line.height()
    layout.endLayout()
    return layout


def _run(start: int, length: int, ink: QColor, font: QFont) -> QTextLayout.FormatRange:
    made = QTextLayout.FormatRange()
    made.start, made.length = start, length
    shape = QTextCharFormat()
    shape.setForeground(ink)
    shape.setFont(font)
    made.format = shape
    return made


class ChoiceList(QListView):
    """The list; as high as its rows, or as its limit, and then it scrolls."""

    chosen = Signal(str)  # the row's key
    stepped = Signal(QRect)  # where the row is that the keyboard moved to

    def __init__(self, name: str) -> None:
        super().__init__()
        self._rows = _Rows()
        self._keyboard = False
        self._limit = MAX_HEIGHT
        self.setModel(self._rows)
        self.setItemDelegate(_Painter(self))
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setViewportMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        """Show other rows; the current one stays where it was."""
        self._rows.show(rows)
        self._fit()

    def limit_height(self, pixels: int) -> None:
        """Be at most so high."""
        self._limit = pixels
        self._fit()

    def rings(self, option: QStyleOptionViewItem) -> bool:
        """Whether the row of `option` has the focus, and by keyboard."""
        index: QModelIndex = option.index
        return self._keyboard and self.hasFocus() and index == self.currentIndex()

    def _fit(self) -> None:
        self.scheduleDelayedItemsLayout()
        count = self._rows.rowCount()
        height = sum(self.sizeHintForIndex(self._rows.index(i)).height() for i in range(count))
        whole = height + 2 * MARGIN
        policies = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAlwaysOn if whole > self._limit else policies.ScrollBarAlwaysOff
        )
        self.setFixedHeight(min(whole, self._limit))

    def _choose(self, index: QModelIndex) -> None:
        row: Row | None = index.data(ROW) if index.isValid() else None
        if row is not None and row.usable:
            self.chosen.emit(row.key)

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
            self._choose(self.indexAt(event.position().toPoint()))

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
        self._fit()
