"""How many tokens a text has, told by a process of its own.

Reading a tokenizer takes a second or more in which no other thread of the same process runs. Knows
no model and no template; reads nothing but the tokenizer that loading used.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from engine.child import Child
from engine.errors import Incomplete, heed

# Characters that are really counted; what is longer is counted by what these took.
COUNTED = 200_000
WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Count:
    """`about`: of a part of the text, taken for all of it."""

    tokens: int
    about: bool = False


def built_file(cache: Path, fingerprint: str) -> Path:
    """Where the tokenizer is kept that was built from a GGUF file, in the cache folder."""
    return cache / "tokenizers" / f"{fingerprint}.json"


def tokenizer_file(path: Path, fingerprint: str, cache: Path) -> Path:
    """The tokenizer of a model that was loaded from `path`, whose vocabulary is `fingerprint`."""
    return path / "tokenizer.json" if path.is_dir() else built_file(cache, fingerprint)


class Counter:
    """Counts by the tokenizer in `file`. The process starts with the first text; close it when
    done."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._child: Child | None = None
        self._sent = 0

    def count(self, text: str, stopped: Callable[[], bool] = lambda: False) -> Count:
        """The tokens of `text`. Raises Cancelled when `stopped` says so, and Incomplete where the
        file is no tokenizer."""
        part = text[:COUNTED]
        try:
            tokens = self._ask(part, stopped)
        except (EOFError, OSError) as error:
            self.close()
            raise Incomplete(
                "tokenizer_damaged",
                "The tokenizer.json of {name} cannot be read: {error}",
                name=self._file.parent.name,
                error=type(error).__name__,
            ) from error
        if len(part) == len(text):
            return Count(tokens)
        return Count(round(tokens * len(text) / len(part)), about=True)

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
        self._child = None

    def _ask(self, text: str, stopped: Callable[[], bool]) -> int:
        if self._child is None:
            self._child = Child(_serve, self._file)
        self._sent += 1
        self._child.send((self._sent, text))
        while True:
            heed(stopped)
            with contextlib.suppress(TimeoutError):
                number, tokens = self._child.receive(WAIT_SECONDS)
                # others are of texts that were given up
                if number == self._sent:
                    return int(tokens)


def _serve(connection: Connection, file: Path) -> None:
    """Count what comes through `connection` until it closes. Runs in the child process."""
    import tokenizers

    try:
        backend = tokenizers.Tokenizer.from_file(str(file))
    except Exception:  # the library raises bare Exception; closing says that it failed
        return
    backend.no_truncation()
    # typed names of control tokens are sent as text
    backend.encode_special_tokens = True
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            number, text = connection.recv()
            whole = text.encode("utf-8", "replace").decode("utf-8")
            connection.send((number, len(backend.encode(whole, add_special_tokens=False).ids)))
