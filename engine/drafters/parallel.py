"""Drafts with what was trained to guess several tokens in one pass: masks stand behind the text,
and the row of each tells the token behind it.

A smaller model (PARD, An et al. 2025), or a head that reads the target's hidden states (P-EAGLE).
"""

from collections.abc import Sequence

import torch

from engine.drafters.base import AtOnce
from engine.drafters.small_model import SmallModelDrafter
from engine.drafters.states import StateDrafter
from engine.heads.eagle3 import PEagleHead
from engine.heads.layer import STEP
from engine.model import LanguageModel
from engine.sampling import Policy
from engine.verify import Draft

# What a round adds to the text is no more, as a rule, and goes into the pass of the guesses.
ROUND = 8


class ParallelDrafter(AtOnce, SmallModelDrafter):
    """A draft model, `mask` being one of its tokens. Its cache never keeps a mask."""

    name = "parallel"

    def __init__(self, model: LanguageModel, mask: int) -> None:
        super().__init__(model)
        self._mask = mask

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        limit = min(limit, self.model.context - len(tokens))
        fed = [*tokens[self.model.cache.length :], *[self._mask] * (limit - 1)]
        try:
            said = self.model.forward(fed, limit)
        finally:
            self.model.cache.crop_to(len(tokens))
        return self._drawn(said, tokens, limit, policy)


class ParallelHeadDrafter(AtOnce, StateDrafter):
    """A head that pairs states with tokens as EAGLE-3 does. It never keeps a mask either."""

    behind = 1

    def __init__(self, head: PEagleHead, device: torch.device) -> None:
        self._head = head
        super().__init__(head, device)

    @torch.inference_mode()
    def _follow(self, tokens: Sequence[int]) -> None:
        end = min(len(tokens) - 1, self._first + self._held)
        # the last one is asked again: a round may have been broken off
        self._head.crop_to(end - 1 - self._first)
        while (done := self._first + self._head.length) < end - ROUND:
            stop = min(end - ROUND, done + STEP)
            self._head(self._read(done, stop), self._ids(tokens[done + 1 : stop + 1]), done)

    def _draft(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        done = self._first + self._head.length
        x, ids = self._read(done, len(tokens) - 1), self._ids(tokens[done + 1 :])
        return self._drawn(self._head.block(x, ids, done, limit), tokens, limit, policy)
