"""Runs summed up: medians, speed-ups, and whether the ids are the same. Knows no model."""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.bench.runs import Answer, Run, Way
from engine.errors import Reason

OVERALL = "overall"  # the kind of a line over all prompts, in CSV


@dataclass(frozen=True)
class Category:
    """One way of decoding, over the prompts of a kind: medians, and how many `prompts` they are;
    `span` is how many times plain its slowest and its fastest prompt were."""

    tokens_per_second: float
    speedup: float | None
    span: tuple[float, float] | None
    prompts: int


@dataclass(frozen=True)
class Row(Way):
    """One way of decoding, over all prompts: medians; `spread` is the middle half of the prompts,
    `tokens` how many were made in all, `by_category` the same for each kind of prompt. `span` is
    that of a Category; `same` counts the `prompts` whose ids are all plain decoding's.

    `speedup` is over the plain row of the same engine and precision, and so are `differing_ids`
    and `same`, for our rows. `memory_bytes` are weights and caches of target and draft; of
    transformers' rows the weights only. None: not defined, as transformers reports no acceptance.
    """

    tokens_per_second: float
    spread: tuple[float, float]
    speedup: float | None
    acceptance_rate: float | None
    tokens_per_round: float | None
    time_to_first_token: float
    memory_bytes: int
    differing_ids: int | None
    tokens: int
    by_category: Mapping[str, Category] = field(default_factory=dict)
    span: tuple[float, float] | None = None
    same: int | None = None
    prompts: int = 0


@dataclass(frozen=True)
class Report:
    """All rows, and how many ids of our rows differ from our plain row's."""

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

    def as_csv(self) -> str:
        """A line for each row and kind of prompt, and one over all of them."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow((*NAMED, "category", *MEASURED, *WHOLE))
        for row in self.rows:
            named = [_cell(getattr(row, name)) for name in NAMED]
            whole = [_cell(getattr(row, name)) for name in WHOLE]
            overall = Category(row.tokens_per_second, row.speedup, row.span, row.prompts)
            lines.writerow((*named, OVERALL, *_measured(overall), *whole))
            for kind, found in row.by_category.items():
                lines.writerow((*named, _cell(kind), *_measured(found), *("",) * len(WHOLE)))
        return text.getvalue()

    def faults(self) -> list[Reason]:
        """What speaks against "the same ids, and drafts that are accepted", a sentence a row."""
        return [reason for row in self.rows for reason in _faults(row)]


NAMED = ("engine", "drafter", "draft", "draft_length", "precision", "draft_precision")
MEASURED = ("prompts", "tokens_per_second", "speedup", "slowest", "fastest")
WHOLE = (
    *("acceptance_rate", "tokens_per_round", "time_to_first_token"),
    *("memory_bytes", "tokens", "same", "differing_ids"),
)


def _measured(found: Category) -> list[object]:
    slowest, fastest = found.span or (None, None)
    cells = (found.prompts, found.tokens_per_second, found.speedup, slowest, fastest)
    return [_cell(cell) for cell in cells]


def _cell(value: object) -> object:
    """A cell that no spreadsheet computes: names are strangers'."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if risky else "" if value is None else value


def _faults(row: Row) -> list[Reason]:
    found = []
    if row.differing_ids:
        found.append(
            Reason(
                "ids_differ",
                "{row}: {count} ids differ from plain decoding.",
                {"row": row.label, "count": row.differing_ids},
            )
        )
    # "auto" may find that nothing pays
    always = row.engine == "slipstream" and row.drafts and row.drafter != "auto"
    if always and not row.acceptance_rate:
        found.append(
            Reason("nothing_accepted", "{row}: no draft was accepted.", {"row": row.label})
        )
    return found


def rows_of(runs: Sequence[Run], kinds: Sequence[str] = ()) -> list[Row]:
    """A row for each way of decoding, in the order of their first runs. `kinds` of the prompts by
    their number; those without one are in no category.

    Every way has all its runs; the plain ones of the same engine and precision are among them.
    """
    by_way: dict[Way, list[Run]] = {}
    for run in runs:
        by_way.setdefault(run.way, []).append(run)
    plain = {(w.engine, w.precision): r for w, r in by_way.items() if not w.drafts}
    return [_row(way, own, plain[way.engine, way.precision], kinds) for way, own in by_way.items()]


def _row(way: Way, runs: Sequence[Run], plain: Sequence[Run], kinds: Sequence[str]) -> Row:
    answers = [answer for run in runs for answer in run.answers]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    drafted = sum(u.drafted for u in usages)
    rounds = sum(u.rounds for u in usages)
    rates = list(_rates(runs).values())
    quarters = statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else rates * 3
    ours = way.engine == "slipstream"
    overall = _category(runs, plain)
    return Row(
        **asdict(way),
        tokens_per_second=overall.tokens_per_second,
        spread=(quarters[0], quarters[2]),
        speedup=overall.speedup,
        acceptance_rate=sum(u.accepted for u in usages) / drafted if drafted else None,
        tokens_per_round=sum(u.round_tokens for u in usages) / rounds if rounds else None,
        time_to_first_token=statistics.median(a.time_to_first_token for a in answers),
        memory_bytes=max(run.memory_bytes for run in runs),
        differing_ids=sum(_differing(runs, plain).values()) if ours else None,
        tokens=sum(len(answer.ids) for answer in answers),
        by_category={
            kind: _category(_of(runs, kinds, kind), _of(plain, kinds, kind))
            for kind in dict.fromkeys(kinds[run.prompt] for run in runs if kinds)
            if kind
        },
        span=overall.span,
        prompts=overall.prompts,
        same=sum(not count for count in _differing(runs, plain).values()) if ours else None,
    )


def _of(runs: Sequence[Run], kinds: Sequence[str], kind: str) -> list[Run]:
    return [run for run in runs if kinds[run.prompt] == kind]


def _category(runs: Sequence[Run], plain: Sequence[Run]) -> Category:
    own, base = _rates(runs), _rates(plain)
    rate, plain_rate = statistics.median(own.values()), statistics.median(base.values())
    times = [own[turn] / base[turn] for turn in own if base[turn]]
    return Category(
        rate,
        rate / plain_rate if plain_rate else None,
        (min(times), max(times)) if times else None,
        len({prompt for prompt, _ in own}),
    )


def _rates(runs: Sequence[Run]) -> dict[tuple[int, int], float]:
    """Of each turn of each prompt the median rate of its repetitions."""
    turns: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        for turn, answer in enumerate(run.answers):
            turns.setdefault((run.prompt, turn), []).append(answer.tokens_per_second)
    return {turn: statistics.median(rates) for turn, rates in turns.items()}


def _differing(runs: Sequence[Run], plain: Sequence[Run]) -> dict[int, int]:
    """By prompt, the ids of `runs` that are not those of the first plain run, turn by turn."""
    first: Mapping[int, Run] = {run.prompt: run for run in plain if run.again == 0}
    found = dict.fromkeys((run.prompt for run in runs), 0)
    for run in runs:
        pairs = zip(run.answers, first[run.prompt].answers, strict=True)
        found[run.prompt] += sum(_unequal(own, other) for own, other in pairs)
    return found


def _unequal(a: Answer, b: Answer) -> int:
    pairs = zip(a.ids, b.ids, strict=False)
    return sum(x != y for x, y in pairs) + abs(len(a.ids) - len(b.ids))
