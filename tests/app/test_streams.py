"""SRV-3: no console. Standard streams are missing or closed, and everything works all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
LIBRARIES = """
import sys
sys.stdin = sys.stdout = sys.stderr = None
from app import streams
streams.settle()
from transformers.utils import logging
logging.get_logger("transformers").warning("said")
logging.enable_progress_bar()
for _ in logging.tqdm(range(3)): print("on the way")
assert sys.stdin.readline() == "" and not sys.stdout.isatty()
open(sys.argv[1], "w").write("done")
"""
DESCRIPTORS = """
import os, sys
from app import streams
streams.settle()
with open(sys.argv[1], "w") as file:
    os.write(1, b"said by a library"), os.write(2, b"and another")
    file.write(f"{file.fileno() > 2}")
"""
WINDOW = """
import sys
from PySide6.QtCore import QTimer
from app import start
from tests.fakes import FakeShelf, ScriptedSession, chunks_of

build, answered = start.build, []
def staged(argv):
    program = build(argv, session_factory=lambda: ScriptedSession(chunks_of(["Hello"])),
                    shelf=FakeShelf())
    def look():
        if program.chat.can_send and not program.models.choosing and not answered:
            answered.append(program.chat.send("Hi"))
    def failing():
        raise ValueError("a slot of the window failed")
    timer = QTimer(program.app, interval=20)
    timer.timeout.connect(look)
    timer.start()
    program.chat.answered.connect(failing)
    program.chat.answered.connect(lambda: QTimer.singleShot(300, program.window.close))
    staged.program = program
    return program
start.build = staged
from app.__main__ import main
code = main([])
open(sys.argv[1], "w").write(f"{code} {staged.program.chat.turns[-1].text}")
"""


def run(script, out, redirect=">&- 2>&- <&-", timeout=90):
    """A script run without standard streams; what it wrote."""
    line = f'exec "$0" -c "$1" "$2" {redirect}'
    command = ["sh", "-c", line, sys.executable, script, str(out)]
    subprocess.run(command, cwd=TOP, check=True, timeout=timeout)
    return out.read_text()


def test_libraries_print_and_show_progress_where_no_stream_is(tmp_path):
    assert run(LIBRARIES, tmp_path / "out", "") == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes descriptors")
def test_what_is_printed_goes_into_no_file_that_was_opened_since(tmp_path):
    assert run(DESCRIPTORS, tmp_path / "out") == "True"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes descriptors")
def test_the_window_opens_answers_and_outlives_an_error_without_any_stream(tmp_path):
    assert run(WINDOW, tmp_path / "out") == "0 Hello"
    logs = tmp_path / "home" / "slipstream" / "logs"
    assert "a slot of the window failed" in (logs / "slipstream.log").read_text()
    (report,) = logs.glob("crash-*.txt")
    assert "ValueError" in report.read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes descriptors")
@pytest.mark.parametrize("words", ["models", "settings", "--version", "export --all"])
def test_terminal_commands_end_as_they_should_without_any_stream(words, tmp_path):
    line = f'"$0" -m app {words} >&- 2>&- <&-; echo $? > "$1"'
    subprocess.run(["sh", "-c", line, sys.executable, str(tmp_path / "out")], cwd=TOP, check=True)
    assert (tmp_path / "out").read_text() == ("1\n" if words.startswith("export") else "0\n")
