"""Keeps a chat going when its drafter breaks."""

import traceback
from collections.abc import Sequence

import torch

from engine.devices import release
from engine.drafters.base import Drafter
from engine.errors import Cancelled, Reason
from engine.sampling import Policy
from engine.states import Listener
from engine.verify import Draft


class CarefulDrafter:
    """Another drafter; when it fails it drafts nothing until the next answer.

    A draft is never needed for the answer, so no failure of one may end it.
    """

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter
        self._failure: Reason | None = None
        self.name = drafter.name
        self.default_length = drafter.default_length

    @property
    def pause(self) -> Reason | None:
        return self._failure or self._drafter.pause

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is to be told the target's states."""
        told: tuple[Listener, ...] = getattr(self._drafter, "listeners", ())
        return tuple(_Careful(listener, self) for listener in told)

    def prefill(self, tokens: Sequence[int]) -> None:
        self._failure = None
        try:
            self._drafter.prefill(tokens)
        except Cancelled:
            raise
        except Exception as error:
            self._give_up(error)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if self._failure is not None:
            return Draft()
        try:
            return self._drafter.propose(tokens, limit, policy)
        except Cancelled:
            raise
        except Exception as error:
            self._give_up(error)
            return Draft()

    def hear(self, listener: Listener, start: int, states: torch.Tensor) -> None:
        """Let `listener` hear, in the middle of a pass of the target."""
        if self._failure is not None:
            return
        try:
            listener.hear(start, states)
        except Exception as error:
            self._give_up(error)

    def settle(self, length: int) -> None:
        self._drafter.settle(length)

    def reset(self) -> None:
        self._drafter.reset()

    def _give_up(self, error: Exception) -> None:
        self._failure = Reason(
            "draft_failed",
            "The draft failed; this answer goes on without it: {error}",
            {"error": str(error)[:200] or type(error).__name__},
        )
        # the frames of the error may hold tensors of the memory that ran out
        traceback.clear_frames(error.__traceback__)
        self._drafter.reset()
        release()


class _Careful:
    """A listener that does not end the pass that it is told of."""

    def __init__(self, listener: Listener, drafter: CarefulDrafter) -> None:
        self._listener, self._drafter = listener, drafter
        self.places = listener.places

    def hear(self, start: int, states: torch.Tensor) -> None:
        self._drafter.hear(self._listener, start, states)
