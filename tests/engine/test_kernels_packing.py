"""Weights go into a network one matrix at a time, and come out of the store as they went in."""

import pytest
import torch

from engine import checkpoint
from engine.checkpoint import skeleton
from engine.errors import Cancelled
from engine.kernels import packing
from engine.kernels.network import Embedding, Experts, Linear, kernels, settle
from engine.kernels.packing import pack
from engine.kernels.store import Store
from tests.families import FAMILIES, Counting, config, logits, original

PRECISIONS = ("fp32", "bf16", "fp16", "int8", "int4")
# How far a tiny model's logits may be from its own, of their size.
NEAR = {"fp32": 1e-5, "bf16": 2e-2, "fp16": 2e-3, "int8": 5e-2, "int4": 0.5}


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """What is tiny here has no memory before it is filled either."""
    monkeypatch.setattr(checkpoint, "LARGE", 1000)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "weights"


def packed(family, precision, **options):
    """A network of packed weights, and where they came from."""
    network = skeleton(config(family))
    weights = options.pop("weights", None) or Counting(original(family))
    pack(network, weights, precision, **options)
    network.requires_grad_(False)
    settle(network)
    return network, weights


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", ["llama", "tied", "qwen2", "gemma2", "qwen2_moe"])
def test_a_packed_network_says_nearly_what_the_original_says(family, precision):
    network, _ = packed(family, precision)
    expected = logits(original(family))
    distance = (logits(network) - expected).norm() / expected.norm()
    assert distance < NEAR[precision]


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_says_nearly_what_the_original_says(family, precision):
    network, _ = packed(family, precision)
    expected = logits(original(family))
    assert (logits(network) - expected).norm() / expected.norm() < NEAR[precision]


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_nothing_is_left_without_memory_or_unpacked(precision):
    network, _ = packed("llama", precision)
    assert not [n for n, t in network.state_dict().items() if t.is_meta]
    assert not [m for m in network.modules() if type(m) in (torch.nn.Linear, torch.nn.Embedding)]
    tables = [m for m in network.modules() if isinstance(m, Embedding)]
    # a table that was turned has other numbers than those bfloat16 had room for
    expected = torch.float16 if precision == "int8" else torch.bfloat16
    assert [t.weight.dtype for t in tables] == [expected]
    # q, k and v are one matrix, gate and up another
    assert len(kernels(network)) == 2 * 4 + 1
    shared = {id(m.shared) for m in network.modules() if isinstance(m, Linear)}
    assert len(shared) == 2 * 4 + 1


def test_an_output_matrix_and_a_router_are_kept_better_than_in_4_bits():
    network, _ = packed("qwen2_moe", "int4")
    kinds = {
        name: type(module.shared.kernel).__name__
        for name, module in network.named_modules()
        if isinstance(module, Linear)
    }
    assert kinds["lm_head"] in ("Int8", "Half", "Plain")
    gates = [kind for name, kind in kinds.items() if "shared_expert_gate" in name]
    assert gates
    assert set(gates) <= {"Half", "Plain"}


@pytest.mark.parametrize("family", ["llama", "tied", "qwen2_moe"])
def test_weights_are_read_one_by_one_and_none_is_held(family):
    """Of 16-bit weights there is never a whole copy beside the packed ones."""
    network, weights = packed(family, "int8")
    sizes = {name: 4 * p.numel() for name, p in weights.parameters.items()}
    # one that is read, and one for each core that packs
    assert weights.most <= (2 + torch.get_num_threads()) * max(sizes.values())
    # every matrix once; a table that is the output matrix too twice
    twice = {n for n in set(weights.reads) if weights.reads.count(n) > 1 and "norm" not in n}
    assert twice == ({"model.embed_tokens.weight"} if family == "tied" else set())
    assert set(weights.reads) == set(weights.parameters)
    assert network is not None


