"""What to draft next, and how much: plainly, or with one of several drafters.

Knows counts, seconds and logits: no token, no model, no clock. A coupled answer is the same
whatever is decided here. Under the rejection rule its distribution is: only what is known before a
token is drawn is looked at, and of drawn ones what was judged in rounds already over. But the
lengths follow measured times, so under that rule a seed does not fix the text unless the length is
fixed.
"""

import contextlib
import math
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any, Protocol

from engine.acceptance import LASTING, Acceptance, Calibration
from engine.api import RoundStats
from engine.costs import VERIFY, Costs
from engine.errors import Reason

# Rounds until a plain step is timed again, for it slows down as the chat grows.
PLAIN_EVERY = 48
# Drafting goes on down to this share of the plain rate; the estimates are no better than that.
MARGIN = 0.97
# Tokens that a pause lasts; each trial that fails doubles it.
SHORTEST, LONGEST = 16, 128
# The share of the time that trials may cost: the drafts that fail, and catching up.
TRIALS = 0.03
# A drafter that lacks no more tokens than this takes no longer for its round.
FEW = 4
# Times of feeding of which the median is taken, and rounds that a pause tells of.
RECENT, SEEN = 9, 24
# What a round counts for in the rate of late after another one.
FADE = 0.9

ANY = sys.maxsize


class Controller(Protocol):
    """What the token loop asks before each round, and tells after it.

    `length` is how many tokens to draft at most; 0 is a plain step.
    """

    @property
    def length(self) -> int: ...

    def observe(self, stats: RoundStats) -> None:
        """Take in what became of a round."""
        ...


