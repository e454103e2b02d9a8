"""What each layer of a model keeps of a text, from the keys of its configuration.

Counts numbers, not bytes: those depend on the precision (`engine.memory`). Files come from
strangers: a value of the wrong kind or size means that nothing is known.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from engine import families

MOST_LAYERS = 4096
LARGEST = 2**31
FULL, WINDOW, LINEAR, CONV, MAMBA, MAMBA2 = "full", "window", "linear", "conv", "mamba", "mamba2"
KINDS = {
    "full_attention": FULL,
    "attention": FULL,
    "sliding_attention": WINDOW,
    "chunked_attention": WINDOW,
    "indexed_attention": FULL,
    "linear_attention": LINEAR,
    "conv": CONV,
}
# Which layers of a family see everything where a configuration does not list them, the others a
# window: of so many layers the last, or the first (negative), or none (0). Sources: __post_init__
# of the configurations in transformers 5.24, and `get_layer_types_and_kwargs` there. Of a family
# with windows that is not listed here, all layers count in full.
PATTERNS = {
    "afmoe": 4, "beam": 6, "cohere2": 4, "cohere2_moe": 4, "cwm": -4, "dory": 4, "exaone4": 4,
    "exaone_moe": 4, "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gemma3n": 5, "gemma3n_text": 5,
    "gemma4": 6, "gemma4_text": 6, "gemma4_unified": 6, "gemma4_unified_text": 6, "gpt_oss": 2,
    "granite_swa": -4, "granitemoe_swa": -4, "kolibri1": 5, "llama4": 4, "llama4_text": 4,
    "minimax_m2": 0, "ministral": 0, "mistral": 0, "mixtral": 0, "moshi": 0, "olmo3": 4, "phi3": 0,
    "phi4_multimodal": 0, "phimoe": 0, "starcoder2": 0, "vaultgemma": 2,
}  # fmt: skip
# What a configuration calls that number, where it states another.
STEP, STEPS = "sliding_window_pattern", {
    "afmoe": "global_attn_every_n_layers",
    "llama4": "no_rope_layer_interval",
    "llama4_text": "no_rope_layer_interval",
}  # fmt: skip
# In these the last layer sees everything, whatever the number.
LAST_IN_FULL = ("beam", "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text")
# These state a window that they do not use unless they say so, and then from this layer on (the
# default), or in layers that are not told here.
UNUSED = {
    "qwen2": 28, "qwen3": 28, "qwen2_moe": None, "qwen3_moe": None, "smollm3": None
}  # fmt: skip
FROM = {"dots1": 62}
# GGUF architectures with windows, by the family's name in transformers (llama.cpp, src/models).
GGUF_FAMILIES = {
    "afmoe": "afmoe", "cohere2": "cohere2", "exaone4": "exaone4", "gemma2": "gemma2",
    "gemma3": "gemma3", "gemma3n": "gemma3n", "gemma4": "gemma4", "gpt-oss": "gpt_oss",
    "gpt_oss": "gpt_oss", "llama4": "llama4", "olmo2": "olmo3", "phi3": "phi3",
}  # fmt: skip
CHUNK_LLAMA4 = 8192  # of which llama.cpp's files say nothing
# Of these the others keep a running state instead (the same source).
HYBRIDS = ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text")
# What their layers keep differs by more than a window.
UNLIKE = ("mimo_v2_flash",)
RUNNING = {"mamba": MAMBA, "falcon_mamba": MAMBA, "mamba2": MAMBA2}
# What a running state's size follows from.
STATED = {
    LINEAR: (
        "linear_num_key_heads",
        "linear_key_head_dim",
        "linear_num_value_heads",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
    ),
    CONV: ("hidden_size", "conv_L_cache"),
    MAMBA: ("hidden_size", "state_size", "conv_kernel"),
    MAMBA2: ("hidden_size", "state_size", "conv_kernel", "num_heads", "head_dim"),
}
EXPAND = 2  # how many times wider than the stream a Mamba layer is, where not stated
Shape = tuple[int, ...]


class Caches(TypedDict, total=False):
    """What each layer keeps, as `ModelInfo` names it; empty where not known."""

    cache_widths: Shape
    cache_windows: Shape
    cache_fixed: tuple[int, int]


def of_config(config: Mapping[str, Any], model_type: str) -> Caches:
    """What a config.json says.

    Sources: `get_layer_types_and_kwargs` in transformers 5.24's cache_utils, and the shapes of the
    states that its models hand to the cache.
    """
    layers = _layers(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    text = config.get("text_config")
    stated = text.get("model_type") if isinstance(text, Mapping) else None
    family = stated if isinstance(stated, str) else model_type
    kinds = None if layers is None else _kinds(config, family, layers)
    if kinds is None:
        return {}
    heads = config.get("num_key_value_heads")
    if isinstance(heads, list) and len(heads) != layers:
        return {}
    shared = _whole(config, "num_kv_shared_layers") or 0
    widths, windows, fixed = [], [], [0, 0]
    for place, kind in enumerate(kinds):
        here = at(config, place)
        window = _window(here) or 0
        attends = kind in (FULL, WINDOW)
        # the last ones read what others keep
        keeps = attends and place < len(kinds) - shared
        width = _width(here, place, kind) if keeps else 0
        state = (0, 0) if attends else _state(here, kind)
        if width is None or state is None or (kind == WINDOW and not window):
            return {}
        widths.append(width)
        windows.append(window if kind == WINDOW else 0)
        fixed = [fixed[0] + state[0], fixed[1] + state[1]]
    return Caches(
        cache_widths=tuple(widths), cache_windows=tuple(windows), cache_fixed=(fixed[0], fixed[1])
    )


def at(config: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    """The settings of the layer at `place`: transformers 5.24 writes apart what differs."""
    layers = config.get("per_layer_config")
    listed = layers.items() if isinstance(layers, Mapping) else ()
    # of more than ten layers the numbers have leading zeros
    own = {key.lstrip("0"): settings for key, settings in listed}.get(str(place).lstrip("0"))
    return {**config, **own} if isinstance(own, Mapping) else config


def _kinds(config: Mapping[str, Any], model_type: str, layers: int) -> list[str] | None:
    """The kind of each layer; None for one that is not known."""
    listed = config.get("layer_types")
    if isinstance(listed, list):
        kinds = [KINDS.get(str(kind)) for kind in listed]
        known = [kind for kind in kinds if kind is not None]
        return known if len(known) == len(kinds) == layers else None
    if model_type in RUNNING:
        return [RUNNING[model_type]] * layers
    if model_type in HYBRIDS:
        every = _whole(config, "full_attention_interval") or 4
        return [FULL if (i + 1) % every == 0 else LINEAR for i in range(layers)]
    full = config.get("full_attn_idxs")
    if isinstance(full, list):
        return [FULL if i in full else CONV for i in range(layers)]
    if families.is_recurrent(model_type, config) or model_type in UNLIKE:
        return None
    return _windowed(config, model_type, layers)


def _windowed(config: Mapping[str, Any], family: str, layers: int) -> list[str] | None:
    """Attention layers whose configuration states at most a pattern."""
    step = config.get(STEPS.get(family, STEP))
    used = config.get("use_sliding_window", family not in UNUSED)
    if _window(config) is None or used is not True:
        return [FULL] * layers
    if step is not None and (type(step) is not int or step < 0):
        return None
    if family in UNUSED or family in FROM:
        first = config.get("max_window_layers", UNUSED.get(family, FROM.get(family)))
        known = type(first) is int and UNUSED.get(family, 0) is not None
        return [WINDOW if known and i >= first else FULL for i in range(layers)]
    rotary = config.get("no_rope_layers")
    if family in ("llama4", "llama4_text") and isinstance(rotary, list) and rotary:
        return [WINDOW if turned else FULL for turned in rotary] if len(rotary) == layers else None
    if family not in PATTERNS:
        return [FULL] * layers
    windows = _alternating(layers, 1, PATTERNS[family] if step is None else step, family)
    return [WINDOW if window else FULL for window in windows]


def _window(config: Mapping[str, Any]) -> int | None:
    return _whole(config, "sliding_window", "attention_chunk_size")


def _width(config: Mapping[str, Any], place: int, kind: str) -> int | None:
    """Keys and values of a token in the attention layer at `place`."""
    rank, rotary = _whole(config, "kv_lora_rank"), _whole(config, "qk_rope_head_dim")
    if rank and rotary:  # the compressed latent, one rotary key for all heads, the index's key
        return rank + rotary + (_whole(config, "index_head_dim") or 0)
    heads, size = _kv_heads(config, place), _head_size(config)
    if kind == FULL and _whole(config, "global_head_dim"):
        size = _whole(config, "global_head_dim")
        if config.get("attention_k_eq_v") is True:
            heads = _whole(config, "num_global_key_value_heads") or heads
    return None if heads is None or size is None else 2 * heads * size


def _state(config: Mapping[str, Any], kind: str) -> tuple[int, int] | None:
    """Numbers of a running state: in the model's type, and in float32; None where not stated."""
    stated = {key: _whole(config, key) for key in STATED[kind]}
    size = {key: number for key, number in stated.items() if number is not None}
    if len(size) < len(stated):
        return None
    if kind == LINEAR:
        keys = size["linear_num_key_heads"] * size["linear_key_head_dim"]
        values = size["linear_num_value_heads"] * size["linear_value_head_dim"]
        kept = (2 * keys + values) * size["linear_conv_kernel_dim"]
        return kept, values * size["linear_key_head_dim"]
    if kind == CONV:
        return size["hidden_size"] * size["conv_L_cache"], 0
    state, kernel = size["state_size"], size["conv_kernel"]
    inner = size["hidden_size"] * (_whole(config, "expand") or EXPAND)
    if kind == MAMBA:
        inner = _whole(config, "intermediate_size") or inner
        return inner * kernel, inner * state
    groups = _whole(config, "n_groups") or 1
    heads = size["num_heads"] * size["head_dim"]
    return (inner + 2 * groups * state) * kernel, heads * state


