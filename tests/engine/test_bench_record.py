"""Finished runs are kept: a bench that was stopped goes on, and mixes nothing."""

import json
import os

import pytest

from engine.api import Sampling
from engine.bench import contenders
from engine.bench.comparison import compare
from engine.bench.plan import Plan
from engine.errors import Cancelled, EngineError
from tests.folders import IM_END, tiny_config, write_model

RUNS = 12  # of two conversations, three rows and two repetitions


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    config = tiny_config(eos_token_id=IM_END)
    # without a template, for which each load would start a process
    write_model(root / "target", config=dict(config), template=None)
    write_model(root / "draft", config=dict(config), layers=1, template=None)
    return root


def plan(folders, **changes):
    settings = {
        "model": folders / "target",
        "cache_folder": folders / "cache",
        "drafts": ["ngram", folders / "draft"],
        "prompts": [("abc abc abc", "more"), ("one two one two",)],
        "max_tokens": 10,
        "precisions": ["fp32"],
        "draft_lengths": [4],
        "repeat": 2,
    }
    return Plan(**(settings | changes))


def ids(file):
    """The ids of each run, by its way, prompt and repetition."""
    return {
        (*run["way"].values(), run["prompt"], run["again"]): [a["ids"] for a in run["answers"]]
        for run in json.loads(file.read_text())["runs"]
    }


def stopped_after(count):
    """What to hear progress with, and a stop that comes after `count` runs."""
    heard = []
    return heard.append, lambda: sum(line.startswith("prompt") for line in heard) >= count


def stop_midway(folders, file, count, **changes):
    with pytest.raises(Cancelled):
        compare(plan(folders, **changes), *stopped_after(count), file)


@pytest.fixture
def answered(monkeypatch):
    """The ways of all answers of full length."""
    seen = []
    answer = contenders._Slipstream.answer

    def noted(self, asked, tokens, stopped):
        answers = answer(self, asked, tokens, stopped)
        if tokens == 10:
            seen.append(self.way)
        return answers

    monkeypatch.setattr(contenders._Slipstream, "answer", noted)
    return seen


def test_a_stopped_bench_goes_on_and_ends_as_if_never_stopped(folders, tmp_path, answered):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    expected = compare(plan(folders), file=whole)
    answered.clear()
    stop_midway(folders, parts, 1)
    stop_midway(folders, parts, 4)
    said = []
    report = compare(plan(folders), said.append, file=parts)
    assert "5 of 12 runs are taken over" in said
    assert len(answered) == RUNS
    assert ids(parts) == ids(whole)
    assert len(ids(whole)) == RUNS
    for ours, theirs in zip(report.rows, expected.rows, strict=True):
        assert ours.label == theirs.label
        assert ours.acceptance_rate == theirs.acceptance_rate
        assert ours.tokens_per_round == theirs.tokens_per_round
        assert ours.differing_ids == theirs.differing_ids == 0


def test_what_a_stop_left_counts_in_every_kind_of_prompt(folders, tmp_path):
    file, kinds = tmp_path / "out.json", {"kinds": ["a", "b"]}
    stop_midway(folders, file, 7, **kinds)
    report = compare(plan(folders, **kinds), file=file)
    for row in report.rows:
        assert {kind: found.prompts for kind, found in row.by_category.items()} == {"a": 1, "b": 1}
    kept = json.loads(file.read_text())["rows"][1]["by_category"]
    assert kept["b"]["speedup"] == report.rows[1].by_category["b"].speedup


def test_a_bench_that_broke_leaves_every_finished_run(folders, tmp_path, monkeypatch):
    file = tmp_path / "out.json"
    answer = contenders._Slipstream.answer
    count = iter(range(100))

    def breaking(self, asked, tokens, stopped):
        if tokens == 10 and next(count) == 3:
            raise RuntimeError("power cut")
        return answer(self, asked, tokens, stopped)

    monkeypatch.setattr(contenders._Slipstream, "answer", breaking)
    with pytest.raises(RuntimeError):
        compare(plan(folders), file=file)
    assert len(ids(file)) == 3
    compare(plan(folders), file=file)
    assert len(ids(file)) == RUNS
    assert not list(tmp_path.glob("*.partial"))


def test_a_complete_file_is_summed_up_again_without_a_model(folders, tmp_path, monkeypatch):
    file = tmp_path / "out.json"
    report = compare(plan(folders), file=file)
    before = file.read_bytes()
    monkeypatch.setattr(contenders, "opened", None)
    said = []
    assert compare(plan(folders), said.append, file=file) == report
    assert said == [f"{file} is complete, nothing is measured again"]
    assert file.read_bytes() == before


def test_the_file_holds_the_report_and_every_run(folders, tmp_path):
    file = tmp_path / "out.json"
    report = compare(plan(folders), file=file)
    kept = json.loads(file.read_text())
    assert {k: kept[k] for k in report.as_json()} == json.loads(json.dumps(report.as_json()))
    assert kept["complete"] is True
    run = kept["runs"][1]
    assert run["way"]["drafter"] == "ngram"
    answer = run["answers"][0]
    assert len(answer["ids"]) == 10
    assert answer["tokens_per_second"] > 0
    assert answer["time_to_first_token"] > 0
    assert answer["usage"]["tokens"] == 10


