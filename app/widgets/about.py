"""What the program is, in a dialog: version, licence, torch, notice, newer versions."""

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.viewmodels.about import About
from app.viewmodels.binding import bind
from app.widgets.common import Button, Glyph, label

MARGIN = 18
WIDTH, TEXT_WIDTH, TEXT_HEIGHT = 460, 700, 380
FRAME = 48  # of the system's around a window, at most
PIECE = 20_000  # characters of the notice that are set at a time, so that the window stays alive


class AboutDialog(QDialog):
    """Stays beside the window."""

    def __init__(self, about: About, parent: QWidget) -> None:
        super().__init__(parent)
        self._about = about
        self._rest = ""
        self.setWindowTitle(self.tr("About Slipstream"))
        self.setMinimumWidth(resources.scaled(WIDTH))
        self._build()
        self._pieces = QTimer(self)
        self._pieces.timeout.connect(self._add_piece)
        self.look.clicked.connect(about.look)
        self.visit.clicked.connect(self._visit)
        self.notice.toggled.connect(self._unfold)
        bind(about, About.said, self.said.setText)
        bind(about, About.page, self._show_page)
        bind(about, About.looking, lambda on: self.look.setEnabled(not on))
        bind(about, About.notice, self._show_notice)

    def _build(self) -> None:
        self.said = _selectable("", "text2")
        self.page = _selectable("", "text2")
        self.visit = Button(self.tr("Open its page"), kind="small")
        self.look = Button(self.tr("Look for a new version"), kind="small")
        self.look.setVisible(self._about.can_look)
        self.text = QPlainTextEdit()
        self.text.setObjectName("notice")
        self.text.setReadOnly(True)
        self.text.setAccessibleName(self.tr("Third-party notice"))
        self.text.setFont(resources.code_font(0.92))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.text.hide()
        self.notice = Button(self.tr("Third-party notice"))
        self.notice.setCheckable(True)
        close = Button(self.tr("Close"))
        close.clicked.connect(self.close)
        news = QHBoxLayout()
        news.setSpacing(8)
        news.addWidget(self.said, 1)
        news.addWidget(self.visit, 0, Qt.AlignmentFlag.AlignTop)
        news.addWidget(self.look, 0, Qt.AlignmentFlag.AlignTop)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self.notice)
        foot.addStretch()
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(12)
        column.addLayout(self._head())
        column.addLayout(self._facts())
        column.addLayout(news)
        column.addWidget(self.page)
        column.addWidget(self.text, 1)
        column.addLayout(foot)

    def _head(self) -> QHBoxLayout:
        name = QVBoxLayout()
        name.setSpacing(0)
        name.addWidget(label("Slipstream", "display"))
        said = self.tr("Local language models, made fast by speculative decoding")
        name.addWidget(label(said, "caption", "text2", wrap=True))
        head = QHBoxLayout()
        head.setSpacing(14)
        head.addWidget(Glyph("mark", "accent", 44), 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(name, 1)
        return head

    def _facts(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        rows = (
            (self.tr("Version"), self._about.version or self.tr("not installed")),
            (self.tr("Licence"), "Apache-2.0"),
            (self.tr("PyTorch"), self._about.torch),
        )
        for at, (name, value) in enumerate(rows):
            grid.addWidget(label(name, "body", "text2"), at, 0)
            grid.addWidget(_selectable(value, "text"), at, 1)
        return grid

    def _show_page(self, page: str) -> None:
        self.page.setText(page)
        self.page.setVisible(bool(page))
        self.visit.setVisible(bool(page))

    def _visit(self) -> None:
        if not QDesktopServices.openUrl(QUrl(self._about.page)):
            self.said.setText(self.tr("No program here opens this page:"))

    def _unfold(self, shown: bool) -> None:
        self.text.setVisible(shown)
        if shown:
            self._about.read_notice()
            screen = self.screen().availableGeometry()
            height = min(self.sizeHint().height() + TEXT_HEIGHT, screen.height() - FRAME)
            self.resize(max(self.width(), resources.scaled(TEXT_WIDTH)), height)
            self.move(self.x(), max(screen.top(), min(self.y(), screen.bottom() - FRAME - height)))
        else:
            self.resize(self.width(), self.minimumSizeHint().height())

    def _show_notice(self, notice: str) -> None:
        self.text.clear()
        self.text.setPlaceholderText(self.tr("Reading…"))
        self._rest = notice
        if notice:
            self._pieces.start(0)

    def _add_piece(self) -> None:
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(self._rest[:PIECE])
        self._rest = self._rest[PIECE:]
        if not self._rest:
            self._pieces.stop()

    def open_up(self) -> None:
        """Show it, or bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()


def _selectable(text: str, tone: str) -> QLabel:
    """Text that can be copied."""
    made = label(text, "body", tone, wrap=True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made
