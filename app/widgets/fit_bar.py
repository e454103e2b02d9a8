"""How memory is shared out, drawn to one scale: one bar for a device, and what its parts mean.

Knows parts by name and colour; adds nothing up.
"""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.viewmodels.fit import Bar, Part
from app.widgets.common import Elided, device_name, label, set_tone

GIB = 2**30
HEIGHT = 14  # pixels
BETWEEN = 3  # the column of the legend that keeps its halves apart
GAP = 2.0
LEAST = 3.0  # pixels of a part, however small
STEP = 5.0  # pixels between two lines of a hatching
# The colours of the parts, and which are hatched.
INKS = {
    "target_weights": "target",
    "target_kv": "target_cache",
    "draft_weights": "draft",
    "draft_kv": "draft_cache",
    "work": "work",
    "others": "others",
    "over": "bad",
}
OVER = "over"
HATCHED = ("others", OVER)


class FitBar(QWidget):
    """The parts side by side up to a line at the capacity; what goes beyond is hatched in red."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: tuple[Part, ...] = ()
        self._total = self._scale = 1
        self.setFixedHeight(HEIGHT + 6)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, HEIGHT + 6)

    def show_parts(self, parts: tuple[Part, ...], total: int, scale: int, text: str) -> None:
        """Draw `parts` of `total` bytes; the full width is `scale`. `text` says the same."""
        self._parts, self._total, self._scale = parts, max(total, 1), max(scale, 1)
        self.setAccessibleName(text)
        self.setToolTip("")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, top = float(self.width()), 3.0
        capacity = width * self._total / self._scale
        free = QRectF(0.5, top + 0.5, capacity - 1, HEIGHT - 1)
        painter.setPen(QPen(resources.colour("line"), 1))
        painter.drawRoundedRect(free, 3, 3)
        at = 0.0
        for part in self._parts:
            if not part.size:
                continue
            long = max(width * part.size / self._scale, LEAST)
            self._draw(painter, part.name, QRectF(at, top, max(long - GAP, 1.0), HEIGHT))
            at += long
        if self._scale > self._total:
            painter.setPen(QPen(resources.colour("text"), 2))
            line = min(capacity, width - 1)
            painter.drawLine(QPointF(line, 0), QPointF(line, HEIGHT + 6))

    def _draw(self, painter: QPainter, name: str, where: QRectF) -> None:
        ink = resources.colour(INKS[name])
        if name in HATCHED:
            hatch(painter, where, ink, framed=name == OVER)
        else:
            painter.fillRect(where, ink)


class Swatch(QWidget):
    """The small square before a part's words."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.setFixedSize(10, 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = resources.colour(INKS[self._name])
        if self._name in HATCHED:
            hatch(painter, QRectF(self.rect()), ink, framed=self._name == OVER)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink)
            painter.drawRoundedRect(self.rect(), 2, 2)


class DeviceBar(QWidget):
    """A bar, under the device's name and how much of it would be in use."""

    def __init__(self) -> None:
        super().__init__()
        self.bar = FitBar()
        self._name = Elided("caption")
        self._amount = label("", "caption", tabular=True)
        head = QHBoxLayout()
        head.addWidget(self._name, 1)
        head.addWidget(self._amount)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addLayout(head)
        column.addWidget(self.bar)

    def show_bar(self, bar: Bar, scale: int, *, named: bool) -> None:
        """Draw it to `scale` bytes; one alone need not be `named`."""
        self.bar.show_parts(bar.parts, bar.total, scale, bar.text)
        self._name.show_text(device_name(bar.device))
        self._amount.setText(bar.amount)
        set_tone(self._amount, "bad" if bar.over else "text2")
        for held in (self._name, self._amount):
            held.setVisible(named)


class Legend(QWidget):
    """What the parts of the bars mean, each with its amount in GiB."""

    def __init__(self) -> None:
        super().__init__()
        self._amounts: dict[str, QLabel] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnMinimumWidth(BETWEEN, 8)
        for column in (1, BETWEEN + 2):
            self._grid.setColumnStretch(column, 1)

    def show_parts(self, parts: tuple[Part, ...]) -> None:
        """Show these, in two columns."""
        if list(self._amounts) != [part.name for part in parts]:
            self._build(parts)
        for part in parts:
            self._amounts[part.name].setText(f"{part.size / GIB:.2f}")

    def _build(self, parts: tuple[Part, ...]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self._amounts = {}
        for place, part in enumerate(parts):
            row, column = place // 2, (BETWEEN + 1) * (place % 2)
            over = part.name == OVER
            amount = label("", "caption", "bad" if over else "text", tabular=True)
            amount.setAlignment(Qt.AlignmentFlag.AlignRight)
            words = label(part.words, "caption", "bad" if over else "text2")
            for step, widget in enumerate((Swatch(part.name), words, amount)):
                self._grid.addWidget(widget, row, column + step)
            self._amounts[part.name] = amount


def hatch(painter: QPainter, where: QRectF, ink: QColor, *, framed: bool) -> None:
    """Slanted lines inside `where`, in a frame or without one."""
    painter.save()
    painter.setClipRect(where)
    painter.setPen(QPen(ink, 2))
    at = where.left() - where.height()
    while at < where.right():
        painter.drawLine(QPointF(at, where.bottom()), QPointF(at + where.height(), where.top()))
        at += STEP
    if framed:
        painter.setPen(QPen(ink, 1))
        painter.drawRect(where.adjusted(0.5, 0.5, -0.5, -0.5))
    painter.restore()
