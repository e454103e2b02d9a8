"""What the terminal commands share: options, names to paths, Ctrl+C, text made harmless.

Knows no Qt, and loads no torch.
"""

import argparse
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

PRECISIONS = ("auto", "fp32", "bf16", "fp16", "int8", "int4")
LONGEST_DRAFT = 16


def add_model(command: argparse.ArgumentParser) -> None:
    """The options of every command that makes a model answer."""
    command.add_argument("--model", required=True, metavar="NAME", help="a library name or a path")
    command.add_argument("--device", default="auto", help="auto, cuda, mps, xpu or cpu")
    command.add_argument("--temperature", type=temperature, help="0 takes the likeliest token")
    command.add_argument("--seed", type=int)
    command.add_argument(
        "--verification",
        choices=["coupled", "rejection"],
        default="coupled",
        help="coupled: the same text with any draft; rejection: the same odds",
    )


def at_least_1(text: str) -> int:
    """An option's count. Raises ArgumentTypeError, as the next two do."""
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError("must be a whole number, at least 1")


def temperature(text: str) -> float:
    """An option's temperature."""
    number = float(text)
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError("must lie between 0 and 100")
    return number


def draft_length(text: str) -> int | None:
    """An option's draft length in tokens; None is automatic."""
    if text == "auto":
        return None
    if text.isdecimal() and int(text) <= LONGEST_DRAFT:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be auto, or 0 to {LONGEST_DRAFT}")


def visible(text: str) -> str:
    """`text` with control characters shown as marks, so that none acts on the terminal."""
    return "".join(_MARKS.get(ord(c), c) for c in text)


# U+2400: pictures of control characters; C1 controls act like escapes in some terminals.
_MARKS = {
    **{c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\n\t"},
    0x7F: "\u2421",
    **dict.fromkeys(range(128, 160), "\ufffd"),
}


@contextlib.contextmanager
def stop_flag() -> Iterator[Callable[[], bool]]:
    """Ctrl+C sets a flag, so that an answer ends with its statistics; a second one ends it all."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def find_model(name: str) -> Path:
    """The model of that name in the library, or at that path. Raises LoadError."""
    from app import paths
    from engine.library.scan import find

    return find(name, paths.library_folders())


def draft_choice(name: str) -> str | Path:
    """What `name` names: a drafter without a model, or a model's path. Raises LoadError."""
    return name if name in ("none", "ngram") else find_model(name)
