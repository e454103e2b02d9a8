"""Turning the stream between layers changes how well it is rounded and nothing else."""

import pytest
import torch

from engine.checkpoint import skeleton
from engine.kernels import packing
from engine.kernels.network import Linear, settle
from engine.kernels.packing import pack
from engine.kernels.rotation import Rotation, turns
from engine.quality import as_stored
from tests.families import Counting, config, logits, original

TURNED = ("llama", "tied", "qwen2", "qwen3")


@pytest.mark.parametrize("size", [1, 2, 6, 32, 96, 128, 576, 640, 896, 1000])
def test_a_rotation_is_orthogonal_and_spreads_a_channel_over_all(size):
    found = Rotation(size).rows(torch.eye(size))
    torch.testing.assert_close(found @ found.T, torch.eye(size), atol=1e-5, rtol=0)
    # alike but for the cosines
    assert found.abs().max() <= 1.5 * size**-0.5


@pytest.mark.parametrize("family", TURNED)
def test_a_turned_model_says_what_it_said(family):
    """With its turned matrices in float32, so that only the 16 bits of the table are lost."""
    source = Counting(original(family))
    network = skeleton(config(family))
    items, _ = pack(network, source, "int8")
    network.requires_grad_(False)
    settle(network)
    assert {item.turn.side for item in items if item.turn} == {"reads", "writes", "norm"}
    with as_stored(network, items, source):
        found = logits(network)
    expected = logits(original(family))
    assert float((found - expected).norm() / expected.norm()) < 2e-3


@pytest.mark.parametrize("family", ["gemma", "gemma2", "gemma3", "phi3", "qwen2_moe"])
def test_a_stream_that_others_write_too_is_left_alone(family):
    assert turns(skeleton(config(family))) == {}


def test_a_writer_that_adds_a_bias_is_left_alone():
    assert turns(skeleton(config("llama"))) != {}
    biased = config("llama")
    biased.attention_bias = True
    assert turns(skeleton(biased)) == {}


def test_the_first_matrices_of_the_mlp_take_one_row_and_all_others_two():
    network = skeleton(config("llama"))
    pack(network, Counting(original("llama")), "int8")
    even = {
        name.rpartition(".")[2]
        for name, module in network.named_modules()
        if isinstance(module, Linear) and not module.shared.kernel.fine
    }
    assert even == {"gate_proj", "up_proj"}


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "int4"])
def test_only_int8_turns(precision):
    assert not [i for i in packing._items(skeleton(config("llama")), precision) if i.turn]


def test_turning_brings_channels_that_stand_out_through_one_row_of_integers(monkeypatch):
    """In a table with two channels a hundred times as large, with one row for every matrix."""
    put = packing._put_group
    monkeypatch.setattr(packing, "_put_group", lambda g, f, t, *, fine: put(g, f, t, fine=False))
    source = original("llama")
    with torch.no_grad():
        source.model.embed_tokens.weight[:, [3, 17]] *= 100
    expected = logits(source)

    def distance() -> float:
        network = skeleton(config("llama"))
        pack(network, Counting(source), "int8")
        network.requires_grad_(False)
        settle(network)
        return float((logits(network) - expected).norm() / expected.norm())

    turned = distance()
    monkeypatch.setattr(packing, "turns", lambda network: {})
    assert turned < distance() / 2
