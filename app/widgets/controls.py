"""Controls for a value: one of several, or on and off. They know no view model."""

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QComboBox, QListView

from app import resources
from app.widgets.common import tooltip

BOX = 18  # pixels of the box to be ticked


class Select(QComboBox):
    """One of several; the wheel scrolls what it stands in and changes nothing."""

    def __init__(self, name: str, about: str = "") -> None:
        super().__init__()
        # the style sheet reaches the items of a view of ours alone
        self.setView(QListView())
        self.setAccessibleName(name)
        self.setAccessibleDescription(about)
        self.setFont(resources.font())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._mirror()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        drawn = resources.pixmap(
            "chevron-down", resources.colour("text2"), 14, self.devicePixelRatioF()
        )
        size = resources.scaled(14)
        mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = 9 if mirrored else self.width() - size - 9
        QPainter(self).drawPixmap(left, (self.height() - size) // 2, drawn)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._mirror()
            self.style().polish(self)

    def _mirror(self) -> None:
        """The padding of a style sheet is on the same side in both directions."""
        self.setProperty("mirrored", self.layoutDirection() is Qt.LayoutDirection.RightToLeft)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Tick(QAbstractButton):
    """A box that is ticked or not."""

    def __init__(self, name: str, about: str = "") -> None:
        super().__init__()
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setAccessibleDescription(about)
        self.setToolTip(tooltip(about))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._fit()

    def _fit(self) -> None:
        side = resources.scaled(BOX) + 6
        self.setFixedSize(side, side)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = resources.scaled(BOX)
        box = QRectF(3.5, 3.5, side - 1, side - 1)
        checked = self.isChecked()
        painter.setPen(QPen(resources.colour("accent" if checked else "edge"), 1))
        painter.setBrush(resources.colour("accent" if checked else "base"))
        painter.drawRoundedRect(box, 4, 4)
        if checked:
            ink = resources.colour("on_accent")
            drawn = resources.pixmap("check", ink, 14, self.devicePixelRatioF())
            edge = (self.width() - resources.scaled(14)) // 2
            painter.drawPixmap(edge, edge, drawn)
        if self.hasFocus():
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
