"""How memory is shared out, drawn to one scale: one bar for a device, and what its parts mean.

Knows parts by name and colour; adds nothing up.
"""

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.fit import Bar, Part
from app.widgets.common import Elided, device_name, label, set_tone

GIB = 2**30
HEIGHT = 14  # pixels
BETWEEN = 3  # the column of the legend that keeps its halves apart
SPACING = 8  # pixels between two columns of the legend, and of the one between
SWATCH = 10
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
        self.setFixedSize(SWATCH, SWATCH)

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


class _Entry:
    """A part in the legend: its square, its words, its amount."""

    def __init__(self, part: Part) -> None:
        over = part.name == OVER
        self.swatch = Swatch(part.name)
        self.name = Elided("caption", "bad" if over else "text2", Qt.TextElideMode.ElideRight)
        self.name.show_text(part.words)
        self.amount = label("", "caption", "bad" if over else "text", tabular=True)
        self.amount.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._words = part.words

    @property
    def widgets(self) -> tuple[QWidget, ...]:
        return self.swatch, self.name, self.amount

    @property
    def long(self) -> int:
        """Pixels that its words take in full."""
        return QFontMetrics(self.name.font()).horizontalAdvance(self._words) + 1


class Legend(QWidget):
    """What the parts of the bars mean, each with its amount in GiB: in two columns, or in one where
    the words would be cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, _Entry] = {}
        self._halves = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACING)
        self._grid.setVerticalSpacing(3)

    def show_parts(self, parts: tuple[Part, ...]) -> None:
        """Show these."""
        if list(self._entries) != [part.name for part in parts]:
            self._build(parts)
        for part in parts:
            self._entries[part.name].amount.setText(words.decimals(part.size / GIB, 2))
        self._arrange()

    def _build(self, parts: tuple[Part, ...]) -> None:
        for entry in self._entries.values():
            for widget in entry.widgets:
                widget.hide()
                widget.deleteLater()
        self._entries = {part.name: _Entry(part) for part in parts}
        self._halves = 0

    def _arrange(self) -> None:
        """In as many columns as there is room for."""
        entries = list(self._entries.values())
        left, right = (max((e.long for e in entries[half::2]), default=0) for half in (0, 1))
        amount = max((entry.amount.sizeHint().width() for entry in entries), default=0)
        apart = 2 * SWATCH + (2 * BETWEEN + 1) * SPACING
        halves = 2 if left + right + 2 * amount + apart <= self.width() else 1
        if halves != self._halves:
            self._place(entries, halves)
        # Shared out by need, both halves have their words in full. Only what is another is set:
        # setting asks for a layout, which comes here again.
        for column, stretch in ((1, max(left, 1)), (BETWEEN + 2, right if halves == 2 else 0)):
            if self._grid.columnStretch(column) != stretch:
                self._grid.setColumnStretch(column, stretch)

    def _place(self, entries: list[_Entry], halves: int) -> None:
        self._halves = halves
        while self._grid.takeAt(0) is not None:
            pass
        self._grid.setColumnMinimumWidth(BETWEEN, SPACING if halves == 2 else 0)
        for place, entry in enumerate(entries):
            row, column = place // halves, (BETWEEN + 1) * (place % halves)
            for step, widget in enumerate(entry.widgets):
                self._grid.addWidget(widget, row, column + step)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        # The words have another font, or an amount another length.
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)


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
