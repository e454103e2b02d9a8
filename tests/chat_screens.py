"""Pictures of chats: the list, the conversation and all that opens over it.

Chats are written into a history before the program starts; a scripted session answers the rest.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from app import paths, resources, settings
from app.chats.conversation import Attachment, ChatRecord, Choices, State
from app.chats.store import Store
from app.viewmodels.turns import Turn
from app.widgets import formula
from engine.api import Chunk, Finish, RoundStats, Sampling, Usage
from engine.errors import EngineError, OutOfMemory, Reason
from tests.chats import DRAWN
from tests.fakes import DRAFT, chunks_of
from tests.model_screens import computer, usual
from tests.stage import Stage, exact

TARGET_NAME = "Qwen2.5-Coder 7B Instruct"
THINKER = "DeepSeek-R1-Distill-Qwen 7B"
MAIN = "Mean of one CSV column"

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
THINKING_LONG = """The user has a file of 40 GB. pandas.read_csv parses all of it into one table.

A column of text becomes one Python object for each cell: about 50 bytes and a pointer, beside \
the text itself. So 40 GB on disk may take 100 to 200 GB of memory.

What helps: chunksize, usecols, dtypes, or another reader. I should say it in two sentences."""
MATHS = r"""## The mean, and how sure it is

For $n$ rows with values $x_i$ the mean is $\bar{x}$, and its standard error $s / \sqrt{n}$:

$$\bar{x} = \frac{1}{n} \sum_{i=1}^{n} x_i \qquad s^2 = \frac{1}{n-1}\sum_{i=1}^{n}(x_i-\bar{x})^2$$

- [x] Read the file once
- [ ] Keep $\sum x_i$ and $\sum x_i^2$
- [ ] Report the *skipped* rows

| Reader | Rows per second | Memory |
|:---|---:|:---:|
| `csv` | 1,200,000 | flat |
| `pandas` | 4,800,000 | **all of it** |
| `polars`, streaming | 9,100,000 | flat |

