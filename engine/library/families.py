"""What a configuration's names tell of a model: head or model, recurrent or not.

Knows model types, class names and layer kinds, of config.json and of GGUF alike. Does not open
files.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.api import Kind

# Families with a state that cannot be cut back: model classes with `_is_stateful` and configs
# with convolution or linear attention in transformers 5.24, LLM_ARCH_* with ssm, wkv or shortconv
# tensors in llama.cpp. Compared without "-", "_" and ".", so both spellings are found.
RECURRENT = (
    "arwkv", "bailinghybrid", "bamba", "deepseekv4", "falconh1", "falconmamba", "glm5next",
    "granitehybrid", "granitemoehybrid", "inkling", "jamba", "kimilinear", "laramini", "lfm2",
    "lfm3", "mamba", "minicpmocr", "minicpmv46", "minicpmv47", "minimaxtext", "nemotron35",
    "nemotronh", "olmohybrid", "plamo2", "qwen35", "qwen3next", "qwen4exp", "recurrentgemma",
    "rwkv", "xlstm", "zamba", "zaya",
)  # fmt: skip
RECURRENT_EXACTLY = ("minimax",)  # its successors minimax_m2 and on are pure attention

LAYER_LISTS = ("layer_types", "layers_block_type", "block_types")
RECURRENT_LAYER = re.compile(r"linear|conv|mamba|recurrent|hybrid|ssm|delta|lstm|rwkv")
RECURRENT_GGUF_KEY = re.compile(r"\.(ssm|wkv|shortconv)\.")

HEAD_CLASS = re.compile(r"eagle|dflash|dspark|medusa|speculator|hydra|mtp")
HEAD_KEYS = (
    "draft_vocab_size", "dflash_config", "eagle_config", "medusa_num_heads",
    "speculators_config", "speculators_model_type",
)  # fmt: skip
HEAD_TYPES = ("eagle", "dflash", "dspark", "medusa", "mlpspeculator", "gemma4assistant")

CAUSAL_CLASS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
NOT_CAUSAL_GGUF = ("clip", "t5", "wavtokenizer", "whisper", "mmproj")


def kind_of(model_type: str, config: Mapping[str, Any]) -> Kind:
    """HEAD for a drafting head that reads a target's hidden states (methods.md 6 and 7)."""
    classes = " ".join(names(config.get("architectures"))).lower()
    head = (
        any(config.get(key) for key in HEAD_KEYS)
        or _plain(model_type).startswith(HEAD_TYPES)
        or HEAD_CLASS.search(classes)
    )
    return Kind.HEAD if head else Kind.MODEL


def is_causal(config: Mapping[str, Any]) -> bool:
    """Whether the class named in a config.json continues text; without a name it may."""
    if config.get("is_encoder_decoder") is True:
        return False
    classes = names(config.get("architectures"))
    return not classes or any(name.endswith(CAUSAL_CLASS) for name in classes)


def is_causal_gguf(architecture: str) -> bool:
    """Whether a GGUF architecture continues text, rather than encoding text, images or sound."""
    return not architecture.startswith(NOT_CAUSAL_GGUF) and "bert" not in architecture


def is_recurrent(model_type: str, config: Mapping[str, Any]) -> bool:
    """Whether a model keeps a running state: by its family or by the kinds of its layers."""
    kinds = (kind for key in LAYER_LISTS for kind in names(config.get(key)))
    return _recurrent_family(model_type) or any(RECURRENT_LAYER.search(kind) for kind in kinds)


def is_recurrent_gguf(architecture: str, keys: Iterable[str]) -> bool:
    """The same for a GGUF architecture and the keys of its metadata."""
    return _recurrent_family(architecture) or any(RECURRENT_GGUF_KEY.search(key) for key in keys)


def names(value: Any) -> list[str]:
    """The strings of a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _recurrent_family(name: str) -> bool:
    plain = _plain(name)
    return plain.startswith(RECURRENT) or plain in RECURRENT_EXACTLY


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name.lower())
