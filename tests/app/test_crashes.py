"""What a crash leaves behind, and what the next start says of it."""

import faulthandler
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app import crashes as crashes_module
from app import paths, report, start
from app.crashes import KEPT, Crashes
from app.unforeseen import Unforeseen
from app.viewmodels.alerts import Action, Alerts
from tests.fakes import ScriptedSession

TOP = Path(__file__).parents[2]
SECRET = "What I told nobody before today"
PROGRAM = """
import ctypes, json, sys
from PySide6.QtCore import QTimer
from app import start
from tests.fakes import FakeShelf, ScriptedSession, chunks_of

build, sent = start.build, []
def staged(argv):
    session = ScriptedSession(chunks_of(["An answer that is private too"]))
    program = build(argv, session_factory=lambda: session, shelf=FakeShelf())
    def look():
        if program.chat.can_send and not program.models.choosing and not sent:
            sent.append(program.chat.send(sys.argv[1]))
    timer = QTimer(program.app, interval=20)
    program.chat.answered.connect(lambda: ctypes.string_at(0))
    if sys.argv[1]:
        timer.timeout.connect(look)
    else:
        timer.timeout.connect(program.window.close)
        tell = lambda: json.dump([program.alerts.current.text, program.alerts.current.details[1],
                                  [a.value for a in program.alerts.current.actions]], sys.stdout)
        QTimer.singleShot(0, tell)
    timer.start()
    return program
start.build = staged
sys.exit(start.open_window([]))
"""


@pytest.fixture
def folder():
    return paths.ensure(paths.log_folder())


@pytest.fixture
def crashes(folder):
    was = faulthandler.is_enabled()
    made = Crashes(folder)
    yield made
    made.stand_down()
    if was:
        faulthandler.enable()


