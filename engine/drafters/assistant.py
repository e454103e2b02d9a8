"""Drafts with an assistant that reads the target's keys and values (Gemma 4)."""

from collections.abc import Sequence

import torch

from engine.drafters.base import drawn
from engine.drafters.states import Hearer
from engine.heads.assistant import AssistantHead
from engine.model import LanguageModel
from engine.sampling import Policy
from engine.verify import Draft


class AssistantDrafter(Hearer):
    """A chain of guesses that begins with the target's last state and all that it holds.

    It keeps nothing but the states of the target's last pass: where the text was cut back further,
    it has to wait for the next one.
    """

    def __init__(self, head: AssistantHead, target: LanguageModel) -> None:
        super().__init__(head)
        self._head, self._target = head, target
        self.reset()

    def reset(self) -> None:
        # of the tokens from `_first` on
        self._first, self._states = 0, torch.empty(0)

    def hear(self, start: int, states: torch.Tensor) -> None:
        """The states [rows, width] of the target's tokens from `start` on."""
        self._first, self._states = start, states

    def prefill(self, tokens: Sequence[int]) -> None:
        pass

    @torch.inference_mode()
    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        last = len(tokens) - 1
        place = last - 1 - self._first
        held = self._head.held() if self._target.cache.length == last else None
        if held is None or not 0 <= place < len(self._states):
            return Draft()
        out: torch.Tensor | None = None

        def told(text: list[int]) -> torch.Tensor:
            nonlocal out
            true = self._states[place : place + 1]
            state = true if out is None else self._head.next_state(out)
            out = self._head(state, text[-1], last, held)
            return self._head.logits(out)

        return drawn(tokens, limit, policy, told)

    def settle(self, length: int) -> None:
        self._states = self._states[: max(0, length - self._first)]
