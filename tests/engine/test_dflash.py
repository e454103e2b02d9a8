"""DFlash heads: read as they are published, no token changed, and aligned so that they pay."""

import pytest
import torch

from engine.drafters.block import BlockDrafter
from engine.errors import DraftRefused
from engine.heads.opening import open_head
from tests.heads import (
    BLOCK,
    MASK,
    PLACES,
    dflash_reference,
    dflash_tensors,
    info_of,
    speculators_dflash,
    write_head,
    zlab,
)
from tests.tiny import language_model, plain, policy, run
from tests.trained import late, rates, trained_dflash, trained_target

WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7}
FORMATS = {
    "authors'": (zlab(), {}),
    "speculators'": (speculators_dflash(), {"output": True, "table": True}),
    "windows": (speculators_dflash(WINDOWS), {"output": True}),
    "from the anchor": (speculators_dflash(sample_from_anchor=True), {}),
}
PROMPTS = [[(7 * j + seed) % 250 for j in range(5 + 60 * seed)] for seed in range(3)]


@pytest.fixture(scope="module")
def target():
    return language_model()


def write(folder, config, weights=None, **more):
    return write_head(folder, config, weights or dflash_tensors(config, **more))


def opened(folder, target, precision="fp32"):
    return open_head(folder, target, info_of(target), precision)


def listening(head, target):
    drafter = BlockDrafter(head, target.device)
    target.tell(drafter)
    return drafter


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("precision", "temperature"), [("fp32", 0.8), ("int8", 0.0)])
def test_ids_equal_plain_decoding(name, target, tmp_path, precision, temperature):
    config, more = FORMATS[name]
    drafter = listening(opened(write(tmp_path / "h", config, **more), target, precision), target)
    drafted = 0
    for seed, prompt in enumerate(PROMPTS):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        expected = plain(target, prompt, tokens=20, choose=choose)
        for length in (1, 3, 7):
            found, proposed, _ = run(
                target, drafter, prompt, tokens=20, draft_length=length, choose=choose
            )
            assert found == expected
            drafted += proposed
    assert drafted > 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_head_says_what_its_format_says(name, target, tmp_path):
    """A block behind a text, the text taken in by parts; and what was a block is not kept."""
    config, more = FORMATS[name]
    head = opened(write(tmp_path / "h", config, **more), target)
    weights, network = dflash_tensors(config, **more), target.network
    tokens = torch.tensor([(5 * j) % 240 for j in range(30)])
    with torch.no_grad():
        hidden = network(tokens[None], output_hidden_states=True).hidden_states
        assert head.places == tuple(PLACES)
        states = torch.cat([hidden[place][0] for place in PLACES], -1)[:-1]
        table = weights.get("embed_tokens.weight", network.get_input_embeddings().weight)
        ids = torch.tensor([int(tokens[-1]), *[MASK] * (BLOCK - 1)])
        wanted = dflash_reference(weights, config, states[None], table[ids][None])[0]
        wanted = wanted if config.get("sample_from_anchor") else wanted[1:]
        x = head.joined(states)
        head.take(x[:20], 0)
        head.take(x[20:], 20)
        for _ in range(2):
            found = head.block(int(tokens[-1]), 29)
            assert head.length == 29
            if "lm_head.weight" in weights:
                own = torch.arange(100) + weights["d2t"]
                said = wanted @ weights["lm_head.weight"].T
                assert found.isfinite().sum() == len(found) * 100
                found = found[:, own]
            else:
                said = network.get_output_embeddings()(wanted)
            torch.testing.assert_close(found, said, rtol=1e-3, atol=2e-3 * float(said.abs().max()))


BROKEN = {
    "another width": (zlab(hidden_size=48), None, "head_width", 48),
    "other tokens": (zlab(vocab_size=300), None, "head_tokens", 300),
    "no mask": (zlab(dflash_config={"target_layer_ids": [0, 1, 1]}), None, "head_setting", "None"),
    "a mask that is no token": (
        zlab(dflash_config={"target_layer_ids": [0, 1, 1], "mask_token_id": 262}),
        None,
        "head_setting",
        "262",
    ),
    "no layers": (
        zlab(dflash_config={"mask_token_id": 5}),
        None,
        "head_setting",
        "target_layer_ids",
    ),
    "a layer that is not there": (
        zlab(dflash_config={"mask_token_id": 5, "target_layer_ids": [0, 1, 2]}),
        None,
        "head_layers",
        3,
    ),
    "a block of one": (zlab(block_size=1), None, "head_setting", "block_size"),
    "a kind of layer": (
        zlab(layer_types=["full_attention", "linear_attention"]),
        None,
        "head_setting",
        "layer_types",
    ),
    "a missing matrix": (
        zlab(),
        {n: t for n, t in dflash_tensors(zlab()).items() if n != "layers.1.mlp.up_proj.weight"},
        "head_lacks_tensor",
        "layers.1.mlp.up_proj.weight",
    ),
    "a tensor too many": (
        zlab(),
        dflash_tensors(zlab()) | {"markov.weight": torch.zeros(2)},
        "head_surplus",
        "markov.weight",
    ),
    "no map": (
        speculators_dflash(),
        {n: t for n, t in dflash_tensors(speculators_dflash(), output=True).items() if n != "d2t"},
        "head_no_map",
        "d2t",
    ),
    "lossy": (
        speculators_dflash(
            speculators_config={"proposal_methods": [{"verifier_accept_k": 2}]}
        ),
        None,
        "head_lossy",
        "2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_head_that_does_not_belong_is_refused_by_number_or_tensor(
    name, target, tmp_path, monkeypatch
):
    """SPC-2: before a weight is read."""
    monkeypatch.setattr("engine.heads.opening.FolderWeights", None)
    config, weights, code, value = BROKEN[name]
    folder = write(tmp_path / "h", config, weights or dflash_tensors(zlab()))
    with pytest.raises(DraftRefused) as refused:
        opened(folder, target)
    assert refused.value.code == code
    assert value in refused.value.reason.values.values()


# --- alignment


@pytest.fixture(scope="module")
def knowing():
    return trained_target()


@pytest.fixture(scope="module")
def head(knowing, tmp_path_factory):
    # a row sees itself, the last token and the last state: that alone can tell what came before
    window = {"layer_types": ["sliding_attention"], "sliding_window": 3}
    config = zlab(num_hidden_layers=1, **window)
    return write(tmp_path_factory.mktemp("dflash") / "h", config, trained_dflash(knowing, config))


def test_a_trained_head_is_right_far_beyond_chance_and_only_if_read_as_it_was_trained(
    head, knowing
):
    """Chance is 1/16."""
    assert rates(head, knowing, BlockDrafter)[0] > 0.55
    assert rates(head, knowing, late(BlockDrafter))[0] < 0.25
    off_by_one = {"mask_token_id": MASK, "target_layer_ids": [0, 1, 1]}
    assert rates(head, knowing, BlockDrafter, dflash_config=off_by_one)[0] < 0.25
    assert rates(head, knowing, BlockDrafter, sample_from_anchor=True)[0] < 0.25
