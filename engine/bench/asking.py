"""Conversations put to a session and timed, and a heat: all of them, answered in one way.

Knows a session by what it is asked; loads no model by itself and compares nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from engine.api import Chunk, Drafting, Finish, Message, Precision, Progress, Sampling
from engine.bench.prompts import Conversation
from engine.bench.runs import Answer, Run, Way
from engine.errors import Cancelled, ContextFull, OutOfMemory

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]

WARM_UP_TOKENS = 8  # of an answer before those that count, when weights and tables are new


class Asked(Protocol):
    """What is needed of `engine.session.Session`."""

    @property
    def memory_bytes(self) -> int: ...

    def choose_draft(
        self,
        choice: str | Path,
        *,
        model: Path | None = None,
        precision: Precision | None,
        progress: Report,
        stopped: Stopped,
    ) -> None: ...

    def forget(self) -> None: ...

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        drafting: Drafting,
        *,
        resume: bool,
        chat: str | None = None,
        stopped: Stopped,
    ) -> Iterator[Chunk]: ...


@dataclass(frozen=True)
class Manner:
    """How answers are made: the way that is measured, in the vocabulary with this fingerprint."""

    way: Way
    sampling: Sampling
    drafting: Drafting
    vocabulary: str


@dataclass(frozen=True)
class Heat:
    """All prompts, answered with the draft `choice` for the time number `again`; "auto" holds
    `model` too. `precision` None: the target's."""

    manner: Manner
    choice: str | Path
    precision: Precision | None
    prompts: tuple[Conversation, ...]
    again: int
    model: Path | None = None


def run(session: Asked, heat: Heat, report: Report, stopped: Stopped) -> list[Run]:
    """A run for each prompt, after a warm-up, on the target that `session` has loaded; its draft is
    then the heat's, and its caches hold nothing of a chat. Prompts longer than the context have no
    run.

    Reports prompts. Raises Cancelled, OutOfMemory, what choosing a draft raises, and ContextFull
    where all prompts are too long.
    """
    session.choose_draft(
        heat.choice,
        model=heat.model,
        precision=heat.precision,
        progress=lambda progress: None,
        stopped=stopped,
    )
    manner, count = heat.manner, len(heat.prompts)
    most = manner.sampling.max_tokens or WARM_UP_TOKENS
    short = replace(manner.sampling, max_tokens=min(WARM_UP_TOKENS, most))
    runs: list[Run] = []
    full: ContextFull | None = None
    for prompt, asked in enumerate(heat.prompts):
        try:
            if not runs:
                ask(session, asked[:1], replace(manner, sampling=short), stopped)
            answers = ask(session, asked, manner, stopped)
            runs.append(Run(manner.way, prompt, heat.again, session.memory_bytes, answers))
        except ContextFull as error:
            full = error
        report(Progress("ask", prompt + 1, count, "prompts"))
    if full is not None and not runs:
        raise full
    return runs


def ask(
    session: Asked, asked: Conversation, manner: Manner, stopped: Stopped
) -> tuple[Answer, ...]:
    """An answer per turn, from empty caches and tables. Raises Cancelled, OutOfMemory."""
    session.forget()
    answers = []
    chat: list[Message] = []
    for turn in asked:
        chat.append(Message("user", turn))
        chunks = list(
            session.reply(chat, manner.sampling, manner.drafting, resume=False, stopped=stopped)
        )
        last = chunks[-1]
        if last.finish is Finish.CANCELLED:
            raise Cancelled()
        if last.finish is Finish.MEMORY:
            raise OutOfMemory(
                "bench_no_memory", "Memory ran out while {row} answered.", row=manner.way.label
            )
        ids = tuple(token for chunk in chunks for token in chunk.token_ids)
        chat.append(
            Message(
                "assistant",
                "".join(chunk.text for chunk in chunks),
                ids if last.token_ids_exact else None,
                manner.vocabulary,
                "".join(chunk.reasoning for chunk in chunks),
            )
        )
        rate, first = last.usage.tokens_per_second, last.usage.time_to_first_token
        answers.append(Answer(ids, rate or 0.0, first or 0.0, last.usage))
    return tuple(answers)
