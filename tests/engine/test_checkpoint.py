"""Networks that wait for their weights, and weights read one at a time."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from engine import checkpoint
from engine.checkpoint import FolderWeights, NetworkWeights, fits, skeleton
from tests.families import FAMILIES, config
from tests.folders import write_model, write_sharded


@pytest.mark.parametrize("family", FAMILIES)
def test_a_skeleton_has_everything_but_large_parameters(family, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGE", 1000)
    network = skeleton(config(family))
    whole = AutoModelForCausalLM.from_config(config(family), dtype=torch.float32)
    expected = dict(whole.named_parameters())
    found = dict(network.named_parameters())
    assert {n: p.shape for n, p in found.items()} == {n: p.shape for n, p in expected.items()}
    large = {n for n, p in found.items() if p.is_meta}
    assert large
    assert all(found[n].numel() > 1000 for n in large)
    buffers = dict(network.named_buffers())
    for name, buffer in whole.named_buffers():
        assert torch.equal(buffers[name], buffer), name
    assert not network.training


def test_what_is_tied_stays_tied():
    network = skeleton(config("tied"))
    assert network.lm_head.weight is network.model.embed_tokens.weight


def test_nothing_else_is_made_without_memory_afterwards():
    skeleton(config("llama"))
    assert torch.empty(100_000, 2).device.type == "cpu"


@pytest.mark.parametrize("write", [write_model, write_sharded])
def test_tensors_are_read_by_their_names(tmp_path, write):
    folder = write(tmp_path / "model")
    files = sorted(folder.glob("*.safetensors"))
    stored = {name: tensor for file in files for name, tensor in load_file(file).items()}
    weights = FolderWeights(files)
    assert weights.shapes() == {name: tuple(t.shape) for name, t in stored.items()}
    assert all(torch.equal(weights.read(name), tensor) for name, tensor in stored.items())


def test_a_networks_own_parameters_are_weights_too():
    network = AutoModelForCausalLM.from_config(config("tied"))
    found = NetworkWeights(network).read("model.embed_tokens.weight")
    assert torch.equal(found, network.lm_head.weight)
    assert not found.requires_grad


def shapes(network):
    return {name: tuple(p.shape) for name, p in network.named_parameters()}


@pytest.mark.parametrize("family", ["llama", "tied", "qwen2_moe"])
def test_a_network_fits_when_every_parameter_is_stored_in_its_shape(family):
    network = skeleton(config(family))
    stored = shapes(network)
    assert fits(network, stored)
    assert fits(network, stored | {"rotary.inv_freq": (8,)})
    for name in ("model.norm.weight", "model.embed_tokens.weight"):
        assert not fits(network, {n: s for n, s in stored.items() if n != name})
        assert not fits(network, stored | {name: (*stored[name], 1)})


def test_a_network_with_other_tensors_in_its_files_does_not_fit():
    """Gemma 4 scales its layers by a stored buffer, DeepSeek corrects its routers by one."""
    network = skeleton(config("llama"))
    network.model.layers[0].layer_scalar = torch.nn.Buffer(torch.ones(1))
    assert not fits(network, shapes(network) | {"model.layers.0.layer_scalar": (1,)})
