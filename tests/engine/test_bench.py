"""What is measured, on tiny models: rows, order, sums."""

import csv
import io
import json

import pytest

from engine.api import Finish, Sampling
from engine.bench import contenders
from engine.bench.comparison import compare
from engine.bench.plan import Plan
from engine.errors import Cancelled, ContextFull, DraftRefused, OutOfMemory
from tests.folders import IM_END, tiny_config, write_json, write_model
from tests.vocabularies import byte_level_json, write_other


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
        "prompts": [("abc abc abc",), ("one two one two",)],
        "max_tokens": 12,
        "precisions": ["fp32"],
        "draft_lengths": [4],
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
    assert (ngram.draft_length, model.draft_length) == (4, 4)
    assert [r.draft_precision for r in report.rows] == [None, None, "fp32"]
    assert [r.differing_ids for r in report.rows] == [0, 0, 0]
    assert 0 < model.acceptance_rate < 1
    assert 1 < model.tokens_per_round < 5
    assert model.speedup == pytest.approx(model.tokens_per_second / plain.tokens_per_second)
    assert model.spread[0] <= model.tokens_per_second <= model.spread[1]
    assert model.memory_bytes > plain.memory_bytes > 0
    assert {r.precision for r in report.rows} == {"fp32"}


def test_auto_has_a_row_and_holds_a_model_beside_the_lookups(folders):
    report = compare(plan(folders, drafts=["auto"], auto_draft=folders / "draft"))
    _, auto = report.rows
    assert (auto.drafter, auto.draft, auto.draft_precision) == ("auto", None, "fp32")
    assert auto.differing_ids == 0
    assert auto.acceptance_rate is not None
    assert report.faults() == []


def test_a_prompt_longer_than_the_context_is_left_out_and_told(folders, tmp_path):
    told = []
    prompts = [("abc " * 5000,), ("one two one two",)]
    asked = plan(folders, prompts=prompts, kinds=["long", "short"], drafts=["ngram"])
    report = compare(asked, told.append, file=tmp_path / "runs.json")
    assert report.prompts == 1
    assert [row.prompts for row in report.rows] == [1, 1]
    assert list(report.rows[0].by_category) == ["short"]
    assert len([line for line in told if "prompt 1 of 2 is left out" in line]) == 1
    assert compare(asked, file=tmp_path / "runs.json") == report


def test_a_prompt_that_only_transformers_answers_counts_for_nobody(folders):
    """Of the third prompt it is asked before us; it knows no limit."""
    prompts = [("abc abc abc",), ("one two one two",), ("abc " * 1000,)]
    changes = {"drafts": ["ngram"], "against_transformers": True, "max_tokens": 4}
    report = compare(plan(folders, prompts=prompts, **changes))
    assert report.prompts == 2
    assert {row.prompts for row in report.rows} == {2}


def test_where_every_prompt_is_too_long_it_is_an_error(folders):
    with pytest.raises(ContextFull):
        compare(plan(folders, prompts=[("abc " * 5000,)]))


def test_plain_decoding_is_measured_though_not_asked_for(folders):
    rows = compare(plan(folders, drafts=["ngram"])).rows
    assert [r.drafter for r in rows] == ["none", "ngram"]


def test_transformers_runs_in_bf16_where_no_other_is_named(folders):
    report = compare(plan(folders, precisions=[None], against_transformers=True))
    theirs = [r for r in report.rows if r.engine == "transformers"]
    assert [r.drafter for r in theirs] == ["none", "lookup", "model"]
    assert {r.precision for r in theirs} == {"bf16"}
    assert theirs[0].speedup == 1.0
    assert all(r.tokens_per_second > 0 and r.time_to_first_token > 0 for r in theirs)
    assert all(r.acceptance_rate is None for r in theirs)


def test_each_precision_has_its_own_plain_row(folders):
    rows = compare(plan(folders, precisions=["fp32", "bf16"], drafts=["ngram"])).rows
    assert [(r.precision, r.drafter) for r in rows] == [
        ("fp32", "none"),
        ("fp32", "ngram"),
        ("bf16", "none"),
        ("bf16", "ngram"),
    ]
    assert [r.speedup for r in rows if r.drafter == "none"] == [1.0, 1.0]


