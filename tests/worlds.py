"""Pretended machines and texts: drafters of known costs whose tokens are right with known chance.

The text at position t is the token t; a wrong draft is a negative id. The seconds of a round are
made up, so a test of a thousand rounds takes a blink and is the same everywhere.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.api import RoundStats
from engine.drafters.auto import Auto
from engine.drafters.base import AtOnce, Lookup
from engine.sampling import Policy
from engine.verify import Draft
from tests.tiny import policy

POLICY = policy()
RUN = 12
By = float | Callable[[int], float]


def at(value: By, position: int) -> float:
    return value(position) if callable(value) else value


class Pretended:
    """What the drafters of a world have in common. `right` is the chance that a token is right,
    by its position, if those before it are."""

    pause = None

    def __init__(self, right: By = 0.7, *, longest: int = 7, name: str = "") -> None:
        self.name, self.default_length = name or self.name, longest
        self.right = right
        self.random = random.Random(0)
        self.steps = self.missed = 0

    def prefill(self, tokens: Sequence[int]) -> None:
        pass

    def settle(self, length: int) -> None:
        pass

    def reset(self) -> None:
        pass

    def token(self, position: int, chance: float) -> int:
        return position if self.random.random() < chance else -1


class Lookups(Pretended, Lookup):
    """Finds something in the share `guesses` of the text, in runs of `RUN` tokens."""

    name = "ngram"

    def __init__(self, right: By = 0.7, guesses: By = 1.0, longest: int = 8, **more: str) -> None:
        super().__init__(right, longest=longest, **more)
        self.guesses = guesses

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        here = len(tokens)
        chance = at(self.right, here)
        run = random.Random(f"{self.name} {self.seed} {here // RUN}").random()
        if limit < 1 or run >= at(self.guesses, here):
            return Draft()
        # long matches are those that go on
        match = max(2, round(40 * (chance - 0.5))) if chance > 0.5 else 2
        return Draft(tuple(self.token(here + i, chance) for i in range(limit)), match=match)


class Model(Pretended):
    """Computes: `step` seconds a token, `feed` for one that it missed.

    `spread`: how far the logit of a token's chance lies about that of `right`, by a normal
    distribution; the drafter knows it, and says so.
    """

    name = "model"

    def __init__(
        self,
        right: By = 0.7,
        *,
        step: float = 0.03,
        feed: float = 0.0015,
        spread: float = 0.0,
        told: bool = False,
        **more: object,
    ) -> None:
        super().__init__(right, **more)
        self.step, self.feed, self.spread, self.told = step, feed, spread, told
        self.read = 0

    def chance(self, position: int) -> float:
        mean = min(max(at(self.right, position), 1e-9), 1 - 1e-9)
        if not self.spread:
            return mean
        logit = math.log(mean / (1 - mean)) + self.random.gauss(0, self.spread)
        return 1 / (1 + math.exp(-logit))

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1:
            return Draft()
        here = len(tokens)
        self.missed = max(0, here - self.read) if self.read else 0
        self.steps, drafted = 0, []
        while len(drafted) < limit:
            chance = self.chance(here + len(drafted))
            self.steps += 1
            if policy.pace is not None and self.told:
                # a drafter is surer than it is right: its logits are off by a line
                longest = policy.pace(1.5 * math.log(chance / (1 - chance)) + 1)
                if len(drafted) >= longest:
                    break
                # what is there already is looked at, too
                limit = limit if isinstance(self, AtOnce) else min(limit, longest)
            drafted.append(self.token(here + len(drafted), chance))
        self.read = here + len(drafted)
        return Draft(tuple(drafted))


class Pass(Model, AtOnce):
    """Computes all in one pass: `step` seconds a draft."""

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        draft = super().propose(tokens, limit, policy)
        self.steps = min(self.steps, 1)
        return draft


@dataclass
class World:
    """A target whose plain step takes `step` seconds, each further row `row`, and its drafters."""

    drafters: Sequence[Pretended]
    step: By = 0.1
    row: float = 0.002
    noise: float = 0.05
    stalls: float = 0.0
    seed: int = 0
    rounds: list[tuple[int, RoundStats]] = field(default_factory=list)

    def auto(self) -> Auto:
        return Auto(self.drafters)

    def answer(
        self, auto: Auto | None = None, tokens: int = 512, length: int | None = None
    ) -> "World":
        """An answer's rounds, each with the position of its first token."""
        auto = self.auto() if auto is None else auto
        self.random = random.Random(self.seed)
        for i, drafter in enumerate(self.drafters):
            drafter.seed, drafter.random = self.seed, random.Random(self.seed * 97 + i)
            drafter.read = 0
        self.rounds = []
        auto.begin(length)
        text = [0]
        while len(text) <= tokens:
            self.round(auto, text, tokens - len(text))
        return self

    def round(self, auto: Auto, text: list[int], room: int) -> None:
        start = len(text)
        for drafter in self.drafters:
            drafter.steps = 0
        draft = auto.propose(text, max(0, min(auto.length, room)), POLICY)
        accepted = next((i for i, t in enumerate(draft.tokens) if t < 0), len(draft.tokens))
        text += range(start, start + accepted + 1)
        drafting = 0.0
        for drafter in self.drafters:
            if isinstance(drafter, Model) and drafter.steps:
                feeding = drafter.feed * drafter.missed if drafter.missed > 4 else 0.0
                drafting += drafter.step * drafter.steps + feeding
                drafter.read = min(drafter.read, start + accepted)
        stats = RoundStats(
            len(draft.tokens),
            accepted,
            emitted=accepted + 1,
            draft_seconds=self.noisy(drafting),
            verify_seconds=self.noisy(at(self.step, start) + self.row * len(draft.tokens)),
            drafter=draft.by,
        )
        auto.observe(stats)
        self.rounds.append((start, stats))

    def noisy(self, seconds: float) -> float:
        stall = 5 if self.random.random() < self.stalls else 1
        return seconds * stall * max(0.5, self.random.gauss(1, self.noise))

    @property
    def seconds(self) -> float:
        return sum(s.draft_seconds + s.verify_seconds for _, s in self.rounds)
