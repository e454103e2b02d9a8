"""Presets: those of the program, own ones, their file, and the settings of sampling."""

import pytest

from app.viewmodels import presets as module
from app.viewmodels.presets import Presets, reshaped, shape
from app.viewmodels.sampling import settings, stop_strings, stop_text
from engine.api import Sampling


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "presets.toml"


@pytest.fixture
def presets(qtbot, path):
    return Presets(path)


def setting(name):
    return next(one for one in settings() if one.field == name)


def test_the_program_brings_presets_whose_names_are_told(presets):
    assert presets.prompt_name("") == "No system prompt"
    code = presets.prompts.find("Code reviewer")
    assert presets.prompt_name(f" {code.value}\n") == "Code reviewer"
    assert presets.prompt_name("Talk like a pirate.") == "Own"
    assert presets.sampling_name(Sampling()) == "Balanced"
    assert presets.sampling_name(Sampling(temperature=0.0)) == "Precise"
    assert presets.sampling_name(Sampling(temperature=0.31)) == "Own"
    creative = presets.samplings.find("Creative").value
    assert creative.temperature > 1


def test_seed_limit_and_stops_do_not_change_a_presets_name(presets):
    held = Sampling(temperature=0.0, seed=3, max_tokens=9, stop=("x",))
    assert presets.sampling_name(held) == "Precise"
    assert shape(held) == Sampling(temperature=0.0)
    taken = reshaped(held, Sampling(top_k=5))
    assert taken == Sampling(top_k=5, seed=3, max_tokens=9, stop=("x",))


def test_own_presets_are_kept(presets, path):
    assert presets.prompts.save("  My   pirate ", "Arr.") == ""
    assert presets.samplings.save("Wild", Sampling(temperature=1.5, top_k=0)) == ""
    again = Presets(path)
    assert again.prompt_name("Arr.") == "My pirate"
    assert again.samplings.find("wild").value == Sampling(temperature=1.5, top_k=0)
    assert again.prompts.rename("my pirate", "Sailor") == ""
    assert again.samplings.delete("Wild") == ""
    third = Presets(path)
    assert third.prompt_name("Arr.") == "Sailor"
    assert third.samplings.own() == []


def test_saving_under_the_name_of_an_own_one_replaces_it(presets):
    presets.prompts.save("Mine", "one")
    presets.prompts.save("MINE", "two")
    assert [(p.name, p.value) for p in presets.prompts.own()] == [("MINE", "two")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("  ", "A preset needs a name."),
        ("code REVIEWER", "“Code reviewer” comes with the program. Another name is needed."),
        ("n" * 61, "The name has 61 characters; 60 is the most."),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_a_sentence(presets, name, sentence):
    presets.prompts.save("Mine", "x")
    before = presets.prompts.presets
    assert presets.prompts.save(name, "y") == sentence
    assert presets.prompts.rename("Mine", name) in (
        sentence,
        "There is a preset “Code reviewer” already.",
    )
    assert presets.prompts.presets == before


def test_those_of_the_program_stay(presets):
    assert presets.prompts.rename("Code reviewer", "Mine") == ""
    assert presets.prompts.delete("Code reviewer") == ""
    assert presets.prompts.find("Code reviewer") is not None
    assert presets.prompts.find("Mine") is None


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\0\xff",
        b"prompts = 3",
        b"[[prompts]]\nname = 3\n",
        b"[[prompts]]\nname = 'a'\ntext = 5\n[[samplings]]\nname = ''\n",
        b"a = " + b"[" * 100_000,
    ],
)
def test_a_damaged_file_means_the_programs_own(qtbot, path, text):
    path.parent.mkdir()
    path.write_bytes(text)
    held = Presets(path)
    assert held.prompts.own() == []
    assert held.samplings.own() == []
    assert held.prompts.find("Code reviewer")


def test_a_file_that_could_not_be_read_is_put_aside_not_lost(qtbot, path):
    path.parent.mkdir()
    path.write_bytes(b"my = 'presets\n")
    assert Presets(path).prompts.save("a", "b") == ""
    assert path.with_suffix(".damaged").read_bytes() == b"my = 'presets\n"
    assert Presets(path).prompt_name("b") == "a"


