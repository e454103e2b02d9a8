"""Libraries and displays that are missing are told before Qt ends the program."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app import libraries

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")
TOP = Path(__file__).parents[2]
NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def packaged(monkeypatch, tmp_path):
    """A packaged program whose plugin for offscreen needs two libraries that are not here."""
    plugins = tmp_path / "PySide6/Qt/plugins/platforms"
    plugins.mkdir(parents=True)
    (plugins / "libqoffscreen.so").write_bytes(b"no library")
    listed = {"libnothere.so.7": "libnothere7", "libc.so.6": "libc6", "libgone.so.1": "libgone1"}
    (tmp_path / libraries.LISTED).write_text(json.dumps(listed))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    return tmp_path


def start(**variables):
    """The program started where only these variables tell of a display."""
    environment = {name: value for name, value in os.environ.items() if name not in NAMES}
    return subprocess.run(
        [sys.executable, "-m", "app"],
        cwd=TOP,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_a_display_it_is_said_and_what_works():
    done = start()
    assert (done.returncode, done.stdout) == (libraries.NO_DISPLAY, "")
    assert done.stderr == f"{libraries.NOT_THERE}\n"


def test_a_display_that_does_not_answer_is_named():
    done = start(DISPLAY="127.0.0.1:987")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "127.0.0.1:987 does not answer" in done.stderr or "is not here" in done.stderr


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"WAYLAND_DISPLAY": "wayland-9"}, ["wayland-9"]),
        ({"WAYLAND_DISPLAY": "wayland-9", "DISPLAY": "127.0.0.1:987"}, ["wayland-9", ":987"]),
        ({"QT_QPA_PLATFORM": "wayland", "WAYLAND_DISPLAY": "/nowhere"}, ["/nowhere"]),
        ({"QT_QPA_PLATFORM": "wayland-egl;xcb"}, []),
    ],
)
def test_where_no_display_of_several_answers_none_is_opened(
    monkeypatch, tmp_path, variables, names
):
    monkeypatch.setattr(libraries, "_refusal", lambda platform: None)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said, code = libraries.trouble()
    assert code == libraries.NO_DISPLAY
    assert said.count("does not answer") == len(names)
    for name in names:
        assert f"{name} does not answer" in said
    assert said.endswith(libraries.NOT_THERE.partition(". ")[2])


def test_one_display_that_answers_is_enough(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "_refusal", lambda platform: None)
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as compositor:
        compositor.bind("wayland-9")
        compositor.listen()
        monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9")
        monkeypatch.setenv("XDG_RUNTIME_DIR", ".")
        monkeypatch.setenv("DISPLAY", "127.0.0.1:987")
        assert libraries.trouble() is None


def test_a_platform_that_qt_does_not_have_is_named():
    done = start(QT_QPA_PLATFORM="teletype")
    assert done.returncode == libraries.MISSING
    assert "“teletype”" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("named", ["offscreen", "offscreen:configfile=x", "teletype;offscreen"])
def test_where_a_window_can_open_nothing_is_said(monkeypatch, named):
    monkeypatch.setenv("QT_QPA_PLATFORM", named)
    assert libraries.trouble() is None


def test_all_that_the_packaged_program_lacks_is_named_at_once_with_the_command(packaged):
    said, code = libraries.trouble()
    assert code == libraries.MISSING
    assert "libgone.so.1, libnothere.so.7" in said
    assert said.endswith("sudo apt install libgone1 libnothere7")
    assert "libc6" not in said


def test_without_a_list_the_one_that_the_linker_names_is_said():
    error = "libxcb-cursor.so.0: cannot open shared object file: No such file or directory"
    assert "is not here: libxcb-cursor.so.0" in libraries.explain(error)


def test_a_damaged_list_is_no_list(packaged):
    (packaged / libraries.LISTED).write_text("[")
    said, _ = libraries.trouble()
    assert said.startswith("The window cannot open: ")
