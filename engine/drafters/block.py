"""Drafts a block at once with a head that reads the target's hidden states (DFlash)."""

from collections.abc import Sequence

import torch

from engine.drafters.base import AtOnce
from engine.drafters.states import StateDrafter
from engine.heads.dflash import DFlashHead
from engine.heads.layer import STEP
from engine.sampling import Policy
from engine.verify import Draft


class BlockDrafter(AtOnce, StateDrafter):
    """All guesses of a round are the rows of a block."""

    def __init__(self, head: DFlashHead, device: torch.device) -> None:
        self._head = head
        super().__init__(head, device)

    @torch.inference_mode()
    def _follow(self, tokens: Sequence[int]) -> None:
        end = min(len(tokens) - 1, self._first + self._held)
        while (done := self._first + self._head.length) < end:
            stop = min(end, done + STEP)
            self._head.take(self._read(done, stop), done)

    def _draft(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        return self._drawn(self._head.block(tokens[-1], len(tokens) - 1), tokens, limit, policy)
