"""A text file beside a question: its name and size; a click unfolds what is in it."""

import re

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment
from app.viewmodels import text_files
from app.widgets.common import Button, label, tooltip
from app.widgets.markdown import legible
from app.widgets.paged import ALL

LINES = 12  # of an unfolded text; more are scrolled to
NAME = 260  # pixels
# Qt lays out a line in quadratic time; a very long one is broken for the eye only.
_LONG = re.compile(r"([^\n]{2000})(?=[^\n])")


class AttachmentChip(QWidget):
    """Name and size in one line, the text below it when it is unfolded."""

    def __init__(self, attachment: Attachment) -> None:
        super().__init__()
        self._attachment = attachment
        self._viewer: QPlainTextEdit | None = None
        self.head = Button("", icon="file-text", kind="bare", role="caption")
        self.head.setProperty("tone", "text2")
        self.head.setCheckable(True)
        self.head.toggled.connect(self._toggle)
        size = text_files.size(text_files.size_of(attachment.text))
        spoken = self.tr("Attached file {name}, {size}")
        self._spoken = spoken.format(name=legible(attachment.name), size=size)
        self.fit_font()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.head)
        row.addWidget(label(size, "caption", "text3", tabular=True))
        row.addStretch()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addLayout(row)

    def fit_font(self) -> None:
        """As much of the name as there is room for."""
        metrics, name = QFontMetrics(self.head.font()), legible(self._attachment.name)
        short = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, resources.scaled(NAME))
        self.head.set_words(short.replace("&", "&&"))
        self.head.setAccessibleName(self._spoken)
        self.head.setToolTip("" if short == name else tooltip(name))

    @property
    def open(self) -> bool:
        """Whether its text is shown."""
        return self.head.isChecked()

    def _toggle(self, open_: bool) -> None:
        if open_ and self._viewer is None:
            self._viewer = _Viewer(self._attachment)
            self._column.addWidget(self._viewer)
        if self._viewer is not None:
            self._viewer.setVisible(open_)


class _Viewer(QPlainTextEdit):
    """The text of a file, read-only, as high as a few lines."""

    def __init__(self, attachment: Attachment) -> None:
        super().__init__()
        shown = _LONG.sub(r"\1\n", legible(attachment.text))
        self.setReadOnly(True)
        self.setFont(resources.code_font(0.92))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setTabChangesFocus(True)
        self.setAccessibleName(legible(attachment.name))
        # Files are code more often than not: their lines begin on the left in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.document().setDocumentMargin(0)
        self.setPlainText(shown)
        self._lines = min(shown.count("\n") + 1, LINES)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.fit_font()

    def fit_font(self) -> None:
        self.setFixedHeight(self._lines * self.fontMetrics().lineSpacing())

    def sizeHint(self) -> QSize:
        return QSize(ALL, self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            event.ignore()
        else:
            super().keyPressEvent(event)