def of_gguf(metadata: Mapping[str, Any], architecture: str) -> Caches:
    """What a GGUF's metadata says. Source: docs/gguf.md in ggml-org/ggml, attention keys."""
    own = {
        key.removeprefix(f"{architecture}."): value
        for key, value in metadata.items()
        if key.startswith(f"{architecture}.")
    }
    layers, width = _layers(own, "block_count"), _whole(own, "embedding_length")
    recurrent = families.is_recurrent_gguf(architecture, metadata)
    if layers is None or recurrent or "attention.kv_lora_rank" in own:
        return {}
    heads = _whole(own, "attention.head_count")
    size = _whole(own, "attention.key_length") or (width // heads if width and heads else None)
    kv_heads = own.get("attention.head_count_kv", heads)
    windows = _windows_of_gguf(own, GGUF_FAMILIES.get(architecture, architecture), layers)
    told = list(kv_heads) if isinstance(kv_heads, list) else [kv_heads] * layers
    each = [h for h in told if type(h) is int and 0 <= h < LARGEST]
    if size is None or windows is None or not len(told) == len(each) == len(windows) == layers:
        return {}
    full = size + (_whole(own, "attention.value_length") or size)
    key = _whole(own, "attention.key_length_swa")
    value = _whole(own, "attention.value_length_swa") or key
    windowed = full if key is None or value is None else key + value
    # the last ones read what others keep
    keep = layers - (_whole(own, "attention.shared_kv_layers") or 0)
    widths = tuple(
        heads_here * (windowed if window else full) if place < keep else 0
        for place, (heads_here, window) in enumerate(zip(each, windows, strict=True))
    )
    return Caches(cache_widths=widths, cache_windows=windows, cache_fixed=(0, 0))


def _windows_of_gguf(own: Mapping[str, Any], family: str, layers: int) -> Shape | None:
    """The window of each layer; an unknown pattern counts as none."""
    chunk = CHUNK_LLAMA4 if family == "llama4" else None
    window = _whole(own, "attention.sliding_window", "attention.chunk_size") or chunk
    pattern = own.get(f"attention.{STEP}", PATTERNS.get(family))
    if window is None or pattern is None:
        return (0,) * layers
    if isinstance(pattern, list):
        return tuple(window if windowed else 0 for windowed in pattern)
    if type(pattern) is not int or pattern < 0:
        return None
    return _alternating(layers, window, pattern, family)


def _alternating(layers: int, window: int, step: int, family: str) -> Shape:
    """A window or 0 for each layer. Of `step` layers the last sees everything; negative: the
    first; 0: none does."""
    place = 0 if step < 0 else step - 1
    full = {i for i in range(layers) if step and i % abs(step) == place}
    if family in LAST_IN_FULL:
        full.add(layers - 1)
    return tuple(0 if i in full else window for i in range(layers))


def _kv_heads(config: Mapping[str, Any], place: int) -> int | None:
    """Of the layer at `place`: they may be told for each."""
    stated = config.get("num_key_value_heads")
    if isinstance(stated, list):
        found = stated[place]
        return found if type(found) is int and 0 <= found < LARGEST else None
    if stated is None and config.get("multi_query") is True:
        return 1
    known = _whole(config, "num_key_value_heads", "num_kv_heads")
    return known or _whole(config, "num_attention_heads", "n_head", "n_heads")


def _head_size(config: Mapping[str, Any]) -> int | None:
    """Where it is not stated, the width is shared out between the heads."""
    width = _whole(config, "hidden_size", "n_embd", "d_model")
    heads = _whole(config, "num_attention_heads", "n_head", "n_heads")
    return _whole(config, "head_dim") or (width // heads if width and heads else None)


def _layers(config: Mapping[str, Any], *keys: str) -> int | None:
    found = _whole(config, *keys)
    return found if found is not None and found <= MOST_LAYERS else None


def _whole(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that holds a number that such a value may have."""
    values = (config.get(key) for key in keys)
    return next((v for v in values if type(v) is int and 0 < v < LARGEST), None)
