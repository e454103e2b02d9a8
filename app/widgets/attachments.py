"""The files that go with a question, as chips; each can be taken away again."""

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app import resources
from app.viewmodels.writing import Attached
from app.widgets.common import Glyph, IconButton, label, tooltip

NAME_WIDTH = 180  # pixels at the usual font size, as is the next
HEIGHT = 30
GAP = 6
MAX_ROWS = 3


class Chips(QScrollArea):
    """As high as its rows of chips, up to three; then it scrolls. Hidden without chips."""

    removed = Signal(object)  # Attached
    left = Signal()  # the last chip is gone, and the focus with it

    def __init__(self) -> None:
        super().__init__()
        self._chips: list[Chip] = []
        self._body = QWidget()
        self.setWidget(self._body)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Attached files"))
        self.viewport().setAutoFillBackground(False)
        self._body.setAutoFillBackground(False)
        self.hide()

    def show_files(self, attached: tuple[Attached, ...]) -> None:
        """Show these; the focus goes from a chip that is gone to the one in its place."""
        place = next((i for i, chip in enumerate(self._chips) if chip.remove.hasFocus()), None)
        for number, one in enumerate(attached):
            if number == len(self._chips):
                self._add()
            self._chips[number].show_file(one)
        for chip in self._chips[len(attached) :]:
            chip.hide()
            chip.deleteLater()
        del self._chips[len(attached) :]
        self.setVisible(bool(attached))
        self._arrange()
        if place is not None and self._chips:
            self._chips[min(place, len(self._chips) - 1)].remove.setFocus()
        elif place is not None:
            self.left.emit()

    def _add(self) -> None:
        chip = Chip(self._body)
        chip.asked.connect(self.removed)
        chip.remove.stepped.connect(lambda: self.ensureWidgetVisible(chip, 0, 0))
        chip.show()
        self._chips.append(chip)

    def _arrange(self) -> None:
        """Chips in rows, as many in each as there is room for."""
        width, high = self.width(), resources.scaled(HEIGHT)
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        x = y = 0
        for chip in self._chips:
            wide = min(chip.sizeHint().width(), width)
            if x and x + wide > width:
                x, y = 0, y + high + GAP
            chip.setGeometry(QRect(width - x - wide if mirrored else x, y, wide, high))
            x += wide + GAP
        whole = y + high if self._chips else 0
        self._body.resize(width, whole)
        self.setFixedHeight(min(whole, MAX_ROWS * (high + GAP) - GAP))

    def fit_font(self) -> None:
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class Chip(QFrame):
    """ "notes.txt  12 kB, 3,104 tokens" and a button that takes it away."""

    asked = Signal(object)  # Attached, to be removed

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._attached: Attached | None = None
        self._name = label("", "caption_strong")
        self._about = label("", "caption", "text2", tabular=True)
        self.remove = _Remove()
        self.remove.clicked.connect(lambda: self.asked.emit(self._attached))
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 4, 0)
        row.setSpacing(6)
        row.addWidget(Glyph("file-text"))
        row.addWidget(self._name)
        row.addWidget(self._about)
        row.addWidget(self.remove)

    def show_file(self, attached: Attached) -> None:
        """Show this one."""
        self._attached = attached
        self.fit_font()
        self._about.setText(attached.about)
        self.setToolTip(tooltip(f"{attached.name}\n{attached.about}"))
        said = self.tr("Remove {name}, {about}").format(name=attached.name, about=attached.about)
        self.remove.setAccessibleName(said)
        self.remove.setToolTip(self.tr("Remove"))

    def fit_font(self) -> None:
        """As much of the name as there is room for."""
        metrics, room = QFontMetrics(self._name.font()), resources.scaled(NAME_WIDTH)
        name = self._attached.name if self._attached is not None else ""
        self._name.setText(metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room))

    def sizeHint(self) -> QSize:
        held = self.layout()
        wide = held.sizeHint().width() if held is not None else 200
        return QSize(wide, resources.scaled(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("bubble"))
        painter.drawRoundedRect(self.rect(), 6, 6)


class _Remove(IconButton):
    """Pressed by the pointer and, beside Space, by Enter, Delete and Backspace."""

    stepped = Signal()  # the focus came

    def __init__(self) -> None:
        super().__init__(self.tr("Remove"), "x", size=22, drawn=14)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() in keys:
            self.click()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.stepped.emit()
