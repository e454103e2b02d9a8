"""May this draft serve this target, and is it worth it.

Plain data in, a verdict out; the thresholds come in as a table. Opens no files and measures
nothing: what was measured on this machine is said elsewhere and outranks a verdict.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine import families
from engine.api import Kind, ModelInfo
from engine.errors import Reason
from engine.vocabulary import Difference


class Level(StrEnum):
    """How good a pair is; a refused draft cannot be chosen. `EVEN` is a measured one that hardly
    differs from plain decoding."""

    GOOD = "good"
    EVEN = "even"
    CAUTION = "caution"
    WARN = "warn"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """`reason` fits on a line and carries its number; `detail` is for whoever asks on.

    `translated`: the draft has another vocabulary, and drafts all the same."""

    level: Level
    reason: Reason
    detail: Reason | None = None
    translated: bool = False

    @property
    def text(self) -> str:
        """The reason in English; before it, that the draft is translated."""
        return f"{TRANSLATED.text}; {self.reason.text}" if self.translated else self.reason.text


def judge_pair(
    target: ModelInfo,
    draft: ModelInfo,
    difference: Difference | None,
    table: Mapping[str, Any],
) -> Verdict:
    """The verdict on drafting for `target` with `draft`, before either is loaded.

    `difference` is that of their vocabularies, None when they agree; what such a draft says is
    translated. `table` holds
    `size_ratio.good`, `size_ratio.caution` (target's parameters / draft's),
    `small_target.parameters` and `largest_draft.pairs`, as resources/guidance.json has them.
    """
    if os.path.realpath(draft.path) == os.path.realpath(target.path):
        return Verdict(Level.REFUSED, OWN_DRAFT)
    refusal = drafting_refusal(target) or draft_refusal(draft)
    if refusal is not None:
        return Verdict(Level.REFUSED, refusal)
    times = ratio(target, draft)
    size = target.active or target.parameters
    translated = difference is not None
    detail = _published(table) if difference is None else _first_difference(difference)
    if times is None or size is None:
        return Verdict(Level.CAUTION, UNKNOWN_SIZE, detail, translated)
    level, reason = _judge_sizes(size, times, table)
    if translated and level is Level.GOOD:
        reason = Reason("smaller_translated", "Good: {ratio} times smaller", reason.values)
    return Verdict(level, reason, detail, translated)


def drafting_refusal(target: ModelInfo) -> Reason | None:
    """Why nothing can draft for `target`, or None.

    A running state holds all tokens it was fed, rejected ones too. In some families it can be put
    back to what it was (case RBK-1).
    """
    rewindable = target.format == "safetensors" and families.is_rewindable(target.architecture)
    return RECURRENT_TARGET if target.recurrent and not rewindable else None


def draft_refusal(draft: ModelInfo) -> Reason | None:
    """Why `draft` cannot draft for any target, or None."""
    refusal = NOT_WHOLE.get(draft.kind) or (RECURRENT_DRAFT if draft.recurrent else None)
    return refusal or _mask_refusal(draft)


def _mask_refusal(draft: ModelInfo) -> Reason | None:
    """A draft that guesses several tokens in one pass has a token for the mask."""
    mask, tokens = draft.mask, draft.vocab_size or LARGEST
    if mask is None or (isinstance(mask, int) and 0 <= mask < tokens):
        return None
    values: dict[str, str | int | float] = {"key": "pard_token", "value": mask}
    return Reason("head_setting", SETTING, values | {"usable": f"0 to {tokens - 1}"})


LARGEST = 2**31
SETTING = "Its {key} is {value}; what can be used is {usable}"
TRANSLATED = Reason("translated", "Other vocabulary: translated")
OWN_DRAFT = Reason("own_draft", "This is the target itself")
RECURRENT_TARGET = Reason(
    "recurrent_target",
    "This model keeps a running state that cannot be rewound, so drafting is off for it.",
)
RECURRENT_DRAFT = Reason(
    "recurrent_draft",
    "This model keeps a running state that cannot be rewound, so it cannot draft.",
)
UNKNOWN_SIZE = Reason("unknown_size", "Unknown: the files do not state their sizes")
NOT_WHOLE = {
    Kind.HEAD: Reason("head", "Head for an unknown model: cannot be used yet"),
    Kind.ADAPTER: Reason("adapter", "An adapter, not a model of its own"),
    Kind.UNKNOWN: Reason("unknown_kind", "Unknown: the files do not state what this is"),
}


def head_refusal(target: str | None, form: str | None = None) -> Reason:
    """Why a head cannot draft; `target` names the model that it was made for, `form` its format,
    where they are known."""
    if form is not None:
        if target is None:
            return Reason("head_form", "{form} head: cannot be used yet", {"form": form})
        text = "{form} head for {target}: cannot be used yet"
        return Reason("head_form_of", text, {"form": form, "target": target})
    if target is None:
        return NOT_WHOLE[Kind.HEAD]
    return Reason("head_of", "Head for {target}: cannot be used yet", {"target": target})


def judge_head(target: ModelInfo, made_for: str | None) -> Verdict:
    """The verdict on a head whose sizes are the target's; `made_for` names the model that it was
    trained with, where that is known. With another one it is exact too, and seldom right."""
    if made_for is None:
        return Verdict(Level.CAUTION, HEAD_FITS)
    if _bare(made_for) in _bare(target.name):
        return Verdict(Level.GOOD, HEAD_FOR_THIS)
    text = "Caution: the sizes are right, but it was made for {target}"
    return Verdict(Level.CAUTION, Reason("head_for_other", text, {"target": made_for}))


HEAD_FITS = Reason(
    "head_fits", "Caution: the sizes are right; for which model it was made is not said"
)
HEAD_FOR_THIS = Reason("head_for_this", "Good: a head made for this model")


def _bare(name: str) -> str:
    """A model's name without what files put between its parts."""
    return "".join(character for character in name.lower() if character.isalnum())


