"""The settings of a GGUF file as a transformers configuration."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PreTrainedConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.errors import Incomplete, LoadError, Unsupported
from engine.families import require_gguf, unsupported_setting
from engine.gguf.blocks import has, missing, read_tensor
from engine.gguf.tokenizer import eos_ids_of, token_id
from engine.library.gguf import Header

ROPE_FACTORS = "rope_freqs.weight"


def config_of(header: Header) -> PreTrainedConfig:
    """The configuration of the model in a GGUF file.

    Raises Unsupported for an architecture or a setting that cannot be carried over, Incomplete
    when a setting is missing or senseless.
    """
    architecture = architecture_of(header)
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


@dataclass(frozen=True)
class Architecture:
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
        return unsupported_setting(self.file, key, self.architecture)

    def _bad(self, key: str, value: Any) -> LoadError:
        if isinstance(value, list):  # one value per layer: another architecture in disguise
            return self.refused(key)
        return Incomplete(
            "gguf_setting_missing",
            "In {file} the setting {key} is missing or damaged.",
            file=self.file,
            key=key,
        )


def architecture_of(header: Header) -> Architecture:
    name = str(header.metadata.get("general.architecture"))
    require_gguf(name)
    return _ARCHITECTURES[name]


def _common(settings: _Settings, header: Header) -> dict[str, Any]:
    """What every supported architecture has, by transformers' names."""
    embedding = next((t for t in header.tensors if t.name == "token_embd.weight"), None)
    width, heads = settings.whole("embedding_length"), settings.whole("attention.head_count")
    layers = settings.whole("block_count")
    head_dim = settings.whole("attention.key_length", width // heads)
    if embedding is None or len(embedding.shape) != 2 or layers > len(header.tensors):
        raise missing(header, "token_embd.weight")
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
        "tie_word_embeddings": not has(header, "output.weight"),
        "bos_token_id": token_id(header, "bos_token_id"),
        "eos_token_id": list(eos_ids_of(header)) or None,
        "pad_token_id": token_id(header, "padding_token_id"),
    }


def _rope(settings: _Settings, header: Header) -> dict[str, Any]:
    """Base and scaling of the rotary embedding. A factor without a type is linear."""
    rope: dict[str, Any] = {"rope_theta": settings.number("rope.freq_base", 10_000.0)}
    kind = settings.take("rope.scaling.type", "linear")
    factor = settings.number("rope.scaling.factor", 1.0)
    settings.take("rope.scaling.finetuned")
    if has(header, ROPE_FACTORS):
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
    if not has(header, ROPE_FACTORS):
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
    return read_tensor(header, info)


def _llama(settings: _Settings, header: Header, common: Mapping[str, Any]) -> dict[str, Any]:
    settings.same("expert_count", 0)
    settings.same("expert_used_count", 0)
    return {
        "attention_bias": has(header, "blk.0.attn_q.bias"),
        "mlp_bias": has(header, "blk.0.ffn_up.bias"),
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
    if has(header, "rope_factors_long.weight") or common["rope_parameters"].get("factor"):
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
    "llama": Architecture("llama", _llama, interleaved=True),
    "qwen2": Architecture("qwen2", _plain),
    "qwen2moe": Architecture("qwen2_moe", _qwen2_moe),
    "qwen3": Architecture("qwen3", _plain),
    "qwen3moe": Architecture("qwen3_moe", _qwen3_moe),
    "phi3": Architecture("phi3", _phi3),
    "gemma2": Architecture("gemma2", _gemma2, shifted=True),
    "gemma3": Architecture("gemma3_text", _gemma3, shifted=True),
}
