"""How a row of a list of choices is drawn: radio or button, name, number, verdict, fit.

Knows rows, fonts and colours by name; not what a row stands for, nor what a click does.
"""

from collections.abc import Callable

from PySide6.QtCore import (
    QCoreApplication,
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
    QColor,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QPainter,
    QPen,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app import resources
from app.viewmodels.rows import Row, Tone
from app.widgets.common import unbroken

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()  # under which all rows of a list lie
ROW = Qt.ItemDataRole.UserRole
LEFT = 8
RADIO = 14  # pixels at the usual font size, as is the next
ICON = 12
HEAD_TOP = 8
MOST = 1_000  # pixels, more than any heading is high
BUTTON_MARGIN = 10
STATUS = {
    "good": ("circle-check", "accent_text"),
    "caution": ("triangle-alert", "caution"),
    "bad": ("circle-x", "bad"),
    "refused": ("ban", "text2"),
}


class RowPainter(QStyledItemDelegate):
    """Draws a row; heights follow the font and the wrapped lines. `rings` says whether the row at
    an index has the focus, and by keyboard; `elide` where a name is shortened."""

    def __init__(
        self, parent: QObject, rings: Callable[[Index], bool], elide: Qt.TextElideMode
    ) -> None:
        super().__init__(parent)
        self._rings, self._elide = rings, elide

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row: Row = index.data(ROW)
        width = _width(option)
        if not row.key:
            return QSize(width, max(30, HEAD_TOP + _heading_height(row, width) + 5))
        height = 8 + QFontMetrics(resources.font("name")).height() + 4
        for layout in _lines(row, width):
            height += round(layout.boundingRect().height())
        least = button_place(QRect(0, 0, width, height), row).height() + 8 if row.action else 28
        return QSize(width, max(height, least))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ROW)
        # PySide keeps an option's fields out of the type checker's sight.
        rect: QRect = option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.key:
            self._background(painter, option, rect, row, ringed=self._rings(index))
            if row.action:
                _button(painter, rect, row, bool(option.state & QStyle.StateFlag.State_MouseOver))
            else:
                _radio(painter, rect, row)
            self._name(painter, rect, row)
            _status(painter, rect, row)
        else:
            _heading(painter, rect, row)
        painter.restore()

    def _background(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        rect: QRect,
        row: Row,
        *,
        ringed: bool,
    ) -> None:
        state: QStyle.StateFlag = option.state
        over = bool(state & QStyle.StateFlag.State_MouseOver) and row.usable
        fill = "selected" if row.checked else "hover" if over else ""
        painter.setPen(Qt.PenStyle.NoPen)
        if fill:
            painter.setBrush(resources.colour(fill))
            painter.drawRoundedRect(rect, 6, 6)
        if ringed:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), 6, 6)

    def _name(self, painter: QPainter, rect: QRect, row: Row) -> None:
        able = row.tone != "refused"
        font = resources.font("name" if able else "body")
        metrics = QFontMetrics(font)
        base = rect.top() + 5 + metrics.ascent()
        taken = _aside(painter, rect, row, base) + _button_room(row)
        room = rect.width() - _text_left() - LEFT - taken
        painter.setFont(font)
        painter.setPen(resources.colour("text" if able else "text3"))
        text = metrics.elidedText(row.name, self._elide, room)
        left = _placed(rect, _text_left(), metrics.horizontalAdvance(text))
        painter.drawText(round(left), base, text)


def _text_left() -> int:
    """Pixels from where a row begins to its words."""
    return LEFT + resources.scaled(RADIO) + 9


def _mirrored() -> bool:
    return QGuiApplication.layoutDirection() is Qt.LayoutDirection.RightToLeft


def _placed(rect: QRect, inset: float, width: float) -> float:
    """The left edge of what is `width` wide and stands `inset` from where the row begins."""
    return rect.right() + 1 - inset - width if _mirrored() else rect.left() + inset


def _width(option: QStyleOptionViewItem) -> int:
    view = option.widget
    return view.viewport().width() if isinstance(view, QListView) else 300


def _heading(painter: QPainter, rect: QRect, row: Row) -> None:
    painter.setPen(resources.colour("line"))
    painter.drawLine(rect.left() + LEFT, rect.top() + 4, rect.right() - LEFT, rect.top() + 4)
    painter.setFont(resources.font("section"))
    painter.setPen(resources.colour("text3"))
    lower = rect.adjusted(LEFT, HEAD_TOP, -LEFT, 0)
    flags = _leading() | Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(lower, flags | Qt.TextFlag.TextWordWrap, row.name)


def _heading_height(row: Row, width: int) -> int:
    """Pixels of a heading's lines in a row of `width`."""
    room = QRect(0, 0, width - 2 * LEFT, MOST)
    metrics = QFontMetrics(resources.font("section"))
    return metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, row.name).height()


