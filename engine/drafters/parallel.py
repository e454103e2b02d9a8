"""Drafts with a smaller model that was trained to guess several tokens in one pass (PARD).

An et al. 2025: behind the text it reads masks, and each mask's row tells the token behind it.
"""

from collections.abc import Sequence
from typing import Any

from engine.drafters.small_model import SmallModelDrafter
from engine.library.head_config import bad_setting
from engine.model import LanguageModel
from engine.sampling import Distribution, Policy, choose
from engine.verify import Draft

KEY = "pard_token"  # in its config.json: the token that stands for a mask


class ParallelDrafter(SmallModelDrafter):
    """A draft model whose guesses cost one pass together. Its cache never keeps a mask."""

    name = "parallel"

    def __init__(self, model: LanguageModel) -> None:
        """Raises DraftRefused where its mask is none of its tokens."""
        super().__init__(model)
        mask: Any = mask_of(model)
        if type(mask) is not int or not 0 <= mask < model.vocab_size:
            raise bad_setting(KEY, str(mask)[:20], f"0 to {model.vocab_size - 1}")
        self._mask = mask

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        if limit < 1 or not self._can_follow(tokens):
            return Draft()
        limit = min(limit, self.model.context - len(tokens))
        fed = [*tokens[self.model.cache.length :], *[self._mask] * (limit - 1)]
        try:
            logits = self.model.forward(fed, limit)
        finally:
            self.model.cache.crop_to(len(tokens))
        drafted: list[int] = []
        rows: list[Distribution] = []
        for said in logits:
            limit = policy.paced(limit, said)
            if len(drafted) >= limit or policy.ends.intersection(drafted[-1:]):
                break
            history = [*tokens, *drafted]
            (row,) = policy.distributions(said[None], history)
            drafted.append(choose(row, policy.noise, len(history)))
            rows.append(row)
        return Draft(tuple(drafted), tuple(rows))


def mask_of(model: LanguageModel) -> Any:
    """What a model's settings say of its mask; None for a model that drafts token by token."""
    return getattr(model.network.config, KEY, None)
