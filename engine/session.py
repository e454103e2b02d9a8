"""A conversation in, chunks of its answer out: prefix reuse, and what to do without memory.

Owns the target and the drafter, and what their caches hold. Knows no window and no files but the
models' own.
"""

import contextlib
import logging
import traceback
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
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
from engine.costs import VERIFY
from engine.devices import release
from engine.drafters import BUILT_IN, built_in
from engine.drafters.assistant import AssistantDrafter
from engine.drafters.auto import Auto
from engine.drafters.base import Drafter
from engine.drafters.block import BlockDrafter
from engine.drafters.head import HeadDrafter
from engine.drafters.parallel import ParallelDrafter, ParallelHeadDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.drafters.translated import TranslatedDrafter
from engine.errors import Cancelled, DraftRefused, LoadError, OutOfMemory, heed
from engine.fit import Pair
from engine.heads.assistant import AssistantHead
from engine.heads.dflash import DFlashHead
from engine.heads.eagle3 import PEagleHead
from engine.heads.opening import Told, open_head, open_mtp
from engine.learned import Learned
from engine.library import own_head
from engine.library.candidates import setup
from engine.library.index import identity
from engine.library.inspect import inspect, read_vocabulary
from engine.loading import LoadedModel, Report, Stopped, failures_named, load, out_of_memory
from engine.measured import AUTO, MTP, NONE, Setup
from engine.memory import compared
from engine.past import Past
from engine.tokenizer import Begun, Prompt
from engine.translation import Words
from engine.turns import turns, without
from engine.vocabulary import Vocabulary, difference

log = logging.getLogger(__name__)

AS_THE_FOLDER_SAYS = Sampling()
AUTOMATIC = Drafting()
# One that was stopped may be of a chat that is being deleted; it is learned once it has gone on.
LEARNED_FROM = (Finish.STOP, Finish.LENGTH, Finish.CONTEXT)


def _never() -> bool:
    return False


def _unheard(progress: Progress) -> None:
    pass


