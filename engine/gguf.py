"""GGUF files as transformers models: configuration, weights, tokenizer, template.

Knows llama.cpp's names for settings and tensors, and what its converter does to weights. Does not
know the container (library/gguf.py), nor when, where or in which precision a model is wanted. What
a file says and this module cannot carry over is refused: a setting left out would still load, and
the answers would be a little wrong.

Source of every rule: conversion and model code of ggml-org/llama.cpp.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import gguf
import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.tokenization_utils_base import generate_merges

from engine import vocabulary
from engine.errors import Incomplete, LoadError, Unsupported
from engine.library.gguf import Header, TensorInfo

# Numbers dequantised at once: larger pieces leave the CPU's cache (measured). Whole blocks.
CHUNK = 2**17
ROPE_FACTORS = "rope_freqs.weight"


def config_of(header: Header) -> PreTrainedConfig:
    """The configuration of the model in a GGUF file.

    Raises Unsupported for an architecture or a setting that cannot be carried over, Incomplete
    when a setting is missing or senseless.
    """
    architecture = _architecture(header)
    settings = _Settings(header)
    mapping = _common(settings, header)
    mapping |= architecture.extra(settings, header, mapping)
    settings.close()
    try:
        config = AutoConfig.for_model(architecture.model_type, **mapping)
    except (ValueError, TypeError, KeyError, StrictDataclassError) as error:
        raise Incomplete(
            "gguf_settings_damaged",
            "The settings in {file} do not fit together.",
            file=header.path.name,
        ) from error
    _check_rope_factors(header, config)
    return config


def empty_model(
    config: PreTrainedConfig, dtype: torch.dtype, device: torch.device | str
) -> PreTrainedModel:
    """A model on `device` with everything but its weights: those hold whatever lay in memory.

    Tied weights are tied. Rotary tables and other buffers that no file stores are filled in, which
    a model made on the meta device would lack.
    """
    with torch.device(device), no_init_weights():
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]
    model.tie_weights()
    model.eval()  # type: ignore[no-untyped-call]
    return model


def tensors(
    header: Header, config: PreTrainedConfig, model: PreTrainedModel
) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and float32 values of each parameter of `model`, one at a time, tied ones once.

    Before the first is read, raises Incomplete when one is missing or of another shape, and
    Unsupported when the file holds a tensor that the model has no place for; while reading,
    Incomplete when the file has changed and Unsupported for blocks without a dequantiser.
    """
    plan = _plan(header, config, model)
    used = {info.name for infos in plan.values() for info in infos}
    for info in header.tensors:
        if info.name not in used and info.name != ROPE_FACTORS:
            raise Unsupported(
                "gguf_tensor_unknown",
                "{file} holds the tensor {tensor}, which has no place in the architecture "
                "{architecture}.",
                file=header.path.name,
                tensor=info.name,
                architecture=str(header.metadata["general.architecture"]),
            )
    return _read(header, model, config, plan)


def template_of(header: Header) -> str | None:
    """The chat template the file carries."""
    template = header.metadata.get("tokenizer.chat_template")
    return template if isinstance(template, str) else None


def special_tokens_of(header: Header) -> dict[str, str]:
    """Texts of `bos_token`, `eos_token`, `unk_token`, `pad_token`, as far as the file has them."""
    texts = _list(header, "tokens")
    ids = {name: _token_id(header, key) for name, key in _SPECIAL.items()}
    return {name: str(texts[index]) for name, index in ids.items() if index is not None}


def eos_ids_of(header: Header) -> tuple[int, ...]:
    """The ids that end an answer, ascending.

    As in llama.cpp: those the file names as end of sequence, of turn or of message, and the
    tokens that are known to end a turn. Files often name `<|endoftext|>` alone, though the model
    was taught to stop with `<|im_end|>`. A known text counts only as a control or user-defined
    token: else it is an ordinary word of this vocabulary.
    """
    named = {_token_id(header, key) for key in ("eos_token_id", "eot_token_id", "eom_token_id")}
    marked = (vocabulary.CONTROL, vocabulary.USER_DEFINED)
    pairs = zip(_list(header, "tokens"), _list(header, "token_type"), strict=False)
    known = {
        index for index, (text, type_) in enumerate(pairs) if type_ in marked and text in _ENDS
    }
    return tuple(sorted(known | {index for index in named if index is not None}))


