"""A function in a process of its own, which can be killed: for what neither asks nor ends.

Knows how to start one and talk to it. Does not know what it does.
"""

import contextlib
import multiprocessing
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any


class Child:
    """A spawned process that runs `target(connection, *args)`; close it when done.

    One that starts processes itself must not be a `daemon`.
    """

    def __init__(self, target: Callable[..., None], *args: Any, daemon: bool = True) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        self._process = spawn.Process(target=target, args=(theirs, *args), daemon=daemon)
        with _without_main():
            self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def send(self, message: Any) -> None:
        """Raises OSError when the process has ended."""
        self._connection.send(message)

    def receive(self, seconds: float) -> Any:
        """What the process sends next. Raises TimeoutError, or EOFError when it has ended."""
        if not self._connection.poll(seconds):
            raise TimeoutError
        return self._connection.recv()

    def exit_code(self, seconds: float) -> int | None:
        """What it ended with, a signal's number below zero; None if it has not ended by then."""
        self._process.join(seconds)
        return self._process.exitcode

    def close(self) -> None:
        """Kill the process, whatever it does."""
        self._connection.close()
        self._process.kill()
        self._process.join()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module from a child about to start, which would import it a second time.

    A script without a guard would run again there, and the app's own is not needed.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
