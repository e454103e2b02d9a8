"""`slipstream --self-test`: each check by its name, whatever becomes of it; and what is checked."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app import checks, self_test, window_checks
from app.checks import CheckFailed, Engine
from engine.api import Chunk, RoundStats, Usage
from engine.measured import AUTO, CHAIN, NGRAM, SUFFIX
from tests import self_tests

TOP = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the self-test with another process in place of the one with the checks."""

    def running(serve, seconds=60.0):
        monkeypatch.setattr(self_test, "_serve", serve)
        monkeypatch.setattr(self_test, "_starter", lambda: None)
        monkeypatch.setattr(self_test, "SECONDS", seconds)
        code = self_test.run()
        return code, capsys.readouterr().out.splitlines()

    return running


def test_every_check_has_a_line_and_the_code_tells(run):
    code, lines = run(self_tests.passing)
    assert (code, lines[:2]) == (0, ["ok      first: it works", "ok      second: it works too"])
    assert lines[2].startswith("2 checks passed in ")
    code, lines = run(self_tests.failing)
    assert (code, lines[:2]) == (1, ["ok      first: it works", "FAILED  second: it is blank"])
    assert lines[2].startswith("1 of 2 checks failed in ")


def test_a_crash_is_told_by_the_check_it_came_in_and_by_what_was_said_before(run):
    code, lines = run(self_tests.crashing)
    assert code == 1
    assert lines[1].startswith("FAILED  second: the process that does it ")
    assert "a last word" in lines


def test_a_hang_is_told_by_the_check_it_came_in_and_ends(run):
    began = time.monotonic()
    code, lines = run(self_tests.hanging, seconds=3.0)
    assert (code, lines[1]) == (1, "FAILED  second: not done when 3 s were over")
    assert time.monotonic() - began < 10


def test_its_home_is_gone_at_the_end_and_none_of_the_users(run, tmp_path):
    _, lines = run(self_tests.writing)
    place = lines[0].rpartition(": ")[2]
    assert place
    assert not os.path.exists(place)
    assert not (tmp_path / "home" / "slipstream").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_whoever_ends_it_leaves_no_process_and_no_home_behind(tmp_path):
    script = (
        "from app import self_test; from tests import self_tests\n"
        "self_test._serve = self_tests.hanging; self_test._starter = lambda: None\n"
        "self_test.run()"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path / "own")}
    (tmp_path / "own").mkdir()
    running = subprocess.Popen(
        [sys.executable, "-c", script], cwd=TOP, env=environment, stdout=subprocess.PIPE
    )
    assert running.stdout.readline() == b"ok      first: it works\n"
    (child,) = (
        c for c in psutil.Process(running.pid).children() if "spawn_main" in c.cmdline()[-2]
    )
    running.terminate()
    assert running.wait(20) == 1
    running.stdout.close()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert list((tmp_path / "own").glob("slipstream-*")) == []


@pytest.mark.parametrize(
    "check", ["data_files", "certificates", "chats", "keyring", "graphics_card", "formula"]
)
def test_what_needs_no_model_passes_here(check):
    assert getattr(checks, check)()


def test_libraries_are_told_and_only_those_of_this_screen_are_a_failure(monkeypatch):
    monkeypatch.setattr("app.libraries.trouble", lambda: ("libX.so.1 is not here", 1))
    with pytest.raises(CheckFailed, match=r"libX\.so\.1"):
        checks.system_libraries()
    monkeypatch.setattr("app.libraries.trouble", lambda: None)
    monkeypatch.setattr("app.libraries.missing", lambda: {"libwayland-client.so.0": "x"})
    assert "libwayland-client.so.0" in checks.system_libraries()


def test_a_damaged_icon_is_found(monkeypatch, tmp_path):
    (tmp_path / "mark.svg").write_text("<svg")
    monkeypatch.setattr(checks, "icons", lambda: [tmp_path / "mark.svg"] * 11)
    with pytest.raises(Exception, match=r"token|element"):
        checks.data_files()


