"""Drafts with a head that reads the target's hidden states, one token after the other."""

from collections.abc import Sequence

import torch

from engine.drafters.base import drawn
from engine.drafters.states import StateDrafter
from engine.heads.layer import STEP
from engine.heads.opening import Head
from engine.sampling import Policy
from engine.verify import Draft


class HeadDrafter(StateDrafter):
    """A chain of guesses (EAGLE-3 or MTP): the state of position t goes with the token at t + 1,
    and the head's own output stands for the states of guesses."""

    behind = 1

    def __init__(self, head: Head, device: torch.device) -> None:
        self._head = head
        self._out: torch.Tensor | None = None
        super().__init__(head, device)

    def _draft(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        out = self._out

        def told(text: list[int]) -> torch.Tensor | None:
            nonlocal out
            assert out is not None
            if len(text) > len(tokens):
                if text[-1] >= self._head.known:
                    return None
                out = self._head(out, self._ids(text[-1:]), len(text) - 2)
            return self._head.logits(out)

        return drawn(tokens, limit, policy, told)

    @torch.inference_mode()
    def _follow(self, tokens: Sequence[int]) -> None:
        end = min(len(tokens) - 1, self._first + self._held)
        # the last one is asked again: a round may have been broken off
        self._head.crop_to(end - 1 - self._first)
        while (done := self._first + self._head.length) < end:
            stop = min(end, done + STEP)
            out = self._head(self._read(done, stop), self._ids(tokens[done + 1 : stop + 1]), done)
            self._out = out[-1:]
