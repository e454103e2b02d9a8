"""Where the next message is written, what goes with it, and the one button that sends or stops.

Enter sends, Shift+Enter breaks the line; while an input method composes, Enter is its own. Up in
an empty field recalls earlier questions. Long pastes become files. The text grows the field up to
eight lines, then it scrolls.
"""

from pathlib import Path

from PySide6.QtCore import QMimeData, QRectF, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QFontMetrics,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment
from app.viewmodels import words
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Throttle, bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.viewmodels.presets import Presets
from app.viewmodels.writing import Attached, Writing
from app.widgets.attachments import Chips
from app.widgets.common import Button, IconButton, Kind, label
from app.widgets.composer_field import ComposerField, files_of
from app.widgets.sampling_panel import SamplingPanel
from app.widgets.system_prompt import SystemPrompt

LIVE_MS = 250  # between two numbers
ICON_INSET = 7  # pixels from the edge of an icon button to its icon


def ask_files(parent: QWidget, title: str) -> list[Path]:
    """The files that the user chooses in the system's dialog."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title)
    return [Path(name) for name in chosen]


class Composer(QFrame):
    """The field, its files and its buttons; `sent` has the text, `stopped` the wish to end."""

    sent = Signal(str)
    stopped = Signal()

    def __init__(
        self, chat: Chat, models: Models, alerts: Alerts, writing: Writing, presets: Presets
    ) -> None:
        super().__init__()
        self._chat, self._models, self._alerts = chat, models, alerts
        self._writing = writing
        self._running = self._dragging = False
        self._build(presets)
        self._connect()
        bind(chat, Chat.answering, self.update_state)
        bind(chat, Chat.can_send, self.update_state)
        bind(models, Models.loading, self.update_state)
        bind(models, Models.fitting, self.update_state)
        bind(writing, Writing.attached, self.update_files)
        bind(writing, Writing.tokens, lambda _: self._count.soon())
        bind(writing, Writing.reading, self.update_reading)

    def _build(self, presets: Presets) -> None:
        self.setAcceptDrops(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.edit = ComposerField(self._writing.recall)
        self.chips = Chips()
        self.attach = IconButton(self.tr("Attach text files"), "paperclip")
        self.prompt = SystemPrompt(self._chat, presets)
        self.sampling = SamplingPanel(self._chat, self._models, presets)
        self._tokens = label("", "body", "text2", tabular=True)
        self._button = SendButton()
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.attach)
        row.addWidget(self.prompt)
        row.addWidget(self.sampling)
        row.addStretch()
        row.addWidget(self._tokens)
        row.addSpacing(8)
        row.addWidget(self._button)
        # The buttons' icons stand under the text, so their own margins lie outside its edge.
        above = QVBoxLayout()
        above.setSpacing(8)
        above.addWidget(self.chips)
        above.addWidget(self.edit)
        inset = QHBoxLayout()  # a spacing is mirrored where a margin is not
        inset.setSpacing(0)
        inset.addSpacing(ICON_INSET)
        inset.addLayout(above, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16 - ICON_INSET, 13, 9, 9)
        column.setSpacing(8)
        column.addLayout(inset)
        column.addLayout(row)

    def _connect(self) -> None:
        chat, edit, writing = self._chat, self.edit, self._writing
        self._count = Throttle(LIVE_MS, self.update_tokens, self)
        self._button.clicked.connect(self._press)
        self.attach.clicked.connect(self._pick)
        self.chips.removed.connect(writing.detach)
        self.chips.left.connect(edit.setFocus)
        edit.submitted.connect(self._submit)
        edit.textChanged.connect(self._written)
        edit.focused.connect(self.update)
        edit.shortened.connect(self._tell_cut)
        edit.files_came.connect(writing.attach_files)
        edit.long_came.connect(self._attach_text)
        edit.unreadable_came.connect(self._tell_unreadable)
        writing.refused.connect(self._alerts.show)
        writing.restored.connect(self._show_text)
        self.sent.connect(self._send)
        self.stopped.connect(chat.stop)
        chat.question_returned.connect(self._give_back)
        chat.opened.connect(self._turn_to)
        chat.cleared.connect(self._turn_to)
        chat.withdrawn.connect(lambda: writing.move_to(chat.chat_id))
        self._models.loaded_changed.connect(writing.recount)
        edit.questions = self._questions

    def take(self, dropped: QMimeData) -> bool:
        """What was dropped on the window: files are attached; whether there were any."""
        files = files_of(dropped)
        self._writing.attach_files(files)
        return bool(files)

    def update_state(self, *_: object) -> None:
        self._running = self._chat.answering or self._models.busy or self._models.fitting
        self._button.show_state(self._running)
        self.edit.setPlaceholderText(
            self.tr("You can write the next message while this one is answered")
            if self._chat.answering
            else self.tr("Message")
        )
        self._update_button()

    def update_files(self, attached: tuple[Attached, ...]) -> None:
        self.chips.show_files(attached)
        self._update_button()
        self._show_count()

    def update_reading(self, *_: object) -> None:
        self._update_button()
        self._count.now()

    def update_tokens(self) -> None:
        """ "7 tokens", of the text and the files together; nothing while nothing is written."""
        if self._writing.reading:
            self._tokens.setText(self.tr("Reading"))
            return
        tokens = self._writing.tokens
        self._tokens.setText("" if tokens is None or self._is_empty() else tokens.words)

    def _written(self) -> None:
        self._writing.write(self.edit.text())
        self._update_button()
        self._show_count()

    def _show_count(self) -> None:
        if self._is_empty():
            self._count.now()
        else:
            self._count.soon()

    def _is_empty(self) -> bool:
        return not (self._writing.attached or self.edit.text().strip())

    def _can_submit(self) -> bool:
        """Not while files are read: they belong to this question."""
        return self._chat.can_send and not self._is_empty() and not self._writing.reading

    def _update_button(self) -> None:
        self._button.setEnabled(self._running or self._can_submit())

    def _press(self) -> None:
        if self._running:
            self.stopped.emit()
        else:
            self._submit()

    def _submit(self) -> None:
        if self._can_submit():
            self.sent.emit(self.edit.text())

    def _send(self, text: str) -> None:
        if self._chat.send(text, self._writing.attachments):
            self._writing.sent(self._chat.chat_id)
            self.edit.clear()

    def _pick(self) -> None:
        self._writing.attach_files(ask_files(self, self.tr("Attach text files")))
        self.edit.setFocus()

    def _attach_text(self, text: str) -> None:
        self._writing.attach_text(self.tr("Pasted text"), text)

    def _questions(self) -> list[str]:
        return [turn.text for turn in self._chat.turns if turn.role == "user"]

    def _turn_to(self) -> None:
        self._show_text(self._writing.turn_to(self._chat.chat_id))

    def _show_text(self, text: str) -> None:
        if text != self.edit.text():
            self.edit.setPlainText(text)
            self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def _tell_cut(self) -> None:
        said = self.tr("The text was cut at {count} characters.")
        self._alerts.show(said.format(count=words.grouped(self.edit.most)))

    def _tell_unreadable(self) -> None:
        self._alerts.show(self.tr("Pictures cannot be attached. Only text can."))

    def _give_back(self, text: str, attachments: tuple[Attachment, ...]) -> None:
        """A question without an answer stands where it was written, before what came since."""
        since = self.edit.text()
        self._show_text(f"{text}\n\n{since}" if text and since.strip() else text or since)
        self._writing.attach(attachments)

    def _drag(self, over: bool) -> None:
        self._dragging = over
        self.update()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if files_of(event.mimeData()):
            event.acceptProposedAction()
            self._drag(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drag(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._drag(False)
        if self.take(event.mimeData()):
            event.acceptProposedAction()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        marked = self.edit.hasFocus() or self._dragging
        width = 2 if marked else 1
        painter.setPen(QPen(resources.colour("accent" if marked else "control"), width))
        painter.setBrush(resources.colour("selected" if self._dragging else "base"))
        inset = width / 2
        box = self.rect().toRectF().adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(box, 12, 12)


class SendButton(Button):
    """Sends or stops, in the same place and of the same size."""

    def __init__(self) -> None:
        super().__init__("", icon="arrow-up", kind="primary", role="heading")
        self._hint = ""
        self._key = "Esc"
        self.fit_font()
        self.show_state(False)

    def show_state(self, running: bool) -> None:
        """Stop while something runs, else Send."""
        self._hint = self._key if running else ""
        self.set_words(self.tr("Stop") if running else self.tr("Send"))
        beside: Kind = "stop_right" if self._is_mirrored() else "stop"
        self.set_kind(beside if running else "primary")
        self.set_icon("square" if running else "arrow-up", "text" if running else "on_accent")

    def _is_mirrored(self) -> bool:
        return self.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def fit_font(self) -> None:
        """As wide as the longer of its words."""
        metrics = QFontMetrics(self.font())
        hint = QFontMetrics(resources.font("caption")).horizontalAdvance(self._key)
        stop = metrics.horizontalAdvance(self.tr("Stop")) + hint + 12
        send = metrics.horizontalAdvance(self.tr("Send"))
        self.setFixedWidth(max(stop, send) + 52)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._hint:
            return
        painter = QPainter(self)
        painter.setFont(resources.font("caption"))
        painter.setPen(resources.colour("text2"))
        place = QRectF(self.rect()).adjusted(12, 0, -12, 0)
        side = Qt.AlignmentFlag.AlignLeft if self._is_mirrored() else Qt.AlignmentFlag.AlignRight
        painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter, self._hint)
