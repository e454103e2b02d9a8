"""Who answers in a bench: our session in each way of decoding, and transformers' own generation.

Both run on the same files, each on weights of its own. Knows how to answer one conversation; not
what is compared with what.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from engine import guidance
from engine.api import Drafting, Kind, Message, Sampling
from engine.bench.asking import Manner, ask
from engine.bench.plan import Plan
from engine.bench.prompts import Conversation
from engine.bench.runs import AUTO, Answer, Way
from engine.bench.stock import FLOATS, Say, Stock
from engine.drafters import BUILT_IN, built_in
from engine.drafters.auto import Auto
from engine.drafters.base import Drafter
from engine.errors import Cancelled, DraftRefused
from engine.library import heads
from engine.library.inspect import inspect
from engine.loading import LoadedModel, Stopped
from engine.measured import MTP
from engine.sampling import resolve
from engine.session import Session, check_pair, drafter_of, head_drafter, own_drafter, own_drafters
from engine.text import Piece, Reading
from engine.vocabulary import difference

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ASSISTANT_TOKENS, LOOKUP_TOKENS = 4, 10
# transformers' assisted generation as it runs best (set on the assistant's own configuration,
# where alone they have an effect), and its prompt lookup.
ASSISTANT = {
    "num_assistant_tokens": ASSISTANT_TOKENS,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}


class Contender(Protocol):
    """Something that answers conversations in one way."""

    way: Way

    @property
    def memory_bytes(self) -> int:
        """Bytes of weights and caches now."""
        ...

    def answer(self, asked: Conversation, max_tokens: int, stopped: Stopped) -> tuple[Answer, ...]:
        """An answer per turn, from empty caches and tables. Raises Cancelled, OutOfMemory."""
        ...


def check(plan: Plan) -> None:
    """Raises DraftRefused when a draft of the plan cannot serve; reads no weights."""
    target = inspect(plan.model)
    refusal = guidance.drafting_refusal(target)
    if refusal is not None and any(draft != "none" for draft in plan.drafts):
        raise DraftRefused(refusal.code, refusal.template, **refusal.values)
    for path in _paths(plan):
        if _is_head(path):
            heads.read(path, target)
        else:
            check_pair(target, inspect(path))


@contextlib.contextmanager
def opened(plan: Plan, say: Say, stopped: Stopped) -> Iterator[list[Contender]]:
    """Every way of the plan, ready to answer; all memory is given back at the end.

    Raises what loading raises.
    """
    stock = Stock(plan, say, stopped)
    try:
        loaded = [stock.model("target", plan.model, precision) for precision in plan.precisions]
        # what the engine takes by itself may be asked for by name too
        targets = list({id(target): target for target in loaded}.values())
        found = [row for target in targets for row in _ours(plan, stock, target)]
        if plan.against_transformers:
            found += _theirs(plan, stock, targets[0], say)
        yield found
    finally:
        stock.close()


def _paths(plan: Plan) -> list[Path]:
    paths = [*plan.drafts, plan.auto_draft]
    return list(dict.fromkeys(path for path in paths if isinstance(path, Path)))


def _is_head(path: Path) -> bool:
    return inspect(path).kind is Kind.HEAD


def _names(plan: Plan) -> dict[Path, str]:
    """What each draft model is called; two files of one model by their paths."""
    names = {path: inspect(path).name for path in _paths(plan)}
    taken = list(names.values())
    return {p: name if taken.count(name) == 1 else str(p) for p, name in names.items()}


def _ours(plan: Plan, stock: Stock, target: LoadedModel) -> list[Contender]:
    session = Session(plan.cache_folder, target)
    names = _names(plan)
    precision = target.loaded.precision
    of_drafts = plan.draft_precision or precision
    known_heads: dict[Path, Drafter] = {}
    plain = Way("slipstream", "none", None, precision, None, None)
    rows: list[Contender] = [_Slipstream(plan, session, Auto([]), plain, [target])]
    for draft in dict.fromkeys(d for d in plan.drafts if d != "none"):
        for length in dict.fromkeys(plan.draft_lengths):
            wanted = AUTO if length is None else length
            path = plan.auto_draft if draft == AUTO else draft
            drafters = built_in(str(draft)) if draft in (*BUILT_IN, AUTO) else []
            way, models = plain, [target]
            if draft == AUTO:
                drafters += own_drafters(target, of_drafts)
            if draft == MTP:
                drafters.append(own_drafter(target, of_drafts))
                way = replace(plain, draft_precision=of_drafts)
            elif isinstance(path, Path) and _is_head(path):
                head = known_heads.get(path) or head_drafter(target, path, of_drafts)
                known_heads[path] = head
                drafters.append(head)
                way = replace(plain, draft_precision=of_drafts)
            elif isinstance(path, Path):
                model = stock.model("draft", path, of_drafts)
                known = check_pair(target.loaded.info, model.loaded.info)
                drafters.append(drafter_of(target, model, *known))
                way = replace(plain, draft_precision=model.loaded.precision)
                models = [target, model]
            if isinstance(draft, Path):
                way = replace(way, draft=names[draft])
            name = AUTO if draft == AUTO else drafters[0].name
            way = replace(way, drafter=name, draft_length=wanted)
            rows.append(_Slipstream(plan, session, Auto(drafters), way, models))
    return rows


class _Slipstream:
    """Our session with one drafter at one draft length."""

    def __init__(
        self,
        plan: Plan,
        session: Session,
        drafter: Auto,
        way: Way,
        models: Sequence[LoadedModel],
    ) -> None:
        self.way = way
        self._session, self._drafter, self._models = session, drafter, models
        length = way.draft_length
        drafting = Drafting(length if isinstance(length, int) else None, plan.verification)
        vocabulary = session.target.loaded.vocabulary
        self._manner = Manner(way, plan.sampling, drafting, vocabulary)

    @property
    def memory_bytes(self) -> int:
        return sum(m.loaded.memory_bytes + m.model.cache.nbytes for m in self._models)

    def answer(self, asked: Conversation, max_tokens: int, stopped: Stopped) -> tuple[Answer, ...]:
        self._session.use(self._drafter)
        sampling = replace(self._manner.sampling, max_tokens=max_tokens)
        return ask(self._session, asked, replace(self._manner, sampling=sampling), stopped)


def _theirs(plan: Plan, stock: Stock, ours: LoadedModel, say: Say) -> list[Contender]:
    """transformers in each float precision asked for, else in bf16; prompts are made by `ours`."""
    without = [p for p in plan.precisions if p is not None and p not in FLOATS]
    precisions = [p for p in dict.fromkeys(plan.precisions) if p in FLOATS] or ["bf16"]
    if without:
        say(f"transformers has no row in {', '.join(without)}")
    names = _names(plan)
    rows: list[Contender] = []
    for precision in precisions:
        network = stock.network("target", plan.model, precision)
        plain = Way("transformers", "none", None, precision, None, None)
        lookup = replace(plain, drafter="lookup", draft_length=LOOKUP_TOKENS)
        options = {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
        rows.append(_Transformers(plan, plain, ours, network))
        rows.append(_Transformers(plan, lookup, ours, network, options))
        for path, name in names.items():
            if _is_head(path):
                say(f"transformers has no row with {name}, which is a head")
                continue
            if difference(*check_pair(ours.loaded.info, inspect(path))) is not None:
                say(f"transformers model is left out: {name} has another vocabulary")
                continue
            draft = stock.network("draft", path, precision)
            for option, value in ASSISTANT.items():
                setattr(draft.generation_config, option, value)
            way = replace(
                plain,
                drafter="model",
                draft=name,
                draft_precision=precision,
                draft_length=ASSISTANT_TOKENS,
            )
            rows.append(_Transformers(plan, way, ours, network, {"assistant_model": draft}))
    return rows


class _Transformers:
    """transformers' own generate() on a network of its own; every turn is read anew."""

    def __init__(
        self,
        plan: Plan,
        way: Way,
        ours: LoadedModel,
        network: "PreTrainedModel",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.way = way
        self._seed = plan.sampling.seed or 0
        self._settings = _as_generate(resolve(plan.sampling, ours.loaded.defaults))
        self._tokenizer, self._vocabulary = ours.tokenizer, ours.loaded.vocabulary
        self._network, self._options = network, dict(options or {})

    @property
    def memory_bytes(self) -> int:
        networks = [self._network, self._options.get("assistant_model", self._network)]
        weights = {p.data_ptr(): p for n in networks for p in n.parameters()}.values()
        return sum(p.numel() * p.element_size() for p in weights)

    def answer(self, asked: Conversation, max_tokens: int, stopped: Stopped) -> tuple[Answer, ...]:
        answers = []
        chat: list[Message] = []
        for turn in asked:
            chat.append(Message("user", turn))
            prompt = self._tokenizer.prompt(chat)
            answers.append(self._generate(prompt.ids, max_tokens, stopped))
            made = answers[-1].ids
            reading = Reading(self._tokenizer.decode, (), prompt.thinking)
            said = sum(map(reading.push, made), Piece()) + reading.flush()
            chat.append(Message("assistant", said.text, made, self._vocabulary, said.reasoning))
        return tuple(answers)

    def _generate(self, ids: list[int], max_tokens: int, stopped: Stopped) -> Answer:
        ends = self._tokenizer.eos_ids
        inputs = torch.tensor([ids], device=self._network.device)
        clock = _Clock(stopped)
        torch.manual_seed(self._seed)
        with torch.inference_mode():
            out = self._network.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=max_tokens,
                eos_token_id=sorted(ends) or None,
                pad_token_id=min(ends, default=0),
                streamer=clock,
                **self._settings,
                **self._options,
            )
        made = tuple(out[0, len(ids) :].tolist())
        return Answer(made, clock.rate(len(made)), clock.first)


def _as_generate(settings: Sampling) -> dict[str, Any]:
    """Our settings as arguments of generate(), so that the folder's own do not apply there."""
    shared = {"repetition_penalty": settings.repetition_penalty}
    if not settings.temperature:
        return shared | {"do_sample": False}
    names = ("temperature", "top_k", "top_p", "min_p")
    return shared | {"do_sample": True} | {name: getattr(settings, name) for name in names}


class _Clock:
    """A streamer that notes when tokens come; the first call brings the prompt."""

    def __init__(self, stopped: Stopped) -> None:
        self._stopped = stopped
        self._began = time.monotonic()
        self._calls = 0
        self._early = 0
        self.first = 0.0
        self._ended = self._began

    def put(self, tokens: Any) -> None:
        if self._stopped():
            raise Cancelled()
        self._calls += 1
        self._ended = time.monotonic()
        if self._calls == 2:
            self.first = self._ended - self._began
            self._early = int(tokens.numel())

    def end(self) -> None:
        self._ended = time.monotonic()

    def rate(self, tokens: int) -> float:
        """Tokens after the first pass, per second after it."""
        span = self._ended - self._began - self.first
        late = tokens - self._early
        return late / span if late > 0 and span > 0 else 0.0
