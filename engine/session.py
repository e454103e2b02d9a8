"""A conversation in, chunks of its answer out: prefill, stops, limits, prefix reuse, totals.

Owns the target and the drafter. Knows no window and no files but the models' own.
"""

import logging
import secrets
import time
import traceback
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from engine import guidance
from engine.api import (
    Chunk,
    Drafting,
    Finish,
    Loaded,
    Message,
    ModelInfo,
    Precision,
    Progress,
    RoundStats,
    Sampling,
    Usage,
)
from engine.controller import Automatic, Controller, FixedLength
from engine.decode import decode
from engine.devices import release
from engine.drafters import BUILT_IN
from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.careful import CarefulDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Cancelled, ContextFull, DraftRefused, EngineError, LoadError, Reason
from engine.fit import Pair
from engine.library.inspect import inspect, read_vocabulary
from engine.loading import LoadedModel, Report, Stopped, load, out_of_memory
from engine.memory import compared
from engine.roles import next_border
from engine.sampling import Noise, Policy, resolve
from engine.text import Piece, Reading
from engine.tokenizer import Begun, Prompt
from engine.turns import turns, without
from engine.vocabulary import difference

log = logging.getLogger(__name__)

AS_THE_FOLDER_SAYS = Sampling()
AUTOMATIC = Drafting()


def _never() -> bool:
    return False


def _unheard(progress: Progress) -> None:
    pass


