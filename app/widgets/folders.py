"""The dialog with the folders in which models are looked for, and the way to choose one."""

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.viewmodels.binding import bind
from app.viewmodels.folders import FolderRow, Folders
from app.widgets.common import Button, Elided, label

MARGIN = 18


def ask_folder(parent: QWidget, title: str) -> Path | None:
    """The folder that the user chooses in the system's dialog, or None."""
    chosen = QFileDialog.getExistingDirectory(parent, title)
    return Path(chosen) if chosen else None


class FoldersDialog(QDialog):
    """Stays beside the window."""

    def __init__(self, folders: Folders, parent: QWidget) -> None:
        super().__init__(parent)
        self._folders = folders
        self.lines: dict[str, Line] = {}
        self.setWindowTitle(self.tr("Folders"))
        self.setMinimumSize(440, 300)
        self.resize(620, 420)
        self._build()
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.more.clicked.connect(self._add)
        folders.opened.connect(self.open_up)
        bind(folders, Folders.rows, self.update_rows)
        bind(folders, Folders.said, self.update_said)

    def _build(self) -> None:
        self.more = Button(self.tr("Add folder…"))
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Folders"), "title"))
        head.addStretch()
        head.addWidget(self.more)
        about = self.tr("Models are looked for in these folders and in two levels below them.")
        self.said = label("", "caption", "bad", wrap=True)
        held = QWidget()
        held.setObjectName("column")
        self._column = QVBoxLayout(held)
        self._column.setContentsMargins(12, 10, 12, 10)
        self._column.setSpacing(12)
        self._column.addStretch()
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(held)
        self._scroll = scroll
        card = QFrame()
        card.setObjectName("card")
        inner = QVBoxLayout(card)
        inner.setContentsMargins(1, 1, 1, 1)
        inner.addWidget(scroll)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 14, MARGIN, MARGIN)
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(label(about, "caption", "text2", wrap=True))
        column.addWidget(self.said)
        column.addWidget(card, 1)

    def open_up(self) -> None:
        """Show it, or bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()
        self.more.setFocus(Qt.FocusReason.OtherFocusReason)

    def update_rows(self, rows: tuple[FolderRow, ...]) -> None:
        """Lines stay the same widgets as long as they are there: who has the focus keeps it."""
        keys = {row.key for row in rows}
        for key in [key for key in self.lines if key not in keys]:
            line = self.lines.pop(key)
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        before: QWidget = self.more
        for place, row in enumerate(rows):
            if row.key not in self.lines:
                self.lines[row.key] = Line(self._folders, row.key)
            line = self.lines[row.key]
            if self._column.indexOf(line) != place:
                self._column.insertWidget(place, line)
            line.update_row(row)
            for button in (line.show_it, line.remove):
                self.setTabOrder(before, button)
                before = button

    def update_said(self, said: str) -> None:
        self.said.setText(said)
        self.said.setVisible(bool(said))

    def _add(self) -> None:
        chosen = ask_folder(self, self.tr("Folder with models"))
        if chosen is not None:
            self._folders.add(chosen)


class Line(QWidget):
    """One folder."""

    def __init__(self, folders: Folders, key: str) -> None:
        super().__init__()
        self._path = Elided("name")
        self.text = label("", "caption", "text2", wrap=True, tabular=True)
        self.show_it, self.remove = Button(self.tr("Open")), Button(self.tr("Remove"))
        self.show_it.setToolTip(self.tr("In the system's file manager"))
        self.remove.setToolTip(self.tr("From this list; nothing is deleted"))
        self.show_it.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(key)))
        self.remove.clicked.connect(lambda: folders.remove(key))
        for button in (self.show_it, self.remove):
            button.setAutoDefault(False)
            button.setAccessibleDescription(key)
        left = QVBoxLayout()
        left.setSpacing(2)
        left.addWidget(self._path)
        left.addWidget(self.text)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addLayout(left, 1)
        row.addSpacing(6)
        row.addWidget(self.show_it)
        row.addWidget(self.remove)

    def update_row(self, row: FolderRow) -> None:
        self._path.show_text(row.path)
        self.text.setText(row.text)
        tone = "bad" if row.wrong else "text2"
        if self.text.property("tone") != tone:
            self.text.setProperty("tone", tone)
            self.text.style().unpolish(self.text)
            self.text.style().polish(self.text)
        self.show_it.setVisible(row.there)
        self.remove.setVisible(row.added)
