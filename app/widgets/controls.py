"""Controls for a value: one of several, or on and off. They know no view model."""

from PySide6.QtCore import QRectF, QSize, Qt
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

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        drawn = resources.pixmap(
            "chevron-down", resources.colour("text2"), 14, self.devicePixelRatioF()
        )
        mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = 9 if mirrored else self.width() - 23
        QPainter(self).drawPixmap(left, (self.height() - 14) // 2, drawn)

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
        self.setFixedSize(BOX + 6, BOX + 6)

    def sizeHint(self) -> QSize:
        return QSize(BOX + 6, BOX + 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(3.5, 3.5, BOX - 1, BOX - 1)
        checked = self.isChecked()
        painter.setPen(QPen(resources.colour("accent" if checked else "edge"), 1))
        painter.setBrush(resources.colour("accent" if checked else "base"))
        painter.drawRoundedRect(box, 4, 4)
        if checked:
            ink = resources.colour("on_accent")
            drawn = resources.pixmap("check", ink, 14, self.devicePixelRatioF())
            painter.drawPixmap(5, 5, drawn)
        if self.hasFocus():
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
