"""A thin bar that fills. Like all that is measured it fills from the left in every language."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app import resources


class Meter(QWidget):
    """A thin bar that is filled up to a share of 0 to 1."""

    def __init__(self, name: str, height: int = 4) -> None:
        super().__init__()
        self._share = 0.0
        self.setFixedHeight(height)
        self.setAccessibleName(name)

    def set_share(self, share: float) -> None:
        """Fill up to `share`."""
        self._share = min(max(share, 0.0), 1.0)
        self.setAccessibleDescription(f"{100 * self._share:.0f} %")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole = QRectF(self.rect())
        radius = whole.height() / 2
        painter.setBrush(resources.colour("groove"))
        painter.drawRoundedRect(whole, radius, radius)
        if self._share > 0:
            # A trace of an amount is still to be seen.
            filled = QRectF(0, 0, max(whole.width() * self._share, 3), whole.height())
            painter.setBrush(resources.colour("accent"))
            painter.drawRoundedRect(filled, radius, radius)
