"""What was measured here: kept, merged, bounded, told in words; a damaged file is an empty one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine import measured
from engine.drafters import BUILT_IN
from engine.errors import Reason
from engine.guidance import Level, Verdict
from engine.library.candidates import setup
from engine.measured import Measured, Measurement, Setup

PAIR = Setup("target", "draft", "int8", "int8", "cpu")
PLAIN = PAIR.plain
ADVICE = Verdict(
    Level.WARN, Reason("hardly_smaller", "Warning: only {ratio} times smaller", {"ratio": 3})
)


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "data" / "measured.json"


def found(times: float | None, accepted: float | None = 0.714) -> Measurement:
    return Measurement(10.0, accepted, 500, "2026-12-01", "use", times and 10.0 / times)


def test_what_is_added_is_there_after_a_restart(file):
    table = Measured(file)
    assert table.of(PAIR) is None
    table.add(PAIR, 8.7, 200, 0.71, "bench")
    kept = Measured(file).of(PAIR)
    assert (kept.tokens_per_second, kept.acceptance_rate, kept.tokens) == (8.7, 0.71, 200)
    assert kept.by == "bench"
    assert kept == table.of(PAIR)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "other",
    [
        {"target": "x"},
        {"draft": "x"},
        {"precision": "bf16"},
        {"draft_precision": "int4"},
        {"device": "cuda"},
    ],
)
def test_another_model_precision_or_device_is_another_setup(file, other):
    table = Measured(file)
    table.add(PAIR, 8.7, 200, 0.71)
    assert table.of(replace(PAIR, **other)) is None


def test_times_plain_are_known_where_plain_is(file):
    table = Measured(file)
    table.add(PAIR, 12.0, 200, 0.71)
    assert table.of(PAIR).times_plain is None
    table.add(replace(PLAIN, precision="bf16"), 6.0, 200)
    table.add(replace(PLAIN, device="cuda"), 6.0, 200)
    assert table.of(PAIR).times_plain is None
    table.add(PLAIN, 8.0, 200)
    assert table.of(PAIR).times_plain == pytest.approx(1.5)
    assert table.of(PLAIN).plain is None


def test_two_measurements_become_one_in_which_the_newer_weighs_more():
    table = Measured(None)
    table.add(PAIR, 10.0, 100, 0.4)
    table.add(PAIR, 20.0, 100, 0.8)
    kept = table.of(PAIR)
    # 50 old tokens in 5 s and 100 new ones in 5 s
    assert kept.tokens_per_second == pytest.approx(150 / 10)
    assert kept.acceptance_rate == pytest.approx((50 * 0.4 + 100 * 0.8) / 150)
    assert kept.tokens == 200


def test_what_was_long_known_is_outweighed_in_the_end():
    table = Measured(None)
    table.add(PAIR, 10.0, 10_000_000, 0.9)
    for _ in range(60):
        table.add(PAIR, 30.0, 200, 0.5)
    assert table.of(PAIR).tokens_per_second > 29
    assert table.of(PAIR).acceptance_rate < 0.51


def test_another_program_of_ours_may_write_too(file):
    window, bench = Measured(file), Measured(file)
    window.add(PLAIN, 8.0, 100)
    bench.add(PAIR, 12.0, 100, 0.5, "bench")
    assert window.of(PAIR).times_plain == pytest.approx(1.5)
    window.add(PLAIN, 8.0, 100)
    assert bench.of(PAIR) is not None
    assert bench.of(PLAIN).tokens == 200


def test_the_table_is_bounded_and_forgets_what_was_measured_longest_ago(file, monkeypatch):
    monkeypatch.setattr(measured, "MOST", 3)
    table = Measured(file)
    setups = [replace(PAIR, draft=f"draft {n}") for n in range(4)]
    for first in setups[:3]:
        table.add(first, 8.0, 100, 0.5)
    table.add(setups[0], 8.0, 100, 0.5)
    table.add(setups[3], 8.0, 100, 0.5)
    assert [Measured(file).of(s) is not None for s in setups] == [True, False, True, True]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 2}', "\xff", "[" * 100_000])
def test_a_damaged_file_is_an_empty_one_and_is_written_anew(file, text):
    file.parent.mkdir()
    file.write_text(text, encoding="latin-1")
    table = Measured(file)
    assert table.of(PAIR) is None
    table.add(PAIR, 8.0, 100, 0.5)
    assert Measured(file).of(PAIR) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokens_per_second", "8"),
        ("tokens_per_second", -1.0),
        ("tokens_per_second", 1e999),
        ("tokens_per_second", True),
        ("acceptance_rate", 1.5),
        ("acceptance_rate", None),
        ("tokens", 0),
        ("tokens", 2.5),
        ("date", "yesterday"),
        ("date", 5),
        ("by", "hearsay"),
        ("precision", "fp8"),
        ("precision", ["int8"]),
        ("draft_precision", "fp8"),
        ("target", 7),
        ("target", []),
        ("device", None),
    ],
)
def test_a_value_of_the_wrong_kind_drops_its_row_only(file, name, value):
    table = Measured(file)
    table.add(PAIR, 8.0, 100, 0.5)
    table.add(replace(PAIR, draft="other"), 8.0, 100, 0.5)
    kept = json.loads(file.read_text())
    kept["measured"][0][name] = value
    kept["measured"].append("no row")
    del kept["measured"][1]["target"]
    kept["measured"].append(json.loads(json.dumps(kept["measured"][1])) | {"target": "whole"})
    file.write_text(json.dumps(kept))
    read = Measured(file)
    assert read.of(PAIR) is None
    assert read.of(replace(PAIR, draft="other")) is None
    assert read.of(replace(PAIR, draft="other", target="whole")) is not None


def test_what_cannot_be_is_not_added(file):
    table = Measured(file)
    table.add(PAIR, float("nan"), 100, 0.5)
    table.add(PAIR, 8.0, 100, None)
    table.add(PLAIN, 8.0, 0)
    assert not file.exists()


def test_a_folder_that_cannot_be_written_loses_no_answer(tmp_path):
    (tmp_path / "data").write_text("no folder")
    table = Measured(tmp_path / "data" / "measured.json")
    table.add(PAIR, 8.0, 100, 0.5)
    assert not list(tmp_path.glob("**/*.partial"))


def test_a_setup_is_known_by_its_files_and_not_when_they_changed(tmp_path):
    target, draft = tmp_path / "t.gguf", tmp_path / "d.gguf"
    target.write_bytes(b"target")
    draft.write_bytes(b"draft")
    before = setup(target, draft, "int8", "int4", "cpu")
    assert before == setup(target, draft, "int8", "int4", "cpu")
    assert before.plain == setup(target, "none", "int8", "int4", "cpu")
    draft.write_bytes(b"another")
    after = setup(target, draft, "int8", "int4", "cpu")
    assert (after.target, after.plain) == (before.target, before.plain)
    assert after.draft != before.draft


@pytest.mark.parametrize(
    ("times", "level", "text"),
    [
        (1.43, Level.GOOD, "Good: 1.4 times plain, 71 % accepted"),
        (1.1, Level.GOOD, "Good: 1.1 times plain, 71 % accepted"),
        (1.099, Level.EVEN, "1.09 times plain, 71 % accepted"),
        (1.0, Level.EVEN, "1.0 times plain, 71 % accepted"),
        (0.999, Level.WARN, "Slower here: 0.99 times plain"),
        (0.8, Level.WARN, "Slower here: 0.8 times plain"),
        (None, Level.WARN, "Warning: only 3 times smaller; 71 % accepted"),
    ],
)
def test_a_measurement_outranks_the_advice(times, level, text):
    said = measured.verdict(ADVICE, found(times))
    assert (said.level, said.reason.text) == (level, text)
    assert times is None or said.detail == ADVICE.reason


def test_a_refusal_stays_one_whatever_was_measured():
    refused = Verdict(Level.REFUSED, Reason("other", "Other vocabulary"))
    assert measured.verdict(refused, found(2.0)) is refused


def test_every_drafter_without_a_model_has_its_place():
    """The window knows them by these names alone."""
    assert {*BUILT_IN, measured.AUTO, measured.MTP} == {*measured.WITHOUT_MODEL}
