"""SPC-2: a head that does not belong to the target is refused before it is loaded, by name."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Kind, ModelInfo
from engine.errors import Unsafe
from engine.library.heads import fault, is_known, kind_of, made_for, refusal
from engine.library.inspect import inspect
from tests.folders import write_gguf, write_json

TARGET = ModelInfo(
    "t", Path("t"), "safetensors", "llama", hidden_size=64, vocab_size=200, layers=12
)
LAYER = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 200,
}
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLMEagle3"],
    **LAYER,
    "draft_vocab_size": 50,
}


def head(folder, offsets=None, fc=3 * 64, **changes):
    """A head of 50 tokens; `offsets` is what its map adds to each of them. Without `fc` it has
    hardly a tensor."""
    import torch
    from safetensors.torch import save_file

    from tests.heads import tensors

    folder.mkdir()
    config = CONFIG | changes
    write_json(folder / "config.json", config)
    found = {"norm.weight": torch.ones(64)}
    if fc:
        states = config.get("target_hidden_size", 64)
        found = tensors(config | {"target_hidden_size": states})
        found["fc.weight"] = torch.zeros(config["hidden_size"], fc)
    found.pop("d2t", None)
    if offsets is not None:
        found["d2t"] = torch.tensor(offsets, dtype=torch.int64)
    save_file(found, folder / "model.safetensors")
    return folder


def test_a_head_that_belongs_to_the_target_has_no_fault(tmp_path):
    made = head(tmp_path / "h", offsets=[150] * 50)
    assert inspect(made).kind is Kind.HEAD
    assert fault(made, TARGET) is None
    assert is_known(made)


def _speculators(kind):
    return {"architectures": ["Speculator"], "speculators_model_type": kind}


@pytest.mark.parametrize(
    ("changes", "kind", "form"),
    [
        (_speculators("dspark"), "dspark", "DSpark"),
        ({"architectures": ["DSparkQwen3"], "dflash_config": {}}, "dspark", "DSpark"),
        ({"architectures": ["Qwen3NextMTP"]}, "mtp", "MTP"),
        ({"architectures": ["Medusa"]}, None, "Head for Big"),
    ],
)
def test_a_head_that_cannot_be_used_says_its_format(tmp_path, changes, kind, form):
    made = head(tmp_path / "eagle3", fc=0, **changes)
    assert inspect(made).kind is Kind.HEAD
    assert kind_of(made) == kind
    assert not is_known(made)
    assert refusal(made, "Big").text.startswith(form)


def test_how_a_head_drafts_is_read_and_not_guessed_from_its_name(tmp_path):
    assert kind_of(head(tmp_path / "my-dflash-pard")) == "eagle3"
    block = {"architectures": ["DFlashDraftModel"], "dflash_config": {"mask_token_id": 3}}
    assert kind_of(head(tmp_path / "eagle3", fc=0, **block)) == "dflash"
    assert kind_of(head(tmp_path / "dflash", **_speculators("peagle"))) == "p-eagle"
    masked = head(tmp_path / "eagle", pard_token=3)
    assert (kind_of(masked), is_known(masked)) == ("p-eagle", True)
    file = write_gguf(tmp_path / "mtp.gguf", {"fc.weight": [64, 192]}, architecture="eagle3")
    assert (kind_of(file), is_known(file)) == ("eagle3", False)
    assert refusal(file, None).text == "EAGLE-3 (GGUF) head: cannot be used yet"


def test_the_code_that_a_head_names_is_not_run_and_not_in_the_way(tmp_path):
    made = head(tmp_path / "h", offsets=[0] * 50, auto_map={"AutoModel": "dflash.Model"})
    assert inspect(made).kind is Kind.HEAD
    assert fault(made, TARGET) is None
    write_json(made / "tokenizer_config.json", CONFIG | {"auto_map": {"AutoTokenizer": "a.B"}})
    with pytest.raises(Unsafe):
        inspect(made)


def test_a_head_that_states_no_type_is_one_all_the_same(tmp_path):
    """SPC-2 a, to the letter."""
    made = head(tmp_path / "h", fc=0, model_type=None, hidden_size=6144, vocab_size=128_256)
    assert inspect(made).kind is Kind.HEAD
    said = fault(made, replace(TARGET, hidden_size=8192)).text
    assert said == "Another target: width 6,144, not 8,192"


def test_a_head_of_the_targets_own_tokens_needs_no_map(tmp_path):
    assert fault(head(tmp_path / "h", draft_vocab_size=200), TARGET) is None


def test_another_width_is_named(tmp_path):
    made = head(tmp_path / "h", fc=0, hidden_size=48, offsets=[0] * 50)
    assert fault(made, TARGET).text == "Another target: width 48, not 64"


def test_states_of_another_width_are_named_by_their_tensor(tmp_path):
    made = head(tmp_path / "h", fc=3 * 48, offsets=[0] * 50)
    assert "fc.weight reads 144 numbers" in fault(made, TARGET).text


def test_a_size_that_no_model_has_says_nothing(tmp_path):
    made = head(tmp_path / "h", fc=0, hidden_size=10**90)
    assert fault(made, TARGET).code != "head_width"
    assert fault(head(tmp_path / "i", fc=0, draft_vocab_size=10**90), TARGET).code == "head_setting"


def test_a_head_in_a_gguf_is_told_by_its_tensor_alone(tmp_path):
    """It has no config.json to miss."""
    for inputs, said in ((3 * 64, None), (3 * 48, "Its tensor fc.weight reads 144 numbers")):
        made = write_gguf(tmp_path / f"{inputs}.gguf", {"fc.weight": [64, inputs]},
                          architecture="eagle3")  # fmt: skip
        found = fault(made, TARGET)
        assert found is None if said is None else found.text.startswith(said)
    plain = write_gguf(tmp_path / "plain.gguf", {"a.weight": [64]}, architecture="eagle3")
    assert fault(plain, TARGET) is None


def test_a_head_narrower_than_its_target_is_no_fault(tmp_path):
    made = head(tmp_path / "h", hidden_size=48, target_hidden_size=64, offsets=[0] * 50)
    assert fault(made, TARGET) is None


def test_a_missing_map_is_named(tmp_path):
    found = fault(head(tmp_path / "h"), TARGET)
    assert (found.code, found.values["tensor"]) == ("head_no_map", "d2t")


@pytest.mark.parametrize(("offset", "leads"), [(151, 200), (-50, -1)])
def test_a_map_that_leads_out_of_the_vocabulary_is_named(tmp_path, offset, leads):
    found = fault(head(tmp_path / "h", offsets=[0] * 49 + [offset]), TARGET)
    assert (found.values["token"], found.values["id"]) == (49, leads)


@pytest.mark.parametrize("offsets", [[0] * 49, [0.5] * 50])
def test_a_map_of_another_shape_or_type_is_named(tmp_path, offsets):
    import torch
    from safetensors.torch import save_file

    made = head(tmp_path / "h")
    save_file({"d2t": torch.tensor(offsets)}, made / "model.safetensors")
    assert fault(made, TARGET).code == "head_bad_map"


def test_speculators_name_their_target_and_nest_their_sizes(tmp_path):
    layer = {"hidden_size": 48, "vocab_size": 200}
    verifier = {"name_or_path": "meta-llama/Llama-3.1-8B-Instruct"}
    made = head(
        tmp_path / "h",
        fc=0,
        offsets=[0] * 50,
        hidden_size=None,
        transformer_layer_config=layer,
        speculators_config={"verifier": verifier},
    )
    assert made_for(made) == "meta-llama/Llama-3.1-8B-Instruct"
    assert fault(made, TARGET).values["head"] == 48


def test_what_the_target_does_not_say_is_not_held_against_a_head(tmp_path):
    made = head(tmp_path / "h", offsets=[0] * 50)
    unsaid = replace(TARGET, hidden_size=None, vocab_size=None, layers=None)
    assert fault(made, unsaid) is None


def test_a_damaged_head_is_refused_with_what_is_wrong(tmp_path):
    made = head(tmp_path / "h")
    with (made / "model.safetensors").open("r+b") as file:
        file.truncate(20)
    assert fault(made, TARGET) is not None
    (made / "config.json").unlink()
    assert fault(made, TARGET).code == "file_missing"
    assert made_for(made) is None
