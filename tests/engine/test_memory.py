"""Bytes of weights, keys and values: by hand, and against what tiny models really allocate."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import ModelInfo
from engine.library.inspect import inspect
from engine.memory import STATES, cache_bytes, cache_precision, estimate, weight_bytes
from engine.running import KEPT_STATES
from tests.folders import tiny_config, write_bare, write_model

MIB = 2**20
SMALL = ModelInfo(
    "small",
    Path("small"),
    "gguf",
    "llama",
    vocab_size=100,
    linear=6_400,
    linear_rows=80,
    embedding=3_200,
    head=3_200,
    other=50,
    cache_widths=(64, 64),
    cache_windows=(0, 16),
)


def within(expected: float, found: int | None) -> bool:
    return found is not None and abs(found / expected - 1) <= 0.03


@pytest.mark.parametrize(
    ("precision", "device", "expected"),
    [
        ("fp32", "cpu", 4 * 9_600 + 4 * 3_200 + 4 * 50),
        ("bf16", "cpu", 2 * 9_600 + 2 * 3_200 + 4 * 50),
        ("int8", "cpu", 9_600 + 8 * 180 + 2 * 3_200 + 4 * 50),
        ("int4", "cpu", 3_200 + 4 * 100 + 3_200 + 8 * 100 + 2 * 3_200 + 4 * 50),
        ("fp32", "cuda", 4 * 12_850),
        ("fp16", "cuda", 2 * 12_850),
        ("int8", "cuda", 6_400 + 8 * 80 + 2 * 6_450),
        ("int4", "cuda", 3_200 + 4 * 100 + 2 * 6_450),
    ],
)
def test_weights_are_counted_by_kind(precision, device, expected):
    assert weight_bytes(SMALL, precision, device) == expected


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "int8", "int4"])
def test_a_tied_output_matrix_counts_once_but_where_it_is_packed(precision):
    tied = replace(SMALL, head=0)
    element = 4 if precision == "fp32" else 2
    assert weight_bytes(tied, precision, "cpu") == weight_bytes(SMALL, precision, "cpu")
    once = weight_bytes(SMALL, precision, "cuda") - element * 3_200
    assert weight_bytes(tied, precision, "cuda") == once


def test_a_window_holds_no_more_than_itself():
    assert cache_bytes(SMALL, 10, 2, "mps") == 2 * (64 * 10 + 64 * 10)
    assert cache_bytes(SMALL, 100, 2, "mps") == 2 * (64 * 100 + 64 * 16)


def test_a_running_state_is_counted_with_its_copies():
    state = replace(SMALL, architecture="lfm2", cache_widths=(64, 0), cache_windows=(0, 0))
    state = replace(state, cache_fixed=(30, 20))
    assert STATES == 1 + KEPT_STATES + 5
    for context in (10, 1000):
        found = cache_bytes(state, context, 2, "mps")
        assert found == 2 * 64 * context + STATES * (2 * 30 + 4 * 20)
    assert cache_bytes(replace(state, architecture="rwkv"), 10, 2, "mps") == 2 * 640 + 60 + 80


def test_keys_and_values_stay_in_32_bits_on_a_cpu_and_that_is_said():
    for precision in ("bf16", "fp16", "int8", "int4"):
        found = estimate(SMALL, precision, "cpu", 100)
        assert (found.cache_precision, found.cache) == ("fp32", cache_bytes(SMALL, 100, 4, "cpu"))
        assert "32 bits" in found.reason.text
    assert estimate(SMALL, "fp32", "cpu", 100).reason is None


def test_elsewhere_keys_and_values_follow_the_precision():
    found = {p: cache_precision(SMALL, p, "cuda") for p in ("fp32", "bf16", "fp16", "int8", "int4")}
    assert found == {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "int8": "bf16", "int4": "bf16"}
    assert estimate(SMALL, "int8", "cuda", 100).reason is None


def test_what_the_files_do_not_say_is_unknown():
    bare = ModelInfo("bare", Path("bare"), "gguf", "llama")
    found = estimate(bare, "int8", "cpu", 100)
    assert (found.weights, found.cache, found.total) == (None, None, None)
    half = estimate(replace(SMALL, cache_widths=None), "int8", "cpu", 100)
    assert half.weights is not None
    assert half.total is None
    whole = estimate(SMALL, "int8", "cpu", 100)
    assert whole.total == whole.weights + whole.cache


# MEM-1 of the cases


def cache_of(tmp_path: Path, context: int, **config: object) -> int | None:
    folder = write_bare(tmp_path / "m", **config)
    return cache_bytes(inspect(folder), context, 2, "mps")


def test_windows_of_some_layers_are_not_the_whole_context(tmp_path):
    kinds = ["full_attention" if i in (5, 11, 17, 23, 29) else "sliding_attention"
             for i in range(34)]  # fmt: skip
    shape = {"num_hidden_layers": 34, "num_key_value_heads": 4, "head_dim": 256}
    found = cache_of(tmp_path, 131_072, **shape, sliding_window=1024, layer_types=kinds)
    assert within(2_676 * MIB, found)


def test_the_size_of_a_head_is_taken_as_stated(tmp_path):
    shape = {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8}
    found = cache_of(tmp_path, 32_768, **shape, hidden_size=1024, head_dim=128)
    assert found == 3_584 * MIB


def test_a_compressed_latent_is_not_full_heads(tmp_path):
    latent = {"num_hidden_layers": 27, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert cache_of(tmp_path, 32_768, **latent, num_key_value_heads=16) == 972 * MIB


def test_a_head_that_copies_the_embedding_counts_once(tmp_path):
    shapes = {"model.embed_tokens.weight": [151, 64], "lm_head.weight": [151, 64]}
    folder = write_bare(tmp_path / "m", shapes, tie_word_embeddings=True)
    assert weight_bytes(inspect(folder), "bf16", "cuda") == 2 * 151 * 64


# Against the real thing

FAMILIES = {
    "llama": {},
    "llama tied": {"tie_word_embeddings": True},
    "qwen2": {"model_type": "qwen2", "sliding_window": 64},
    "qwen2 windowed": {
        "model_type": "qwen2",
        "sliding_window": 64,
        "use_sliding_window": True,
        "max_window_layers": 1,
    },
    "mistral": {"model_type": "mistral", "sliding_window": 64},
    "gemma2": {"model_type": "gemma2", "sliding_window": 64, "head_dim": 32},
    "gemma3": {
        "model_type": "gemma3_text",
        "sliding_window": 64,
        "head_dim": 32,
        "tie_word_embeddings": True,
    },
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "deepseek": {
        "model_type": "deepseek_v3",
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "q_lora_rank": None,
        "first_k_dense_replace": 2,
        "num_key_value_heads": 4,
    },
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimate_is_what_a_tiny_model_allocates(tmp_path, family):
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    kind = {"architectures": [], **FAMILIES[family]}
    folder = write_model(tmp_path / "m", config=tiny_config(**kind), tokenizer=False)
    network = AutoModelForCausalLM.from_pretrained(folder)
    allocated = {p.data_ptr(): p.numel() * p.element_size() for p in network.parameters()}
    cache = DynamicCache(config=network.config)
    with torch.no_grad():
        network(torch.arange(100)[None], cache=cache)
        network(torch.tensor([[100]]), cache=cache)
    held = sum(
        tensor.numel() * tensor.element_size()
        for layer in cache.layers
        for tensor in (layer.keys, layer.values)
    )
    info = inspect(folder)
    assert within(sum(allocated.values()), weight_bytes(info, "fp32", "cuda"))
    # a windowed layer of transformers keeps one token less than its window
    assert within(held, cache_bytes(info, 101, 4, "mps"))


@pytest.mark.parametrize("window", [1, 128, 129, 300, 512, 2047, 4096])
@pytest.mark.parametrize("context", [100, 2048, 8192])
def test_a_window_on_the_processor_is_given_what_was_said(window, context):
    import torch

    from engine.cache import Buffers
    from engine.roles import PREFILL_CHUNK

    layer = Buffers(window, context)
    for start in range(0, context, PREFILL_CHUNK):
        if start:
            layer.drop_oldest()
        fed = torch.zeros(1, 1, min(PREFILL_CHUNK, context - start), 1)
        layer.update(fed, fed)
    info = replace(SMALL, cache_widths=(2,), cache_windows=(window,))
    assert layer.keys.shape[2] * 2 == cache_bytes(info, context, 1, "cpu")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "int8", "int4"])
def test_the_estimate_is_what_the_processor_is_given(tmp_path, precision, tied):
    from engine.kernels.linear import grid, half_counts, int4_agrees
    from engine.loading import load

    if grid() is None or half_counts() is None or not int4_agrees():
        pytest.skip("this processor takes other kernels")
    config = tiny_config(hidden_size=128, head_dim=32, tie_word_embeddings=tied)
    folder = write_model(tmp_path / "m", config=config)
    with contextlib.closing(
        load(folder, cache_folder=tmp_path, device="cpu", precision=precision)
    ) as model:
        found = estimate(model.loaded.info, precision, "cpu", model.loaded.context)
        assert within(model.loaded.memory_bytes, found.weights)
        assert found.cache_precision == model.loaded.cache_precision