@pytest.fixture
def noted(monkeypatch):
    """Every answer given, in order: way, conversation, limit and ids of each turn."""
    seen = []
    for kind in (contenders._Slipstream, contenders._Transformers):

        def recorded(self, asked, tokens, stopped, answer=kind.answer):
            answers = answer(self, asked, tokens, stopped)
            seen.append((self.way, asked, tokens, [a.ids for a in answers]))
            return answers

        monkeypatch.setattr(kind, "answer", recorded)
    return seen


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_transformers_generates_the_same_text_in_fp32(folders, tmp_path, noted, penalty):
    """Two engines, one model: plain greedy decoding must agree, whatever the folder's defaults."""
    config = tiny_config(eos_token_id=IM_END)
    model = write_model(tmp_path / "model", config=config)
    defaults = {"repetition_penalty": penalty, "temperature": 0.3, "eos_token_id": IM_END}
    write_json(model / "generation_config.json", defaults)
    talk = {"prompts": [("abc abc abc", "and on"), ("one two",)]}
    fp32 = {"precisions": ["fp32"], "drafts": ["none"], "against_transformers": True}
    compare(plan(folders, model=model, **talk, **fp32))
    ours = [x[1:] for x in noted if x[0].engine == "slipstream"]
    theirs = [x[1:] for x in noted if x[0].engine == "transformers" and x[0].drafter == "none"]
    assert ours == theirs
    assert len(ours) == 3  # two conversations and the warm-up


def test_rows_take_turns_and_the_warm_up_is_not_counted(folders, noted):
    compare(plan(folders, drafts=["ngram"], repeat=2))
    assert [way.drafter for way, *_ in noted] == [
        *("none", "ngram"),  # warm-up
        *("none", "ngram", "ngram", "none"),
        *("ngram", "none", "none", "ngram"),
    ]
    assert {tokens for _, _, tokens, _ in noted[:2]} == {8}


def test_every_run_starts_with_empty_caches_and_tables(folders, tmp_path):
    file = tmp_path / "out.json"
    long = {"drafts": ["ngram"], "max_tokens": 32}
    once = compare(plan(folders, prompts=[("abc abc",)], **long))
    twice = compare(plan(folders, prompts=[("abc abc",)] * 2, repeat=2, **long), file=file)
    assert once.rows[1].acceptance_rate == twice.rows[1].acceptance_rate is not None
    assert once.rows[1].tokens_per_round == twice.rows[1].tokens_per_round
    answers = [run["answers"][0] for run in json.loads(file.read_text())["runs"]]
    assert [answer["usage"]["cached_tokens"] for answer in answers] == [0] * 8


def test_each_draft_has_a_row_for_each_length(folders):
    rows = compare(plan(folders, draft_lengths=[2, None, 7, 2], drafts=["ngram"])).rows
    assert [(r.drafter, r.draft_length) for r in rows] == [
        ("none", None),
        *(("ngram", length) for length in (2, "auto", 7)),
    ]


def test_no_more_than_the_draft_length_is_drafted(folders, tmp_path):
    own = {"drafts": [folders / "target"], "draft_lengths": [1, 3], "max_tokens": 13}
    rows = compare(plan(folders, **own)).rows
    assert [r.tokens_per_round for r in rows[1:]] == [2.0, 4.0]


def test_a_draft_may_have_a_precision_of_its_own(folders):
    draft = {"drafts": [folders / "draft"], "draft_precision": "bf16"}
    rows = compare(plan(folders, precisions=["fp32", "bf16"], **draft)).rows
    assert [(r.precision, r.draft_precision) for r in rows] == [
        ("fp32", None),
        ("fp32", "bf16"),
        ("bf16", None),
        ("bf16", "bf16"),
    ]
    assert rows[1].memory_bytes < rows[0].memory_bytes * 1.5


def test_a_precision_named_twice_is_measured_once(folders):
    named = ["fp32", None, "bf16", "fp32"]
    found = [r.precision for r in compare(plan(folders, drafts=["none"], precisions=named)).rows]
    assert len(found) == len(set(found))
    assert {"fp32", "bf16"} <= set(found)


def test_the_target_may_draft_for_itself(folders):
    rows = compare(plan(folders, drafts=[folders / "target"], draft_lengths=[4])).rows
    assert (rows[1].acceptance_rate, rows[1].differing_ids) == (1.0, 0)


