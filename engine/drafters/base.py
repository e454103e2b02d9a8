"""What the decode loop asks of a drafter."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from engine.errors import Reason
from engine.sampling import Distribution, Policy, choose
from engine.verify import Draft


class Drafter(Protocol):
    """A way to guess the next tokens.

    Whatever it has stored of the history is a prefix of the loop's `tokens[:-1]`; it is fed what
    it lacks, never told. A drafter that reads the target's hidden states is given the target
    when it is built. `default_length` is the longest that an automatic draft may be, in tokens.
    `pause` says why it proposes nothing at present, if there is more to it than having no guess.
    """

    name: str
    default_length: int

    @property
    def pause(self) -> Reason | None: ...

    def prefill(self, tokens: Sequence[int]) -> None:
        """Take in `tokens`, all of them committed, before the first round."""
        ...

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        """At most `limit` tokens to follow `tokens`; none is always right."""
        ...

    def settle(self, length: int) -> None:
        """Forget what goes beyond the first `length` tokens. May be repeated."""
        ...

    def reset(self) -> None:
        """Forget every table learned, as if newly built."""
        ...


class Lookup:
    """A drafter that looks up and computes nothing: asking it costs nothing, and what it found
    is one-hot. It says by how long a match it found it (`Draft.match`)."""


class AtOnce:
    """A drafter that computes all guesses of a round in one pass: asking it for more takes no
    longer. Of what is computed already, only what does not pay for being verified is left out."""

    def _drawn(
        self, said: torch.Tensor, tokens: Sequence[int], limit: int, policy: Policy
    ) -> Draft:
        """At most `limit` guesses, each from its row of `said` [rows, vocabulary]."""
        known = len(tokens)
        return drawn(
            tokens, min(limit, len(said)), policy, lambda text: said[len(text) - known][None]
        )


def drawn(
    tokens: Sequence[int],
    limit: int,
    policy: Policy,
    told: Callable[[list[int]], torch.Tensor | None],
) -> Draft:
    """At most `limit` guesses behind `tokens`, one after the other, each with the noise of its
    place. `told` gives the logits [1, vocabulary] behind a text; None: it cannot go on.

    How long the draft may become is asked before a token is drawn (methods for drafting, section
    3, the drop rule).
    """
    drafted: list[int] = []
    rows: list[Distribution] = []
    while len(drafted) < limit and not policy.ends.intersection(drafted[-1:]):
        text = [*tokens, *drafted]
        logits = told(text)
        if logits is None:
            break
        limit = policy.paced(limit, logits[-1])
        if len(drafted) >= limit:
            break
        (row,) = policy.distributions(logits, text)
        drafted.append(choose(row, policy.noise, len(text)))
        rows.append(row)
    return Draft(tuple(drafted), tuple(rows))


class NoDrafter:
    """Plain decoding: an empty draft, every round."""

    name = "none"
    default_length = 0
    pause: Reason | None = None

    def prefill(self, tokens: Sequence[int]) -> None:
        pass

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        return Draft()

    def settle(self, length: int) -> None:
        pass

    def reset(self) -> None:
        pass
