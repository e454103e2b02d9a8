"""Drafts what followed the last time the text ended like this (prompt lookup).

Needs no model, and about 0.8 kB of memory a token. Saxena 2023, "Prompt Lookup Decoding"; the
index is ours: it grows by the new tokens only, so a round costs the same at any length of the chat.
"""

from collections.abc import Sequence

from engine.drafters.base import Lookup
from engine.errors import Reason
from engine.sampling import Policy
from engine.verify import Draft

# Matches of 2 to 5 tokens: one token says too little, more than 5 adds no hits (vLLM's defaults
# and transformers' lie in this range).
LONGEST, SHORTEST = 5, 2
# Tokens up to which a match is measured: the longer, the more likely it goes on.
TOLD = 64

NGram = tuple[int, ...]


class NGramDrafter(Lookup):
    """The longest n-gram at the end of the text, looked up at its most recent occurrence."""

    name = "ngram"
    default_length = 8
    pause: Reason | None = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._tokens: list[int] = []
        self._next: dict[NGram, int] = {}
        self._undo: list[list[tuple[NGram, int | None]]] = []

    def prefill(self, tokens: Sequence[int]) -> None:
        for token in tokens[len(self._tokens) :]:
            self._append(token)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        self.prefill(tokens)
        if limit < 1:
            return Draft()
        for n in range(min(LONGEST, len(self._tokens)), SHORTEST - 1, -1):
            start = self._next.get(tuple(self._tokens[-n:]))
            if start is not None:
                match = self._matching(start, n)
                return Draft(self._copied(start, limit, policy.ends), match=match)
        return Draft()

    def settle(self, length: int) -> None:
        while len(self._tokens) > length:
            self._tokens.pop()
            for gram, before in reversed(self._undo.pop()):
                if before is None:
                    del self._next[gram]
                else:
                    self._next[gram] = before

    def _append(self, token: int) -> None:
        """Note where each n-gram that ended before `token` goes on; then take the token in.

        The n-grams that end with `token` itself come with the next one, so a lookup never finds
        the end of the text it starts from.
        """
        at = len(self._tokens)
        changed = []
        for n in range(SHORTEST, min(LONGEST, at) + 1):
            gram = tuple(self._tokens[at - n :])
            changed.append((gram, self._next.get(gram)))
            self._next[gram] = at
        self._undo.append(changed)
        self._tokens.append(token)

    def _matching(self, start: int, known: int) -> int:
        """How many tokens before `start` are those at the end; `known` of them are."""
        n = known
        while n < TOLD and n < start and self._tokens[start - n - 1] == self._tokens[-n - 1]:
            n += 1
        return n

    def _copied(self, start: int, limit: int, ends: frozenset[int]) -> tuple[int, ...]:
        """`limit` tokens from `start` on; a repetition shorter than that goes round."""
        period = self._tokens[start : start + limit]
        copied = [period[i % len(period)] for i in range(limit)]
        end = next((i for i, token in enumerate(copied) if token in ends), limit)
        return tuple(copied[: end + 1])