def build_tokenizer(header: Header) -> Tokenizer:
    """The file's tokenizer; takes seconds, so keep what `to_str` gives.

    Control tokens are special, user-defined ones added. Begin-of-text is added by `encode` when
    the file asks for it, and not with `add_special_tokens=False`. Raises Unsupported when the way
    the vocabulary cuts text is not known, Incomplete when it is damaged.
    """
    metadata = header.metadata
    count = len(vocabulary.from_gguf(metadata).tokens)
    texts = metadata["tokenizer.ggml.tokens"][:count]
    types = metadata.get("tokenizer.ggml.token_type", [vocabulary.NORMAL] * count)[:count]
    kind = metadata["tokenizer.ggml.model"]
    if kind not in _BUILDERS:
        raise Unsupported(
            "tokenizer_kind", "Tokenizers of the kind {kind} are not supported.", kind=str(kind)
        )
    try:
        tokenizer = _BUILDERS[kind](header, texts, types)
        _add_tokens(tokenizer, header, texts, types)
        _add_bos(tokenizer, header)
    except LoadError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise Incomplete(
            "gguf_tokenizer_damaged", "The tokenizer in {file} is damaged.", file=header.path.name
        ) from error
    return tokenizer


@dataclass(frozen=True)
class _Architecture:
    """How llama.cpp's form of a model differs from transformers'.

    `interleaved`: rows of queries and keys are ordered for its kind of rotary embedding.
    `shifted`: norms are stored as weight + 1. `extra`: settings beyond the common ones,
    which it is given.
    """

    model_type: str
    extra: Callable[["_Settings", Header, Mapping[str, Any]], dict[str, Any]]
    interleaved: bool = False
    shifted: bool = False


