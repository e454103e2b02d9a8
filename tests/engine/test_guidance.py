"""Verdicts on pairs: which are refused, and from what size ratio on a draft pays."""

import json
from pathlib import Path

import pytest

from engine.api import Kind, ModelInfo
from engine.guidance import Level, draft_refusal, drafting_refusal, head_refusal, judge_pair
from engine.library.inspect import inspect, read_vocabulary
from engine.vocabulary import Difference, difference
from tests.folders import byte_tokenizer_json, tokenizer_config, write_bare, write_json

ROOT = Path(__file__).parents[2]
TABLE = json.loads((ROOT / "resources" / "guidance.json").read_text())


def model(billions: float | None, name: str = "m", **facts: object) -> ModelInfo:
    parameters = None if billions is None else round(billions * 1e9)
    return ModelInfo(name, Path(name), "gguf", "llama", parameters=parameters, **facts)


def judge(target: float | None, draft: float | None):
    return judge_pair(model(target, "target"), model(draft, "draft"), None, TABLE)


@pytest.mark.parametrize(
    ("target", "draft", "level", "text"),
    [
        (7.6, 0.494, Level.GOOD, "Good: 15 times smaller, same vocabulary"),
        (8.03, 1.24, Level.GOOD, "Good: 6.4 times smaller, same vocabulary"),
        (14.8, 0.494, Level.GOOD, "Good: 29 times smaller, same vocabulary"),
        (32.8, 1.54, Level.GOOD, "Good: 21 times smaller, same vocabulary"),
        (7.7, 1.54, Level.CAUTION, "Caution: only 5 times smaller"),
        (5.99, 1.0, Level.CAUTION, "Caution: only 5.9 times smaller"),
        (9.0, 3.0, Level.WARN, "Warning: only 3 times smaller; unlikely to be faster"),
        (1.54, 0.494, Level.WARN, "Warning: only 3.1 times smaller; unlikely to be faster"),
        (
            1.54,
            0.135,
            Level.WARN,
            "Warning: a target of 1.54 billion parameters; unlikely to be faster",
        ),
        (0.5, 1.5, Level.WARN, "Warning: 3 times the target's size; unlikely to be faster"),
        (7, 7, Level.WARN, "Warning: as large as the target; unlikely to be faster"),
        (None, 1, Level.CAUTION, "Unknown: the files do not state their sizes"),
        (1, None, Level.CAUTION, "Unknown: the files do not state their sizes"),
    ],
)
def test_sizes_decide(target, draft, level, text):
    """SPC-1 d: 1.54 and 7.6 billion parameters with a draft of 0.494."""
    verdict = judge(target, draft)
    assert (verdict.level, verdict.reason.text) == (level, text)


@pytest.mark.parametrize(
    ("draft", "level"),
    [(1.0, Level.GOOD), (1.001, Level.CAUTION), (1.428, Level.CAUTION), (1.43, Level.WARN)],
)
def test_the_thresholds_are_those_of_the_table(draft, level):
    assert judge(6.0, draft).level is level


@pytest.mark.parametrize(
    ("mask", "refused"), [(None, 0), (0, 0), (99, 0), (100, 1), (-1, 1), ("x", 1)]
)
def test_a_draft_whose_mask_is_no_token_is_refused_by_its_number(mask, refused):
    draft = model(1, "draft", vocab_size=100, mask=mask)
    verdict = judge_pair(model(7, "target"), draft, None, TABLE)
    assert (verdict.level is Level.REFUSED) == (draft_refusal(draft) is not None) == bool(refused)
    if refused:
        assert verdict.reason.text == f"Its pard_token is {mask}; what can be used is 0 to 99"


def test_the_mask_is_read_before_any_weight(tmp_path):
    for mask, found in ((5, 5), (None, None), (True, "True"), ([7], "[7]"), (10**90, 10**90)):
        info = inspect(write_bare(tmp_path / str(found)[:9], pard_token=mask))
        assert info.mask == found
        assert (draft_refusal(info) is None) == (mask in (5, None))


def test_the_table_says_where_its_numbers_come_from():
    assert all(row["source"] and row["date"] for row in TABLE.values())


@pytest.mark.parametrize(
    ("draft", "level", "text"),
    [
        (0.494, Level.GOOD, "Good: 15 times smaller"),
        (1.54, Level.CAUTION, "Caution: only 5 times smaller"),
        (None, Level.CAUTION, "Unknown: the files do not state their sizes"),
    ],
)
def test_other_vocabularies_are_translated_and_judged_by_size(draft, level, text):
    found = Difference(0, "!", "<|endoftext|>")
    verdict = judge_pair(model(7.7, "a"), model(draft, "b"), found, TABLE)
    assert (verdict.level, verdict.reason.text) == (level, text)
    assert verdict.translated
    assert verdict.text == f"Other vocabulary: translated; {text}"
    assert verdict.detail.text == "Token 0 is “!” in the target and “<|endoftext|>” here."


def test_what_is_refused_is_not_translated():
    found = Difference(0, "!", "?")
    for draft in (model(0.1, "d", kind=Kind.HEAD), model(0.1, "d", recurrent=True)):
        verdict = judge_pair(model(7, "t"), draft, found, TABLE)
        assert (verdict.level, verdict.translated) == (Level.REFUSED, False)