1. Welford's method is steadier than the plain sums
2. [Its description](https://example.org/welford) is short
   - two variables and a count
   - no second pass

> Variance is never negative; ~~rounding~~ *cancellation* makes it so.

```sql
SELECT avg(price), count(*) FILTER (WHERE price IS NULL)  -- skipped
FROM read_csv('sales.csv', header = true);
```
"""
ARABIC_Q = "كيف أحسب متوسط عمود واحد في ملف CSV كبير؟"
ARABIC_A = """يمكنك قراءة الملف **سطرًا سطرًا** بدل تحميله كله في الذاكرة:

1. افتح الملف باستخدام `csv.DictReader`
2. اجمع القيم وعدّ الصفوف
3. اقسم المجموع على العدد

```python
total, count = 0.0, 0
for row in csv.DictReader(file):
    total += float(row["price"])
    count += 1
```

| القارئ | الذاكرة |
|---|---|
| csv | ثابتة |
| pandas | كل الملف |
"""
HEBREW_Q = "ומה עם שורות ריקות?"
HEBREW_A = "דלגו עליהן ב־`try`, וספרו כמה דילגתם (למשל 12 מתוך 4,500)."
NOTES = Attachment("sales-2026-q3.csv", "date,price\n" + "2026-09-01,12.50\n" * 900)
TRACE = Attachment(
    "traceback of the nightly import that ran out of memory.txt", "MemoryError\n" * 40
)


# What is kept from before


def varied(text: str, *, thought: str = "") -> list[Chunk]:
    """An answer whose rounds differ, with runs of what was drafted."""
    usage = Usage(prompt_tokens=464, time_to_first_token=0.21)
    made = []
    if thought:
        usage = replace(usage, reasoning_tokens=214)
        made.append(Chunk(reasoning=thought, usage=usage))
    tokens = re.findall(r"\s*[\w]{1,6}|\s*[^\w\s]{1,2}|\s+", text)
    pattern = (4, 4, 3, 4, 2, 4, 4, 1, 3, 4, 0, 4, 3, 2, 4)
    at = number = 0
    while at < len(tokens):
        accepted = pattern[number % len(pattern)]
        taken = tokens[at : at + accepted + 1]
        at, number = at + len(taken), number + 1
        stats = RoundStats(
            4, accepted, emitted=len(taken), draft_seconds=0.012, verify_seconds=0.033
        )
        usage = replace(usage.plus(stats), seconds=0.21 + 0.045 * number, seed=4711)
        made.append(
            Chunk(
                text="".join(taken),
                token_ids=tuple(range(at, at + len(taken))),
                drafted=tuple(place < accepted for place in range(len(taken))),
                lengths=tuple(map(len, taken)),
                usage=usage,
                round=stats,
            )
        )
    return [*made, Chunk(usage=usage, finish=Finish.STOP)]


def first_answer() -> list[Chunk]:
    """An answer with thinking."""
    thought = [Chunk(reasoning=THINKING)]
    return thought + chunks_of([FIRST[i : i + 14] for i in range(0, len(FIRST), 14)])


@dataclass
class Kept:
    """Chats to be written: their messages in order, by title. `choices` of some of them."""

    talks: dict[str, list[Turn]] = field(default_factory=dict)
    choices: dict[str, Choices] = field(default_factory=dict)
    chosen: dict[str, Sequence[str]] = field(default_factory=dict)

    def write(self) -> None:
        """Write them and the chats of look.md's pictures."""
        moment = [0.0]
        store = Store(paths.history_file(), lambda: moment[0])
        now = datetime.now().replace(hour=12)
        for place, (title, days, pinned) in enumerate(reversed([*DRAWN, *_more()])):
            when = (now - timedelta(days=days)).timestamp() - 3600 + place
            moment[0] = when
            choices = self.choices.get(title, Choices())
            store.put_chat(ChatRecord(title, title, pinned, when, when, choices))
            turns = self.talks.get(title) or _short(title)
            for turn in turns:
                store.put(replace(turn.entry(title), written=when))
            for name in self.chosen.get(title, ()):
                store.choose(name)
        store.close()


def _more() -> list[tuple[str, int, bool]]:
    names = (
        "Postcards from the Azores",
        "Why is my Docker image 4 GB?",
        "Explain monads once more, with boxes and then without them",
        "Packing list, three days",
        "Unit tests for the price parser",
        "السلام عليكم: رسالة إلى الجار",
        "מתכון לחלה",
        "Translate: Betriebskostenabrechnung",
        "Git: undo the last three commits",
        "Names for a cat",
        "Kalman filter in 40 lines",
        "Ein Gedicht über den November",
        "Interview questions for a baker",
        "SQL window functions",
        "Bicycle gear ratios",
        "CSV with quotes inside quotes",
    )
    return [(name, 45 + 14 * place, False) for place, name in enumerate(names)]


def _short(title: str) -> list[Turn]:
    question = Turn(f"{title}?", "user", f"{title}: how would you begin?")
    return [question, answer(f"{title}!", question.id, "Begin with the smallest part of it.")]


def answer(
    name: str,
    parent: str,
    text: str,
    *,
    thought: str = "",
    model: str = TARGET_NAME,
    state: State = "done",
    finish: Finish | None = Finish.STOP,
) -> Turn:
    """An answer as it was kept."""
    turn = Turn(name, "assistant", parent=parent, model=model, drafted=not thought)
    for chunk in varied(text, thought=thought):
        turn.add(chunk)
    turn.state, turn.finish = state, finish
    if thought:
        turn.thinking, turn.rounds = 6.2, []
        turn.usage = Usage(
            prompt_tokens=31,
            tokens=235,
            reasoning_tokens=214,
            seconds=4.6,
            time_to_first_token=0.18,
        )
    elif turn.drafted:
        turn.times_plain = 1.7
    return turn


def conversation() -> list[Turn]:
    """That of main-light.png."""
    return [
        Turn("q1", "user", QUESTION),
        answer("a1", "q1", FIRST, thought=THINKING_LONG, model=THINKER),
        Turn("q2", "user", SECOND, parent="a1"),
        answer("a2", "q2", ANSWER),
    ]


def versions() -> list[Turn]:
    """A question that was edited once, an answer that was written three times."""
    return [
        Turn("q0", "user", "Why is pandas slow?"),
        answer("a0", "q0", "It is not, mostly."),
        Turn("q1", "user", QUESTION),
        answer("a1", "q1", "Because it reads all of it."),
        answer("a2", "q1", FIRST),
        answer("a3", "q1", "Use chunks."),
    ]


@contextmanager
def staged(
    out: Path,
    kept: Kept | None = None,
    *script: Sequence[Chunk | Exception],
    scheme: resources.Scheme = "light",
    size: tuple[int, int] = (1440, 900),
    chat: str = MAIN,
    mirrored: bool = False,
    **set_: object,
) -> Iterator[Stage]:
    """A program with kept chats and settings, `chat` open."""
    kept = kept or Kept({MAIN: conversation()})

    def prepare() -> None:
        QApplication.setLayoutDirection(
            Qt.LayoutDirection.RightToLeft if mirrored else Qt.LayoutDirection.LeftToRight
        )
        kept.write()
        changed = replace(settings.Settings(), theme=scheme, **set_)
        settings.save(changed, paths.ensure(paths.config_folder()))

    with computer():
        yield from _played(Stage(out, exact(*script), usual(), prepare), scheme, size, chat)


def _played(
    stage: Stage, scheme: resources.Scheme, size: tuple[int, int], chat: str
) -> Iterator[Stage]:
    try:
        stage.show(scheme, *size)
        models = stage.program.models
        stage.until(lambda: models.loaded is not None and not models.choosing, 10)
        models.choose_draft(str(DRAFT))
        stage.until(lambda: not models.choosing, 10)
        if chat:
            stage.until(lambda: stage.program.conversations.record(chat) is not None, 10)
            stage.program.conversations.open(chat)
            stage.until(lambda: stage.program.chat.chat_id == chat, 10)
        stage.settle(0.3)
        yield stage
    finally:
        stage.end()
        QApplication.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        resources.speak(stage.program.app, "en")
        resources.apply_theme(stage.program.app, scheme, percent=100)


def _type(stage: Stage, text: str) -> None:
    edit = stage.program.window.composer.edit
    edit.setPlainText(text)
    edit.moveCursor(edit.textCursor().MoveOperation.End)
    stage.settle(0.4)


def _unfold_thinking(stage: Stage) -> None:
    for shown in stage.program.window.transcript.column.answers:
        if shown._thought is not None:
            shown._thought._fold.setChecked(True)
    stage.settle(0.4)


def _menu(stage: Stage) -> QMenu:
    """The menu that is open."""
    stage.settle(0.1)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu), menu
    return menu


