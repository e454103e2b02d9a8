"""The table of settings: its defaults, its file, its command."""

import argparse
import dataclasses

import pytest

from app import paths, settings, settings_command
from app.settings import NAMED, TABLE, Settings, changed, load, save
from engine.errors import EngineError

OTHERS = {
    "theme": "dark",
    "font_size": 150,
    "language": "de",
    "sidebar": True,
    "chats": False,
    "tint": True,
    "thinking": True,
    "overflow": "summarise",
    "notifications": False,
    "draft_length": 5,
    "verification": "rejection",
    "offline": True,
}


def command(*words):
    parser = argparse.ArgumentParser()
    settings_command.add_arguments(parser)
    return settings_command.carry_out(parser.parse_args(words))


@pytest.fixture
def config():
    return paths.ensure(paths.config_folder())


def test_every_entry_is_kept_with_another_value_than_its_default(config):
    assert set(OTHERS) == set(NAMED)
    kept = Settings()
    for name, value in OTHERS.items():
        assert value != NAMED[name].default
        kept = changed(kept, name, value)
    save(kept, config)
    assert load(config) == kept


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_all_values_of_an_entry_can_be_written_and_typed(entry, config):
    values = [choice.value for choice in entry.choices]
    values += [entry.numbers[0], entry.numbers[-1]] if entry.numbers else []
    assert entry.default in [*values, *(entry.numbers or ())]
    for value in values:
        save(changed(Settings(), entry.name, value), config)
        assert getattr(load(config), entry.name) is value
        assert entry.parse(entry.word(value)) is value


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
@pytest.mark.parametrize("bad", ["'neon'", "3000", "-1", "1.5", "[]", "{}", "''", "nan"])
def test_a_value_that_is_none_falls_back_to_its_default(entry, bad, config):
    (config / settings.FILE_NAME).write_text(f"{entry.name} = {bad}\ntarget = 'kept'\n")
    loaded = load(config)
    assert loaded == Settings(target="kept")
    assert getattr(loaded, entry.name) is entry.default


def test_a_file_of_an_earlier_version_is_read(config):
    (config / settings.FILE_NAME).write_text(
        'draft_length = "auto"\nverification = "rejection"\nsidebar = true\noffline = true\n'
    )
    assert load(config) == Settings(verification="rejection", offline=True)
    (config / settings.FILE_NAME).write_text("sidebar = false\ndraft_length = 4\n")
    assert load(config) == Settings(sidebar=False, draft_length=4)


def test_every_entry_has_words_for_people():
    for entry in TABLE:
        assert entry.label
        assert entry.group
        assert not entry.help.endswith(".")
        assert all(choice.label for choice in entry.choices)
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert set(NAMED) < fields


def test_the_command_lists_shows_and_changes(config, capsys):
    assert command() == 0
    listed = capsys.readouterr().out
    assert all(f"{name} = " in listed for name in NAMED)
    assert "auto or 0 to 16" in listed
    assert command("font-size", "120") == 0
    assert command("sidebar", "hidden") == 0
    assert load(config) == Settings(font_size=120, sidebar=False)
    capsys.readouterr()
    command("sidebar")
    assert capsys.readouterr().out == "hidden\n"


def test_the_command_keeps_what_it_is_not_asked_for(config):
    save(Settings(target="/models/a", drafts={"/models/a": "ngram"}), config)
    command("theme", "dark")
    assert load(config) == Settings(theme="dark", target="/models/a", drafts={"/models/a": "ngram"})


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("colour",), "no_setting"),
        (("target", "x"), "no_setting"),
        (("theme", "pink"), "bad_setting_value"),
        (("font_size", "30"), "bad_setting_value"),
        (("font_size", "²"), "bad_setting_value"),
        (("offline", "1"), "bad_setting_value"),
    ],
)
def test_the_command_says_what_it_does_not_take(words, code, config):
    with pytest.raises(EngineError) as refused:
        command(*words)
    assert refused.value.code == code
    assert not (config / settings.FILE_NAME).exists()


def test_a_damaged_file_is_kept_beside_the_next(tmp_path):
    file = tmp_path / settings.FILE_NAME
    file.write_text("theme = dark\n")
    assert settings.load(tmp_path) == Settings()
    settings.save(Settings(), tmp_path)
    assert file.with_suffix(".damaged").read_text() == "theme = dark\n"
