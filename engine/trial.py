"""Another build of torch, tried in a process of its own before the program relies on it.

Knows how to ask torch who it is and what it can compute on. Does not know what is made of that.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.child import Child
from engine.errors import EngineError, first_line, heed

LIMIT = 120.0  # seconds; a cold disk takes 30 for the CUDA build
STEP = 0.2  # seconds between two looks at `stopped`


@dataclass(frozen=True)
class Tried:
    """What torch said: its version, the CUDA that it was built for, the folder that it came from,
    whether it can use a card, and if not, why."""

    version: str
    cuda: str | None
    folder: str
    on_card: bool
    why: str


def run(site: Path, stopped: Callable[[], bool], seconds: float = LIMIT) -> Tried:
    """Import torch from `site` and add two tensors, on a card where it can. Raises EngineError
    when that fails, crashes or takes too long, Cancelled when stopped."""
    child = Child(_try, str(site))
    try:
        said = _heard(child, stopped, time.monotonic() + seconds)
    except EOFError as error:
        raise EngineError(
            "trial_crashed", "The graphics card add-on crashed when it was tried."
        ) from error
    finally:
        child.close()
    if isinstance(said, str):
        raise EngineError(
            "trial_failed",
            "The graphics card add-on cannot be loaded: {error}",
            error=said,
        )
    return Tried(*said)


def _heard(child: Child, stopped: Callable[[], bool], deadline: float) -> Any:
    while True:
        heed(stopped)
        try:
            return child.receive(STEP)
        except TimeoutError:
            if time.monotonic() > deadline:
                raise EngineError(
                    "trial_slow",
                    "The graphics card add-on did not answer when it was tried.",
                ) from None


def _try(connection: Any, site: str) -> None:
    """In the child, whose search path is that of the program, with the packaged torch in it."""
    sys.path.insert(0, site)
    try:
        connection.send(_asked())
    except Exception as error:
        connection.send(first_line(error))


def _asked() -> tuple[str, str | None, str, bool, str]:
    import torch

    here = torch.cuda.is_available()
    ones = torch.ones(2, device="cuda" if here else "cpu")
    if (ones + ones).tolist() != [2.0, 2.0]:
        raise ArithmeticError("1 + 1 is not 2")
    folder = str(Path(torch.__file__).parents[1])
    return torch.__version__, torch.version.cuda, folder, here, "" if here else _why(torch)


def _why(torch: Any) -> str:
    """Torch's own words for why it uses no card."""
    try:
        torch.cuda.init()
    except Exception as error:
        return first_line(error)
    return ""
