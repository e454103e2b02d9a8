"""What was answered before: kept by chat, forgotten for good, and never trusted."""

import json
import os
import stat
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.past import MOST, Past, Texts

HERE = "v"


def held(past, vocabulary=HERE):
    return [(t.chat, t.question, t.tokens.tolist()) for t in past.of(vocabulary).all]


def files(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


def test_a_chat_is_learned_answer_by_answer(tmp_path):
    past = Past(tmp_path)
    past.of(HERE).add("a", [1, 2, 3, 4], 2)
    past.of(HERE).add("b", [1, 2, 9], 2)
    past.of(HERE).add("a", [1, 2, 3, 4, 5, 6, 7], 5)
    found = [("a", 2, [1, 2, 3, 4]), ("b", 2, [1, 2, 9]), ("a", 1, [5, 6, 7])]
    assert held(past) == held(Past(tmp_path)) == found
    assert [text.answer.tolist() for text in past.of(HERE).all] == [[3, 4], [9], [6, 7]]


def test_another_answer_stands_beside_the_first_and_the_same_once(tmp_path):
    past = Past(tmp_path)
    for answer in ([3, 4], [3, 5], [3, 4]):
        past.of(HERE).add("a", [1, 2, *answer], 2)
    assert held(past) == [("a", 2, [1, 2, 3, 4]), ("a", 0, [3, 5])]


def test_what_is_held_changes_only_when_something_is_learned():
    """What is made of it follows by that."""
    texts = Past().of(HERE)
    texts.add("a", [1, 2], 0)
    before = texts.all
    texts.add("a", [1, 2], 0)
    assert texts.all is before
    texts.add("a", [1, 2, 3], 2)
    assert texts.all[:1] == before


def test_vocabularies_are_apart(tmp_path):
    past = Past(tmp_path)
    past.of("one").add("a", [1, 2], 0)
    past.of("two").add("a", [3, 4], 0)
    assert held(Past(tmp_path), "one") == [("a", 0, [1, 2])]
    assert held(Past(tmp_path), "two") == [("a", 0, [3, 4])]
    assert held(Past(tmp_path), "three") == []


def test_a_chat_is_forgotten_in_memory_and_in_every_file(tmp_path):
    past = Past(tmp_path)
    for chat, token in (("a", 77_777), ("b", 88_888)):
        for vocabulary in ("one", "two"):
            past.of(vocabulary).add(chat, [token, 2], 0)
    cut = next(file for file in files(tmp_path) if b"77777" in file.read_bytes())
    cut.with_suffix(".123.partial").write_bytes(cut.read_bytes())  # the program ended meanwhile
    Past(tmp_path).forget("a")
    past.forget("a")
    assert [chat for chat, *_ in held(past, "one")] == ["b"]
    assert all(b"77777" not in file.read_bytes() for file in files(tmp_path))
    assert held(Past(tmp_path), "two") == [("b", 0, [88_888, 2])]


def test_an_answer_that_comes_after_its_chat_is_gone_is_not_learned(tmp_path):
    past = Past(tmp_path)
    past.forget("a")
    past.of(HERE).add("a", [1, 2], 0)
    past.of("later").add("a", [1, 2], 0)
    assert held(past) == held(past, "later") == files(tmp_path) == []


def test_all_is_forgotten_at_once_and_learned_again(tmp_path):
    past = Past(tmp_path)
    for chat in "ab":
        past.of(HERE).add(chat, [1, 2], 0)
    past.clear()
    assert held(past) == files(tmp_path) == []
    past.of(HERE).add("a", [1, 2], 0)
    assert held(Past(tmp_path)) == [("a", 0, [1, 2])]


def test_the_oldest_go_where_there_are_too_many(tmp_path):
    past = Past(tmp_path, most=80)
    for n in range(9):
        past.of(HERE).add(f"chat {n % 4}", [n] * (10 * (n // 4 + 1)), 0)
    kept = held(past)
    assert sum(len(tokens) for *_, tokens in kept) <= 80
    assert [tokens[0] for *_, tokens in kept] == list(range(9))[-len(kept) :]
    assert held(Past(tmp_path, most=80)) == kept
    past.of(HERE).add("long", [7] * 81, 0)
    assert held(past) == files(tmp_path) == []


def test_the_limit_is_a_few_megabytes():
    assert MOST * array("i").itemsize <= 2**22


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.integers(0, 1), min_size=1, max_size=8),
            st.integers(0, 8),
        ),
        max_size=8,
    )
)
def test_what_was_learned_once_is_known(told):
    """Whatever was edited or answered anew in between."""
    texts = Past().of(HERE)
    for chat, tokens, answer in told:
        for _ in range(2):
            before = texts.all
            texts.add(chat, tokens, min(answer, len(tokens)))
        assert texts.all is before