def test_keyrings_that_did_not_come_with_the_program_are_missed():
    script = (
        "import sys\n{}\nfrom app import checks\n"
        "try: print(checks.keyring())\nexcept checks.CheckFailed as failed: print('lacks', failed)"
    )

    def said(broken):
        done = subprocess.run(
            [sys.executable, "-c", script.format(broken)], cwd=TOP, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout

    assert said("").startswith("keyring.backends.")
    if sys.platform == "linux":
        blind = "from keyring import backend as b; b.metadata.entry_points = lambda **_: ()"
        assert "lacks keyring.backends.SecretService" in said(blind)
        assert "lacks secretstorage" in said("sys.modules['secretstorage'] = None")


def test_a_chat_that_is_not_found_is_found_out(monkeypatch):
    monkeypatch.setattr("app.chats.store.Store.search", lambda self, words: [])
    with pytest.raises(CheckFailed, match="finds nothing"):
        checks.chats()


class Answering:
    """A session that answers with the same ids each time; `usage` are its counters."""

    def __init__(self, ids=(1, 2), accepted=1, sums=None):
        rounds = RoundStats(2, accepted, emitted=len(ids))
        usage = sums or Usage().plus(rounds)
        drafted = (True,) * accepted + (False,) * (len(ids) - accepted)
        self._chunks = [
            Chunk(token_ids=ids, drafted=drafted, round=rounds, usage=usage),
            Chunk(usage=usage),
        ]

    def reply(self, *_):
        return iter(self._chunks)

    def forget(self):
        pass

    def choose_draft(self, choice):
        pass


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (Answering(ids=(1, 3)), "other tokens at temperature 0, from 1 on"),
        (Answering(accepted=0), "none was accepted"),
        (Answering(sums=Usage(tokens=2, drafted=3, accepted=1)), "the sums are not the rounds'"),
        (Answering(sums=Usage(tokens=5, drafted=2, accepted=1)), "5 tokens counted, 2 given"),
    ],
)
def test_a_draft_that_changes_or_miscounts_is_found_out(session, said, tmp_path):
    engine = Engine(tmp_path)
    engine._plain = {0.0: (1, 2)}
    engine._session = Answering()
    assert "1 of 2" in engine.drafted("ngram")
    engine._session = session
    with pytest.raises(CheckFailed, match=said):
        engine.drafted("ngram")


def test_each_of_several_ways_to_draft_is_compared(tmp_path):
    engine = Engine(tmp_path)
    engine._plain = {0.0: (1, 2), 0.8: (1, 2)}
    engine._session = session = Answering()
    chosen = []
    session.choose_draft = chosen.append
    assert "6 of 12 drafted" in engine.drafted("suffix", "chain", "auto")
    assert chosen == ["suffix", "chain", "auto"]
    session._chunks = Answering(ids=(1, 3))._chunks
    with pytest.raises(CheckFailed, match="other tokens"):
        engine.drafted("suffix", "auto")


def test_every_way_to_draft_without_a_model_is_checked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(Engine, "drafted", lambda self, *drafts: asked.extend(drafts) or "")
    for name, check in Engine(tmp_path).every():
        if name.startswith("answers"):
            check()
    assert {*asked} == {NGRAM, SUFFIX, CHAIN, AUTO, tmp_path}


def test_the_network_is_watched_and_this_computer_left_out():
    asked = checks.watch_network()
    self_tests.ask("127.0.0.1")
    ((_, network),) = checks.last(asked)
    assert network() == "this process's Python asked no other computer for anything"
    self_tests.ask("192.0.2.1")
    with pytest.raises(CheckFailed, match=r"192\.0\.2\.1"):
        network()


def test_icons_pictures_and_languages_are_there(qapp):
    from app import resources

    assert window_checks.pictures()
    assert window_checks.languages() == "en, de: Cancel, Abbrechen"
    resources.speak(qapp, "en")


def test_a_missing_model_is_named(tmp_path):
    name, check = next(window_checks.every(None))
    assert name == "starter model"
    with pytest.raises(CheckFailed, match=r"smollm2.*gguf is not there"):
        check()
