"""The terminal commands that look at models and load none: models, drafts, fit.

Knows options and tables. Imports no Qt and no torch.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.judging import candidates_for, index_of_models, precision_of, terms
from app.terminal import (
    PRECISIONS,
    at_least_1,
    find_model,
    json_text,
    library_folders,
    one_line,
    place,
)

if TYPE_CHECKING:
    from engine.api import ModelInfo
    from engine.fit import Fit, Pair, Room
    from engine.library.candidates import Candidate
    from engine.library.index import Index
    from engine.library.scan import Entry
    from engine.measured import Measurement

DEVICES = ("cuda", "mps", "xpu", "cpu")


def add_commands(commands: Any) -> None:
    """The three commands and their options."""
    models = commands.add_parser("models", help="the models on this computer")
    drafts = commands.add_parser("drafts", help="what can draft for a target, and why not")
    drafts.add_argument("target", metavar="TARGET", help="a library name or a path")
    fit = commands.add_parser("fit", help="does a model fit in memory, with a draft beside it")
    fit.add_argument("target", metavar="TARGET", help="a library name or a path")
    fit.add_argument("--draft", metavar="NAME", help="a draft model beside it")
    fit.add_argument("--context", type=at_least_1, metavar="N", help="tokens of the context")
    fit.add_argument("--precision", choices=PRECISIONS, default="auto")
    fit.add_argument("--draft-precision", choices=PRECISIONS[1:])
    fit.add_argument("--device", choices=DEVICES, help="default: this computer's best")
    for command in (models, drafts, fit):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.add_argument(
            "--models",
            action="append",
            default=[],
            type=place,
            metavar="DIR",
            help="look here too, or at this model; may be repeated",
        )


def models(arguments: argparse.Namespace) -> int:
    """Every model of the library, broken ones with what is wrong."""
    entries = _entries(arguments, index_of_models())
    if arguments.json:
        print(json_text([_model(entry) for entry in entries]))
        return 0
    rows: list[tuple[str, ...]] = [("model", "kind", "parameters", "file", "type", "context", "")]
    rows += [_model_row(entry) for entry in entries]
    _table(rows)
    if not entries:
        print("No model was found. “slipstream get starter” fetches a small one.")
    return 0


def _entries(arguments: argparse.Namespace, index: "Index", *more: Path) -> "list[Entry]":
    from engine.library.scan import scan

    found = scan(library_folders([*arguments.models, *more]), index.info)
    index.save()
    return found


def _model(entry: "Entry") -> dict[str, Any]:
    info = entry.info
    return {
        "name": entry.name,
        "path": str(entry.path),
        "kind": info.kind.value if info else None,
        "architecture": info.architecture if info else None,
        "parameters": info.parameters if info else None,
        "file_bytes": info.file_bytes if info else None,
        "quantisation": info.quantisation if info else None,
        "context": info.context if info else None,
        "licence": info.licence if info else None,
        "problem": entry.problem.text if entry.problem else None,
    }


def _model_row(entry: "Entry") -> tuple[str, ...]:
    info, problem = entry.info, entry.problem.text if entry.problem else ""
    if info is None:
        return entry.name, "-", "-", "-", "-", "-", problem
    return (
        entry.name,
        info.kind.value,
        _billions(info.parameters),
        f"{info.file_bytes / 1e9:.2f} GB",
        info.quantisation or info.format,
        f"{info.context:,}" if info.context else "-",
        problem,
    )


def _billions(count: int | None) -> str:
    if count is None:
        return "-"
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.0f} M"


def fit(arguments: argparse.Namespace) -> int:
    """Whether a target fits, with its draft, and what would help where it does not."""
    from engine.devices import rooms
    from engine.placement import judge_over
    from engine.ways import ways_out

    pair, cards = _asked(arguments)
    room, found = cards[0], judge_over(pair, cards)
    caveats = _caveats(arguments, pair, cards)
    if arguments.json:
        print(json_text(_fit(found, caveats)))
        return 0
    _table(_fit_rows(pair, found))
    print(f"\n{found.reason.text}.")
    for caveat in caveats:
        print(one_line(caveat))
    if found.word in ("no", "tight"):
        ram = rooms("cpu")[0] if room.device == "cuda" else None
        for way in ways_out(pair, cards, ram):
            print(f"  {way.text.text}: {way.fit.reason.text[0].lower()}{way.fit.reason.text[1:]}")
    return 0


def _asked(arguments: argparse.Namespace) -> "tuple[Pair, list[Room]]":
    from engine.devices import likely, rooms
    from engine.fit import USUAL_CONTEXT, Pair
    from engine.library import own_head
    from engine.library.inspect import inspect
    from engine.measured import MTP, WITHOUT_MODEL

    path = find_model(arguments.target, arguments.models)
    target = inspect(path)
    device = arguments.device or likely()
    precision = precision_of(arguments.precision, device)
    context = arguments.context or min(target.context or USUAL_CONTEXT, USUAL_CONTEXT)
    draft = None
    if arguments.draft is not None and arguments.draft not in WITHOUT_MODEL:
        folders = [*arguments.models, *_beside(arguments.target, path)]
        draft = inspect(find_model(arguments.draft, folders))
    elif arguments.draft == MTP:
        draft = own_head.info(target)
    pair = Pair(target, precision, context, draft, arguments.draft_precision or precision)
    return pair, rooms(device)


def _beside(named: str, target: Path) -> list[Path]:
    """The folder that a path brings; a name was found where we look anyway."""
    from engine.library.scan import given

    return [Path(os.path.abspath(target)).parent] if given(named) else []


def _caveats(arguments: argparse.Namespace, pair: "Pair", cards: "list[Room]") -> list[str]:
    """Sentences on what the bytes do not tell: why the pair could not run, or not so long."""
    from engine import guidance
    from engine.library import own_head
    from engine.measured import MTP, NONE, WITHOUT_MODEL

    refusal = _refusal(pair.target, pair, cards)
    if refusal is None and arguments.draft in {*WITHOUT_MODEL} - {NONE}:
        reason = guidance.drafting_refusal(pair.target)
        if reason is None and arguments.draft == MTP:
            reason = own_head.refusal(pair.target)
        refusal = None if reason is None else reason.text
    elif refusal is None and pair.draft is not None:
        refusal = _refusal(pair.draft, pair, cards)
    if refusal is not None:
        return [f"{refusal.rstrip('.')}."]
    return [
        f"{info.name} is made for at most {info.context:,} tokens."
        for info in (pair.target, pair.draft)
        if info is not None and info.context is not None and pair.context > info.context
    ]


def _refusal(info: "ModelInfo", pair: "Pair", cards: "list[Room]") -> str | None:
    """Why the pair's target or draft cannot be that."""
    from engine import guidance
    from engine.api import Kind
    from engine.library import formats
    from engine.library.candidates import candidate, head_verdict
    from engine.library.inspect import resolve
    from engine.library.scan import Entry

    index, known = index_of_models(), terms(pair.precision, cards)
    if info.kind is Kind.HEAD and info is not pair.target:
        verdict = head_verdict(info, pair.target, known.catalogue)
        return f"{info.name}: {verdict.reason.text}" if verdict.level == "refused" else None
    lacking = guidance.NOT_WHOLE.get(info.kind) or formats.refusal(info.quantisation)
    if lacking is not None:
        return f"{info.name}: {lacking.text}"
    if info is pair.target:
        return None
    ours, theirs = (os.path.realpath(resolve(path)) for path in (pair.target.path, info.path))
    if ours == theirs:
        return guidance.OWN_DRAFT.text
    found = candidate(pair.target, Entry(info.name, info.path, info, None), index, known)
    index.save()
    return found.verdict.reason.text if found.verdict.level == "refused" else None


