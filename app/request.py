"""What a start asks of the window: to open a model, named by its path, or a chat, by its id.

It comes from the command line, or from another process that says it is one: nothing in it is
believed.
"""

import contextlib
import re
from pathlib import Path

ID = re.compile(r"[0-9a-f]{16}")  # as `app.chats.conversation` names chats


def whole(word: str) -> str:
    """A word of the command line as it means the same in any folder; none stays none."""
    return str(Path(word).absolute()) if word and _is_model(Path(word)) else word


def read(said: str) -> Path | str | None:
    """A model's path or a chat's id; None where it is neither."""
    if ID.fullmatch(said):
        return said
    path = Path(said)
    return path if path.is_absolute() and _is_model(path) else None


def _is_model(path: Path) -> bool:
    """Whether it may be one: a folder, or a GGUF file."""
    with contextlib.suppress(OSError, ValueError):  # such as one with a name that is too long
        return path.is_dir() or (path.is_file() and path.suffix.lower() == ".gguf")
    return False
