"""The program as the window's tests open it: scripted session, pretended models."""

from collections.abc import Callable, Iterator

import pytest
from huggingface_hub import constants

from app import resources, start
from tests.composing import Desk, ScriptedChat
from tests.fakes import FakeShelf, ScriptedSession

Open = Callable[..., start.Program]


@pytest.fixture
def light(qapp):
    """The light theme, which costs nothing where it is shown already."""
    resources.apply_theme(qapp, "light")


@pytest.fixture
def chat(light):
    made = ScriptedChat()
    yield made
    made.deleteLater()


@pytest.fixture
def desk(qtbot, light, tmp_path):
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.fixture
def open_program(qtbot, monkeypatch) -> Iterator[Open]:
    """Opens the program and waits until its model is loaded and its draft chosen."""
    # A pretended shelf may fetch; what asks the real network says so itself.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", "/nonexistent")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    opened = []

    def opening(
        session: ScriptedSession, shelf: FakeShelf | None = None, *, wait: bool = True
    ) -> start.Program:
        shelf = shelf or FakeShelf()
        program = start.build(["test"], session_factory=lambda: session, shelf=shelf)
        resources.apply_theme(program.app, "light")
        opened.append(program)
        program.window.show()
        qtbot.waitExposed(program.window)
        program.window.activateWindow()
        program.begin()
        if wait:
            qtbot.waitUntil(lambda: program.models.loaded is not None)
            qtbot.waitUntil(lambda: not program.models.choosing)
        return program

    yield opening
    for program in opened:
        program.window.close()
        program.worker.close(closing=program.history.close)
        program.window.deleteLater()
        for part in vars(program).values():
            if part is not program.app:
                part.deleteLater()
        qtbot.wait(1)
