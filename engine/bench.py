"""Drafters and plain decoding compared on the same prompts, runs interleaved.

Also transformers' own generation on the same weights. Measures; decides nothing.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from engine import guidance
from engine.api import Drafting, Finish, Message, Precision, Sampling, Usage
from engine.devices import pick
from engine.drafters import BUILT_IN
from engine.drafters.base import Drafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Cancelled, DraftRefused, EngineError
from engine.library.inspect import inspect
from engine.loading import LoadedModel, Stopped, load
from engine.sampling import resolve
from engine.session import Session, check_pair

# Longer lines are no prompts; the file is the user's, but a mistake should end clearly.
LINE_BYTES = 4 << 20
WARM_UP_TOKENS = 8
# transformers' assisted generation as it runs best (set on the assistant's own configuration,
# where alone they have an effect), and its prompt lookup.
ASSISTANT = {
    "num_assistant_tokens": 4,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}
LOOKUP_TOKENS = 10

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to measure. `drafts`: "none", "ngram" or paths; plain decoding is always measured."""

    model: Path
    cache_folder: Path
    drafts: Sequence[str | Path]
    prompts: Sequence[str]
    precisions: Sequence[Precision | None]
    max_tokens: int
    repeat: int = 1
    device: str = "auto"
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0, seed=0))
    drafting: Drafting = field(default_factory=Drafting)
    against_transformers: bool = False


@dataclass(frozen=True)
class Row:
    """One way of decoding, over all prompts: medians; `spread` is the middle half of the prompts.

    `speedup` is over the plain row of the same engine and precision, `memory_bytes` weights and
    caches of target and draft; of transformers' rows the weights only. None: not defined, as
    transformers reports no acceptance.
    """

    engine: str
    drafter: str
    draft: str | None
    precision: str
    draft_length: int | None
    tokens_per_second: float
    spread: tuple[float, float]
    speedup: float | None
    acceptance_rate: float | None
    tokens_per_round: float | None
    time_to_first_token: float
    memory_bytes: int


@dataclass(frozen=True)
class Report:
    """All rows, and how many ids of our drafting rows differ from our plain row's."""

    model: str
    device: str
    prompts: int
    max_tokens: int
    repeat: int
    rows: list[Row]
    differing_ids: int

    def as_json(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return asdict(self)


def read_prompts(file: Path, limit: int | None = None) -> list[str]:
    """The first turns in a JSON-lines file: `{"prompt": ...}` or `{"turns": [...]}` per line.

    `limit` of them, taken evenly over the categories that the lines name. Raises EngineError
    naming the first line that is neither.
    """
    by_category: dict[str, list[str]] = {}
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    category, prompt = _prompt(line, number, file.name)
                    by_category.setdefault(category, []).append(prompt)
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            "prompts_unreadable", "{file} cannot be read: {error}", file=str(file), error=str(error)
        ) from error
    if not by_category:
        raise EngineError("no_prompts", "{file} holds no prompts.", file=file.name)
    spread = list(_evenly(by_category))
    return spread[:limit] if limit else spread


def _prompt(line: str, number: int, file: str) -> tuple[str, str]:
    try:
        entry = json.loads(line) if len(line) <= LINE_BYTES else None
    except (ValueError, RecursionError):
        entry = None
    if isinstance(entry, dict):
        turns = entry.get("turns")
        first = turns[0] if isinstance(turns, list) and turns else entry.get("prompt")
        if isinstance(first, str) and first.strip():
            return str(entry.get("category", "")), first
    raise EngineError(
        "bad_prompt",
        'Line {number} of {file} is not a JSON object with a "prompt" or "turns".',
        number=number,
        file=file,
    )


