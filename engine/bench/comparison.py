"""The rows of a bench measured in turns, and what has been measured kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.bench import contenders
from engine.bench.asking import WARM_UP_TOKENS
from engine.bench.contenders import Contender
from engine.bench.plan import Plan, identity
from engine.bench.record import Record
from engine.bench.report import Report, rows_of
from engine.bench.runs import Run
from engine.bench.stock import Say
from engine.devices import pick
from engine.errors import ContextFull
from engine.library.inspect import inspect
from engine.loading import Stopped


def compare(
    plan: Plan,
    say: Say = lambda line: None,
    stopped: Stopped = lambda: False,
    file: Path | None = None,
) -> Report:
    """Measure every row on every prompt, `plan.repeat` times, and sum up.

    The rows take turns on each prompt, in an order that moves on, so that a slow minute of the
    machine hits them all. Finished runs are kept in `file`: what it holds of this plan is not
    measured again, what it holds of another one is refused. Prompts longer than the context are
    left out. Raises what loading and Record raise, and ContextFull where all are too long.
    """
    contenders.check(plan)
    record = Record(file, identity(plan))
    if record.complete:
        say(f"{file} is complete, nothing is measured again")
    else:
        with contenders.opened(plan, say, stopped) as found:
            _measure(plan, found, record, say, stopped)
    report = _report(plan, record.runs)
    if not record.complete:
        record.finish(report.as_json())
    return report


def _report(plan: Plan, runs: Sequence[Run]) -> Report:
    answered = Counter(run.prompt for run in runs)
    whole = max(answered.values())
    runs = [run for run in runs if answered[run.prompt] == whole]
    rows = rows_of(runs, plan.kinds)
    return Report(
        model=inspect(plan.model).name,
        device=pick(plan.device),
        prompts=len({run.prompt for run in runs}),
        max_tokens=plan.max_tokens,
        repeat=plan.repeat,
        rows=rows,
        differing_ids=sum(row.differing_ids or 0 for row in rows),
    )


def _measure(
    plan: Plan, found: Sequence[Contender], record: Record, say: Say, stopped: Stopped
) -> None:
    """Every run that `record` lacks."""
    done = {(run.way, run.prompt, run.again) for run in record.runs}
    if not {way for way, _, _ in done} <= {contender.way for contender in found}:
        raise record.other("rows are")
    able = _warmed_up(plan, found, say, stopped)
    if done:
        total = len(able) * len(plan.prompts) * plan.repeat
        say(f"{len(done)} of {total} runs are taken over")
    too_long: set[int] = set()
    for prompt, again, contender in _turns(plan, able):
        way = contender.way
        if (way, prompt, again) in done or prompt in too_long:
            continue
        try:
            answers = contender.answer(plan.prompts[prompt], plan.max_tokens, stopped)
        except ContextFull as error:
            too_long.add(prompt)
            if len(too_long) == len(plan.prompts):
                raise
            say(f"prompt {prompt + 1} of {len(plan.prompts)} is left out: {error}")
            continue
        record.add(Run(way, prompt, again, contender.memory_bytes, answers))
        rate = answers[-1].tokens_per_second
        say(f"prompt {prompt + 1} of {len(plan.prompts)}, {way.label}: {rate:.1f} tok/s")


def _turns(plan: Plan, able: Sequence[Contender]) -> Iterator[tuple[int, int, Contender]]:
    """Whose turn it is, in order: prompt, repetition, contender."""
    for prompt in range(len(plan.prompts)):
        for again in range(plan.repeat):
            for i in range(len(able)):
                yield prompt, again, able[(i + prompt + again) % len(able)]


def _warmed_up(
    plan: Plan, found: Sequence[Contender], say: Say, stopped: Stopped
) -> list[Contender]:
    """The contenders that can answer: transformers refuses some pairs that we run."""
    able = []
    shortest = min((asked[:1] for asked in plan.prompts), key=lambda asked: len(asked[0]))
    for i, contender in enumerate(found):
        say(f"warming up {i + 1} of {len(found)}")
        tokens = min(WARM_UP_TOKENS, plan.max_tokens)
        try:
            contender.answer(shortest, tokens, stopped)
        except ValueError as error:
            if contender.way.engine != "transformers":
                raise
            reason = str(error).splitlines()[0]
            say(f"transformers {contender.way.drafter} is left out: {reason}")
        else:
            able.append(contender)
    return able
