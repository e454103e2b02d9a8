"""How a line of the chat list is drawn: a group's name, a chat, a chat with what was found in it.

Knows lines, fonts and colours by name; not what a click does.
"""

from collections.abc import Callable

from PySide6.QtCore import (
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QHelpEvent,
    QPainter,
    QPen,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from app import resources
from app.viewmodels.chat_lines import LONGEST_TITLE, Line, Span
from app.widgets.common import tooltip
from app.widgets.input_method import InputMethod

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()  # under which all rows of a list lie
LINE = Qt.ItemDataRole.UserRole
BEFORE, BEHIND = 8, 9  # pixels between a row and the edges of the list
INSIDE = 12
MORE = 16  # the icon that opens the menu
ROUND = 6
SHAPED = 400  # lines of text that are kept as they were laid out


class LinePainter(QStyledItemDelegate):
    """Draws lines and makes the field in which a title is changed. `rings`: whether the row has
    the focus, and by keyboard; `renamed` is called with the id and the new title."""

    def __init__(
        self,
        view: QListView,
        rings: Callable[[Index], bool],
        renamed: Callable[[str, str], object],
    ) -> None:
        super().__init__(view)
        self._view, self._rings, self._renamed = view, rings, renamed
        self._shaped: dict[object, QTextLayout] = {}

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        line: Line = index.data(LINE)
        return QSize(100, two_lines() if line.around else one_line())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        line: Line = index.data(LINE)
        # PySide keeps an option's fields out of the type checker's sight.
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        place = row_place(self._view, rect)
        if line.id:
            over = bool(state & QStyle.StateFlag.State_MouseOver)
            self._row(painter, place, line, over=over, ringed=self._rings(index))
        else:
            self._heading(painter, place, line)
        painter.restore()

    def _heading(self, painter: QPainter, place: QRect, line: Line) -> None:
        painter.setFont(resources.font("section"))
        painter.setPen(resources.colour("text3"))
        lower = place.adjusted(INSIDE, 8, -INSIDE, 0)
        # The painter mirrors what is aligned, a layout does not.
        painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, line.title)

    def _row(
        self, painter: QPainter, place: QRect, line: Line, *, over: bool, ringed: bool
    ) -> None:
        fill = "selected" if line.current else "hover" if over else ""
        painter.setPen(Qt.PenStyle.NoPen)
        if fill:
            painter.setBrush(resources.colour(fill))
            painter.drawRoundedRect(place, ROUND, ROUND)
        if ringed:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(QRectF(place).adjusted(1, 1, -1, -1), ROUND, ROUND)
        if over or ringed:
            self._more(painter, place)
        self._words(painter, place, line, shortened=over or ringed)

    def _more(self, painter: QPainter, place: QRect) -> None:
        ratio = self._view.devicePixelRatioF()
        ink = resources.colour("text2")
        half = resources.scaled(MORE) / 2
        corner = more_place(self._view, place).center() - QPointF(half, half).toPoint()
        painter.drawPixmap(corner, resources.pixmap("ellipsis", ink, MORE, ratio))

    def _words(self, painter: QPainter, place: QRect, line: Line, *, shortened: bool) -> None:
        room = place.width() - 2 * INSIDE - (resources.scaled(MORE) + 4 if shortened else 0)
        left = place.left() + INSIDE
        if self._view.isRightToLeft():
            left = place.right() + 1 - INSIDE - room
        title = self._laid(line.title, line.title_marks, "name" if line.current else "body", room)
        height = title.boundingRect().height()
        painter.setPen(resources.colour("text"))
        if not line.around:
            title.draw(painter, QPointF(left, place.top() + (place.height() - height) / 2))
            return
        around = self._laid(line.around, line.marks, "caption", room)
        both = height + 2 + around.boundingRect().height()
        top = place.top() + (place.height() - both) / 2
        title.draw(painter, QPointF(left, top))
        painter.setPen(resources.colour("text2"))
        around.draw(painter, QPointF(left, top + height + 2))

    def _laid(self, text: str, marks: tuple[Span, ...], role: str, room: int) -> QTextLayout:
        """A line of text, shaped once: while the list scrolls most of it is drawn again."""
        mirrored, ink = self._view.isRightToLeft(), resources.colour("accent_text").name()
        key = (text, marks, role, room, mirrored, ink, resources.pixels())
        laid = self._shaped.get(key)
        if laid is None:
            if len(self._shaped) >= SHAPED:
                self._shaped.clear()
            laid = self._shaped[key] = _laid_out(
                text, marks, resources.font(role), room, mirrored=mirrored
            )
        return laid

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> bool:
        line: Line | None = index.data(LINE) if index.isValid() else None
        told = ""
        if line is not None and (line.around or not self._fits(option.rect, line)):
            told = f"{line.title}\n{line.around}".strip()
        QToolTip.showText(event.globalPos(), tooltip(told), view)
        return True

    def _fits(self, rect: QRect, line: Line) -> bool:
        """Whether the row shows its whole title beside the button under the pointer."""
        room = row_place(self._view, rect).width() - 2 * INSIDE - resources.scaled(MORE) - 4
        font = resources.font("name" if line.current else "body")
        return QFontMetrics(font).horizontalAdvance(line.title) <= room

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        field = QLineEdit(parent)
        field.setFont(resources.font("body"))
        field.setMaxLength(LONGEST_TITLE)
        field.setAccessibleName(self.tr("Title of the chat"))
        return field

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        # Only once: what is typed must not be replaced when the list changes meanwhile.
        if isinstance(editor, QLineEdit) and not editor.isModified() and not editor.text():
            # Not before: of event filters the last is asked first, and the view has one.
            InputMethod(editor)
            editor.setText(index.data(LINE).title)
            editor.selectAll()

    def setModelData(self, editor: QWidget, model: QObject, index: Index) -> None:
        if isinstance(editor, QLineEdit):
            self._renamed(index.data(LINE).id, editor.text())

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        place = row_place(self._view, option.rect)
        height = min(editor.sizeHint().height(), place.height())
        middle = place.top() + (place.height() - height) // 2
        editor.setGeometry(place.left(), middle, place.width(), height)


