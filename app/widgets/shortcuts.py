"""The sheet of keyboard shortcuts, made from the table of actions."""

from collections.abc import Iterable
from itertools import groupby
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app import resources
from app.widgets.common import Button, label, rule

MARGIN = 18
WIDTH, HEIGHT = 460, 660


class Shortcut(Protocol):
    """What the sheet lists."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def keys(self) -> str: ...


class ShortcutSheet(QDialog):
    """Lists `shortcuts` under their headings; Esc closes it."""

    def __init__(self, shortcuts: Iterable[Shortcut], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self.resize(resources.scaled(WIDTH), HEIGHT)
        self.rows: dict[str, tuple[QLabel, QLabel]] = {}
        held = QWidget()
        held.setObjectName("column")
        self._grid = QGridLayout(held)
        self._grid.setContentsMargins(0, 0, 12, 0)
        self._grid.setVerticalSpacing(7)
        self._grid.setColumnStretch(0, 1)
        for group, rows in groupby(shortcuts, lambda row: row.group):
            self._add_group(group, list(rows))
        self._grid.setRowStretch(self._grid.rowCount(), 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setAccessibleName(self.tr("Keyboard shortcuts"))
        scroll.setWidget(held)
        close = Button(self.tr("Close"))
        close.clicked.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 14, MARGIN, MARGIN)
        column.setSpacing(12)
        column.addWidget(label(self.tr("Keyboard shortcuts"), "title"))
        column.addWidget(scroll, 1)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)

    def _add_group(self, group: str, rows: list[Shortcut]) -> None:
        grid = self._grid
        if self.rows:
            grid.addWidget(rule(), grid.rowCount(), 0, 1, 2)
        grid.addWidget(label(group, "section", "text3"), grid.rowCount(), 0, 1, 2)
        for row in rows:
            # as this system and language write them
            written = QKeySequence(row.keys).toString(QKeySequence.SequenceFormat.NativeText)
            name, keys = label(row.name, wrap=True), label(written, "body", "text2")
            name.setAccessibleName(f"{row.name}: {written}")
            at = grid.rowCount()
            grid.addWidget(name, at, 0)
            grid.addWidget(keys, at, 1, Qt.AlignmentFlag.AlignRight)
            self.rows[row.name] = (name, keys)
