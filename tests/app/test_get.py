"""`slipstream get`: what is said before the first byte, and what a failure says."""

import pytest

from app import paths, settings
from app.__main__ import main
from engine.library import starter
from tests.hub import serving

MODEL = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"w" * 10_000,
}


@pytest.fixture
def hub(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with serving({"org/model": dict(MODEL), "org/many": {"a.gguf": b"a", "b.gguf": b"b"}}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def test_a_repository_is_fetched_into_the_library(hub, capsys):
    assert main(["get", "org/model"]) == 0
    said = capsys.readouterr()
    target = paths.model_folder() / "org" / "model"
    assert said.out.strip() == str(target)
    assert "org/model at 01234567: 1 MB in 3 files" in said.err
    assert (target / "model.safetensors").read_bytes() == MODEL["model.safetensors"]


def test_a_revision_is_asked_for(hub):
    assert main(["get", "org/model@v1.0"]) == 0
    assert hub.asked("/revision/v1.0") == 1


def test_one_of_several_files_has_to_be_named(hub, capsys):
    assert main(["get", "org/many"]) == 1
    assert "Name one of its files" in capsys.readouterr().err
    assert main(["get", "org/many", "--file", "b.gguf"]) == 0
    assert (paths.model_folder() / "org" / "many" / "b.gguf").read_bytes() == b"b"


def test_a_failure_is_a_sentence(hub, capsys):
    assert main(["get", "org/nothing"]) == 1
    assert "There is no org/nothing on the hub" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["org/model", "starter"])
def test_offline_is_said(capsys, monkeypatch, name):
    """By HF_HUB_OFFLINE, as in all tests."""
    monkeypatch.setattr(starter, "fetch", lambda *_: pytest.fail("it was fetched"))
    assert main(["get", name]) == 1
    assert "Offline: HF_HUB_OFFLINE is set" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["org/model", "starter"])
def test_the_windows_offline_switch_holds_here_too(hub, capsys, monkeypatch, name):
    monkeypatch.setattr(starter, "fetch", lambda *_: pytest.fail("it was fetched"))
    settings.save(settings.Settings(offline=True), paths.config_folder())
    assert main(["get", name]) == 1
    assert "Offline is switched on" in capsys.readouterr().err
    assert hub.requests == []


def test_a_gated_repository_comes_with_the_token_of_the_environment(hub, capsys, monkeypatch):
    hub.secrets["org/model"] = "hf_secret"
    assert main(["get", "org/model"]) == 1
    assert "HF_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert main(["get", "org/model"]) == 0
    said = capsys.readouterr()
    assert "hf_secret" not in said.out + said.err


def test_it_goes_into_the_folder_chosen_for_downloads_and_says_so(hub, capsys, tmp_path):
    settings.save(settings.Settings().with_store(str(tmp_path)), paths.config_folder())
    assert main(["get", "org/model"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "org" / "model")
    assert f"1 MB in 3 files, into {tmp_path}" in said.err
    assert not paths.model_folder().exists()


@pytest.mark.parametrize("name", ["org/model", "starter"])
def test_a_folder_for_downloads_that_is_gone_is_a_sentence(hub, capsys, tmp_path, name):
    gone = tmp_path / "gone"
    settings.save(settings.Settings().with_store(str(gone)), paths.config_folder())
    assert main(["get", name]) == 1
    assert f"Downloads go into {gone}, which is not there" in capsys.readouterr().err
    assert not gone.exists()
    assert hub.asked("resolve/0123456789abcdef0123456789abcdef01234567/model") == 0


def test_what_was_begun_elsewhere_goes_on_there(hub, tmp_path):
    hub.fail["model.safetensors"] = (403, {})
    assert main(["get", "org/model"]) == 1
    hub.fail.clear()
    settings.save(settings.Settings().with_store(str(tmp_path)), paths.config_folder())
    assert main(["get", "org/model"]) == 0
    assert (paths.model_folder() / "org" / "model" / "model.safetensors").exists()
    assert not (tmp_path / "org").exists()


def test_of_the_starter_no_file_can_be_chosen(hub, capsys):
    assert main(["get", "starter", "--file", "x.gguf"]) == 1
    assert "--file has no meaning" in capsys.readouterr().err
    assert hub.requests == []
