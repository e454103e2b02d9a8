"""The slider of the context's length, with a tick where it stops fitting.

Knows pixels and the longest length that fits; not why it does.
"""

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QSlider, QStyle, QStyleOptionSlider

from app import resources

GROOVE, TICK, DASH = 4.0, 10.0, 3.0  # pixels


class ContextSlider(QSlider):
    """Behind the tick the groove is dashed, and red as far as the handle went beyond."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._longest: int | None = None

    def show_longest(self, value: int | None) -> None:
        """The greatest value that fits; None: not known, so no tick."""
        self._longest = value
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._longest is None or self._longest >= self.maximum():
            return
        handle = self._handle()
        fits = self._longest >= self.minimum()
        tick = self._place(self._longest, handle) if fits else 0.0
        here = handle.center().x() + 0.5
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        # the handle lies over all of it
        painter.setClipRegion(QRegion(self.rect()) - QRegion(handle, QRegion.RegionType.Ellipse))
        middle = self.height() / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("bad"))
        if here > tick:
            painter.drawRect(QRectF(tick, middle - GROOVE / 2, here - tick, GROOVE))
        painter.setBrush(resources.colour("window"))
        at = max(tick, here) + DASH
        while at < self.width():
            painter.drawRect(QRectF(at, middle - GROOVE / 2, DASH, GROOVE))
            at += 2 * DASH
        painter.setPen(QPen(resources.colour("text2"), 1.5))
        painter.drawLine(QPointF(tick, middle - TICK / 2), QPointF(tick, middle + TICK / 2))

    def _handle(self) -> QRect:
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        control, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
        return self.style().subControlRect(control, option, part, self)

    def _place(self, value: int, handle: QRect) -> float:
        """Where the handle's middle is at `value`."""
        span = self.width() - handle.width()
        at = QStyle.sliderPositionFromValue(self.minimum(), self.maximum(), value, span)
        return at + handle.width() / 2
