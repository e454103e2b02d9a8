"""What is measured, on tiny models: rows, order, sums, prompts."""

import json

import pytest

from engine.api import Drafting
from engine.bench import Plan, compare, read_prompts
from engine.errors import Cancelled, DraftRefused, EngineError
from tests.folders import IM_END, tiny_config, write_json, write_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    config = tiny_config(eos_token_id=IM_END)
    write_model(root / "target", config=dict(config))
    write_model(root / "draft", config=dict(config), layers=1)
    return root


def plan(folders, **changes):
    settings = {
        "model": folders / "target",
        "cache_folder": folders / "cache",
        "drafts": ["none", "ngram", folders / "draft"],
        "prompts": ["abc abc abc", "one two one two"],
        "precisions": [None],
        "max_tokens": 12,
    }
    return Plan(**(settings | changes))


def test_plain_and_each_draft_make_a_row(folders):
    report = compare(plan(folders))
    assert [(r.engine, r.drafter) for r in report.rows] == [
        ("slipstream", "none"),
        ("slipstream", "ngram"),
        ("slipstream", "model"),
    ]
    plain, ngram, model = report.rows
    assert report.differing_ids == 0
    assert (plain.speedup, plain.draft_length, plain.acceptance_rate) == (1.0, None, None)
    assert (ngram.draft_length, model.draft_length) == (8, 4)
    assert 0 < model.acceptance_rate < 1
    assert 1 < model.tokens_per_round < 5
    assert model.speedup == pytest.approx(model.tokens_per_second / plain.tokens_per_second)
    assert model.spread[0] <= model.tokens_per_second <= model.spread[1]
    assert model.memory_bytes > plain.memory_bytes > 0
    assert {r.precision for r in report.rows} == {"fp32"}


def test_plain_decoding_is_measured_though_not_asked_for(folders):
    rows = compare(plan(folders, drafts=["ngram"])).rows
    assert [r.drafter for r in rows] == ["none", "ngram"]


def test_transformers_runs_on_the_same_weights(folders):
    report = compare(plan(folders, against_transformers=True))
    theirs = [r for r in report.rows if r.engine == "transformers"]
    assert [r.drafter for r in theirs] == ["none", "lookup", "model"]
    assert {r.precision for r in theirs} == {"bf16"}
    assert theirs[0].speedup == 1.0
    assert all(r.tokens_per_second > 0 and r.time_to_first_token > 0 for r in theirs)
    assert all(r.acceptance_rate is None for r in theirs)


def test_transformers_runs_in_fp32_when_nothing_else_is_asked_for(folders):
    report = compare(plan(folders, precisions=["fp32"], drafts=["none"], against_transformers=True))
    assert {(r.engine, r.precision) for r in report.rows} == {
        ("slipstream", "fp32"),
        ("transformers", "fp32"),
    }


def test_each_precision_has_its_own_plain_row(folders):
    rows = compare(plan(folders, precisions=["fp32", "bf16"], drafts=["ngram"])).rows
    assert [(r.precision, r.drafter) for r in rows] == [
        ("fp32", "none"),
        ("fp32", "ngram"),
        ("bf16", "none"),
        ("bf16", "ngram"),
    ]
    assert [r.speedup for r in rows if r.drafter == "none"] == [1.0, 1.0]


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_transformers_generates_the_same_text_in_fp32(folders, tmp_path, monkeypatch, penalty):
    """Two engines, one model: plain greedy decoding must agree, whatever the folder's defaults."""
    from engine import bench

    config = tiny_config(eos_token_id=IM_END)
    model = write_model(tmp_path / "model", config=config)
    defaults = {"repetition_penalty": penalty, "temperature": 0.3, "eos_token_id": IM_END}
    write_json(model / "generation_config.json", defaults)

    seen = {}
    for kind in ("_Slipstream", "_Transformers"):
        answer = getattr(bench, kind).answer

        def recorded(self, prompt, tokens, stopped, answer=answer):
            run = answer(self, prompt, tokens, stopped)
            seen[self.engine, self.drafter, prompt, tokens] = run.ids
            return run

        monkeypatch.setattr(getattr(bench, kind), "answer", recorded)
    fp32 = {"precisions": ["fp32"], "drafts": ["none"], "against_transformers": True}
    compare(plan(folders, model=model, **fp32))
    ours = {k[2:]: v for k, v in seen.items() if k[:2] == ("slipstream", "none")}
    theirs = {k[2:]: v for k, v in seen.items() if k[:2] == ("transformers", "none")}
    assert ours == theirs
    assert len(ours) == 3  # two prompts and the warm-up


def test_rows_take_turns_and_the_warm_up_is_not_counted(folders, monkeypatch):
    from engine import bench

    order = []
    answer = bench._Slipstream.answer

    def noted(self, prompt, tokens, stopped):
        order.append((self.drafter, prompt, tokens))
        return answer(self, prompt, tokens, stopped)

    monkeypatch.setattr(bench._Slipstream, "answer", noted)
    compare(plan(folders, drafts=["ngram"], repeat=2))
    assert [drafter for drafter, _, _ in order] == [
        *("none", "ngram"),  # warm-up
        *("none", "ngram", "ngram", "none"),
        *("ngram", "none", "none", "ngram"),
    ]
    assert {tokens for _, _, tokens in order[:2]} == {8}


