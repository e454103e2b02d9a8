"""Standard input and output where there is no console.

A windowed program has none, and a program may be started with them closed. Called before anything
is printed or opened.
"""

import contextlib
import os
import sys


def settle() -> None:
    """Have all three lead somewhere: what is missing reads as empty and takes in everything."""
    for descriptor in range(3):
        _hold(descriptor)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, "r", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")


def _hold(descriptor: int) -> None:
    """A free descriptor is taken, since the next file opened would get it: what a library prints
    would be written into the chats."""
    try:
        os.fstat(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            taken = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(taken, True)
            if taken != descriptor:
                os.dup2(taken, descriptor)
                os.close(taken)
