"""The conversation: turns, what is being answered, how full the context is.

Decides what is sent to the engine and what becomes of an answer that ends early. Knows no widget;
the words of a failure come from the engine.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats.conversation import Attachment, ChatRecord, Choices, Entry, Unsent, new_id
from app.lanes import Job
from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import Property, Throttle
from app.viewmodels.branch import Branch
from app.viewmodels.history import History
from app.viewmodels.models import Models
from app.viewmodels.overflow import Overflow, RoomMaker, overflow_of, shown, told
from app.viewmodels.turns import Turn
from app.worker import Worker
from engine.api import Chunk, Finish, Message, RoundStats
from engine.errors import Reason

TITLE_LENGTH = 80
SAVE_MS = 1000


@dataclass(frozen=True)
class _Waiting:
    """What is done once there is room, and the question that has no answer till then."""

    again: Callable[[], object]
    question: Turn | None = None


class Chat(QObject):
    """One conversation with whatever target is loaded."""

    turn_added = Signal(object)  # Turn
    turn_grew = Signal(object)  # Turn
    turn_ended = Signal(object)  # Turn
    turn_removed = Signal(object)  # Turn
    rounds_added = Signal(object)  # list[RoundStats]
    question_returned = Signal(str, tuple)  # its text, tuple[Attachment, ...]
    withdrawn = Signal()  # a new chat is none again, with its only question; what is written stays
    cleared = Signal()
    opened = Signal()  # other turns are shown
    answered = Signal()  # an answer ended, however
    title_changed = Signal(object)
    answering_changed = Signal(object)
    can_send_changed = Signal(object)
    used_changed = Signal(object)
    choices_changed = Signal(object)
    chat_id_changed = Signal(object)
    overflow_changed = Signal(object)

    title = Property[str]("")
    answering = Property[bool](False)
    can_send = Property[bool](False)
    used = Property[int](0)
    choices = Property[Choices](Choices())
    chat_id = Property[str]("")  # empty before the first question
    overflow = Property[Overflow | None](None)

    def __init__(
        self,
        worker: Worker,
        models: Models,
        alerts: Alerts,
        history: History,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._worker, self._models, self._alerts = worker, models, alerts
        self._history, self._clock = history, clock
        self._branch = Branch(history)
        self.rewritten: dict[str, Unsent] = {}  # questions that are being edited, of every chat
        self._room = RoomMaker(worker, self)
        self._record: ChatRecord | None = None
        self._awaited = ""  # the chat that was asked for
        self._answer: Turn | None = None
        self._thought_since: float | None = None
        self._waiting: _Waiting | None = None  # for room
        self._wish: Choices | None = None  # of a chat whose own target is not loaded yet
        self._replaced = ""  # what another version was last written in place of
        self._closing = False
        self._saving = Throttle(SAVE_MS, self._save_answer, self)
        self.title = self.tr("New chat")
        worker.pieces.connect(self._take)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        self._room.made.connect(self._made_room)
        self._room.refused.connect(self._no_room)
        history.opened.connect(self._opened)
        history.failed.connect(alerts.show_reason)
        history.noticed.connect(alerts.stand)
        history.unkept.connect(alerts.stand)
        history.kept.connect(lambda trouble: alerts.withdraw(trouble.code))
        models.loaded_changed.connect(self._settle)
        models.loading_changed.connect(self._settle)
        models.draft_changed.connect(self._follow_models)
        models.settled.connect(self._fulfil)

    # What is shown

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, oldest first."""
        return tuple(self._branch.turns)

    @property
    def record(self) -> ChatRecord | None:
        """The chat as lists show it; None before its first question."""
        return self._record

    @property
    def texts(self) -> list[str]:
        """All that was written in the chat, by whomever."""
        texts = [self.title, self.choices.system, self.choices.summary]
        for turn in self._branch.turns:
            texts += (turn.text, turn.reasoning)
            texts += (part for one in turn.attachments for part in (one.name, one.text))
        return texts + [one.text for one in self.rewritten.values()]

    def new_chat(self) -> None:
        """Start afresh, with the last chat's sampling and system prompt left behind."""
        self._leave()
        self._record, self.chat_id = None, ""
        self.choices = Choices()
        self.title = self.tr("New chat")
        self.cleared.emit()

    def open(self, record: ChatRecord) -> None:
        """Show a chat that is kept."""
        if record.id != self.chat_id:
            self._awaited = record.id
            self._history.open(record)

    def rename(self, title: str) -> None:
        """Give the chat another title."""
        if self._record is not None and title.strip():
            self._put_chat(title=title.strip())

    def pin(self, on: bool) -> None:
        """Keep the chat at the top of the list, or no longer."""
        if self._record is not None:
            self._put_chat(pinned=on)

    def choose(self, choices: Choices) -> None:
        """Set what belongs to this chat: system prompt, sampling, what is left out."""
        self.choices = choices
        if self._record is not None:
            self._put_chat()

    def show_version(self, name: str) -> None:
        """Show this version of a message, and what followed it."""
        if not self.answering and self._branch.choose(name):
            self._forget_overflow()
            self._show_branch()

    # What is asked

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> bool:
        """Ask; whether it was sent. An empty message, or one while it answers, is not."""
        if not (text.strip() or attachments) or not self._is_ready():
            return False
        self._alerts.dismiss()
        # behind the sending, which empties the field
        QTimer.singleShot(0, self, self._give_way())
        self._ask(self._new_question(self._branch.last, text, tuple(attachments)))
        return True

    def edit(self, name: str, text: str, attachments: tuple[Attachment, ...] | None = None) -> bool:
        """Ask something else in place of a question, with these files or those that it had; what
        was there stays as a version."""
        turn = self._branch.find(name)
        if turn is None or turn.role != "user":
            return False
        held = turn.attachments if attachments is None else attachments
        if not (text.strip() or held) or not self._is_ready():
            return False
        self._forget_overflow()
        self._cut(turn)
        self._ask(self._new_question(turn.parent, text, held))
        self.rewritten.pop(name, None)
        return True

    def regenerate(self, name: str, *, same: bool = False) -> None:
        """Answer anew, `same` with the seed of this answer; it stays as a version. A question that
        has no answer is answered."""
        turn = self._branch.find(name)
        if turn is None or not self._is_ready():
            return
        if turn.role == "user":
            if name == self._branch.last:
                self._answer_anew(turn)
            return
        self._forget_overflow()
        self._cut(turn)
        self._reply(self._new_answer(turn.parent), seed=turn.usage.seed if same else None)

    def resume(self, name: str) -> None:
        """Go on with the last answer, which ended early, as if it had not."""
        turn = self._branch.find(name)
        if turn is None or name != self._branch.last or not turn.ended_early:
            return
        if not self._is_ready():
            return
        self._forget_overflow()
        turn.before, turn.problem, turn.state = turn.usage, None, "done"
        self._reply(turn, seed=turn.usage.seed, resume=True)

    def stop(self) -> None:
        """End the answer, or the loading of a model."""
        if self.answering or self._models.busy or self._models.choosing:
            self._worker.stop()

    def close(self) -> None:
        """The program ends: what is being answered is stopped and stays as far as it came."""
        self._closing = True
        self.stop()
        self._leave_room()

    # When the context is full

    def drop_oldest(self) -> None:
        """Leave the oldest messages out of what the model is shown, and ask again."""
        if self._begin_room("drop"):
            self._room.leave_out(self._told(), self._context())

    def summarise(self) -> None:
        """Have the oldest messages summarised, show the model that instead, and ask again."""
        if self._begin_room("summarise"):
            self._room.sum_up(self._told(), self._context(), self._models.drafting)

    def dismiss_overflow(self) -> None:
        """Leave it as it is; a question that does not fit goes back to where it was written."""
        self._give_way()()

    def _give_way(self) -> Callable[[], None]:
        """A question that waits is no longer in the chat; what gives it back."""
        waiting = self._waiting
        self._forget_overflow()
        if waiting is None or waiting.question is None:
            return lambda: None
        return self._take_back_question(waiting.question)

    def _forget_overflow(self) -> None:
        """Nothing waits for room any more; a question that did stays in the chat."""
        self.overflow = self._waiting = None

    def _begin_room(self, way: Literal["drop", "summarise"]) -> bool:
        """Whether room can be made now."""
        if self.overflow is None or not self._is_ready():
            return False
        self.overflow = replace(self.overflow, making=way)
        self._answer_now(True)
        return True

    def _context(self) -> int:
        """Tokens that the target may hold."""
        return self._models.context or (self.overflow.context if self.overflow else 0)

    def _made_room(self, count: int, summary: str) -> None:
        """The oldest `count` messages that the model was shown are shown to it no more, and what
        waited for room is done."""
        turns = shown(self._branch.turns, self.choices)
        if not 0 < count <= len(turns):
            self._no_room(None)
            self._alerts.show(self.tr("The last message alone fills the context."))
            return
        left_out = turns[count - 1].id
        self.choose(replace(self.choices, left_out=left_out, summary=summary))
        self._answer_now(False)
        waiting = self._waiting
        self._forget_overflow()
        if waiting is not None:
            waiting.again()

    def _leave_room(self) -> None:
        if self._room.leave():
            self._answer_now(False)
        self._forget_overflow()

    def _no_room(self, reason: Reason | None) -> None:
        """The question goes back."""
        self._answer_now(False)
        self.dismiss_overflow()
        if reason is not None:
            self._alerts.show_reason(reason)

    # How a question becomes an answer

    def _ask(self, question: Turn) -> None:
        if self._record is None:
            self._begin_chat(_title(question))
        self._put_chat(changed=self._clock())
        self._add(question)
        self._reply(self._new_answer(question.id))

    def _reply(self, answer: Turn, *, seed: int | None = None, resume: bool = False) -> None:
        """Have the shown turns answered into `answer`."""
        messages, turns = self._told(), self._branch.turns
        answer.running, answer.left_out = True, len(turns) - len(shown(turns, self.choices))
        if not resume:
            self._add(answer)
        self._answer, self._wish = answer, None
        self._answer_now(True)
        self._branch.keep(answer)
        sampling = self.choices.sampling
        if seed is not None:
            sampling = replace(sampling, seed=seed)
        self._worker.reply(
            messages, sampling, self._models.drafting, resume=resume, chat=self.chat_id
        )
        if resume:
            self.turn_grew.emit(answer)

    def _told(self) -> list[Message]:
        return told(self._branch.turns, self.choices)

    def _new_question(
        self, parent: str | None, text: str, attachments: tuple[Attachment, ...]
    ) -> Turn:
        return self._branch.new(
            "user", parent, text=text, attachments=attachments, written=self._clock()
        )

    def _new_answer(self, question: str | None) -> Turn:
        loaded = self._models.loaded
        return self._branch.new(
            "assistant",
            question,
            model=self._models.target_name,
            drafted=self._models.draft != "none",
            vocabulary=loaded.vocabulary if loaded else "",
            written=self._clock(),
        )

    def _add(self, turn: Turn) -> None:
        self._branch.add(turn)
        self.turn_added.emit(turn)

    def _cut(self, turn: Turn) -> None:
        """Take `turn` and all behind it off the screen; they stay as versions."""
        self._replaced = turn.id
        self._removed(self._branch.cut(turn))
        self.used = self._branch.used

    def _removed(self, gone: list[Turn]) -> None:
        for turn in reversed(gone):
            self.turn_removed.emit(turn)

    # What comes from the engine

    def _take(self, chunks: list[Chunk]) -> None:
        """Add what came since the last time; pieces of a dropped answer are dropped too."""
        turn = self._answer
        if turn is None:
            return
        said = [notice for one in self._branch.turns[:-1] for notice in one.notices]
        for chunk in chunks:
            self._time_thinking(turn, chunk)
            turn.add(chunk, said)
        if turn.usage.prompt_tokens:
            self.used = turn.usage.prompt_tokens + turn.usage.tokens
        self._compare(turn)
        rounds: list[RoundStats] = [c.round for c in chunks if c.round is not None]
        if rounds:
            self.rounds_added.emit(rounds)
        self.turn_grew.emit(turn)
        self._saving.soon()

    def _compare(self, turn: Turn) -> None:
        plain, speed = self._models.plain_speed, turn.usage.tokens_per_second
        if turn.usage.drafted and plain and speed:
            turn.times_plain = speed / plain

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
            turn, full = self._answer, overflow_of(reason)
            if turn is not None and full is None:
                turn.state = "failed"
            self._end(full)
            if turn is not None and self.overflow is None:
                self._alerts.show_reason(reason)

    def _end(self, full: Overflow | None = None) -> None:
        turn, self._answer = self._answer, None
        self._thought_since = None
        self._answer_now(False)
        if turn is not None:
            turn.running = False
            self._models.measured(turn.usage)
            self._branch.keep(turn)
            self.turn_ended.emit(turn)
            if turn.finish in (None, Finish.CANCELLED, Finish.CONTEXT, Finish.MEMORY):
                self._take_back(turn, full)
        self.answered.emit()

    def _take_back(self, turn: Turn, full: Overflow | None) -> None:
        """An answer without a word is taken back: another version of it is shown again, or its
        question goes back to where it was written, and is not sent again with the next one. What
        is too long waits until it is known what shall go."""
        others, question = _others(turn), None
        if turn.text or turn.reasoning:
            again = partial(self.resume, turn.id)
        elif others:
            self._put_back(turn)
            again = partial(self.regenerate, others[-1])
        else:
            self._removed(self._branch.forget(turn))
            question = self._branch.turns[-1]
            again = partial(self._answer_anew, question)
        if full is not None:
            self._show_overflow(full, _Waiting(again, question))
        elif question is not None and not self._closing:
            self._take_back_question(question)()

    def _answer_anew(self, question: Turn) -> None:
        self._forget_overflow()
        self._reply(self._new_answer(question.id))

    def _take_back_question(self, question: Turn) -> Callable[[], None]:
        """Take it out of the chat; what gives it back to where it was written."""
        self._put_back(question)
        if not self._branch.turns:
            self._withdraw()
        return partial(self.question_returned.emit, question.text, question.attachments)

    def _put_back(self, turn: Turn) -> None:
        """Forget a turn and what follows; what was written in its place before is shown again."""
        self._removed(self._branch.forget(turn))
        if others := _others(turn):
            self.show_version(self._before(others))

    def _before(self, others: list[str]) -> str:
        """Of these versions the one that was shown before."""
        return self._replaced if self._replaced in others else others[-1]

    def _withdraw(self) -> None:
        """A chat whose only question was taken back is none."""
        self._history.remove(self.chat_id)
        self._record, self.chat_id, self.title = None, "", self.tr("New chat")
        self.withdrawn.emit()

    def _explain(self, turn: Turn) -> None:
        """Say why an answer ended early, where it was not the user's or the model's will."""
        if turn.finish is Finish.CONTEXT:
            used = turn.usage.prompt_tokens + turn.usage.tokens
            full = Overflow(used, self._models.context or used)
            self._show_overflow(full, _Waiting(partial(self.resume, turn.id)))
        elif turn.finish is Finish.MEMORY and turn.problem is not None:
            self._alerts.show_reason(turn.problem)

    def _show_overflow(self, full: Overflow, waiting: _Waiting) -> None:
        """Ask what to do, or do what the settings say, which is then said in the chat."""
        self.overflow, self._waiting = full, waiting
        match self._models.settings.overflow:
            case "drop":
                self.drop_oldest()
            case "summarise":
                self.summarise()
            case "stop":
                self.dismiss_overflow()

    # What is kept

    def _begin_chat(self, title: str) -> None:
        now = self._clock()
        self._record = ChatRecord(new_id(), title, made=now, changed=now, choices=self.choices)
        self.chat_id, self.title = self._record.id, title
        self._branch.chat = self.chat_id
        self._follow_models()

    def _put_chat(self, **changes: Any) -> None:
        assert self._record is not None
        self._record = replace(self._record, choices=self.choices, **changes)
        self.title = self._record.title
        self._history.put_chat(self._record)

    def _follow_models(self, *_: object) -> None:
        """A chat remembers what it was last answered with, and what was chosen in it since."""
        models = self._models
        if self._record is None or models.loaded is None or self._wish is not None:
            return
        followed = replace(self.choices, target=models.target_key, draft=models.draft)
        if followed != self.choices:
            self.choose(followed)

    def _fulfil(self) -> None:
        """The chat's own target has been loaded: its own draft comes after it."""
        wish = self._wish
        if wish is not None and wish.target == self._models.target_key:
            self._wish = None
            self._models.choose_draft(wish.draft or "none")

    def _save_answer(self) -> None:
        if self._answer is not None:
            self._branch.keep(self._answer)

    def _leave(self) -> None:
        """Another chat comes: an answer that runs is stopped, and what came of it is kept."""
        turn, self._answer = self._answer, None
        if self.answering:
            self._worker.stop_reply()
        if turn is not None:
            turn.running, turn.finish = False, Finish.CANCELLED
            self._leave_answer(turn)
        self._leave_room()
        self._awaited, self._wish = "", None
        self._branch.show("", [])
        self._alerts.dismiss()
        self.used = 0

    def _leave_answer(self, turn: Turn) -> None:
        """Keep an answer as far as it came; of one without a word, what was there before."""
        if turn.text or turn.reasoning:
            self._branch.keep(turn)
            return
        self._branch.forget(turn)
        if others := _others(turn):
            self._branch.choose(self._before(others))

    def _opened(self, record: ChatRecord, entries: list[Entry]) -> None:
        if record.id != self._awaited:
            return
        self._leave()
        self._record, self.chat_id = record, record.id
        self._branch.show(record.id, entries)
        self.choices, self.title = record.choices, record.title
        self._show_branch()
        last = self._branch.turns[-1] if self._branch.turns else None
        if last is not None and last.role == "user":
            self._alerts.show(self.tr("The last question has no answer yet."), Action.ANSWER)
        self._turn_to_models(record.choices)

    def _turn_to_models(self, choices: Choices) -> None:
        """Draft as this chat last did; another target is loaded only if the user wants it."""
        models = self._models
        if choices.target == models.target_key and choices.draft is not None:
            models.choose_draft(choices.draft)
        elif choices.target and models.has(choices.target):
            self._wish = choices if choices.draft is not None else None
            said = self.tr("This chat was answered by {model}.")
            said = said.format(model=models.name_of(choices.target))
            self._alerts.show(said, Action.LOAD_CHATS_MODEL)

    def _show_branch(self) -> None:
        self.used = self._branch.used
        self.opened.emit()

    def _is_ready(self) -> bool:
        return self.can_send and self._models.loaded is not None

    def _settle(self, *_: object) -> None:
        models = self._models
        self.can_send = models.loaded is not None and not models.busy and not self.answering

    def _answer_now(self, yes: bool) -> None:
        self.answering = yes
        self._settle()


def _others(turn: Turn) -> list[str]:
    """The ids of what was written in place of a turn."""
    return [name for name in turn.versions if name != turn.id]


def _title(question: Turn) -> str:
    """The first line of a question, cut at a word; else the name of what came with it."""
    line = next(iter(question.text.strip().splitlines()), "")
    if not line and question.attachments:
        line = question.attachments[0].name
    return line if len(line) <= TITLE_LENGTH else f"{line[:TITLE_LENGTH].rsplit(' ', 1)[0]} …"