def _popped(stage: Stage, name: str, opener: Callable[[], object]) -> None:
    """Open a menu, take its picture, close it."""
    opener()
    menu = _menu(stage)
    stage.shoot(name, menu)
    menu.close()
    stage.settle(0.1)


def _over(stage: Stage, name: str, popover: QWidget, opener: Callable[[], object]) -> None:
    opener()
    stage.settle(0.3)
    stage.shoot(name, popover)
    popover.hide()
    stage.settle(0.1)


def _await_formulas(stage: Stage) -> None:
    """Formulas are set by another process, which takes its time to start."""
    setter = formula.setter()
    stage.until(lambda: not setter._waiting and setter._now is None, 20)


# The pictures


def main(out: Path) -> None:
    """The conversation of main-light.png, in all languages, schemes and sizes."""
    for name, scheme, size, more in (
        ("light", "light", (1440, 900), {}),
        ("dark", "dark", (1440, 900), {}),
        ("german", "light", (1440, 900), {"language": "de"}),
        ("german-dark-900", "dark", (900, 600), {"language": "de"}),
        ("wide", "light", (1600, 1000), {}),
        ("wide-german-dark", "dark", (1600, 1000), {"language": "de"}),
        ("150", "light", (1440, 900), {"font_size": 150}),
        ("150-german-900", "light", (900, 600), {"font_size": 150, "language": "de"}),
    ):
        kept = Kept({MAIN: conversation()[:2]})
        wanted = {"scheme": scheme, "size": size, "tint": True, **more}
        with staged(out, kept, varied(ANSWER), **wanted) as stage:
            stage.ask(SECOND)
            _type(stage, "Now let the caller choose the delimiter")
            stage.shoot(f"main-{name}")