class Session:
    """One target, at most one draft, and the tokens that their caches hold.

    `sample` is the text on which it is measured what quantising costs a model; `past` is what
    answers are learned into, and drafters that know other chats copy from; in the file `learned`
    stays what drafting has learnt.
    """

    def __init__(
        self,
        cache_folder: Path,
        target: LoadedModel | None = None,
        *,
        sample: str = "",
        past: Past | None = None,
        learned: Path | None = None,
    ) -> None:
        self._cache_folder = cache_folder
        self._sample = sample
        self._past = past or Past()
        self._target = target
        self._draft: LoadedModel | None = None
        self._learned = Learned(learned)
        self._setups: dict[str, Setup] = {}
        self._drafter = Auto([])
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

    @property
    def memory_bytes(self) -> int:
        """Bytes of weights and caches of target and draft now."""
        both = [one for one in (self._target, self._draft) if one is not None]
        return sum(one.loaded.memory_bytes + one.model.cache.nbytes for one in both)

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
        model: Path | None = None,
        precision: Precision | None = None,
        progress: Report = _unheard,
        stopped: Stopped = _never,
    ) -> None:
        """Draft with what `BUILT_IN` names, the target's own head "mtp", the model or head at a
        path, or "auto": round by round the fastest of what needs no model, of the target's own head
        if it has one and, where one is given, of the `model` or head. The target stays loaded.

        Raises DraftRefused when it cannot draft for this target, and what `loading.load` raises.
        Drafting is off then.
        """
        self._drop_draft()
        if choice == "none":
            return
        refusal = guidance.drafting_refusal(self.target.loaded.info)
        if refusal is not None:
            raise DraftRefused(refusal.code, refusal.template, **refusal.values)
        drafters = self._built_in(choice) if choice in (*BUILT_IN, AUTO) else []
        wanted = precision or self.target.loaded.precision
        path = model if choice == AUTO else None if drafters or choice == MTP else Path(choice)
        if choice == AUTO:
            drafters += own_drafters(self.target, wanted, progress, stopped)
        if choice == MTP:
            drafters.append(own_drafter(self.target, wanted, progress, stopped))
        elif path is not None and inspect(path).kind is Kind.HEAD:
            drafters.append(head_drafter(self.target, path, wanted, progress, stopped))
        elif path is not None:
            drafters.append(self._load_draft(path, precision, progress, stopped))
        self.use(*drafters)
        if self._drafter.listeners:
            # what the target has read it reads anew, so that the head sees it
            self.forget()
        self._setups = self._setups_of(path, drafters, wanted)
        self._drafter.automatic.recall(
            {name: self._learned.of(setup) for name, setup in self._setups.items()}
        )

    def _built_in(self, choice: str | Path) -> list[Drafter]:
        return built_in(str(choice), self._past.of(self.target.loaded.vocabulary))

    def _setups_of(
        self, model: Path | None, drafters: Sequence[Drafter], precision: Precision
    ) -> dict[str, Setup]:
        """Under which setups is kept what is learnt of the target and of each drafter."""
        loaded = self.target.loaded
        alone = setup(loaded.info.path, NONE, loaded.precision, None, loaded.device)
        setups = {VERIFY: alone} | {d.name: replace(alone, draft=d.name) for d in drafters}
        if model is not None:
            used = precision if self._draft is None else self._draft.loaded.precision
            setups[drafters[-1].name] = replace(alone, draft=identity(model), draft_precision=used)
        return setups

    def _load_draft(
        self, path: Path, precision: Precision | None, progress: Report, stopped: Stopped
    ) -> Drafter:
        loaded = self.target.loaded
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
        return drafter_of(self.target, self._draft, *vocabularies)

    def limit_context(self, tokens: int | None) -> None:
        """Let the target hold at most `tokens` from the next answer on; None: all it can."""
        full = self.target.loaded.context
        self.target.model.limit(full if tokens is None else max(1, min(tokens, full)))

    def use(self, *drafters: Drafter) -> None:
        """Draft with the fastest of `drafters` from now on; the caller keeps what they are made
        of."""
        (only,) = drafters if len(drafters) == 1 else (None,)
        self._drafter = only if isinstance(only, Auto) else Auto(drafters)
        self._setups = {}
        if self._target is not None:
            self._target.model.tell(*self._drafter.listeners)

    def close(self) -> None:
        """Give all memory back."""
        self._drop_draft()
        if self._target is not None:
            self._target.close()
        self._target = None
        self._tokens = []

    def forget(self) -> None:
        """Empty every cache and table, as a new session would have them. What is learned of chats
        that are kept stays."""
        self.target.model.cache.empty()
        self._drafter.reset()
        self._tokens = []

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling = AS_THE_FOLDER_SAYS,
        drafting: Drafting = AUTOMATIC,
        *,
        resume: bool = False,
        chat: str | None = None,
        stopped: Stopped = _never,
    ) -> Iterator[Chunk]:
        """The answer to `messages`, a chunk per round; the last one says why it ended.

        `chat` is the id of a chat that is kept: the answer is learned with it once it has ended by
        itself or at a limit. Without one, nothing is.

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
        self._running = self._chunks(answer, chat)
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

    def _chunks(self, answer: Answer, chat: str | None) -> Generator[Chunk]:
        """An answer from its opening to its end, however it ends."""
        try:
            yield answer.opening()
            cached = self.rewind(answer.tokens, answer.answers)
            yield from answer.prefill(cached, self._drafter)
            yield from answer.rounds(self._drafter)
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
        if chat is not None and answer.finish in LEARNED_FROM:
            past = self._past.of(self.target.loaded.vocabulary)
            past.add(chat, answer.tokens, answer.start)
        self._keep()
        last = answer.last()
        self.log_memory()
        for name, tally in self._drafter.automatic.tallies.items():
            log.info("%s: %s", name, tally.text)
        log.info("%s", summary(last.usage))
        yield last

    def _keep(self) -> None:
        """Keep what answers have taught of what drafts, where it is known of which setup."""
        learnt = self._drafter.automatic.learnt()
        states = {self._setups[name]: s for name, s in learnt.items() if name in self._setups}
        if states:
            self._learned.keep(states)

    def _free(self, error: Exception) -> None:
        """Give back what an answer took: first the frames of the error, which hold the tensors."""
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        for loaded in (self._target, self._draft):
            if loaded is not None:
                loaded.model.runner.free()
        self.forget()
        release()

    def _drop_draft(self) -> None:
        self.use()
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


def head_drafter(
    target: LoadedModel,
    path: Path,
    precision: Precision,
    progress: Report = _unheard,
    stopped: Stopped = _never,
) -> Drafter:
    """What drafts for `target` with the head at `path`. Raises DraftRefused where it does not
    belong to it, what reading it raises, and Cancelled."""
    info = inspect(path)
    with failures_named(info.name), _told(info, progress, stopped) as told:
        head = open_head(path, target.model, target.loaded.info, precision, told)
    if isinstance(head, AssistantHead):
        return AssistantDrafter(head, target.model)
    device = target.model.device
    if isinstance(head, PEagleHead):
        return ParallelHeadDrafter(head, device)
    return BlockDrafter(head, device) if isinstance(head, DFlashHead) else HeadDrafter(head, device)


def own_drafter(
    target: LoadedModel,
    precision: Precision,
    progress: Report = _unheard,
    stopped: Stopped = _never,
) -> Drafter:
    """What drafts for `target` with the head in its own files. Raises DraftRefused without one, and
    Cancelled."""
    info = target.loaded.info
    with failures_named(info.name), _told(own_head.info(info), progress, stopped) as told:
        head = open_mtp(target.model, info, precision, told)
    return HeadDrafter(head, target.model.device)


def own_drafters(
    target: LoadedModel,
    precision: Precision,
    progress: Report = _unheard,
    stopped: Stopped = _never,
) -> list[Drafter]:
    """The same in a list, which is empty where the target has no head that can be used, or memory
    lacks for it."""
    if own_head.refusal(target.loaded.info) is None:
        with contextlib.suppress(DraftRefused, OutOfMemory):
            return [own_drafter(target, precision, progress, stopped)]
    return []


@contextlib.contextmanager
def _told(head: ModelInfo | None, progress: Report, stopped: Stopped) -> Iterator[Told]:
    """How far a head is read; one that is not wanted any more is not read on. Raises Cancelled."""
    total = (head and head.parameters) or 1
    done = 0

    def told(more: int) -> None:
        nonlocal done
        heed(stopped)
        done = min(done + more, total)
        progress(Progress("weights", done, total, "parameters"))

    told(0)
    yield told
    told(total)


def drafter_of(
    target: LoadedModel, draft: LoadedModel, ours: Vocabulary, theirs: Vocabulary
) -> Drafter:
    """What drafts for `target` with `draft`, translating where their vocabularies differ."""
    if difference(ours, theirs) is None:
        model, mask = draft.model, draft.loaded.info.mask
        if isinstance(mask, int):
            return ParallelDrafter(model, mask)
        return SmallModelDrafter(model)
    words = Words(target.tokenizer, ours), Words(draft.tokenizer, theirs)
    return TranslatedDrafter(draft.model, *words)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    both = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(both) if x != y), min(len(a), len(b)))
