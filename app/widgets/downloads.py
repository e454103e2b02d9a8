"""The list of downloads: each with its bar, what it says, and what can be done with it."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.downloads import Download, Downloads, Phase
from app.widgets.common import Button, Elided, label
from app.widgets.meter import Meter

MOST_HEIGHT = 190  # pixels; further lines scroll


class DownloadList(QFrame):
    """Hidden while nothing comes, waits or was left."""

    def __init__(self, downloads: Downloads) -> None:
        super().__init__()
        self.setObjectName("card")
        self._downloads = downloads
        self.lines: dict[str, Line] = {}
        held = QWidget()
        held.setObjectName("column")
        self._column = QVBoxLayout(held)
        self._column.setContentsMargins(12, 8, 12, 8)
        self._column.setSpacing(10)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(held)
        self._held = held
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.addWidget(self._scroll)
        bind(downloads, Downloads.items, self.update_items)

    def update_items(self, items: tuple[Download, ...]) -> None:
        """Lines stay the same widgets as long as they are there: who has the focus keeps it."""
        keys = {item.key for item in items}
        for key in [key for key in self.lines if key not in keys]:
            line = self.lines.pop(key)
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        for item in items:
            if item.key not in self.lines:
                self.lines[item.key] = Line(self._downloads, item.key)
                self._column.addWidget(self.lines[item.key])
                self.lines[item.key].show()  # what is hidden still takes no room
            self.lines[item.key].update_item(item)
        self.setVisible(bool(items))
        self._fit()

    def _fit(self) -> None:
        """Be as high as the lines are at this width, or as the limit."""
        for line in self.lines.values():
            held = line.layout()
            assert held is not None
            held.activate()
        self._column.activate()
        high = self._column.totalHeightForWidth(self._scroll.viewport().width())
        self._scroll.setFixedHeight(max(0, min(high, MOST_HEIGHT)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class Line(QWidget):
    """One download."""

    def __init__(self, downloads: Downloads, key: str) -> None:
        super().__init__()
        self._downloads, self._key = downloads, key
        self._phase = Phase.WAITING
        self._name = Elided("name")
        self.text = label("", "caption", "text2", wrap=True, tabular=True)
        self.meter = Meter(self.tr("Download"))
        self.first, self.second = Button(""), Button("")
        self.first.clicked.connect(self._act)
        self.second.clicked.connect(lambda: downloads.throw_away(key))
        for button in (self.first, self.second):
            button.setAutoDefault(False)
        left = QVBoxLayout()
        left.setSpacing(4)
        for widget in (self._name, self.meter, self.text):
            left.addWidget(widget)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addLayout(left, 1)
        row.addSpacing(6)
        row.addWidget(self.first)
        row.addWidget(self.second)

    def update_item(self, item: Download) -> None:
        self._phase = item.phase
        self._name.show_text(item.name)
        self.text.setText(item.text)
        failed = item.phase is Phase.FAILED
        if self.text.property("tone") != ("bad" if failed else "text2"):
            self.text.setProperty("tone", "bad" if failed else "text2")
            self.text.style().unpolish(self.text)
            self.text.style().polish(self.text)
        self.meter.set_share(item.share)
        self.meter.setVisible(not failed)
        first, second = self._words()[item.phase]
        for button, said in ((self.first, first), (self.second, second)):
            button.setVisible(bool(said))
            if said and button.text() != said:
                button.set_words(said)
            button.setAccessibleDescription(item.name)

    def _words(self) -> dict[Phase, tuple[str, str]]:
        """What the two buttons say."""
        pause, resume, again = self.tr("Pause"), self.tr("Resume"), self.tr("Retry")
        cancel, away = self.tr("Cancel"), self.tr("Throw away")
        return {
            Phase.WAITING: (pause, cancel),
            Phase.RUNNING: (pause, cancel),
            Phase.PAUSED: (resume, away),
            Phase.FAILED: (again, away),
            Phase.FINISHED: ("", ""),
        }

    def _act(self) -> None:
        if self._phase in (Phase.WAITING, Phase.RUNNING):
            self._downloads.pause(self._key)
        else:
            self._downloads.resume(self._key)
