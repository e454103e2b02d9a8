"""The acceptance panel: two numbers, a line of the last rounds, bars by position, a sentence.

Shows `app.viewmodels.stats` and computes nothing but pixels.
"""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.stats import Charts, Figures, Stats
from app.widgets.common import label

CHART = 42


class Acceptance(QWidget):
    """Pinned below the sidebar."""

    def __init__(self, stats: Stats) -> None:
        super().__init__()
        self.setObjectName("acceptance")
        self._build()
        bind(stats, Stats.figures, self.update_figures)
        bind(stats, Stats.charts, self.update_charts)

    def _build(self) -> None:
        self._dot = _Dot()
        self._state = _number("caption", "text2")
        self._rate, self._each = _number("figure"), _number("figure")
        self._counts = label("", "caption", "text2", wrap=True, tabular=True)
        self._unit = label(self.tr("tokens a round"), "caption", "text2", wrap=True)
        self._line, self._bars = Line(), Bars()
        self._sentence = label("", "caption", wrap=True, tabular=True)
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(label(self.tr("Acceptance"), "heading"))
        head.addStretch()
        head.addWidget(self._dot)
        head.addWidget(self._state)
        self._grid = grid = QGridLayout()
        grid.setHorizontalSpacing(26)
        grid.setVerticalSpacing(0)
        for place, widgets in enumerate(
            ((self._rate, self._counts, self._line), (self._each, self._unit, self._bars))
        ):
            grid.setColumnStretch(place, 1)
            for row, widget in enumerate(widgets):
                grid.addWidget(widget, row, place)
        for said in (self._counts, self._unit):
            said.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(4)
        column.addLayout(head)
        column.addLayout(grid)
        column.addWidget(self._sentence)

    def set_compact(self, compact: bool) -> None:
        """Numbers only, where the window is low."""
        for widget in (self._line, self._bars, self._sentence):
            widget.setVisible(not compact)
        self._grid.setRowMinimumHeight(2, 0 if compact else CHART + 30)

    def update_figures(self, figures: Figures) -> None:
        self._rate.setText(figures.rate)
        self._counts.setText(figures.counts)
        self._each.setText(figures.per_round)
        self._state.setText(figures.state)
        self._dot.setVisible(figures.live)
        self._sentence.setText(figures.sentence)

    def update_charts(self, charts: Charts) -> None:
        self._line.show_values(charts.line, charts.rounds)
        self._bars.show_values(charts.bars)


def _number(role: str, tone: str = "text") -> QLabel:
    return label("", role, tone, tabular=True)


class _Dot(QWidget):
    """Running."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(8, 8)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("draft"))
        painter.drawEllipse(self.rect())


class Line(QWidget):
    """Acceptance of the last rounds, 0 to 1 from bottom to top."""

    def __init__(self) -> None:
        super().__init__()
        self._values: tuple[float, ...] = ()
        self._rounds = 0
        self.setAccessibleName(self.tr("Acceptance of the last rounds"))

    def show_values(self, values: tuple[float, ...], rounds: int) -> None:
        """Draw `values`, one a round."""
        self._values, self._rounds = values, rounds
        last = words.percent(values[-1]) if values else words.DASH
        counted = words.counted(rounds, self.tr("{count} round"), self.tr("{count} rounds"))
        said = self.tr("{rounds}, at the end {last}")
        self.setAccessibleDescription(said.format(rounds=counted, last=last))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(140, CHART + 30)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = _chart_area(self)
        painter.setPen(QPen(resources.colour("line"), 1))
        for share in (0.0, 0.5, 1.0):
            y = round(area.bottom() - share * area.height()) + 0.5
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        if len(self._values) > 1:
            self._curve(painter, area)
        count = max(self._rounds, 0)
        said = words.counted(count, self.tr("Last round"), self.tr("Last {count} rounds"))
        text = said if count else self.tr("No rounds")
        _caption(painter, self, area.left(), text)

    def _curve(self, painter: QPainter, area: QRectF) -> None:
        ink = resources.colour("draft")
        step = (area.width() - 8) / (len(self._values) - 1)
        points = [
            QPointF(area.left() + 4 + i * step, area.bottom() - 3 - v * (area.height() - 6))
            for i, v in enumerate(self._values)
        ]
        ends = [QPointF(points[-1].x(), area.bottom()), QPointF(points[0].x(), area.bottom())]
        wash = resources.colour("draft")
        wash.setAlphaF(0.14)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(wash)
        painter.drawPolygon(QPolygonF(points + ends))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(ink, 1.6))
        painter.drawPolyline(QPolygonF(points))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        painter.drawEllipse(points[-1], 3, 3)


class Bars(QWidget):
    """Acceptance by position in the draft; the numbers stand above where there is room."""

    def __init__(self) -> None:
        super().__init__()
        self._values: tuple[float, ...] = ()
        self.setAccessibleName(self.tr("Acceptance by position"))

    def show_values(self, values: tuple[float, ...]) -> None:
        """Draw `values`, one a position."""
        self._values = values
        text = ", ".join(f"{words.ordinal(i)} {words.percent(v)}" for i, v in enumerate(values, 1))
        self.setAccessibleDescription(text or words.DASH)
        self.setToolTip(text)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(140, CHART + 30)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = _chart_area(self)
        painter.setPen(QPen(resources.colour("line"), 1))
        y = round(area.bottom()) + 0.5
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        if not self._values:
            _caption(painter, self, area.left(), self.tr("By position"))
            return
        slot = min(area.width() / len(self._values), 38.0)
        width = max(slot * 0.66, 3.0)
        metrics = QFontMetrics(resources.font("small", tabular=True))
        widest = max(metrics.horizontalAdvance(words.percent(v)) for v in self._values)
        numbered = widest + 2 <= slot
        room = area.height() - (metrics.height() + 1 if numbered else 3)
        for i, value in enumerate(self._values):
            height = max(value * room, 1.0)
            box = QRectF(
                area.left() + i * slot + (slot - width) / 2, area.bottom() - height, width, height
            )
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(resources.colour("draft"))
            painter.drawRoundedRect(box, min(2.0, width / 3), min(2.0, width / 3))
            if numbered:
                _centred(painter, self, box.center().x(), box.top() - 3, words.percent(value))
            if numbered or i in (0, len(self._values) - 1):
                _centred(painter, self, box.center().x(), _baseline(self), words.ordinal(i + 1))


def _chart_area(widget: QWidget) -> QRectF:
    """Above the caption line."""
    caption = QFontMetrics(resources.font("caption")).height()
    height = CHART
    top = widget.height() - caption - 4 - height
    return QRectF(0, top, widget.width(), height)


def _baseline(widget: QWidget) -> float:
    return widget.height() - QFontMetrics(resources.font("caption")).descent()


def _caption(painter: QPainter, widget: QWidget, left: float, text: str) -> None:
    painter.setFont(resources.font("caption", tabular=True))
    painter.setPen(resources.colour("text2"))
    painter.drawText(QPointF(left, _baseline(widget)), text)


def _centred(painter: QPainter, widget: QWidget, x: float, baseline: float, text: str) -> None:
    font = resources.font("small", tabular=True)
    width = QFontMetrics(font).horizontalAdvance(text)
    # The outermost labels stay inside.
    left = min(max(x - width / 2, 0), widget.width() - width)
    painter.setFont(font)
    painter.setPen(resources.colour("text2"))
    painter.drawText(QPointF(left, baseline), text)
