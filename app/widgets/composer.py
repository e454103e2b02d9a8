"""Where the next message is written, and the one button that sends or stops.

Enter sends, Shift+Enter breaks the line; while an input method composes, Enter is its own. The
text grows the field up to a third of the window, then scrolls.
"""

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QInputMethodEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.widgets.common import Button, label

MAX_LINES = 8
MAX_CHARACTERS = 200_000
MAX_WORD = 5_000


class Composer(QFrame):
    """The field and its button; `sent` has the text, `stopped` the wish to end."""

    sent = Signal(str)
    stopped = Signal()

    def __init__(self, chat: Chat, models: Models, alerts: Alerts) -> None:
        super().__init__()
        self._chat, self._models, self._alerts = chat, models, alerts
        self._build()
        self.edit.submitted.connect(self._submit)
        self.edit.textChanged.connect(self._update_button)
        self.edit.focused.connect(self.update)
        self.edit.shortened.connect(self._tell_cut)
        self.sent.connect(self._send)
        self.stopped.connect(chat.stop)
        chat.question_returned.connect(self._give_back)
        bind(chat, Chat.answering, self.update_state)
        bind(chat, Chat.can_send, self.update_state)
        bind(models, Models.loading, self.update_state)
        bind(models, Models.fitting, self.update_state)

    def _build(self) -> None:
        self.edit = Field()
        self._button = Button(self.tr("Send"), icon="arrow-up", kind="primary", role="heading")
        self._button.setFixedWidth(
            QFontMetrics(resources.font("heading")).horizontalAdvance(self.tr("Send")) + 52
        )
        self._button.clicked.connect(self._press)
        self._hint = label("", "caption", "text2")
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addStretch()
        row.addWidget(self._hint)
        row.addWidget(self._button)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 13, 9, 9)
        column.setSpacing(8)
        column.addWidget(self.edit)
        column.addLayout(row)

    def update_state(self, *_: object) -> None:
        running = self._chat.answering or self._models.busy or self._models.fitting
        self._running = running
        self._button.set_words(self.tr("Stop") if running else self.tr("Send"))
        self._button.set_kind("plain" if running else "primary")
        self.edit.setPlaceholderText(
            self.tr("You can write the next message while this one is answered")
            if self._chat.answering
            else self.tr("Message")
        )
        self._hint.setText(self.tr("Esc stops") if running else "")
        self._update_button()

    def _update_button(self) -> None:
        ready = self._running or (self._chat.can_send and bool(self.edit.toPlainText().strip()))
        self._button.setEnabled(ready)
        ink = "text" if self._running else "on_accent"
        self._button.set_icon("square" if self._running else "arrow-up", ink)

    def _press(self) -> None:
        if self._running:
            self.stopped.emit()
        else:
            self._submit()

    def _submit(self) -> None:
        text = self.edit.toPlainText()
        if text.strip() and self._chat.can_send:
            self.sent.emit(text)

    def _send(self, text: str) -> None:
        if self._chat.send(text):
            self.edit.clear()

    def _tell_cut(self) -> None:
        said = self.tr("The text was cut at {count} characters.")
        self._alerts.show(said.format(count=words.grouped(MAX_CHARACTERS)))

    def _give_back(self, text: str) -> None:
        """A question without an answer stands where it was written, before what came since."""
        since = self.edit.toPlainText()
        self.edit.setPlainText(f"{text}\n\n{since}" if since.strip() else text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focus = self.edit.hasFocus()
        width = 2 if focus else 1
        ink = resources.colour("accent" if focus else "control")
        painter.setPen(QPen(ink, width))
        painter.setBrush(resources.colour("base"))
        inset = width / 2
        box = self.rect().toRectF().adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(box, 12, 12)


class Field(QPlainTextEdit):
    """The text itself."""

    submitted = Signal()
    focused = Signal()
    shortened = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._composing = False
        self.setAccessibleName(self.tr("Message"))
        self.setFont(resources.font("reading"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setCursorWidth(2)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.textChanged.connect(self._shorten)
        self._fit()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste, but never more than fits: laying out megabytes would block the window."""
        cursor = self.textCursor()
        kept = self.document().characterCount() - 1 - len(cursor.selectedText())
        text, room = source.text(), max(MAX_CHARACTERS - kept, 0)
        self._wrap_for(text[:room])
        self.insertPlainText(text[:room])
        self.ensureCursorVisible()
        if len(text) > room:
            self.shortened.emit()

    def setPlainText(self, text: str) -> None:
        self._wrap_for(text)
        super().setPlainText(text)

    def clear(self) -> None:
        self._wrap_for("")
        super().clear()

    def _wrap_for(self, text: str) -> None:
        """Qt takes quadratic time to find that an endless word cannot be wrapped elsewhere."""
        modes = QTextOption.WrapMode
        endless = max(map(len, text.split()), default=0) > MAX_WORD
        if endless or not text:
            self.setWordWrapMode(
                modes.WrapAnywhere if endless else modes.WrapAtWordBoundaryOrAnywhere
            )

    def _shorten(self) -> None:
        """Typed or handed in: what is too much is taken from the end."""
        document = self.document()
        if document.characterCount() - 1 <= MAX_CHARACTERS:
            return
        cursor = QTextCursor(document)
        cursor.setPosition(MAX_CHARACTERS)
        cursor.movePosition(cursor.MoveOperation.End, cursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self.shortened.emit()

    def _fit(self, *_: object) -> None:
        """As high as its lines, up to eight of them."""
        line = QFontMetrics(self.font()).lineSpacing()
        # QPlainTextEdit measures its document in lines.
        lines = min(max(round(self.document().size().height()), 1), MAX_LINES)
        self.setFixedHeight(lines * line + 6)
        policies = Qt.ScrollBarPolicy
        full = lines == MAX_LINES
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAsNeeded if full else policies.ScrollBarAlwaysOff
        )

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and self._composing:
            event.accept()
        elif enter and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        elif enter:
            self.submitted.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit()