def program(text):
    """The program run until it ends; with a text it crashes once that is answered."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, text],
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def failed(message="boom"):
    try:
        raise RuntimeError(message)
    except RuntimeError as error:
        return error


def test_a_real_crash_is_told_at_the_next_start_without_a_word_of_the_chat(folder):
    code, _, _ = program(SECRET)
    assert code not in (0, 1)
    code, told, trouble = program("")
    assert code == 0, trouble
    text, path, actions = json.loads(told)
    assert "ended unexpectedly" in text
    assert actions == [Action.OPEN_REPORT]
    (found,) = folder.glob("crash-*")
    assert path == f"path: {found}"
    said = found.read_text()
    assert "Segmentation fault" in said or "access violation" in said
    assert "string_at" in said
    assert "Python 3" in said
    for word in (SECRET, "private too", str(Path.home())):
        assert word not in said


def test_it_is_told_until_it_is_read(folder, crashes, qtbot):
    crashes.write(failed())
    for _ in range(2):
        alerts = Alerts()
        start.tell_of_crashes(alerts, crashes)
        assert alerts.current.is_about("crashed")
    alerts.close()
    assert alerts.current is None
    alerts = Alerts()
    start.tell_of_crashes(alerts, Crashes(folder))
    assert alerts.current is None
    crashes.write(failed())
    assert crashes.gather() is not None


def test_a_crash_after_an_error_that_was_shown_is_told(folder, crashes):
    crashes.stand_ready()
    crashes.write(failed())
    crashes.see()
    faulthandler.dump_traceback(crashes._trace)
    assert "File" in Crashes(folder).gather().read_text()


def test_an_end_as_it_should_be_leaves_nothing(folder, crashes):
    crashes.stand_ready()
    assert len(list(folder.glob("crash-*"))) == 1
    crashes.stand_down()
    assert list(folder.glob("crash-*")) == []


def test_a_program_that_was_killed_leaves_no_report(folder, crashes):
    (folder / "crash-20260101-000000-000000.trace").touch()
    crashes.stand_ready()
    assert crashes.gather() is None
    assert len(list(folder.glob("crash-*"))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_only_the_owner_reads_a_report(folder, crashes):
    crashes.stand_ready()
    crashes.write(failed())
    before = os.umask(0)
    try:
        crashes.write(failed())
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("crash-*")} == {0o600}


def test_the_last_ones_are_kept(folder, crashes, monkeypatch):
    names = iter(range(100))
    monkeypatch.setattr(crashes_module, "_stamp", lambda: f"crash-{next(names):03}")
    for _ in range(KEPT + 3):
        crashes.write(failed())
    kept = sorted(path.name for path in folder.glob("crash-*.txt"))
    assert kept == [f"crash-{n:03}.txt" for n in range(3, KEPT + 3)]


def test_before_the_chats_are_known_nothing_of_what_an_error_says_is_told(crashes):
    said = crashes.write(failed(f"could not render {SECRET}")).read_text()
    assert SECRET not in said
    assert "RuntimeError" in said
    assert "test_crashes.py" in said


def test_nothing_of_chats_no_token_and_no_user_stands_in_a_report(crashes, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "abcdefgh")
    crashes.private = lambda: [SECRET]
    error = failed(f"{SECRET}, hf_AbCdEf123456, abcdefgh, {Path.home()}/model")
    said = crashes.write(error).read_text()
    for word in (SECRET, "hf_AbC", "abcdefgh", str(Path.home())):
        assert word not in said
    assert report.LEFT_OUT in said


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("first token 1.50 s", "first token 1.50 s"),
        ("app.hub_token: the keyring failed", "app.hub_token: the keyring failed"),
        ("token=ab1", report.LEFT_OUT),
        ("MY_TOKEN: ab1", f"MY_{report.LEFT_OUT}"),
        ("token abcd1234", report.LEFT_OUT),
        ("Bearer ab1", report.LEFT_OUT),
    ],
)
def test_a_token_is_told_from_the_word(said, left):
    assert report._without_secrets(said) == left


def test_a_trace_tells_no_name_of_the_user(folder, crashes):
    trace = f'Fatal Python error\n  File "{Path.home()}/x/app.py", line 3 in run\n'
    (folder / "crash-1.trace").write_text(trace)
    said = crashes.gather().read_text()
    assert 'File "~/x/app.py", line 3 in run' in said
    assert str(Path.home()) not in said


def test_no_other_alphabet_of_the_users_name_is_told(folder, crashes, monkeypatch, tmp_path):
    home = tmp_path / "Жанна Ö𝒟"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    code = "def run():\n    import ctypes; ctypes.string_at(0)\nrun()"
    for place in (home / "x.py", tmp_path / "media" / home.name / "y.py"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(code)
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(place)], capture_output=True, check=False
        )
        trace = done.stderr.decode()
        assert r"\u0416" in trace
        (folder / "crash-1.trace").write_text(trace)
        said = crashes.gather().read_text()
        assert f'{place.name}", line 2 in run' in said
        for word in (r"\u0416", "Жанна", r"\xd6"):
            assert word not in said


def test_an_error_that_nobody_caught_is_said_once_and_can_be_copied(crashes, qtbot, qapp):
    unforeseen = Unforeseen(crashes)
    unforeseen.hear(failed("boom"))
    qtbot.waitUntil(lambda: unforeseen.dialog is not None)
    dialog = unforeseen.dialog
    qtbot.addWidget(dialog)
    assert dialog.text.text() == "RuntimeError: boom"
    dialog.copy.click()
    assert "RuntimeError" in qapp.clipboard().text()
    for _ in range(2):
        unforeseen.hear(failed("again"))
    qtbot.waitUntil(lambda: "2" in dialog.count.text())
    assert dialog.text.text() == "RuntimeError: boom"
    assert crashes.gather() is None  # said already


def test_open_report_opens_it_and_has_it_read(open_program, monkeypatch, folder, crashes):
    program = open_program(ScriptedSession())
    opened = []
    monkeypatch.setattr("app.window.QDesktopServices.openUrl", lambda url: not opened.append(url))
    path = crashes.write(failed())
    start.tell_of_crashes(program.alerts, crashes)
    program.window.error_bar.buttons[Action.OPEN_REPORT].click()
    assert [Path(url.toLocalFile()) for url in opened] == [path]
    assert program.alerts.current is None
    assert crashes.gather() is None


def test_a_report_that_nothing_opens_is_told_by_its_path_and_stays(
    open_program, monkeypatch, crashes
):
    program = open_program(ScriptedSession())
    monkeypatch.setattr("app.window.QDesktopServices.openUrl", lambda _: False)
    path = crashes.write(failed())
    start.tell_of_crashes(program.alerts, crashes)
    bar = program.window.error_bar
    bar.buttons[Action.OPEN_REPORT].click()
    assert str(path) in program.alerts.current.text
    bar.details.click()
    assert not bar.copy.isHidden()
    bar.close_.click()
    assert program.alerts.current.is_about("crashed")
    assert crashes.gather() == path


def test_a_program_that_cannot_start_leaves_a_report_and_says_where(folder):
    script = (
        "import sys; sys.modules['PySide6.QtCore'] = None\n"
        "from app.__main__ import main; sys.exit(main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    (found,) = folder.glob("crash-*.txt")
    assert str(found) in done.stderr
    assert "Traceback" not in done.stderr
    assert "Error" in found.read_text()
