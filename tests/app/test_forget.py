"""The terminal command that forgets what drafts learned."""

from pathlib import Path

import pytest

from app import paths
from app.__main__ import main
from engine.learned import Learned
from engine.measured import Setup
from engine.past import Past

SETUP = Setup("target", "none", "int8", None, "cpu")


def files_of_past() -> list[Path]:
    return [path for path in paths.past_folder().rglob("*") if path.is_file()]


@pytest.fixture
def learned():
    Past(paths.past_folder()).of("words").add("chat", list(range(50)), 10)
    Learned(paths.learned_file()).keep({SETUP: {"costs": []}})
    assert files_of_past()


@pytest.mark.usefixtures("learned")
@pytest.mark.parametrize("words", [["chats"], ["drafting"], ["chats", "drafting"]])
def test_what_is_named_is_forgotten_and_nothing_else(words, capsys):
    assert main(["forget", *words]) == 0
    assert bool(files_of_past()) == ("chats" not in words)
    assert bool(Learned(paths.learned_file()).of(SETUP)) == ("drafting" not in words)
    assert len(capsys.readouterr().out.splitlines()) == len(words)


def test_nothing_learned_is_nothing_to_forget():
    assert main(["forget", "chats", "drafting"]) == 0


@pytest.mark.usefixtures("learned")
def test_who_has_read_it_knows_that_it_is_gone():
    reading = Learned(paths.learned_file())
    assert reading.of(SETUP)
    main(["forget", "drafting"])
    assert not reading.of(SETUP)


@pytest.mark.parametrize("words", [[], ["everything"]])
def test_what_to_forget_is_named(words):
    with pytest.raises(SystemExit) as ended:
        main(["forget", *words])
    assert ended.value.code == 2
