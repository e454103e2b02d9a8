"""Prompts and conversations as files hold them."""

import json

import pytest

from engine.bench.prompts import read_prompts
from engine.errors import EngineError


def write_lines(path, *lines):
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_prompts_are_read_from_both_forms(tmp_path):
    file = write_lines(
        tmp_path / "p.jsonl", {"prompt": "one"}, "", {"turns": ["two", "ignored"], "category": "x"}
    )
    assert read_prompts(file) == [("one",), ("two",)]


def test_conversations_are_the_lines_with_turns_enough(tmp_path):
    lines = [{"prompt": "one"}, {"turns": ["a", "b", "c"]}, {"turns": ["x", "y"], "category": "z"}]
    file = write_lines(tmp_path / "p.jsonl", *lines)
    assert read_prompts(file, turns=2) == [("a", "b"), ("x", "y")]
    assert read_prompts(file, turns=3) == [("a", "b", "c")]
    with pytest.raises(EngineError, match="no prompts of 4 turns"):
        read_prompts(file, turns=4)


def test_a_limit_takes_prompts_evenly_over_the_categories(tmp_path):
    lines = [{"category": c, "prompt": f"{c}{i}"} for c in "abc" for i in range(5)]
    file = write_lines(tmp_path / "p.jsonl", *lines)
    assert read_prompts(file, 4) == [("a0",), ("b0",), ("c0",), ("a1",)]
    assert len(read_prompts(file)) == 15


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "5",
        '"text"',
        '{"prompt": ""}',
        '{"prompt": 5}',
        '{"turns": []}',
        '{"turns": ["a", 5]}',
        '{"turns": "ab"}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_prompt_is_named(tmp_path, line):
    file = write_lines(tmp_path / "p.jsonl", {"prompt": "one"}, line)
    with pytest.raises(EngineError, match=r"Line 2 of p\.jsonl"):
        read_prompts(file)


def test_a_file_without_prompts_is_an_error(tmp_path):
    with pytest.raises(EngineError, match="no prompts"):
        read_prompts(write_lines(tmp_path / "p.jsonl", ""))
    with pytest.raises(EngineError, match="cannot be read"):
        read_prompts(tmp_path / "absent.jsonl")
