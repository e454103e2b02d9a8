"""A question in the transcript: what the user wrote, as it is, with the files that went along.

It can be written anew in its place. Shows a Turn; what becomes of an edit is the chat's.
"""

from PySide6.QtCore import QEvent, QRectF, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment, Unsent
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.attachment_chip import AttachmentChip
from app.widgets.message_editor import MessageEditor
from app.widgets.paged import PagedText
from app.widgets.tools import Tools

SHARE = 0.86  # of the column that a bubble takes at most
PADDING = 14
BESIDE = 6  # pixels between the buttons and the bubble
RADIUS = 12


class Bubble(QWidget):
    """Buttons, and beside them the bubble at the column's end."""

    grown = Signal(QWidget)  # a part that is to stay in view
    written = Signal(QWidget)  # a field whose caret is

    def __init__(self, turn: Turn, chat: Chat) -> None:
        super().__init__()
        self.turn = turn
        self._chat = chat
        self.editor: MessageEditor | None = None
        self.body = PagedText(self.tr("Your message"))
        self.chips = [AttachmentChip(attachment) for attachment in turn.attachments]
        self.tools = Tools()
        self.tools.version_chosen.connect(chat.show_version)
        self.pencil = self.tools.add(self.tr("Edit the message"), "pencil")
        self.pencil.clicked.connect(self.edit)
        self._build()
        self._show_text()
        self.tools.show_versions(turn.versions, turn.id)
        self.tools.set_tone("text3")
        if turn.id in chat.rewritten:
            self._open_editor()

    def _build(self) -> None:
        # As high as what is in it, however much room there is.
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._frame = _Frame(self)
        self._inner = QVBoxLayout(self._frame)
        self._inner.setContentsMargins(PADDING, 8, PADDING, 9)
        self._inner.setSpacing(6)
        for chip in self.chips:
            self._inner.addWidget(chip)
        self._inner.addWidget(self.body)
        tools = QVBoxLayout()
        tools.setContentsMargins(0, 6, 0, 0)
        tools.addWidget(self.tools)
        tools.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(BESIDE)
        row.addStretch()
        row.addLayout(tools)
        row.addWidget(self._frame)

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """What it is made of, as it is read."""
        return self._frame, self.tools

    def show_turn(self, turn: Turn) -> None:
        """The same message, as the chat has it now."""
        changed = turn.text != self.turn.text
        self.turn = turn
        if changed:
            self._show_text()
        self.tools.show_versions(turn.versions, turn.id)

    def _show_text(self) -> None:
        text = self.turn.text
        self.body.show_plain(text)
        self.body.setHidden(not text and bool(self.chips))

    def _show_parts(self, shown: bool) -> None:
        """What stands in the editor's place."""
        for chip in self.chips:
            chip.setVisible(shown)
        if shown:
            self._show_text()
        else:
            self.body.hide()

    def edit(self) -> None:
        """Let it be written anew."""
        editor = self.editor or self._open_editor()
        editor.field.setFocus()
        self.grown.emit(self)
        self.written.emit(editor.field)

    def _open_editor(self) -> MessageEditor:
        """With what was written in it before another chat was opened, if something was."""
        turn = self.turn
        kept = self._chat.rewritten.get(turn.id, Unsent(turn.text, turn.attachments))
        self.editor = editor = MessageEditor(kept.text, kept.attachments)
        editor.changed.connect(self._keep)
        editor.saved.connect(self._save)
        editor.left.connect(self.leave)
        editor.resized.connect(lambda: self.grown.emit(self))
        editor.moved.connect(lambda: self.written.emit(editor.field))
        self._show_parts(False)
        self.tools.set_off(self.pencil, True)
        self._inner.addWidget(editor)
        editor.show()
        return editor

    def _keep(self, text: str, attachments: tuple[Attachment, ...]) -> None:
        self._chat.rewritten[self.turn.id] = Unsent(text, attachments)

    def leave(self) -> None:
        """Show what was there."""
        if self.editor is None:
            return
        self._chat.rewritten.pop(self.turn.id, None)
        self.editor.hide()
        self.editor.deleteLater()
        self.editor = None
        self._show_parts(True)
        self.tools.set_off(self.pencil, False)
        self.pencil.setFocus()
        self._frame.update()

    def _save(self, text: str, attachments: tuple[Attachment, ...]) -> None:
        """Kept open where it is refused, so that nothing written is lost."""
        if (text, attachments) == (self.turn.text, self.turn.attachments):
            self.leave()
        elif not self._chat.edit(self.turn.id, text, attachments) and self.editor is not None:
            self.editor.refuse(self.tr("Nothing can be asked now. The text stays here."))

    def set_idle(self, idle: bool) -> None:
        """Whether something can be asked now."""
        self.tools.set_idle(idle)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._frame.setMaximumWidth(round(self.width() * SHARE))

    def enterEvent(self, event: QEnterEvent) -> None:
        self.tools.set_near(True)

    def leaveEvent(self, event: QEvent) -> None:
        self.tools.set_near(False)


class _Frame(QFrame):
    """The bubble's ground; draws the ring of the focus in it."""

    def __init__(self, bubble: Bubble) -> None:
        super().__init__()
        self._bubble = bubble
        self.setObjectName("bubble")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Minimum)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._bubble.body.ringed or self._bubble.editor is not None:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(resources.colour("accent"), 2))
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            painter.drawRoundedRect(ring, RADIUS - 1, RADIUS - 1)
