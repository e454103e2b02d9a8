"""The facts of a model that its memory follows from, by kind of tensor and by layer.

Knows names and shapes of tensors, and the keys that say what a layer keeps of a token. Counts
numbers, not bytes: those depend on the precision (`engine.memory`). Files come from strangers: a
value of the wrong kind or size means that nothing is known.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, TypedDict

from engine.library import families

MOST_LAYERS = 4096
LARGEST = 2**31
# Tables that are looked up, not multiplied: positions, token types.
TABLE = re.compile(r"(embed|wpe|wte)[^.]*\.weight$")
# Models whose layers alternate where their configuration does not list them: every so manieth
# layer sees everything (the defaults of their configurations in transformers 5.24).
PATTERNS = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6}
WINDOWED = ("sliding_attention", "chunked_attention")
Shape = tuple[int, ...]


class Weights(TypedDict, total=False):
    """Numbers in all tensors by kind, as `ModelInfo` names them; empty where not known."""

    linear: int
    linear_rows: int
    embedding: int
    head: int
    other: int


class Caches(TypedDict, total=False):
    """What each layer keeps, as `ModelInfo` names it; empty where not known."""

    cache_widths: Shape
    cache_windows: Shape


def weights(
    shapes: Mapping[str, Shape], table: str | None, head: str | None, tied: bool
) -> Weights:
    """The numbers in the tensors of these `shapes`.

    `table` and `head` name the embedding and the output matrix; when `tied` the second is a copy
    of the first and is not counted.
    """
    if table not in shapes:
        return {}
    found = Weights(linear=0, linear_rows=0, embedding=0, head=0, other=0)
    for name, shape in shapes.items():
        numbers = math.prod(shape)
        if name == table:
            found["embedding"] += numbers
        elif name == head:
            found["head"] += 0 if tied else numbers
        elif len(shape) >= 2 and name.endswith(".weight") and not TABLE.search(name):
            found["linear"] += numbers
            found["linear_rows"] += math.prod(shape[:-1])
        else:
            found["other"] += numbers
    return found


def caches_of_config(config: Mapping[str, Any], model_type: str) -> Caches:
    """What a config.json says.

    Source: `get_layer_types_and_kwargs` in transformers 5.24's cache_utils, and head_dim,
    num_key_value_heads, kv_lora_rank and their kin in its configurations.
    """
    layers = _layers(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if layers is None or families.is_recurrent(model_type, config) or "global_head_dim" in config:
        return {}
    rank, rotary = _whole(config, "kv_lora_rank"), _whole(config, "qk_rope_head_dim")
    if rank and rotary:  # the compressed latent and one rotary key for all heads
        widths: Shape | None = _each(layers, rank + rotary)
    else:
        widths = _widths(layers, _kv_heads(config), _head_size(config))
    shared = _whole(config, "num_kv_shared_layers") or 0
    if widths is not None and shared:
        widths = widths[: max(layers - shared, 0)] + (0,) * min(shared, layers)
    return _facts(widths, _windows(config, model_type, layers))


def caches_of_gguf(metadata: Mapping[str, Any], architecture: str) -> Caches:
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
    window = _whole(own, "attention.sliding_window")
    windows: Shape | None = _each(layers, 0)
    if window is not None:
        pattern = own.get("attention.sliding_window_pattern", PATTERNS.get(architecture))
        if isinstance(pattern, list):
            windows = tuple(window if w else 0 for w in pattern)
        else:
            windows = _alternating(layers, window, 0 if architecture == "phi3" else pattern)
    return _facts(_widths(layers, kv_heads, size), windows)


def _facts(widths: Shape | None, windows: Shape | None) -> Caches:
    if widths is None or windows is None or len(widths) != len(windows):
        return {}
    return Caches(cache_widths=widths, cache_windows=windows)


def _widths(layers: int, kv_heads: Any, size: int | None) -> Shape | None:
    """Keys and values of a token; the heads may be told for each layer."""
    heads = list(kv_heads) if isinstance(kv_heads, list) else [kv_heads] * layers
    if size is None or not all(type(h) is int and 0 <= h < LARGEST for h in heads):
        return None
    return tuple(2 * h * size for h in heads)


def _kv_heads(config: Mapping[str, Any]) -> Any:
    if isinstance(config.get("num_key_value_heads"), list):
        return config["num_key_value_heads"]
    stated = _whole(config, "num_key_value_heads", "num_kv_heads")
    if stated is None and config.get("multi_query") is True:
        return 1
    return stated or _whole(config, "num_attention_heads", "n_head", "n_heads")


def _head_size(config: Mapping[str, Any]) -> int | None:
    """Where it is not stated, the width is shared out between the heads."""
    width = _whole(config, "hidden_size", "n_embd", "d_model")
    heads = _whole(config, "num_attention_heads", "n_head", "n_heads")
    return _whole(config, "head_dim") or (width // heads if width and heads else None)


def _windows(config: Mapping[str, Any], model_type: str, layers: int) -> Shape | None:
    """Tokens that each layer keeps, 0 for all of them; None for a kind that is not known."""
    window = _whole(config, "sliding_window", "attention_chunk_size")
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        if not {str(kind) for kind in kinds} <= {"full_attention", *WINDOWED}:
            return None
        windowed = [kind in WINDOWED for kind in kinds]
        return None if any(windowed) and not window else tuple((window or 0) * w for w in windowed)
    # Qwen states a window that it does not use unless it says so.
    used = config.get("use_sliding_window", not model_type.startswith("qwen"))
    if window is None or used is not True:
        return _each(layers, 0)
    first = config.get("max_window_layers")
    if type(first) is int:
        return tuple(window if i >= first else 0 for i in range(layers))
    pattern = config.get("sliding_window_pattern", PATTERNS.get(model_type, 0))
    return _alternating(layers, window, pattern)


def _alternating(layers: int, window: int, pattern: Any) -> Shape | None:
    """Of `pattern` layers the last sees everything; 0: none does."""
    if type(pattern) is not int or pattern < 0:
        return None
    return tuple(0 if pattern and (i + 1) % pattern == 0 else window for i in range(layers))


def _each(layers: int, value: int) -> Shape:
    return (value,) * layers


def _layers(config: Mapping[str, Any], *keys: str) -> int | None:
    found = _whole(config, *keys)
    return found if found is not None and found <= MOST_LAYERS else None


def _whole(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that holds a number that such a value may have."""
    values = (config.get(key) for key in keys)
    return next((v for v in values if type(v) is int and 0 < v < LARGEST), None)
