"""P-EAGLE heads: all guesses in one pass, as they are published. What holds of every draft is
tested in test_drafters.py."""

import pytest
import torch

from engine.controller import FixedLength
from engine.decode import decode
from engine.drafters.parallel import ParallelHeadDrafter
from engine.errors import DraftRefused
from engine.heads.eagle3 import PEagleHead
from engine.heads.opening import open_head
from tests.heads import (
    MASK,
    PLACES,
    PROPOSAL,
    info_of,
    joined,
    reference,
    safeailab,
    speculators_peagle,
    tensors,
    write_head,
)
from tests.tiny import language_model, policy
from tests.trained import late, rates, trained_head, trained_target

WINDOWS = {
    "num_hidden_layers": 3,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    "sliding_window": 5,
}
FORMATS = {
    "speculators'": (speculators_peagle(), {}),
    "layers": (speculators_peagle({"num_hidden_layers": 2, "attention_bias": True}), {}),
    "windows": (speculators_peagle(WINDOWS, norm_before_residual=True), {"table": False}),
    "norms": (speculators_peagle(norm_before_fc=True, draft_vocab_size=262), {}),
    "authors'": (safeailab(ptd_token_id=MASK, num_hidden_layers=2), {}),
}
TEXT = [(7 * j) % 240 for j in range(30)]


@pytest.fixture(scope="module")
def target():
    return language_model()


def opened(folder, target):
    return open_head(folder, target, info_of(target), "fp32")


def states_of(target, tokens):
    with torch.no_grad():
        out = target.network(torch.tensor([tokens]), output_hidden_states=True)
    return torch.cat([out.hidden_states[place][0] for place in PLACES], -1)


@pytest.mark.parametrize("name", FORMATS)
def test_a_head_says_what_its_format_says(name, target, tmp_path):
    """Masks behind a text, taken in by parts: each with a state that was learned, joined as those
    of the text are."""
    config, more = FORMATS[name]
    head = opened(write_head(tmp_path / "h", config, **more), target)
    assert isinstance(head, PEagleHead)
    weights, tokens = tensors(config, **more), torch.tensor(TEXT)
    table = weights.get("embed_tokens.weight", target.network.get_input_embeddings().weight)
    with torch.no_grad():
        x = joined(weights, config, states_of(target, TEXT)[:-1])
        masks = joined(weights, config, weights["mask_hidden"][0]).expand(3, -1)
        embedded = table[torch.cat([tokens[1:], torch.full((3,), MASK)])]
        wanted, _ = reference(weights, config, torch.cat([x, masks])[None], embedded[None])
        ids = torch.arange(config["draft_vocab_size"]) + weights.get("d2t", 0)
        head(x[:20], tokens[1:21], 0)
        for _ in range(2):
            found = head.block(x[20:], tokens[21:], 20, 4)
            assert head.length == len(TEXT) - 1 + 3
            torch.testing.assert_close(found[:, ids], wanted[0, -4:], rtol=1e-3, atol=1e-3)
            assert found.isfinite().sum() == 4 * len(ids)
            head.crop_to(20)


@pytest.mark.parametrize("name", ["speculators'", "windows"])
def test_its_guesses_are_of_true_states_and_of_no_mask_of_a_round_before(name, target, tmp_path):
    """At every round what a head says that reads the whole text anew; and twice the same."""
    config, more = FORMATS[name]
    folder = write_head(tmp_path / "h", config, **more)
    drafter = ParallelHeadDrafter(opened(folder, target), target.device)
    other, tokens = opened(folder, target), list(TEXT)
    target.tell(drafter)
    target.cache.empty()
    rounds = decode(target, drafter, FixedLength(4), tokens, policy(), limit=len(tokens) + 12)
    for _ in rounds:
        assert drafter._head.length <= len(tokens) - 2
        with torch.inference_mode():
            x = other.joined(states_of(target, tokens))
            other.empty()
            said = other.block(x[:-1], torch.tensor(tokens[1:]), 0, 4).argmax(-1).tolist()
        for length in (4, 2, 4):
            assert list(drafter.propose(tokens, length, policy()).tokens) == said[:length]
            assert drafter._head.length == len(tokens) - 1
    target.tell()


