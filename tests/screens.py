"""Draws the window's states as pictures: python -m tests.screens OUT [NAME ...]

The conversation of look.md's pictures is played by a scripted session; nothing is loaded. Fonts
are Inter and JetBrains Mono where they are installed.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

if os.environ.setdefault("QT_QPA_PLATFORM", "offscreen") == "offscreen":
    # Qt's own would be smaller than the window, and what opens beside it lie elsewhere.
    screen = {"name": "1", "x": 0, "y": 0, "width": 1920, "height": 1080, "logicalDpi": 96}
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump({"screens": [screen]}, file)
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file.name}"

from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QApplication

from app import paths, start
from app.crashes import Crashes
from app.unforeseen import Unforeseen
from engine.api import Usage
from engine.errors import LoadError, Reason
from tests import chat_screens, compare_screens, gpu_screens, model_screens
from tests.chat_screens import QUESTION, first_answer
from tests.fakes import DRAFT, FakeShelf
from tests.model_screens import computer, usual
from tests.stage import SCHEMES, Stage, exact


def first_run(out: Path) -> None:
    """Nothing there; downloading; failed."""
    shelf = FakeShelf([])
    stage = Stage(out, exact(), shelf)
    stage.show("light", 1440, 900)
    stage.shoot("first-run")
    shelf.hold.clear()
    stage.program.models.starter.get()
    stage.settle(0.5)
    stage.shoot("downloading")
    stage.end()


def troubled(out: Path) -> None:
    """The error bar, a refused draft list, loading."""
    session = exact(first_answer())
    stage = Stage(out, session, usual())
    stage.show("light", 1440, 900)
    stage.shoot("empty")
    stage.ask(QUESTION)
    session.load_error = LoadError(
        "weights_missing",
        "The file {file} is cut off: {have} of {need} MB are there.",
        file="model.safetensors",
        have=120,
        need=988,
    )
    stage.program.models.choose_target(str(DRAFT))
    stage.settle(0.2)
    stage.shoot("error")
    session.load_error = None
    session.load_hold.clear()
    stage.program.models.choose_target(str(DRAFT))
    stage.settle(0.2)
    stage.shoot("loading")
    session.load_hold.set()
    stage.end()


def popovers(out: Path) -> None:
    """The draft options and the list of targets."""
    shelf = usual()
    shelf.refused = Reason(
        "recurrent",
        "This model keeps a running state that cannot be rewound, so drafting is off for it.",
    )
    stage = Stage(out, exact(), shelf)
    stage.show("light", 1440, 900)
    drafts = stage.program.window.sidebar.drafts
    drafts.popover.open_under(drafts.options)
    stage.settle(0.1)
    stage.shoot("draft-options", drafts.popover)
    target = stage.program.window.sidebar.target
    target._popover.open_under(target.head)
    stage.settle(0.1)
    stage.shoot("targets", target._popover)
    target._popover.hide()
    stage.shoot("refused")
    stage.end()


def precisions(out: Path) -> None:
    """The lists of precisions of target and draft, two speeds measured; a note below the badge."""
    for scheme, width, height in (("light", 1440, 900), ("dark", 900, 600)):
        session = exact()
        session.notes = (
            Reason(
                "int8_worse",
                "8 bits raise the perplexity by {percent} %, so this model runs in 16.",
                {"percent": 3.2},
            ),
        )
        stage = Stage(out, session, usual())
        stage.show(scheme, width, height)  # type: ignore[arg-type]
        stage.program.models.choose_draft(str(DRAFT))
        stage.settle(0.2)
        for tokens, seconds in ((64, 4.6), (64, 9.8)):
            stage.program.models.measured(Usage(tokens=tokens, seconds=seconds))
            stage.program.models.choose_precision("bf16")
            stage.settle(0.3)
        if width < 1200:
            stage.program.window.toggle_sidebar()
        stage.settle(0.2)
        sidebar = stage.program.window.sidebar
        sidebar.target.precision.click()
        stage.shoot(f"precisions-{scheme}", sidebar.target.precision.popover)
        sidebar.target.precision.popover.hide()
        sidebar.drafts.options.click()
        stage.settle(0.1)
        stage.shoot(f"draft-precisions-{scheme}", sidebar.drafts.popover)
        sidebar.drafts.popover.hide()
        stage.end()


def around(out: Path) -> None:
    """About the program, what a crash left, and an error that nobody foresaw."""
    for scheme in SCHEMES:
        stage = Stage(out, exact(), usual())
        stage.show(scheme, 1440, 900)
        window = stage.program.window
        about = window.about._about
        window.about.open_up()
        stage.settle(0.2)
        stage.shoot(f"about-{scheme}", window.about)
        about.said, about.page = "Version 0.2.0 is there.", "https://slipstream.example/0.2.0"
        window.about.notice.click()
        stage.settle(6.0)
        stage.shoot(f"notice-{scheme}", window.about)
        window.about.close()
        window.settings.open_up()
        stage.settle(0.1)
        stage.shoot(f"settings-foot-{scheme}", window.settings)
        window.settings.close()
        logs = paths.ensure(paths.log_folder())
        (logs / "crash-20260101-120000-000000.txt").write_text("Ended by:")
        crashes = Crashes(logs)
        start.tell_of_crashes(stage.program.alerts, crashes)
        stage.shoot(f"crashed-{scheme}")
        unforeseen = Unforeseen(crashes)
        unforeseen.hear(ZeroDivisionError("division by zero"))
        stage.settle(0.2)
        stage.shoot(f"unforeseen-{scheme}", unforeseen.dialog)
        unforeseen.dialog.close()
        stage.end()


def main(arguments: list[str]) -> None:
    """Draw all pictures, or those named."""
    out = Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    app = QApplication(["screens"])
    families = QFontDatabase.families()
    if "Inter" in families:
        font = QFont("Inter")
        font.setPixelSize(13)
        font.setPointSizeF(13 * 72 / app.primaryScreen().logicalDotsPerInch())
        app.setFont(font)
    pictures: dict[str, Callable[[], None]] = {
        "first-run": lambda: first_run(out),
        "troubled": lambda: troubled(out),
        "popovers": lambda: popovers(out),
        "precisions": lambda: precisions(out),
        "around": lambda: around(out),
        **{name: partial(draw, out) for name, draw in chat_screens.PICTURES.items()},
        **{name: partial(draw, out) for name, draw in model_screens.PICTURES.items()},
        **{name: partial(draw, out) for name, draw in compare_screens.PICTURES.items()},
        **{name: partial(draw, out) for name, draw in gpu_screens.PICTURES.items()},
    }
    for name, draw in pictures.items():
        if len(arguments) == 1 or name in arguments[1:]:
            with computer():
                draw()


if __name__ == "__main__":
    main(sys.argv[1:])
