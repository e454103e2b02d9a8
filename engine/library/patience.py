"""Asking a hub that is busy: again when it says that it may be, and not sooner.

Remembers for the whole program until when the hub wants to be left alone. Does not know what is
asked of it.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from engine.api import Progress
from engine.errors import heed
from engine.library.answers import Busy, limited

# Seconds before another try, for each time in a row that the hub is out of order.
WAITS = (1.0, 2.0, 4.0, 8.0)
LONGEST = 900.0  # seconds; nobody sits before a countdown for longer
INTERVAL = 0.1  # seconds between two looks at `stopped` while waiting

T = TypeVar("T")
Report = Callable[[Progress], None]
Stopped = Callable[[], bool]

_free_at = 0.0


def patiently(ask: Callable[[], T], progress: Report, stopped: Stopped) -> T:
    """What `ask` gives, whatever the hub's rate limit: that is waited for, and `progress` counts
    the seconds in its stage "wait". A hub that is out of order is asked again quietly.

    Raises Cancelled when stopped, `Busy` where it goes on for too long, and what `ask` does.
    """
    global _free_at
    pauses = iter(WAITS)
    while True:
        _wait_until(_free_at, progress, stopped)
        try:
            return ask()
        except Busy as busy:
            pause = next(pauses, None)
            if busy.seconds is not None:
                _free_at = time.monotonic() + busy.seconds
            if pause is None:
                raise
            if busy.seconds is None:
                wait(pause, stopped)


def wait(seconds: float, stopped: Stopped, tell: Callable[[float], None] | None = None) -> None:
    """Do nothing for so long; `tell` hears now and then how many seconds have gone. Raises
    Cancelled when stopped."""
    began = time.monotonic()
    while (gone := time.monotonic() - began) < seconds:
        heed(stopped)
        if tell is not None:
            tell(gone)
        time.sleep(min(seconds - gone, INTERVAL))


def _wait_until(moment: float, progress: Report, stopped: Stopped) -> None:
    seconds = moment - time.monotonic()
    if seconds > LONGEST:
        raise limited(seconds)
    wait(
        seconds,
        stopped,
        lambda gone: progress(Progress("wait", int(gone), max(1, round(seconds)), "seconds")),
    )