def test_two_drafts_of_one_name_are_told_apart(folders, tmp_path):
    twins = []
    for place in ("a", "b"):
        twin = write_model(tmp_path / place / "twin", config=tiny_config(eos_token_id=IM_END))
        twins.append(twin)
    rows = compare(plan(folders, drafts=twins)).rows
    assert [r.draft for r in rows] == [None, *map(str, twins)]


def test_transformers_has_rows_in_each_float_precision_asked_for(folders):
    asked = {"drafts": [folders / "draft"], "precisions": ["fp32", "bf16"]}
    rows = compare(plan(folders, against_transformers=True, **asked)).rows
    theirs = [(r.precision, r.drafter) for r in rows if r.engine == "transformers"]
    kinds = ("none", "lookup", "model")
    assert theirs == [(p, kind) for p in ("fp32", "bf16") for kind in kinds]
    assert all(r.differing_ids is None for r in rows if r.engine == "transformers")


def test_transformers_runs_on_a_network_that_is_not_ours(folders):
    settings = plan(folders, drafts=["none"], precisions=["bf16"], against_transformers=True)
    with contenders.opened(settings, lambda line: None, lambda: False) as (ours, theirs, _):
        own = {p.data_ptr() for p in ours._models[0].model.network.parameters()}
        other = {p.data_ptr() for p in theirs._network.parameters()}
        assert own.isdisjoint(other)
        assert {m.__class__.__module__.partition(".")[0] for m in theirs._network.modules()} <= {
            "transformers",
            "torch",
        }


def test_a_conversation_is_asked_turn_by_turn_with_what_was_answered(folders, noted):
    talk = ("abc abc abc", "abc once more")
    compare(plan(folders, prompts=[talk]))
    runs = [ids for _, asked, _, ids in noted if asked == talk]
    assert len(runs) == 3
    assert all(len(ids) == 2 and ids == runs[0] for ids in runs)
    alone = plan(folders, prompts=[talk[1:]], drafts=["none"])
    compare(alone)
    assert noted[-1][3][0] != runs[0][1]  # the second answer depends on the first turn


def test_a_second_turn_finds_the_first_in_the_cache(folders, tmp_path):
    file = tmp_path / "out.json"
    compare(plan(folders, prompts=[("abc abc abc", "more")]), file=file)
    for run in json.loads(file.read_text())["runs"]:
        first, second = (answer["usage"] for answer in run["answers"])
        assert first["cached_tokens"] == 0
        assert second["cached_tokens"] >= first["prompt_tokens"] + first["tokens"] - 1


def wrong_in(monkeypatch, turn, drafter="ngram"):
    """Let one drafter's answers in one turn end with a wrong id in place of the last two."""
    answer = contenders._Slipstream.answer

    def wrong(self, asked, tokens, stopped):
        answers = list(answer(self, asked, tokens, stopped))
        if self.way.drafter == drafter and tokens == 12:
            ids = (*answers[turn].ids[:-2], -1)
            answers[turn] = contenders.replace(answers[turn], ids=ids)
        return tuple(answers)

    monkeypatch.setattr(contenders._Slipstream, "answer", wrong)


def test_ids_that_differ_are_counted_in_each_row(folders, monkeypatch):
    wrong_in(monkeypatch, 0)
    report = compare(plan(folders))
    assert report.differing_ids == 4
    assert [r.differing_ids for r in report.rows] == [0, 4, 0]
    (text,) = [fault.text for fault in report.faults() if fault.code == "ids_differ"]
    assert text == "slipstream ngram 4 fp32: 4 ids differ from plain decoding."


def test_ids_that_differ_in_a_second_turn_are_counted(folders, monkeypatch):
    wrong_in(monkeypatch, 1, "model")
    report = compare(plan(folders, prompts=[("abc abc", "more")], repeat=2))
    assert [r.differing_ids for r in report.rows] == [0, 0, 4]


def test_a_draft_that_was_never_accepted_is_a_fault(folders):
    report = compare(plan(folders, drafts=["ngram"], max_tokens=1))
    assert report.differing_ids == 0
    assert [f.code for f in report.faults()] == ["nothing_accepted"]
    assert "ngram" in report.faults()[0].text


def test_equal_rows_that_accept_have_no_fault(folders):
    sampled = Sampling(temperature=0.8, seed=3)
    report = compare(plan(folders, sampling=sampled, max_tokens=24, draft_lengths=[4]))
    assert report.faults() == []


