"""Caches rewind to any length, or empty themselves; either way the next pass is right."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from engine import cache as module
from engine.cache import REWINDABLE, Buffers, Cache
from engine.errors import Cancelled
from engine.exactness import attend
from engine.kernels.attention import BUCKET
from engine.kernels.network import settle
from engine.kernels.packing import pack
from engine.model import LanguageModel
from engine.roles import PREFILL_CHUNK
from tests.families import Counting
from tests.tiny import language_model

WINDOW = 16
PROMPT = [(7 * i) % 250 for i in range(60)]


def sliding_model() -> LanguageModel:
    """Gemma 3 shapes: a window of 16 in three layers of four."""
    config = AutoConfig.for_model(
        "gemma3_text",
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=262,
        max_position_embeddings=512,
        sliding_window=WINDOW,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    return LanguageModel(network, 512)


def recurrent_model() -> LanguageModel:
    config = AutoConfig.for_model(
        "mamba2",
        hidden_size=64,
        num_heads=4,
        head_dim=32,
        state_size=16,
        expand=2,
        n_groups=1,
        num_hidden_layers=2,
        vocab_size=262,
        chunk_size=32,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    return LanguageModel(network, 512)


MODELS = {"full": language_model, "sliding": sliding_model, "recurrent": recurrent_model}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def fresh(model, tokens):
    """Logits after `tokens`, from an empty cache."""
    model.cache.empty()
    return model.forward(tokens)


def test_a_pass_in_parts_equals_one_pass(model):
    whole = fresh(model, PROMPT)
    model.cache.empty()
    for start in range(0, len(PROMPT), 7):
        parts = model.forward(PROMPT[start : start + 7])
    assert torch.allclose(parts, whole, atol=1e-4)
    assert model.cache.length == len(PROMPT)


@pytest.mark.parametrize("length", [59, 57, 50, 44, 30, 15, 1, 0])
def test_a_rewound_cache_continues_as_a_fresh_one(model, length):
    """One pass of 10 beyond 50 tokens, then back to `length`, then on with other tokens."""
    other = [200, 201, 202]
    expected = fresh(model, PROMPT[:length] + other)
    model.cache.empty()
    model.forward(PROMPT[:50])
    model.forward(PROMPT[50:])
    model.cache.crop_to(length)
    # a running state goes back to where the last pass began
    assert model.cache.length in ((50, length, 0) if length > 50 else (length, 0))
    # what is lacking is fed again
    got = model.forward((PROMPT[:length] + other)[model.cache.length :])
    assert torch.allclose(got, expected, atol=1e-4)


def walked(model: LanguageModel, moves: list[tuple[int, int, int]]) -> list[int]:
    """Feed tokens and take some back, for each move, as the loop does; the tokens that then stand.

    What is fed is always tokens[cache.length:].
    """
    model.cache.empty()
    tokens = [1]
    model.forward(tokens)
    for fed, back, again in moves:
        tokens = tokens + [(len(tokens) * 31 + fed + i) % 250 for i in range(fed)]
        model.forward(tokens[model.cache.length :])
        tokens = tokens[: max(1, len(tokens) - back)]
        model.cache.crop_to(len(tokens) - 1)
        model.cache.crop_to(max(len(tokens) - 1 - again, 0))
        assert model.cache.length <= len(tokens) - 1
    model.cache.crop_to(len(tokens) - 1)
    return tokens


@settings(max_examples=12, deadline=None)
@given(
    moves=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 4)), max_size=6)
)
@pytest.mark.parametrize("kind", MODELS)
def test_any_sequence_of_passes_and_rewinds_equals_a_fresh_cache(kind, moves):
    model = _kept(kind)
    tokens = walked(model, moves)
    got = model.forward(tokens[model.cache.length :])
    assert torch.allclose(got, fresh(model, tokens), atol=1e-4)


_MADE: dict[str, LanguageModel] = {}


def _kept(kind):
    if kind not in _MADE:
        _MADE[kind] = MODELS[kind]()
    return _MADE[kind]


def test_cropping_twice_and_to_more_than_there_is_changes_nothing(model):
    model.cache.empty()
    model.forward(PROMPT[:8])
    for length in (100, 8, 8):
        model.cache.crop_to(length)
        assert model.cache.length == 8


def test_a_window_forgets_and_full_attention_does_not():
    """Bytes held, so that the memory estimate has something true to be compared with."""
    full, windowed = language_model(), sliding_model()
    per_token = 2 * 2 * 16 * 4  # keys and values, 2 heads of 16, float32
    for model in (full, windowed):
        model.feed([7] * 400)
        model.cache.opened()
    assert full.cache.nbytes == 2 * 400 * per_token
    held = windowed.cache.nbytes / per_token - 400
    assert 3 * (WINDOW - 1 + REWINDABLE) <= held <= 3 * (WINDOW - 1 + 2 * REWINDABLE)


def test_a_draft_with_windows_takes_back_its_tokens_without_starting_anew():
    """It is fed token by token, so what it may take back spans several passes."""
    model = sliding_model()
    model.feed([7] * 300)
    for token in range(8):
        model.forward([token])
    model.cache.crop_to(301)
    assert model.cache.length == 301
    expected = model.forward([9])
    model.cache.empty()
    model.feed([7] * 300)
    assert torch.allclose(model.forward([0, 9]), expected, atol=1e-4)


def test_an_emptied_cache_holds_no_memory(model):
    model.forward(PROMPT[:4])
    model.cache.empty()
    assert model.cache.nbytes == 0
    assert model.cache.length == 0


@pytest.mark.parametrize("layer", [0, 1])
def test_a_pass_broken_off_midway_leaves_the_cache_as_it_was(model, layer):
    """Some layers have taken the tokens in and some not; a stop does that."""
    expected = fresh(model, PROMPT[:25])
    model.cache.empty()
    model.forward(PROMPT[:20])
    asked = iter([False] * layer + [True] * 100)
    model.stopped = lambda: next(asked)
    with pytest.raises(Cancelled):
        model.forward(PROMPT[40:50])
    model.stopped = lambda: False
    assert model.cache.length in (20, 0)
    got = model.forward(PROMPT[:25][model.cache.length :])
    assert torch.allclose(got, expected, atol=1e-4)


def test_a_long_prompt_is_fed_in_chunks_with_absolute_borders(monkeypatch):
    model = language_model(max_position_embeddings=2048)
    sizes = []
    passed = model.runner._pass
    monkeypatch.setattr(
        model.runner,
        "_pass",
        lambda tokens, rows: sizes.append(len(tokens)) or passed(tokens, rows),
    )
    model.forward([5] * 10)
    model.feed([5] * (2 * PREFILL_CHUNK))
    assert sizes == [10, PREFILL_CHUNK - 10, PREFILL_CHUNK, 10]


def test_the_logits_of_a_long_pass_are_those_of_its_last_rows():
    model = language_model(max_position_embeddings=2048)
    tokens = [(i * 13) % 250 for i in range(PREFILL_CHUNK + 40)]
    model.forward(tokens[:-3])
    one_by_one = torch.cat([model.forward([t]) for t in tokens[-3:]])
    model.cache.empty()
    assert torch.allclose(model.forward(tokens, rows=3), one_by_one, atol=1e-4)


def test_a_tied_matrix_counts_once():
    tied = language_model(tie_word_embeddings=True).memory_bytes
    assert language_model().memory_bytes - tied == 262 * 64 * 4


def test_a_cache_needs_no_weights():
    assert Cache(AutoConfig.for_model("llama", num_hidden_layers=2)).length == 0


def packed(model: LanguageModel) -> LanguageModel:
    """The same on our kernels: its keys and values lie in `Buffers`."""
    pack(model.network, Counting(model.network), "bf16")
    model.network.requires_grad_(False)
    settle(model.network)
    assert attend(model)
    assert all(isinstance(layer, Buffers) for layer in model.cache.opened().layers)
    return model


PACKED = {
    "full": lambda: packed(language_model(max_position_embeddings=4096)),
    "windowed": lambda: packed(sliding_model()),
}


@pytest.fixture(scope="module")
def on_kernels():
    return {kind: make() for kind, make in PACKED.items()}


@pytest.fixture
def early_drops(monkeypatch):
    """What a window left behind is dropped as soon as may be."""
    monkeypatch.setattr(module, "KEPT_BEHIND", BUCKET)


# bytes of a token's keys and values in one layer of the tiny models
PER_TOKEN = 2 * 2 * 16 * 4
MOVES = st.lists(st.tuples(st.integers(1, 150), st.integers(0, 90), st.integers(0, 4)), max_size=7)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(moves=MOVES)
@pytest.mark.parametrize("kind", PACKED)
def test_on_our_kernels_any_passes_and_rewinds_give_the_same_bits(
    on_kernels, early_drops, kind, moves
):
    model = on_kernels[kind]
    tokens = walked(model, moves)
    got = model.forward(tokens[model.cache.length :])
    assert torch.equal(got, fresh(model, tokens))


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("back", [1, 17, REWINDABLE, REWINDABLE + 1, 200, 899])
def test_on_our_kernels_a_draft_is_taken_back_without_starting_anew(
    on_kernels, early_drops, kind, back
):
    """Full attention goes back any number, a window at least as many as a round drafts."""
    model = on_kernels[kind]
    model.cache.empty()
    tokens = [(i * 13) % 250 for i in range(900)]
    for start in range(0, 900, 45):
        model.forward(tokens[start : start + 45])
    model.cache.crop_to(900 - back)
    if kind == "full" or back <= REWINDABLE:
        assert model.cache.length == 900 - back
    changed = [*tokens[: 900 - back], 7, 8, 9]
    got = model.forward(changed[model.cache.length :])
    assert torch.equal(got, fresh(model, changed))


def test_buffers_take_what_they_should(on_kernels, early_drops):
    """All tokens in full attention, by buckets; of a window a part that does not grow."""
    held = {}
    for kind, layers in (("full", 2), ("windowed", 3)):
        model = on_kernels[kind]
        model.cache.empty()
        held[kind] = []
        for _ in range(30):
            model.feed([7] * 100)
            with torch.inference_mode():
                found = [x for x in model.cache.opened().layers if x.window or kind == "full"]
            assert len(found) == layers
            held[kind].append(sum(x.keys.nbytes + x.values.nbytes for x in found) // PER_TOKEN)
    tokens = [2 * 100 * n for n in range(1, 31)]
    # at most a quarter more than there is, and the rest of a bucket
    assert all(t <= h <= 1.25 * t + 4 * BUCKET for t, h in zip(tokens, held["full"], strict=True))
    assert max(held["windowed"]) <= 3 * (16 + REWINDABLE + 4 * BUCKET)
    model = on_kernels["windowed"]
    model.cache.empty()
    assert model.cache.nbytes == 0


def test_room_of_a_long_text_is_given_back_when_a_short_one_comes(on_kernels):
    model = on_kernels["full"]
    model.cache.empty()
    tokens = [(i * 13) % 250 for i in range(1500)]
    model.feed(tokens)
    long = model.cache.nbytes
    model.cache.crop_to(1400)  # an edit near the end: nothing is moved for that
    model.feed(tokens[1400:])
    assert model.cache.nbytes == long
    model.cache.crop_to(100)
    changed = [*tokens[:100], 7]
    got = model.forward([7])
    assert model.cache.nbytes == 2 * BUCKET * PER_TOKEN
    assert torch.equal(got, fresh(model, changed))


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("layer", [0, 1])
def test_on_our_kernels_a_pass_broken_off_midway_does_not_show(on_kernels, kind, layer):
    model = on_kernels[kind]
    tokens = [(i * 13) % 250 for i in range(140)]
    expected = fresh(model, tokens)
    model.cache.empty()
    model.forward(tokens[:120])
    asked = iter([False] * layer + [True] * 100)
    model.stopped = lambda: next(asked)
    with pytest.raises(Cancelled):
        model.forward(tokens[20:60])
    model.stopped = lambda: False
    assert model.cache.length == 120
    assert torch.equal(model.forward(tokens[120:]), expected)
