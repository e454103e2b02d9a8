"""The dialog on an error that nobody foresaw: what it is, and a report to copy."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app import resources
from app.widgets.common import Button, Glyph, label

MARGIN = 18
WIDTH = 460


class UnforeseenDialog(QDialog):
    """Stays beside the window, which can be used on."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Error"))
        self.setMinimumWidth(resources.scaled(WIDTH))
        self._report = ""
        self._more = 0
        self._build()

    def _build(self) -> None:
        self.text = label("", "caption", "text2", wrap=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.count = label("", "caption", "text2", wrap=True)
        self.copy = Button(self.tr("Copy report"), kind="primary")
        self.copy.setToolTip(self.tr("Versions and the log's last lines, without chats and tokens"))
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._report))
        close = Button(self.tr("Close"))
        close.clicked.connect(self.close)
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(Glyph("circle-x", "bad"))
        head.addWidget(label(self.tr("The program met an error it does not know"), "title"), 1)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addStretch()
        foot.addWidget(self.copy)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 14, MARGIN, MARGIN)
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(self.text)
        column.addWidget(
            label(self.tr("It goes on where it can, and your chats are kept."), wrap=True)
        )
        column.addWidget(self.count)
        column.addLayout(foot)

    def show_error(self, said: str, report: str) -> None:
        """Show the error and keep its `report`; while one is shown, more are counted."""
        if self.isVisible():
            self._more += 1
            self.count.setText(self.tr("Since then {count} more").format(count=self._more))
            self.count.show()
            return
        self._more, self._report = 0, report
        self.text.setText(said)
        self.count.hide()
        self.show()
        self.raise_()
        self.activateWindow()
