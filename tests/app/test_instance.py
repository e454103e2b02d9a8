"""One running copy: a second hands its message to the first, dead ones are in nobody's way."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket

from app import instance
from app.instance import ADDRESS, LOCK, Instance
from engine.errors import EngineError

FIRST = """
    import sys
    from pathlib import Path
    from PySide6.QtCore import QCoreApplication
    from app.instance import Instance
    app = QCoreApplication([])
    first = Instance(Path(sys.argv[1]))
    first.called.connect(lambda message: print(repr(message), flush=True))
    print(first.claim(), flush=True)
    app.exec()
"""
SECOND = """
    import sys
    from pathlib import Path
    from app.instance import Instance
    sys.exit(0 if Instance(Path(sys.argv[1])).claim(sys.argv[2]) else 3)
"""


@pytest.fixture(params=["data", "田中　太郎 Ünï'x/данные #1%20&/" + "long" * 50])
def folder(request, tmp_path):
    return tmp_path / request.param


@pytest.fixture
def running(folder):
    """Another process that runs for the folder."""
    code = [sys.executable, "-c", textwrap.dedent(FIRST), str(folder)]
    process = subprocess.Popen(code, stdout=subprocess.PIPE, cwd=TOP)
    assert process.stdout.readline().strip() == b"True"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


TOP = Path(__file__).parents[2]


def second(folder, message=""):
    """The exit code of another start."""
    code = [sys.executable, "-c", textwrap.dedent(SECOND), str(folder), message]
    return subprocess.run(code, cwd=TOP, timeout=60, check=False).returncode


@pytest.fixture
def claimed(qapp, folder):
    made = Instance(folder)
    assert made.claim()
    yield made
    made.close()


@pytest.mark.parametrize("message", ["", "/models/田中 #1%20.gguf"])
def test_a_second_start_hands_its_message_over_and_ends(running, folder, message):
    assert second(folder, message) == 3
    assert running.stdout.readline().decode().strip() == repr(message)


def test_the_first_hears_it_in_its_own_process(qtbot, claimed, folder):
    code = [sys.executable, "-c", textwrap.dedent(SECOND), str(folder), "chat-7"]
    with qtbot.waitSignal(claimed.called, timeout=30_000) as heard:
        process = subprocess.Popen(code, cwd=TOP)
    assert heard.args == ["chat-7"]
    assert process.wait() == 3


def test_a_copy_that_was_killed_is_in_nobodys_way(qapp, running, folder):
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert (folder / LOCK).exists()
    following = Instance(folder)
    assert following.claim()
    following.close()


def test_a_closed_copy_leaves_the_place_free(qapp, folder):
    for _ in range(2):
        made = Instance(folder)
        assert made.claim()
        made.close()
    assert not {LOCK, ADDRESS} & set(os.listdir(folder))


def test_other_folders_are_other_copies(claimed, tmp_path):
    other = Instance(tmp_path / "elsewhere")
    assert other.claim()
    other.close()


def test_a_copy_that_does_not_answer_is_named(qapp, running, folder, monkeypatch):
    monkeypatch.setattr(instance, "PATIENCE", 0.5)
    running.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(EngineError) as refused:
            Instance(folder).claim("x")
    finally:
        running.send_signal(signal.SIGCONT)
    assert refused.value.code == "already_running"
    assert LOCK in refused.value.reason.text


def test_only_this_user_may_call(claimed, folder):
    address = Path((folder / ADDRESS).read_text(encoding="utf-8"))
    assert address.stat().st_mode & 0o077 == 0
    assert len(os.fsencode(address)) <= instance.LONGEST_ADDRESS


@pytest.mark.parametrize(
    "sent", [b"x" * 100_000, b"half a line", b"", b"\x1b[31m\0a\xff\tb\nmore\n"]
)
def test_what_a_caller_says_is_bounded(qtbot, claimed, folder, monkeypatch, sent):
    monkeypatch.setattr(instance, "SILENCE_MS", 300)
    heard = []
    claimed.called.connect(heard.append)
    caller = QLocalSocket()
    caller.connectToServer((folder / ADDRESS).read_text(encoding="utf-8"))
    assert caller.waitForConnected(2000)
    caller.write(sent)
    caller.flush()
    qtbot.waitUntil(lambda: caller.state() is QLocalSocket.LocalSocketState.UnconnectedState)
    assert heard == (["[31ma\ufffdb"] if b"\n" in sent else [])
    assert second_in_process(qtbot, folder, claimed)


def second_in_process(qtbot, folder, claimed):
    """Whether the copy still takes calls."""
    caller = QLocalSocket()
    with qtbot.waitSignal(claimed.called, timeout=5000) as heard:
        caller.connectToServer((folder / ADDRESS).read_text(encoding="utf-8"))
        caller.write(b"again\n")
        caller.flush()
    return heard.args == ["again"]
