"""The hub's token: where it is looked for, where it is kept, where it never is."""

import logging

import keyring
import keyring.backend
import keyring.errors
import pytest
from huggingface_hub import constants

from app.hub_token import Source, Token, Tokens, clean

SECRET = "hf_" + "s" * 34


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory; `broken` makes everything fail with the secret in its text."""

    priority = 1

    def __init__(self):
        self.kept = {}
        self.broken = False
        self.forgetful = False

    def _look(self):
        if self.broken:
            raise keyring.errors.KeyringError(f"service said no to {SECRET}")

    def get_password(self, service, username):
        self._look()
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self._look()
        if not self.forgetful:
            self.kept[service, username] = password

    def delete_password(self, service, username):
        self._look()
        del self.kept[service, username]


@pytest.fixture
def ring(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    before, made = keyring.get_keyring(), Ring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_without_any_there_is_none(ring):
    assert Tokens().find() == Token(None, Source.NONE)


def test_a_token_is_kept_in_the_keyring_and_found_by_the_next_start(ring):
    Tokens().keep(f"  {SECRET}\n")
    assert Tokens().find() == Token(SECRET, Source.KEYRING)
    Tokens().remove()
    assert ring.kept == {}
    assert Tokens().find().value is None


@pytest.mark.parametrize("how", ["broken", "forgetful", "missing"])
def test_without_a_keyring_it_lives_until_the_end(ring, monkeypatch, caplog, how):
    caplog.set_level(logging.DEBUG)
    if how == "missing":
        monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    else:
        setattr(ring, how, True)
    tokens = Tokens()
    tokens.keep(SECRET)
    assert tokens.find() == Token(SECRET, Source.MEMORY)
    assert Tokens().find().value is None
    tokens.remove()
    assert tokens.find().value is None
    assert SECRET not in caplog.text


def test_a_new_token_takes_the_place_of_the_kept_one(ring):
    tokens = Tokens()
    tokens.keep("hf_old")
    ring.broken = True
    tokens.keep(SECRET)
    ring.broken = False
    assert tokens.find().value == SECRET


def test_the_environment_goes_first_and_the_hubs_own_file_last(ring, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("hf_of_the_file\n")
    assert Tokens().find() == Token("hf_of_the_file", Source.FILE)
    Tokens().keep(SECRET)
    assert Tokens().find().source is Source.KEYRING
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    assert Tokens().find() == Token("hf_of_the_environment", Source.ENVIRONMENT)


@pytest.mark.parametrize("text", ["", " ", "two words", "line\nfeed", "naïve", "x" * 1001])
def test_what_cannot_be_a_token_is_none(ring, text):
    assert clean(text) == ""
    tokens = Tokens()
    tokens.keep(text)
    assert tokens.find().value is None
    assert ring.kept == {}


def test_a_token_shows_itself_nowhere():
    assert SECRET not in repr(Token(SECRET, Source.MEMORY))
