"""Whether a draft seems to be for another model: hardly anything that it guesses is right.

Methods for drafting, section 11. Counts rounds; what a pause is, and what pays, is decided
elsewhere.
"""

from collections import deque
from collections.abc import Iterable

from engine.api import RoundStats
from engine.errors import Reason

ROUNDS = 50
LEAST = 0.05  # of the tokens that were judged


class Mismatch:
    """The last rounds of each of `drafters`, by name. Others are not counted: one that copies text
    belongs to no model."""

    def __init__(self, drafters: Iterable[str]) -> None:
        self._last: dict[str, deque[tuple[int, int]]] = {
            name: deque(maxlen=ROUNDS) for name in drafters
        }

    @property
    def reason(self) -> Reason | None:
        """What to say, while one of them is hardly ever right."""
        return next((said for said in map(_said, self._last.values()) if said is not None), None)

    def observe(self, stats: RoundStats) -> None:
        """Count a round. What lies behind the first wrong token says nothing."""
        last = self._last.get(stats.drafter)
        if last is not None and stats.drafted:
            judged = stats.accepted + (stats.accepted < stats.drafted)
            last.append((stats.accepted, judged))

    def forget(self) -> None:
        """Count anew."""
        for last in self._last.values():
            last.clear()


def _said(last: deque[tuple[int, int]]) -> Reason | None:
    accepted, judged = map(sum, zip(*last, strict=True)) if last else (0, 0)
    if len(last) < ROUNDS or accepted >= LEAST * judged:
        return None
    return Reason(
        "mismatched_pair",
        "The draft is hardly ever right: {accepted} of {judged} tokens in {rounds} rounds. It may "
        "have been made for another model.",
        {"accepted": accepted, "judged": judged, "rounds": ROUNDS},
    )
