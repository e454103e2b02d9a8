"""Keeps a chat going when its drafter breaks."""

from collections.abc import Sequence

from engine.drafters.base import Drafter, NoDrafter
from engine.errors import Cancelled, Reason
from engine.sampling import Policy
from engine.verify import Draft


class CarefulDrafter:
    """Another drafter, until it fails; then none, and `pause` says why.

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

    def prefill(self, tokens: Sequence[int]) -> None:
        try:
            self._drafter.prefill(tokens)
        except Cancelled:
            raise
        except Exception as error:
            self._give_up(error)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        try:
            return self._drafter.propose(tokens, limit, policy)
        except Cancelled:
            raise
        except Exception as error:
            self._give_up(error)
            return Draft()

    def settle(self, length: int) -> None:
        self._drafter.settle(length)

    def reset(self) -> None:
        self._drafter.reset()

    def _give_up(self, error: Exception) -> None:
        self._failure = Reason(
            "draft_failed",
            "The draft failed and is switched off; the answer goes on without it: {error}",
            {"error": str(error)[:200] or type(error).__name__},
        )
        self._drafter.reset()
        self._drafter = NoDrafter()
