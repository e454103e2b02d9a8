"""A second start: what it hands over, what it is told, and when it may begin."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QLockFile

from app import cli, instance, request, start
from app.__main__ import main
from app.chats.conversation import new_id
from app.instance import LOCK, Instance
from tests.fakes import TARGET, FakeShelf, ScriptedSession, chunks_of

TOP = Path(__file__).parents[2]
SILENT = """
    import sys, time
    from PySide6.QtCore import QLockFile
    lock = QLockFile(sys.argv[1])
    print(lock.tryLock(0), flush=True)
    time.sleep(60)
"""
STARTED = """
    import sys
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication
    from app.__main__ import main
    app = QApplication([])
    def look():
        box = QApplication.activeModalWidget()
        if box is not None:
            print(box.text(), flush=True)
            box.close()
    timer = QTimer()
    timer.timeout.connect(look)
    timer.start(20)
    sys.exit(main([]))
"""


def python(code, *words, **more):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *words],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_where_a_copy_hangs_a_dialog_says_so_in_words(tmp_path):
    home = Path(os.environ["SLIPSTREAM_HOME"])
    (home / "data").mkdir(parents=True)
    hanging = python(SILENT, str(home / "data" / LOCK))
    assert hanging.stdout.readline().strip() == "True"
    try:
        second = python(STARTED)
        said, errors = second.communicate(timeout=90)
    finally:
        hanging.kill()
        hanging.communicate()
    assert second.returncode == 1
    assert str(hanging.pid) in said
    assert LOCK in said
    assert "Error" not in errors
    log = (home / "logs" / start.LOG_NAME).read_text(encoding="utf-8")
    assert "ERROR" in log
    assert "already running" in log


@pytest.mark.parametrize("part", ["logs", "data"])
def test_a_folder_that_cannot_be_made_is_said_in_a_dialog_and_the_log(part):
    home = Path(os.environ["SLIPSTREAM_HOME"])
    home.mkdir()
    (home / part).write_text("a file")
    started = python(STARTED)
    said, errors = started.communicate(timeout=90)
    assert started.returncode == 1
    assert f"{home / part} cannot be written to: " in said
    assert "Errno" not in said + errors
    log = home / "logs" / start.LOG_NAME
    assert said.strip() in (log.read_text(encoding="utf-8") if part == "data" else errors)


def test_it_gives_up_within_three_seconds(qapp, tmp_path):
    first = Instance(tmp_path)
    assert first.claim()
    began = time.monotonic()
    with pytest.raises(start.EngineError):  # the first, in this very process, cannot answer
        Instance(tmp_path).claim("x")
    assert time.monotonic() - began < 3
    first.close()


def test_a_lock_left_by_one_that_had_our_number_is_none(qapp, tmp_path):
    """As in a container, where each start has the same number."""
    before = QLockFile(str(tmp_path / LOCK))
    assert before.tryLock(0)
    left = (tmp_path / LOCK).read_bytes()
    before.unlock()
    (tmp_path / LOCK).write_bytes(left)
    assert Instance(tmp_path).claim()


def test_who_starts_while_the_last_copy_ends_waits_for_it(qapp, tmp_path, monkeypatch):
    monkeypatch.setattr(instance, "PATIENCE", 0.3)
    first, second = Instance(tmp_path), Instance(tmp_path)
    assert first.claim()
    first.hang_up()
    with pytest.raises(start.EngineError):  # the place is still held
        second.claim()
    first.close()
    assert second.claim()
    second.close()


def test_the_place_is_given_up_once_all_is_written(qtbot, open_program, monkeypatch):
    program = open_program(ScriptedSession(chunks_of(["ok"])))
    ended = []
    close = program.history.close
    monkeypatch.setattr(
        program.history, "close", lambda *told: (close(*told), ended.append("written"))
    )
    program.window.close()
    assert start.leave(program, 0, lambda: ended.append("given up")) == 0
    assert ended == ["written", "given up"]


class Stuck(ScriptedSession):
    """Loads its second model until it is let go, whatever it is told."""

    def load_target(self, path, **more):
        if self.loads:
            self.stuck.set()
            self.released.wait(30)
        return super().load_target(path, **more)


def test_a_load_that_cannot_be_stopped_keeps_the_program_less_than_two_seconds(
    qtbot, open_program, monkeypatch
):
    session = Stuck(chunks_of(["ok"]))
    session.stuck, session.released = threading.Event(), threading.Event()
    program = open_program(session)
    program.models.choose_target(str(TARGET.with_name("other")))
    qtbot.waitUntil(session.stuck.is_set)
    codes = []
    monkeypatch.setattr(start.os, "_exit", codes.append)
    program.window.close()
    began = time.monotonic()
    start.leave(program, 0)
    took = time.monotonic() - began
    session.released.set()
    assert codes == [0]
    assert took < 1.8


def test_where_a_job_does_not_end_in_time_the_last_is_done_all_the_same(monkeypatch):
    done = []
    worker = SimpleNamespace(close=lambda *_, **__: False)
    program = SimpleNamespace(worker=worker, history=SimpleNamespace(close=None))
    monkeypatch.setattr(start.os, "_exit", done.append)
    start.leave(program, 3, lambda: done.append("started again"))
    assert done == ["started again", 3]


@pytest.fixture
def program(open_program):
    return open_program(ScriptedSession(*[chunks_of(["ok"])] * 2))


def test_a_path_of_a_model_is_loaded(qtbot, program, tmp_path):
    other = tmp_path / "Ünï cödé.gguf"
    other.write_bytes(b"GGUF")
    start.answer_call(program, request.whole(str(other)))
    qtbot.waitUntil(lambda: program.models.target_key == str(other))


def test_an_id_opens_that_chat_also_before_the_list_is_known(qtbot, program):
    for question in ("one", "two"):
        program.window.new_chat()
        with qtbot.waitSignal(program.chat.answered):
            program.chat.send(question)
    last = program.chat.chat_id

    def others():
        return [line.id for line in program.conversations.lines if line.id not in ("", last)]

    qtbot.waitUntil(lambda: len(others()) == 1)
    (first,) = others()
    start.answer_call(program, first)
    qtbot.waitUntil(lambda: program.chat.chat_id == first)
    program.conversations._listed = False
    start.answer_call(program, last)
    program.history.look()
    qtbot.waitUntil(lambda: program.chat.chat_id == last)


REFUSED = ["rm -rf /", "relative.gguf", "/nowhere/model.gguf", "/" + "x" * 5000, "A" * 16, "\0"]


def test_anything_else_is_refused_in_a_sentence(program):
    before = program.models.target_key, program.chat.chat_id
    for said in REFUSED:
        program.alerts.dismiss()
        start.answer_call(program, said)
        assert "neither" in program.alerts.current.text
        assert said not in program.alerts.current.text
        assert (program.models.target_key, program.chat.chat_id) == before


def test_a_chat_that_is_not_there_is_said_so(qtbot, program):
    qtbot.waitUntil(lambda: program.conversations._listed)
    start.answer_call(program, new_id())
    assert "no chat" in program.conversations.note.text


def test_nothing_asked_only_brings_the_window_forward(program):
    program.window.showMinimized()
    start.answer_call(program, "")
    assert not program.window.isMinimized()
    assert program.alerts.current is None


@pytest.mark.parametrize("word", ["modells", "no/such/file.gguf", "0123"])
def test_the_command_line_refuses_what_is_neither(capsys, word):
    assert main([word]) == 2
    assert word in capsys.readouterr().err


def test_a_command_stays_a_command_whatever_lies_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    assert cli.parse(["models"]).command == "models"
    assert cli.parse(["./models"]).open == "./models"
    assert request.whole("./models") == str(tmp_path / "models")


def test_a_start_without_a_word_asks_for_nothing(monkeypatch):
    """Not for the folder that it happens in."""
    asked = []
    monkeypatch.setattr(start, "open_window", lambda argv, wanted: asked.append(wanted) or 0)
    assert main([]) == 0
    assert asked == [""]


def test_without_a_library_a_named_model_is_loaded_and_shown(qtbot, open_program, tmp_path):
    folder = tmp_path / "own model"
    folder.mkdir()
    program = open_program(ScriptedSession(chunks_of(["ok"])), FakeShelf([]), wait=False)
    start.answer_call(program, str(folder))
    qtbot.waitUntil(lambda: program.models.target_key == str(folder))
    assert not program.models.first_run
