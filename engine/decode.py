"""The token loop: draft, verify, keep. Knows no text, no stop and no conversation."""

import time
from collections.abc import Generator

from engine.api import RoundStats
from engine.controller import Controller
from engine.drafters.base import Drafter
from engine.model import LanguageModel
from engine.sampling import Policy
from engine.verify import accept


def decode(
    target: LanguageModel,
    drafter: Drafter,
    controller: Controller,
    tokens: list[int],
    policy: Policy,
    *,
    limit: int,
) -> Generator[tuple[list[int], RoundStats]]:
    """Extend `tokens` in place up to `limit` of them; yield (new ids, stats) per round.

    When a round starts, and again when the generator ends in any way, every cache holds a prefix
    of tokens[:-1]. A model is always fed what its cache lacks, so full acceptance is no special
    case. Raises what the models raise: Cancelled, torch's out-of-memory error.
    """

    def settle() -> None:
        target.cache.crop_to(len(tokens) - 1)
        drafter.settle(len(tokens) - 1)

    try:
        while len(tokens) < limit:
            room = limit - len(tokens) - 1
            began = time.perf_counter()
            draft = drafter.propose(tokens, min(controller.length, room), policy)
            fed = draft.tokens[: _known(draft.tokens, target.vocab_size)]
            drafted = time.perf_counter()
            logits = target.forward([*tokens[target.cache.length :], *fed], rows=len(fed) + 1)
            p = policy.distributions(logits, tokens, fed)
            new = accept(p, draft, policy, position=len(tokens))
            tokens.extend(new)
            settle()
            stats = RoundStats(
                drafted=len(draft.tokens),
                accepted=len(new) - 1,
                emitted=len(new),
                draft_seconds=drafted - began,
                verify_seconds=time.perf_counter() - drafted,
                drafter=(draft.by or drafter.name) if draft.tokens else "",
            )
            controller.observe(stats)
            yield new, stats
    finally:
        settle()


def _known(draft: tuple[int, ...], vocab_size: int) -> int:
    """How many leading drafts the target has a row for; the others are never fed to it."""
    return next((i for i, t in enumerate(draft) if not 0 <= t < vocab_size), len(draft))
