"""Hidden states for heads: those of the published model, whatever computes it, and for nothing."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.loading import load
from engine.states import Tap
from tests.families import FAMILIES
from tests.folders import write_model
from tests.tiny import language_model

TEXT = [(i * i + 7 * i) % 250 for i in range(300)]
PLACES = (0, 1, 2)


class Ear:
    """Keeps what it is told, by position."""

    def __init__(self, places=PLACES):
        self.places, self.rows, self.starts = places, {}, []

    def hear(self, start, states):
        self.starts.append(start)
        self.rows |= {start + i: row for i, row in enumerate(states)}

    @property
    def all(self):
        return torch.stack([self.rows[i] for i in sorted(self.rows)])


def expected(network, tokens):
    """What transformers hands out, [tokens, places x width]."""
    with torch.no_grad():
        out = network(torch.tensor([tokens]), output_hidden_states=True)
    return torch.cat([out.hidden_states[place][0] for place in PLACES], -1)


def off(found, wanted):
    return float((found.float() - wanted).norm() / wanted.norm())


def uneven(folder, network):
    """Norms of a random model have factors of 1, which would hide that they are lost."""
    state = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for name in state:
        if name.endswith("norm.weight"):
            state[name] = state[name] + torch.rand(state[name].shape, generator=generator)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    network.load_state_dict(state)


def fed(model, ear):
    """In chunks, then in blocks, with a rewind between."""
    model.tell(ear)
    model.feed(TEXT[:140])
    model.forward([5, 6, 7], rows=3)
    model.rewind(140, 140)
    model.feed(TEXT[model.cache.length : 140])
    for start in range(140, 170, 3):
        model.forward(TEXT[start : start + 3], rows=3)
    return ear.all[:170]


@pytest.mark.parametrize("blocks", [False, True])
def test_they_are_those_of_transformers(blocks):
    model = language_model()
    wanted = expected(model.network, TEXT[:170])
    if blocks:
        model.compute_in_blocks()
    assert off(fed(model, Ear()), wanted) < 1e-5


@pytest.mark.parametrize(
    ("family", "precision", "most"),
    [
        ("llama", "fp32", 1e-4),
        ("llama", "bf16", 2e-2),
        ("llama", "int8", 4e-2),
        ("qwen3", "int8", 4e-2),
        ("gemma3", "int8", 8e-2),
    ],
)
def test_on_our_kernels_too_where_the_stream_is_turned(tmp_path, family, precision, most):
    """In int8 the states of a Llama would be any at all."""
    folder = write_model(tmp_path / "m", config=dict(FAMILIES[family]))
    reference = language_model(**FAMILIES[family]).network
    uneven(folder, reference)
    for _ in ("packed", "from the store"):
        opened = load(folder, cache_folder=tmp_path / "cache", precision=precision)
        found, wanted = fed(opened.model, Ear()), expected(reference, TEXT[:170])
        for place, (ours, theirs) in enumerate(
            zip(found.chunk(len(PLACES), -1), wanted.chunk(len(PLACES), -1), strict=True)
        ):
            assert off(ours, theirs) < most, place
        opened.close()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_listening_changes_no_bit(tmp_path, precision):
    opened = load(write_model(tmp_path / "m"), cache_folder=tmp_path, precision=precision)
    model = opened.model
    before = model.forward(TEXT[:20], rows=20)
    model.cache.empty()
    model.tell(Ear())
    assert torch.equal(model.forward(TEXT[:20], rows=20), before)
    opened.close()


def test_nobody_listens_and_nothing_is_kept():
    model = language_model()
    ear = Ear()
    model.tell(ear)
    model.forward(TEXT[:5])
    model.tell()
    model.forward(TEXT[5:9])
    assert ear.starts == [0]
    hooks = [len(m._forward_pre_hooks) for m in model.network.model.layers]
    assert hooks == [1, 1]  # that which heeds a stop
    assert not model.network.model._forward_hooks


def test_two_may_listen_at_different_places():
    model = language_model()
    ears = Ear((1,)), Ear((2, 0))
    model.tell(*ears)
    model.forward(TEXT[:5])
    wanted = expected(model.network, TEXT[:5])
    width = wanted.shape[-1] // 3
    torch.testing.assert_close(ears[0].all, wanted[:, width : 2 * width])
    torch.testing.assert_close(ears[1].all[:, width:], wanted[:, :width])


def test_padding_is_not_told():
    model = language_model(max_position_embeddings=2048)
    model.compute_in_blocks()
    ear = Ear()
    model.tell(ear)
    model.forward(TEXT[:3], rows=3)
    assert sorted(ear.rows) == [0, 1, 2]


def test_a_pass_broken_off_tells_nothing():
    model = language_model()
    ear = Ear()
    model.tell(ear)
    model.stopped = lambda: True
    with pytest.raises(Exception, match="Stopped"):
        model.forward(TEXT[:3])
    assert ear.starts == []


def test_a_tap_that_is_set_as_it_was_stays():
    """What was captured for it goes on to be right."""
    model = language_model()
    tap, ear = Tap(model.network), Ear()
    for _ in range(2):
        tap.set([ear], list(model.network.model.layers))
    assert tap.version == 1
