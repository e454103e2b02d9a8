"""Everything that might draft for a target: judged, fitted, and never left out without a reason.

Knows headers, vocabularies, the catalogue and what was measured; loads no weights.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import guidance, measured, prediction
from engine.api import Kind, ModelInfo, Precision
from engine.errors import EngineError, Unsupported
from engine.fit import USUAL_CONTEXT, Fit, Pair, Room
from engine.guidance import Level, Verdict
from engine.learned import Learned
from engine.library import catalogue, formats, heads, own_head
from engine.library.catalogue import Catalogue, Offer
from engine.library.index import Index, identity
from engine.library.inspect import is_same, resolve
from engine.library.scan import Entry
from engine.measured import MTP, NONE, Measured, Measurement, Setup
from engine.placement import judge_over

LONGEST_NAME = 100
_ORDER = {Level.GOOD: 0, Level.EVEN: 1, Level.CAUTION: 2, Level.WARN: 3, Level.REFUSED: 4}


@dataclass(frozen=True)
class Terms:
    """What candidates are judged by. `table` is that of `guidance.judge_pair`; target and draft
    would both run in `precision`, in `rooms` of one kind."""

    table: Mapping[str, Any]
    catalogue: Catalogue
    measured: Measured
    learned: Learned
    rooms: Sequence[Room]
    precision: Precision


@dataclass(frozen=True)
class Candidate:
    """A model, head or adapter as a draft, or the target's own head: that lies where the target
    does. `path` None: it would have to be fetched.

    `ratio` is how many times smaller than the target it is, None where a size is not known or it
    is refused; `fit` of the two together, None where it is refused; `measured` None where it was
    never tried here. `predicted` is how many times plain it will make, None where it was tried or
    too little is known.
    """

    name: str
    path: Path | None
    kind: str
    verdict: Verdict
    ratio: float | None = None
    fit: Fit | None = None
    measured: Measurement | None = None
    predicted: float | None = None


def candidates(
    target: Path, entries: Iterable[Entry], index: Index, terms: Terms
) -> list[Candidate]:
    """The target's own head, all `entries` but the target itself, and then what the catalogue has;
    both with those first that can draft, untranslated ones before others, by measured speed, advice
    and size. Raises what `inspect` and `read_vocabulary` raise of the target, and Unsupported for
    one that is no whole model or cannot run here.
    """
    entries = list(entries)
    info = index.info(target)
    _require_target(info)
    index.fingerprint(target)
    others = [e for e in entries if not is_same(e.path, target)]
    here = [candidate(info, entry, index, terms) for entry in others]
    own = _own_head(info, terms)
    offers = terms.catalogue.offers(info, entries, own_head=bool(own))
    there = [_offered(offer, info, terms) for offer in offers]
    return [*sorted([*own, *here], key=_rank), *sorted(there, key=_rank)]


def _own_head(target: ModelInfo, terms: Terms) -> list[Candidate]:
    """The head in the target's own files, where it has one."""
    head = own_head.find(target)
    if head is None:
        return []
    advice = head.verdict
    pair = setup(target.path, MTP, terms.precision, None, terms.rooms[0].device)
    found = terms.measured.of(pair)
    said = advice if found is None else measured.verdict(advice, found)
    tried = found is not None and found.times_plain is not None
    times = None if tried or said.level is Level.REFUSED else predicted(pair, terms.learned)
    fit = None if head.info is None else _fit(target, head.info, terms)
    named = own_head.NAME, target.path, MTP
    return [Candidate(*named, said, fit=fit, measured=found, predicted=times)]


def _require_target(info: ModelInfo) -> None:
    reason = guidance.NOT_WHOLE.get(info.kind) or formats.refusal(info.quantisation)
    if reason is not None:
        raise Unsupported(
            "no_target", "{name} cannot be a target: {reason}", name=info.name, reason=reason.text
        )


def automatic(found: Iterable[Candidate]) -> Path | None:
    """The draft model that "auto" holds, of candidates in their order: the first that is here,
    fits, and that nothing speaks against; None where there is none."""
    able = (Level.GOOD, Level.EVEN, Level.CAUTION)
    advised = (c for c in found if c.path is not None and c.verdict.level in able)
    return next((c.path for c in advised if c.fit and c.fit.word in ("fits", "tight")), None)