class FixedLength:
    """Always the same length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def observe(self, stats: RoundStats) -> None:
        pass


@dataclass(frozen=True)
class Offer:
    """What a drafter could draft now: `most` tokens at most.

    `found`: they are there already, by a match of `match` tokens, and only to be cut. Others have
    yet to be computed, by a drafter that lacks `missed` tokens of the text: token by token, or all
    `at_once`, in one step.
    """

    name: str
    most: int
    found: bool = False
    match: int = 0
    missed: int = 0
    at_once: bool = False

    def steps(self, length: int) -> int:
        """How often something is computed for a draft of `length` tokens."""
        return 0 if self.found else 1 if self.at_once else length


@dataclass(frozen=True)
class Choice:
    """Draft `length` tokens with the drafter `name`; fewer where it becomes too unsure.
    `tokens` and `seconds` are what is expected of the round."""

    name: str
    length: int
    tokens: float
    seconds: float


@dataclass
class Tally:
    """What was expected of the rounds of a drafter in an answer, and what came."""

    rounds: int = 0
    tokens: int = 0
    seconds: float = 0.0
    expected_tokens: float = 0.0
    expected_seconds: float = 0.0

    @property
    def text(self) -> str:
        """On a line, in tokens per second."""
        predicted = self.expected_tokens / self.expected_seconds if self.expected_seconds else 0.0
        measured = self.tokens / self.seconds if self.seconds else 0.0
        return f"{self.rounds} rounds, {predicted:.1f} tok/s predicted, {measured:.1f} measured"

    def add(self, choice: Choice, stats: RoundStats) -> None:
        """One more round."""
        self.rounds += 1
        self.tokens += stats.emitted
        self.seconds += stats.draft_seconds + stats.verify_seconds
        self.expected_tokens += choice.tokens
        self.expected_seconds += choice.seconds


class _Known:
    """What is known of a drafter, and whether it pauses.

    `rest` are the tokens until its next trial, 0 while it drafts. A trial is judged by what rounds
    cost a drafter that is up to date; what it must be fed first only delays the next trial.
    """

    def __init__(self) -> None:
        self.acceptance = Acceptance()
        self.calibration = Calibration()
        self.paces = False
        self.rest = 0.0
        self.pause: Reason | None = None
        self._alone = (0.0, 0.0)
        self._seen: deque[tuple[int, int]] = deque(maxlen=SEEN)
        self._try()
        self.begin()

    def state(self) -> dict[str, Any]:
        """What outlives the program, as JSON has it."""
        return {
            "acceptance": self.acceptance.state(),
            "calibration": self.calibration.state(),
            "alone": list(self._alone),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """What `state` gave. Raises ValueError, TypeError or KeyError for anything else."""
        acceptance, calibration = Acceptance(), Calibration()
        acceptance.restore(state["acceptance"])
        calibration.restore(state["calibration"])
        tokens, steps = map(float, state["alone"])
        if not (0 <= tokens < math.inf and 0 <= steps < math.inf):
            raise ValueError("no rate")
        self.acceptance, self.calibration = acceptance, calibration
        self._alone = tokens, steps

    def begin(self) -> None:
        """An answer begins."""
        self._wait = 0.0
        self._feed: deque[float] = deque(maxlen=RECENT)
        if self.rest:
            self.acceptance.restart()
            self._try()

    def judge(self, match: int, accepted: int, judged: int) -> None:
        """Of one draft, `judged` tokens, of which the first `accepted` were right."""
        self.acceptance.observe(match, accepted, judged)

    def brought(self, tokens: int, steps: float) -> None:
        """A round in which it was asked made `tokens` in the time of so many plain steps; where
        another drafted, as many as that one made."""
        self._alone = LASTING * self._alone[0] + tokens, LASTING * self._alone[1] + steps

    def spent(self, stats: RoundStats, lost: float) -> None:
        """A round with it took `lost` seconds longer than plain steps for the same tokens."""
        self.fresh = False
        self._seen.append((stats.accepted, stats.drafted))
        self._lost += lost
        if self._lost < 0:
            self._wait = 0.0

    def fed(self, seconds: float) -> None:
        """Each token that it had missed took so long."""
        self._feed.append(seconds)

    def rested(self, tokens: int) -> None:
        """Others made `tokens`."""
        if self.rest:
            self.rest = max(0.0, self.rest - tokens)
            if not self.rest:
                self.acceptance.restart()
                self._try()

    def _try(self) -> None:
        self.fresh = True
        self.rest, self.pause = 0.0, None
        self._lost = 0.0
        self._seen.clear()

    def stop(self, plain: float, first: float) -> None:
        """Pause for twice the last pause, and until trials cost no more than their share.

        A plain step takes `plain` seconds, a round of one draft `first`.
        """
        self._wait = min(max(2 * self._wait, SHORTEST), LONGEST)
        spare = TRIALS * plain - (median_low(self._feed) if self._feed else 0.0)
        if spare > 0:
            self._wait = max(self._wait, min(self._lost / spare, LONGEST))
        # one slow feeding may be a stall; after two, trials have to wait for the next answer
        never = spare <= 0 and len(self._feed) > 1
        self.rest = math.inf if never else self._wait
        self.pause = Reason(
            "drafting_does_not_pay",
            "Drafting pauses while it does not pay: {accepted} of the last {drafted} drafted "
            "tokens were accepted, and each costs {cost} % of a token's time.",
            {
                "accepted": sum(accepted for accepted, _ in self._seen),
                "drafted": sum(drafted for _, drafted in self._seen),
                "cost": round(100 * (first / plain - 1)),
            },
        )


class Automatic:
    """Round by round the drafter and the length that are expected to make most of the time.

    What is expected of k drafts is 1 + s[1] + ... + s[k] tokens (Leviathan et al. 2023, equation
    1), s[i] being the chance that the first i are right, in the measured time of a round. Of
    drafts that are there for the asking, each is weighed against the rate of all others. What has
    to be computed first pauses while plain steps are faster; a pause ends with a trial of one
    token a round, or of one pass that guesses all.
    """

    def __init__(self, longest: Mapping[str, int]) -> None:
        self._longest = dict(longest)
        self._drafters = {name: _Known() for name in longest}
        self._costs = Costs()
        self._since_plain = 0
        self._offers: dict[str, Offer] = {}
        self._choice: Choice | None = None
        self._sure: list[float] = []
        self._survival = 1.0
        self._rate = 0.0
        self.begin()

    def begin(self, length: int | None = None) -> None:
        """An answer begins, to be drafted `length` tokens a round, or as many as pay. Its prefill
        has fed the drafters, so a trial needs no catching up."""
        self._fixed = length
        self._late = (0.0, 0.0)
        self.tallies: dict[str, Tally] = {}
        for known in self._drafters.values():
            known.begin()

    @property
    def length(self) -> int:
        """Tokens to draft at most, by whatever drafter."""
        return max(map(self.longest, self._longest), default=0)

    def longest(self, name: str) -> int:
        """Tokens that this drafter may draft at most."""
        return self._longest[name] if self._fixed is None else self._fixed

    @property
    def pause(self) -> Reason | None:
        """Why nothing is drafted at present, if there is only one drafter and it is left out."""
        if self._fixed is not None or len(self._drafters) != 1:
            return None
        (known,) = self._drafters.values()
        return known.pause

    def learnt(self) -> dict[str, dict[str, Any]]:
        """What is to be kept for the next start, as JSON has it: of the target's passes under
        `VERIFY`, of each drafter under its name."""
        states: dict[str, dict[str, Any]] = {VERIFY: {"costs": self._costs.state()}}
        for name, known in self._drafters.items():
            states[name] = {"costs": self._costs.state(name), **known.state()}
        return states

    def recall(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Begin with what `learnt` gave, of a kept file perhaps: what is damaged is left out."""
        for name, state in states.items():
            with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
                if name in self._drafters:
                    self._drafters[name].restore(state)
                self._costs.restore(state["costs"], name)

    def choose(self, offers: Iterable[Offer], context: int) -> Choice | None:
        """The best of the offers for a text of `context` tokens; None is a plain step."""
        self._costs.at(context)
        self._offers = {offer.name: offer for offer in offers if offer.most > 0}
        self._choice, self._sure, self._survival = None, [], 1.0
        if self._fixed is not None:
            self._choice = self._longest_of(self._offers.values())
        elif self._costs.knows() and self._since_plain < PLAIN_EVERY:
            self._choice = self._best()
        return self._choice

    def pace(self, sure: float) -> int:
        """How long the draft may become, now that the drafter knows how `sure` it is of its next
        token (the logit of its largest probability) and has not drawn it.

        A draft goes on while the next token is expected to pay for its step and its row; one that
        does not pay for its row alone is left undrawn. The first is drawn whatever comes: a draft
        of none would teach nothing.
        """
        assert self._choice is not None
        place, known = len(self._sure), self._drafters[self._choice.name]
        self._sure.append(sure)
        if self._fixed is not None:
            return ANY
        self._survival *= known.calibration.chance(place, sure)
        if place and self._survival < self._rate * self._row(place + 1):
            return place
        ahead = self._survival * known.acceptance.chance(0, place + 1)
        step = self._costs.draft(self._choice.name) + self._row(place + 2)
        return ANY if ahead > self._rate * step else place + 1

    def judge(self, name: str, match: int, accepted: int, judged: int) -> None:
        """Of a draft that was found, taken or not, the text has shown `judged` tokens, and the
        first `accepted` to be right."""
        self._drafters[name].judge(match, accepted, judged)

    def observe(self, stats: RoundStats) -> None:
        """Take in what became of a round."""
        self._costs.verified(stats.drafted + 1, stats.verify_seconds)
        choice, plain = self._choice if stats.drafted else None, self._costs.verify(1)
        if choice is None:
            self._since_plain, seconds = 0, plain
        else:
            self._since_plain += 1
            seconds = self._drafted(choice, stats)
        self._late = FADE * self._late[0] + stats.emitted, FADE * self._late[1] + seconds
        for name, known in self._drafters.items():
            taken = choice is not None and name == choice.name
            known.brought(stats.emitted, seconds / plain if taken and plain else stats.emitted)
            if not taken:
                known.rested(stats.emitted)

    def _drafted(self, choice: Choice, stats: RoundStats) -> float:
        """Learn from a round with a draft; the seconds that such a one takes as a rule."""
        offer, known = self._offers[choice.name], self._drafters[choice.name]
        steps = offer.steps(len(self._sure) or stats.drafted)
        if steps:
            self._time(offer, stats.draft_seconds, steps)
            judged = stats.accepted + (stats.accepted < stats.drafted)
            known.judge(0, stats.accepted, judged)
            known.calibration.observe(self._sure[:judged], stats.accepted)
            known.paces = bool(self._sure)
        plain = self._costs.verify(1)
        seconds = steps * self._costs.draft(choice.name) + self._costs.verify(stats.drafted + 1)
        known.spent(stats, seconds - stats.emitted * plain)
        self.tallies.setdefault(choice.name, Tally()).add(choice, stats)
        return seconds

    def _time(self, offer: Offer, seconds: float, steps: int) -> None:
        if offer.missed <= FEW or not self._costs.knows(offer.name):
            self._costs.drafted(offer.name, seconds / steps)
        else:
            feeding = seconds - steps * self._costs.draft(offer.name)
            self._drafters[offer.name].fed(max(0.0, feeding) / offer.missed)

    def _best(self) -> Choice | None:
        """What is computed is compared by its rate, what is found by what it adds to the rest."""
        plain = 1 / self._costs.verify(1)
        computed = [self._computed(o, plain) for o in self._offers.values() if not o.found]
        best = max((c for c in computed if c is not None), key=_rate, default=None)
        usual = plain if best is None else _rate(best)
        late = self._late[0] / self._late[1] if self._late[1] else 0.0
        self._rate = max(plain, usual, late)
        other = 1 - self._rate / plain if best is None else self._gain(best)
        found = [c for o in self._offers.values() if o.found for c in self._lengths(o)]
        choice = max(found, key=self._gain, default=None)
        return choice if choice is not None and self._gain(choice) > other else best

    def _computed(self, offer: Offer, plain: float) -> Choice | None:
        """The best length of a drafter that does not pause; pauses it where none pays."""
        known = self._drafters[offer.name]
        if known.rest:
            return None
        lengths = self._lengths(offer)
        if known.fresh or not self._costs.knows(offer.name):
            # a pass teaches the more the more it guesses
            return lengths[-1 if offer.at_once else 0]
        best = max(lengths, key=_rate)
        if _rate(best) < MARGIN * plain:
            known.stop(1 / plain, lengths[0].seconds)
            return None
        return replace(best, length=offer.most) if known.paces else best

    def _longest_of(self, offers: Iterable[Offer]) -> Choice | None:
        """The offer that brings most at its full length, whatever a plain step would."""
        self._rate = 1 / self._costs.verify(1) if self._costs.knows() else 0.0
        return max((self._lengths(o)[-1] for o in offers), key=self._gain, default=None)

    def _lengths(self, offer: Offer) -> list[Choice]:
        """What each length of a draft brings and costs, from 1 on."""
        acceptance = self._drafters[offer.name].acceptance
        step = self._costs.draft(offer.name)
        tokens, survival, choices = 1.0, 1.0, []
        for length in range(1, offer.most + 1):
            survival *= acceptance.chance(offer.match, length - 1)
            tokens += survival
            seconds = offer.steps(length) * step + self._costs.verify(length + 1)
            choices.append(Choice(offer.name, length, tokens, seconds))
        return choices

    def _gain(self, choice: Choice) -> float:
        """Tokens beyond what the usual rate makes in that time."""
        return choice.tokens - self._rate * choice.seconds

    def _row(self, row: int) -> float:
        """Seconds that the target takes longer for a draft of `row` tokens than for one less."""
        return self._costs.verify(row + 1) - self._costs.verify(row)


def _rate(choice: Choice) -> float:
    return choice.tokens / choice.seconds
