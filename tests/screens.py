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

from app import resources
from engine.api import Chunk, Finish, Usage
from engine.errors import LoadError, Reason
from tests import model_screens
from tests.fakes import DRAFT, FakeShelf, ScriptedSession, chunks_of
from tests.stage import Stage, exact

QUESTION = "Why does pandas run out of memory on my 40 GB CSV?"
SECOND = "Just the mean of one column, then. Row by row, standard library only."
THINKING = "The file is read whole. Text columns become Python objects, so they grow."
FIRST = (
    "It builds the whole table in memory, and text columns grow several times. Read it in pieces."
)
ANSWER = '''This keeps a running total, so memory use stays flat however large the file is. \
Rows without a number in that column are skipped and counted.

```python
import csv
from pathlib import Path

def column_mean(path: Path, column: str) -> tuple[float, int]:
    """Mean of one CSV column, and how many rows were skipped."""
    total, count, skipped = 0.0, 0, 0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                total += float(row[column])
                count += 1
            except (TypeError, ValueError):
                skipped += 1
    if count == 0:
        raise ValueError(f"no numbers in column {column!r}")
    return total / count, skipped
```

A 40 GB file takes a few minutes, most of it spent reading from disk.
'''
LETTER = """Dear Sir or Madam,

The heating in flat 4B has been off since 3 November. I have reported it *twice*.

Please arrange for an engineer to come by **Friday**. I am at home:

- on weekdays after 16:00,
- on Saturday all day; call `0171 555` first.

1. First the radiators
2. then the boiler

> If that is not possible, I would like to talk about a lower rent.

| Day | From | To |
|---|---|---|
| Monday | 16:00 | 20:00 |
| Saturday | 9:00 | 20:00 |
"""


def pieces(text: str, size: int = 14) -> list[str]:
    """`text` in equal pieces."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def first_answer() -> list[Chunk]:
    """An answer with thinking."""
    thought = [Chunk(reasoning=THINKING)]
    return thought + chunks_of(pieces(FIRST))


def varied(text: str) -> list[Chunk]:
    """An answer whose rounds differ."""
    made = []
    from dataclasses import replace

    from engine.api import RoundStats, Usage

    usage = Usage(prompt_tokens=464, time_to_first_token=0.21)
    pattern = (4, 4, 3, 4, 2, 4, 4, 1, 3, 4, 0, 4, 3, 2, 4)
    for number, piece in enumerate(pieces(text)):
        accepted = pattern[number % len(pattern)]
        stats = RoundStats(
            4, accepted, emitted=accepted + 1, draft_seconds=0.012, verify_seconds=0.033
        )
        usage = replace(usage.plus(stats), seconds=0.21 + 0.045 * (number + 1))
        made.append(Chunk(text=piece, usage=usage, round=stats))
    return [*made, Chunk(usage=usage, finish=Finish.STOP)]


def main_picture(out: Path, scheme: resources.Scheme, name: str, width: int, height: int) -> None:
    """The conversation of main-light.png."""
    stage = Stage(out, exact(first_answer(), varied(ANSWER)), FakeShelf())
    stage.show(scheme, width, height)
    stage.program.models.choose_draft(str(DRAFT))
    stage.settle(0.2)
    stage.ask(QUESTION)
    stage.ask(SECOND)
    stage.program.window.composer.edit.setPlainText("Now let the caller choose the delimiter")
    stage.program.window.composer.edit.moveCursor(
        stage.program.window.composer.edit.textCursor().MoveOperation.End
    )
    stage.shoot(name)
    stage.end()


def answering(out: Path) -> None:
    """While it answers, dark."""
    chunks = varied(ANSWER)
    stage = Stage(out, exact(first_answer(), chunks, pause=0.01), FakeShelf())
    stage.show("dark", 1440, 900)
    stage.program.models.choose_draft(str(DRAFT))
    stage.settle(0.2)
    stage.ask(QUESTION)
    part = len(ANSWER) * 0.62
    stage.session.pause = 0.03
    stage.ask(SECOND, wait=lambda: len(stage.program.chat.turns[-1].text) > part)
    stage.shoot("answering-dark")
    stage.end()


def narrow(out: Path) -> None:
    """900x600, the sidebar folded and then open."""
    stage = Stage(out, ScriptedSession(varied(LETTER)), FakeShelf())
    stage.show("light", 900, 600)
    stage.ask("The heating has been off for nine days. Friendly but firm, please, and short.")
    stage.shoot("narrow")
    stage.program.window.toggle_sidebar()
    stage.shoot("narrow-overlay")
    stage.end()


def letter(out: Path) -> None:
    """All kinds of Markdown."""
    stage = Stage(out, ScriptedSession(varied(LETTER)), FakeShelf())
    stage.show("light", 1440, 900)
    stage.ask("The heating has been off for nine days. Friendly but firm, please, and short.")
    stage.shoot("markdown")
    stage.end()


def first_run(out: Path) -> None:
    """Nothing there; downloading; failed."""
    shelf = FakeShelf([])
    stage = Stage(out, ScriptedSession(), shelf)
    stage.show("light", 1440, 900)
    stage.shoot("first-run")
    shelf.hold.clear()
    stage.program.models.starter.get()
    stage.settle(0.5)
    stage.shoot("downloading")
    stage.end()


def troubled(out: Path) -> None:
    """The error bar, a refused draft list, loading."""
    session = ScriptedSession(first_answer())
    stage = Stage(out, session, FakeShelf())
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
    shelf = FakeShelf()
    shelf.refused = Reason(
        "recurrent",
        "This model keeps a running state that cannot be rewound, so drafting is off for it.",
    )
    stage = Stage(out, ScriptedSession(), shelf)
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
        stage = Stage(out, session, FakeShelf())
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
        "main-light": lambda: main_picture(out, "light", "main-light", 1440, 900),
        "main-dark": lambda: main_picture(out, "dark", "main-dark", 1440, 900),
        "answering": lambda: answering(out),
        "narrow": lambda: narrow(out),
        "letter": lambda: letter(out),
        "first-run": lambda: first_run(out),
        "troubled": lambda: troubled(out),
        "popovers": lambda: popovers(out),
        "precisions": lambda: precisions(out),
        **{name: partial(draw, out) for name, draw in model_screens.PICTURES.items()},
    }
    for name, draw in pictures.items():
        if len(arguments) == 1 or name in arguments[1:]:
            draw()


if __name__ == "__main__":
    main(sys.argv[1:])
