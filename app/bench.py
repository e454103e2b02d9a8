"""The bench command: its options, its table and its exit code. Knows no Qt, and no measuring."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import resources
from app.judging import automatic_draft
from app.terminal import (
    DRAFTS,
    LONGEST_DRAFT,
    PRECISIONS,
    add_model,
    at_least_1,
    draft_choice,
    find_model,
    stop_flag,
    visible,
)

if TYPE_CHECKING:
    from engine.bench.plan import Plan
    from engine.bench.prompts import Prompts
    from engine.bench.report import Report, Row
    from engine.errors import EngineError
    from engine.measured import Setup

KINDS = ("code", "edit", "summarise", "question", "creative")  # of the built-in prompts


def add_arguments(bench: argparse.ArgumentParser) -> None:
    """The options of `slipstream bench`."""
    add_model(bench)
    bench.add_argument(
        "--draft",
        action="append",
        metavar="NAME",
        help=f"{DRAFTS}; may be repeated (default: none and ngram)",
    )
    bench.add_argument(
        "--draft-length",
        type=_lengths,
        action="extend",
        metavar="N[,N]",
        help=f"auto, or 1 to {LONGEST_DRAFT} tokens; a row for each",
    )
    bench.add_argument(
        "--precision",
        type=_precisions,
        action="extend",
        metavar="P[,P]",
        help=f"of {', '.join(PRECISIONS)}; rows for each (default: auto)",
    )
    bench.add_argument(
        "--draft-precision",
        choices=PRECISIONS[1:],
        metavar="P",
        help="of the draft models (default: the target's in that row)",
    )
    bench.add_argument(
        "--prompts",
        type=_prompts,
        default=KINDS,
        metavar="FILE",
        help=f"a prompt a line, or built-in ones: {', '.join(KINDS)}, by comma (default: all)",
    )
    bench.add_argument("--limit", type=at_least_1, metavar="N", help="use N prompts")
    bench.add_argument(
        "--turns", type=at_least_1, default=1, metavar="T", help="ask the first T of each prompt"
    )
    bench.add_argument("--max-tokens", type=at_least_1, default=96, metavar="N")
    bench.add_argument("--repeat", type=at_least_1, default=1, metavar="R")
    bench.add_argument("--against", choices=["transformers"], help="measure that too")
    bench.add_argument(
        "--verify-equal",
        action="store_true",
        help="exit with 1 if an id differs from plain decoding, or a draft was never accepted",
    )
    bench.add_argument(
        "--json", type=Path, metavar="OUT", help="keep the result in OUT, and go on from there"
    )
    bench.add_argument(
        "--csv", type=Path, metavar="OUT", help="write the rows to OUT, also by kind of prompt"
    )


def _prompts(text: str) -> tuple[str, ...] | Path:
    """Kinds of built-in prompts, else a file."""
    named = tuple(dict.fromkeys(text.split(",")))
    return named if set(named) <= set(KINDS) else Path(text)


def _lengths(text: str) -> list[int | None]:
    parts = text.split(",")
    if not set(parts) <= {"auto", *map(str, range(1, LONGEST_DRAFT + 1))}:
        raise argparse.ArgumentTypeError(f"must be auto or 1 to {LONGEST_DRAFT}, by comma")
    return [None if part == "auto" else int(part) for part in parts]


def _precisions(text: str) -> list[str | None]:
    names = text.split(",")
    if not set(names) <= set(PRECISIONS):
        raise argparse.ArgumentTypeError(f"must be of {', '.join(PRECISIONS)}, by comma")
    return [None if name == "auto" else name for name in names]


def carry_out(arguments: argparse.Namespace) -> int:
    """Measure, print the table; 1 where --verify-equal finds a fault."""
    from engine.bench.comparison import compare

    if arguments.csv is not None and not arguments.csv.parent.is_dir():
        raise _unwritable(arguments.csv, "its folder is not there")
    plan = _plan(arguments)
    known = _complete(plan, arguments.json)
    with stop_flag() as stopped:
        report = compare(plan, _say, stopped, arguments.json)
    if not known and not plan.against_transformers:
        remember(plan, report)
    print(visible(table(report, arguments.verify_equal)))
    if arguments.csv is not None:
        _write(arguments.csv, report.as_csv())
    if not arguments.verify_equal:
        return 0
    faults = report.faults()
    for fault in faults:
        _say(fault.text)
    return 1 if faults else 0


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise _unwritable(file, str(error)) from error


def _unwritable(file: Path, error: str) -> "EngineError":
    from engine.errors import EngineError

    return EngineError(
        "cannot_write", "{path} cannot be written: {error}", path=str(file), error=error
    )


def _complete(plan: "Plan", file: Path | None) -> bool:
    """Whether `file` holds all runs of the plan already, so that nothing will be measured."""
    from engine.bench.plan import identity
    from engine.bench.record import Record

    return file is not None and file.exists() and Record(file, identity(plan)).complete


def remember(plan: "Plan", report: "Report") -> None:
    """Keep what was measured of each draft, and of the target without one, for the lists of
    drafts.

    Of several lengths of a draft it is the automatic one, else the fastest.
    """
    from app import paths
    from engine.bench.runs import AUTO
    from engine.measured import Measured, Setup

    rows: dict[Setup, Row] = {}
    for row in report.rows:
        setup = _setup(plan, report.device, row)
        best = rows.get(setup)
        if best is None or _rank(row, AUTO) > _rank(best, AUTO):
            rows[setup] = row
    table = Measured(paths.measured_file())
    for setup, row in rows.items():
        rate, accepted = row.tokens_per_second, row.acceptance_rate
        # of a row that never drafted nothing is learnt
        if row.tokens and (accepted is not None or not row.drafts):
            table.add(setup, rate, row.tokens, accepted, "bench")


def _rank(row: "Row", automatic: str) -> tuple[bool, float]:
    return row.draft_length == automatic, row.tokens_per_second


def _setup(plan: "Plan", device: str, row: "Row") -> "Setup":
    from engine.library.candidates import setup
    from engine.library.inspect import inspect

    draft: str | Path = row.drafter
    if row.draft is not None:
        # two drafts of one name stand there by their paths
        models = (path for path in plan.drafts if isinstance(path, Path))
        draft = next(p for p in models if row.draft in (str(p), inspect(p).name))
    return setup(plan.model, draft, row.precision, row.draft_precision, device)


def _say(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)


def _plan(arguments: argparse.Namespace) -> "Plan":
    from app import paths
    from engine.api import Sampling
    from engine.bench.plan import Plan
    from engine.errors import EngineError

    if arguments.verify_equal and arguments.verification == "rejection" and arguments.temperature:
        raise EngineError(
            "rejection_differs",
            "Rejection keeps the odds, not the text: --verify-equal needs --verification coupled.",
        )
    prompts = _asked(arguments.prompts, arguments.limit, arguments.turns)
    if prompts.skipped:
        _say(f"rows left out, since they hold a placeholder: {prompts.skipped}")
    model = find_model(arguments.model)
    drafts = [draft_choice(name) for name in arguments.draft or ("none", "ngram")]
    return Plan(
        model=model,
        cache_folder=paths.cache_folder(),
        drafts=drafts,
        auto_draft=_auto_draft(arguments, model, drafts),
        prompts=prompts.asked,
        kinds=prompts.kinds,
        max_tokens=arguments.max_tokens,
        precisions=arguments.precision or (None,),
        draft_precision=arguments.draft_precision,
        draft_lengths=arguments.draft_length or (None,),
        repeat=arguments.repeat,
        device=arguments.device,
        # greedy and seed 0 unless asked otherwise: runs must be comparable
        sampling=Sampling(temperature=arguments.temperature or 0.0, seed=arguments.seed or 0),
        verification=arguments.verification,
        against_transformers=arguments.against == "transformers",
    )


def _asked(named: tuple[str, ...] | Path, limit: int | None, turns: int) -> "Prompts":
    from engine.bench.prompts import built_in, read_prompts

    if isinstance(named, Path):
        return read_prompts(named, limit, turns)
    return built_in(json.loads(resources.read_text("prompts.json")), named, limit, turns)


def _auto_draft(
    arguments: argparse.Namespace, model: Path, drafts: Sequence[str | Path]
) -> Path | None:
    """The model that "auto" holds: the first that has a row of its own, else the best of the
    library."""
    if "auto" not in drafts:
        return None
    named = next((draft for draft in drafts if isinstance(draft, Path)), None)
    precision = (arguments.precision or [None])[0]
    return named or automatic_draft(model, arguments.device, precision)


HEADS = (
    *("engine", "drafter", "draft length", "precision", "tok/s", "middle half", "times plain"),
    *("accepted", "a round", "first token", "memory"),
)


def table(report: "Report", differing: bool) -> str:
    """The rows in aligned columns and a line below; `differing`: with a column of those ids."""
    lines = [HEADS, *map(_cells, report.rows)]
    if differing:
        column = ["differing", *(_or_dash(row.differing_ids) for row in report.rows)]
        lines = [(*line, cell) for line, cell in zip(lines, column, strict=True)]
    text = f"{_aligned(lines)}\ndiffering ids: {report.differing_ids}"
    kinds = list(report.rows[0].by_category)
    return f"{text}\n\n{_by_kind(report.rows, kinds)}" if len(kinds) > 1 else text


def _by_kind(rows: Sequence["Row"], kinds: Sequence[str]) -> str:
    """Times plain, a column for each kind of prompt."""
    lines = [("times plain", *kinds)]
    for row in rows:
        found = (row.by_category[kind].speedup for kind in kinds)
        lines.append((row.label, *(_or_dash(times, "{:.2f}") for times in found)))
    return _aligned(lines)


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cells(row: "Row") -> tuple[str, ...]:
    precision: str = row.precision
    if row.draft_precision not in (None, precision):
        precision = f"{precision}, draft {row.draft_precision}"
    return (
        row.engine,
        row.draft or row.drafter,
        _or_dash(row.draft_length),
        precision,
        f"{row.tokens_per_second:.2f}",
        f"{row.spread[0]:.2f} to {row.spread[1]:.2f}",
        _or_dash(row.speedup, "{:.2f}"),
        _or_dash(row.acceptance_rate, "{:.0%}").replace("%", " %"),
        _or_dash(row.tokens_per_round, "{:.2f}"),
        f"{row.time_to_first_token:.2f} s",
        f"{row.memory_bytes / 2**30:.2f} GiB",
    )


def _or_dash(value: object, form: str = "{}") -> str:
    return "-" if value is None else form.format(value)
