"""Drafts with a head that reads the target's hidden states, one token after the other."""

from collections.abc import Sequence

import torch

from engine.drafters.states import StateDrafter
from engine.heads.layer import STEP
from engine.heads.opening import Head
from engine.sampling import Distribution, Policy, choose
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
        drafted: list[int] = []
        rows: list[Distribution] = []
        out = self._out
        assert out is not None
        while len(drafted) < limit and not policy.ends.intersection(drafted[-1:]):
            history = [*tokens, *drafted]
            if drafted:
                if drafted[-1] >= self._head.known:
                    break
                out = self._head(out, self._ids(drafted[-1:]), len(history) - 2)
            logits = self._head.logits(out)
            limit = policy.paced(limit, logits[-1])
            if len(drafted) >= limit:
                break
            (row,) = policy.distributions(logits, history)
            drafted.append(choose(row, policy.noise, len(history)))
            rows.append(row)
        return Draft(tuple(drafted), tuple(rows))

    @torch.inference_mode()
    def _follow(self, tokens: Sequence[int]) -> None:
        end = min(len(tokens) - 1, self._first + self._held)
        # the last one is asked again: a round may have been broken off
        self._head.crop_to(end - 1 - self._first)
        while (done := self._first + self._head.length) < end:
            stop = min(end, done + STEP)
            out = self._head(self._read(done, stop), self._ids(tokens[done + 1 : stop + 1]), done)
            self._out = out[-1:]
