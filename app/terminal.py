"""What the terminal commands share: options, names to paths, Ctrl+C, text made harmless.

Knows no Qt, and loads no torch.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Progress

PRECISIONS = ("auto", "fp32", "bf16", "fp16", "int8", "int4")
LONGEST_DRAFT = 16
DRAFTS = "none, ngram, suffix, chain, mtp, a model, or auto for the fastest round by round"


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


def place(text: str) -> Path:
    """An option's folder to look through, or a single GGUF file. Raises ArgumentTypeError."""
    path = Path(os.path.expanduser(text))
    if os.path.isdir(path) or (path.suffix.lower() == ".gguf" and os.path.exists(path)):
        return path
    wrong = "is neither a folder nor a GGUF file" if os.path.exists(path) else "is not there"
    raise argparse.ArgumentTypeError(f"{visible(text)} {wrong}")


def visible(text: str) -> str:
    """`text` with control characters shown as marks, so that none acts on the terminal."""
    return "".join(_MARKS.get(ord(c), c) for c in text)


def one_line(text: str) -> str:
    """`text` as `visible` shows it, on one line and in its own order: a name that strangers gave
    cannot pass for a row of a table."""
    return "".join(_BREAKS.get(ord(c), c) for c in visible(text))


def json_text(value: Any) -> str:
    """`value` as JSON that can be printed, also where a name is no UTF-8 or the terminal is not."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


# U+2400: pictures of control characters; C1 controls act like escapes in some terminals. Surrogates
# stand for bytes of a file's name that are no text.
_MARKS = {
    **{c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\n\t"},
    0x7F: "\u2421",
    **dict.fromkeys([*range(128, 160), *range(0xD800, 0xE000)], "\ufffd"),
}
# Line and paragraph ends, and marks that turn the direction of what follows.
_BREAKS = {
    **{ord(c): chr(0x2400 + ord(c)) for c in "\n\t"},
    **dict.fromkeys([0x2028, 0x2029, 0x61C, 0x200E, 0x200F], "\ufffd"),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
}


class ProgressLine:
    """Progress on one line of the terminal; nothing where there is none to see it."""

    WIDTH = 60

    def __init__(self) -> None:
        self._shown = ""
        self._began: tuple[float, int] | None = None

    def __call__(self, progress: "Progress") -> None:
        if not sys.stderr.isatty():
            return
        share = progress.done / progress.total if progress.total else 0
        text = f"{progress.stage} {share:.0%}"
        if progress.stage == "wait":
            text = f"the hub asks to wait, {progress.total - progress.done} s left"
        if progress.stage == "download":
            text += self._rate(progress)
        if text != self._shown:
            print(f"\r{text:{self.WIDTH}}", end="", file=sys.stderr, flush=True)
            self._shown = text

    def _rate(self, progress: "Progress") -> str:
        """How fast it goes and how long it will take, by what has come since the first report."""
        now = time.monotonic()
        if self._began is None:
            self._began = now, progress.done
        seconds, come = now - self._began[0], progress.done - self._began[1]
        if seconds < 1 or not come:
            return ""
        left = (progress.total - progress.done) * seconds / come
        return f", {come / seconds / 1e6:.1f} MB/s, {left:.0f} s left"

    def clear(self) -> None:
        if self._shown:
            print(f"\r{'':{self.WIDTH}}\r", end="", file=sys.stderr, flush=True)
            self._shown = ""


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


def find_model(name: str, more: Sequence[Path] = ()) -> Path:
    """The model of that name in the library or in `more` folders, or at that path.

    Raises LoadError.
    """
    from app import paths
    from engine.library.index import Index
    from engine.library.scan import find

    index = Index(paths.index_file())
    found = find(name, library_folders(more), index.info)
    index.save()
    return found


def library_folders(more: Sequence[Path] = ()) -> list[Path]:
    """Where models are looked for: as in the window, and in `more` folders."""
    from app import paths, settings

    return [*paths.library_folders(settings.load(paths.config_folder()).folders), *more]


def draft_choice(name: str) -> str | Path:
    """What `name` names: a drafter without a model, or a model's path. Raises LoadError."""
    from engine.measured import WITHOUT_MODEL

    return name if name in WITHOUT_MODEL else find_model(name)
