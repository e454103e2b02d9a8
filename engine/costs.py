"""What rounds cost here, in seconds: a pass of the target by its rows, a step of each drafter.

Knows times and counts only. A table for each range of contexts; of what a table lacks, a neighbour
is asked.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# Share of a new time in what is known, at least; a stall lengthens it by `STALL` of itself at most.
ALPHA, STALL = 0.3, 0.25
# Faster by more than this share is no noise.
CERTAIN = 0.5
# What is left of the trust in a time with each that comes after it.
LASTING = 0.99
# Of a change, what everything else timed here is taken to share: a busy machine, a longer chat.
SHARED = 0.75
# Times of a kind until it counts: the first of a kind is slow.
FIRST = 2
# Believed of a row more, as a share of a plain step, where one count of rows was timed only.
ROW = 0.03
# Fewer rows are never dearer than more, up to the noise of a time.
NOISE = 1.1
SHORT = 512  # tokens of the first range of contexts; each further one is twice as long

VERIFY = "verify"
Key = tuple[str, int]


class Timed(NamedTuple):
    """Seconds of a pass or step, how often it was timed, and when last, in passes and steps."""

    seconds: float
    times: int
    last: int = 0


class Costs:
    """The times of one target, and of the drafters that draft for it."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[Key, Timed]] = {}
        self._now: dict[Key, Timed] = self._tables.setdefault(0, {})
        self._known: dict[int, float] = {}
        self._clock = 0

    def at(self, context: int) -> None:
        """What comes is timed with `context` tokens."""
        place = (context // SHORT).bit_length()
        if not self._tables.get(place):
            timed = [known for known, table in self._tables.items() if table] or [0]
            nearest = min(timed, key=lambda known: abs(known - place))
            self._tables[place] = dict(self._tables[nearest])
        if self._now is not self._tables[place]:
            self._now = self._tables[place]
            self._known = self._rows()

    def verified(self, rows: int, seconds: float) -> None:
        """A pass of the target over `rows` took so long."""
        self._add((VERIFY, rows), seconds)
        self._level(rows)
        self._known = self._rows()

    def drafted(self, name: str, seconds: float) -> None:
        """A step of the drafter took so long, one that was up to date."""
        self._add((name, 1), seconds)
        self._known = self._rows()

    def knows(self, name: str = VERIFY) -> bool:
        """Whether steps of this drafter, or plain ones, were timed."""
        timed = self._now.get((name, 1))
        return timed is not None and timed.times >= FIRST

    def draft(self, name: str) -> float:
        """Seconds of a step of the drafter; 0 where none was timed."""
        timed = self._now.get((name, 1))
        return timed.seconds if timed is not None else 0.0

    def verify(self, rows: int) -> float:
        """Seconds of a pass of the target over `rows`: linear between those timed, and along
        their slope beyond, for a mixture of experts reads more weights with each row."""
        known = self._known
        below = max((r for r in known if r <= rows), default=None)
        above = min((r for r in known if r >= rows), default=None)
        if below is None:
            return known[above] if above is not None else 0.0
        if above is None:
            return known[below] + (rows - below) * _slope(known)
        if below == above:
            return known[below]
        part = (rows - below) / (above - below)
        return known[below] + part * (known[above] - known[below])

    def _rows(self) -> dict[int, float]:
        """By rows, those timed often enough; of plain steps any."""
        return {
            rows: timed.seconds
            for (name, rows), timed in sorted(self._now.items())
            if name == VERIFY and (timed.times >= FIRST or rows == 1)
        }

    def _add(self, key: Key, seconds: float) -> None:
        """The longer ago something was timed, the more a new time counts: what was timed while
        the machine was busy is soon put right. Only upwards may it be a stall."""
        self._clock += 1
        before = self._now.get(key)
        if before is None or before.times < FIRST:
            least = seconds if before is None else min(before.seconds, seconds)
            self._now[key] = Timed(least, 1 if before is None else before.times + 1, self._clock)
            return
        change = min(STALL, seconds / before.seconds - 1)
        share = max(ALPHA, 1 - LASTING ** (self._clock - before.last))
        if share == ALPHA:
            change = max(-STALL, change)
        elif change < -CERTAIN:
            share = 1.0
        taken = before.seconds * (1 + share * change)
        self._now[key] = Timed(taken, before.times + 1, self._clock)
        shared = 1 + SHARED * ALPHA * max(-STALL, change)
        for other, timed in self._now.items():
            if other != key:
                self._now[other] = timed._replace(seconds=timed.seconds * shared)

    def _level(self, rows: int) -> None:
        """What was timed last is right where more rows would seem to take less."""
        now = self._now[VERIFY, rows].seconds
        for (name, others), timed in self._now.items():
            if name == VERIFY and others < rows:
                self._now[name, others] = timed._replace(seconds=min(timed.seconds, NOISE * now))
            elif name == VERIFY and others > rows:
                self._now[name, others] = timed._replace(seconds=max(timed.seconds, now / NOISE))

    def state(self, name: str = VERIFY) -> list[list[float]]:
        """The times of passes of the target, or of steps of a drafter, as JSON has them."""
        return [
            [place, rows, timed.seconds]
            for place, table in self._tables.items()
            for (timed_name, rows), timed in table.items()
            if timed_name == name and timed.times >= FIRST
        ]

    def restore(self, state: Iterable[Any], name: str = VERIFY) -> None:
        """Take over what `state` gave. Raises ValueError or TypeError for anything else."""
        times = [(int(place), int(rows), float(seconds)) for place, rows, seconds in state]
        for place, rows, seconds in times:
            if not (0 <= place < 64 and 0 < rows < 2**16 and 0 < seconds < math.inf):
                raise ValueError("no time")
        for place, rows, seconds in times:
            self._tables.setdefault(place, {})[name, rows] = Timed(seconds, FIRST)
        self._known = self._rows()


def _slope(known: Mapping[int, float]) -> float:
    """Seconds that a row more takes, beyond all that were timed."""
    first, last = min(known), max(known)
    if first == last:
        return ROW * known[first]
    return max(0.0, known[last] - known[first]) / (last - first)
