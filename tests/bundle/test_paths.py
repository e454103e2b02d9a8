"""PER-4: blanks, quotes, signs of addresses and letters of many scripts in every path."""

import json

import pytest

from tests.bundle.program import TINY, Program, command, copied
from tests.bundle.screen import converse

pytestmark = pytest.mark.bundle
PLACE = "田中\u3000太郎 Ünï'x/данные #1%20&"


@pytest.fixture
def program(tmp_path, hub_url):
    (tmp_path / PLACE).mkdir(parents=True)
    own = copied(tmp_path / PLACE / "the program")
    return Program(tmp_path / PLACE, command(own), HF_ENDPOINT=hub_url)


def test_a_model_is_fetched_found_and_answers(program):
    model = program.run("get", TINY)[0].strip()
    assert PLACE in model
    listed = json.loads(program.run("models", "--json")[0])
    assert [row["problem"] for row in listed if row["path"] == model] == [None]
    asked = ("chat", "--model", model, "--draft", model, "--max-tokens", "8", "--json")
    answer = json.loads(program.run(*asked, "--prompt", "hi")[0])
    assert answer["stats"]["accepted"] > 0
    folders = json.loads(program.run("doctor", "--json")[0])["folders"]
    assert folders["models"] == str(program.models)


def test_a_chat_of_the_window_is_kept_and_exported(program):
    model = program.run("get", TINY)[0].strip()
    converse(program, "how are you", model)
    written = program.home / "chats é.json"
    assert program.run("export", "--all", "-o", str(written))[0].strip() == str(written)
    (chat,) = json.loads(written.read_text(encoding="utf-8"))["chats"]
    assert chat["messages"][0]["text"] == "how are you"
    assert "Traceback" not in program.log
