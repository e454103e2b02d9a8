"""The facts that memory follows from, of folders and GGUF files, and of damaged ones."""

import pytest

from engine.library import sizes
from engine.library.inspect import inspect
from tests.folders import write_bare, write_gguf

SHAPES = {
    "token_embd.weight": [20, 8],
    "blk.0.attn_q.weight": [16, 8],
    "blk.0.attn_q.bias": [16],
    "blk.0.ffn_up_exps.weight": [4, 6, 8],
    "blk.0.attn_norm.weight": [8],
}
KEYS = {
    "llama__block_count": 12,
    "llama__embedding_length": 8,
    "llama__attention__head_count": 4,
    "llama__attention__head_count_kv": 2,
}


def facts(path):
    info = inspect(path)
    return info.linear, info.linear_rows, info.embedding, info.head, info.other


def caches(path):
    info = inspect(path)
    return info.cache_widths, info.cache_windows


def test_a_gguf_is_counted_by_kind_and_its_experts_all(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", SHAPES, **KEYS)
    assert facts(path) == (16 * 8 + 4 * 6 * 8, 16 + 24, 160, 0, 24)


def test_a_gguf_with_an_output_matrix_is_loaded_with_two(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", SHAPES | {"output.weight": [20, 8]}, **KEYS)
    assert facts(path)[2:4] == (160, 160)


def test_a_folder_is_counted_by_kind(tmp_path):
    shapes = {
        "model.embed_tokens.weight": [262, 64],
        "wpe.weight": [100, 64],
        "model.layers.0.self_attn.q_proj.weight": [64, 64],
        "model.norm.weight": [64],
        "lm_head.weight": [262, 64],
    }
    folder = write_bare(tmp_path / "m", shapes)
    assert facts(folder) == (4096, 64, 262 * 64, 262 * 64, 100 * 64 + 64)


def test_a_folder_without_an_output_matrix_has_a_tied_one(tmp_path):
    folder = write_bare(tmp_path / "m", {"model.embed_tokens.weight": [262, 64]})
    assert facts(folder)[2:4] == (262 * 64, 0)


def test_experts_in_one_stack_are_experts(tmp_path):
    shapes = {
        "model.embed_tokens.weight": [262, 64],
        "model.layers.0.mlp.experts.gate_up_proj": [4, 32, 64],
        "model.layers.0.mlp.experts.down_proj": [4, 64, 16],
        "model.layers.0.mlp.experts.down_proj_bias": [4, 64],
    }
    info = inspect(write_bare(tmp_path / "m", shapes))
    assert info.experts == info.linear == 4 * 32 * 64 + 4 * 64 * 16
    assert (info.linear_rows, info.other) == (4 * 32 + 4 * 64, 4 * 64)


def test_a_second_table_of_tokens_is_a_table(tmp_path):
    shapes = {
        "model.embed_tokens.weight": [262, 64],
        "model.embed_tokens_per_layer.weight": [262, 32],
    }
    assert facts(write_bare(tmp_path / "m", shapes))[2:] == (262 * 96, 0, 0)


def test_weights_without_an_embedding_are_unknown(tmp_path):
    assert facts(write_bare(tmp_path / "m")) == (None,) * 5


def test_a_gguf_says_what_a_layer_keeps(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", SHAPES, **KEYS)
    assert caches(path) == ((2 * 2 * 2,) * 12, (0,) * 12)


def test_heads_that_differ_by_layer_are_told_by_layer(tmp_path):
    keys = KEYS | {"llama__block_count": 3, "llama__attention__head_count_kv": [1, 2, 4]}
    assert caches(write_gguf(tmp_path / "x.gguf", SHAPES, **keys))[0] == (4, 8, 16)


@pytest.mark.parametrize(
    ("architecture", "pattern", "full"),
    [
        ("gemma3", None, {5, 11}),
        ("gemma2", None, {1, 3, 5, 7, 9, 11}),
        ("phi3", None, set()),
        ("gemma3", 3, {2, 5, 8, 11}),
    ],
)
def test_the_layers_of_a_gguf_alternate_as_its_family_has_it(tmp_path, architecture, pattern, full):
    keys = {key.replace("llama", architecture): value for key, value in KEYS.items()}
    keys |= {f"{architecture}__attention__sliding_window": 32}
    if pattern is not None:
        keys |= {f"{architecture}__attention__sliding_window_pattern": pattern}
    path = write_gguf(tmp_path / "x.gguf", SHAPES, architecture=architecture, **keys)
    windows = caches(path)[1]
    assert {i for i, window in enumerate(windows) if window == 0} == full
    assert set(windows) <= {0, 32}


def test_a_window_of_unknown_layers_counts_in_none(tmp_path):
    keys = KEYS | {"llama__attention__sliding_window": 32}
    assert caches(write_gguf(tmp_path / "x.gguf", SHAPES, **keys))[1] == (0,) * 12


@pytest.mark.parametrize(
    ("architecture", "settings", "full"),
    [
        ("gpt-oss", {"sliding_window": 32}, {1, 3, 5, 7, 9, 11}),
        ("cohere2", {"sliding_window": 32}, {3, 7, 11}),
        ("exaone4", {"sliding_window": 32}, {3, 7, 11}),
        ("olmo2", {"sliding_window": 32}, {3, 7, 11}),
        ("olmo2", {}, set(range(12))),
        ("gemma3n", {"sliding_window": 32}, {4, 9}),
        ("llama4", {"chunk_size": 32}, {3, 7, 11}),
        ("something", {"sliding_window": 32}, set(range(12))),
    ],
)
def test_windows_of_a_gguf_that_is_only_planned_with(tmp_path, architecture, settings, full):
    keys = {key.replace("llama", architecture): value for key, value in KEYS.items()}
    keys |= {f"{architecture}__attention__{key}": value for key, value in settings.items()}
    path = write_gguf(tmp_path / "x.gguf", SHAPES, architecture=architecture, **keys)
    windows = caches(path)[1]
    assert {i for i, window in enumerate(windows) if window == 0} == full
    assert set(windows) <= {0, 32}


def test_windowed_layers_of_a_gguf_have_a_size_of_their_own_and_the_last_ones_keep_nothing(
    tmp_path,
):
    keys = {key.replace("llama", "gemma4"): value for key, value in KEYS.items()}
    sizes_of = {"key_length": 16, "value_length": 16, "key_length_swa": 4, "value_length_swa": 4}
    settings = sizes_of | {"sliding_window": 32, "shared_kv_layers": 5}
    keys |= {f"gemma4__attention__{key}": value for key, value in settings.items()}
    path = write_gguf(tmp_path / "x.gguf", SHAPES, architecture="gemma4", **keys)
    assert caches(path)[0] == (*[2 * 8] * 5, 2 * 32, 2 * 8, *[0] * 5)


def test_layers_that_share_a_cache_keep_nothing(tmp_path):
    folder = write_bare(tmp_path / "m", num_hidden_layers=4, num_kv_shared_layers=3)
    assert caches(folder)[0] == (2 * 2 * 16, 0, 0, 0)


@pytest.mark.parametrize(
    "damage",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": "many"},
        {"num_attention_heads": None, "num_key_value_heads": None, "head_dim": None},
        {"num_key_value_heads": ["x", 2]},
        {"num_key_value_heads": [2] * 7},
        {"layer_types": ["full_attention"]},
        {"layer_types": ["full_attention", "something_new"]},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"layer_types": ["full_attention", "linear_attention"]},
        {"layer_types": [["full_attention"], {}]},
        {"sliding_window": 8, "sliding_window_pattern": "LLLG"},
    ],
)
def test_what_a_configuration_leaves_open_is_unknown(tmp_path, damage):
    assert caches(write_bare(tmp_path / "m", **damage)) == (None, None)


def test_as_many_numbers_are_counted_as_there_are():
    shapes = {name: tuple(shape) for name, shape in SHAPES.items()}
    found = sizes.weights(shapes, "token_embd.weight", None, tied=True)
    kinds = ("linear", "embedding", "head", "other")
    assert sum(found[kind] for kind in kinds) == 160 + 128 + 16 + 192 + 8