class _Settings:
    """A file's settings under its architecture's name; what is read is crossed off."""

    def __init__(self, header: Header) -> None:
        self.file = header.path.name
        self.architecture = str(header.metadata["general.architecture"])
        prefix = self.architecture + "."
        self.left = {
            key.removeprefix(prefix): value
            for key, value in header.metadata.items()
            if key.startswith(prefix)
        }

    def take(self, key: str, default: Any = None) -> Any:
        return self.left.pop(key, default)

    def whole(self, key: str, default: int | None = None) -> int:
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
            raise self._bad(key, value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.take(key, default)
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self._bad(key, value)
        return float(value)

    def same(self, key: str, expected: Any) -> None:
        """Raises Unsupported when the file says something else than `expected`."""
        if self.take(key, expected) != expected:
            raise self.refused(key)

    def close(self) -> None:
        """Raises Unsupported when a setting has not been asked for."""
        for key in self.left:
            raise self.refused(key)

    def refused(self, key: str) -> Unsupported:
        return Unsupported(
            "gguf_setting_unsupported",
            "{file} uses the setting {key}, which is not supported for the architecture "
            "{architecture}.",
            file=self.file,
            key=key,
            architecture=self.architecture,
        )

    def _bad(self, key: str, value: Any) -> LoadError:
        if isinstance(value, list):  # one value per layer: another architecture in disguise
            return self.refused(key)
        return Incomplete(
            "gguf_setting_missing",
            "In {file} the setting {key} is missing or damaged.",
            file=self.file,
            key=key,
        )


def _architecture(header: Header) -> _Architecture:
    name = str(header.metadata.get("general.architecture"))
    if name not in _ARCHITECTURES:
        raise Unsupported(
            "gguf_architecture",
            "GGUF files of the architecture {architecture} cannot be loaded.",
            architecture=name,
        )
    return _ARCHITECTURES[name]


def _common(settings: _Settings, header: Header) -> dict[str, Any]:
    """What every supported architecture has, by transformers' names."""
    embedding = next((t for t in header.tensors if t.name == "token_embd.weight"), None)
    width, heads = settings.whole("embedding_length"), settings.whole("attention.head_count")
    layers = settings.whole("block_count")
    head_dim = settings.whole("attention.key_length", width // heads)
    if embedding is None or len(embedding.shape) != 2 or layers > len(header.tensors):
        raise _missing(header, "token_embd.weight")
    settings.same("attention.value_length", head_dim)
    settings.same("rope.dimension_count", head_dim)
    settings.same("attention.causal", True)
    # Rows of the embedding count, padding included; how rows lie in memory does not.
    settings.take("vocab_size")
    settings.take("tensor_data_layout")
    return {
        "vocab_size": embedding.shape[0],
        "hidden_size": width,
        "intermediate_size": settings.whole("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": settings.whole("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": settings.whole("context_length"),
        "rms_norm_eps": settings.number("attention.layer_norm_rms_epsilon"),
        "rope_parameters": _rope(settings, header),
        "tie_word_embeddings": not _has(header, "output.weight"),
        "bos_token_id": _token_id(header, "bos_token_id"),
        "eos_token_id": list(eos_ids_of(header)) or None,
        "pad_token_id": _token_id(header, "padding_token_id"),
    }


def _rope(settings: _Settings, header: Header) -> dict[str, Any]:
    """Base and scaling of the rotary embedding. A factor without a type is linear."""
    rope: dict[str, Any] = {"rope_theta": settings.number("rope.freq_base", 10_000.0)}
    kind = settings.take("rope.scaling.type", "linear")
    factor = settings.number("rope.scaling.factor", 1.0)
    settings.take("rope.scaling.finetuned")
    if _has(header, ROPE_FACTORS):
        if settings.architecture != "llama" or factor != 1.0:
            raise settings.refused(ROPE_FACTORS)
        return rope | _llama3_rope(header)
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return rope | {"rope_type": "default"}
    if kind == "linear":
        return rope | {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        original = settings.whole("rope.scaling.original_context_length")
        return rope | {
            "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original
        }  # fmt: skip
    raise settings.refused("rope.scaling.type")


def _llama3_rope(header: Header) -> dict[str, Any]:
    """Scaling of Llama 3.1 and later, of which a file keeps the resulting factors only.

    The largest factor is the scaling's; the rest is the same in all releases. Whether that gives
    the file's factors is for `_check_rope_factors`.
    """
    factors = _rope_factors(header)
    return {
        "rope_type": "llama3",
        "factor": float(factors.max()),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def _check_rope_factors(header: Header, config: PreTrainedConfig) -> None:
    if not _has(header, ROPE_FACTORS):
        return
    stored = _rope_factors(header)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    plain = 1.0 / config.rope_parameters["rope_theta"] ** steps
    if stored.shape != scaled.shape or not torch.allclose(plain / scaled, stored, rtol=1e-3):
        raise Unsupported(
            "gguf_rope_factors",
            "{file} stretches its rotary embedding in a way that is not supported.",
            file=header.path.name,
        )


def _rope_factors(header: Header) -> torch.Tensor:
    info = next(t for t in header.tensors if t.name == ROPE_FACTORS)
    with header.path.open("rb") as file:
        return _dequantised(file, header, info)


def _llama(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    settings.same("expert_count", 0)
    settings.same("expert_used_count", 0)
    return {
        "attention_bias": _has(header, "blk.0.attn_q.bias"),
        "mlp_bias": _has(header, "blk.0.ffn_up.bias"),
    }


def _plain(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _qwen2_moe(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    shared = settings.whole("expert_shared_feed_forward_length")
    return _experts(settings, norm=False) | {"shared_expert_intermediate_size": shared}


def _qwen3_moe(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    return _experts(settings, norm=True)


def _experts(settings: _Settings, norm: bool) -> dict[str, Any]:
    return {
        "num_experts": settings.whole("expert_count"),
        "num_experts_per_tok": settings.whole("expert_used_count"),
        "moe_intermediate_size": settings.whole("expert_feed_forward_length"),
        "norm_topk_prob": norm,
    }


def _phi3(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    if _has(header, "rope_factors_long.weight") or common["rope_parameters"].get("factor"):
        raise settings.refused("rope.scaling.type")
    return {"sliding_window": settings.take("attention.sliding_window") or None}


def _gemma2(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    return _windows(settings, common, pattern=2, largest=46) | {
        "attn_logit_softcapping": settings.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": settings.number("final_logit_softcapping", 30.0),
    }


def _gemma3(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    local = settings.number("rope.freq_base_swa", 10_000.0)
    return _windows(settings, common, pattern=6, largest=62) | {
        "rope_parameters": {
            "full_attention": common["rope_parameters"],
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        },
    }


def _windows(
    settings: _Settings, common: Mapping[str, Any], pattern: int, largest: int
) -> dict[str, Any]:
    """Which layers look at a window, and the scale of attention.

    Of `pattern` layers the last sees everything. The model with `largest` layers, the 27B, divides
    by another root than the head's size; no file says so.
    """
    layers, key = common["num_hidden_layers"], "attention.sliding_window_pattern"
    if isinstance(settings.left.get(key), list):
        windows = settings.take(key)
    else:
        step = settings.whole(key, pattern)
        windows = [(i + 1) % step != 0 for i in range(layers)]
    by_width = common["hidden_size"] // common["num_attention_heads"]
    return {
        "sliding_window": settings.whole("attention.sliding_window"),
        "layer_types": ["sliding_attention" if w else "full_attention" for w in windows],
        "query_pre_attn_scalar": by_width if layers == largest else common["head_dim"],
    }


_ARCHITECTURES = {
    "llama": _Architecture("llama", _llama, interleaved=True),
    "qwen2": _Architecture("qwen2", _plain),
    "qwen2moe": _Architecture("qwen2_moe", _qwen2_moe),
    "qwen3": _Architecture("qwen3", _plain),
    "qwen3moe": _Architecture("qwen3_moe", _qwen3_moe),
    "phi3": _Architecture("phi3", _phi3),
    "gemma2": _Architecture("gemma2", _gemma2, shifted=True),
    "gemma3": _Architecture("gemma3_text", _gemma3, shifted=True),
}

_Plan = Mapping[str, tuple[TensorInfo, ...]]


def _plan(header: Header, config: PreTrainedConfig, model: PreTrainedModel) -> _Plan:
    """For each parameter the tensors of the file that make it up."""
    name = str(header.metadata["general.architecture"])
    architecture = next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == name)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    stored = {info.name: info for info in header.tensors}
    plan = {}
    for parameter, value in model.named_parameters():
        sources = _sources(names, parameter)
        missing = next((source for source in sources if source not in stored), None)
        if missing is not None:
            raise _missing(header, missing)
        plan[parameter] = tuple(stored[source] for source in sources)
        if _joined_shape(plan[parameter]) != [size for size in value.shape if size > 1]:
            raise _missing(header, sources[0])
    return plan


def _sources(names: gguf.TensorNameMap, parameter: str) -> tuple[str, ...]:
    """Names in the file of what makes up a parameter. Experts are stored as gate and up apart."""
    stem, _, suffix = parameter.rpartition(".")
    if suffix not in ("weight", "bias"):
        stem, suffix = parameter, "weight"
    if stem.endswith(".experts.gate_up_proj"):
        layer = stem.split(".")[2]
        return f"blk.{layer}.ffn_gate_exps.weight", f"blk.{layer}.ffn_up_exps.weight"
    return (f"{names.get_name(stem) or stem}.{suffix}",)


def _joined_shape(infos: tuple[TensorInfo, ...]) -> list[int]:
    """Shape of gate and up, or of one tensor alone; axes of length 1 come and go in conversion."""
    shape = list(infos[0].shape)
    if any(info.shape != infos[0].shape for info in infos):
        return []
    if len(shape) > 1:
        shape[1] *= len(infos)
    return [size for size in shape if size > 1]


def _read(
    header: Header, model: PreTrainedModel, config: PreTrainedConfig, plan: _Plan
) -> Iterator[tuple[str, torch.Tensor]]:
    architecture = _architecture(header)
    shapes = {name: value.shape for name, value in model.named_parameters()}
    with header.path.open("rb") as file:
        for name, infos in plan.items():
            values = [_dequantised(file, header, info) for info in infos]
            joined = torch.cat(values, dim=1) if len(values) > 1 else values[0]
            yield name, _undone(architecture, config, infos[0].name, joined).reshape(shapes[name])


def _undone(
    architecture: _Architecture, config: PreTrainedConfig, name: str, values: torch.Tensor
) -> torch.Tensor:
    """The weights as they were before llama.cpp's converter changed them."""
    if architecture.shifted and name.endswith("norm.weight"):
        return values - 1
    if architecture.interleaved and ".attn_q." in name:
        return _halves(values, config.num_attention_heads)
    if architecture.interleaved and ".attn_k." in name:
        return _halves(values, config.num_key_value_heads)
    return values


def _halves(values: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of each head from pairs (0, 1), (2, 3) ... back to first halves and second halves."""
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])
    return pairs.transpose(1, 2).reshape(values.shape)


def _dequantised(file: BinaryIO, header: Header, info: TensorInfo) -> torch.Tensor:
    """One tensor as float32, read and dequantised in pieces."""
    kind = gguf.GGMLQuantizationType(info.ggml_type)
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    values = np.empty(math.prod(info.shape), np.float32)
    file.seek(info.offset)
    for start in range(0, values.size, CHUNK):
        piece = values[start : start + CHUNK]
        # As one long row: gguf takes 16 rows at a time, which are too few for numpy (measured).
        data = np.frombuffer(file.read(piece.size // block * block_bytes), np.uint8)
        if data.size * block != piece.size * block_bytes:
            raise _missing(header, info.name)
        try:
            piece[:] = gguf.dequantize(data, kind)
        except NotImplementedError as error:
            raise Unsupported(
                "gguf_quantisation",
                "{file} is quantised as {type}, which cannot be read.",
                file=header.path.name,
                type=kind.name,
            ) from error
    return torch.from_numpy(values).reshape(info.shape)


def _has(header: Header, tensor: str) -> bool:
    return any(info.name == tensor for info in header.tensors)


def _missing(header: Header, tensor: str) -> Incomplete:
    return Incomplete(
        "gguf_tensor_missing",
        "In {file} the tensor {tensor} is missing or of another size than the settings say.",
        file=header.path.name,
        tensor=tensor,
    )


_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
# Tokens that end a turn, or all text, in the models of the supported architectures.
_ENDS = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|EOT|>",
}  # fmt: skip


def _token_id(header: Header, key: str) -> int | None:
    """An id the metadata names, None where it names none or one beyond the vocabulary."""
    index = header.metadata.get(f"tokenizer.ggml.{key}")
    count = len(_list(header, "tokens"))
    return index if isinstance(index, int) and 0 <= index < count else None


def _list(header: Header, key: str) -> list[Any]:
    values = header.metadata.get(f"tokenizer.ggml.{key}")
    return values if isinstance(values, list) else []


# What transformers' table lacks: how the text is cut before byte pairs are joined.
_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell")
_GPT2 = ("gpt-2", "phi-2", "olmo", "mpt")
# Words found whole in the vocabulary are not put together from pairs; and text begins with BOS.
_LLAMA3 = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2")
_WHOLE_WORDS = (*_LLAMA3, "tekken")


def _byte_level(header: Header, texts: list[str], types: list[int]) -> Tokenizer:
    pre = header.metadata.get("tokenizer.ggml.pre")
    steps: list[pre_tokenizers.PreTokenizer] = []
    if pre in GGUF_PRE_TOKENIZER_SPLITS:
        steps.append(pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS[pre]), "isolated"))
    elif pre in _DIGITS:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    elif pre not in _GPT2:
        raise Unsupported(
            "gguf_pre_tokenizer",
            "{file} cuts text into words as {pre}, which is not supported.",
            file=header.path.name,
            pre=str(pre),
        )
    by_regex = pre not in GGUF_PRE_TOKENIZER_SPLITS
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=by_regex))
    tokenizer = Tokenizer(BPE(_ids(texts), _merges(header), ignore_merges=pre in _WHOLE_WORDS))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(header: Header, texts: list[str], types: list[int]) -> Tokenizer:
    texts = [_spelled(text) for text in texts]
    ids = _ids(texts)
    # No text is put together to what is not text: "<", "s>" must not become the token <s>.
    words = (vocabulary.NORMAL, vocabulary.USER_DEFINED)
    marks = {text for text, type_ in zip(texts, types, strict=True) if type_ not in words}
    merges = _merges(header) or generate_merges(ids, _ranks(header, texts), skip_tokens=marks)
    unknown = _token_id(header, "unknown_token_id")
    unk_token = None if unknown is None else texts[unknown]
    mark = vocabulary.SPACE_MARK
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", mark)]
    back: list[decoders.Decoder] = [decoders.Replace(mark, " "), decoders.ByteFallback()]
    back.append(decoders.Fuse())
    if header.metadata.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend(mark))
        back.append(decoders.Strip(" ", 1, 0))
    tokenizer = Tokenizer(BPE(ids, merges, byte_fallback=True, fuse_unk=True, unk_token=unk_token))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(back)
    return tokenizer


_BUILDERS = {"gpt2": _byte_level, "llama": _sentencepiece}


def _spelled(text: str) -> str:
    """Runs of spaces are stored as they read, and meant as a token like any other."""
    return vocabulary.SPACE_MARK * len(text) if text and not text.strip(" ") else text


def _ranks(header: Header, texts: list[str]) -> dict[str, float]:
    """How early a token is put together. Gemma's scores leave out runs of spaces, its order not."""
    scores = header.metadata["tokenizer.ggml.scores"]
    if str(header.metadata["general.architecture"]).startswith("gemma"):
        scores = range(0, -len(texts), -1)
    return dict(zip(texts, scores, strict=False))


def _ids(texts: list[str]) -> dict[str, int]:
    ids = {text: index for index, text in enumerate(texts)}
    if len(ids) < len(texts):
        raise ValueError("a token occurs twice")
    return ids


def _merges(header: Header) -> list[tuple[str, str]]:
    pairs = (merge.split(" ") for merge in header.metadata.get("tokenizer.ggml.merges", ()))
    return [(left, right) for left, right in pairs]


def _add_tokens(tokenizer: Tokenizer, header: Header, texts: list[str], types: list[int]) -> None:
    """Tokens that are found in the text before anything else, whole."""
    # Phi-3's template puts a line break behind each of them, which the model never saw.
    strips = header.metadata["general.architecture"] == "phi3"
    for kind, special in ((vocabulary.CONTROL, True), (vocabulary.USER_DEFINED, False)):
        tokenizer.add_tokens(
            [
                AddedToken(text, special=special, normalized=False, rstrip=strips and special)
                for text, type_ in zip(texts, types, strict=True)
                if type_ == kind and tokenizer.token_to_id(text) is not None
            ]
        )


def _add_bos(tokenizer: Tokenizer, header: Header) -> None:
    """Files that do not say: sentencepiece and Llama 3 begin a text with BOS."""
    metadata = header.metadata
    sentencepiece = metadata["tokenizer.ggml.model"] == "llama"
    usual = sentencepiece or metadata.get("tokenizer.ggml.pre") in _LLAMA3
    bos = _token_id(header, "bos_token_id")
    if bos is not None and metadata.get("tokenizer.ggml.add_bos_token", usual):
        text = tokenizer.id_to_token(bos)
        tokenizer.post_processor = TemplateProcessing(
            single=[text, "$A"], special_tokens=[(text, bos)]
        )
