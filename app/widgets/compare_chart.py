"""Times plain by kind of prompt: a small chart for each kind, all of them sharing the row names.

The row names stand once at the left; a chart that finds no room goes on below. A text twin says the
same.
"""

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import resources
from app.viewmodels.compare_words import Bar, Chart
from app.widgets.common import tooltip

LEAST = 136.0  # pixels of a chart at the usual font size
GAP = 24.0  # between two
BESIDE = 58.0  # pixels right of the longest bar, for its number
BAND = 22.0  # between two groups of charts, one over the other
SCALE = 2.0  # times plain that every chart has room for


class KindCharts(QWidget):
    """Empty until something was measured. Like all charts they grow from the left."""

    def __init__(self) -> None:
        super().__init__()
        self._names: tuple[str, ...] = ()
        self._charts: tuple[Chart, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizePolicy(policy)
        self.setAccessibleName(self.tr("Times plain, by kind of prompt"))

    def show_charts(self, names: tuple[str, ...], charts: tuple[Chart, ...], twin: str) -> None:
        """Draw a bar for each of `names` in each of the charts; `twin` says them in words."""
        self._names, self._charts = names, charts
        self.setVisible(bool(charts))
        self.setAccessibleDescription(twin)
        self.setToolTip(tooltip(twin))
        self._fit()
        self.update()

    def _fit(self) -> None:
        """As high as the charts need at this width."""
        bands = -(-len(self._charts) // self._columns()) if self._charts else 0
        title = self._line() * 1.9
        self.setFixedHeight(round(title + bands * self._band() + max(bands - 1, 0) * BAND))

    def _line(self) -> float:
        return QFontMetricsF(resources.font()).height()

    def _row(self) -> float:
        return self._line() * 1.65

    def _band(self) -> float:
        """Head, bars and scale of one chart."""
        return self._line() * 2.6 + self._row() * len(self._names)

    def _left(self) -> float:
        """Room for the names of the rows."""
        metrics = QFontMetricsF(resources.font())
        wide = max((metrics.horizontalAdvance(name) for name in self._names), default=0.0)
        return min(wide + 20, self.width() * 0.28)

    def _columns(self) -> int:
        room = self.width() - self._left()
        each = resources.scaled(round(LEAST)) + GAP
        return max(1, min(len(self._charts), int((room + GAP) // each)))

    def sizeHint(self) -> QSize:
        return QSize(600, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def fit_font(self) -> None:
        """Another font size."""
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._charts:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._head(painter)
        left, columns = self._left(), self._columns()
        width = (self.width() - left - GAP * (columns - 1)) / columns
        spans = [bar.span[1] for chart in self._charts for bar in chart.bars if bar.span]
        times = [bar.times for chart in self._charts for bar in chart.bars if bar.times]
        most = max([SCALE, *spans, *times])
        for at, chart in enumerate(self._charts):
            top = self._line() * 1.9 + (at // columns) * (self._band() + BAND)
            if at % columns == 0:
                self._name_rows(painter, top, left)
            place = QRectF(left + (at % columns) * (width + GAP), top, width, self._band())
            self._draw(painter, chart, place, most)

    def _head(self, painter: QPainter) -> None:
        """The title, and what the lines at the bars are."""
        base = self._line()
        title = self.tr("Times plain, by kind of prompt")
        _write(painter, 0, base, title, resources.font("heading"), "text")
        font = resources.font("caption")
        metrics = QFontMetricsF(font)
        best, span = self.tr("fastest of its kind"), self.tr("slowest to fastest prompt")
        right = self.width() - metrics.horizontalAdvance(best)
        if right - metrics.horizontalAdvance(span) - 80 < self._title_width():
            return
        _write(painter, right, base, best, font, "text2")
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("draft"))
        painter.drawRoundedRect(QRectF(right - 16, base - 9, 10, 10), 2, 2)
        right -= 36 + metrics.horizontalAdvance(span)
        _write(painter, right, base, span, font, "text2")
        _whisker(painter, right - 30, right - 8, base - 4)

    def _title_width(self) -> float:
        metrics = QFontMetricsF(resources.font("heading"))
        return metrics.horizontalAdvance(self.tr("Times plain, by kind of prompt"))

    def _name_rows(self, painter: QPainter, top: float, left: float) -> None:
        font = resources.font()
        metrics = QFontMetricsF(font)
        for at, name in enumerate(self._names):
            y = self._middle(top, at) + metrics.ascent() / 2 - 1
            short = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, left - 14)
            _write(painter, 0, y, short, font, "text")

    def _middle(self, top: float, at: int) -> float:
        """The height of a row's bar."""
        return top + self._line() * 1.35 + self._row() * (at + 0.5)

    def _draw(self, painter: QPainter, chart: Chart, place: QRectF, most: float) -> None:
        unit = max(place.width() - resources.scaled(round(BESIDE)), 20.0) / most
        small = resources.font("caption", tabular=True)
        metrics = QFontMetricsF(small)
        base = place.top() + self._line() * 0.8
        counted = metrics.horizontalAdvance(chart.count)
        heading = resources.font("heading")
        names = QFontMetricsF(heading)
        named = names.elidedText(chart.name, Qt.TextElideMode.ElideRight, place.width())
        _write(painter, place.left(), base, named, heading, "text")
        # names never shrink for what can be read in the twin too
        if names.horizontalAdvance(named) + 8 + counted <= place.width():
            _write(painter, place.right() - counted, base, chart.count, small, "text2")
        top, bottom = place.top() + self._line() * 1.35, place.bottom() - self._line() * 1.1
        whole = range(int(most) + 1)
        step = 1 if unit >= 34 else 2 if unit >= 17 else max(1, round(34 / unit))
        for number in whole:
            x = place.left() + number * unit
            if number == 1 or number % step:
                continue
            painter.setPen(QPen(resources.colour("line"), 1))
            painter.drawLine(QPointF(x, top), QPointF(x, bottom))
            _centred(painter, x, place.bottom(), str(number), small, place.left())
        for at, bar in enumerate(chart.bars):
            self._bar(painter, bar, place.left(), self._middle(place.top(), at), unit)
        x = place.left() + unit
        pen = QPen(resources.colour("edge"), 1, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        _centred(painter, x, place.bottom(), self.tr("plain"), small, place.left())

    def _bar(self, painter: QPainter, bar: Bar, left: float, middle: float, unit: float) -> None:
        if bar.times is None:
            _write(painter, left, middle + 4, bar.said, resources.font("caption"), "text2")
            return
        high = self._row() * 0.56
        slower = bar.times < 1
        ink = "draft" if bar.best else "others" if slower else "draft_cache"
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour(ink))
        box = QRectF(left, middle - high / 2, max(bar.times * unit, 3.0), high)
        painter.drawRoundedRect(box, 2, 2)
        end = box.right()
        if bar.span is not None:
            low, top = (left + times * unit for times in bar.span)
            _whisker(painter, low, top, middle)
            end = max(end, top)
        font = resources.font("caption_strong" if bar.best else "caption", tabular=True)
        ascent = QFontMetricsF(font).ascent()
        tone = "caution" if slower else "text"
        _write(painter, end + 6, middle + ascent / 2 - 1, bar.said, font, tone)


def _whisker(painter: QPainter, low: float, high: float, y: float) -> None:
    """From the slowest prompt to the fastest."""
    painter.setPen(QPen(resources.colour("text"), 1.2))
    painter.drawLine(QPointF(low, y), QPointF(high, y))
    for x in (low, high):
        painter.drawLine(QPointF(x, y - 3), QPointF(x, y + 3))


def _write(painter: QPainter, x: float, baseline: float, text: str, font: QFont, tone: str) -> None:
    painter.setFont(font)
    painter.setPen(resources.colour(tone))
    painter.drawText(QPointF(x, baseline), text)


def _centred(
    painter: QPainter, x: float, bottom: float, text: str, font: QFont, least: float
) -> None:
    metrics = QFontMetricsF(font)
    left = max(x - metrics.horizontalAdvance(text) / 2, least)
    _write(painter, left, bottom - metrics.descent(), text, font, "text2")
