"""Tokens of a text are counted in a process of its own."""

import time

import pytest

from engine import counting
from engine.counting import Count, Counter, built_file, tokenizer_file
from engine.errors import Cancelled, Incomplete
from tests.folders import write_tokenizer


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    folder = write_tokenizer(tmp_path_factory.mktemp("model"))
    counter = Counter(folder / "tokenizer.json")
    yield counter
    counter.close()


def test_a_text_has_as_many_tokens_as_its_tokenizer_says(counter):
    """One for each byte here; the name of a control token is text, as it is when it is sent."""
    assert counter.count("abc ä") == Count(6)
    assert counter.count("a<|im_end|>") == Count(11)
    assert counter.count("lone \ud800") == Count(6)
    assert counter.count("") == Count(0)


def test_of_a_long_text_a_part_is_counted_and_it_says_so(counter, monkeypatch):
    monkeypatch.setattr(counting, "COUNTED", 100)
    assert counter.count("x" * 100) == Count(100)
    assert counter.count("xy" * 100) == Count(200, about=True)


def test_a_count_that_was_given_up_is_not_taken_for_the_next(counter):
    counter.count("ready")
    with pytest.raises(Cancelled):
        counter.count("x" * 50, lambda: True)
    assert counter.count("abc") == Count(3)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    counter = Counter(tmp_path / "tokenizer.json")
    with pytest.raises(Incomplete) as refused:
        counter.count("abc")
    assert refused.value.code == "tokenizer_damaged"
    counter.close()


def test_after_its_process_has_died_it_starts_another(tmp_path):
    counter = Counter(write_tokenizer(tmp_path) / "tokenizer.json")
    assert counter.count("abc") == Count(3)
    counter._child._process.kill()
    while counter._child.alive:
        time.sleep(0.01)
    with pytest.raises(Incomplete):
        counter.count("abc")
    assert counter.count("abcd") == Count(4)
    counter.close()


def test_the_file_is_the_folders_or_the_one_built_from_a_gguf(tmp_path):
    assert tokenizer_file(tmp_path, "name", tmp_path) == tmp_path / "tokenizer.json"
    gguf = tmp_path / "model.gguf"
    assert tokenizer_file(gguf, "name", tmp_path) == built_file(tmp_path, "name")