def one_line() -> int:
    """The height of a row with a title, in pixels."""
    return round(2.46 * resources.pixels())


def two_lines() -> int:
    """The height of a row with a title and what was found."""
    return round(3.7 * resources.pixels())


def row_place(view: QListView, rect: QRect) -> QRect:
    """Where the fill of a row is; a scroll bar takes its room from the margin."""
    bar = view.verticalScrollBar()
    behind = max(0, BEHIND - (bar.width() if bar.isVisibleTo(view) else 0))
    if view.isRightToLeft():
        return rect.adjusted(behind, 0, -BEFORE, 0)
    return rect.adjusted(BEFORE, 0, -behind, 0)


def more_place(view: QListView, place: QRect) -> QRect:
    """Where in a row's fill the pointer opens the menu."""
    width = resources.scaled(MORE) + 12
    if view.isRightToLeft():
        return QRect(place.left(), place.top(), width, place.height())
    return QRect(place.right() + 1 - width, place.top(), width, place.height())


def _laid_out(
    text: str, marks: tuple[Span, ...], font: QFont, room: int, *, mirrored: bool
) -> QTextLayout:
    """One line of text in `room` pixels, shortened at its end, with its marks in bold."""
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    plain, heavy = QFontMetrics(font), QFontMetrics(bold)
    words = [text[left:right] for left, right in marks[:4]]
    wider = sum(heavy.horizontalAdvance(word) - plain.horizontalAdvance(word) for word in words)
    short = plain.elidedText(text, Qt.TextElideMode.ElideRight, room - wider)
    sides = Qt.AlignmentFlag
    side = sides.AlignRight if mirrored else sides.AlignLeft
    option = QTextOption(side | sides.AlignAbsolute)
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    layout = QTextLayout(short, font)
    layout.setCacheEnabled(True)
    layout.setTextOption(option)
    layout.setFormats([_marked(short, span, bold) for span in marks if span[0] < len(short)])
    layout.beginLayout()
    layout.createLine().setLineWidth(room)
    layout.endLayout()
    return layout


def _marked(short: str, span: Span, font: QFont) -> QTextLayout.FormatRange:
    spot = QTextLayout.FormatRange()
    spot.start, spot.length = span[0], min(span[1], len(short)) - span[0]
    spot.format = QTextCharFormat()
    spot.format.setFont(font)
    spot.format.setForeground(resources.colour("accent_text"))
    return spot