def turns(out: Path) -> None:
    """Thinking, versions, editing, what ended early, what failed, menus of answers."""
    with staged(out) as stage:
        _unfold_thinking(stage)
        stage.program.window.transcript.show_turn("q1")
        stage.shoot("thinking")
        stage.program.window.transcript.edit_question("a2")
        stage.settle(0.3)
        stage.shoot("editing")
    with staged(out, Kept({MAIN: versions()}, chosen={MAIN: ("q1", "a2")})) as stage:
        stage.shoot("versions")
        shown = stage.program.window.transcript.column.answers[-1]
        _popped(stage, "answer-menu", shown.footer.more.click)
    ended = [
        Turn("q1", "user", QUESTION),
        answer("a1", "q1", FIRST, state="interrupted", finish=None),
        Turn("q2", "user", SECOND, parent="a1"),
        answer("a2", "q2", ANSWER[:400], finish=Finish.CANCELLED),
    ]
    with staged(out, Kept({MAIN: ended}), scheme="dark") as stage:
        stage.shoot("interrupted-dark")
        shown = stage.program.window.transcript.column.answers[-1]
        _popped(stage, "continue-dark", shown.footer.more.click)
    broken = [*varied(ANSWER)[:12], RuntimeError("CUDA error 719")]
    for language in ("en", "de"):
        with staged(out, None, broken, language=language) as stage:
            stage.ask("And as a command?")
            stage.shoot(f"failed-{language}")
            stage.program.window.error_bar.details.click()
            stage.settle(0.2)
            stage.shoot(f"error-details-{language}")


def answering(out: Path) -> None:
    """While it answers: with text, and while it thinks."""
    slow = varied(ANSWER)
    with staged(out, None, slow, scheme="dark", tint=True) as stage:
        stage.session.pause = 0.1
        stage.ask("Again, please.", wait=lambda: len(stage.program.chat.turns[-1].text) > 500)
        stage.shoot("answering-dark")
    thought = [Chunk(reasoning=f"{word} ") for word in THINKING_LONG.split(" ")]
    with staged(out, None, thought, language="de", size=(900, 600)) as stage:
        stage.session.pause = 0.05
        count = len(stage.program.chat.turns) + 2
        stage.ask("Warum?", wait=lambda: len(stage.program.chat.turns) == count)
        stage.shoot("thinking-german-900")


def chats(out: Path) -> None:
    """The list: searched, renamed, deleted, menus, empty."""
    for language, scheme in (("en", "light"), ("de", "dark")):
        with staged(out, scheme=scheme, language=language) as stage:
            window = stage.program.window
            window.chats.focus_search()
            for word, name in (("csv", "search"), ("xylophone", "search-nothing")):
                window.chats.column.search.setText(word)
                stage.settle(0.6)
                stage.shoot(f"{name}-{language}")
            window.chats.column.search.clear()
            stage.settle(0.3)
            window.chats.column.chats.rename("Letter to the landlord")
            stage.settle(0.2)
            stage.shoot(f"renaming-{language}")
            window.composer.edit.setFocus()
            stage.settle(0.2)
            window.header.rename()
            stage.settle(0.2)
            stage.shoot(f"renaming-title-{language}")
            window.composer.edit.setFocus()
            stage.program.conversations.delete("Rust: borrowed value does not live long enough")
            stage.settle(0.3)
            stage.shoot(f"deleted-{language}")
            _popped(stage, f"chat-menu-{language}", window.header.more.click)
            _popped(stage, f"list-menu-{language}", window.chats.column.more.click)
            stage.program.conversations.new()
            stage.settle(0.3)
            stage.shoot(f"new-chat-{language}")
    stage = Stage(out, exact(), usual())
    stage.show("light", 1440, 900)
    stage.shoot("no-chats")
    stage.end()


