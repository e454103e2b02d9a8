"""A screen of our own, and fingers: Xvfb and xdotool."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.bundle.program import Program, until


class Screen:
    """A virtual display with a keyboard."""

    def __init__(self, display: str) -> None:
        self.display = display

    def press(self, *words: str) -> None:
        """Have xdotool do this in the program's window, once there is one."""
        found = self._do("search", "--onlyvisible", "--name", "Slipstream").split()
        if found:
            self._do("windowfocus", "--sync", found[-1], *words)

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ["xdotool", *words],
            env={"DISPLAY": self.display},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        return done.stdout


@contextlib.contextmanager
def showing() -> Iterator[Screen]:
    """A screen until the block ends; skips the test where there is no such thing."""
    if not shutil.which("Xvfb") or not shutil.which("xdotool"):
        pytest.skip("Xvfb or xdotool is not here")
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield Screen(f":{server.stdout.readline().strip()}")
    finally:
        server.terminate()
        server.wait()


def ask(program: Program, window: subprocess.Popen[str], screen: Screen, question: str) -> None:
    """Type it, and wait for words of an answer. It goes nowhere until a model is loaded."""

    def sent() -> bool:
        assert window.poll() is None, "the window has ended"
        screen.press("key", "ctrl+a", "type", question)
        screen.press("key", "Return")
        with contextlib.suppress(TimeoutError):
            until(program.entries, 3)
        return bool(program.entries())

    until(sent)
    until(lambda: len(program.entries()) > 1 and program.entries()[-1].text)


def converse(program: Program, question: str, model: str, **how: bool) -> None:
    """Start the window with a model, ask, and quit by its key. Raises AssertionError where it does
    not end well."""
    with showing() as screen:
        window = program.start(model, QT_QPA_PLATFORM="xcb", DISPLAY=screen.display, **how)
        try:
            ask(program, window, screen, question)
            screen.press("key", "ctrl+q")
            assert window.wait(20) == 0
        finally:
            window.kill()