def test_running_out_of_memory_ends_the_bench(folders, monkeypatch):
    reply = contenders.Session.reply

    def short(self, *rest, **others):
        *chunks, last = reply(self, *rest, **others)
        yield from chunks
        yield contenders.replace(last, finish=Finish.MEMORY)

    monkeypatch.setattr(contenders.Session, "reply", short)
    with pytest.raises(OutOfMemory):
        compare(plan(folders))


def test_a_pair_that_cannot_work_is_refused_before_anything_is_loaded(folders, tmp_path):
    (tmp_path / "lora").mkdir()
    write_json(tmp_path / "lora" / "adapter_config.json", {})
    with pytest.raises(DraftRefused):
        compare(plan(folders, drafts=[tmp_path / "lora"]))


def test_a_draft_of_another_vocabulary_is_translated_and_left_out_of_transformers_rows(
    folders, tmp_path
):
    """Ids of one vocabulary in another's model would run without a word."""
    draft = write_other(tmp_path / "other", byte_level_json(), folders / "target")
    said = []
    report = compare(plan(folders, drafts=[draft], against_transformers=True), said.append)
    rows = {(r.engine, r.drafter): r for r in report.rows}
    assert rows["slipstream", "model"].acceptance_rate > 0
    assert report.differing_ids == 0
    assert ("transformers", "model") not in rows
    assert any("other has another vocabulary" in line for line in said)


def test_nothing_is_drafted_for_a_state_that_cannot_be_put_back(folders, tmp_path):
    """RBK-1."""
    from tests.engine.test_session import RECURRENT

    model = write_model(tmp_path / "model", config=RECURRENT)
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
        "differing_ids",
        "draft_precision",
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


KINDS = {"prompts": [("abc abc abc",), ("one two",), ("two one",)], "kinds": ["a", "b", ""]}


def test_each_row_says_what_each_kind_of_prompt_came_to(folders):
    plain, ngram = compare(plan(folders, drafts=["ngram"], **KINDS)).rows
    assert set(plain.by_category) == set(ngram.by_category) == {"a", "b"}
    for kind, found in ngram.by_category.items():
        base = plain.by_category[kind]
        assert found.prompts == 1
        assert found.speedup == found.tokens_per_second / base.tokens_per_second
        assert found.span == (found.speedup, found.speedup)
        assert base.speedup == 1.0
    assert ngram.span[0] <= min(c.speedup for c in ngram.by_category.values())
    assert ngram.span[1] >= max(c.speedup for c in ngram.by_category.values())


def test_the_categories_of_a_report_are_plain_json(folders):
    report = json.loads(json.dumps(compare(plan(folders, drafts=["ngram"], **KINDS)).as_json()))
    found = report["rows"][1]["by_category"]["a"]
    assert set(found) >= {"tokens_per_second", "speedup"}


def test_prompts_with_the_same_ids_are_counted(folders, monkeypatch):
    wrong_in(monkeypatch, 0)
    report = compare(plan(folders, repeat=2))
    assert [row.same for row in report.rows] == [2, 0, 2]


def test_a_table_for_spreadsheets_has_a_line_for_each_row_and_kind(folders):
    report = compare(plan(folders, drafts=["ngram"], **KINDS))
    lines = list(csv.DictReader(io.StringIO(report.as_csv())))
    named = [(line["drafter"], line["category"], line["prompts"]) for line in lines]
    kinds = (("overall", "3"), ("a", "1"), ("b", "1"))
    assert named == [(drafter, *kind) for drafter in ("none", "ngram") for kind in kinds]
    for line, row in zip(lines[::3], report.rows, strict=True):
        assert float(line["tokens_per_second"]) == row.tokens_per_second
        assert float(line["speedup"]) == row.speedup
        assert int(line["memory_bytes"]) == row.memory_bytes
    assert float(lines[4]["speedup"]) == report.rows[1].by_category["a"].speedup


def test_no_name_is_a_formula_in_a_spreadsheet(folders):
    report = compare(plan(folders, drafts=["ngram"], prompts=[("abc",)], kinds=["=1+1"]))
    kinds = [line["category"] for line in csv.DictReader(io.StringIO(report.as_csv()))]
    assert kinds == ["overall", "'=1+1"] * 2