def test_every_run_starts_with_empty_caches_and_tables(folders):
    once = compare(plan(folders, drafts=["ngram"], prompts=["abc abc"]))
    twice = compare(plan(folders, drafts=["ngram"], prompts=["abc abc"] * 3, repeat=2))
    assert once.rows[1].acceptance_rate == twice.rows[1].acceptance_rate
    assert once.rows[1].tokens_per_round == twice.rows[1].tokens_per_round


def test_a_fixed_draft_length_is_used(folders):
    rows = compare(plan(folders, drafting=Drafting(length=2))).rows
    assert [r.draft_length for r in rows] == [None, 2, 2]
    assert 1 < rows[2].tokens_per_round <= 3


def test_ids_that_differ_are_counted(folders, monkeypatch):
    from engine import bench

    answer = bench._Slipstream.answer

    def wrong(self, prompt, tokens, stopped):
        run = answer(self, prompt, tokens, stopped)
        if self.drafter == "ngram" and tokens == 12:
            return bench.replace(run, ids=(*run.ids[:-2], -1))
        return run

    monkeypatch.setattr(bench._Slipstream, "answer", wrong)
    assert compare(plan(folders, drafts=["ngram"])).differing_ids == 4


def test_a_pair_that_cannot_work_is_refused_before_anything_is_loaded(folders, tmp_path):
    other = write_model(tmp_path / "other")
    text = (other / "tokenizer.json").read_text()
    (other / "tokenizer.json").write_text(text.replace('"a":97,"b":98', '"b":97,"a":98'))
    with pytest.raises(DraftRefused):
        compare(plan(folders, drafts=[other]))


def test_nothing_is_drafted_for_a_model_with_a_running_state(folders, tmp_path):
    """RBK-1."""
    from tests.engine.test_session import RECURRENT

    model = write_model(tmp_path / "model", config=RECURRENT["lfm2"])
    with pytest.raises(DraftRefused, match="running state"):
        compare(plan(folders, model=model, drafts=["ngram"]))
    assert len(compare(plan(folders, model=model, drafts=["none"])).rows) == 1


def test_a_pair_that_transformers_refuses_is_left_out_of_its_rows(folders, tmp_path):
    """VOC-1: two paddings of one vocabulary; ours runs."""
    config = tiny_config(eos_token_id=IM_END, vocab_size=320)
    draft = write_model(tmp_path / "wide", config=config, layers=1)
    said = []
    report = compare(plan(folders, drafts=[draft], against_transformers=True), said.append)
    rows = [(r.engine, r.drafter) for r in report.rows]
    assert ("slipstream", "model") in rows
    assert ("transformers", "model") not in rows
    assert any("transformers model is left out" in line for line in said)


def test_a_run_too_short_to_time_has_no_speedup(folders):
    report = compare(plan(folders, max_tokens=1, drafts=["none"], against_transformers=True))
    theirs = [r for r in report.rows if r.engine == "transformers"]
    assert [r.speedup for r in theirs] == [None, None]


@pytest.mark.parametrize("engine", ["slipstream", "transformers"])
def test_measuring_stops_when_asked(folders, engine):
    heard = []
    with pytest.raises(Cancelled):
        compare(
            plan(folders, against_transformers=engine == "transformers"),
            heard.append,
            lambda: any(line.startswith("prompt 1") for line in heard),
        )
    assert sum(line.startswith("prompt") for line in heard) == 1


def test_the_report_is_plain_json(folders):
    report = json.loads(json.dumps(compare(plan(folders, drafts=["ngram"])).as_json()))
    assert set(report["rows"][0]) >= {
        "engine",
        "drafter",
        "precision",
        "draft_length",
        "tokens_per_second",
        "speedup",
        "acceptance_rate",
        "tokens_per_round",
        "time_to_first_token",
        "memory_bytes",
    }
    assert report["differing_ids"] == 0


def write_lines(path, *lines):
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_prompts_are_read_from_both_forms(tmp_path):
    file = write_lines(
        tmp_path / "p.jsonl", {"prompt": "one"}, "", {"turns": ["two", "ignored"], "category": "x"}
    )
    assert read_prompts(file) == ["one", "two"]


def test_a_limit_takes_prompts_evenly_over_the_categories(tmp_path):
    lines = [{"category": c, "prompt": f"{c}{i}"} for c in "abc" for i in range(5)]
    file = write_lines(tmp_path / "p.jsonl", *lines)
    assert read_prompts(file, 4) == ["a0", "b0", "c0", "a1"]
    assert len(read_prompts(file)) == 15


@pytest.mark.parametrize(
    "line",
    ["{", "5", '"text"', '{"prompt": ""}', '{"prompt": 5}', '{"turns": []}', "[" * 100_000],
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
