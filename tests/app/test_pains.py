"""What annoys people in other programs, through the whole window: each row has its remedy here."""

import shutil
import statistics
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication

from app import paths, settings
from app.chats import exchange
from app.chats.conversation import ChatRecord, Entry
from app.chats.store import Store
from app.settings import Settings
from app.viewmodels.alerts import Action
from engine.api import Chunk, Finish, Sampling
from engine.session import Session
from engine.tokenizer import NO_TEMPLATE
from tests.fakes import ScriptedSession, chunks_of
from tests.folders import CHATML, IM_END, tiny_config, write_model
from tests.measure.smoothness import Meter
from tests.speaking import Speaker, ask, last, open_real, spoken, write, write_speaker

LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i * j %}" + (
    "{% endfor %}{% endfor %}"
)
FLOOD = "{{ 'x' * 5000000 }}"


def on(question, template):
    """`template` for this question only."""
    return "{% if messages[0].content == '" + question + "' %}" + template + "{% endif %}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write_speaker(root / "odd", on("loop", LOOP) + on("flood", FLOOD) + CHATML)
    write_speaker(root / "broken", "{% if %}")
    write_speaker(root / "none", None)
    write_speaker(root / "pair")
    write_model(root / "pair" / "Small", config=tiny_config(eos_token_id=IM_END), layers=1)
    return root


def longest_gap(meter):
    """Seconds between two ticks in which the thread did not wait for a processor."""
    pairs = pairwise(zip(meter.ticks, meter.waits, strict=True))
    return max(b[0] - a[0] - (b[1] - a[1]) for a, b in pairs)


# Templates


def test_a_template_without_end_leaves_the_window_alive(qtbot, open_program, folders):
    session = Speaker(spoken("-"), spoken("-"), spoken("fine"))
    program = open_real(qtbot, open_program, session, folders / "odd")
    template = session.target.tokenizer.template
    for question, seconds, code in (
        ("loop", 0.5, "template_slow"),
        ("flood", 20.0, "template_long"),
    ):
        template._seconds = seconds
        meter = Meter()
        qtbot.waitUntil(lambda meter=meter: bool(meter.ticks), timeout=30_000)
        ask(qtbot, program, question)
        meter.timer.stop()
        assert longest_gap(meter) < 0.25
        assert program.alerts.current.reason.code == code
        assert program.window.error_bar.buttons[Action.CHOOSE_MODEL].isVisible()
        assert program.window.composer.edit.toPlainText() == question
        program.window.composer.edit.clear()
    ask(qtbot, program, "another")
    assert program.chat.turns[-1].text == "fine"


def test_stop_ends_a_template_that_never_ends(qtbot, open_program, folders):
    session = Speaker(spoken("-"), spoken("fine"))
    program = open_real(qtbot, open_program, session, folders / "odd")
    hello = [{"role": "user", "content": "hi"}]
    session.target.tokenizer.template.render(hello)  # its process is ready
    write(qtbot, program, "loop")
    qtbot.waitUntil(lambda: len(session.answers) == 1, timeout=30_000)  # it has begun
    with qtbot.waitSignal(program.chat.answered, timeout=30_000):
        began = time.monotonic()
        qtbot.keyClick(program.window, Qt.Key.Key_Escape)
    assert time.monotonic() - began < 0.5
    assert program.alerts.current is None
    assert program.window.composer.edit.toPlainText() == "loop"
    program.window.composer.edit.clear()
    ask(qtbot, program, "another")
    assert program.chat.turns[-1].text == "fine"


def test_a_missing_template_is_said_and_the_text_goes_on(qtbot, open_program, folders):
    session = Speaker(spoken(" a time"))
    program = open_real(qtbot, open_program, session, folders / "none")
    ask(qtbot, program, "Once upon")
    assert session.told() == "Once upon"
    assert last(program)._notices.text() == NO_TEMPLATE.text
    assert last(program)._notices.isVisible()
    assert program.chat.turns[-1].text == " a time"


def test_a_broken_template_is_named_and_another_model_offered(qtbot, open_program, folders):
    session = Speaker(spoken("-"), spoken("-"))
    program = open_real(qtbot, open_program, session, folders / "broken")
    ask(qtbot, program)
    bar = program.window.error_bar
    assert bar.isVisible()
    assert "chat template refused" in bar.text.text()
    assert "Traceback" not in bar.text.text()
    assert program.window.composer.edit.toPlainText() == "hi"
    assert program.chat.turns == ()
    assert bar.buttons[Action.CHOOSE_MODEL].isVisible()
    bar.buttons[Action.CHOOSE_MODEL].click()
    assert not bar.isVisible()
    assert program.window.sidebar.target.choices.isVisible()


