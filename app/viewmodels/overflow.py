"""Room in a full context: what the model is no longer told of a chat, and what it is told instead.

Has it counted and summed up in the model lane. Knows no widget and no more of the chat than it is
handed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.chats.conversation import Choices
from app.lanes import Job, Stopped
from app.viewmodels.turns import Turn
from app.worker import SessionLike, Worker
from engine.api import Drafting, Message, Sampling
from engine.errors import Cancelled, EngineError, Reason
from engine.turns import oldest

FREED = 0.25  # of the context, at least
SUMMARY = 0.1  # of the context that a summary may take,
MOST = 400  # tokens of it in a large one


@dataclass(frozen=True)
class Overflow:
    """The chat does not fit: the tokens it would need, and what there is. `making`: how room is
    being made just now."""

    needed: int
    context: int
    making: Literal["", "drop", "summarise"] = ""


class RoomMaker(QObject):
    """Makes room, one time after another: each ends in `made` or `refused`, unless it is left."""

    made = Signal(int, str)  # so many of the oldest messages go; what stands for them, if anything
    refused = Signal(object)  # Reason, or None where it was stopped

    def __init__(self, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self._waiting = False
        self._left = 0  # orders whose end is nobody's business any more
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)

    def leave_out(self, messages: Sequence[Message], context: int) -> None:
        """Find how many of the oldest `messages` must go from a `context` of so many tokens."""
        room = round(FREED * context)
        self._order(lambda session, _: (session.oldest(messages, room), ""))

    def sum_up(self, messages: Sequence[Message], context: int, drafting: Drafting) -> None:
        """The same, and have the model sum up what goes."""
        room, most = round(FREED * context), min(MOST, round(SUMMARY * context))
        wish = Message("user", self._wish().format(count=most // 2))
        sampling = Sampling(temperature=0.0, max_tokens=most)

        def task(session: SessionLike, stopped: Stopped) -> tuple[int, str]:
            count = session.oldest(messages, room)
            told = [*oldest(messages, count), wish]
            chunks = session.reply(
                told, sampling, drafting, resume=False, chat=None, stopped=stopped
            )
            text = "".join(chunk.text for chunk in chunks).strip() if count else ""
            if stopped():
                raise Cancelled
            if count and not text:
                raise EngineError("no_summary", "The model wrote no summary.")
            return count, text

        self._order(task)

    def leave(self) -> bool:
        """Another chat is shown: what is being made, if anything is, is for nobody."""
        if not self._waiting:
            return False
        self._waiting = False
        self._left += 1
        self._worker.stop_making_room()
        return True

    def _order(self, task: Callable[[SessionLike, Stopped], tuple[int, str]]) -> None:
        self._waiting = True
        self._worker.make_room(task)

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.ROOM or not self._is_awaited():
            return
        if isinstance(result, tuple):
            self.made.emit(*result)
        else:
            self.refused.emit(None)

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.ROOM and self._is_awaited():
            self.refused.emit(reason)

    def _is_awaited(self) -> bool:
        """Whether the order that ended is the last one; orders end in turn."""
        if self._left:
            self._left -= 1
            return False
        self._waiting = False
        return True

    def _wish(self) -> str:
        return self.tr(
            "Summarise this conversation in at most {count} words, so that it can go on without "
            "the messages above. Keep names, numbers, decisions and open questions."
        )


def overflow_of(reason: Reason) -> Overflow | None:
    """That a question did not fit, in numbers; None where it failed for another reason."""
    needed, context = (reason.values.get(name) for name in ("needed", "context"))
    if reason.code != "context_full" or not isinstance(needed, int):
        return None
    return Overflow(needed, context if isinstance(context, int) else needed)


def shown(turns: Sequence[Turn], choices: Choices) -> list[Turn]:
    """The turns that the model is shown."""
    at = next((i for i, turn in enumerate(turns) if turn.id == choices.left_out), -1)
    return list(turns[at + 1 :])


def told(turns: Sequence[Turn], choices: Choices) -> list[Message]:
    """What the model is told: the system prompt, a summary, and what it is shown of `turns`."""
    parts, kept = [choices.system.strip()], shown(turns, choices)
    if choices.summary and len(kept) < len(turns):
        heading = QCoreApplication.translate("RoomMaker", "What was said before, in short:")
        parts.append(f"{heading}\n{choices.summary}")
    system = "\n\n".join(filter(None, parts))
    said = [turn.message() for turn in kept]
    return [Message("system", system)] * bool(system) + said
