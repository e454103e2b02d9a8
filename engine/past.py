"""What was answered on this machine before, as tokens: what drafters may copy across chats.

One file for each chat and vocabulary, so that to forget a chat is to delete its files. Knows no
drafter and no model. What it cannot read of a file was never learned; the file stays.
"""

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
MOST = 2**20  # tokens of a vocabulary
# An eighth goes at once, so that what is made of them is not made anew with every answer.
KEPT = 7 / 8
LARGEST = 2**25  # bytes of a file
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Text:
    """What a chat grew by with an answer, the first of its `tokens` at `start` in the chat. The
    answer begins behind `question` of them; `learned` is in seconds since 1970."""

    chat: str
    start: int
    question: int
    tokens: "array[int]"
    learned: float

    @property
    def answer(self) -> "array[int]":
        """The tokens of the answer alone."""
        return self.tokens[self.question :]


class Past:
    """All of it, below `folder`; None: only in memory. May be used by several threads."""

    def __init__(self, folder: Path | None = None, most: int = MOST) -> None:
        self._folder, self._most = folder, most
        self._lock = threading.RLock()
        self._texts: dict[str, Texts] = {}
        self._forgotten: set[str] = set()

    def of(self, vocabulary: str) -> "Texts":
        """The texts in the tokens of a vocabulary, named by its fingerprint."""
        with self._lock:
            if vocabulary not in self._texts:
                folder = self._folder / _name(vocabulary) if self._folder else None
                self._texts[vocabulary] = Texts(folder, self._most, self._lock, self._forgotten)
            return self._texts[vocabulary]

    def forget(self, chat: str) -> None:
        """Forget a chat in every vocabulary, for good: an answer of it that is still on its way is
        not learned. Raises OSError where a file cannot be deleted."""
        with self._lock:
            self._forgotten.add(chat)
            for texts in self._texts.values():
                texts.drop(chat)
            self._delete(f"{_name(chat)}.*")

    def clear(self) -> None:
        """Forget every chat. Raises OSError where a file cannot be deleted."""
        with self._lock:
            for texts in self._texts.values():
                texts.drop()
            self._delete("*")

    def _delete(self, pattern: str) -> None:
        for file in self._folder.glob(f"*/{pattern}") if self._folder else ():
            file.unlink(missing_ok=True)


class Texts:
    """Those of one vocabulary."""

    def __init__(
        self, folder: Path | None, most: int, lock: threading.RLock, forgotten: set[str]
    ) -> None:
        self._folder, self._most = folder, most
        self._lock, self._forgotten = lock, forgotten
        self._all: tuple[Text, ...] | None = None

    @property
    def all(self) -> tuple[Text, ...]:
        """Every text, in the order of learning: another tuple once it has changed."""
        with self._lock:
            if self._all is None:
                found = [text for file in self._files() for text in _read(file)]
                self._all = tuple(sorted(found, key=lambda text: text.learned))
            return self._all

    def add(self, chat: str, tokens: Sequence[int], answer: int) -> None:
        """Learn what is new of a chat's `tokens`, whose last answer begins at `answer`. The oldest
        texts go where there are too many."""
        with self._lock:
            known = _known(tokens, (text for text in self.all if text.chat == chat))
            if chat in self._forgotten or known == len(tokens):
                return
            start = min(known, answer)
            new = Text(chat, start, answer - start, array("i", tokens[start:]), time.time())
            old, self._all = self.all, self._within((*self.all, new))
            left = set(self._all)
            for changed in {chat, *(text.chat for text in old if text not in left)}:
                self._save(changed)

    def drop(self, chat: str | None = None) -> None:
        """Hold nothing more of a chat, or of any; what lies on the disk is the caller's."""
        if self._all is not None:
            self._all = tuple(text for text in self._all if chat not in (None, text.chat))

    def _within(self, texts: tuple[Text, ...]) -> tuple[Text, ...]:
        """The newest of them, as many as may be kept."""
        total = sum(len(text.tokens) for text in texts)
        if total <= self._most:
            return texts
        first = 0
        while total > KEPT * self._most:
            total -= len(texts[first].tokens)
            first += 1
        return texts[first:]

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json")) if self._folder else []

    def _save(self, chat: str) -> None:
        """Write what is held of a chat. Of a full disk one only notices that it is forgotten."""
        if self._folder is None:
            return
        file = self._folder / f"{_name(chat)}.json"
        beside = file.with_suffix(f".{os.getpid()}.partial")
        rows = [_row(text) for text in self.all if text.chat == chat]
        try:
            if not rows:
                file.unlink(missing_ok=True)
                return
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.touch(mode=0o600)
            beside.write_text(json.dumps({"format": FORMAT, "chat": chat, "texts": rows}))
            beside.replace(file)
        except OSError as error:
            log.warning("an answer could not be learned: %s", error)
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)


def _known(tokens: Sequence[int], texts: Iterable[Text]) -> int:
    """How many leading `tokens` of a chat were learned before."""
    known = 0
    for text in texts:
        if text.start <= known:
            both = zip(text.tokens, tokens[text.start :], strict=False)
            most = min(len(text.tokens), len(tokens) - text.start)
            same = next((i for i, (a, b) in enumerate(both) if a != b), most)
            known = max(known, text.start + same)
    return known


def _name(text: str) -> str:
    """A file's name; ids of imported chats are anything."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _row(text: Text) -> dict[str, Any]:
    return {
        "start": text.start,
        "question": text.question,
        "tokens": text.tokens.tolist(),
        "learned": text.learned,
    }


def _read(file: Path) -> list[Text]:
    """The texts in a file; none of one that is damaged, or of another program or chat."""
    try:
        with file.open("rb") as opened:
            kept = json.loads(opened.read(LARGEST))
        chat = kept["chat"]
        if kept["format"] != FORMAT or _name(chat) != file.stem:
            raise ValueError("another format or chat")
        return [_text(chat, row) for row in kept["texts"]]
    except (OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        log.warning("%s is left aside: %s", file, type(error).__name__)
    except RecursionError:
        log.warning("%s is left aside: too deep", file)
    return []


def _text(chat: str, row: dict[str, Any]) -> Text:
    """Raises ValueError, or what wrong types raise, for what is no text."""
    tokens, start, question = array("i", row["tokens"]), row["start"], row["question"]
    learned = float(row["learned"])
    if type(start) is not int or type(question) is not int or not learned < float("inf"):
        raise ValueError("no place")
    if start < 0 or not 0 <= question <= len(tokens) or any(token < 0 for token in tokens):
        raise ValueError("out of range")
    return Text(chat, start, question, tokens, learned)