def test_values_out_of_range_and_taken_names_in_the_file_are_left_out(qtbot, path):
    path.parent.mkdir()
    path.write_text(
        "[[samplings]]\nname = 'a'\ntemperature = -3\ntop_k = 2.5\ntop_p = 0.5\nmin_p = true\n"
        "[[samplings]]\nname = 'A'\ntop_p = 0.1\n[[samplings]]\nname = 'precise'\ntop_p = 0.1\n",
        encoding="utf-8",
    )
    held = Presets(path)
    assert [(p.name, p.value) for p in held.samplings.own()] == [("a", Sampling(top_p=0.5))]
    assert held.sampling_name(Sampling(temperature=0.0)) == "Precise"


def test_what_cannot_be_written_is_said_and_not_pretended(presets, path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    said = presets.prompts.save("a", "b")
    assert said == "The presets could not be saved: No space left on device"
    assert presets.prompts.own() == []
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    assert presets.prompts.save("a", "b" * 200).startswith("The presets would take")
    assert not path.exists()


# The settings of sampling


def test_the_models_default_is_shown_else_the_neutral_value():
    folder = Sampling(temperature=0.6, top_k=20)
    shown = {one.field: one.default(folder) for one in settings()}
    assert shown == {
        "temperature": "0.6",
        "top_k": "20",
        "top_p": "1",
        "min_p": "0",
        "repetition_penalty": "1",
        "presence_penalty": "0",
        "frequency_penalty": "0",
        "max_tokens": "up to the context's end",
        "seed": "new each time",
    }


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0,7", 0.7),
        ("temperature", " 1 ", 1.0),
        ("temperature", "", None),
        ("top_k", "40", 40),
        ("presence_penalty", "−0.5", -0.5),
        ("presence_penalty", "", 0.0),
        ("seed", "0", 0),
        ("seed", "", None),
        ("max_tokens", "", None),
    ],
)
def test_what_is_typed_is_read(name, text, value):
    assert setting(name).read(text) == value
    assert setting(name).value(Sampling(**{name: value})) in (text.strip(), "0.7", "-0.5", "1")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("temperature", "warm", "Temperature must be a number; it is “warm”."),
        ("temperature", "-1", "Temperature must lie between 0 and 100; it is -1."),
        ("temperature", "nan", "Temperature must lie between 0 and 100; it is nan."),
        ("top_p", "0", "Top-p must lie between 0.000001 and 1; it is 0."),
        ("top_k", "1.5", "Top-k must be a whole number; it is “1.5”."),
        ("max_tokens", "0", "Longest answer must lie between 1 and 10000000; it is 0."),
        ("seed", "9" * 30, f"Seed must lie between 0 and {2**63 - 1}; it is {'9' * 30}."),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(name, text, sentence):
    with pytest.raises(ValueError, match=r"\.$") as error:
        setting(name).read(text)
    assert str(error.value) == sentence


def test_arrow_keys_step_from_what_holds_and_stop_at_the_ends():
    folder = Sampling(temperature=0.6)
    heat = setting("temperature")
    assert heat.stepped("", 1, folder) == "0.7"
    assert heat.stepped("0.05", -1, folder) == "0"
    assert heat.stepped("0.1", 2, folder) == "0.3"
    assert heat.stepped("warm", 1, folder) == "warm"
    assert setting("top_p").stepped("1", 1, folder) == "1"
    assert setting("top_k").stepped("", -1, folder) == "63"
    assert setting("max_tokens").stepped("", 1, folder) == ""
    assert setting("seed").stepped("", 1, folder) == ""


def test_stop_strings_are_lines_and_come_back_as_they_were():
    stop = ("END", "\n\nUser:", "  x ")
    assert stop_strings(stop_text(stop)) == stop
    assert stop_strings("a\n\na\nb") == ("a", "b")
    assert stop_strings("\n\n") == ()