CHANGES = {
    "model": {"model": "other"},
    "drafts": {"drafts": ["ngram"]},
    "precisions": {"precisions": [None]},
    "draft_precision": {"draft_precision": "bf16"},
    "draft_lengths": {"draft_lengths": [3]},
    "prompts": {"prompts": [("abc",)]},
    "max_tokens": {"max_tokens": 9},
    "repeat": {"repeat": 1},
    "sampling": {"sampling": Sampling(temperature=0.8, seed=0)},
    "verification": {"verification": "rejection"},
    "against_transformers": {"against_transformers": True},
}


@pytest.fixture(scope="module")
def begun(folders, tmp_path_factory):
    """A bench stopped after two runs."""
    file = tmp_path_factory.mktemp("begun") / "out.json"
    stop_midway(folders, file, 2)
    return file


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_of_another_plan_is_refused_and_kept(folders, begun, tmp_path, name):
    changes = dict(CHANGES[name])
    if name == "model":
        changes["model"] = write_model(tmp_path / "other", config=tiny_config(eos_token_id=IM_END))
    before = begun.read_bytes()
    with pytest.raises(EngineError, match=f"another plan: {name} is not the same") as refused:
        compare(plan(folders, **changes), file=begun)
    assert refused.value.code == "other_plan"
    assert begun.read_bytes() == before


def test_a_complete_file_of_another_plan_is_refused_too(folders, tmp_path):
    file = tmp_path / "out.json"
    short = {"drafts": ["none"], "repeat": 1, "prompts": [("abc",)]}
    compare(plan(folders, **short), file=file)
    with pytest.raises(EngineError, match="drafts is not the same"):
        compare(plan(folders, **short | {"drafts": ["ngram"]}), file=file)


def test_a_model_whose_files_changed_is_another_model(folders, tmp_path):
    model = write_model(tmp_path / "model", config=tiny_config(eos_token_id=IM_END))
    short = {"model": model, "drafts": ["none"]}
    file = tmp_path / "out.json"
    stop_midway(folders, file, 1, **short)
    os.utime(model / "model.safetensors", (1, 1))
    os.utime(model / "config.json", (4e9, 4e9))
    with pytest.raises(EngineError, match="model is not the same"):
        compare(plan(folders, **short), file=file)


def test_runs_of_a_row_that_is_no_more_are_refused(folders, begun, tmp_path, monkeypatch):
    """What "auto" stands for may change from one day to the next."""
    file = tmp_path / "out.json"
    file.write_bytes(begun.read_bytes())
    ours = contenders._ours
    monkeypatch.setattr(contenders, "_ours", lambda *given: ours(*given)[:1])
    with pytest.raises(EngineError, match="rows are not the same"):
        compare(plan(folders), file=file)


def damaged(text):
    """Ways to spoil a file of runs."""
    kept = json.loads(text)
    wrong_id = json.loads(text)
    wrong_id["runs"][0]["answers"][0]["ids"][0] += 1
    no_runs = {k: v for k, v in kept.items() if k != "runs"}
    no_answers = json.loads(text)
    del no_answers["runs"][0]["answers"]
    return {
        "cut off": text[: len(text) // 2],
        "another id": json.dumps(wrong_id),
        "no runs": json.dumps(no_runs),
        "no answers": json.dumps(no_answers),
        "a list": "[]",
        "another program's": '{"rows": []}',
        "no text": "\ud800",
        "too deep": "[" * 100_000,
    }


@pytest.mark.parametrize(
    "how",
    ["cut off", "another id", "no runs", "no answers", "a list", "another program's", "no text",
     "too deep"],
)  # fmt: skip
def test_a_damaged_file_is_named_and_left_alone(folders, begun, tmp_path, how):
    file = tmp_path / "out.json"
    file.write_bytes(damaged(begun.read_text())[how].encode("utf-8", "surrogatepass"))
    before = file.read_bytes()
    with pytest.raises(EngineError) as refused:
        compare(plan(folders), file=file)
    assert refused.value.code in ("record_damaged", "not_a_record")
    assert str(file) in str(refused.value)
    assert file.read_bytes() == before


def test_an_empty_file_is_filled(folders, tmp_path):
    file = tmp_path / "out.json"
    file.touch()
    compare(plan(folders, drafts=["none"], repeat=1), file=file)
    assert json.loads(file.read_text())["complete"]


def test_a_link_is_written_through_and_a_device_refused(folders, tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    compare(plan(folders, drafts=["none"], repeat=1), file=link)
    assert link.is_symlink()
    assert json.loads(real.read_text())["complete"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(EngineError, match="cannot be written"):
        compare(plan(folders), file=pipe)
    assert not pipe.is_file()
