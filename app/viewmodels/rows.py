"""Rows of the two lists of models, with the verdict or reason each one carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication

from app.viewmodels import words
from engine.api import Kind, ModelInfo
from engine.errors import Reason
from engine.guidance import Level, Verdict
from engine.library.scan import Entry

Tone = Literal["plain", "good", "caution", "refused"]
_TONES: dict[Level, Tone] = {
    Level.GOOD: "good",
    Level.CAUTION: "caution",
    Level.WARN: "caution",
    Level.REFUSED: "refused",
}


@dataclass(frozen=True)
class Row:
    """One line to choose from. `word` opens the second line and carries the tone, `aside` stands
    at the right of the name; without a key the row is a heading."""

    key: str
    name: str
    word: str = ""
    detail: str = ""
    tone: Tone = "plain"
    tooltip: str = ""
    checked: bool = False
    aside: str = ""

    @property
    def usable(self) -> bool:
        """Whether it can be chosen."""
        return bool(self.key) and self.tone != "refused"


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
            unfit.append(_refused(key, entry.name, entry.problem))
        elif entry.info is None or entry.info.kind is not Kind.MODEL:
            unfit.append(Row(key, entry.name, _tr("Not a model by itself"), "", "refused"))
        else:
            fit.append(Row(key, entry.name, "", facts(entry.info), checked=key == chosen))
    return _divided(fit, unfit, _tr("Cannot be loaded"))


def draft_rows(
    entries: Sequence[Entry],
    chosen: str,
    loading: str,
    verdicts: Mapping[Path, Verdict],
    refusal: Reason | None,
) -> tuple[Row, ...]:
    """None, repeats, the usable models, and below them what cannot draft with the reason."""
    fit = [Row("none", _tr("None"), checked=chosen == "none")]
    unfit: list[Row] = []
    repeats = Row(
        "ngram",
        _tr("Repeats from the chat"),
        "",
        _tr("Copies earlier text; needs no memory"),
        checked=chosen == "ngram",
    )
    rows = [repeats] if refusal is None else [_refused("ngram", repeats.name, refusal)]
    rows += [_draft_row(e, chosen, loading, verdicts.get(e.path), refusal) for e in entries]
    for row in rows:
        (unfit if row.tone == "refused" else fit).append(row)
    return _divided(fit, unfit, _tr("Cannot draft for this target"))


def _draft_row(
    entry: Entry, chosen: str, loading: str, verdict: Verdict | None, refusal: Reason | None
) -> Row:
    key = str(entry.path)
    problem = entry.problem or refusal
    if problem is not None:
        return _refused(key, entry.name, problem)
    if verdict is not None and verdict.level is Level.REFUSED:
        return _refused(key, entry.name, verdict.reason, verdict.detail)
    checked = key == chosen
    if key == loading:
        return Row(key, entry.name, "", _tr("Loading"), checked=checked)
    if verdict is None:
        return Row(key, entry.name, "", _tr("Checking the vocabulary"), checked=checked)
    word, detail = _split(verdict.reason.text)
    return Row(key, entry.name, word, detail, _TONES[verdict.level], checked=checked)


def _refused(key: str, name: str, reason: Reason, detail: Reason | None = None) -> Row:
    word, rest = _split(reason.text)
    return Row(key, name, word, rest, "refused", tooltip=(detail or reason).text)


def _split(text: str) -> tuple[str, str]:
    """ "Good: 15 times smaller" as its word and the rest; a sentence without one is all rest."""
    word, colon, rest = text.partition(": ")
    return (word + ":", rest) if colon and len(word) <= 24 else ("", text)


def _divided(fit: list[Row], unfit: list[Row], heading: str) -> tuple[Row, ...]:
    return (*fit, Row("", heading), *unfit) if unfit else tuple(fit)
