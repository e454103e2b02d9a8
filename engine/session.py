"""A conversation in, chunks of its answer out: prefix reuse, and what to do without memory.

Owns the target and the drafter, and what their caches hold. Knows no window and no files but the
models' own.
"""

import logging
import traceback
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from engine import guidance
from engine.answer import Answer, context_full, summary
from engine.api import (
    Chunk,
    Drafting,
    Finish,
    Kind,
    Loaded,
    Message,
    ModelInfo,
    Precision,
    Progress,
    Sampling,
)
from engine.controller import Automatic
from engine.devices import release
from engine.drafters import BUILT_IN
from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.block import BlockDrafter
from engine.drafters.careful import CarefulDrafter
from engine.drafters.head import HeadDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.drafters.translated import TranslatedDrafter
from engine.errors import Cancelled, DraftRefused, LoadError
from engine.fit import Pair
from engine.heads.dflash import DFlashHead
from engine.heads.opening import open_head, open_mtp
from engine.library.inspect import inspect, read_vocabulary
from engine.loading import LoadedModel, Report, Stopped, failures_named, load, out_of_memory
from engine.memory import compared
from engine.tokenizer import Begun, Prompt
from engine.translation import Words
from engine.turns import turns, without
from engine.vocabulary import Vocabulary, difference

log = logging.getLogger(__name__)

AS_THE_FOLDER_SAYS = Sampling()
AUTOMATIC = Drafting()
# How the head is asked for that a model brings itself.
MTP = "mtp"


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
        """Draft with "none", "ngram", the target's own head "mtp", or the model or head at a path;
        the target stays loaded.

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
        loaded = self.target.loaded
        if choice == MTP:
            self._take_head(own_drafter(self.target, precision or loaded.precision))
            return
        path = Path(choice)
        if inspect(path).kind is Kind.HEAD:
            self._take_head(head_drafter(self.target, path, precision or loaded.precision))
            return
        vocabularies = check_pair(loaded.info, inspect(path))
        self._draft = load(
            path,
            cache_folder=self._cache_folder,
            device=loaded.device,
            precision=precision or loaded.precision,
            sample=self._sample,
            progress=progress,
            stopped=stopped,
        )
        self.use(drafter_of(self.target, self._draft, *vocabularies))

    def limit_context(self, tokens: int | None) -> None:
        """Let the target hold at most `tokens` from the next answer on; None: all it can."""
        full = self.target.loaded.context
        self.target.model.limit(full if tokens is None else max(1, min(tokens, full)))

    def use(self, drafter: Drafter) -> None:
        """Draft with `drafter` from now on; the caller keeps what it is made of."""
        careful = CarefulDrafter(drafter)
        if self._target is not None:
            self._target.model.tell(*careful.listeners)
        self._drafter = careful
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
        answer = Answer(self.target, prompt, begun, sampling, drafting, stopped)
        self.target.model.stopped = stopped
        if self._draft is not None:
            self._draft.model.stopped = stopped
        self._running = self._chunks(answer)
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

    def _chunks(self, answer: Answer) -> Generator[Chunk]:
        """An answer from its opening to its end, however it ends."""
        try:
            yield answer.opening()
            cached = self.rewind(answer.tokens, answer.answers)
            yield from answer.prefill(cached, self._drafter)
            yield from answer.rounds(self._drafter, self._controller)
        except Cancelled:
            answer.finish = Finish.CANCELLED
        except Exception as error:
            if not out_of_memory(error):
                raise
            answer.ran_out()
            self._free(error)
        finally:
            answer.model.stopped = _never
            self._tokens = answer.tokens
        last = answer.last()
        self.log_memory()
        log.info("%s", summary(last.usage))
        yield last

    def _free(self, error: Exception) -> None:
        """Give back what an answer took: first the frames of the error, which hold the tensors."""
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        for loaded in (self._target, self._draft):
            if loaded is not None:
                loaded.model.runner.free()
        self.forget()
        release()

    def _take_head(self, drafter: Drafter) -> None:
        """Draft with a head. What the target has read it reads anew, so that the head sees it."""
        self.use(drafter)
        self.forget()

    def _drop_draft(self) -> None:
        self.use(NoDrafter())
        if self._draft is not None:
            self._draft.close()
        self._draft = None


def check_pair(target: ModelInfo, draft: ModelInfo) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies of both; reads no weights. Raises DraftRefused where `draft` cannot draft
    for `target`, and what `read_vocabulary` raises."""
    refusal = guidance.drafting_refusal(target) or guidance.draft_refusal(draft)
    if refusal is not None:
        raise DraftRefused(refusal.code, refusal.template, **refusal.values)
    return read_vocabulary(target.path), read_vocabulary(draft.path)


def head_drafter(target: LoadedModel, path: Path, precision: Precision) -> Drafter:
    """What drafts for `target` with the head at `path`. Raises DraftRefused where it does not
    belong to it, and what reading it raises."""
    with failures_named(inspect(path).name):
        head = open_head(path, target.model, target.loaded.info, precision)
    device = target.model.device
    return BlockDrafter(head, device) if isinstance(head, DFlashHead) else HeadDrafter(head, device)


def own_drafter(target: LoadedModel, precision: Precision) -> Drafter:
    """What drafts for `target` with the head in its own files. Raises DraftRefused without one."""
    info = target.loaded.info
    with failures_named(info.name):
        head = open_mtp(target.model, info, precision)
    return HeadDrafter(head, target.model.device)


def drafter_of(
    target: LoadedModel, draft: LoadedModel, ours: Vocabulary, theirs: Vocabulary
) -> Drafter:
    """What drafts for `target` with `draft`, translating where their vocabularies differ."""
    if difference(ours, theirs) is None:
        return SmallModelDrafter(draft.model)
    words = Words(target.tokenizer, ours), Words(draft.tokenizer, theirs)
    return TranslatedDrafter(draft.model, *words)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    both = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(both) if x != y), min(len(a), len(b)))
