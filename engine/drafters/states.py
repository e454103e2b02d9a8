"""What drafters have in common that read the target's hidden states."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch

from engine.errors import Reason
from engine.heads.layer import STEP
from engine.sampling import Policy
from engine.states import Listener
from engine.verify import Draft


class Heard(Protocol):
    """A head of any kind: `places` are the states that it reads."""

    name: str
    default_length: int
    places: tuple[int, ...]


class Reader(Heard, Protocol):
    """One that holds what it has read: `known` counts the tokens that it has rows for, `length`
    what it holds."""

    known: int

    @property
    def length(self) -> int: ...

    def crop_to(self, length: int) -> None: ...

    def empty(self) -> None: ...

    def joined(self, states: torch.Tensor) -> torch.Tensor:
        """The target's states [rows, places x width] as the head keeps and reads them."""
        ...


class Hearer(ABC):
    """Drafts with a head, and is told the states that it reads."""

    pause: Reason | None = None

    def __init__(self, head: Heard) -> None:
        self.name, self.default_length, self.places = head.name, head.default_length, head.places

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is to be told the target's states."""
        return (self,)

    @abstractmethod
    def hear(self, start: int, states: torch.Tensor) -> None:
        """The states [rows, places x width] of the target's tokens from `start` on."""


class StateDrafter(Hearer):
    """A head, and the states of the target for as far as the text stands.

    The target tells the states of every token that it is fed (`LanguageModel.tell`). They are kept
    as the head reads them, so that a text that is taken back never lacks any. What was made of
    guesses is taken back at once: the head only ever holds true states. What the target was fed
    before the head came is missing: then the head begins where it came.
    """

    # how many of the states held cannot be read yet, for want of the token behind them
    behind = 0

    def __init__(self, reader: Reader, device: torch.device) -> None:
        self._reader, self._device = reader, device
        super().__init__(reader)
        self.reset()

    def reset(self) -> None:
        self._reader.empty()
        # the states of the tokens from `_first` on; there is room for more
        self._first = self._held = 0
        self._states: torch.Tensor | None = None

    @torch.inference_mode()
    def hear(self, start: int, states: torch.Tensor) -> None:
        """The states [rows, places x width] of the target's tokens from `start` on."""
        new = self._reader.joined(states.to(self._device))
        if not self._first <= start <= self._first + self._held:
            self._reader.empty()
            self._first, self._held = start, 0
        here = start - self._first
        self._reader.crop_to(here)
        self._held = here + len(new)
        if self._states is None:
            self._states = new[:0]
        more = -(-self._held // STEP) * STEP - len(self._states)
        if more > 0:
            room = new.new_zeros(more, new.shape[1])
            self._states = torch.cat([self._states, room])
        self._states[here : self._held] = new

    def prefill(self, tokens: Sequence[int]) -> None:
        if self._can_follow(tokens) and self._held:
            self._follow(tokens)

    @torch.inference_mode()
    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        end = self._first + self._held
        if end < len(tokens) - 1 or end <= self._first:
            return Draft()
        self._follow(tokens)
        try:
            return self._draft(tokens, limit, policy)
        finally:
            self._reader.crop_to(len(tokens) - 1 - self._first)

    def settle(self, length: int) -> None:
        self._held = max(0, min(self._held, length - self._first))
        self._reader.crop_to(self._held - self.behind)

    @abstractmethod
    def _follow(self, tokens: Sequence[int]) -> None:
        """Let the head take in what it lacks of `tokens`, as far as there are states."""

    @abstractmethod
    def _draft(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        """At most `limit` guesses, the head having taken in all."""

    def _read(self, start: int, stop: int) -> torch.Tensor:
        """The states of the positions from `start` to `stop`."""
        assert self._states is not None
        return self._states[start - self._first : stop - self._first]

    def _ids(self, tokens: Sequence[int]) -> torch.Tensor:
        return torch.tensor(tokens, dtype=torch.long, device=self._device)

    def _can_follow(self, tokens: Sequence[int]) -> bool:
        """Whether the head has rows for `tokens`; `pause` says why not."""
        new = tokens[self._first + self._reader.length :]
        lacking = any(token >= self._reader.known for token in new)
        self.pause = (
            Reason(
                "draft_lacks_token",
                "Drafting is paused: the text holds a token that the draft does not have.",
            )
            if lacking
            else None
        )
        return not lacking