class Session:
    """One target, at most one draft, and the tokens that their caches hold.

    `sample` is the text on which it is measured what quantising costs a model.
    """

    def __init__(
        self, cache_folder: Path, target: LoadedModel | None = None, *, sample: str = ""
    ) -> None:
        self._cache_folder = cache_folder
        self._sample = sample
        self._target = target
        self._draft: LoadedModel | None = None
        self._drafter: Drafter = NoDrafter()
        self._controller = Automatic(self._drafter.default_length)
        self._tokens: list[int] = []
        self._running: Generator[Chunk] | None = None

    @property
    def target(self) -> LoadedModel:
        """The target. Raises LoadError when none is loaded."""
        if self._target is None:
            raise LoadError("no_target", "No model is loaded.")
        return self._target

    @property
    def draft(self) -> LoadedModel | None:
        """The draft model, where the draft is a model."""
        return self._draft

    def load_target(
        self,
        path: Path,
        *,
        device: str = "auto",
        precision: Precision | None = None,
        pair: Pair | None = None,
        progress: Report = _unheard,
        stopped: Stopped = _never,
    ) -> Loaded:
        """Load the model at `path` as the target, on graphics cards as it was judged in `pair`;
        the draft is then "none".

        Raises what `loading.load` raises; the old target stays loaded and usable then.
        """
        new = load(
            path,
            cache_folder=self._cache_folder,
            device=device,
            precision=precision,
            pair=pair,
            sample=self._sample,
            progress=progress,
            stopped=stopped,
        )
        self.close()
        self._target = new
        if new.tokenizer.template:
            new.tokenizer.template.start()
        return new.loaded

    def choose_draft(
        self,
        choice: str | Path,
        *,
        precision: Precision | None = None,
        progress: Report = _unheard,
        stopped: Stopped = _never,
    ) -> None:
        """Draft with "none", "ngram" or the model at a path; the target stays loaded.

        Raises DraftRefused when it cannot draft for this target, and what `loading.load` raises.
        Drafting is off then.
        """
        self._drop_draft()
        if choice == "none":
            return
        refusal = guidance.drafting_refusal(self.target.loaded.info)
        if refusal is not None:
            raise DraftRefused(refusal.code, refusal.template, **refusal.values)
        if isinstance(choice, str) and choice in BUILT_IN:
            self.use(BUILT_IN[choice]())
            return
        path = Path(choice)
        check_pair(self.target.loaded.info, inspect(path))
        loaded = self.target.loaded
        self._draft = load(
            path,
            cache_folder=self._cache_folder,
            device=loaded.device,
            precision=precision or loaded.precision,
            sample=self._sample,
            progress=progress,
            stopped=stopped,
        )
        self.use(SmallModelDrafter(self._draft.model))

    def limit_context(self, tokens: int | None) -> None:
        """Let the target hold at most `tokens` from the next answer on; None: all it can."""
        full = self.target.loaded.context
        self.target.model.limit(full if tokens is None else max(1, min(tokens, full)))

    def use(self, drafter: Drafter) -> None:
        """Draft with `drafter` from now on; the caller keeps what it is made of."""
        self._drafter = CarefulDrafter(drafter)
        self._controller = Automatic(drafter.default_length)

    def close(self) -> None:
        """Give all memory back."""
        self._drop_draft()
        if self._target is not None:
            self._target.close()
        self._target = None
        self._tokens = []

    def forget(self) -> None:
        """Empty every cache and learned table, as a new session would have them."""
        self.target.model.cache.empty()
        self._drafter.reset()
        self._controller = Automatic(self._drafter.default_length)
        self._tokens = []

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling = AS_THE_FOLDER_SAYS,
        drafting: Drafting = AUTOMATIC,
        *,
        resume: bool = False,
        stopped: Stopped = _never,
    ) -> Iterator[Chunk]:
        """The answer to `messages`, a chunk per round; the last one says why it ended.

        `resume`: the last of the messages is an answer that ended early, and goes on. Where its
        ids are known, seed and settings the same, the whole is what it would have been without
        the stop; `max_tokens` counts anew.

        Running out of memory and `stopped` end an answer, they do not raise: the text so far is
        kept. Raises TemplateError, and ContextFull when there is no room for an answer: the chat
        has `needed` tokens then, of `context`.
        """
        if self._running is not None:
            # an answer given up half-way must not tidy up in the middle of this one
            self._running.close()
        tokenizer = self.target.tokenizer
        try:
            prompt = self._prompt(messages[:-1] if resume else messages, stopped)
        except Cancelled:
            return iter([Chunk(finish=Finish.CANCELLED)])
        begun = tokenizer.begun(messages[-1], prompt.thinking) if resume else Begun()
        answer = _Answer(self, prompt, begun, sampling, drafting, stopped)
        self.target.model.stopped = stopped
        if self._draft is not None:
            self._draft.model.stopped = stopped
        self._running = answer.chunks()
        return self._running

    def _prompt(self, messages: Sequence[Message], stopped: Stopped) -> Prompt:
        """The prompt, broken off when `stopped` says so."""
        tokenizer = self.target.tokenizer
        if tokenizer.template is None:
            return tokenizer.prompt(messages)
        tokenizer.template.stopped = stopped
        try:
            return tokenizer.prompt(messages)
        finally:
            tokenizer.template.stopped = _never

    def measure(self, messages: Sequence[Message]) -> int:
        """How many tokens the conversation has before it is answered. Raises TemplateError."""
        return len(self.target.tokenizer.prompt(messages).ids)

    def oldest(self, messages: Sequence[Message], room: int) -> int:
        """How many of the oldest messages must be left out so that `room` tokens are left of the
        context (`engine.turns.without` leaves them out): whole turns, never a system prompt nor
        the last turn.

        Raises TemplateError, and ContextFull when it is too long all the same: with the last turn
        alone it needs `needed` tokens, of `context`.
        """
        context = self.target.model.context
        counts = [0, *accumulate(turns(messages)[:-1])]

        def fits(count: int) -> bool:
            return self.measure(without(messages, count)) + room <= context

        found = bisect_left(counts, True, key=fits)
        if found == len(counts):
            raise context_full(self.measure(without(messages, counts[-1])) + room, context)
        return counts[found]

    def log_memory(self) -> None:
        """Leave a line in the log for each model: its memory as estimated, and as it is."""
        for one in (self._target, self._draft):
            if one is not None:
                loaded, cache = one.loaded, one.model.cache
                line = compared(
                    loaded.info,
                    loaded.precision,
                    loaded.device,
                    cache.length,
                    loaded.memory_bytes,
                    cache.nbytes,
                )
                log.info("%s", line)

    def rewind(self, tokens: Sequence[int], answers: Sequence[range] = ()) -> int:
        """Cut every cache to what it shares with `tokens`; how many the target still holds.

        `answers` are the positions of answers in them.
        """
        shared = _shared(self._tokens, tokens)
        keep = min(shared, len(tokens) - 1)
        self.target.model.rewind(keep, len(tokens) - 1, answers)
        self._drafter.settle(keep)
        self._tokens = list(tokens)
        return self.target.model.cache.length

    def _drop_draft(self) -> None:
        self.use(NoDrafter())
        if self._draft is not None:
            self._draft.close()
        self._draft = None