def _evenly(groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The first of every group, then the second of every group, and so on."""
    for i in range(max(map(len, groups.values()))):
        yield from (group[i] for group in groups.values() if i < len(group))


@dataclass(frozen=True)
class Run:
    """One answer, measured. `rate` in tokens per second, the prefill left out."""

    ids: tuple[int, ...]
    rate: float
    first: float
    memory: int
    usage: Usage | None = None


class Contender(Protocol):
    """One row to be: something that answers a prompt."""

    engine: str
    drafter: str
    draft: str | None
    precision: Precision
    draft_length: int | None

    def answer(self, prompt: str, max_tokens: int, stopped: Stopped) -> Run:
        """One answer from empty caches and tables. Raises Cancelled when `stopped` says so."""
        ...


def compare(plan: Plan, say: Say = lambda line: None, stopped: Stopped = lambda: False) -> Report:
    """Measure every row on every prompt, `plan.repeat` times, and sum up.

    The rows take turns on each prompt, in an order that moves on, so that a slow minute of the
    machine hits them all. Raises what loading raises.
    """
    found, weights = _contenders(plan, say, stopped)
    try:
        return _measured(plan, _warmed_up(plan, found, say, stopped), say, stopped)
    finally:
        for each in weights:
            each.close()


def _warmed_up(
    plan: Plan, contenders: Sequence[Contender], say: Say, stopped: Stopped
) -> list[Contender]:
    """The contenders that can answer: transformers refuses some pairs that we run."""
    able = []
    for i, contender in enumerate(contenders):
        say(f"warming up {i + 1} of {len(contenders)}")
        try:
            contender.answer(plan.prompts[0], min(WARM_UP_TOKENS, plan.max_tokens), stopped)
        except ValueError as error:
            if contender.engine != "transformers":
                raise
            say(f"transformers {contender.drafter} is left out: {str(error).splitlines()[0]}")
        else:
            able.append(contender)
    return able


def _measured(plan: Plan, contenders: Sequence[Contender], say: Say, stopped: Stopped) -> Report:
    target = inspect(plan.model)
    runs: dict[int, list[list[Run]]] = {i: [] for i in range(len(contenders))}
    for n, prompt in enumerate(plan.prompts):
        for row in runs.values():
            row.append([])
        for again in range(plan.repeat):
            for i in _rotated(len(contenders), n + again):
                run = contenders[i].answer(prompt, plan.max_tokens, stopped)
                runs[i][-1].append(run)
                name = f"{contenders[i].engine} {contenders[i].drafter}"
                say(f"prompt {n + 1} of {len(plan.prompts)}, {name}: {run.rate:.1f} tok/s")
    return Report(
        model=target.name,
        device=pick(plan.device),
        prompts=len(plan.prompts),
        max_tokens=plan.max_tokens,
        repeat=plan.repeat,
        rows=_rows(contenders, runs),
        differing_ids=_differing(contenders, runs),
    )


def _rotated(count: int, by: int) -> list[int]:
    return [(i + by) % count for i in range(count)]


def _rows(contenders: Sequence[Contender], runs: Mapping[int, list[list[Run]]]) -> list[Row]:
    rows = [_row(c, runs[i]) for i, c in enumerate(contenders)]
    plain = {(r.engine, r.precision): r for r in rows if r.drafter == "none"}
    return [replace(r, speedup=_times(r, plain[r.engine, r.precision])) for r in rows]


def _times(row: Row, plain: Row) -> float | None:
    if not plain.tokens_per_second:
        return None
    return row.tokens_per_second / plain.tokens_per_second


def _row(contender: Contender, prompts: Sequence[Sequence[Run]]) -> Row:
    rates = [statistics.median(run.rate for run in prompt) for prompt in prompts]
    runs = [run for prompt in prompts for run in prompt]
    usages = [run.usage for run in runs if run.usage is not None]
    drafted = sum(u.drafted for u in usages)
    rounds = sum(u.rounds for u in usages)
    quarters = statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else rates * 3
    return Row(
        engine=contender.engine,
        drafter=contender.drafter,
        draft=contender.draft,
        precision=contender.precision,
        draft_length=contender.draft_length,
        tokens_per_second=statistics.median(rates),
        spread=(quarters[0], quarters[2]),
        speedup=1.0,
        acceptance_rate=sum(u.accepted for u in usages) / drafted if drafted else None,
        tokens_per_round=sum(u.round_tokens for u in usages) / rounds if rounds else None,
        time_to_first_token=statistics.median(run.first for run in runs),
        memory_bytes=max(run.memory for run in runs),
    )


def _differing(contenders: Sequence[Contender], runs: Mapping[int, list[list[Run]]]) -> int:
    """Ids of our drafting rows that are not the plain row's of the same precision and prompt."""
    ours = [i for i, c in enumerate(contenders) if c.engine == "slipstream"]
    plain = {contenders[i].precision: runs[i] for i in ours if contenders[i].drafter == "none"}
    return sum(
        _unequal(run.ids, plain[contenders[i].precision][n][0].ids)
        for i in ours
        for n, prompt in enumerate(runs[i])
        for run in prompt
    )


def _unequal(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def _contenders(
    plan: Plan, say: Say, stopped: Stopped
) -> tuple[list[Contender], list[LoadedModel]]:
    refusal = guidance.drafting_refusal(inspect(plan.model))
    if refusal is not None and any(draft != "none" for draft in plan.drafts):
        raise DraftRefused(refusal.code, refusal.template, **refusal.values)
    paths = [d for d in plan.drafts if isinstance(d, Path)]
    for path in paths:
        check_pair(inspect(plan.model), inspect(path))
    found: list[Contender] = []
    loaded: dict[str, _Weights] = {}

    def weights(precision: Precision | None) -> _Weights:
        key = str(precision)
        if key not in loaded:
            say(f"loading {plan.model.name}" + (f" in {precision}" if precision else ""))
            loaded[key] = _Weights.load(plan, paths, precision, stopped)
            loaded.setdefault(loaded[key].target.loaded.precision, loaded[key])
        return loaded[key]

    for precision in plan.precisions:
        found += _ours(plan, weights(precision))
    if plan.against_transformers:
        only_fp32 = {weights(p).target.loaded.precision for p in plan.precisions} == {"fp32"}
        asked = plan.precisions != [None]
        found += _theirs(plan, weights("fp32" if asked and only_fp32 else "bf16"))
    models = {id(m): m for w in loaded.values() for m in (w.target, *w.drafts.values())}
    return found, list(models.values())


@dataclass
class _Weights:
    """Target and draft models in one precision; both engines run on them."""

    target: LoadedModel
    drafts: dict[Path, LoadedModel] = field(default_factory=dict)

    @classmethod
    def load(
        cls, plan: Plan, paths: Sequence[Path], precision: Precision | None, stopped: Stopped
    ) -> "_Weights":
        def one(path: Path) -> LoadedModel:
            return load(
                path,
                cache_folder=plan.cache_folder,
                device=plan.device,
                precision=precision,
                stopped=stopped,
            )

        return cls(one(plan.model), {path: one(path) for path in paths})


def _ours(plan: Plan, weights: _Weights) -> list[Contender]:
    session = Session(plan.cache_folder, weights.target)
    rows: list[Contender] = [_Slipstream(plan, session, weights.target, BUILT_IN["none"]())]
    for draft in plan.drafts:
        if isinstance(draft, Path):
            model = weights.drafts[draft]
            rows.append(
                _Slipstream(plan, session, weights.target, SmallModelDrafter(model.model), model)
            )
        elif draft != "none":
            rows.append(_Slipstream(plan, session, weights.target, BUILT_IN[draft]()))
    return rows


class _Slipstream:
    engine = "slipstream"

    def __init__(
        self,
        plan: Plan,
        session: Session,
        target: LoadedModel,
        drafter: Drafter,
        draft: LoadedModel | None = None,
    ) -> None:
        self._plan, self._session, self._drafter = plan, session, drafter
        self._models = [target, draft] if draft else [target]
        self.drafter = drafter.name
        self.draft = draft.loaded.info.name if draft else None
        self.precision = target.loaded.precision
        length = plan.drafting.length
        wanted = drafter.default_length if length is None else length
        self.draft_length = wanted if drafter.name != "none" else None

    def answer(self, prompt: str, max_tokens: int, stopped: Stopped) -> Run:
        self._session.use(self._drafter)
        self._session.forget()
        sampling = replace(self._plan.sampling, max_tokens=max_tokens)
        ids: list[int] = []
        usage = Usage()
        messages = [Message("user", prompt)]
        for chunk in self._session.reply(messages, sampling, self._plan.drafting, stopped=stopped):
            ids += chunk.token_ids
            usage = chunk.usage
            if chunk.finish is Finish.CANCELLED:
                raise Cancelled()
        memory = sum(m.loaded.memory_bytes + m.model.cache.nbytes for m in self._models)
        return Run(
            tuple(ids),
            usage.tokens_per_second or 0.0,
            usage.time_to_first_token or 0.0,
            memory,
            usage,
        )


def _theirs(plan: Plan, weights: _Weights) -> list[Contender]:
    lookup = {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
    rows: list[Contender] = [
        _Transformers(plan, weights.target, "none", None, {}),
        _Transformers(plan, weights.target, "lookup", None, lookup),
    ]
    rows += [_Transformers(plan, weights.target, "model", d, {}) for d in weights.drafts.values()]
    return rows


class _Transformers:
    """transformers' own generate() on the same network objects."""

    engine = "transformers"

    def __init__(
        self,
        plan: Plan,
        target: LoadedModel,
        drafter: str,
        draft: LoadedModel | None,
        options: Mapping[str, Any],
    ) -> None:
        self._plan, self._target, self._options = plan, target, dict(options)
        self._models = [target, draft] if draft else [target]
        self.drafter = drafter
        self.draft = draft.loaded.info.name if draft else None
        self.precision = target.loaded.precision
        self.draft_length = options.get("prompt_lookup_num_tokens")
        if draft is not None:
            assistant = draft.model.network
            for name, value in ASSISTANT.items():
                setattr(assistant.generation_config, name, value)
            self._options["assistant_model"] = assistant
            self.draft_length = ASSISTANT["num_assistant_tokens"]

    def answer(self, prompt: str, max_tokens: int, stopped: Stopped) -> Run:
        tokenizer = self._target.tokenizer
        ids = tokenizer.prompt([Message("user", prompt)]).ids
        clock = _Clock(stopped)
        inputs = torch.tensor([ids], device=self._target.model.device)
        torch.manual_seed(self._plan.sampling.seed or 0)
        with torch.inference_mode():
            out = self._target.model.network.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=max_tokens,
                eos_token_id=sorted(tokenizer.eos_ids) or None,
                pad_token_id=min(tokenizer.eos_ids, default=0),
                streamer=clock,
                **_as_generate(resolve(self._plan.sampling, self._target.loaded.defaults)),
                **self._options,
            )
        made = tuple(out[0, len(ids) :].tolist())
        return Run(
            made,
            clock.rate(len(made)),
            clock.first,
            sum(m.loaded.memory_bytes for m in self._models),
        )


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