def ratio(target: ModelInfo, draft: ModelInfo) -> float | None:
    """How many times smaller the draft is; by active parameters where not all are used."""
    ours, theirs = target.active or target.parameters, draft.active or draft.parameters
    return ours / theirs if ours and theirs else None


def _judge_sizes(target: int, times: float, table: Mapping[str, Any]) -> tuple[Level, Reason]:
    if times <= 1:
        larger = _shown(1 / times)
        if larger == 1:
            template = "Warning: as large as the target; unlikely to be faster"
            return Level.WARN, Reason("as_large", template)
        template = "Warning: {ratio} times the target's size; unlikely to be faster"
        return Level.WARN, Reason("not_smaller", template, {"ratio": larger})
    values = {"ratio": _shown(times)}
    if times < table["size_ratio"]["caution"]:
        template = "Warning: only {ratio} times smaller; unlikely to be faster"
        return Level.WARN, Reason("hardly_smaller", template, values)
    if target < table["small_target"]["parameters"]:
        template = "Warning: a target of {billions} billion parameters; unlikely to be faster"
        return Level.WARN, Reason("small_target", template, {"billions": round(target / 1e9, 2)})
    if times < table["size_ratio"]["good"]:
        return Level.CAUTION, Reason(
            "somewhat_smaller", "Caution: only {ratio} times smaller", values
        )
    return Level.GOOD, Reason(
        "much_smaller", "Good: {ratio} times smaller, same vocabulary", values
    )


def _published(table: Mapping[str, Any]) -> Reason:
    """The largest useful drafts as they were published, whatever the pair: for a tooltip."""
    said = (
        f"{_billions(pair['target'])}: {_billions(pair['draft']) if pair['draft'] else 'none'}"
        for pair in table["largest_draft"]["pairs"]
    )
    template = "Largest useful draft for a target, as LM Studio publishes it: {pairs}"
    return Reason("published_sizes", template, {"pairs": ", ".join(said)})


def _billions(parameters: int) -> str:
    return f"{parameters / 1e9:g}B"


def _shown(ratio: float) -> int | float:
    """Rounded down, so that what is said never passes a threshold that the pair does not."""
    tenths = math.floor(ratio * 10) / 10
    return int(tenths) if ratio >= 10 or tenths.is_integer() else tenths


def _first_difference(difference: Difference) -> Reason:
    values: dict[str, str | int | float] = {
        "token": difference.token_id,
        "target": difference.target,
        "draft": difference.draft,
    }
    template = "Token {token} is “{target}” in the target and “{draft}” here."
    return Reason("first_difference", template, values)