def test_a_model_does_not_draft_for_itself():
    verdict = judge_pair(model(7), model(7), None, TABLE)
    assert (verdict.level, verdict.reason.code) == (Level.REFUSED, "own_draft")


@pytest.mark.parametrize("kind", [Kind.HEAD, Kind.ADAPTER, Kind.UNKNOWN])
def test_what_is_no_whole_model_does_not_draft(kind):
    draft = model(0.1, "d", kind=kind)
    verdict = judge_pair(model(7, "t"), draft, None, TABLE)
    assert (verdict.level, verdict.reason) == (Level.REFUSED, draft_refusal(draft))


@pytest.mark.parametrize(
    ("target", "draft", "code"),
    [(True, False, "recurrent_target"), (False, True, "recurrent_draft"),
     (True, True, "recurrent_target")],
)  # fmt: skip
def test_recurrent_models_neither_draft_nor_are_drafted_for(target, draft, code):
    pair = model(7, "t", recurrent=target), model(0.1, "d", recurrent=draft)
    verdict = judge_pair(*pair, None, TABLE)
    assert (verdict.level, verdict.reason.code) == (Level.REFUSED, code)


def test_nothing_drafts_for_a_state_that_cannot_be_put_back_in_one_line(tmp_path):
    for model_type in ("recurrent_gemma", "rwkv", "something_mamba"):
        layers = {"layer_types": ["mamba"]}
        reason = drafting_refusal(
            inspect(write_bare(tmp_path / model_type, model_type=model_type, **layers))
        )
        assert reason.text == (
            "This model keeps a running state that cannot be rewound, so drafting is off for it."
        )
    for model_type in ("llama", "mamba2", "lfm2", "qwen3_next", "qwen3_5_text"):
        assert drafting_refusal(inspect(write_bare(tmp_path / "x", model_type=model_type))) is None


# VOC-1 and VOC-2, from folders to verdict


def translated(target: Path, draft: Path) -> bool:
    found = difference(read_vocabulary(target), read_vocabulary(draft))
    return judge_pair(inspect(target), inspect(draft), found, TABLE).translated


def test_padded_sizes_of_one_vocabulary_are_a_pair(tmp_path):
    wide = write_bare(tmp_path / "wide", vocab_size=640)
    narrow = write_bare(tmp_path / "narrow", vocab_size=512)
    assert not translated(wide, narrow)
    assert not translated(narrow, wide)


def test_equal_sizes_with_other_tokens_are_translated(tmp_path):
    ours, theirs = write_bare(tmp_path / "a"), write_bare(tmp_path / "b")
    tokenizer = json.loads(byte_tokenizer_json())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["A"], vocabulary["B"] = vocabulary["B"], vocabulary["A"]
    write_json(theirs / "tokenizer.json", tokenizer)
    assert translated(ours, theirs)


def test_another_end_token_is_no_obstacle(tmp_path):
    ours, theirs = write_bare(tmp_path / "a", eos_token_id=259), write_bare(tmp_path / "b")
    write_json(ours / "tokenizer_config.json", tokenizer_config(eos_token="<|im_end|>"))
    assert not translated(ours, theirs)


@pytest.mark.parametrize("row", TABLE["largest_draft"]["pairs"])
def test_thresholds_never_contradict_the_published_table(row):
    """What it names as worth using is no warning; where it names nothing, everything is one."""
    target = row["target"] / 1e9
    if row["draft"] is None:
        assert judge(target, 0.1).level is Level.WARN
    else:
        assert judge(target, row["draft"] / 1e9).level in (Level.GOOD, Level.CAUTION)


@pytest.mark.parametrize("row", TABLE["largest_draft"]["pairs"])
def test_the_published_table_says_where_it_comes_from(row):
    assert "LM Studio" in TABLE["largest_draft"]["source"]
    assert TABLE["largest_draft"]["date"]
    assert row["target"] > (row["draft"] or 0)


@pytest.mark.parametrize("draft", [0.494, 1.54, None])
def test_a_verdict_by_size_carries_the_published_table(draft):
    assert judge(7.7, draft).detail.text == (
        "Largest useful draft for a target, as LM Studio publishes it: "
        "3B: none, 7B: 1B, 14B: 3B, 32B: 7B"
    )


def test_a_head_is_named_after_its_target():
    assert head_refusal("Qwen3 8B").text == "Head for Qwen3 8B: cannot be used yet"
    unknown = head_refusal(None)
    assert unknown.text == "Head for an unknown model: cannot be used yet"
    assert unknown == draft_refusal(model(0.1, kind=Kind.HEAD))


def test_of_a_mixture_the_parameters_in_use_count():
    """30B of which 3.3B work at a token: a 0.6B draft is 5.5 times smaller, not 50."""
    mixture = model(30.5, "target", active=3_300_000_000)
    verdict = judge_pair(mixture, model(0.6, "draft"), None, TABLE)
    assert verdict.level is Level.WARN
    assert "3.3 billion" in verdict.reason.text
    dense = judge_pair(model(30.5, "target"), model(0.6, "draft"), None, TABLE)
    assert dense.level is Level.GOOD
