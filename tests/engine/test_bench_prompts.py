"""Prompts and conversations as files hold them."""

import json
import sys
import tracemalloc

import pyarrow
import pytest
from pyarrow import parquet

from engine.bench import prompts
from engine.bench.prompts import PLACEHOLDER, Prompts, built_in, read_prompts
from engine.errors import EngineError


def write_lines(path, *lines):
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_prompts_are_read_from_both_forms(tmp_path):
    file = write_lines(
        tmp_path / "p.jsonl", {"prompt": "one"}, "", {"turns": ["two", "ignored"], "category": "x"}
    )
    assert read_prompts(file) == Prompts((("one",), ("two",)), ("", "x"))


def test_conversations_are_the_lines_with_turns_enough(tmp_path):
    lines = [{"prompt": "one"}, {"turns": ["a", "b", "c"]}, {"turns": ["x", "y"], "category": "z"}]
    file = write_lines(tmp_path / "p.jsonl", *lines)
    assert read_prompts(file, turns=2).asked == (("a", "b"), ("x", "y"))
    assert read_prompts(file, turns=3).asked == (("a", "b", "c"),)
    with pytest.raises(EngineError, match="no prompts of 4 turns"):
        read_prompts(file, turns=4)


def test_a_limit_takes_prompts_evenly_over_the_categories(tmp_path):
    lines = [{"category": c, "prompt": f"{c}{i}"} for c in "abc" for i in range(5)]
    file = write_lines(tmp_path / "p.jsonl", *lines)
    found = read_prompts(file, 4)
    assert found.asked == (("a0",), ("b0",), ("c0",), ("a1",))
    assert found.kinds == ("a", "b", "c", "a")
    assert len(read_prompts(file).asked) == 15


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


SPEED_BENCH = {
    "question_id": "5f1c",
    "category": "coding",
    "sub_category": None,
    "source": "https://example.org",
    "src_id": None,
    "difficulty": None,
    "multiturn": False,
}


def test_placeholder_rows_of_speed_bench_are_left_out_and_counted(tmp_path):
    held = f"{PLACEHOLDER} USING SPECDEC_BENCH"
    lines = [
        SPEED_BENCH | {"turns": ["Sort these numbers."]},
        SPEED_BENCH | {"turns": [held]},
        SPEED_BENCH | {"turns": ["Hello.", held], "category": "rag"},
    ]
    found = read_prompts(write_lines(tmp_path / "p.jsonl", *lines))
    assert found == Prompts((("Sort these numbers.",),), ("coding",), skipped=2)
    assert found.limited(1).skipped == 2
    with pytest.raises(EngineError, match="placeholders only, 2 of them"):
        read_prompts(write_lines(tmp_path / "p.jsonl", *lines[1:]))


def test_speed_bench_is_read_as_it_is_published(tmp_path):
    """As Parquet, with columns that nobody asked for."""
    held = f"{PLACEHOLDER} USING SPECDEC_BENCH"
    rows = [
        SPEED_BENCH | {"turns": ["Sort.", "And now?"]},
        SPEED_BENCH | {"turns": [held]},
        SPEED_BENCH | {"turns": ["Sing."], "category": None},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows * 40), tmp_path / "test.parquet")
    found = read_prompts(tmp_path / "test.parquet")
    assert (len(found.asked), found.skipped) == (80, 40)
    assert found.limited(2) == Prompts((("Sort.",), ("Sing.",)), ("coding", ""), skipped=40)
    assert read_prompts(tmp_path / "test.parquet", turns=2).asked == (("Sort.", "And now?"),) * 40


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"turns": ["a"]}, {"turns": [" "]}], "Line 2 of"),
        ([{"turns": "a"}], "Line 1 of"),
        ([{"turns": [None]}], "Line 1 of"),
        ([{"text": "a"}], "Line 1 of"),
        ([{"turns": [1]}], "Line 1 of"),
        ([], "no prompts"),
    ],
)
def test_parquet_of_other_things_is_refused_by_line(tmp_path, rows, said):
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    with pytest.raises(EngineError, match=said):
        read_prompts(tmp_path / "x.parquet")


@pytest.mark.parametrize("damage", [lambda d: d[:-20], lambda d: b"PAR1", lambda d: b""])
def test_damaged_parquet_cannot_be_read(tmp_path, damage):
    file = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"turns": ["a"]}]), file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(EngineError) as failed:
        read_prompts(file)
    assert failed.value.code == "prompts_unreadable"


def test_without_what_reads_parquet_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EngineError, match="install pyarrow") as failed:
        read_prompts(tmp_path / "x.parquet")
    assert failed.value.code == "no_parquet"


def test_a_kind_is_a_short_word(tmp_path):
    file = write_lines(tmp_path / "p.jsonl", {"prompt": "a", "category": "x" * 10_000})
    assert len(read_prompts(file).kinds[0]) == 60


def test_a_line_without_an_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(prompts, "LINE_BYTES", 1 << 12)
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "a"}\n' + "x" * (4 << 20))
    tracemalloc.start()
    with pytest.raises(EngineError, match="Line 2 of"):
        read_prompts(file)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20


def test_rows_of_spec_bench_are_read_by_category(tmp_path):
    line = {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]}
    found = read_prompts(write_lines(tmp_path / "p.jsonl", line), turns=2)
    assert found == Prompts((("Write.", "Rewrite."),), ("writing",))


SETS = {"code": [["a"], ["b", "c"]], "edit": [["d"]]}


def test_built_in_prompts_are_taken_by_kind():
    assert built_in(SETS, ["edit"]) == Prompts((("d",),), ("edit",))
    both = built_in(SETS, ["code", "edit"])
    assert both == Prompts((("a",), ("d",), ("b",)), ("code", "edit", "code"))
    assert built_in(SETS, ["code", "edit"], limit=2).kinds == ("code", "edit")
    assert built_in(SETS, ["code", "edit"], turns=2).asked == (("b", "c"),)
    with pytest.raises(EngineError, match="No built-in prompt has 3 turns"):
        built_in(SETS, ["code"], turns=3)