SOUND = speculators_peagle()
BROKEN = {
    "no mask": (speculators_peagle(mask_token_id=None), None, "head_setting", "mask_token_id"),
    "a mask that is no token": (speculators_peagle(mask_token_id=262), None, "head_setting", "262"),
    "the authors' mask": (safeailab(ptd_token_id=-1), None, "head_setting", "ptd_token_id"),
    "no state of the mask": (
        SOUND,
        {n: t for n, t in tensors(SOUND).items() if n != "mask_hidden"},
        "head_lacks_tensor",
        "mask_hidden",
    ),
    "a narrow state of the mask": (
        SOUND,
        tensors(SOUND) | {"mask_hidden": torch.zeros(1, 1, 64)},
        "head_shape",
        "F32 x 1 x 1 x 64",
    ),
    "another width": (
        speculators_peagle({"hidden_size": 48, "intermediate_size": 96}),
        None,
        "head_fc",
        144,
    ),
    "a layer that is missing": (
        speculators_peagle({"num_hidden_layers": 2}),
        tensors(SOUND),
        "head_lacks_tensor",
        "layers.1.self_attn.q_proj.weight",
    ),
    "too many layers": (
        speculators_peagle({"num_hidden_layers": 65}),
        tensors(SOUND),
        "head_setting",
        "65",
    ),
    "lossy": (
        speculators_peagle(
            speculators_config={"proposal_methods": [PROPOSAL | {"verifier_accept_k": 3}]}
        ),
        None,
        "head_lossy",
        "verifier_accept_k",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_head_that_does_not_belong_is_refused_by_number_or_tensor(
    name, target, tmp_path, monkeypatch
):
    """SPC-2: before a weight is read."""
    monkeypatch.setattr("engine.heads.opening.FolderWeights", None)
    config, weights, code, value = BROKEN[name]
    with pytest.raises(DraftRefused) as refused:
        opened(write_head(tmp_path / "h", config, weights), target)
    assert refused.value.code == code
    assert value in refused.value.reason.values.values()


# --- alignment


ONE_ROW = {"layer_types": ["sliding_attention"], "sliding_window": 1}


@pytest.fixture(scope="module")
def knowing():
    return trained_target()


def test_a_trained_head_is_right_far_beyond_chance_and_only_if_read_as_it_was_trained(
    knowing, tmp_path
):
    """Chance is 1/16, or 0.2 by the last token alone. It sees its own row only, so that the states
    alone can tell it what came before."""
    config = speculators_peagle(ONE_ROW)
    head = write_head(tmp_path / "h", config, trained_head(knowing, config))
    assert rates(head, knowing, ParallelHeadDrafter)[0] > 0.7
    assert rates(head, knowing, late(ParallelHeadDrafter))[0] < 0.25
    off_by_one = {"eagle_aux_hidden_state_layer_ids": [min(place + 1, 2) for place in PLACES]}
    assert rates(head, knowing, ParallelHeadDrafter, **off_by_one)[0] < 0.25
    assert rates(head, knowing, ParallelHeadDrafter, norm_before_residual=True)[0] < 0.3


def test_a_guess_behind_a_mask_is_right_far_beyond_chance_and_only_with_the_state_it_learned(
    knowing, tmp_path
):
    """The second one, where the first is right, which nobody told it: the rows of the text say it
    to the mask in the layer above."""
    windows = {"layer_types": ["sliding_attention"] * 2, "sliding_window": 2}
    layers = {**windows, "num_hidden_layers": 2, "num_key_value_heads": 4}
    config = speculators_peagle(layers, norm_before_residual=True, draft_vocab_size=262)
    weights = trained_head(knowing, config, masks=True)
    folder, learned = write_head(tmp_path / "h", config, weights), weights["mask_hidden"]
    noise = torch.randn(learned.shape, generator=torch.Generator().manual_seed(0))

    def second(state):
        def change(weights):
            return weights | {"mask_hidden": state}

        return rates(folder, knowing, ParallelHeadDrafter, change, length=2)[1]

    assert second(learned) > 0.7
    assert second(0 * learned) < 0.25
    assert second(noise * learned.norm() / noise.norm()) < 0.25