def find(out: Path) -> None:
    """The find bar, with and without places."""
    with staged(out) as stage:
        transcript = stage.program.window.transcript
        transcript.open_find()
        for word, name in (("column", "find"), ("xylophone", "find-nothing")):
            transcript.search.bar.field.setText(word)
            stage.settle(0.5)
            stage.shoot(name)


def files(out: Path) -> None:
    """Attachments in the composer and in a question."""
    asked = [
        Turn("q1", "user", "What is wrong here?", attachments=(NOTES, TRACE)),
        answer("a1", "q1", FIRST),
    ]
    folder = Path(tempfile.mkdtemp())
    for name in (
        "loader.py",
        "a long name of a file that has to be shortened.md",
        "notes.txt",
    ):
        (folder / name).write_text("def load():\n    pass\n" * 60)
    for language in ("en", "de"):
        with staged(out, Kept({MAIN: asked}), language=language, size=(900, 600)) as stage:
            dropped = QMimeData()
            dropped.setUrls([QUrl.fromLocalFile(str(path)) for path in folder.iterdir()])
            stage.program.window.composer.take(dropped)
            stage.settle(0.6)
            _type(stage, "Compare these")
            stage.shoot(f"files-{language}")
            bubbles = stage.program.window.transcript.column.turns
            bubbles["q1"].chips[0].head.click()
            stage.settle(0.3)
            stage.program.window.transcript.show_turn("q1")
            stage.shoot(f"file-open-{language}")


def composing(out: Path) -> None:
    """What opens over the composer, and the context that is full."""
    full = EngineError(
        "context_full", "The chat needs {needed} of {context} tokens.", needed=9_120, context=8_192
    )
    chosen = Choices("You review code. Be brief.", Sampling(temperature=0.2), left_out="a1")
    for language, scheme, size in (
        ("en", "light", (1440, 900)),
        ("de", "dark", (1440, 900)),
        ("de", "light", (900, 600)),
    ):
        kept = Kept({MAIN: conversation()}, {MAIN: chosen})
        mark = f"{language}-{size[0]}"
        with staged(out, kept, [full], scheme=scheme, language=language, size=size) as stage:
            window = stage.program.window
            composer = window.composer
            _over(stage, f"prompt-{mark}", composer.prompt.popover, composer.prompt.click)
            _over(stage, f"sampling-{mark}", composer.sampling.popover, composer.sampling.click)
            when = window.meter.when_full
            _over(stage, f"when-full-{mark}", when.popover, when.click)
            window.transcript.show_turn("q2")
            stage.shoot(f"left-out-{mark}")
            stage.ask("And what about the rest of the columns?")
            stage.shoot(f"overflow-{mark}")


def errors(out: Path) -> None:
    """Error bars with buttons."""
    short = OutOfMemory(
        "no_memory",
        "Memory ran out. The text is kept. A shorter chat or no draft model needs less.",
    )
    for language, size in (("en", (1440, 900)), ("de", (900, 600))):
        with staged(out, language=language, size=size) as stage:
            stage.program.alerts.show_reason(short.reason)
            stage.shoot(f"memory-{language}")
            why = Reason(
                "history_damaged",
                "The file of chats is damaged. Slipstream saves what can be read of it when its "
                "window starts: {path}",
                {"path": "/home/someone/.local/share/slipstream/history.db"},
            )
            stage.program.alerts.show_reason(why)
            stage.program.window.error_bar.details.click()
            stage.settle(0.2)
            stage.shoot(f"damaged-{language}")


