"""Drafts what followed most often when the text ended like this, here or in past answers.

Oliaro et al. 2024, "SuffixDecoding". The two trees are not built: where the places of a text are
sorted by what stands before them, those behind one and the same ending lie side by side, and how
many there are is the count of its node. A place takes 8 bytes.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.drafters.base import Lookup
from engine.drafters.shared import Shared
from engine.errors import Reason
from engine.past import Texts
from engine.sampling import Policy
from engine.verify import Draft

DEPTH = 24  # tokens of the ending and the draft together
RARE = 10  # what followed in less than one of so many places is not drafted
# Of more places than these every n-th speaks for the others, so that a round is short in a text
# that repeats one word.
PLACES = 128
END = -1  # between two texts, and before the first


class Guess(NamedTuple):
    """`tokens`, `score` of which are expected to be right, by a match of `match` tokens."""

    score: float
    tokens: tuple[int, ...]
    match: int


NOTHING = Guess(0.0, (), 0)


class SuffixDrafter(Lookup):
    """A tree of this chat, and one of past answers, which is the same for every chat."""

    name = "suffix"
    default_length = 8
    pause: Reason | None = None

    def __init__(self, past: Texts | None = None) -> None:
        self._shared = Shared(past, Tree, lambda text: text.answer)
        self.reset()

    def reset(self) -> None:
        self._chat = Tree()

    def prefill(self, tokens: Sequence[int]) -> None:
        for token in tokens[len(self._chat) :]:
            self._chat.append(token)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        self.prefill(tokens)
        if limit < 1:
            return Draft()
        ending = tokens[-DEPTH:]
        here, before = (tree.guess(ending, limit) for tree in (self._chat, self._shared.table))
        best = before if before.score > here.score else here
        end = next((i for i, token in enumerate(best.tokens) if token in policy.ends), limit)
        return Draft(best.tokens[: end + 1], match=best.match)

    def settle(self, length: int) -> None:
        self._chat.cut(length)


class Tree:
    """Texts, and the count of everything in them that is up to `DEPTH` tokens long."""

    def __init__(self, texts: Iterable[Sequence[int]] = ()) -> None:
        self._text = array("i", [END] * DEPTH)
        for text in texts:
            self._text.extend([*text, END])
        self._places = _sorted(self._text)

    def __len__(self) -> int:
        """Tokens; of one text, to which was only appended."""
        return len(self._text) - DEPTH

    @property
    def tokens(self) -> list[int]:
        """All of them."""
        return self._text[DEPTH:].tolist()

    def append(self, token: int) -> None:
        """One token more of the last text."""
        self._text.append(token)
        self._places.insert(self._rank(), len(self._text) - 1)

    def add(self, text: Sequence[int]) -> None:
        """One text more."""
        for token in text:
            self.append(token)
        self._text.append(END)

    def cut(self, length: int) -> None:
        """Undo the appending of what goes beyond the first `length` tokens."""
        while len(self) > length:
            # of equal places the last one has the highest number
            del self._places[self._rank() - 1]
            self._text.pop()

    def guess(self, ending: Sequence[int], limit: int) -> Guess:
        """At most `limit` tokens, likely to follow a text with this ending.

        Each number of last tokens is matched, and allows as many tokens of a draft; the draft with
        the highest sum of probabilities is taken, of equal ones that of the longer match.
        """
        found = self._matches(ending)
        rooms = {n: min(limit, n, DEPTH - n) for n in found}
        best = NOTHING
        seen = set()
        for n in sorted(rooms, key=lambda n: (rooms[n], n), reverse=True):
            if (rooms[n], n) < (best.score, best.match):
                break  # not even a sure draft would be better
            if found[n] in seen:
                continue  # the same places had more room
            seen.add(found[n])
            score, tokens = self._followed(*found[n], rooms[n])
            if (score, n) > (best.score, best.match):
                best = Guess(score, tokens, n)
        return best

    def _matches(self, ending: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Where in the order the places lie behind the last n tokens, by n."""
        found = {}
        text, first, end = self._text, 0, len(self._places)
        for n, token in enumerate(reversed(ending[1 - DEPTH :])):

            def at(place: int, n: int = n) -> int:
                return text[place - n]

            first = bisect_left(self._places, token, first, end, key=at)
            end = bisect_right(self._places, token, first, end, key=at)
            if first == end:
                break
            found[n + 1] = first, end
        return found

    def _followed(self, first: int, end: int, room: int) -> tuple[float, tuple[int, ...]]:
        """What followed most often in these places, of equals the most recent."""
        step = -(-(end - first) // PLACES)
        places = sorted(self._places[first:end:step], reverse=True)
        text, whole, right = self._text, len(places), 0
        drafted: list[int] = []
        for i in range(1, room + 1):
            if places and places[0] + i == len(text):  # the chat ends there
                del places[0]
            counts = Counter([text[place + i] for place in places])
            counts.pop(END, None)
            token, count = max(counts.items(), key=lambda item: item[1], default=(END, 0))
            if RARE * count < whole:
                break
            drafted.append(token)
            right += count
            places = [place for place in places if text[place + i] == token]
        return right / whole, tuple(drafted)

    def _rank(self) -> int:
        """Where the last token's place belongs, behind all that are equal."""
        return bisect_right(self._places, self._before(len(self._text) - 1), key=self._before)

    def _before(self, place: int) -> "array[int]":
        """The token there and those before it, backwards."""
        return self._text[place : place - DEPTH : -1]


def _sorted(text: "array[int]") -> "array[int]":
    """The places of all tokens, by `DEPTH` tokens backwards from each; equal ones in order.

    Manber and Myers 1993, "Suffix arrays": the order by twice as many tokens follows from ranks.
    """
    held = np.array(text, dtype=np.int64)
    ranks = {1: held}
    for longer, more in ((2, 1), (4, 2), (8, 4), (16, 8), (DEPTH, DEPTH - 16)):
        first, rest = ranks[longer - more], ranks[more]
        before = np.concatenate([np.full(longer - more, END), rest[: more - longer]])
        pairs = (first + 1) * (len(held) + rest.max() + 2) + before + 1
        ranks[longer] = np.unique(pairs, return_inverse=True)[1]
    order = np.argsort(ranks[DEPTH], kind="stable")
    return array("i", order[held[order] != END].astype(np.int32).tobytes())
