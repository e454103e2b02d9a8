"""What quantising costs: measured on the packed network, which is afterwards as it was."""

import contextlib
import math

import pytest
import torch

from engine import quality
from engine.checkpoint import skeleton
from engine.errors import Cancelled
from engine.kernels.network import Linear, settle
from engine.kernels.packing import pack
from engine.quality import as_stored, loss, rise
from tests.families import Counting, config, logits, original

IDS = [(i * i * 7 + 3 * i) % 250 for i in range(150)]


@pytest.fixture(scope="module", params=["tied", "gemma2", "qwen2_moe"])
def family(request):
    return request.param


@pytest.fixture(scope="module")
def whole(family):
    """Random weights whose output is sharp, as where something was learned."""
    network = original(family)
    if family == "qwen2_moe":
        network.lm_head.weight.data *= 20
    return network


def filled(family, whole, precision):
    network = skeleton(config(family))
    weights = Counting(whole)
    items, _ = pack(network, weights, precision)
    network.requires_grad_(False)
    settle(network)
    return network, items, weights


@pytest.fixture(scope="module")
def int8(family, whole):
    return filled(family, whole, "int8")


def packed_matrices(network):
    return [m.shared for m in network.modules() if isinstance(m, Linear)]


def test_the_loss_is_that_of_the_network(family, whole, int8):
    found = whole(input_ids=torch.tensor([IDS])).logits[0, :-1]
    expected = float(torch.nn.functional.cross_entropy(found, torch.tensor(IDS[1:])))
    if family != "gemma2":  # bounds its logits itself, before it is settled
        assert loss(whole, IDS) == pytest.approx(expected, rel=1e-5)
    # with its matrices as they are stored, the packed one loses what the whole one loses
    with as_stored(*int8):
        assert loss(int8[0], IDS) == pytest.approx(expected, rel=0.01)


def test_what_8_bits_cost_is_little_and_4_bits_cost_more(family, whole, int8):
    small = rise(*int8, IDS)
    large = rise(*filled(family, whole, "int4"), IDS)
    assert abs(small) < 0.02
    assert abs(large) > 2 * abs(small)


def test_weights_that_are_much_worse_are_told_by_how_much(whole, family):
    network, items, weights = filled(family, whole, "int8")
    before = loss(network, IDS)
    for item in items:  # as if they had been quantised badly
        if item.group is not None and "down_proj" in item.group.names:
            (module, name), *_ = item.group.slots
            kernel = getattr(module, name).shared.kernel
            getattr(module, name).shared.kernel = lambda x, k=kernel: k(x) + x.mean()
    after = loss(network, IDS)
    with as_stored(network, items, weights):
        own = loss(network, IDS)
    assert rise(network, items, weights, IDS) == pytest.approx(math.exp(after - own) - 1, abs=1e-6)
    assert after != before


def test_the_network_is_as_before(int8):
    network = int8[0]
    expected, matrices = logits(network), packed_matrices(network)
    rise(*int8, IDS)
    assert torch.equal(logits(network), expected)
    assert all(a is b for a, b in zip(packed_matrices(network), matrices, strict=True))
    assert not [m for m in network.modules() if m._forward_pre_hooks or m._forward_hooks]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_stop_in_any_layer_of_either_run_leaves_the_network_as_before(int8, after):
    network = int8[0]
    expected, asked = logits(network), []

    def step():
        asked.append(1)
        if len(asked) > after:
            raise Cancelled

    with pytest.raises(Cancelled):
        rise(*int8, IDS, step)
    assert torch.equal(logits(network), expected)
    assert not [m for m in network.modules() if m._forward_pre_hooks or m._forward_hooks]


def test_weights_that_cannot_be_read_any_more_leave_the_network_as_before(int8):
    network, items, weights = int8
    expected = logits(network)

    class Broken:
        def read(self, name):
            if "layers.1.mlp.down_proj" in name or "experts" in name or "lm_head" in name:
                raise OSError("gone")
            return weights.read(name)

    with contextlib.suppress(OSError):  # where it has such a matrix
        rise(network, items, Broken(), IDS)
    assert torch.equal(logits(network), expected)


def test_only_one_layer_is_whole_at_a_time(int8, whole):
    network, items, weights = int8
    weights.most, weights.reads = 0, []
    rise(network, items, weights, IDS)
    sizes = {name: 4 * p.numel() for name, p in weights.parameters.items()}
    layer = sum(size for name, size in sizes.items() if name.startswith("model.layers.0."))
    table = sizes["model.embed_tokens.weight"]
    assert weights.most <= layer + table


def test_a_long_text_is_cut_and_its_logits_computed_by_parts(monkeypatch, int8):
    network = int8[0]
    expected = loss(network, IDS)
    monkeypatch.setattr(quality, "AT_ONCE", 7)
    assert loss(network, IDS) == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(quality, "TOKENS", 20)
    asked = []
    embed = network.get_input_embeddings()
    hook = embed.register_forward_pre_hook(lambda _, args: asked.append(args[0].shape[1]))
    rise(*int8, IDS)
    hook.remove()
    assert set(asked) == {20}
