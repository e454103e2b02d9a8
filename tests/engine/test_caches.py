"""What each layer keeps, from configurations of published models and from hostile ones."""

from pathlib import Path

import pytest

from engine import families
from engine.api import ModelInfo
from engine.library import caches
from engine.memory import cache_bytes
from tests.published import FACTS, config


def described(name):
    found = config(name)
    return ModelInfo(
        name, Path(name), "safetensors", "", **caches.of_config(found, found["model_type"])
    )


@pytest.mark.parametrize("tokens", [2048, 32_768])
@pytest.mark.parametrize("name", FACTS)
def test_a_published_model_keeps_what_its_layers_keep(name, tokens):
    info = described(name)
    # where windows are kept as such
    assert cache_bytes(info, tokens, 2, "mps") == FACTS[name].cache(tokens, 2)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3.5-4b", "deepseek-v3"])
def test_layers_that_see_all_take_the_same_on_every_device(name):
    info = described(name)
    found = {cache_bytes(info, 2048, 2, device) for device in ("cpu", "cuda", "mps")}
    assert len(found) == 1


def test_a_window_costs_what_the_device_keeps_of_it():
    info = described("gemma-3-4b")
    mps, cpu, cuda = (cache_bytes(info, 32_768, 2, device) for device in ("mps", "cpu", "cuda"))
    assert mps < cpu < cuda
    # a block on the processor keeps no more than 832 tokens beyond the window
    assert cpu - mps <= 29 * 2 * 4 * 256 * 2 * 896
    assert cuda == 34 * 2 * 4 * 256 * 2 * 32_768


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": -1},
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": "32"},
        {"num_key_value_heads": [8] * 31 + ["8"]},
        {"num_key_value_heads": [8]},
        {"head_dim": 2**40},
        {"layer_types": ["full_attention"] * 31},
        {"layer_types": ["full_attention"] * 31 + ["something_new"]},
        {"layer_types": ["sliding_attention"] * 32},
        {"layer_types": [None] * 32},
    ],
)
def test_what_cannot_be_right_is_unknown(change):
    hostile = config("llama-3.1-8b") | change
    if "head_dim" in change:
        # not stated: shared out between the heads
        assert caches.of_config(hostile, "llama")["cache_widths"][0] == 2 * 8 * 128
    else:
        assert caches.of_config(hostile, "llama") == {}


@pytest.mark.parametrize("missing", ["conv_kernel", "state_size", "num_heads", "hidden_size"])
def test_a_running_state_that_is_not_stated_is_unknown(missing):
    found = {k: v for k, v in config("mamba-codestral-7b").items() if k != missing}
    assert caches.of_config(found, "mamba2") == {}


def test_heads_may_differ_from_layer_to_layer():
    found = config("llama-3.1-8b") | {"num_key_value_heads": [8] * 16 + [2] * 16}
    widths = caches.of_config(found, "llama")["cache_widths"]
    assert sum(widths) == 16 * 2 * (8 + 2) * 128


def derived(model_type, config):
    """What transformers gives each layer: a window, 0 for all; None for what is no attention."""
    from transformers import CONFIG_MAPPING, DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    sub = CONFIG_MAPPING[model_type].sub_configs.get("text_config")
    built = (sub or CONFIG_MAPPING[model_type])(**config)
    kinds = {DynamicLayer: lambda x: 0, DynamicSlidingWindowLayer: lambda x: x.sliding_window}
    layers = DynamicCache(config=built).layers
    return [kinds[type(layer)](layer) if type(layer) in kinds else None for layer in layers]


def kept(found):
    """The windows of the layers, None of one that keeps nothing."""
    layers = zip(found["cache_widths"], found["cache_windows"], strict=True) if found else ()
    return [window if width else None for width, window in layers]


def said(model_type, config):
    whole = families.text_config({"model_type": model_type, "hidden_size": 64, **config})
    return kept(caches.of_config({"num_attention_heads": 4, **whole}, model_type))


def windowed_types():
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    for model_type in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        settings = CONFIG_MAPPING[model_type]
        settings = settings.sub_configs.get("text_config") or settings
        names = set(getattr(settings, "__dataclass_fields__", ()))
        if names & {"sliding_window", "attention_chunk_size"}:
            yield model_type


@pytest.mark.parametrize("settings", [{}, {"num_hidden_layers": 37}, {"sliding_window": None}])
def test_a_pattern_that_a_configuration_does_not_state_is_its_familys(settings):
    found = {}
    for model_type in windowed_types():
        own = {"num_hidden_layers": 36} | settings
        try:
            real = derived(model_type, own)
        except Exception:  # such a model cannot be built
            continue
        said_here = said(model_type, own)
        if model_type in caches.PATTERNS or model_type in (*caches.UNUSED, *caches.FROM):
            found[model_type] = said_here == real
        else:  # not known: in full, so that no layer is promised less than it takes
            found[model_type] = not any(said_here)
    assert len(found) > 20
    assert {name for name, right in found.items() if not right} == set()


@pytest.mark.parametrize("place", ["3", "03"])
def test_a_layer_may_have_settings_of_its_own(place):
    stated = config("llama-3.1-8b") | {"per_layer_config": {place: {"head_dim": 256}}}
    widths = caches.of_config(stated, "llama")["cache_widths"]
    assert [i for i, width in enumerate(widths) if width != 2 * 8 * 128] == [3]
    assert widths[3] == 2 * 8 * 256


@pytest.mark.parametrize("damage", [{"per_layer_config": [1]}, {"per_layer_config": {"3": 1}}])
def test_settings_that_are_none_change_nothing(damage):
    found = caches.of_config(config("llama-3.1-8b") | damage, "llama")
    assert set(found["cache_widths"]) == {2 * 8 * 128}


def test_the_keys_of_an_index_are_kept_too():
    stated = families.text_config(config("deepseek-v3") | {"model_type": "deepseek_v32"})
    assert set(caches.of_config(stated, "deepseek_v32")["cache_widths"]) == {512 + 64 + 128}


@pytest.mark.parametrize(("stated", "window"), [({}, 4096), ({"sliding_window": None}, 0)])
def test_a_window_that_is_not_stated_is_not_one_that_is_denied(stated, window):
    plain = config("mistral-7b-v0.3")
    del plain["sliding_window"]
    for whole in (plain | stated, {"model_type": "mistral3", "text_config": plain | stated}):
        found = caches.of_config(families.text_config(whole), str(whole["model_type"]))
        assert set(found["cache_windows"]) == {window}


def test_what_keeps_otherwise_than_others_is_unknown():
    assert caches.of_config(config("llama-3.1-8b"), "mimo_v2_flash") == {}
