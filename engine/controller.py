"""How many tokens to draft next, from what the rounds before brought and cost.

Knows counts and seconds only: no token, no model, no clock. A coupled answer is the same whatever
is decided here. Under the rejection rule its distribution is: only what was judged in rounds
already over is looked at, never a drawn token. But the lengths follow measured times, so under
that rule a seed does not fix the text unless the length is fixed.
"""

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import accumulate
from statistics import median_low
from typing import Protocol

import numpy as np

from engine.api import RoundStats
from engine.errors import Reason

# Rounds that acceptance is estimated from. Fewer give up a fair draft after an unlucky streak,
# more hold on to one that the text has left behind.
WINDOW = 24
# What is believed before anything was seen: two of three drafted tokens are right.
BELIEF = RoundStats(drafted=3, accepted=2)
# Times of which the median is taken, so that a stall moves nothing.
RECENT = 9
# Times needed of plain steps, of drafts and of a length before they count: the first of a kind is
# slow.
FIRST = 2
# Drafting rounds until a plain step is timed again, for it slows down as the chat grows. A good
# draft loses 1 % to it.
PLAIN_EVERY = 32
# Drafting goes on down to this share of the plain rate; the estimates are no better than that.
MARGIN = 0.97
# Tokens that a pause lasts; each trial that fails doubles it.
SHORTEST, LONGEST = 16, 128
# The share of the time that trials may cost: the drafts that fail, and catching up.
TRIALS = 0.03
# A drafter that lacks no more tokens than this takes no longer for its round.
FEW = 4


class Controller(Protocol):
    """What the token loop asks before each round, and tells after it.

    `length` is how many tokens to draft at most; 0 is a plain step. `pause` says why nothing is
    drafted at present, if that was decided here.
    """

    @property
    def length(self) -> int: ...

    @property
    def pause(self) -> Reason | None: ...

    def observe(self, stats: RoundStats) -> None:
        """Take in what became of a round."""
        ...


class FixedLength:
    """Always the same length."""

    pause: Reason | None = None

    def __init__(self, length: int) -> None:
        self.length = length

    def observe(self, stats: RoundStats) -> None:
        pass


class Automatic:
    """The length with the highest expected rate; a pause while plain steps are faster.

    What is expected of k drafts is 1 + a + ... + a^k tokens (Leviathan et al. 2023, equation 1),
    a being how often a judged draft was right of late, in the measured time of a round. A pause
    ends with a trial of one token a round. A trial is judged by what rounds cost a drafter that
    is up to date; what it must be fed first only delays the next trial.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._step = _times()
        self._draft = _times()
        self._feed = _times()
        self._since_plain = 0
        self._length = 0
        self._rest = math.inf
        self.begin()

    @property
    def length(self) -> int:
        """Tokens to draft at most in the next round; 0 is a plain step."""
        untimed = len(self._step) < FIRST or self._since_plain >= PLAIN_EVERY
        return 0 if self._rest or untimed else self._length

    def begin(self) -> None:
        """An answer begins: its prefill has fed the drafter, so a trial needs no catching up."""
        self._missed = 0
        self._wait = 0.0
        self._feed.clear()
        if self._rest:
            self._try()

    def observe(self, stats: RoundStats) -> None:
        """Take in what became of a round, whatever length it had."""
        if stats.drafted:
            self._drafted(stats)
        else:
            self._plain(stats)

    def _plain(self, stats: RoundStats) -> None:
        self._step.append(stats.verify_seconds)
        self._since_plain = 0
        self._missed += stats.emitted
        if self._rest:
            self._rest = max(0.0, self._rest - stats.emitted)
            if not self._rest:
                self._try()

    def _drafted(self, stats: RoundStats) -> None:
        self._since_plain += 1
        self._time_draft(stats)
        self._rounds.append(stats)
        if len(self._draft) < FIRST:
            return
        costs = self._costs()
        self._lost += costs[self._length] - stats.emitted * costs[0]
        if self._lost < 0:
            self._wait = 0.0
        rates = [tokens / cost for tokens, cost in zip(self._tokens(), costs, strict=True)]
        self._length = max(range(1, len(rates)), key=rates.__getitem__)
        if rates[self._length] < MARGIN * rates[0]:
            self._stop(costs)

    def _time_draft(self, stats: RoundStats) -> None:
        if self._missed <= FEW or not self._draft:
            self._draft.append(stats.draft_seconds / stats.drafted)
        else:
            feeding = stats.draft_seconds - stats.drafted * median_low(self._draft)
            self._feed.append(max(0.0, feeding) / self._missed)
        self._missed = 0

    def _tokens(self) -> list[float]:
        """Tokens expected of a round, by draft length from 0 on."""
        right = sum(r.accepted for r in self._rounds)
        judged = right + sum(r.accepted < r.drafted for r in self._rounds)
        return list(accumulate((right / judged) ** i for i in range(self._longest + 1)))

    def _costs(self) -> list[float]:
        """Seconds of a round for a drafter that is up to date, by draft length from 0 on.

        Verifying a length not timed of late lies between its neighbours; beyond the longest timed
        each further row costs what one did up to there, which with a mixture of experts is much.
        It is never taken to be faster than a plain step, which may have been timed while the
        machine was busier.
        """
        plain, draft = median_low(self._step), median_low(self._draft)
        timed: defaultdict[int, list[float]] = defaultdict(list)
        for stats in sorted(self._seen(), key=lambda stats: stats.drafted):
            timed[stats.drafted].append(stats.verify_seconds)
        known = {0: plain} | {k: median_low(t) for k, t in timed.items() if len(t) >= FIRST}
        lengths = range(self._longest + 1)
        last = max(known)
        if last:
            known[lengths[-1]] = known[last] + (known[last] - plain) / last * (lengths[-1] - last)
        verify = np.interp(lengths, list(known), list(known.values())).tolist()
        return [plain] + [k * draft + max(plain, verify[k]) for k in lengths[1:]]

    def _seen(self) -> list[RoundStats]:
        return [stats for stats in self._rounds if stats is not BELIEF]

    def _try(self) -> None:
        """Draft, one token first, as if nothing were known of the acceptance."""
        self._length = min(1, self._longest)
        self._rounds: deque[RoundStats] = deque([BELIEF], maxlen=WINDOW)
        self._lost: float = 0.0
        self._rest = 0.0
        self.pause: Reason | None = None

    def _stop(self, costs: Sequence[float]) -> None:
        """Pause for twice the last pause, and until trials cost no more than their share."""
        self._wait = min(max(2 * self._wait, SHORTEST), LONGEST)
        spare = TRIALS * costs[0] - (median_low(self._feed) if self._feed else 0.0)
        if spare > 0:
            self._wait = max(self._wait, min(self._lost / spare, LONGEST))
        # one slow feeding may be a stall; after two, trials have to wait for the next answer
        never = spare <= 0 and len(self._feed) > 1
        self._rest = math.inf if never else self._wait
        self.pause = Reason(
            "drafting_does_not_pay",
            "Drafting pauses while it does not pay: {accepted} of the last {drafted} drafted "
            "tokens were accepted, and each costs {cost} % of a token's time.",
            {
                "accepted": sum(r.accepted for r in self._seen()),
                "drafted": sum(r.drafted for r in self._seen()),
                "cost": round(100 * (costs[1] / costs[0] - 1)),
            },
        )


def _times() -> deque[float]:
    return deque(maxlen=RECENT)