@pytest.mark.parametrize("family", ["llama", "tied", "qwen2_moe"])
def test_what_is_told_adds_up(family):
    told = []
    network = skeleton(config(family))
    total = sum(p.numel() for p in network.parameters())
    items, _ = pack(network, Counting(original(family)), "int8", done=told.append)
    biases = sum(item.shape[0] for item in items if item.biases)
    again = 262 * 64 if family == "tied" else 0
    assert sum(told) == total - biases + again
    assert len(told) == len(items)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen2_moe", "gemma2"])
@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_what_comes_from_the_store_is_the_same_to_the_bit(folder, family, precision):
    store = Store(folder)
    first, weights = packed(family, precision, store=store, key="k")
    read = len(weights.reads)
    network = skeleton(config(family))
    assert pack(network, weights, precision, store=store, key="k")[1]
    network.requires_grad_(False)
    settle(network)
    # the factors of the last norm, which are noted where the stream is turned
    assert weights.reads[read:] == (["model.norm.weight"] if network.turned else [])
    assert torch.equal(logits(network), logits(first))


@pytest.mark.parametrize("family", ["llama", "qwen2_moe"])
@pytest.mark.parametrize("place", [10, 100_000, -1])
def test_damaged_weights_are_made_again(folder, family, place):
    """That they are is known only when all were read and most were packed."""
    store = Store(folder)
    first, weights = packed(family, "int8", store=store, key="k")
    file = folder / "k.safetensors"
    data = bytearray(file.read_bytes())
    data[place] ^= 0x11
    file.write_bytes(data)
    again, _ = packed(family, "int8", weights=weights, store=store, key="k")
    assert torch.equal(logits(again), logits(first))
    assert len(kernels(again)) == len(kernels(first))
    assert pack(skeleton(config(family)), weights, "int8", store=store, key="k")[1]


def test_weights_of_another_precision_are_made_again(folder):
    store = Store(folder)
    _, weights = packed("llama", "int8", store=store, key="k")
    network = skeleton(config("llama"))
    assert not pack(network, weights, "int4", store=store, key="k")[1]
    settle(network)
    assert torch.equal(logits(network), logits(packed("llama", "int4")[0]))


@pytest.mark.parametrize("after", [0, 3, 9])
def test_a_stop_leaves_nothing_half_written(folder, after):
    store, told = Store(folder), []

    def stop(numel):
        told.append(numel)
        if len(told) > after:
            raise Cancelled

    network = skeleton(config("llama"))
    with pytest.raises(Cancelled):
        pack(network, Counting(original("llama")), "int8", store=store, key="k", done=stop)
    assert list(folder.iterdir()) == []
    packed("llama", "int8", store=store, key="k")
    told.clear()
    with pytest.raises(Cancelled):
        pack(
            skeleton(config("llama")),
            Counting(original("llama")),
            "int8",
            store=store,
            key="k",
            done=stop,
        )
    assert store.tensors("k", shapes_of("llama")) is not None


def shapes_of(family):
    items = packing._items(skeleton(config(family)), "int8")
    return {f"{item.name}|{part}": s for item in items for part, s in item.shapes.items()}


def test_weights_that_cannot_be_read_leave_nothing_half_written(folder):
    class Broken(Counting):
        def read(self, name):
            if "down_proj" in name:
                raise OSError("gone")
            return super().read(name)

    with pytest.raises(OSError, match="gone"):
        pack(
            skeleton(config("llama")),
            Broken(original("llama")),
            "int8",
            store=Store(folder),
            key="k",
        )
    assert list(folder.iterdir()) == []


def test_a_full_disk_does_not_stop_the_packing(folder, monkeypatch):
    from engine.kernels import store as kept

    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.Path, "open", full)
    network, _ = packed("llama", "int8", store=Store(folder), key="k")
    monkeypatch.undo()
    assert torch.equal(logits(network), logits(packed("llama", "int8")[0]))
    assert list(folder.iterdir()) == []


def test_experts_are_packed_each_for_itself():
    network, _ = packed("qwen2_moe", "int8")
    stacks = [m for m in network.modules() if isinstance(m, Experts)]
    assert len(stacks) == 2
    assert all(sorted(s.kernels["down_proj"]) == [0, 1, 2, 3] for s in stacks)
