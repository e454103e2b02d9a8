"""An answer in the transcript: bare text, and what is known of it.

From top to bottom: the model's name where it changed, notices, the folded thinking, the text, and
a footer with its numbers and buttons. Shows a Turn and computes nothing.
"""

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import resources
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.answer_menu import answer_menu, copy_markdown
from app.widgets.common import label
from app.widgets.footer import Footer
from app.widgets.paged import PagedAnswer
from app.widgets.thought import Thought


class AnswerTurn(QWidget):
    """An answer and what is known of it."""

    edit_asked = Signal(str)  # the id of an answer whose question is to be edited

    def __init__(self, turn: Turn, chat: Chat, *, unfolded: bool = False) -> None:
        super().__init__()
        self.turn = turn
        self._chat = chat
        self._latest, self._hovered = True, False
        self._tinted = False
        self._unfolded = unfolded
        self._ended = False
        self._rounds = 0  # how many the text was told of
        self._name = label("", "caption", "text3")
        self._notices = label("", "caption", "text2", wrap=True)
        self._notices.hide()
        self._thought: Thought | None = None
        self.body = PagedAnswer(self.tr("Answer"))
        self.footer = Footer(turn)
        self.tools = self.footer.tools
        self.tools.version_chosen.connect(chat.show_version)
        self.footer.copy.clicked.connect(self._copy)
        self.footer.again.clicked.connect(self._regenerate)
        self.footer.more.clicked.connect(self._open_menu)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        # Aligned by the window's direction, not by that of the name's letters.
        column.addWidget(self._name, 0, Qt.AlignmentFlag.AlignLeft)
        for widget in (self._notices, self.body, self.footer):
            column.addWidget(widget)
        self._column = column
        # Only now: a widget shown before it has a parent would be a window of its own.
        self._name.hide()
        self.body.hide()
        self.update_turn()

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """What it is made of, as it is read."""
        thought = (self._thought,) if self._thought is not None else ()
        return (*thought, self.body, self.footer)

    def show_turn(self, turn: Turn) -> None:
        """The same answer, as the chat has it now."""
        self.turn = turn
        self.update_turn()

    def update_turn(self) -> None:
        """Show what the turn holds by now."""
        turn = self.turn
        if turn.running and self._ended:
            self._reopen()
        self._ended = not turn.running
        if turn.notices:
            self._notices.setText("\n".join(map(resources.translate, turn.notices)))
            self._notices.show()
        if turn.reasoning:
            self._think()
        if turn.text:
            self.body.grow(turn.text, finished=not turn.running)
            self.body.setHidden(False)
        self._tint(new=len(turn.rounds) != self._rounds)
        if turn.running:
            self.footer.numbers.soon()
        else:
            self.footer.show_turn(turn)
        self.tools.show_versions(turn.versions, turn.id)
        self.tools.set_ready(not turn.running)
        self.tools.set_off(self.footer.copy, not turn.text)
        self.footer.place()

    def _think(self) -> None:
        """The thinking; most answers have none, so it is built when there is some."""
        if self._thought is None:
            self._thought = Thought(unfolded=self._unfolded)
            self._column.insertWidget(self._column.indexOf(self.body), self._thought)
            self._thought.show()
        self._thought.show_turn(self.turn)

    def _reopen(self) -> None:
        """An answer that goes on: its last block, which was closed, is open again."""
        held, self.body = self.body, PagedAnswer(self.tr("Answer"))
        self._column.replaceWidget(held, self.body)
        held.hide()
        held.deleteLater()
        self._rounds = 0

    def set_named(self, named: bool) -> None:
        """The model's name, where it is another one than before."""
        if named and self.turn.model:
            self._name.setText(self.turn.model)
        self._name.setVisible(named and bool(self.turn.model))

    def set_latest(self, latest: bool) -> None:
        """The last answer's footer stands out."""
        self._latest = latest
        self.footer.set_latest(latest)
        self.tools.set_near(latest or self._hovered)

    def set_idle(self, idle: bool) -> None:
        """Whether something can be asked now."""
        self.tools.set_idle(idle)
        self.tools.set_off(self.footer.again, not idle)

    def set_tinted(self, tinted: bool) -> None:
        """Whether drafted text is tinted."""
        changed, self._tinted = tinted != self._tinted, tinted
        self._tint(new=changed)

    def set_unfolded(self, unfolded: bool) -> None:
        """Whether thinking is unfolded when it comes; what is there stays as the user has it."""
        self._unfolded = unfolded

    def _tint(self, *, new: bool) -> None:
        if new and self.turn.rounds:
            self._rounds = len(self.turn.rounds)
            self.body.show_rounds(self.turn.rounds, self._tinted)

    def _copy(self) -> None:
        copy_markdown(self.turn.text)
        self.footer.copy.set_icon("check")

    def _regenerate(self) -> None:
        self._chat.regenerate(self.turn.id)

    def _open_menu(self) -> None:
        menu = answer_menu(self, self.turn, self._chat, lambda: self.edit_asked.emit(self.turn.id))
        menu.aboutToHide.connect(menu.deleteLater)
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        corner = QPoint(0 if mirrored else self.footer.more.width(), self.footer.more.height() + 2)
        spot = self.footer.more.mapToGlobal(corner)
        if not mirrored:
            spot.setX(spot.x() - menu.sizeHint().width())
        menu.popup(spot)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.turn.text:
            self.body.redraw()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self.tools.set_near(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self.tools.set_near(self._latest)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.body.ringed:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)
