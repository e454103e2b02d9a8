"""Drafts with an assistant that reads the target's keys and values (Gemma 4)."""

from collections.abc import Sequence

import torch

from engine.errors import Reason
from engine.heads.assistant import AssistantHead
from engine.model import LanguageModel
from engine.sampling import Distribution, Policy, choose
from engine.states import Listener
from engine.verify import Draft


class AssistantDrafter:
    """A chain of guesses that begins with the target's last state and all that it holds.

    It keeps nothing but the states of the target's last pass: where the text was cut back further,
    it has to wait for the next one.
    """

    pause: Reason | None = None

    def __init__(self, head: AssistantHead, target: LanguageModel) -> None:
        self._head, self._target = head, target
        self.name, self.default_length = head.name, head.default_length
        self.reset()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is to be told the target's states."""
        return (self,)

    @property
    def places(self) -> tuple[int, ...]:
        """Which of them."""
        return self._head.places

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
        state = self._states[place : place + 1]
        drafted: list[int] = []
        rows: list[Distribution] = []
        while len(drafted) < limit and not policy.ends.intersection(drafted[-1:]):
            history = [*tokens, *drafted]
            out = self._head(state, history[-1], last, held)
            logits = self._head.logits(out)
            limit = policy.paced(limit, logits[-1])
            if len(drafted) >= limit:
                break
            (row,) = policy.distributions(logits, history)
            drafted.append(choose(row, policy.noise, len(history)))
            rows.append(row)
            state = self._head.next_state(out)
        return Draft(tuple(drafted), tuple(rows))

    def settle(self, length: int) -> None:
        self._states = self._states[: max(0, length - self._first)]
