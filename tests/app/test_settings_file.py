"""The file of settings, while a window is open and the terminal sets something."""

from dataclasses import replace

import pytest

from app import paths, settings
from app.__main__ import main
from app.settings import FILE_NAME, Settings
from app.settings_file import SettingsFile
from tests.fakes import ScriptedSession


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "config"
    settings.save(Settings(), made)
    return made


@pytest.fixture
def file(qtbot, folder):
    made = SettingsFile(folder, settings.load(folder))
    made.told = []
    made.set_elsewhere.connect(lambda name, value: made.told.append((name, value)))
    yield made
    made.deleteLater()


def test_what_is_set_elsewhere_is_told_once_and_what_is_set_here_is_not(qtbot, file, folder):
    settings.save(Settings(theme="dark", font_size=125), folder)
    qtbot.waitUntil(lambda: len(file.told) == 2)
    assert dict(file.told) == {"theme": "dark", "font_size": 125}
    file.save(Settings(theme="light", font_size=125))
    file.look()
    assert len(file.told) == 2


def test_saving_loses_nothing_of_what_was_set_since(file, folder):
    settings.save(Settings(theme="dark"), folder)
    file.save(Settings(tint=True, target="/models/tiny"))
    assert settings.load(folder) == Settings(theme="dark", tint=True, target="/models/tiny")
    assert file.told == [("theme", "dark")]


def test_what_could_not_be_saved_is_still_wanted_the_next_time(file, folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(settings, "save", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            file.save(Settings(tint=True))
    file.look()
    assert file.told == []
    file.save(Settings(tint=True))
    assert settings.load(folder).tint


@pytest.mark.parametrize("data", [None, b"\xff", b"theme = ["])
def test_a_file_that_is_gone_or_damaged_sets_nothing(file, folder, data):
    settings.save(replace(Settings(), theme="dark"), folder)
    file.look()
    (folder / FILE_NAME).unlink()
    if data is not None:
        (folder / FILE_NAME).write_bytes(data)
    file.look()
    assert file.told == [("theme", "dark")]


def test_the_terminal_command_reaches_an_open_window_and_stays(qtbot, open_program):
    program = open_program(ScriptedSession())
    assert main(["settings", "tint", "on"]) == 0
    assert main(["settings", "offline", "on"]) == 0
    qtbot.waitUntil(lambda: program.models.settings.tint and program.hub.offline)
    program.models.set("font_size", 125)
    program.models.keep()
    kept = settings.load(paths.config_folder())
    assert (kept.tint, kept.offline, kept.font_size) == (True, True, 125)
