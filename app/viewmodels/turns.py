"""A message as the window shows it, and how it becomes what is kept and what the engine is told.

Knows no signal and no widget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby

from app.chats.conversation import Attachment, Entry, Facts, Round, State
from app.viewmodels.writing import with_attachments
from engine.api import Chunk, Finish, Message, Progress, Role, Usage
from engine.errors import Reason


@dataclass
class Turn:
    """One message as it is shown; `usage`, `thinking` (seconds) and below only for answers.

    `versions` are the ids of what was written in its place, itself among them. `before`: what an
    answer that goes on had used when it was stopped.
    """

    id: str
    role: Role
    text: str = ""
    parent: str | None = None
    attachments: tuple[Attachment, ...] = ()
    model: str = ""
    reasoning: str = ""
    thinking: float | None = None
    notices: list[Reason] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    before: Usage | None = None
    drafted: bool = False
    rounds: list[Round] = field(default_factory=list)
    times_plain: float | None = None
    prefilled: Progress | None = None
    running: bool = False
    state: State = "done"
    finish: Finish | None = None
    problem: Reason | None = None
    token_ids: list[int] = field(default_factory=list)
    token_ids_exact: bool = True
    vocabulary: str = ""
    left_out: int = 0
    written: float = 0.0
    versions: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether an error ended it."""
        return self.state == "failed"

    @property
    def ended_early(self) -> bool:
        """Whether there is more to come of an answer, if it is asked for."""
        return self.role == "assistant" and not self.running and self.finish is not Finish.STOP

    def message(self) -> Message:
        """The turn as the engine takes it; ids only where they are the whole answer."""
        if self.role != "assistant":
            return Message(self.role, with_attachments(self.text, self.attachments))
        said = Message(self.role, self.text, reasoning=self.reasoning)
        if not self.token_ids or not self.token_ids_exact:
            return said
        return replace(said, token_ids=tuple(self.token_ids), vocabulary=self.vocabulary)

    def add(self, chunk: Chunk, said: Sequence[Reason] = ()) -> None:
        """Take in one round; what the chat has `said` about its prompts is not said again."""
        self.text += chunk.text
        self.reasoning += chunk.reasoning
        self.token_ids += chunk.token_ids
        self.token_ids_exact &= chunk.token_ids_exact
        if chunk.finish in (Finish.MEMORY, Finish.CONTEXT):
            self.problem = next(iter(chunk.notices), None)
        else:
            known = (*self.notices, *(said if chunk.round is None else ()))
            self.notices += (n for n in chunk.notices if n not in known)
        self.usage = chunk.usage if self.before is None else joined(self.before, chunk.usage)
        self.prefilled = chunk.prefilled
        self.finish = chunk.finish
        if chunk.round is not None:
            self.rounds.append(_round(chunk))
        elif chunk.text:  # what was held back until the end
            self.rounds.append(Round(0, 0, 0.0, ((len(chunk.text), False),)))

    def entry(self, chat: str, *, chosen: bool = True) -> Entry:
        """The turn as it is kept."""
        return Entry(
            self.id,
            chat,
            self.parent,
            self.role,
            self.text,
            self.attachments,
            self.reasoning,
            "running" if self.running else self.state,
            Facts(
                model=self.model,
                thinking=self.thinking,
                usage=self.usage,
                finish=self.finish,
                drafted=self.drafted,
                rounds=tuple(self.rounds),
                times_plain=self.times_plain,
                token_ids=tuple(self.token_ids) if self.token_ids_exact else (),
                vocabulary=self.vocabulary,
                notices=tuple(self.notices),
                problem=self.problem,
                left_out=self.left_out,
            ),
            self.written,
            chosen,
        )


def turn_of(entry: Entry, versions: tuple[str, ...]) -> Turn:
    """The turn that was kept as `entry`; one that ran when the program ended was interrupted."""
    facts = entry.facts
    return Turn(
        entry.id,
        entry.role,
        entry.text,
        entry.parent,
        entry.attachments,
        facts.model,
        entry.reasoning,
        facts.thinking,
        list(facts.notices),
        facts.usage,
        drafted=facts.drafted,
        rounds=list(facts.rounds),
        times_plain=facts.times_plain,
        state="interrupted" if entry.state == "running" else entry.state,
        finish=facts.finish,
        problem=facts.problem,
        token_ids=list(facts.token_ids),
        token_ids_exact=bool(facts.token_ids),
        vocabulary=facts.vocabulary,
        left_out=facts.left_out,
        written=entry.written,
        versions=versions,
    )


def joined(before: Usage, since: Usage) -> Usage:
    """What an answer used that was stopped and went on; the first token was the first one's."""
    sums = {
        one.name: getattr(before, one.name) + getattr(since, one.name)
        for one in fields(Usage)
        if one.type in (int, float, "int", "float")
    }
    return replace(
        since,
        **{
            **sums,
            "prompt_tokens": before.prompt_tokens,
            "cached_tokens": before.cached_tokens,
            "seed": before.seed,
            "time_to_first_token": before.time_to_first_token or since.time_to_first_token,
            "drafted_at": _added(before.drafted_at, since.drafted_at),
            "accepted_at": _added(before.accepted_at, since.accepted_at),
        },
    )


def _added(some: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    length = max(len(some), len(more))
    padded = (counts + (0,) * (length - len(counts)) for counts in (some, more))
    return tuple(map(sum, zip(*padded, strict=True)))


def _round(chunk: Chunk) -> Round:
    stats = chunk.round
    assert stats is not None
    seconds = stats.draft_seconds + stats.verify_seconds
    return Round(stats.drafted, stats.accepted, seconds, tuple(_runs(chunk)))


def _runs(chunk: Chunk) -> Iterator[tuple[int, bool]]:
    """The characters of a round's text, in runs of what was drafted and what was not."""
    if sum(chunk.lengths) != len(chunk.text) or len(chunk.lengths) != len(chunk.drafted):
        yield len(chunk.text), False
        return
    pairs = zip(chunk.lengths, chunk.drafted, strict=True)
    for drafted, tokens in groupby(pairs, key=lambda pair: pair[1]):
        if length := sum(length for length, _ in tokens):
            yield length, drafted
