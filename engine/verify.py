"""The rules that accept or reject drafted tokens. Both are exact; neither knows a model.

`coupled` gives the same text with any draft, `rejection` the same distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.sampling import Distribution, Noise, Policy, Stream, choose, one_hot


@dataclass(frozen=True)
class Draft:
    """Tokens proposed for a round; `rows[i]` is what token i was drawn from (None: one-hot).

    `match`: by how many tokens at the end of the text they were looked up; `by` names the drafter,
    where it is one of several.
    """

    tokens: tuple[int, ...] = ()
    rows: tuple[Distribution, ...] | None = None
    match: int = 0
    by: str = ""

    def q(self, i: int) -> Distribution:
        """The distribution token i was drawn from."""
        return self.rows[i] if self.rows is not None else one_hot(self.tokens[i])


def accept(p: Sequence[Distribution], draft: Draft, policy: Policy, position: int) -> list[int]:
    """The accepted tokens and one of the target's own: 1 to len(draft) + 1 ids.

    `p[i]` is the target's distribution at `position` + i. There are len(draft) + 1 rows, or fewer
    where the target has no row for a drafted id: the last one is then that draft's, and rejects it.
    """
    rule = _by_ratio if policy.verification == "rejection" else _by_noise
    return rule(p, draft, policy.noise, position)


def _by_noise(p: Sequence[Distribution], draft: Draft, noise: Noise, position: int) -> list[int]:
    """Emit what the target draws with noise keyed by position; a draft is right if it is that."""
    new: list[int] = []
    for i, row in enumerate(p):
        new.append(choose(row, noise, position + i))
        if i == len(draft.tokens) or new[-1] != draft.tokens[i]:
            break
    return new


def _by_ratio(p: Sequence[Distribution], draft: Draft, noise: Noise, position: int) -> list[int]:
    """Keep d with probability min(1, p/q), else draw from max(p - q, 0), renormalised.

    Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding",
    algorithm 1.
    """
    new: list[int] = []
    for i, d in enumerate(draft.tokens):
        q = draft.q(i)
        if noise.uniform(position + i) * q.of(d) < p[i].of(d):
            new.append(d)
            continue
        new.append(choose(residual(p[i], q), noise, position + i, Stream.RESIDUAL))
        return new
    end = len(draft.tokens)
    new.append(choose(p[end], noise, position + end, Stream.RESIDUAL))
    return new


def residual(p: Distribution, q: Distribution) -> Distribution:
    """max(p - q, 0) renormalised; p itself where the two are equal up to rounding."""
    left = np.maximum(p.probs - np.array([q.of(int(x)) for x in p.ids]), 0.0)
    alive = left > 0
    if not alive.any():
        return p
    return Distribution(p.ids[alive], left[alive] / left[alive].sum())
