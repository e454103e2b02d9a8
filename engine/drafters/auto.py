"""Drafts with whichever of several drafters is expected to be the fastest, round by round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.api import RoundStats
from engine.controller import Automatic, Offer
from engine.drafters.base import AtOnce, Drafter, Lookup
from engine.drafters.careful import CarefulDrafter
from engine.errors import Reason
from engine.mismatch import Mismatch
from engine.sampling import Policy
from engine.states import Listener
from engine.verify import Draft


@dataclass(frozen=True)
class _Found:
    """What a lookup would have drafted behind the first `position` tokens."""

    position: int
    draft: Draft


class Auto:
    """Several drafters, none or one of which drafts a round.

    Lookups are asked every round, for asking them costs nothing, and judged by the text that
    comes, whether their drafts were taken or not. The others compute only when they are taken, and
    are fed what they missed then. Decides nothing: its `automatic` does, which is told what there
    is to choose from.
    """

    name = "auto"

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = {drafter.name: CarefulDrafter(drafter) for drafter in drafters}
        self._lookups = [d.name for d in drafters if isinstance(d, Lookup)]
        self._at_once = {d.name for d in drafters if isinstance(d, AtOnce)}
        self.mismatch = Mismatch(d.name for d in drafters if not isinstance(d, Lookup))
        self.automatic = Automatic({d.name: d.default_length for d in drafters})
        self.default_length = max((d.default_length for d in drafters), default=0)
        self._read = dict.fromkeys(self._drafters, 0)
        self._found: dict[str, _Found] = {}

    @property
    def pause(self) -> Reason | None:
        """Why one of them proposes nothing, or the only one is left out."""
        said = (drafter.pause for drafter in self._drafters.values())
        return next((pause for pause in said if pause is not None), self.automatic.pause)

    @property
    def length(self) -> int:
        """Tokens to draft at most in the next round."""
        return self.automatic.length

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is to be told the target's states."""
        return tuple(x for drafter in self._drafters.values() for x in drafter.listeners)

    def begin(self, length: int | None) -> None:
        """An answer begins, to be drafted `length` tokens a round; None: as many as pay."""
        self.automatic.begin(length)
        self._found.clear()

    def prefill(self, tokens: Sequence[int]) -> None:
        for name, drafter in self._drafters.items():
            drafter.prefill(tokens)
            self._read[name] = len(tokens) + 1

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        self._judge(tokens)
        drafts = {name: self._look_up(name, tokens, limit, policy) for name in self._lookups}
        offers = [self._offer(name, drafts, tokens, limit) for name in self._drafters]
        choice = self.automatic.choose(offers, len(tokens))
        if choice is None:
            return Draft()
        if choice.name in drafts:
            draft = drafts[choice.name]
            return replace(draft, tokens=draft.tokens[: choice.length], by=choice.name)
        self._read[choice.name] = len(tokens)
        paced = replace(policy, pace=self.automatic.pace)
        draft = self._drafters[choice.name].propose(tokens, choice.length, paced)
        return replace(draft, by=choice.name)

    def observe(self, stats: RoundStats) -> None:
        """Take in what became of a round."""
        self.automatic.observe(stats)
        self.mismatch.observe(stats)

    def settle(self, length: int) -> None:
        for drafter in self._drafters.values():
            drafter.settle(length)

    def reset(self) -> None:
        for drafter in self._drafters.values():
            drafter.reset()
        self.mismatch.forget()
        self._found.clear()

    def _look_up(self, name: str, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        draft = self._drafters[name].propose(tokens, self._most(name, limit), policy)
        if draft.tokens:
            self._found[name] = _Found(len(tokens), draft)
        return draft

    def _offer(
        self, name: str, drafts: dict[str, Draft], tokens: Sequence[int], limit: int
    ) -> Offer:
        if name in drafts:
            draft = drafts[name]
            return Offer(name, len(draft.tokens), found=True, match=draft.match)
        # one that pauses says so when it is asked; it is asked again with the next answer
        most = 0 if self._drafters[name].pause is not None else self._most(name, limit)
        missed = len(tokens) - self._read[name]
        return Offer(name, most, missed=missed, at_once=name in self._at_once)

    def _most(self, name: str, limit: int) -> int:
        return min(limit, self.automatic.longest(name))

    def _judge(self, tokens: Sequence[int]) -> None:
        """Compare what was found with the text that came."""
        for name, found in self._found.items():
            came = tokens[found.position :]
            pairs = list(zip(found.draft.tokens, came, strict=False))
            right = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
            judged = min(right + 1, len(pairs))
            self.automatic.judge(name, found.draft.match, right, judged)
        self._found.clear()