def _fit(found: "Fit", caveats: Sequence[str]) -> dict[str, Any]:
    return {
        "parts": vars(found.parts),
        "others": found.others,
        "need": found.need,
        "free": found.room.free,
        "verdict": found.word,
        "reason": ". ".join([found.reason.text, *caveats]),
        "kv_type": found.kv_type,
    }


def _fit_rows(pair: "Pair", found: "Fit") -> list[tuple[str, ...]]:
    parts, context = found.parts, min(pair.context, pair.target.context or pair.context)
    rows: list[tuple[str, ...]] = [
        ("", "GiB"),
        (f"{pair.target.name}, {pair.precision}", _gib(parts.target_weights)),
        (f"its cache, {context:,} tokens, {found.kv_type}", _gib(parts.target_kv)),
    ]
    if pair.draft is not None:
        rows += [
            (f"{pair.draft.name}, {pair.draft_precision}", _gib(parts.draft_weights)),
            ("its cache", _gib(parts.draft_kv)),
        ]
    work = None if parts.work is None else parts.work + parts.overhead
    rows += [
        ("work space", _gib(work)),
        ("together", _gib(found.need)),
        (f"free, {found.room.name}", _gib(found.room.free)),
    ]
    return rows


def _gib(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.2f}"


def drafts(arguments: argparse.Namespace) -> int:
    """What can draft for a target: local models first, then the catalogue's."""
    found = _candidates(arguments)
    if arguments.json:
        print(json_text([_draft(c) for c in found]))
        return 0
    able = [c for c in found if c.verdict.level != "refused"]
    _table([("draft", "", "tok/s", "fit", "advice"), *map(_draft_row, able)])
    others = [c for c in found if c.verdict.level == "refused"]
    if others:
        print("\nCannot draft for this target")
        _table([(c.name, c.verdict.reason.text) for c in others])
    return 0


def _candidates(arguments: argparse.Namespace) -> "list[Candidate]":
    from engine.devices import likely

    target = find_model(arguments.target, arguments.models)
    folders = [*arguments.models, *_beside(arguments.target, target)]
    device = likely()
    return candidates_for(target, folders, device, precision_of("auto", device))


def _draft(found: "Candidate") -> dict[str, Any]:
    level, translated = found.verdict.level, found.verdict.translated
    return {
        "name": found.name,
        "path": str(found.path) if found.path else None,
        "kind": found.kind,
        # that word means the same vocabulary
        "compatible": level != "refused" and not translated,
        "translated": translated,
        # nothing is advised where a draft was tried and made no difference
        "advice": None if level in ("refused", "even") else level.value,
        "reason": found.verdict.text,
        "ratio": found.ratio,
        "fit": found.fit.word if found.fit else None,
        "measured": _measured(found.measured) if found.measured else None,
        "predicted_times_plain": found.predicted,
    }


def _measured(found: "Measurement") -> dict[str, Any]:
    return {
        "tokens_per_second": found.tokens_per_second,
        "plain": found.plain,
        "times_plain": found.times_plain,
        "acceptance_rate": found.acceptance_rate,
        "tokens": found.tokens,
        "date": found.date,
        "by": found.by,
    }


def _draft_row(found: "Candidate") -> tuple[str, ...]:
    rate = found.measured.tokens_per_second if found.measured else None
    return (
        found.name,
        "" if found.path else "to get",
        "-" if rate is None else f"{rate:.1f}",
        found.fit.reason.text if found.fit else "-",
        _advice(found),
    )


def _advice(found: "Candidate") -> str:
    from engine import prediction

    if found.predicted is None:
        return found.verdict.text
    return f"{found.verdict.text}; {prediction.said(found.predicted).text}"


def _table(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their longest entry."""
    if not rows:
        return
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
