"""Drafts what followed the last time that so many tokens stood like this, in this chat or another.

llama.cpp's ngram-mod: a chain of lookups, each token found by the hash of those before it. In our
table an entry is a place in a text, not a token: so what the hash confuses is found out, and what
is forgotten with its chat is gone from the table too.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from engine.drafters.base import Lookup
from engine.drafters.shared import Shared
from engine.errors import Reason
from engine.past import Texts
from engine.sampling import Policy
from engine.verify import Draft

MATCH = 16  # tokens; fewer say too little across chats
BITS = 22  # of a slot's number: four times as many slots as tokens are kept; 16 MiB
FACTOR = 6364136223846793005  # Knuth's, as in llama.cpp
NONE, END = 0, -1  # no place; between two texts, and before the first

Gram = tuple[int, ...]


class ChainDrafter(Lookup):
    """A table of this chat, and one of past chats, which is the same for every chat."""

    name = "chain"
    default_length = 8
    pause: Reason | None = None

    def __init__(self, past: Texts | None = None) -> None:
        self._shared = Shared(past, Places, lambda text: text.tokens)
        self.reset()

    def reset(self) -> None:
        self._chat = Grams()

    def prefill(self, tokens: Sequence[int]) -> None:
        for token in tokens[len(self._chat) :]:
            self._chat.append(token)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        self.prefill(tokens)
        past, gram = self._shared.table, tuple(tokens[-MATCH:])
        drafted: list[int] = []
        while len(drafted) < limit and not policy.ends.intersection(drafted[-1:]):
            token = self._chat.after(gram)
            if token is None:
                token = past.after(gram)
            if token is None:
                break
            drafted.append(token)
            gram = (*gram[1:], token)
        return Draft(tuple(drafted), match=MATCH)

    def settle(self, length: int) -> None:
        self._chat.cut(length)


class Grams:
    """One text that grows and shrinks: what followed its grams the last time."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._next: dict[Gram, int] = {}
        self._undo: list[int | None] = []  # what had followed the gram before each token

    def __len__(self) -> int:
        return len(self.tokens)

    def append(self, token: int) -> None:
        """One token more."""
        gram = tuple(self.tokens[-MATCH:])
        self._undo.append(self._next.get(gram))
        if len(gram) == MATCH:
            self._next[gram] = token
        self.tokens.append(token)

    def cut(self, length: int) -> None:
        """Undo what goes beyond the first `length` tokens."""
        while len(self) > length:
            self.tokens.pop()
            gram, before = tuple(self.tokens[-MATCH:]), self._undo.pop()
            if before is not None:
                self._next[gram] = before
            else:
                self._next.pop(gram, None)

    def after(self, gram: Gram) -> int | None:
        """What followed, None where nothing did."""
        return self._next.get(gram)


class Places:
    """Many texts: the last place behind each gram, by its hash."""

    def __init__(self, texts: Iterable[Sequence[int]] = ()) -> None:
        self._text = array("i", [END])
        for text in texts:
            self._text.extend([*text, END])
        self._slots = _entered(self._text)

    def __len__(self) -> int:
        return len(self._text) - 1

    def add(self, text: Sequence[int]) -> None:
        """One text more."""
        first = len(self._text)
        self._text.extend([*text, END])
        for place in range(first + MATCH, len(self._text) - 1):
            self._slots[_slot(self._text[place - MATCH : place])] = place

    def after(self, gram: Gram) -> int | None:
        """What followed, None where nothing did."""
        place = self._slots[_slot(gram)]
        if place == NONE or tuple(self._text[place - MATCH : place]) != gram:
            return None
        return self._text[place]


def _slot(gram: Sequence[int]) -> int:
    folded = 0
    for token in gram:
        folded = folded * FACTOR + token & 2**64 - 1
    return folded >> 64 - BITS


def _entered(text: "array[int]") -> "array[int]":
    """The table of texts, as adding one after the other would leave it."""
    held = np.array(text, dtype=np.int64)
    slots = np.full(2**BITS, NONE, dtype=np.int32)
    places = np.arange(MATCH + 1, len(held), dtype=np.int32)
    folded = np.zeros(len(places), dtype=np.uint64)
    for i in range(MATCH):
        folded = folded * np.uint64(FACTOR) + held[i + 1 : i + 1 + len(places)].astype(np.uint64)
    ends = np.cumsum(held == END)
    whole = ends[places] == ends[places - MATCH - 1]
    # of equal slots the last one is kept
    slots[(folded >> np.uint64(64 - BITS))[whole].astype(np.int64)] = places[whole]
    return array("i", slots.tobytes())