def _radio(painter: QPainter, rect: QRect, row: Row) -> None:
    line = QFontMetrics(resources.font("name")).height()
    size = resources.scaled(RADIO)
    top = rect.top() + 5 + (line - size) / 2
    box = QRectF(_placed(rect, LEFT, size), top, size, size)
    if row.checked:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("accent"))
        painter.drawEllipse(box)
        painter.setBrush(resources.colour("on_accent"))
        painter.drawEllipse(box.center(), 3 * size / RADIO, 3 * size / RADIO)
        return
    edge = resources.colour("edge" if row.usable else "control")
    painter.setPen(QPen(edge, 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(box.adjusted(0.6, 0.6, -0.6, -0.6))


def _aside(painter: QPainter, rect: QRect, row: Row, base: int) -> int:
    """The number at the far end of the name's line and its unit; pixels that they take."""
    number, space, unit = row.aside.partition(" ")
    parts = ((number, "name", "text"), (space + unit, "body", "text2"))
    fonts = [resources.font(role, tabular=True) for _, role, _ in parts]
    widths = [
        QFontMetrics(font).horizontalAdvance(text)
        for font, (text, _, _) in zip(fonts, parts, strict=True)
    ]
    taken = sum(widths)
    # A number stands before its unit in either direction.
    left = rect.left() + LEFT if _mirrored() else rect.right() - LEFT - taken
    for (text, _, ink), font, width in zip(parts, fonts, widths, strict=True):
        painter.setFont(font)
        painter.setPen(resources.colour(ink))
        painter.drawText(left, base, text)
        left += width
    return taken + (LEFT if number else 0)


def action_words(row: Row) -> str:
    """What the button of a row says, empty without one."""
    words = {
        "get": QCoreApplication.translate("choices", "Get"),
        "resume": QCoreApplication.translate("choices", "Resume"),
        "repair": QCoreApplication.translate("choices", "Repair"),
    }
    return words.get(row.action, "")


def button_place(rect: QRect, row: Row) -> QRect:
    """Where in the row's `rect` its button is."""
    metrics = QFontMetrics(resources.font("body"))
    width = metrics.horizontalAdvance(action_words(row)) + 2 * BUTTON_MARGIN
    height = round(1.85 * resources.pixels())
    left = rect.left() + LEFT if _mirrored() else rect.right() - LEFT - width + 1
    return QRect(left, rect.center().y() - height // 2, width, height)


def _button_room(row: Row) -> int:
    """Pixels that the button takes of a row's width."""
    return button_place(QRect(), row).width() + LEFT if row.action else 0


def _button(painter: QPainter, rect: QRect, row: Row, hovered: bool) -> None:
    """The button, and in the radio's place the sign that the row is not here yet."""
    line = QFontMetrics(resources.font("name")).height()
    ratio = painter.device().devicePixelRatioF()
    drawn = resources.pixmap("download", resources.colour("text2"), RADIO, ratio)
    size = resources.scaled(RADIO)
    left, top = _placed(rect, LEFT, size), rect.top() + 5 + (line - size) / 2
    painter.drawPixmap(QPointF(left, top), drawn)
    place = button_place(rect, row)
    painter.setPen(QPen(resources.colour("control"), 1))
    painter.setBrush(resources.colour("hover" if hovered else "base"))
    painter.drawRoundedRect(QRectF(place).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
    painter.setFont(resources.font("body"))
    painter.setPen(resources.colour("text"))
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, action_words(row))


def _status(painter: QPainter, rect: QRect, row: Row) -> None:
    """The verdict, and below it whether it fits."""
    top = rect.top() + 5 + QFontMetrics(resources.font("name")).height() + 1.0
    tones = [row.tone, row.fit_tone] if row.word or row.detail else [row.fit_tone]
    for layout, tone in zip(_lines(row, rect.width()), tones, strict=False):
        if tone in STATUS:
            _icon(painter, rect, tone, top)
        room = _room(row, rect.width()) - _indent(tone)
        layout.draw(painter, QPointF(_placed(rect, _text_left() + _indent(tone), room), top))
        top += layout.boundingRect().height()


def _icon(painter: QPainter, rect: QRect, tone: Tone, top: float) -> None:
    icon, ink = STATUS[tone]
    line = QFontMetrics(resources.font("caption")).height()
    ratio = painter.device().devicePixelRatioF()
    drawn = resources.pixmap(icon, resources.colour(ink), ICON, ratio)
    size = resources.scaled(ICON)
    painter.drawPixmap(QPointF(_placed(rect, _text_left(), size), top + (line - size) / 2), drawn)


def _indent(tone: Tone) -> int:
    return resources.scaled(ICON) + 5 if tone in STATUS else 0


def _room(row: Row, width: int) -> int:
    """Pixels for the lines below the name."""
    return width - _text_left() - LEFT - _button_room(row)


def _leading() -> Qt.AlignmentFlag:
    """Where lines begin, whatever the direction of their own words."""
    return Qt.AlignmentFlag.AlignRight if _mirrored() else Qt.AlignmentFlag.AlignLeft


def _lines(row: Row, width: int) -> list[QTextLayout]:
    """What stands below the name, wrapped to a row of `width`: the verdict, then the fit."""
    room = _room(row, width)
    lines = []
    if row.word or row.detail:
        lines.append(_wrapped(row.word, f"{row.word} {row.detail}".strip(), row.tone, room))
    if row.fit:
        lines.append(_wrapped("", row.fit, row.fit_tone, room))
    return lines


def _wrapped(word: str, text: str, tone: Tone, room: int) -> QTextLayout:
    """`text` below one another in `room`, its first `word` in its own colour and weight."""
    font = resources.font("caption", tabular=True)
    layout = QTextLayout(unbroken(text), font)
    option = QTextOption()
    # a file's name may be one word and longer than a line
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setAlignment(_leading() | Qt.AlignmentFlag.AlignAbsolute)
    layout.setTextOption(option)
    ink = resources.colour(STATUS[tone][1] if tone in STATUS else "text2")
    strong = resources.font("caption_strong")
    layout.setFormats(
        [
            _run(0, len(text), resources.colour("text2"), font),
            _run(0, len(word), ink, strong),
        ]
    )
    layout.beginLayout()
    top = 0.0
    while (line := layout.createLine()).isValid():
        line.setLineWidth(room - _indent(tone))
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
