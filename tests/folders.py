"""Tiny model folders for tests: F-BYTE tokenizer and F-TINY models of the cases.

A random model is almost uniform, so nothing drafted by lookup would be accepted: its output
matrix is sharpened. torch is imported inside functions; a test that needs only headers pays
nothing for it before it asks for weights.
"""

import json
import math
from pathlib import Path
from typing import Any

SPECIAL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
BOS, EOS, IM_START, IM_END, THINK, END_THINK = range(256, 262)

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_alphabet() -> list[str]:
    """The printable character that byte-level BPE (GPT-2) writes for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def byte_tokenizer_json() -> str:
    """tokenizer.json of F-BYTE: ids 0 to 255 are the bytes, 256 to 261 the special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {character: byte for byte, character in enumerate(byte_alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in SPECIAL]
    )
    return tokenizer.to_str()


def tiny_config(**changes: Any) -> dict[str, Any]:
    """config.json of F-TINY, with `changes`."""
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "vocab_size": 262,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "dtype": "float32",
    }
    return config | changes


def tokenizer_config(**changes: Any) -> dict[str, Any]:
    """tokenizer_config.json of F-BYTE, with `changes`."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
    }
    return config | changes


def write_json(path: Path, value: Any) -> Path:
    """`value` as JSON in `path`."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_model(
    folder: Path,
    *,
    config: dict[str, Any] | None = None,
    seed: int = 1,
    tokenizer: bool = True,
    sharpen: float = 50.0,
    layers: int | None = None,
    template: str | None = CHATML,
    dtype: str = "float32",
) -> Path:
    """A complete model folder with random weights; the same arguments give the same weights.

    `layers` keeps only that many of the first layers of the same weights: a weak draft.
    """
    config = {**(config or tiny_config()), "dtype": dtype}
    state = _weights(config, seed, sharpen)
    if layers is not None:
        gone = tuple(f"model.layers.{i}." for i in range(layers, config["num_hidden_layers"]))
        state = {name: tensor for name, tensor in state.items() if not name.startswith(gone)}
        config["num_hidden_layers"] = layers
    folder.mkdir(parents=True, exist_ok=True)
    _save(state, folder / "model.safetensors")
    write_json(folder / "config.json", config)
    ids = {name: config[name] for name in ("bos_token_id", "eos_token_id") if name in config}
    write_json(folder / "generation_config.json", ids)
    if tokenizer:
        write_tokenizer(folder)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


def write_tokenizer(folder: Path) -> Path:
    """The two files of F-BYTE in `folder`."""
    (folder / "tokenizer.json").write_text(byte_tokenizer_json(), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", tokenizer_config())
    return folder


def write_sharded(folder: Path, **model: Any) -> Path:
    """The folder of `write_model` with its weights in two shards and an index."""
    from safetensors.torch import load_file

    write_model(folder, **model)
    single = folder / "model.safetensors"
    state = load_file(single)
    single.unlink()
    names = sorted(state)
    shards = {
        "model-00001-of-00002.safetensors": names[: len(names) // 2],
        "model-00002-of-00002.safetensors": names[len(names) // 2 :],
    }
    for file, part in shards.items():
        _save({name: state[name] for name in part}, folder / file)
    index = {
        "metadata": {"total_size": sum(t.numel() * t.element_size() for t in state.values())},
        "weight_map": {name: file for file, part in shards.items() for name in part},
    }
    write_json(folder / "model.safetensors.index.json", index)
    return folder


def write_bare(folder: Path, shapes: dict[str, list[int]] | None = None, **config: Any) -> Path:
    """A folder whose weights are zeros in `shapes`: enough for whoever reads headers only."""
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", shapes or {"model.norm.weight": [64]})
    write_json(folder / "config.json", tiny_config(**config))
    return write_tokenizer(folder)


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> Path:
    """float32 zeros in `shapes`, written without torch."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
    return path


def write_gguf(path: Path, shapes: dict[str, list[int]], **metadata: Any) -> Path:
    """A GGUF of zeros; "__" in a keyword stands for the dot of a metadata key."""
    import numpy as np
    from gguf import GGUFWriter

    writer = GGUFWriter(path, metadata.pop("architecture", "llama"))
    add = {str: writer.add_string, int: writer.add_uint32, list: writer.add_array}
    for key, value in metadata.items():
        add[type(value)](key.replace("__", "."), value)
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(config: dict[str, Any], seed: int, sharpen: float) -> dict[str, Any]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    known = AutoConfig.for_model(**config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(known, dtype=getattr(torch, config["dtype"]))
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if known.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    elif "lm_head.weight" in state:
        state["lm_head.weight"] *= sharpen
    return state


def _save(state: dict[str, Any], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(state, path, metadata={"format": "pt"})
