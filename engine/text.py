"""Token ids to text while they arrive: whole characters, stop strings, thinking.

Each stage takes pieces and gives pieces; what may still change is held back until it cannot.
Knows no model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

OPEN, CLOSE = "<think>", "</think>"


class Detokenizer:
    """Ids in, text out; never half a character.

    `decode` turns ids into text. A piece is decoded with the tokens before it as context, since
    some vocabularies write a word's leading blank only then.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0
        self._done = 0

    def push(self, token: int) -> str:
        """The text that `token` completes."""
        self._ids.append(token)
        text = self._new_text()
        # U+FFFD at the end: bytes of a character are still to come
        if not text or text.endswith("\ufffd"):
            return ""
        self._context, self._done = self._done, len(self._ids)
        return text

    def flush(self) -> str:
        """What is left at the end, half a character shown as U+FFFD."""
        text = self._new_text()
        self._context = self._done = len(self._ids)
        return text

    def _new_text(self) -> str:
        before = self._decode(self._ids[self._context : self._done])
        return self._decode(self._ids[self._context :])[len(before) :]


class StopStrings:
    """Text in, text out up to the first stop string; what may begin one is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [s for s in stops if s]
        self._held = ""
        self.hit = False

    def push(self, text: str) -> str:
        """The text that is safe to show; after it `hit` says whether a stop string ended it."""
        self._held += text
        at = min((i for s in self._stops if (i := self._held.find(s)) >= 0), default=None)
        if at is not None:
            self.hit = True
            shown, self._held = self._held[:at], ""
            return shown
        keep = max((_overlap(self._held, s) for s in self._stops), default=0)
        return self._release(len(self._held) - keep)

    def flush(self) -> str:
        """What was held back and turned out not to be a stop string."""
        return self._release(len(self._held))

    def _release(self, length: int) -> str:
        shown, self._held = self._held[:length], self._held[length:]
        return shown


@dataclass(frozen=True)
class Piece:
    """Text for the answer, and text for the folded thinking."""

    text: str = ""
    reasoning: str = ""

    def __add__(self, other: "Piece") -> "Piece":
        return Piece(self.text + other.text, self.reasoning + other.reasoning)


class Thinking:
    """Splits thinking from the answer; a tag, or what may become one, is never shown.

    An opening tag counts only before any text of the answer; `open_at_start` is for templates
    that write it themselves. Blank lines around the tags belong to neither part.
    """

    def __init__(self, open_at_start: bool = False) -> None:
        self._held = ""
        self._state = "thinking" if open_at_start else "start"
        self._fresh = True

    @property
    def open(self) -> bool:
        """Whether the thinking goes on."""
        return self._state == "thinking"

    def push(self, text: str) -> Piece:
        """What `text` adds to either part."""
        self._held += text
        reasoning = ""
        if self._state == "start":
            self._leave_start()
        if self._state == "thinking":
            reasoning = self._think()
        if self._state == "gap":
            self._held = self._held.lstrip()
            if self._held:
                self._state = "answer"
        shown = ""
        if self._state == "answer":
            shown, self._held = self._held, ""
        return Piece(shown, reasoning)

    def flush(self) -> Piece:
        """What was held back when the answer ends."""
        rest, self._held = self._held, ""
        return Piece(reasoning=rest) if self._state == "thinking" else Piece(text=rest)

    def _leave_start(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(OPEN):
            self._held = begun[len(OPEN) :]
            self._state = "thinking"
        elif begun and not OPEN.startswith(begun):
            self._state = "answer"

    def _think(self) -> str:
        if self._fresh:
            self._held = self._held.lstrip()
            self._fresh = not self._held
        at = self._held.find(CLOSE)
        if at >= 0:
            thought, self._held = self._held[:at].rstrip(), self._held[at + len(CLOSE) :]
            self._state = "gap"
            return thought
        # blanks stay too: they go if the closing tag follows
        end = len(self._held) - _overlap(self._held, CLOSE)
        end = len(self._held[:end].rstrip())
        thought, self._held = self._held[:end], self._held[end:]
        return thought


class Reading:
    """Ids in, what is shown of them out: the three stages in a row.

    What was shown after any id follows from the ids alone, so that an answer can go on later as
    if it had never stopped. `thought` counts the ids that were thinking, its tags among them; not
    those of the part that was there when the answer went on.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stops: Sequence[str], thinking: bool
    ) -> None:
        self._words = Detokenizer(decode)
        self._stops = StopStrings(stops)
        self._thinking = Thinking(open_at_start=thinking)
        self._seen = Piece()
        self.thought = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met."""
        return self._stops.hit

    def begin(self, ids: Sequence[int], shown: Piece) -> None:
        """Take in the `ids` of an answer that goes on, of which `shown` is seen already: more
        than these stages would show of it, where it comes from text."""
        told = [self.push(token) for token in ids]
        self.thought = 0
        self._seen = Piece(
            _behind("".join(piece.text for piece in told), shown.text),
            _behind("".join(piece.reasoning for piece in told), shown.reasoning),
        )

    def push(self, token: int) -> Piece:
        """What `token` lets be shown."""
        before = self._thinking.open
        piece = self._thinking.push(self._stops.push(self._words.push(token)))
        self.thought += before or self._thinking.open
        return self._unseen(piece)

    def flush(self) -> Piece:
        """What was held back when the model ends its answer; nothing behind a stop string."""
        rest = "" if self.stopped else self._stops.push(self._words.flush())
        rest += "" if self.stopped else self._stops.flush()
        return self._unseen(self._thinking.push(rest) + self._thinking.flush())

    def _unseen(self, piece: Piece) -> Piece:
        if self._seen == Piece():
            return piece
        text, seen = _without(piece.text, self._seen.text)
        reasoning, thought = _without(piece.reasoning, self._seen.reasoning)
        self._seen = Piece(seen, thought)
        return Piece(text, reasoning)


def _behind(start: str, whole: str) -> str:
    """What `whole` has more than its beginning `start`; nothing if it begins otherwise."""
    return whole[len(start) :] if whole.startswith(start) else ""


def _without(text: str, seen: str) -> tuple[str, str]:
    """`text` without the beginning that was seen, and what of `seen` is still to come."""
    if text.startswith(seen):
        return text[len(seen) :], ""
    return ("", seen[len(text) :]) if seen.startswith(text) else (text, "")


def _overlap(text: str, mark: str) -> int:
    """The length of the longest end of `text` that begins `mark`."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
