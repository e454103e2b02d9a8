"""Target and draft, which scroll together, and the acceptance panel pinned below."""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.viewmodels.models import Models
from app.viewmodels.stats import Stats
from app.widgets.acceptance import Acceptance
from app.widgets.common import IconButton, label, rule
from app.widgets.draft_picker import DraftPicker
from app.widgets.target_picker import TargetPicker

WIDTH = 352
LOW = 640  # pixels; below, the acceptance panel keeps its numbers only


class Sidebar(QWidget):
    """Beside the chat, or over it where there is no room."""

    folded = Signal()

    def __init__(self, models: Models, stats: Stats) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self.target = TargetPicker(models)
        self.drafts = DraftPicker(models)
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
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 8, 15, 16)
        column.setSpacing(0)
        column.addLayout(head)
        column.addSpacing(4)
        column.addWidget(self.target)
        column.addSpacing(14)
        column.addWidget(self.drafts)
        column.addStretch()
        self._scroll = scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(body)
        self.drafts.choices.stepped.connect(self._follow)
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

    def _follow(self, row: QRect) -> None:
        """The row that the keyboard moved to is in sight."""
        place = self.drafts.choices.viewport().mapTo(self._body, row.center())
        self._scroll.ensureVisible(place.x(), place.y(), 0, row.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.acceptance.set_compact(self.height() < LOW)
