"""One answer while it is made: its prefill, its rounds up to a stop or a limit, its totals.

Feeds the models it is handed and tidies their caches behind a stop. Knows no session, no file and
no lack of memory.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from engine.api import Chunk, Drafting, Finish, Progress, RoundStats, Sampling, Usage
from engine.decode import decode
from engine.drafters.auto import Auto
from engine.drafters.base import Drafter
from engine.errors import Cancelled, ContextFull, EngineError, Reason
from engine.loading import LoadedModel, Stopped
from engine.roles import next_border
from engine.sampling import Noise, Policy, resolve
from engine.text import Piece, Reading
from engine.tokenizer import Begun, Prompt


def context_full(needed: int, context: int) -> ContextFull:
    """The chat takes `needed` tokens, the model `context`."""
    return ContextFull(
        "context_full",
        "The chat has {needed} tokens; the model's context of {context} is full.",
        needed=needed,
        context=context,
    )


@dataclass(frozen=True)
class _Taken:
    """What counts of a round: `lengths` characters of its text came with each of its ids."""

    piece: Piece
    lengths: tuple[int, ...]


@dataclass
class Answer:
    """One answer while it is made, or the rest of one that goes on: the opening, the prefill, the
    rounds and the last chunk, in this order.

    `tokens` are those of the chat, `answers` the positions of answers in them.
    """

    target: LoadedModel
    prompt: Prompt
    begun: Begun
    wanted: Sampling
    drafting: Drafting
    stopped: Stopped
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.model, self.tokenizer = self.target.model, self.target.tokenizer
        self.sampling = resolve(self.wanted, self.target.loaded.defaults)
        self.start = len(self.prompt.ids)
        self.tokens = [*self.prompt.ids, *self.begun.ids]
        # where this part of the answer starts
        self.here = len(self.tokens)
        self.answers = self.prompt.answers
        if self.begun.ids:
            self.answers += (range(self.start, self.here),)
        if not self.tokens:
            raise ContextFull("empty_prompt", "There is nothing to answer.")
        if self.here >= self.model.context:
            raise context_full(self.here, self.model.context)
        if not all(0 <= token < self.model.vocab_size for token in self.tokens):
            raise EngineError(
                "foreign_token",
                "The prompt holds a token that the model does not have: the tokenizer is not its "
                "own, or the chat is another model's.",
            )
        asked = self.sampling.max_tokens
        room = self.model.context if asked is None else min(self.model.context, self.here + asked)
        self.limit = room
        self.out = Reading(self.tokenizer.decode, self.sampling.stop, self.prompt.thinking)
        self.out.begin(self.begun.ids, self.begun.shown)
        self.kept = 0
        self.finish: Finish | None = None
        self.problem: Reason | None = None

    def opening(self) -> Chunk:
        """What is known before a model has computed: the clock runs from here on."""
        self.began = time.monotonic()
        seed = self.sampling.seed
        self.usage = replace(
            self.usage,
            prompt_tokens=self.here,
            seed=secrets.randbits(32) if seed is None else seed,
        )
        return Chunk(usage=self.usage, notices=self.prompt.notices)

    def prefill(self, cached: int, drafter: Drafter) -> Iterator[Chunk]:
        """Feed what comes behind the `cached` tokens that the target holds, the last one excepted:
        the rounds begin with it."""
        self.usage = replace(self.usage, cached_tokens=cached)
        done, total = cached, self.here - 1
        while done < total:
            step = self.tokens[done : min(total, next_border(done))]
            self.model.feed(step, self.answers)
            done += len(step)
            yield Chunk(usage=self.usage, prefilled=Progress("prefill", done, total, "tokens"))
        drafter.prefill(self.tokens[:-1])
        self.usage = replace(self.usage, prefill_seconds=time.monotonic() - self.began)

    def rounds(self, drafter: Auto) -> Iterator[Chunk]:
        """A chunk per round, up to a stop or a limit. Raises Cancelled."""
        if self.out.stopped:  # what goes on holds a stop string already
            self.finish = Finish.STOP
            return
        policy = Policy(
            self.sampling,
            Noise(self.usage.seed),
            self.start,
            self.drafting.verification,
            self.tokenizer.eos_ids,
        )
        drafter.begin(self.drafting.length)
        rounds = decode(self.model, drafter, drafter, self.tokens, policy, limit=self.limit)
        told: set[str] = set()
        try:
            for new, stats in rounds:
                taken = self._take(new)
                ids = new[: len(taken.lengths)]
                stats = _cut(stats, len(new), len(ids))
                self._count(stats)
                said = (drafter.pause, drafter.mismatch.reason)
                notices = tuple(n for n in said if n is not None and n.code not in told)
                told.update(notice.code for notice in notices)
                yield self._chunk(taken, ids, stats, notices)
                if self.finish is not None:
                    break
                if self.stopped():
                    raise Cancelled()
        finally:
            rounds.close()
            self._forget_after_stop(drafter)
        if self.finish is None:
            self._reached_limit()

    def ran_out(self) -> None:
        """Memory ran out: nothing is held any more, the text stays."""
        self.tokens = []
        self.finish = Finish.MEMORY
        self.problem = Reason(
            "no_memory",
            "Memory ran out. The text is kept. A shorter chat or no draft model needs less.",
        )

    def last(self) -> Chunk:
        """Why it ended, and its totals."""
        self.usage = replace(self.usage, seconds=time.monotonic() - self.began)
        return Chunk(
            usage=self.usage,
            finish=self.finish,
            notices=(self.problem,) if self.problem else (),
            token_ids_exact=self.begun.known and not self.out.stopped,
        )

    def _reached_limit(self) -> None:
        if self.limit < self.model.context:
            self.finish = Finish.LENGTH
            return
        self.finish = Finish.CONTEXT
        self.problem = Reason(
            "context_reached",
            "The chat has reached {context} tokens, all that this model can hold.",
            {"context": self.model.context},
        )

    def _take(self, new: Sequence[int]) -> _Taken:
        """Walk a round's ids as plain decoding would, up to a stop."""
        whole, lengths = Piece(), []
        for token in new:
            if token in self.tokenizer.eos_ids:
                self.finish = Finish.STOP
                piece = self.out.flush()
            else:
                piece = self.out.push(token)
                if self.out.stopped:
                    self.finish = Finish.STOP
                    piece = piece + self.out.flush()
            whole = whole + piece
            lengths.append(len(piece.text))
            if self.finish is not None:
                break
        return _Taken(whole, tuple(lengths))

    def _count(self, stats: RoundStats) -> None:
        now = time.monotonic() - self.began
        first = self.usage.time_to_first_token
        self.usage = replace(
            self.usage.plus(stats),
            seconds=now,
            reasoning_tokens=self.out.thought,
            time_to_first_token=now if first is None else first,
        )

    def _chunk(
        self,
        taken: _Taken,
        ids: Sequence[int],
        stats: RoundStats,
        notices: tuple[Reason, ...],
    ) -> Chunk:
        self.kept += len(ids)
        # the last token of a whole round is the target's own
        drafted = tuple(i < stats.accepted for i in range(len(ids)))
        return Chunk(
            text=taken.piece.text,
            reasoning=taken.piece.reasoning,
            token_ids=tuple(ids),
            drafted=drafted,
            lengths=taken.lengths,
            usage=self.usage,
            round=stats,
            notices=notices,
        )

    def _forget_after_stop(self, drafter: Drafter) -> None:
        """Drop the tokens behind a stop from the history and from every cache."""
        del self.tokens[self.here + self.kept :]
        self.model.cache.crop_to(len(self.tokens) - 1)
        drafter.settle(len(self.tokens) - 1)


def summary(usage: Usage) -> str:
    """The figures of an answer on a line, the rate as llama.cpp's users know it."""
    speed, first = usage.tokens_per_second, usage.time_to_first_token
    parts = [f"{usage.tokens} tokens", "-" if speed is None else f"{speed:.1f} tok/s"]
    if first is not None:
        parts.append(f"first token {first:.2f} s")
    if usage.acceptance_rate is not None:
        parts.append(
            f"draft acceptance = {usage.acceptance_rate:.5f} "
            f"({usage.accepted} accepted / {usage.drafted} drafted), "
            f"mean len = {usage.tokens_per_round:.2f}"
        )
    return ", ".join(parts)


def _cut(stats: RoundStats, made: int, taken: int) -> RoundStats:
    """The stats of a round of which only the first `taken` of `made` tokens count.

    What was drafted behind a stop was, for the answer, never judged: it is ignored.
    """
    if taken == made:
        return stats
    accepted = min(stats.accepted, taken)
    return replace(stats, accepted=accepted, ignored=stats.drafted - accepted, emitted=taken)