def dialogs(out: Path) -> None:
    """Settings, keys, list of targets."""
    for language, scheme, more in (
        ("en", "light", {}),
        ("de", "dark", {}),
        ("de", "light", {"font_size": 150}),
    ):
        mark = f"{language}-{more.get('font_size', 100)}"
        with staged(out, scheme=scheme, language=language, **more) as stage:
            window = stage.program.window
            _over(stage, f"settings-{mark}", window.settings, window.settings.open_up)
            window.show_shortcuts()
            sheet = window._sheet
            assert sheet is not None
            _over(stage, f"shortcuts-{mark}", sheet, sheet.show)
            _over(stage, f"targets-{mark}", window.sidebar.target._popover, window.choose_model)


def narrow(out: Path) -> None:
    """900x600: the rail, the column and the sidebar over it."""
    for language, scheme in (("en", "light"), ("de", "dark")):
        with staged(out, scheme=scheme, size=(900, 600), language=language) as stage:
            window = stage.program.window
            stage.shoot(f"narrow-{language}")
            window.chats.focus_chats()
            stage.settle(0.2)
            stage.shoot(f"narrow-chats-{language}")
            window.chats.fold()
            window.toggle_sidebar()
            stage.settle(0.2)
            stage.shoot(f"narrow-sidebar-{language}")
            window.toggle_sidebar()
            stage.program.conversations.delete("Letter to the landlord")
            stage.settle(0.3)
            stage.shoot(f"narrow-deleted-{language}")


def markdown(out: Path) -> None:
    """Headings, formulas, tables, tasks, quotes, code."""
    for scheme, text, name in (
        ("light", MATHS, "markdown"),
        ("dark", MATHS, "markdown"),
        ("light", LETTER, "letter"),
    ):
        turns = [Turn("q1", "user", "How sure is that mean?"), answer("a1", "q1", text)]
        with staged(out, Kept({MAIN: turns}), scheme=scheme, size=(1600, 1000)) as stage:
            _await_formulas(stage)
            stage.shoot(f"{name}-{scheme}")


def mirrored(out: Path) -> None:
    """From right to left."""
    turns = [
        Turn("q1", "user", ARABIC_Q, attachments=(NOTES,)),
        answer("a1", "q1", ARABIC_A),
        Turn("q2", "user", HEBREW_Q, parent="a1"),
        answer("a2", "q2", HEBREW_A, thought="שאלה על שורות ריקות.", model=THINKER),
    ]
    kept = Kept({MAIN: turns})
    with staged(out, kept, mirrored=True, tint=True) as stage:
        window = stage.program.window
        stage.shoot("rtl")
        window.transcript.show_turn("q1")
        stage.shoot("rtl-top")
        window.transcript.open_find()
        window.transcript.search.bar.field.setText("csv")
        window.chats.column.search.setText("csv")
        stage.settle(0.6)
        stage.shoot("rtl-find")
        composer = window.composer
        _over(stage, "rtl-sampling", composer.sampling.popover, composer.sampling.click)
        _over(stage, "rtl-settings", window.settings, window.settings.open_up)
        _popped(stage, "rtl-menu", window.header.more.click)
    with staged(out, kept, mirrored=True, scheme="dark", size=(900, 600)) as stage:
        stage.shoot("rtl-dark-900")
        stage.program.window.chats.focus_chats()
        stage.settle(0.2)
        stage.shoot("rtl-chats-dark-900")


PICTURES: dict[str, Callable[[Path], None]] = {
    "main": main,
    "turns": turns,
    "answering": answering,
    "chats": chats,
    "find": find,
    "files": files,
    "composing": composing,
    "errors": errors,
    "dialogs": dialogs,
    "narrow": narrow,
    "markdown": markdown,
    "mirrored": mirrored,
}
