"""What a configuration's names tell of a model: head or model, recurrent or not, and how it lies
in memory on a processor.

Knows model types, class names and layer kinds, of config.json and of GGUF alike, and what a
configuration means where it leaves something out. Does not open files.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from engine.api import Kind, ModelInfo
from engine.errors import Unsupported

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

# Those whose state can be put back to what it was, as transformers 5.24 has them: it lies in the
# cache alone, and a layer takes (hidden_states, cache, ...). Tried with tiny models
# (tests/engine/test_rollback.py).
REWINDABLE = frozenset({
    "bailing_hybrid", "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba",
    "kimi_linear", "lfm2", "lfm2_moe", "lfm3", "mamba", "mamba2", "nemotron_h", "olmo_hybrid",
    "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "zamba2",
})  # fmt: skip

# Of these a chunk starts from nothing in transformers 5.24, whatever came before: only a single row
# goes on from a state.
FORGETTING = frozenset({"falcon_mamba", "jamba", "mamba"})

LAYER_LISTS = ("layer_types", "layers_block_type", "block_types")
RECURRENT_LAYER = re.compile(r"linear|conv|mamba|recurrent|hybrid|ssm|delta|lstm|rwkv")
RECURRENT_GGUF_KEY = re.compile(r"\.(ssm|wkv|shortconv)\.")

HEAD_CLASS = re.compile(r"eagle|dflash|dspark|medusa|speculator|hydra|mtp")
HEAD_KEYS = (
    "draft_vocab_size", "dflash_config", "eagle_config", "medusa_num_heads",
    "speculators_config", "speculators_model_type",
)  # fmt: skip
HEAD_TYPES = (
    "eagle", "dflash", "dspark", "medusa", "mlpspeculator", "gemma4assistant",
    "gemma4unifiedassistant",
)  # fmt: skip

# What is left out of configurations that were saved as differences: the defaults of their classes
# in transformers 5.24. Other families state what their size follows from.
_GEMMA: Mapping[str, Any] = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 256_000,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
_GEMMA3: Mapping[str, Any] = {
    **_GEMMA,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}
_GEMMA3N: Mapping[str, Any] = {
    "sliding_window": 512,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "num_kv_shared_layers": 15,
    "tie_word_embeddings": True,
}
_INDEXED: Mapping[str, Any] = {"index_head_dim": 128}
_LLAMA4: Mapping[str, Any] = {"attention_chunk_size": 8192}
UNSTATED: Mapping[str, Mapping[str, Any]] = {
    "gemma": {**_GEMMA, "num_attention_heads": 16, "num_key_value_heads": 16},
    "gemma2": {**_GEMMA, "sliding_window": 4096},
    "gemma3_text": _GEMMA3,
    "gemma3": _GEMMA3,
    "gemma3n_text": _GEMMA3N,
    "gemma3n": _GEMMA3N,
    "gemma4_text": {"sliding_window": 512, "tie_word_embeddings": True},
    "gemma4": {"sliding_window": 512, "tie_word_embeddings": True},
    "gemma4_unified_text": {"sliding_window": 1024},
    "gemma4_unified": {"sliding_window": 1024},
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    "lfm2": {"tie_word_embeddings": True},
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "axk2": _INDEXED,
    "deepseek_v32": _INDEXED,
    "glm_moe_dsa": _INDEXED,
    "hy_v4": _INDEXED,
    "olmoe": {"num_experts": 64, "num_experts_per_tok": 8},
    "afmoe": {"sliding_window": 1024},
    "beam": {"sliding_window": 512},
    "cohere2": {"sliding_window": 4096},
    "cohere2_moe": {"sliding_window": 4096},
    "cwm": {"sliding_window": 8192},
    "dory": {"sliding_window": 1024},
    "dots1": {"sliding_window": 4096},
    "exaone4": {"sliding_window": 4096},
    "exaone_moe": {"sliding_window": 4096},
    "gpt_oss": {"sliding_window": 128},
    "granite_swa": {"sliding_window": 128},
    "granitemoe_swa": {"sliding_window": 128},
    "kolibri1": {"sliding_window": 513},
    "ministral": {"sliding_window": 4096},
    "mistral": {"sliding_window": 4096},
    "moshi": {"sliding_window": 3000},
    "olmo3": {"sliding_window": 4096},
    "vaultgemma": {"sliding_window": 4096},
}

# Loaded with their parts for images and sound: transformers 5.24 has no class of their text alone
# that takes their files.
WHOLE = ("gemma3", "gemma3n", "gemma4", "mllama")

# The architectures that `engine.gguf` reads, and those of them that it reads with experts.
GGUF = frozenset({"gemma2", "gemma3", "llama", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})
GGUF_MIXTURES = frozenset({"qwen2moe", "qwen3moe"})

# How a family's weights lie in memory on a processor, tried with tiny models of transformers 5.24
# (tests/engine/test_held.py): our kernels take layers that are `nn.Linear` itself and experts
# with gate above up; what else there is stays in 32 bits. A model that does not run on our kernels
# is the library's: 16 bits and not quantised, keys and values too.
Held = Literal["packed", "wide experts", "wide", "library's"]
PACKED = frozenset({
    "afmoe", "apertus", "arcee", "axk1", "axk2", "bamba", "beam", "bitnet", "bloom", "codegen",
    "cohere", "cohere2", "cohere2_moe", "cpmant", "cwm", "deepseek_v3", "deepseek_v32",
    "diffllama", "doge", "dots1", "ernie4_5", "ernie4_5_moe", "exaone", "exaone4", "exaone_moe",
    "falcon_h1", "flex_olmo", "flint", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma4",
    "gemma4_text", "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite",
    "glm_moe_dsa", "gpt_bigcode", "gpt_neox", "gptj", "granite", "granitemoe", "granitemoehybrid",
    "granitemoeshared", "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "hyperclovax",
    "internlm3", "iquestcoder", "jais2", "kolibri1", "laguna", "lfm2", "llama", "mamba2",
    "mellum", "minicpm3", "ministral", "ministral3", "mistral", "mixtral", "moshi", "mpt",
    "nanochat", "nemotron", "olmo", "olmo2", "olmo3", "olmo_hybrid", "olmoe", "persimmon", "phi",
    "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text",
    "qwen3_5_text", "qwen3_moe", "qwen3_next", "recurrent_gemma", "sarvam_mla", "sarvam_moe",
    "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "vaultgemma", "youtu",
})  # fmt: skip
WIDE_EXPERTS = frozenset({"aria_text", "gpt_oss", "llama4", "llama4_text"})
WIDE = frozenset({"falcon", "gpt2"})
LIBRARYS = frozenset({
    "biogpt", "deepseek_v2", "falcon_mamba", "granite_swa", "granitemoe_swa", "hy_v3", "jamba",
    "lfm2_moe", "lfm3", "mamba", "minimax_m2", "opt",
})  # fmt: skip

CAUSAL_CLASS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
NOT_CAUSAL_GGUF = ("clip", "t5", "wavtokenizer", "whisper", "mmproj")


def text_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config.json that speaks of text, or of a head's layer, with what its family
    leaves unsaid."""
    text = config.get("text_config", config.get("transformer_layer_config"))
    stated = {**text, **config} if isinstance(text, dict) else dict(config)
    inner = text.get("model_type") if isinstance(text, dict) else None
    unsaid = (UNSTATED.get(str(kind), {}) for kind in (inner, stated.get("model_type")))
    return {**next(unsaid), **next(unsaid), **stated}


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


