"""The conversation: turns, what is being answered, how full the context is.

Decides what is sent to the engine and what becomes of an answer that ends early. Knows no
widget; the words of a failure come from the engine.
"""

import time
from dataclasses import dataclass, field
from itertools import count

from PySide6.QtCore import QObject, Signal

from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import Property
from app.viewmodels.models import Models
from app.worker import Job, Worker
from engine.api import Chunk, Finish, Message, Progress, Role, RoundStats, Sampling, Usage
from engine.errors import Reason

TITLE_LENGTH = 80


@dataclass
class Turn:
    """One message as it is shown; `usage`, `thinking` (seconds) and below only for answers."""

    id: int
    role: Role
    text: str = ""
    model: str = ""
    reasoning: str = ""
    thinking: float | None = None
    notices: list[Reason] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    drafted: bool = False
    prefilled: Progress | None = None
    running: bool = False
    finish: Finish | None = None
    failed: bool = False
    problem: Reason | None = None
    token_ids: list[int] = field(default_factory=list)
    token_ids_exact: bool = True
    vocabulary: str = ""

    def message(self) -> Message:
        """The turn as the engine takes it; ids only where they spell the text."""
        if self.role == "assistant" and self.token_ids and self.token_ids_exact:
            ids = tuple(self.token_ids)
            return Message(self.role, self.text, token_ids=ids, vocabulary=self.vocabulary)
        return Message(self.role, self.text)

    def add(self, chunk: Chunk) -> None:
        """Take in one round."""
        self.text += chunk.text
        self.reasoning += chunk.reasoning
        self.token_ids += chunk.token_ids
        self.token_ids_exact &= chunk.token_ids_exact
        if chunk.finish in (Finish.MEMORY, Finish.CONTEXT):
            self.problem = next(iter(chunk.notices), None)
        else:
            self.notices += chunk.notices
        self.usage = chunk.usage
        self.prefilled = chunk.prefilled
        self.finish = chunk.finish or self.finish


class Chat(QObject):
    """One conversation with whatever target is loaded."""

    turn_added = Signal(object)  # Turn
    turn_grew = Signal(object)  # Turn
    turn_ended = Signal(object)  # Turn
    turn_removed = Signal(object)  # Turn
    rounds_added = Signal(object)  # list[RoundStats]
    question_returned = Signal(str)
    cleared = Signal()
    answered = Signal()  # an answer ended, however
    title_changed = Signal(object)
    answering_changed = Signal(object)
    can_send_changed = Signal(object)
    used_changed = Signal(object)

    title = Property[str]("")
    answering = Property[bool](False)
    can_send = Property[bool](False)
    used = Property[int](0)

    def __init__(
        self, worker: Worker, models: Models, alerts: Alerts, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._models = models
        self._alerts = alerts
        self._ids = count(1)
        self._turns: list[Turn] = []
        self._answer: Turn | None = None
        self._thought_since: float | None = None
        self.title = self.tr("New chat")
        worker.pieces.connect(self._take)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        models.loaded_changed.connect(self._settle)
        models.loading_changed.connect(self._settle)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, oldest first."""
        return tuple(self._turns)

    def send(self, text: str) -> bool:
        """Ask; whether it was sent. An empty message, or one while it answers, is not."""
        text = text.strip()
        if not text or not self.can_send or self._models.loaded is None:
            return False
        self._alerts.dismiss()
        if not self._turns:
            self.title = _title(text)
        self._add(Turn(next(self._ids), "user", text))
        messages = [turn.message() for turn in self._turns]
        self._answer = self._new_answer()
        self._add(self._answer)
        self.answering = True
        self._settle()
        self._worker.reply(messages, Sampling(), self._models.drafting)
        return True

    def stop(self) -> None:
        """End the answer, or the loading of a model."""
        if self.answering or self._models.busy or self._models.choosing:
            self._worker.stop()

    def new_chat(self) -> None:
        """Start afresh; an answer that runs is stopped and dropped."""
        if self.answering:
            self._worker.stop_reply()
        self._answer = None
        self._turns = []
        self._alerts.dismiss()
        self.title = self.tr("New chat")
        self.used = 0
        self.cleared.emit()

    def _new_answer(self) -> Turn:
        loaded = self._models.loaded
        return Turn(
            next(self._ids),
            "assistant",
            model=self._models.target_name,
            drafted=self._models.draft != "none",
            vocabulary=loaded.vocabulary if loaded else "",
            running=True,
        )

    def _add(self, turn: Turn) -> None:
        self._turns.append(turn)
        self.turn_added.emit(turn)

    def _take(self, chunks: list[Chunk]) -> None:
        """Add what came since the last time; pieces of a dropped answer are dropped too."""
        turn = self._answer
        if turn is None:
            return
        for chunk in chunks:
            self._time_thinking(turn, chunk)
            turn.add(chunk)
        self.used = max(self.used, turn.usage.prompt_tokens + turn.usage.tokens)
        rounds: list[RoundStats] = [c.round for c in chunks if c.round is not None]
        if rounds:
            self.rounds_added.emit(rounds)
        self.turn_grew.emit(turn)

    def _time_thinking(self, turn: Turn, chunk: Chunk) -> None:
        now = time.monotonic()
        if chunk.reasoning and self._thought_since is None:
            self._thought_since = now
        if self._thought_since is not None and turn.thinking is None and chunk.text:
            turn.thinking = now - self._thought_since

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.REPLY:
            turn = self._answer
            self._end()
            if turn is not None:
                self._explain(turn)

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.REPLY:
            turn = self._answer
            if turn is not None:
                turn.failed = True
            self._end()
            if turn is not None:
                full = reason.code.startswith("context")
                self._alerts.show_reason(reason, Action.NEW_CHAT if full else Action.NONE)

    def _end(self) -> None:
        turn, self._answer = self._answer, None
        self._thought_since = None
        self.answering = False
        self._settle()
        if turn is not None:
            turn.running = False
            self._models.measured(turn.usage)
            self.turn_ended.emit(turn)
            if turn.finish in (None, Finish.CANCELLED, Finish.CONTEXT, Finish.MEMORY):
                self._return_unanswered(turn)
        self.answered.emit()

    def _return_unanswered(self, turn: Turn) -> None:
        """A question that got no answer goes back to where it was written, and is not sent
        again with the next one."""
        if turn.text or turn.reasoning:
            return
        question = self._turns[-2]
        self._turns = self._turns[:-2]
        self.turn_removed.emit(turn)
        self.turn_removed.emit(question)
        self.question_returned.emit(question.text)
        if not self._turns:
            self.title = self.tr("New chat")

    def _explain(self, turn: Turn) -> None:
        """Say why an answer ended early, where it was not the user's or the model's will."""
        if turn.finish not in (Finish.MEMORY, Finish.CONTEXT):
            return
        if turn.problem is not None:
            self._alerts.show_reason(turn.problem, Action.NEW_CHAT)
        elif turn.finish is Finish.MEMORY:
            self._alerts.show(self.tr("Memory ran out. The text is kept."), Action.NEW_CHAT)
        else:
            self._alerts.show(self.tr("The model's context is full."), Action.NEW_CHAT)

    def _settle(self, *_: object) -> None:
        models = self._models
        self.can_send = models.loaded is not None and not models.busy and not self.answering


def _title(question: str) -> str:
    """The first line of a question, cut at a word."""
    line = question.splitlines()[0]
    return line if len(line) <= TITLE_LENGTH else f"{line[:TITLE_LENGTH].rsplit(' ', 1)[0]} …"