# Stop


def test_stop_is_prompt_while_the_chat_is_read_and_leaves_the_engine_idle(
    qtbot, open_program, folders
):
    session = Speaker(spoken("-"), spoken("fine"))
    program = open_real(qtbot, open_program, session, folders / "odd")
    layers = session.target.model.network.model.layers
    reads, go_on, begun = [], threading.Event(), []

    def hold(*_):
        reads.append(threading.current_thread().name)
        go_on.wait(20)

    hooks = [
        layers[0].register_forward_hook(hold),
        layers[1].register_forward_hook(lambda *_: begun.append(1)),
    ]
    write(qtbot, program, "z" * 300)
    qtbot.waitUntil(lambda: bool(reads), timeout=30_000)
    with qtbot.waitSignal(program.chat.answered, timeout=30_000):
        began = time.monotonic()
        qtbot.keyClick(program.window, Qt.Key.Key_Escape)
        go_on.set()
    assert time.monotonic() - began < 0.5
    assert (reads, begun, session.passes) == (["model"], [], 0)
    assert program.window.composer.edit.toPlainText() == "z" * 300
    for hook in hooks:
        hook.remove()
    program.window.composer.edit.clear()
    ask(qtbot, program)
    assert program.chat.turns[-1].text == "fine"


# Long chats and answers


def write_chat(messages, folder):
    """A chat of so many messages, kept before the program starts."""
    entries, parent = [], None
    for n in range(messages):
        role = ("user", "assistant")[n % 2]
        text = f"Question {n}?" if n % 2 == 0 else f"Some *words* on {n}:\n\n- one\n- `two`\n"
        entries.append(Entry(f"m{n}", "c", parent, role, text))
        parent = f"m{n}"
    exchange.save(folder / "long.json", [(ChatRecord("c", "Long"), entries)], "json")
    store = Store(paths.history_file())
    store.take_in(folder / "long.json")
    store.close()


def open_only(qtbot, program):
    """Open the one chat that is kept, and have all built that will be."""
    qtbot.waitUntil(lambda: bool(program.conversations.lines), timeout=30_000)
    (line,) = [line for line in program.conversations.lines if line.id]
    with qtbot.waitSignal(program.chat.opened, timeout=30_000):
        program.conversations.open(line.id)
    filling = program.window.transcript._filling
    qtbot.waitUntil(lambda: not filling.isActive(), timeout=60_000)


