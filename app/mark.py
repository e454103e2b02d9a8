"""A mark that stands while a model is being loaded.

Where it still stands at the next start, loading ended the program: memory ran out and the system
killed it, or a driver crashed. Then the model is not loaded by itself again.
"""

import contextlib
from pathlib import Path

LONGEST = 4_096  # characters of a name that are read


class Mark:
    """In the file at `path`; what cannot be written or read counts as no mark."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def left(self) -> str:
        """What was being loaded when the program last ended; empty if nothing was."""
        try:
            with self._path.open(encoding="utf-8") as file:
                return file.read(LONGEST)
        except (OSError, ValueError):
            return ""

    def put(self, name: str) -> None:
        """`name` is being loaded."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(name, encoding="utf-8")

    def clear(self) -> None:
        """Nothing is being loaded."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
