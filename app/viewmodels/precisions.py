"""The precisions a model can run in, as rows to choose from, and what holds of the one it has.

Says of each its memory and, once measured here, its speed. Loads nothing and remembers nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app import resources
from app.settings import PRECISIONS
from app.viewmodels import words
from app.viewmodels.rows import Row
from engine.api import Loaded, ModelInfo, Precision, Verification
from engine.memory import Estimate, estimate

AUTO, SAME = "auto", "same"
Speeds = Mapping[Precision, float]


@dataclass(frozen=True)
class Badge:
    """Whether a draft can change the answer: in few words, and in a sentence."""

    words: str
    sentence: str
    exact: bool


def _tr(text: str) -> str:
    return QCoreApplication.translate("precisions", text)


def named(key: str) -> Precision | None:
    """The precision a row stands for; None for the first, which leaves the choice to others."""
    return next((precision for precision in PRECISIONS if precision == key), None)


def in_words(loaded: Loaded, chosen: Precision | None) -> str:
    """ "int8", or "auto: int8" where nobody chose it."""
    if chosen is not None:
        return chosen
    return _tr("auto: {precision}").format(precision=loaded.precision)


def target_precisions(loaded: Loaded, chosen: Precision | None, speeds: Speeds) -> tuple[Row, ...]:
    """Automatic and each precision, for the target that runs."""
    name = _tr("Automatic")
    if chosen is None:
        first = _row(AUTO, name, loaded.info, loaded.precision, loaded, speeds, first=True)
    else:
        first = Row(AUTO, name, "", _tr("The fastest exact one on this device"))
    return _rows(first, loaded.info, loaded, chosen, speeds)


def draft_precisions(
    info: ModelInfo, target: Loaded, chosen: Precision | None, speeds: Speeds
) -> tuple[Row, ...]:
    """As the target and each precision, for a draft; `speeds` are those it had as a target."""
    name = _tr("As the target")
    first = _row(
        SAME, name, info, target.precision, target, speeds, first=True, checked=chosen is None
    )
    return _rows(first, info, target, chosen, speeds)


def exactness(loaded: Loaded, verification: Verification) -> Badge:
    """What can be said of the target's answers with and without a draft."""
    if verification == "rejection":
        said = _tr("Another draft may lead to another answer; all are as likely as without one.")
        return Badge(_tr("Same odds"), said, exact=False)
    if loaded.bit_exact:
        said = _tr("Checked on this device: with one seed, a draft does not change the answer.")
        return Badge(_tr("Bit-exact"), said, exact=True)
    said = _tr(
        "Where two words are almost equally likely, a draft may change which one is taken, because "
        "sums are rounded in another order."
    )
    return Badge(_tr("Same up to rounding"), said, exact=False)


def _rows(
    first: Row, info: ModelInfo, target: Loaded, chosen: Precision | None, speeds: Speeds
) -> tuple[Row, ...]:
    rest = (_row(p, p, info, p, target, speeds, checked=p == chosen) for p in PRECISIONS)
    return (first, *rest)


def _row(
    key: str,
    name: str,
    info: ModelInfo,
    precision: Precision,
    target: Loaded,
    speeds: Speeds,
    *,
    first: bool = False,
    checked: bool = True,
) -> Row:
    """`first` rows leave the choice to others, and so say which it is."""
    found = estimate(info, precision, target.device, target.context)
    memory = _memory(found)
    return Row(
        key,
        name,
        "",
        _tr("{precision}: {memory}").format(precision=precision, memory=memory)
        if first
        else memory,
        tooltip=_tooltip(found, target.context),
        checked=checked,
        aside=words.speed(speeds.get(precision)),
    )


def _memory(found: Estimate) -> str:
    if found.weights is None:
        return _tr("memory unknown: the files do not say enough")
    weights = words.gibibytes(found.weights)
    if found.total is None:
        return weights
    return _tr("{weights}, {total} with a full context").format(
        weights=weights, total=words.gibibytes(found.total)
    )


def _tooltip(found: Estimate, context: int) -> str:
    """Both parts, and why keys and values are wider than one would expect."""
    if found.weights is None or found.cache is None:
        return ""
    said = _tr("Weights {weights}; keys and values of {context} tokens {cache}, in {precision}.")
    parts = said.format(
        weights=words.gibibytes(found.weights),
        context=words.grouped(context),
        cache=words.gibibytes(found.cache),
        precision=found.cache_precision,
    )
    return f"{parts}\n{resources.translate(found.reason)}" if found.reason else parts
