"""Writes small GGUF files for tests: raw headers byte by byte, and tiny models as llama.cpp would.

The forward conversion here is written from llama.cpp's converter, not from engine/gguf.py, so that
a round trip says something.
"""

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

STRING, ARRAY, U32, F32 = 8, 9, 4, 6


def text(value: str | bytes) -> bytes:
    """A string as the format writes it."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, payload: bytes) -> bytes:
    """One metadata entry."""
    return text(key) + struct.pack("<I", kind) + payload


def texts(key: str, values: Iterable[str | bytes]) -> bytes:
    """A metadata entry that is an array of strings."""
    items = [text(value) for value in values]
    return pair(key, ARRAY, struct.pack("<IQ", STRING, len(items)) + b"".join(items))


def tensor(name: str, dims: Iterable[int], kind: int = 0, offset: int = 0) -> bytes:
    """One row of the tensor table; `dims` in ggml's order, fastest first."""
    dims = list(dims)
    sizes = struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


def raw_file(
    path: Path,
    pairs: Iterable[bytes] = (),
    tensors: Iterable[bytes] = (),
    data: bytes = b"",
    version: int = 3,
    alignment: int = 32,
    counts: tuple[int, int] | None = None,
) -> Path:
    """A file put together from its parts; `counts` (tensors, pairs) overrides the true ones."""
    pairs, tensors = list(pairs), list(tensors)
    tensor_count, pair_count = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, tensor_count, pair_count)
    head += b"".join(pairs) + b"".join(tensors)
    path.write_bytes(head + b"\0" * (-len(head) % alignment) + data)
    return path


def byte_level_metadata(
    words: Iterable[str] = (), added: Mapping[str, int] | None = None, pre: str = "gpt-2"
) -> dict[str, Any]:
    """A byte-level vocabulary: the 256 bytes, `words` joined from pairs, `added` text -> type."""
    from tests.folders import byte_alphabet

    tokens, merges = byte_alphabet(), []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in tokens:
                tokens.append(word[:end])
                merges.append(f"{word[: end - 1]} {word[end - 1]}")
    types = [1] * len(tokens) + list((added or {}).values())
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens + list(added or {}),
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
    }


def write_gguf(
    path: Path,
    architecture: str,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Any],
    quantisation: str = "F32",
) -> Path:
    """A file with these tensors (numpy, as torch shapes them); matrices are quantised.

    Keys starting with a dot are put under the architecture.
    """
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        _add(writer, architecture + key if key.startswith(".") else key, value)
    for name, values in tensors.items():
        matrix = values.ndim > 1 and quantisation != "F32"
        kind = gguf.GGMLQuantizationType[quantisation if matrix else "F32"]
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: Any, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value:
        writer.add_array(key, value)


def converted(model: Any, architecture: str) -> dict[str, Any]:
    """The weights of a transformers model by llama.cpp's names, changed as its converter does."""
    import gguf
    import numpy as np

    config = model.config
    kind = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    result: dict[str, Any] = {}
    for parameter, value in model.named_parameters():
        values = value.detach().float().numpy()
        if parameter.endswith("experts.gate_up_proj"):
            layer = f"blk.{parameter.split('.')[2]}."
            gate, up = np.split(values, 2, axis=1)
            result[layer + "ffn_gate_exps.weight"] = np.ascontiguousarray(gate)
            result[layer + "ffn_up_exps.weight"] = np.ascontiguousarray(up)
            continue
        name = names.get_name(parameter, try_suffixes=(".weight", ".bias"))
        assert name is not None, parameter
        if parameter.endswith("experts.down_proj"):
            name += ".weight"
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        if architecture == "llama" and ".attn_q." in name:
            values = _permuted(values, config.num_attention_heads)
        if architecture == "llama" and ".attn_k." in name:
            values = _permuted(values, config.num_key_value_heads)
        result[name] = values
    return result


def _permuted(values: Any, heads: int) -> Any:
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def settings(config: Any) -> dict[str, Any]:
    """What every architecture's file says of a transformers configuration."""
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    head_dim = getattr(config, "head_dim", None)
    return {
        ".context_length": config.max_position_embeddings,
        ".embedding_length": config.hidden_size,
        ".feed_forward_length": config.intermediate_size,
        ".block_count": config.num_hidden_layers,
        ".attention.head_count": config.num_attention_heads,
        ".attention.head_count_kv": config.num_key_value_heads,
        ".attention.key_length": head_dim or config.hidden_size // config.num_attention_heads,
        ".attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        ".rope.freq_base": float(rope["rope_theta"]),
    }