def took(work):
    """Seconds of the processor, in this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def test_typing_in_a_chat_of_500_messages_is_quick(qtbot, open_program, tmp_path):
    write_chat(500, tmp_path)
    program = open_program(ScriptedSession())
    open_only(qtbot, program)
    assert len(program.chat.turns) == 500
    edit = program.window.composer.edit
    edit.setFocus()

    def press(key):
        qtbot.keyClick(edit, key)
        QApplication.processEvents()

    costs = [took(lambda k=key: press(k)) for key in "What of all this is true"]
    assert edit.toPlainText() == "What of all this is true"
    assert max(costs) < 0.05


class Sight(QObject):
    """When words were first painted in the last answer."""

    def __init__(self, program):
        super().__init__()
        self._program = program
        self.at = {}

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            for answer in self._program.window.transcript._answers()[-1:]:
                if watched is answer.body.viewport():
                    for word in answer.body.toPlainText().split():
                        self.at.setdefault(word, time.monotonic())
        return False


def test_a_piece_is_painted_soon_after_it_is_pushed(qtbot, open_program):
    gate, pushed = threading.Semaphore(0), {}

    def pieces():
        for n in range(12):
            gate.acquire(timeout=20)
            pushed[f"word{n}"] = time.monotonic()
            yield Chunk(text=f"word{n} ")
        yield Chunk(finish=Finish.STOP)

    program = open_program(ScriptedSession(chunks_of(["-"])))
    program.worker._session.script = [pieces()]
    sight = Sight(program)
    QApplication.instance().installEventFilter(sight)
    program.chat.send("hi")
    for n in range(12):
        gate.release()
        qtbot.waitUntil(lambda word=f"word{n}": word in sight.at, timeout=30_000)
    QApplication.instance().removeEventFilter(sight)
    assert statistics.median(sight.at[word] - pushed[word] for word in pushed) < 0.15


def test_a_code_answer_of_3_000_lines_never_holds_the_window(qtbot, open_program):
    """At 200 lines a second there are seven in an update; to be done sooner, more at first. What
    colours code was loaded before."""
    end = threading.Event()

    def nothing():
        end.wait(120)
        yield Chunk(finish=Finish.STOP)

    session = ScriptedSession(chunks_of(["```python\nx = 1\n```\n"]))
    session.script.append(nothing())
    program = open_program(session)
    ask(qtbot, program)
    program.chat.send("hi")
    lines = [f"    total_{n} = compute(total, {n} * values[{n}])  # so on\n" for n in range(3_000)]
    cuts = [*range(0, 2_400, 40), *range(2_400, 3_000, 7), 3_000]
    parts = ["```python\n", *("".join(lines[a:b]) for a, b in pairwise(cuts)), "```\n"]
    QApplication.processEvents()

    def show(part):
        program.worker._outbox.put(Chunk(text=part))
        program.worker.flush()
        QApplication.processEvents()

    costs = [took(lambda p=part: show(p)) for part in parts]
    end.set()
    with qtbot.waitSignal(program.chat.answered, timeout=30_000):
        pass
    assert max(costs) < 0.1
    assert program.chat.turns[-1].text == "".join(parts)
    assert "total_2999" in last(program).body.toPlainText()


# Drafts


def choose(qtbot, choices, key):
    """A click on the row of a draft."""
    index = choices.model().index(choices._rows.place(key))
    choices.scrollTo(index)
    place = choices.visualRect(index).center()
    qtbot.mouseClick(choices.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_another_draft_leaves_the_target_and_both_are_shown_where_they_run(
    qtbot, open_program, folders
):
    session, small = Session(paths.ensure(paths.cache_folder())), folders / "pair" / "Small"
    settings.save(
        Settings(target=str(folders / "pair" / "Tiny")), paths.ensure(paths.config_folder())
    )
    program = open_real(qtbot, open_program, session, folders / "pair")
    program.chat.choose(replace(program.chat.choices, sampling=Sampling(max_tokens=8)))
    ask(qtbot, program)
    network, held = session.target.model.network, session.target.model.cache.length
    choices, sidebar = program.window.sidebar.drafts.choices, program.window.sidebar
    qtbot.waitUntil(
        lambda: rows(program)[str(small)].usable and rows(program)[str(small)].tone != "plain",
        timeout=30_000,
    )
    for key in (str(small), "none", str(small)):
        choose(qtbot, choices, key)
        qtbot.waitUntil(lambda k=key: program.models.draft == k, timeout=30_000)
        assert session.target.model.network is network
        assert session.target.model.cache.length == held
        assert program.chat.can_send
    assert session.draft.model.device == session.target.model.device
    assert sidebar.target._device.text() == "Processor"
    qtbot.waitUntil(lambda: program.models.memory.view is not None, timeout=30_000)
    (bar,) = program.models.memory.view.bars
    assert {"target_weights", "draft_weights"} <= {part.name for part in bar.parts}
    assert "Draft weights" in sidebar.memory._drawn[0].bar.accessibleName()
    ask(qtbot, program, "and?")
    assert program.chat.turns[-1].usage.drafted > 0


def rows(program):
    return {row.key: row for row in program.models.drafts}


# What is kept


@pytest.mark.parametrize("own", [True, False])
def test_chats_lie_in_no_cache(monkeypatch, own):
    if not own:
        monkeypatch.delenv("SLIPSTREAM_HOME")
    kept = paths.history_file()
    assert "cache" not in str(kept.relative_to(Path.home())).lower()
    for folder in (paths.cache_folder(), paths.log_folder()):
        assert not kept.is_relative_to(folder)


def test_an_emptied_cache_takes_no_chat_along(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["the marker ", "of an answer"])))
    ask(qtbot, program, "a marked question")
    program.window.close()
    program.worker.close(closing=program.history.close)
    shutil.rmtree(paths.cache_folder(), ignore_errors=True)
    shutil.rmtree(paths.log_folder(), ignore_errors=True)
    program = open_program(ScriptedSession())
    open_only(qtbot, program)
    assert [turn.text for turn in program.chat.turns] == [
        "a marked question",
        "the marker of an answer",
    ]