def is_rewindable(model_type: str) -> bool:
    """Whether a model with a running state can be drafted for: it can be put back."""
    return model_type in REWINDABLE


def forgets(model_type: str) -> bool:
    """Whether a chunk of tokens is computed as if nothing came before it."""
    return model_type in FORGETTING


def is_recurrent_gguf(architecture: str, keys: Iterable[str]) -> bool:
    """The same for a GGUF architecture and the keys of its metadata."""
    return _recurrent_family(architecture) or any(RECURRENT_GGUF_KEY.search(key) for key in keys)


def held(info: ModelInfo) -> Held | None:
    """How the weights of `info` lie in memory on a processor; None: never tried.

    Of a model that nobody has read a header of (no architecture), as of the usual ones.
    """
    if info.format == "gguf" or not info.architecture:
        return "packed" if info.architecture in (*GGUF, "") else None
    known: Mapping[Held, frozenset[str]] = {
        "packed": PACKED, "wide experts": WIDE_EXPERTS, "wide": WIDE, "library's": LIBRARYS
    }  # fmt: skip
    return next((way for way, types in known.items() if info.architecture in types), None)


def require(info: ModelInfo) -> None:
    """Raises Unsupported, as loading does, for a model of an architecture that cannot be loaded."""
    if info.format != "gguf" or info.kind is not Kind.MODEL:
        return
    require_gguf(info.architecture)
    if info.experts and info.architecture not in GGUF_MIXTURES:
        raise unsupported_setting(info.path.name, "expert_count", info.architecture)


def require_gguf(architecture: str) -> None:
    """Raises Unsupported for an architecture whose GGUF files cannot be loaded."""
    if architecture not in GGUF:
        raise Unsupported(
            "gguf_architecture",
            "GGUF files of the architecture {architecture} cannot be loaded.",
            architecture=architecture,
        )


def unsupported_setting(file: str, key: str, architecture: str) -> Unsupported:
    """A GGUF file says something of its model that cannot be carried over."""
    return Unsupported(
        "gguf_setting_unsupported",
        "{file} uses the setting {key}, which is not supported for the architecture "
        "{architecture}.",
        file=file,
        key=key,
        architecture=architecture,
    )


def names(value: Any) -> list[str]:
    """The strings of a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _recurrent_family(name: str) -> bool:
    plain = _plain(name)
    return plain.startswith(RECURRENT) or plain in RECURRENT_EXACTLY


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name.lower())
