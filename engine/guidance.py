"""May this draft serve this target, and is it worth it.

Plain data in, a verdict out; the thresholds come in as a table. Opens no files and measures
nothing: what was measured on this machine is said elsewhere and outranks a verdict.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.api import Kind, ModelInfo
from engine.errors import Reason
from engine.vocabulary import Difference


class Level(StrEnum):
    """How good a pair is; a refused draft cannot be chosen."""

    GOOD = "good"
    CAUTION = "caution"
    WARN = "warn"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """`reason` fits on a line and carries its number; `detail` is for whoever asks on."""

    level: Level
    reason: Reason
    detail: Reason | None = None


def judge_pair(
    target: ModelInfo,
    draft: ModelInfo,
    difference: Difference | None,
    table: Mapping[str, Any],
) -> Verdict:
    """The verdict on drafting for `target` with `draft`, before either is loaded.

    `difference` is that of their vocabularies, None when they agree. `table` holds
    `size_ratio.good`, `size_ratio.caution` (target's parameters / draft's) and
    `small_target.parameters`, as resources/guidance.json has them.
    """
    if draft.path == target.path:
        return Verdict(Level.REFUSED, OWN_DRAFT)
    refusal = drafting_refusal(target) or draft_refusal(draft)
    if refusal is not None:
        return Verdict(Level.REFUSED, refusal)
    if difference is not None:
        return _other_vocabulary(difference)
    if not target.parameters or not draft.parameters:
        return Verdict(Level.CAUTION, UNKNOWN_SIZE)
    return _judge_sizes(target.parameters, draft.parameters, table)


def drafting_refusal(target: ModelInfo) -> Reason | None:
    """Why nothing can draft for `target`, or None.

    A running state holds all tokens it was fed, rejected ones too, and cannot be cut back
    (case RBK-1).
    """
    return RECURRENT_TARGET if target.recurrent else None


def draft_refusal(draft: ModelInfo) -> Reason | None:
    """Why `draft` cannot draft for any target, or None."""
    return NOT_WHOLE.get(draft.kind) or (RECURRENT_DRAFT if draft.recurrent else None)


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
    Kind.HEAD: Reason("head", "A drafting head, not a model of its own"),
    Kind.ADAPTER: Reason("adapter", "An adapter, not a model of its own"),
    Kind.UNKNOWN: Reason("unknown_kind", "Unknown: the files do not state what this is"),
}


def _judge_sizes(target: int, draft: int, table: Mapping[str, Any]) -> Verdict:
    ratio = target / draft
    if ratio <= 1:
        return Verdict(
            Level.WARN,
            Reason(
                "not_smaller",
                "Warning: {ratio} times the target's size; unlikely to be faster",
                {"ratio": _shown(draft / target)},
            ),
        )
    values = {"ratio": _shown(ratio)}
    if ratio < table["size_ratio"]["caution"]:
        template = "Warning: only {ratio} times smaller; unlikely to be faster"
        return Verdict(Level.WARN, Reason("hardly_smaller", template, values))
    if target < table["small_target"]["parameters"]:
        template = "Warning: a target of {billions} billion parameters; unlikely to be faster"
        return Verdict(
            Level.WARN, Reason("small_target", template, {"billions": round(target / 1e9, 2)})
        )
    if ratio < table["size_ratio"]["good"]:
        template = "Caution: only {ratio} times smaller"
        return Verdict(Level.CAUTION, Reason("somewhat_smaller", template, values))
    template = "Good: {ratio} times smaller, same vocabulary"
    return Verdict(Level.GOOD, Reason("much_smaller", template, values))


def _shown(ratio: float) -> int | float:
    """Rounded down, so that what is said never passes a threshold that the pair does not."""
    tenths = math.floor(ratio * 10) / 10
    return int(tenths) if ratio >= 10 or tenths.is_integer() else tenths


def _other_vocabulary(difference: Difference) -> Verdict:
    values: dict[str, str | int | float] = {
        "token": difference.token_id,
        "target": difference.target,
        "draft": difference.draft,
    }
    line = "Other vocabulary: differs from token {token} on"
    detail = "Token {token} is “{target}” in the target and “{draft}” here."
    return Verdict(
        Level.REFUSED,
        Reason("other_vocabulary", line, values),
        Reason("first_difference", detail, values),
    )