def check_pair(target: ModelInfo, draft: ModelInfo) -> None:
    """Raises DraftRefused unless `draft` can draft for `target`; reads tokenizers, no weights."""
    refusal = guidance.drafting_refusal(target) or guidance.draft_refusal(draft)
    if refusal is not None:
        raise DraftRefused(refusal.code, refusal.template, **refusal.values)
    differs = difference(read_vocabulary(target.path), read_vocabulary(draft.path))
    if differs is not None:
        raise DraftRefused(
            "other_vocabulary",
            "{draft} cannot draft for {target}: their vocabularies differ from token {id} on, "
            "“{target_text}” in the target and “{draft_text}” in the draft.",
            draft=draft.name,
            target=target.name,
            id=differs.token_id,
            target_text=differs.target,
            draft_text=differs.draft,
        )


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
class _Answer:
    """One answer while it is made, or the rest of one that goes on."""

    session: Session
    prompt: Prompt
    begun: Begun
    wanted: Sampling
    drafting: Drafting
    stopped: Stopped
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        target = self.session.target
        self.model, self.tokenizer = target.model, target.tokenizer
        self.sampling = resolve(self.wanted, target.loaded.defaults)
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

    def chunks(self) -> Generator[Chunk]:
        began = time.monotonic()
        seed = self.sampling.seed
        self.usage = replace(
            self.usage,
            prompt_tokens=self.here,
            seed=secrets.randbits(32) if seed is None else seed,
        )
        notices = self.prompt.notices
        try:
            yield Chunk(usage=self.usage, notices=notices)
            yield from self._prefill(began)
            yield from self._rounds(began)
        except Cancelled:
            self.finish = Finish.CANCELLED
        except Exception as error:
            if not out_of_memory(error):
                raise
            self._ran_out(error)
        finally:
            self.model.stopped = _never
            self.session._tokens = self.tokens
        self.usage = replace(self.usage, seconds=time.monotonic() - began)
        self.session.log_memory()
        log.info("%s", summary(self.usage))
        yield self._last()

    def _prefill(self, began: float) -> Iterator[Chunk]:
        cached = self.session.rewind(self.tokens, self.answers)
        self.usage = replace(self.usage, cached_tokens=cached)
        done, total = cached, self.here - 1
        while done < total:
            step = self.tokens[done : min(total, next_border(done))]
            self.model.feed(step, self.answers)
            done += len(step)
            yield Chunk(usage=self.usage, prefilled=Progress("prefill", done, total, "tokens"))
        self.session._drafter.prefill(self.tokens[:-1])
        self.usage = replace(self.usage, prefill_seconds=time.monotonic() - began)

    def _rounds(self, began: float) -> Iterator[Chunk]:
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
        drafter = self.session._drafter
        controller = self._controller()
        rounds = decode(self.model, drafter, controller, self.tokens, policy, limit=self.limit)
        told: set[str] = set()
        try:
            for new, stats in rounds:
                taken = self._take(new)
                ids = new[: len(taken.lengths)]
                stats = _cut(stats, len(new), len(ids))
                self._count(stats, began)
                pause = drafter.pause or controller.pause
                notices = () if pause is None or pause.code in told else (pause,)
                told.update(notice.code for notice in notices)
                yield self._chunk(taken, ids, stats, notices)
                if self.finish is not None:
                    break
                if self.stopped():
                    raise Cancelled()
        finally:
            rounds.close()
            self._forget_after_stop()
        if self.finish is None:
            self._reached_limit()

    def _controller(self) -> Controller:
        if self.drafting.length is not None:
            return FixedLength(self.drafting.length)
        self.session._controller.begin()
        return self.session._controller

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

    def _count(self, stats: RoundStats, began: float) -> None:
        now = time.monotonic() - began
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

    def _forget_after_stop(self) -> None:
        """Drop the tokens behind a stop from the history and from every cache."""
        del self.tokens[self.here + self.kept :]
        self.model.cache.crop_to(len(self.tokens) - 1)
        self.session._drafter.settle(len(self.tokens) - 1)

    def _ran_out(self, error: Exception) -> None:
        """Free the memory: first the frames of the error, which hold the tensors."""
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        for loaded in (self.session.target, self.session.draft):
            if loaded is not None:
                loaded.model.runner.free()
        self.session.forget()
        self.tokens = []
        release()
        self.finish = Finish.MEMORY
        self.problem = Reason(
            "no_memory",
            "Memory ran out. The text is kept. A shorter chat or no draft model needs less.",
        )

    def _last(self) -> Chunk:
        return Chunk(
            usage=self.usage,
            finish=self.finish,
            notices=(self.problem,) if self.problem else (),
            token_ids_exact=self.begun.known and not self.out.stopped,
        )


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


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    both = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(both) if x != y), min(len(a), len(b)))
