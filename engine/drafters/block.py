"""Drafts a block at once with a head that reads the target's hidden states (DFlash)."""

from collections.abc import Sequence

import torch

from engine.drafters.states import StateDrafter
from engine.heads.dflash import DFlashHead
from engine.heads.layer import STEP
from engine.sampling import Distribution, Policy, choose
from engine.verify import Draft


class BlockDrafter(StateDrafter):
    """All guesses of a round from one pass, each drawn by itself with the noise of its place."""

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
        drafted: list[int] = []
        rows: list[Distribution] = []
        for logits in self._head.block(tokens[-1], len(tokens) - 1)[:limit]:
            # it is computed already: only what does not pay for being verified is left out
            if policy.paced(limit, logits) <= len(drafted):
                break
            history = [*tokens, *drafted]
            (row,) = policy.distributions(logits[None], history)
            drafted.append(choose(row, policy.noise, len(history)))
            rows.append(row)
            if drafted[-1] in policy.ends:
                break
        return Draft(tuple(drafted), tuple(rows))