GOOD = {"start": 0, "question": 0, "tokens": [1, 2], "learned": 5.0}
BROKEN = {
    "cut off": '{"format": 1, "chat": "a", "texts": [{"start": 0, "tok',
    "empty": "",
    "no object": "[1, 2]",
    "no text": "\udcff",
    "deep": "[" * 100_000,
    "newer": {"format": 2, "chat": "a", "texts": [GOOD]},
    "another chat's": {"format": 1, "chat": "b", "texts": [GOOD]},
    "no name": {"format": 1, "chat": 5, "texts": [GOOD]},
    "no list": {"format": 1, "chat": "a", "texts": 5},
    "no row": {"format": 1, "chat": "a", "texts": [5]},
    "lacking": {"format": 1, "chat": "a", "texts": [{"start": 0}]},
    "negative": {"format": 1, "chat": "a", "texts": [GOOD | {"tokens": [1, -1]}]},
    "too large": {"format": 1, "chat": "a", "texts": [GOOD | {"tokens": [2**40]}]},
    "no token": {"format": 1, "chat": "a", "texts": [GOOD | {"tokens": [1.5]}]},
    "words": {"format": 1, "chat": "a", "texts": [GOOD | {"tokens": "words"}]},
    "outside": {"format": 1, "chat": "a", "texts": [GOOD | {"question": 3}]},
    "no place": {"format": 1, "chat": "a", "texts": [GOOD | {"start": True}]},
    "no time": {"format": 1, "chat": "a", "texts": [GOOD | {"learned": float("nan")}]},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_damaged_file_is_left_aside_and_stays(tmp_path, caplog, broken):
    past = Past(tmp_path)
    past.of(HERE).add("b", [1, 2], 0)
    past.of(HERE).add("a", [3, 4], 0)
    (mine,) = (file for file in files(tmp_path) if '"a"' in file.read_text())
    text = broken if isinstance(broken, str) else json.dumps(broken)
    mine.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = mine.read_bytes()
    again = Past(tmp_path)
    assert held(again) == [("b", 0, [1, 2])]
    assert mine.name in caplog.text
    assert mine.read_bytes() == before
    again.of(HERE).add("a", [3, 4], 0)
    assert held(Past(tmp_path))[-1] == ("a", 0, [3, 4])


def test_a_sound_file_is_read(tmp_path):
    """So that the broken ones are broken in what they are named after."""
    Past(tmp_path).of(HERE).add("a", [1], 0)
    (file,) = files(tmp_path)
    file.write_text(json.dumps({"format": 1, "chat": "a", "texts": [GOOD]}))
    assert held(Past(tmp_path)) == [("a", 0, [1, 2])]


@pytest.mark.parametrize("chat", ["../../x", "a/b", "con", "", "\udcff", "x" * 5000])
def test_a_chats_id_may_be_anything(tmp_path, chat):
    """Imported chats bring theirs."""
    past = Past(tmp_path / "past")
    past.of("../" + HERE).add(chat, [1, 2], 0)
    assert held(Past(tmp_path / "past"), "../" + HERE) == [(chat, 0, [1, 2])]
    assert files(tmp_path) == files(tmp_path / "past") != []
    past.forget(chat)
    assert files(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="modes are those of other systems")
def test_nobody_else_can_read_it(tmp_path):
    Past(tmp_path / "past").of(HERE).add("a", [1, 2], 0)
    (file,) = files(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_disk_that_takes_nothing_loses_nothing(tmp_path, caplog):
    (tmp_path / "past").write_text("a file where the folder should be")
    past = Past(tmp_path / "past")
    past.of(HERE).add("a", [1, 2], 0)
    assert held(past) == [("a", 0, [1, 2])]
    assert "could not be learned" in caplog.text


def test_a_file_that_cannot_be_deleted_is_told(tmp_path, monkeypatch):
    past = Past(tmp_path)
    past.of(HERE).add("a", [1, 2], 0)

    def refuse(*_, **__):
        raise PermissionError(13, "in use")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(PermissionError):
        past.forget("a")
    assert held(past) == []


def test_nothing_is_read_before_it_is_asked_for(tmp_path, monkeypatch):
    """The window holds it from the start on."""
    monkeypatch.setattr(Texts, "_files", lambda self: pytest.fail("read"))
    Past(tmp_path).of(HERE)
