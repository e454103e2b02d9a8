"""The packaged program, which runs without Python: where its own files lie.

Knows how PyInstaller lays them out. Run from installed packages there is none of it.
"""

import os
import sys
from pathlib import Path


def folder() -> Path | None:
    """The files that were packaged with the program; None where it is not packaged."""
    return Path(sys._MEIPASS) if getattr(sys, "frozen", False) else None  # type: ignore[attr-defined]


def models() -> Path | None:
    """The models that came with it."""
    own = folder()
    return own / "models" if own else None


def torch() -> Path | None:
    """The folder that its torch is imported from, which holds packages as `pip` lays them out."""
    own = folder()
    return own / "torch-cpu" if own else None


def settle() -> None:
    """Undo what the packaged program's launcher did to the environment: other programs, such as
    the browser that shows a link, must not load our libraries."""
    if folder() is None:
        return
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        before = os.environ.pop(f"{name}_ORIG", None)
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # it would call a compiler that is not there
