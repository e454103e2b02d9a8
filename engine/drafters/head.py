"""Drafts with a head that reads the target's hidden states."""

from collections.abc import Sequence

import torch

from engine.errors import Reason
from engine.heads.layer import STEP
from engine.heads.opening import Head
from engine.sampling import Distribution, Policy, choose
from engine.states import Listener
from engine.verify import Draft


class HeadDrafter:
    """A chain of guesses by a head, one token after the other (EAGLE-3 or MTP).

    The target tells it the states of every token that it is fed (`LanguageModel.tell`). Those are
    kept, as the head reads them, for as far as the text stands, so that a text that is taken back
    never lacks any. The state of position t goes with the token at t + 1; what was made of guessed
    states is taken back at once, so the head only ever holds true pairs. What the target was fed
    before the head came is missing: then the head begins where it came.
    """

    def __init__(self, head: Head, device: torch.device) -> None:
        self._head, self._device = head, device
        self.name, self.default_length = head.name, head.default_length
        self.pause: Reason | None = None
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
        self._head.empty()
        # the states of the tokens from `_first` on; there is room for more
        self._first = self._held = 0
        self._states: torch.Tensor | None = None

    @torch.inference_mode()
    def hear(self, start: int, states: torch.Tensor) -> None:
        """The states [rows, places x width] of the target's tokens from `start` on."""
        new = self._head.joined(states.to(self._device))
        if not self._first <= start <= self._first + self._held:
            self._head.empty()
            self._first, self._held = start, 0
        here = start - self._first
        self._head.crop_to(here)
        self._held = here + len(new)
        if self._states is None:
            self._states = new[:0]
        more = -(-self._held // STEP) * STEP - len(self._states)
        if more > 0:
            room = new.new_zeros(more, new.shape[1])
            self._states = torch.cat([self._states, room])
        self._states[here : self._held] = new

    def prefill(self, tokens: Sequence[int]) -> None:
        if self._can_follow(tokens):
            self._follow(tokens)

    @torch.inference_mode()
    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        out = self._follow(tokens)
        if out is None:
            return Draft()
        true = self._head.length
        try:
            return self._draft(out, tokens, limit, policy)
        finally:
            self._head.crop_to(true)

    def settle(self, length: int) -> None:
        self._held = max(0, min(self._held, length - self._first))
        # the last pair needs the token behind its state
        self._head.crop_to(self._held - 1)

    def _draft(self, out: torch.Tensor, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        drafted: list[int] = []
        rows: list[Distribution] = []
        while True:
            history = [*tokens, *drafted]
            (row,) = policy.distributions(self._head.logits(out), history)
            drafted.append(choose(row, policy.noise, len(history)))
            rows.append(row)
            if len(drafted) == limit or drafted[-1] in policy.ends:
                return Draft(tuple(drafted), tuple(rows))
            if drafted[-1] >= self._head.known:
                return Draft(tuple(drafted), tuple(rows))
            out = self._head(out, self._ids(drafted[-1:]), len(history) - 1)

    @torch.inference_mode()
    def _follow(self, tokens: Sequence[int]) -> torch.Tensor | None:
        """Take in what the head lacks of `tokens`; what stands for the state behind the last one.

        None where there is no state before it.
        """
        end = min(len(tokens) - 1, self._first + self._held)
        if end < len(tokens) - 1 or end <= self._first or self._states is None:
            return None
        # the last one is asked again: a round may have been broken off
        self._head.crop_to(end - 1 - self._first)
        out: torch.Tensor | None = None
        while (done := self._first + self._head.length) < end:
            stop = min(end, done + STEP)
            x = self._states[done - self._first : stop - self._first]
            out = self._head(x, self._ids(tokens[done + 1 : stop + 1]), done)
        return None if out is None else out[-1:]

    def _ids(self, tokens: Sequence[int]) -> torch.Tensor:
        return torch.tensor(tokens, dtype=torch.long, device=self._device)

    def _can_follow(self, tokens: Sequence[int]) -> bool:
        """Whether the head has rows for `tokens`; `pause` says why not."""
        new = tokens[self._first + self._head.length :]
        lacking = any(token >= self._head.known for token in new)
        self.pause = (
            Reason(
                "draft_lacks_token",
                "Drafting is paused: the text holds a token that the draft does not have.",
            )
            if lacking
            else None
        )
        return not lacking
