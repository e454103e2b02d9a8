"""Text of one vocabulary in the ids of another, through bytes.

Knows two tokenizers and what their ids decode to. Knows no model and no probability.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary

# Ids that are cut anew at most where a text goes on: of text without blanks, which has no borders.
LOOK_BACK = 64
LONGEST_CHARACTER = 4  # bytes
BLANKS = b" \t\r\n"


@dataclass(frozen=True)
class Words:
    """A tokenizer, and its vocabulary as bytes."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary

    @cached_property
    def by_bytes(self) -> Mapping[bytes, int]:
        """The id of each token that is text, the lowest of those that decode alike."""
        special = self.vocabulary.special
        highest_first = reversed(list(enumerate(self.vocabulary.tokens)))
        return {token: i for i, token in highest_first if token and i not in special}

    def bytes_of(self, token: int) -> bytes:
        """What an id decodes to, a special one to its name; nothing for an id without a token."""
        tokens = self.vocabulary.tokens
        return (tokens[token] or b"") if 0 <= token < len(tokens) else b""

    def cut(self, data: bytes) -> tuple[list[int], list[int]]:
        """The ids of text that goes on after other text, and the byte that each ends at.

        Bytes that are no whole character become the longest tokens there are of them; those that
        no token has are left out.
        """
        ids: list[int] = []
        ends: list[int] = []
        for start, part, whole in _runs(data):
            found, places = self._cut_text(part) if whole else self._cut_bytes(part)
            ids += found
            ends += [start + place for place in places]
        return ids, ends

    def longest(self, data: bytes) -> int | None:
        """The longest token that `data` begins with."""
        tries = (self.by_bytes.get(data[:end]) for end in range(len(data), 0, -1))
        return next((token for token in tries if token is not None), None)

    def _cut_text(self, data: bytes) -> tuple[list[int], list[int]]:
        text = data.decode()
        ids, ends = self.tokenizer.cut(text)
        if len(text) == len(data):
            return ids, ends
        places = [0]
        for character in text:
            places.append(places[-1] + len(character.encode()))
        return ids, [places[end] for end in ends]

    def _cut_bytes(self, data: bytes) -> tuple[list[int], list[int]]:
        ids, ends, at = [], [], 0
        while at < len(data):
            token = self.longest(data[at : at + LONGEST_CHARACTER])
            at += 1 if token is None else len(self.bytes_of(token))
            if token is not None:
                ids.append(token)
                ends.append(at)
        return ids, ends


def _runs(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Where each part begins, the part, and whether it is whole characters."""
    at = 0
    while at < len(data):
        try:
            data[at:].decode()
        except UnicodeDecodeError as error:
            broken, end = at + error.start, at + error.end
            if broken > at:
                yield at, data[at:broken], True
            yield broken, data[broken:end], False
            at = end
        else:
            yield at, data[at:], True
            return


class Translation:
    """The target's tokens as text, and `ids`: that text as the draft would read it.

    The text is cut anew only from the last border that more text cannot move. Control tokens are
    those of the same name, what ends a turn is what ends it there; others are left out, for the
    draft never saw them.
    """

    def __init__(self, ours: Words, theirs: Words) -> None:
        self._ours, self._theirs = ours, theirs
        self._names = _controls(ours, theirs)
        self.reset()

    def reset(self) -> None:
        """Forget the text."""
        bos = self._theirs.tokenizer.bos
        self._start = () if bos is None else (bos,)
        self.ids: list[int] = list(self._start)
        # the byte of the text behind each id, behind each of the target's tokens, and behind each
        # control token, where a text begins that is cut by itself
        self._ends = [0] * len(self.ids)
        self._tokens: list[int] = []
        self._begins = [0]
        self._text = bytearray()
        self._cut = len(self.ids)

    def follow(self, tokens: Sequence[int]) -> int:
        """Take in what `tokens` has more; how many of the ids are as they were."""
        same = len(self.ids)
        for token in tokens[len(self._tokens) :]:
            control = self._names.get(token)
            if control is not None:
                same = min(same, self._cut_anew())
            self._text += self._ours.bytes_of(token)
            self._tokens.append(len(self._text))
            if control is not None:
                self._close(control)
        return min(same, self._cut_anew())

    def add(self, token: int) -> None:
        """One of the draft's own ids, behind the text."""
        self.ids.append(token)
        end = max([*self._ends[-1:], len(self._text)])
        self._ends.append(end + len(self._theirs.bytes_of(token)))

    def expect(self, tokens: Sequence[int]) -> None:
        """Take in `tokens` that the ids added stand for, so that `keep` can keep a part."""
        for token in tokens:
            self._text += self._ours.bytes_of(token)
            self._tokens.append(len(self._text))

    def keep(self, length: int) -> None:
        """Forget what goes beyond the target's first `length` tokens."""
        del self._tokens[length:]
        end = self._tokens[-1] if self._tokens else 0
        del self._text[end:]
        del self._begins[bisect_right(self._begins, end) :]
        kept = bisect_right(self._ends, end)
        del self.ids[kept:], self._ends[kept:]
        self._cut = min(self._cut, kept)

    def _close(self, control: tuple[int, ...]) -> None:
        """A control token stands at the end of the text."""
        end = len(self._text)
        if control != self._start or len(self.ids) > 1:  # a text begins once
            self.ids += control
            self._ends += [end] * len(control)
        self._begins.append(end)
        self._cut = len(self.ids)

    def _cut_anew(self) -> int:
        """Cut the end of the text; how many of the ids are as they were."""
        start, kept = self._border()
        ids, ends = self._theirs.cut(bytes(self._text[start:]))
        pairs = zip(self.ids[kept:], ids, strict=False)
        same = next((i for i, (old, new) in enumerate(pairs) if old != new), None)
        same = min(len(self.ids) - kept, len(ids)) if same is None else same
        self.ids[kept:] = ids
        self._ends[kept:] = [start + end for end in ends]
        self._cut = len(self.ids)
        return kept + same

    def _border(self) -> tuple[int, int]:
        """The last place in the text where it was cut, and will be however it goes on: before the
        blank of a word. And how many ids stand before it."""
        begin = self._begins[-1]
        for kept in range(self._cut, 0, -1):
            start = self._ends[kept - 1]
            if start <= begin:
                break
            if self._begins_word(start) or self._cut - kept >= LOOK_BACK:
                begin = start
                break
        # several ids may end with one character
        return begin, bisect_right(self._ends, begin)

    def _begins_word(self, at: int) -> bool:
        around = self._text[at - 1 : at + 2]
        return len(around) == 3 and around[1] == 0x20 and not {around[0], around[2]} & {*BLANKS}


def _controls(ours: Words, theirs: Words) -> dict[int, tuple[int, ...]]:
    """The draft's ids for each control token of the target."""
    names = {theirs.bytes_of(i): i for i in theirs.vocabulary.special}
    ends = dict.fromkeys(ours.tokenizer.eos_ids, theirs.tokenizer.end)
    controls = ours.vocabulary.special | ours.tokenizer.eos_ids
    found = {i: names.get(ours.bytes_of(i), ends.get(i)) for i in controls}
    return {i: () if same is None else (same,) for i, same in found.items()}
