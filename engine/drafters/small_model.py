"""Drafts with a smaller model of the same vocabulary."""

from collections.abc import Sequence

from engine.drafters.base import drawn
from engine.errors import Reason
from engine.model import LanguageModel
from engine.sampling import Policy
from engine.verify import Draft


class SmallModelDrafter:
    """A second language model, fed the target's ids, with a cache of its own.

    It draws with the target's settings and the target's noise, so that a draft is right as often
    as the two models allow. Its context may be smaller than the target's, its embedding may lack
    ids that the target has: drafting pauses then, and the answer goes on.
    """

    name = "model"
    default_length = 7  # with the target's own token the 8 rows of a block

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.pause: Reason | None = None

    def reset(self) -> None:
        self.model.cache.empty()

    def prefill(self, tokens: Sequence[int]) -> None:
        if self._can_follow(tokens):
            self.model.feed(tokens[self.model.cache.length :])

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        limit = min(limit, self.model.context - len(tokens))
        model = self.model
        return drawn(tokens, limit, policy, lambda text: model.forward(text[model.cache.length :]))

    def settle(self, length: int) -> None:
        self.model.cache.crop_to(length)

    def _can_follow(self, tokens: Sequence[int]) -> bool:
        """Whether this model can be fed `tokens` and draft; `pause` says why not."""
        if len(tokens) >= self.model.context:
            self.pause = Reason(
                "draft_context_full",
                "Drafting is paused: the chat is longer than the draft's context of "
                "{context} tokens.",
                {"context": self.model.context},
            )
        elif any(t >= self.model.vocab_size for t in tokens[self.model.cache.length :]):
            self.pause = Reason(
                "draft_lacks_token",
                "Drafting is paused: the text holds a token that the draft does not have.",
            )
        else:
            self.pause = None
        return self.pause is None
