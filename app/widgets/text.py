"""Read-only texts of the transcript: they grow while they stream, and never fetch anything.

One document per message. Finished blocks of an answer are written once; only the open tail is
parsed again, the less often the longer it is. Knows no turn and no view model.
"""

import threading
from collections.abc import Callable

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFocusEvent,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QPen,
    QTextCursor,
    QTextFrame,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QToolButton, QWidget

from app import resources
from app.widgets.markdown import (
    CARD_GAP,
    CODE_SOURCE,
    CODE_TITLE,
    Mark,
    Writer,
    split,
    visible,
)

# Below this length (characters) the tail is parsed with every piece.
SHORT_TAIL = 1_500
TAIL_GROWTH = 1.2
OPENED = ("http", "https", "mailto")


class Text(QTextBrowser):
    """Plain text, selectable, as high as its content; opens web links on click only."""

    opened = Signal(QUrl)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFont(resources.font("reading"))
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(self.follow)
        self.ringed = False

    def show_plain(self, text: str) -> None:
        """Show `text` as it is."""
        _in_gui_thread()
        shown = visible(text)
        longest = max(map(len, shown.split("\n")))
        # Qt lays out a line in quadratic time; a very long one is broken for the eye only.
        if longest > 5_000:
            shown = "\n".join(_broken(line) for line in shown.split("\n"))
        self.setPlainText(shown)

    def follow(self, url: QUrl, opener: Callable[[QUrl], object] | None = None) -> None:
        """Open a web or mail address outside; nothing else is opened by anything."""
        if url.scheme().lower() in OPENED and (url.host() or url.scheme() == "mailto"):
            self.opened.emit(url)
            (opener or QDesktopServices.openUrl)(url)

    def _fit(self, *_: object) -> None:
        height = self.document().size().height()
        self.setFixedHeight(max(round(height + 0.49), 1))

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing is loaded: an image's address may carry what was said (REM-1)."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The transcript scrolls, never one message.
        event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        keys = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.ringed = event.reason() in keys
        super().focusInEvent(event)
        self._ring()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.ringed = False
        super().focusOutEvent(event)
        self._ring()

    def _ring(self) -> None:
        """The ring is drawn by what holds the text: there is room for it."""
        holder = self.parentWidget()
        if holder is not None:
            holder.update()


class Answer(Text):
    """Markdown that grows."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._source = ""
        self._copies: list[_CopyCode] = []
        self._restart()
        self._place = QTimer(self)
        self._place.setSingleShot(True)
        self._place.timeout.connect(self._place_copies)
        self.document().documentLayout().documentSizeChanged.connect(lambda _: self._place.start(0))

    def grow(self, source: str, *, finished: bool) -> None:
        """Show `source`, which begins with what was shown before."""
        _in_gui_thread()
        shown = visible(source)
        new, self._source = shown[len(self._source) :], shown
        tail = len(shown) - self._committed
        if not finished and SHORT_TAIL < tail < TAIL_GROWTH * self._parsed:
            self._writer.append(new)
        elif new or finished:
            self._rewrite_tail(finished)

    def redraw(self) -> None:
        """Write everything again, in other colours."""
        source, self._source = self._source, ""
        self.clear()
        self._restart()
        self.grow(source, finished=True)

    def _restart(self) -> None:
        self._writer = Writer(self.document())
        self._committed = 0  # characters in finished blocks
        self._parsed = 0  # characters of the tail when it was last parsed
        self._mark: Mark = self._writer.mark()

    def _rewrite_tail(self, finished: bool) -> None:
        selection = self.textCursor()
        anchor, position = selection.anchor(), selection.position()
        self._writer.rewind(self._mark)
        blocks = split(self._source[self._committed :])
        for index, block in enumerate(blocks):
            whole = finished or index < len(blocks) - 1
            self._writer.write(block, finished=whole)
            if whole:
                self._committed += len(block.source)
                self._mark = self._writer.mark()
        self._parsed = len(self._source) - self._committed
        if finished:
            self._writer.finish()
        self._reselect(anchor, position)

    def _reselect(self, anchor: int, position: int) -> None:
        """What was selected stays so, though its block was written again."""
        end = self.document().characterCount() - 1
        cursor = self.textCursor()
        if anchor != position and max(anchor, position) <= end:
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(cursor)

    def _frames(self) -> list[QTextFrame]:
        frames = self.document().rootFrame().childFrames()
        return [f for f in frames if f.frameFormat().hasProperty(CODE_SOURCE)]

    def _card_of(self, frame: QTextFrame) -> QRectF:
        """The card around a code frame: its padding, and a head in its upper margin."""
        # Not by frame.document(): PySide would drop the document's wrapper with the frame.
        around = self.document().documentLayout().frameBoundingRect(frame)
        shape = frame.frameFormat()
        return around.adjusted(shape.leftMargin(), CARD_GAP, 0, -shape.bottomMargin())

    def _place_copies(self) -> None:
        """A copy button over the corner of each code card."""
        frames = self._frames()
        while len(self._copies) > len(frames):
            self._copies.pop().deleteLater()
        while len(self._copies) < len(frames):
            self._copies.append(_CopyCode(self))
        for button, frame in zip(self._copies, frames, strict=True):
            corner = self._card_of(frame).topRight().toPoint()
            corner += QPoint(-button.sizeHint().width() - 8, 7)
            button.source = str(frame.frameFormat().property(CODE_SOURCE))
            button.move(corner)
            button.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for frame in self._frames():
            title = frame.frameFormat().property(CODE_TITLE)
            self._card(painter, self._card_of(frame), str(title or ""))
        painter.end()
        super().paintEvent(event)

    def _card(self, painter: QPainter, card: QRectF, title: str) -> None:
        painter.setPen(QPen(resources.colour("line"), 1))
        painter.setBrush(resources.colour("sunken"))
        painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        font = resources.font("caption")
        painter.setFont(font)
        painter.setPen(resources.colour("text2"))
        painter.drawText(card.adjusted(14, 10, -100, 0), Qt.AlignmentFlag.AlignTop, visible(title))


class _CopyCode(QToolButton):
    """Copies the source of one code card."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.source = ""
        self.setObjectName("copyCode")
        self.setText("\u2009" + self.tr("Copy"))
        self.setAccessibleName(self.tr("Copy the code"))
        self.setFont(resources.font("caption"))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(14, 14))
        self.setIcon(resources.icon("copy", "text2", 14))
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.source))


def _broken(line: str) -> str:
    return "\n".join(line[i : i + 5_000] for i in range(0, max(len(line), 1), 5_000))


def _in_gui_thread() -> None:
    """Widgets are touched by the GUI thread alone; another one would corrupt them silently."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a widget was touched off the GUI thread")
