"""The turns that are built, a stretch of the chat's; the others cost nothing until they are near.

Knows which widget shows which turn, and nothing of scrolling.
"""

from collections.abc import Iterator

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.bubble import Bubble
from app.widgets.common import label, rule
from app.widgets.turn import AnswerTurn

WIDTH = 720
GAP = 20

Shown = Bubble | AnswerTurn


class Column(QWidget):
    """Turns from top to bottom: those from `first` up to, not including, `last` of the chat."""

    edit_asked = Signal(str)  # the id of an answer
    grown = Signal(QWidget)
    written = Signal(QWidget)
    built = Signal()
    arranged = Signal()  # turns have other places

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self._chat = chat
        self.first = self.last = 0
        self.turns: dict[str, Shown] = {}
        self._tinted = self._unfolded = False
        self._left_out = _LeftOut()
        self.setObjectName("column")
        self.setMaximumWidth(WIDTH)
        self._column = QVBoxLayout(self)
        self._column.setSpacing(GAP)
        self._column.setContentsMargins(0, GAP, 0, 24)
        self.empty = label(
            self.tr("Ask something. What you write stays on this computer."),
            "reading",
            "text2",
            wrap=True,
        )
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column.addWidget(self.empty, 1)
        self._column.addStretch()
        bind(chat, Chat.can_send, self._set_idle)
        bind(chat, Chat.choices, self._mark_left_out)

    @property
    def answers(self) -> list[AnswerTurn]:
        """The answers that are built, oldest first."""
        return [shown for shown in self.turns.values() if isinstance(shown, AnswerTurn)]

    def show_turns(self, first: int, last: int) -> None:
        """Build what is missing of a stretch of the chat, keep what is there, drop the rest."""
        turns = self._chat.turns[first:last]
        wanted = {turn.id for turn in turns}
        self._column.removeWidget(self._left_out)
        for name in [name for name in self.turns if name not in wanted]:
            _drop(self.turns.pop(name))
        held = dict(self.turns)
        self.turns.clear()
        for place, turn in enumerate(turns):
            made = held.get(turn.id)
            if made is None:
                made = self._make(turn)
                self._column.insertWidget(place, made)
                # Else Qt shows it with a later event, and it has no height until then.
                made.show()
            elif made.turn is not turn:
                made.show_turn(turn)
            self.turns[turn.id] = made
        self.first, self.last = first, first + len(turns)
        self._dress()
        self.built.emit()

    def set_tinted(self, tinted: bool) -> None:
        """Whether drafted text is tinted."""
        self._tinted = tinted
        for answer in self.answers:
            answer.set_tinted(tinted)

    def set_unfolded(self, on: bool) -> None:
        """Whether thinking that is built from now on is unfolded at first."""
        self._unfolded = on
        for answer in self.answers:
            answer.set_unfolded(on)

    def question_of(self, name: str) -> Bubble | None:
        """The question before the answer with the id `name`."""
        found = None
        for shown in self.turns.values():
            if shown.turn.id == name:
                break
            found = shown if isinstance(shown, Bubble) else found
        return found

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self.arranged.emit()
        return done

    def _make(self, turn: Turn) -> Shown:
        if turn.role == "user":
            bubble = Bubble(turn, self._chat)
            bubble.grown.connect(self.grown)
            bubble.written.connect(self.written)
            bubble.set_idle(self._chat.can_send)
            return bubble
        answer = AnswerTurn(turn, self._chat, unfolded=self._unfolded)
        answer.edit_asked.connect(self.edit_asked)
        answer.set_idle(self._chat.can_send)
        answer.set_tinted(self._tinted)
        return answer

    def _dress(self) -> None:
        """What an answer shows because of those around it."""
        model = next(self._models_before(self.first), "")
        newest = next(self._models_before(len(self._chat.turns), ids=True), "")
        for answer in self.answers:
            answer.set_named(answer.turn.model != model)
            answer.set_latest(answer.turn.id == newest)
            model = answer.turn.model
        self._mark_left_out()
        self.empty.setVisible(not self._chat.turns)

    def _models_before(self, at: int, *, ids: bool = False) -> Iterator[str]:
        """The models, or the ids, of the answers before the turn `at`, the nearest first."""
        for turn in reversed(self._chat.turns[:at]):
            if turn.role == "assistant":
                yield turn.id if ids else turn.model

    def _set_idle(self, idle: bool) -> None:
        for shown in self.turns.values():
            shown.set_idle(idle)

    def _mark_left_out(self, *_: object) -> None:
        """A line below the last message that the model is shown no more."""
        choices = self._chat.choices
        at = self.turns.get(choices.left_out or "")
        self._column.removeWidget(self._left_out)
        if at is None:
            self._left_out.hide()
            return
        count = [turn.id for turn in self._chat.turns].index(at.turn.id) + 1
        self._left_out.show_count(count, summarised=bool(choices.summary))
        self._column.insertWidget(self._column.indexOf(at) + 1, self._left_out)
        self._left_out.show()


class _LeftOut(QWidget):
    """A thin line with words in it."""

    def __init__(self) -> None:
        super().__init__()
        self._words = label("", "caption", "text2")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(rule(), 1)
        row.addWidget(self._words)
        row.addWidget(rule(), 1)

    def show_count(self, count: int, *, summarised: bool) -> None:
        """So many messages lie above."""
        if summarised:
            one = self.tr("The model is shown a summary of the oldest message")
            many = self.tr("The model is shown a summary of the oldest {count} messages")
        else:
            one = self.tr("The oldest message is not shown to the model")
            many = self.tr("The oldest {count} messages are not shown to the model")
        self._words.setText(words.counted(count, one, many))


def _drop(shown: QWidget) -> None:
    shown.hide()
    shown.deleteLater()
