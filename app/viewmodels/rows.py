"""Rows of the two lists of models, with the verdict or reason each one carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication

from app import resources
from app.viewmodels import words
from app.viewmodels.shelf import Gettable
from engine import measured, prediction
from engine.api import Kind, ModelInfo
from engine.errors import Reason
from engine.fit import Fit, Word
from engine.guidance import TRANSLATED, Level, Verdict
from engine.library.candidates import Candidate, automatic
from engine.library.scan import Entry
from engine.measured import AUTO, CHAIN, LOOKUPS, MTP, NGRAM, NONE, SUFFIX, Measurement

UNFINISHED = "download_unfinished"
LONGEST_WORD = 40  # characters before a colon that still are a word; behind it a sentence goes on
Tone = Literal["plain", "good", "caution", "bad", "refused"]
Action = Literal["", "get", "resume", "repair"]
_TONES: dict[Level, Tone] = {
    Level.GOOD: "good",
    Level.EVEN: "plain",
    Level.CAUTION: "caution",
    Level.WARN: "caution",
    Level.REFUSED: "refused",
}
_FIT_TONES: dict[Word, Tone] = {
    "fits": "good",
    "tight": "caution",
    "no": "bad",
    "unknown": "caution",
}
_RANKS = tuple(Level)


@dataclass(frozen=True)
class Row:
    """One line to choose from. `word` opens the second line and carries the tone, `fit` is the
    third, `aside` stands at the right of the name; without a key the row is a heading. With an
    `action` it is a button at the right, and the row itself cannot be chosen."""

    key: str
    name: str
    word: str = ""
    detail: str = ""
    tone: Tone = "plain"
    tooltip: str = ""
    checked: bool = False
    aside: str = ""
    fit: str = ""
    fit_tone: Tone = "plain"
    action: Action = ""

    @property
    def usable(self) -> bool:
        """Whether it can be chosen."""
        return bool(self.key) and self.tone != "refused" and not self.action


@dataclass(frozen=True)
class Drafts:
    """What is known of the drafts for the running target, by the path of a model or of a
    `measured` one of `WITHOUT_MODEL`; `fits` has offers too, by their repository.

    `chosen` and `loading` are keys of rows; `refusal` says why nothing can draft. `own_head` is
    the verdict on the target's own, None where it has none, and `own_info` what it takes.
    """

    entries: Sequence[Entry]
    chosen: str
    loading: str = ""
    refusal: Reason | None = None
    verdicts: Mapping[Path, Verdict] = field(default_factory=dict)
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    predicted: Mapping[str, float] = field(default_factory=dict)
    fits: Mapping[str, Fit] = field(default_factory=dict)
    offers: Sequence[Gettable] = ()
    own_head: Verdict | None = None
    own_info: ModelInfo | None = None


def _tr(text: str) -> str:
    return QCoreApplication.translate("rows", text)


def facts(info: ModelInfo) -> str:
    """ "7.6 billion parameters, Q4_K_M, 32k context, Apache-2.0", as far as the files say."""
    parts = []
    if info.parameters is not None:
        parts.append(words.parameters(info.parameters))
    if info.quantisation:
        parts.append(info.quantisation)
    if info.context is not None:
        parts.append(words.context(info.context))
    if info.licence:
        parts.append(info.licence)
    return ", ".join(parts)


def target_rows(entries: Sequence[Entry], chosen: str) -> tuple[Row, ...]:
    """What can be loaded, and below it what cannot with the reason."""
    fit, unfit = [], []
    for entry in entries:
        key = str(entry.path)
        if entry.problem is not None:
            unfit.append(_broken(entry, entry.problem))
        elif entry.info is None or entry.info.kind is not Kind.MODEL:
            unfit.append(Row(key, entry.name, _tr("Not a model by itself"), "", "refused"))
        else:
            fit.append(Row(key, entry.name, "", facts(entry.info), checked=key == chosen))
    return _divided(fit, unfit, _tr("Cannot be loaded"))


def draft_rows(known: Drafts) -> tuple[Row, ...]:
    """Auto, none, repeats, the target's own head, the usable models by measured speed, those that
    are translated, what could be fetched, and below them what cannot draft with the reason."""
    models = [_draft_row(e, known) for e in sorted(known.entries, key=lambda e: _rank(e, known))]
    own = [] if known.own_head is None else [_own_head_row(known.own_head, known)]
    listed = [g for g in known.offers if not own or g.offer.kind != MTP]
    offers = [_offer_row(g, known) for g in listed if known.refusal is None]
    repeats = [_repeats_row(key, known) for key in LOOKUPS]
    rows = [_auto_row(known), _plain_row(known), *repeats, *own, *models]
    other = {str(path) for path, verdict in known.verdicts.items() if verdict.translated}
    usable = [row for row in rows if row.tone != "refused"]
    fit = [row for row in usable if row.key not in other]
    translated = [row for row in usable if row.key in other]
    if translated:
        fit += [Row("", resources.translate(TRANSLATED)), *translated]
    get = [row for row in offers if row.tone != "refused"]
    unfit = [row for row in (*rows, *offers) if row.tone == "refused"]
    if get:
        fit += [Row("", _tr("Drafts to get")), *get]
    return _divided(fit, unfit, _tr("Cannot draft for this target"))


def best_draft(known: Drafts) -> str:
    """The key of the model that "auto" holds: the first that fits and that nothing speaks against,
    untranslated ones before others; empty without one."""
    able = []
    for entry in sorted(known.entries, key=lambda e: _rank(e, known)):
        verdict, fit = known.verdicts.get(entry.path), known.fits.get(str(entry.path))
        if entry.problem is None and verdict is not None:
            tried = _tried(entry, verdict, known)
            able.append(Candidate(entry.name, entry.path, Kind.MODEL, tried, fit=fit))
    found = automatic(sorted(able, key=lambda each: each.verdict.translated))
    return "" if found is None else str(found)


def _tried(entry: Entry, verdict: Verdict, known: Drafts) -> Verdict:
    """The verdict, or what was measured in its place."""
    found = known.measured.get(str(entry.path))
    return verdict if found is None else measured.verdict(verdict, found)


def _auto_row(known: Drafts) -> Row:
    about = _tr("Whatever is fastest, round by round")
    times = prediction.best(_times(key, known) for key in (*LOOKUPS, MTP, best_draft(known)))
    predicted = {} if times is None else {AUTO: times}
    return _built_in(AUTO, _tr("Auto"), about, replace(known, predicted=predicted))


def _times(key: str, known: Drafts) -> float | None:
    """How many times plain a draft makes, measured or predicted; None where that is not known."""
    found = known.measured.get(key)
    measured_times = None if found is None else found.times_plain
    return known.predicted.get(key) if measured_times is None else measured_times


def _plain_row(known: Drafts) -> Row:
    found = known.measured.get(NONE)
    aside, said = _speed(found), _over(found)
    return Row(NONE, _tr("None"), tooltip=said, checked=known.chosen == NONE, aside=aside)


def _repeats_row(key: str, known: Drafts) -> Row:
    name, about = {
        NGRAM: (_tr("Repeats from the chat"), _tr("Copies earlier text; needs no memory")),
        SUFFIX: (
            _tr("Repeats from past answers"),
            _tr("Copies what mostly followed in any chat"),
        ),
        CHAIN: (
            _tr("Repeats from all chats"),
            _tr("Copies long passages of this and other chats"),
        ),
    }[key]
    return _built_in(key, name, about, known)


def _own_head_row(verdict: Verdict, known: Drafts) -> Row:
    name = _tr("Own head (MTP)")
    if verdict.level is Level.REFUSED:
        return _refused(MTP, name, verdict.reason)
    row = _built_in(MTP, name, _tr("Trained with the model, in its own files"), known)
    return _fitted(row, known.fits.get(MTP))


def _built_in(key: str, name: str, about: str, known: Drafts) -> Row:
    """A row of what drafts without being a model."""
    if known.refusal is not None:
        return _refused(key, name, known.refusal)
    checked, found = known.chosen == key, known.measured.get(key)
    if found is None or found.times_plain is None:
        row = Row(key, name, "", about, checked=checked, aside=_speed(found))
        return _predicted(row, known)
    tried = measured.verdict(Verdict(Level.EVEN, Reason("repeats", about)), found)
    return _judged(key, name, tried, (_over(found), about), checked, found)


def _draft_row(entry: Entry, known: Drafts) -> Row:
    key, name = str(entry.path), entry.name
    if entry.problem is not None:
        return _broken(entry, entry.problem)
    verdict = known.verdicts.get(entry.path)
    if known.refusal is not None:
        return _refused(key, name, known.refusal)
    if verdict is not None and verdict.level is Level.REFUSED:
        return _refused(key, name, verdict.reason, verdict.detail)
    checked, found = key == known.chosen, known.measured.get(key)
    if key == known.loading:
        return Row(key, name, "", _tr("Loading"), checked=checked)
    if verdict is None:
        return Row(key, name, "", _tr("Checking the vocabulary"), checked=checked)
    advice = [
        resources.translate(reason)
        for reason in (verdict.reason, verdict.detail)
        if reason is not None
    ]
    tried = _tried(entry, verdict, known)
    row = _judged(key, name, tried, (_over(found), *advice), checked, found)
    return _fitted(_predicted(row, known), known.fits.get(key))


def _offer_row(gettable: Gettable, known: Drafts) -> Row:
    offer, verdict = gettable.offer, gettable.verdict
    key = offer.repository
    if verdict.level is Level.REFUSED:
        return _refused(key, offer.name, verdict.reason)
    # what belongs together is not broken over two lines
    size = None if offer.size is None else words.gigabytes(offer.size).replace(" ", "\u00a0")
    terms = ", ".join(part for part in (size, offer.licence) if part)
    detail = resources.translate(verdict.detail) if verdict.detail else ""
    row = _judged(key, offer.name, verdict, (offer.repository, terms, detail), False, None)
    told = f"{row.detail}; {terms}" if terms else row.detail
    return replace(_fitted(row, known.fits.get(key)), detail=told, action="get", aside="")


def _judged(
    key: str,
    name: str,
    verdict: Verdict,
    more: Sequence[str],
    checked: bool,
    found: Measurement | None,
) -> Row:
    """A row with its verdict; the tooltip says it and `more` in full."""
    reason = resources.translate(verdict.reason)
    word, detail = _split(reason)
    said = dict.fromkeys((name, reason, *more))
    tooltip = "\n".join(line for line in said if line)
    return Row(key, name, word, detail, _TONES[verdict.level], tooltip, checked, _speed(found))


def _predicted(row: Row, known: Drafts) -> Row:
    """With how fast it will be, where that is all there is to say of its speed."""
    times = known.predicted.get(row.key)
    if times is None or row.key in known.measured:
        return row
    said = resources.translate(prediction.said(times))
    return replace(row, detail=f"{row.detail}; {said}")


def _fitted(row: Row, fit: Fit | None) -> Row:
    if fit is None:
        return row
    return replace(row, fit=resources.translate(fit.reason), fit_tone=_FIT_TONES[fit.word])


def _speed(found: Measurement | None) -> str:
    return words.speed(found.tokens_per_second if found is not None else None)


def _over(found: Measurement | None) -> str:
    """On what a measured speed rests."""
    if found is None:
        return ""
    said = {
        "use": _tr("Measured in use over {tokens}, last on {date}"),
        "bench": _tr("Measured over {tokens}, last by bench on {date}"),
    }[found.by].format(tokens=words.tokens(found.tokens), date=found.date)
    if found.plain is None:
        return said
    plain = _tr("{rate} without a draft").format(rate=words.speed(found.plain))
    return f"{said}; {plain}"


def _rank(entry: Entry, known: Drafts) -> tuple[float, int]:
    """Measured ones by their speed, the others by the verdict; what is not judged stays last."""
    found, verdict = known.measured.get(str(entry.path)), known.verdicts.get(entry.path)
    rate = found.tokens_per_second if found is not None else 0.0
    return -rate, len(_RANKS) if verdict is None else _RANKS.index(verdict.level)


def _refused(key: str, name: str, reason: Reason, detail: Reason | None = None) -> Row:
    word, rest = _split(resources.translate(reason))
    return Row(key, name, word, rest, "refused", tooltip=resources.translate(detail or reason))


def _broken(entry: Entry, problem: Reason) -> Row:
    """A model that cannot be used as it is on the disk; a download can go on, and what it brought
    can be mended."""
    row = _refused(str(entry.path), entry.name, problem)
    action: Action = "resume" if problem.code == UNFINISHED else "repair" if entry.fetched else ""
    if entry.info is None:
        return replace(row, action=action)
    size = words.megabytes(entry.info.file_bytes)
    told = f"{row.tooltip}\n{facts(entry.info)}, {size}"
    return replace(row, action=action, aside=size, tooltip=told)


def _split(text: str) -> tuple[str, str]:
    """ "Good: 15 times smaller" as its word and the rest; a sentence without one is all rest."""
    word, colon, rest = text.partition(": ")
    return (word + ":", rest) if colon and len(word) <= LONGEST_WORD else ("", text)


def _divided(fit: list[Row], unfit: list[Row], heading: str) -> tuple[Row, ...]:
    return (*fit, Row("", heading), *unfit) if unfit else tuple(fit)
