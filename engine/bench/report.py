"""Runs summed up: medians, speed-ups, and whether the ids are the same. Knows no model."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.bench.runs import Answer, Run, Way
from engine.errors import Reason


@dataclass(frozen=True)
class Row(Way):
    """One way of decoding, over all prompts: medians; `spread` is the middle half of the prompts,
    `tokens` how many were made in all.

    `speedup` is over the plain row of the same engine and precision, and so is `differing_ids`,
    for our rows. `memory_bytes` are weights and caches of target and draft; of transformers' rows
    the weights only. None: not defined, as transformers reports no acceptance.
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

    def faults(self) -> list[Reason]:
        """What speaks against "the same ids, and drafts that are accepted", a sentence a row."""
        return [reason for row in self.rows for reason in _faults(row)]


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


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """A row for each way of decoding, in the order of their first runs.

    Every way has all its runs; the plain ones of the same engine and precision are among them.
    """
    by_way: dict[Way, list[Run]] = {}
    for run in runs:
        by_way.setdefault(run.way, []).append(run)
    plain = {(w.engine, w.precision): r for w, r in by_way.items() if not w.drafts}
    return [_row(way, own, plain[way.engine, way.precision]) for way, own in by_way.items()]


def _row(way: Way, runs: Sequence[Run], plain: Sequence[Run]) -> Row:
    answers = [answer for run in runs for answer in run.answers]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    drafted = sum(u.drafted for u in usages)
    rounds = sum(u.rounds for u in usages)
    rates = _rates(runs)
    rate, base = statistics.median(rates), statistics.median(_rates(plain))
    quarters = statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else rates * 3
    return Row(
        **asdict(way),
        tokens_per_second=rate,
        spread=(quarters[0], quarters[2]),
        speedup=rate / base if base else None,
        acceptance_rate=sum(u.accepted for u in usages) / drafted if drafted else None,
        tokens_per_round=sum(u.round_tokens for u in usages) / rounds if rounds else None,
        time_to_first_token=statistics.median(a.time_to_first_token for a in answers),
        memory_bytes=max(run.memory_bytes for run in runs),
        differing_ids=_differing(runs, plain) if way.engine == "slipstream" else None,
        tokens=sum(len(answer.ids) for answer in answers),
    )


def _rates(runs: Sequence[Run]) -> list[float]:
    """Of each turn of each prompt the median rate of its repetitions."""
    turns: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        for turn, answer in enumerate(run.answers):
            turns.setdefault((run.prompt, turn), []).append(answer.tokens_per_second)
    return [statistics.median(rates) for rates in turns.values()]


def _differing(runs: Sequence[Run], plain: Sequence[Run]) -> int:
    """Ids of `runs` that are not those of the first plain run, turn by turn."""
    first: Mapping[int, Run] = {run.prompt: run for run in plain if run.again == 0}
    return sum(
        _unequal(own, others)
        for run in runs
        for own, others in zip(run.answers, first[run.prompt].answers, strict=True)
    )


def _unequal(a: Answer, b: Answer) -> int:
    pairs = zip(a.ids, b.ids, strict=False)
    return sum(x != y for x, y in pairs) + abs(len(a.ids) - len(b.ids))
