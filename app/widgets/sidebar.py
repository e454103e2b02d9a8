"""Target, draft and memory, which scroll together, and the acceptance panel pinned below."""

from PySide6.QtCore import QRect, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.fit import Fitting, View
from app.viewmodels.gpu import Gpu
from app.viewmodels.models import Models
from app.viewmodels.stats import Stats
from app.widgets.acceptance import Acceptance
from app.widgets.common import IconButton, label, rule
from app.widgets.draft_picker import DraftPicker
from app.widgets.gpu import GpuHint
from app.widgets.memory_panel import MemoryPanel
from app.widgets.target_picker import TargetPicker

WIDTH = 352  # pixels at least
EMS = 18  # times the font's size
LEFT = 16  # pixels before the sections
RIGHT = 15  # pixels beside the sections, where there is no scroll bar
SETTLED = 800  # milliseconds after which no more room is made for the ways out
ABOVE = 8  # pixels over a section that is scrolled to
LOW = 640  # pixels; below, the acceptance panel keeps its numbers only


class Sidebar(QWidget):
    """Beside the chat, or over it where there is no room."""

    folded = Signal()

    def __init__(self, models: Models, stats: Stats, gpu: Gpu) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.target = TargetPicker(models)
        self.drafts = DraftPicker(models)
        self.memory = MemoryPanel(models.memory, models.choose_context)
        self.memory.anyway.connect(models.load_anyway)
        self.gpu = GpuHint(gpu)
        self.acceptance = Acceptance(stats)
        self.acceptance.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        fold = IconButton(self.tr("Hide the sidebar"), "panel-right")
        fold.clicked.connect(self.folded)
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Target"), "heading"))
        head.addStretch()
        head.addWidget(fold)
        self._body = body = QWidget()
        body.setObjectName("sidebarBody")
        self._column = column = QVBoxLayout(body)
        self._set_margins(RIGHT)
        column.setSpacing(0)
        column.addLayout(head)
        column.addSpacing(4)
        column.addWidget(self.target)
        column.addWidget(self.gpu)
        column.addSpacing(14)
        column.addWidget(self.drafts)
        column.addSpacing(16)
        column.addWidget(self.memory)
        column.addStretch(1)
        self._scroll = scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(body)
        scroll.verticalScrollBar().rangeChanged.connect(self._make_room)
        self.drafts.choices.stepped.connect(self._follow)
        self._waits = False
        self._turning = QTimer(self, singleShot=True, interval=SETTLED)
        self._turning.timeout.connect(self._turn_to_memory)
        bind(models.memory, Fitting.view, self._show_waiting)
        whole = QVBoxLayout()
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(scroll, 1)
        whole.addWidget(rule())
        whole.addWidget(self.acceptance)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(rule(vertical=True))
        outer.addLayout(whole)
        self.setFixedWidth(WIDTH)

    def _make_room(self, _: int, most: int) -> None:
        """The scroll bar takes its place from the margin, so that nothing moves for it."""
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        self._set_margins(RIGHT - bar if most else RIGHT)
        if self._turning.isActive():
            self._turn_to_memory()
            self._turning.start()

    def _set_margins(self, beside: int) -> None:
        """Keep the sections away from the edges, `beside` pixels where the scroll bar stands."""
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left, right = (beside, LEFT) if mirrored else (LEFT, beside)
        self._column.setContentsMargins(left, 8, right, 16)

    def _show_waiting(self, view: View | None) -> None:
        """What was just chosen and waits for a word of the user is in sight."""
        waits = view is not None and view.waits
        if waits and not self._waits:
            self._turning.start()
        self._waits = waits

    def _turn_to_memory(self) -> None:
        self._scroll.verticalScrollBar().setValue(self.memory.y() - ABOVE)

    def _follow(self, row: QRect) -> None:
        """The row that the keyboard moved to is in sight."""
        place = self.drafts.choices.viewport().mapTo(self._body, row.center())
        self._scroll.ensureVisible(place.x(), place.y(), 0, row.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.acceptance.set_compact(self.height() < LOW)