def candidate(target: ModelInfo, entry: Entry, index: Index, terms: Terms) -> Candidate:
    """One entry, judged as a draft for `target`; a broken one is refused with what is wrong."""
    draft = entry.info
    if draft is None or entry.problem is not None:
        assert entry.problem is not None
        refused = Verdict(Level.REFUSED, entry.problem)
        kind = Kind.UNKNOWN if draft is None else draft.kind
        return Candidate(entry.name, entry.path, kind, refused)
    advice = _advice(target, draft, index, terms)
    if advice.level is Level.REFUSED:
        return Candidate(entry.name, entry.path, draft.kind, advice)
    precision, device = terms.precision, terms.rooms[0].device
    pair = setup(target.path, draft.path, precision, precision, device)
    found = terms.measured.of(pair)
    said = advice if found is None else measured.verdict(advice, found)
    ratio = guidance.ratio(target, draft)
    fit = _fit(target, draft, terms)
    tried = found is not None and found.times_plain is not None
    times = None if tried else predicted(pair, terms.learned, target, draft)
    return Candidate(entry.name, entry.path, draft.kind, said, ratio, fit, found, times)


def predicted(
    pair: Setup,
    learned: Learned,
    target: ModelInfo | None = None,
    draft: ModelInfo | None = None,
) -> float | None:
    """How many times plain a setup of these two will make, or of a drafter that is no model; None
    where too little is known."""
    if pair.draft_precision is None:
        return prediction.looked_up(learned.of(pair))
    alone = Setup(pair.draft, NONE, pair.draft_precision, None, pair.device)
    return prediction.times_plain(
        learned.of(pair.plain),
        learned.of(pair),
        learned.of(alone),
        guidance.ratio(target, draft) if target and draft else None,
        at_once=draft is not None and _at_once(draft),
    )


def _at_once(draft: ModelInfo) -> bool:
    """Whether it makes all guesses of a round in one pass."""
    head = draft.kind is Kind.HEAD
    return heads.kind_of(draft.path) in heads.AT_ONCE if head else draft.mask is not None


def setup(
    target: Path,
    draft: str | Path,
    precision: Precision,
    draft_precision: Precision | None,
    device: str,
) -> Setup:
    """The setup of models at these paths, `draft` may be of `WITHOUT_MODEL`; asks for the sizes and
    times of their files."""
    if isinstance(draft, Path):
        return Setup(identity(target), identity(draft), precision, draft_precision, device)
    return Setup(identity(target), draft, precision, None, device)


def head_verdict(head: ModelInfo, target: ModelInfo, catalogue: Catalogue) -> Verdict:
    """Whether a head on disk can draft for `target`: what speaks against it, where something does;
    that its kind cannot be used yet; else for which model it was made: by the head's name, or by
    its own configuration."""
    path = resolve(head.path)
    name = catalogue.made_for(head) or _short(heads.made_for(path))
    of = heads.refusal(path, name)
    fault = guidance.drafting_refusal(target) or heads.fault(path, target)
    if fault is not None:
        return Verdict(Level.REFUSED, fault, of)
    if not heads.is_known(path):
        return Verdict(Level.REFUSED, of)
    return guidance.judge_head(target, name)


def _short(stated: str | None) -> str | None:
    """The name in what a file states, which may be a repository or somebody's path."""
    if stated is None or not stated.isprintable():
        return None
    return stated.rstrip("/").rpartition("/")[2][:LONGEST_NAME] or None


def _advice(target: ModelInfo, draft: ModelInfo, index: Index, terms: Terms) -> Verdict:
    if draft.kind is Kind.HEAD:
        return head_verdict(draft, target, terms.catalogue)
    try:
        # what is refused for its kind may have no vocabulary to read
        refused = is_same(draft.path, target.path) or guidance.draft_refusal(draft) is not None
        found = None if refused else index.difference(target.path, draft.path)
    except EngineError as error:
        return Verdict(Level.REFUSED, error.reason)
    return guidance.judge_pair(target, draft, found, terms.table)


def _offered(offer: Offer, target: ModelInfo, terms: Terms) -> Candidate:
    said, info = catalogue.verdict(offer, target, terms.table)
    if info is None:
        return Candidate(offer.repository, None, offer.kind, said)
    ratio, fit = guidance.ratio(target, info), _fit(target, info, terms)
    return Candidate(offer.repository, None, offer.kind, said, ratio, fit)


def _fit(target: ModelInfo, draft: ModelInfo, terms: Terms) -> Fit:
    context = min(target.context or USUAL_CONTEXT, USUAL_CONTEXT)
    pair = Pair(target, terms.precision, context, draft, terms.precision)
    return judge_over(pair, terms.rooms)


def _rank(found: Candidate) -> tuple[bool, bool, float, int, float, str]:
    rate = found.measured.tokens_per_second if found.measured else 0.0
    level, translated = found.verdict.level, found.verdict.translated
    order, smaller = _ORDER[level], -(found.ratio or 0)
    return level is Level.REFUSED, translated, -rate, order, smaller, found.name.lower()
