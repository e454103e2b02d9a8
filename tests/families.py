"""Tiny models, a family each: what a kernel must get right differs by family."""

import weakref
from typing import Any

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from tests.folders import IM_END, tiny_config

IDS = torch.tensor([[5, 1, 200, 7, 7, 31]])

_BASE = tiny_config(eos_token_id=IM_END, pad_token_id=0)
_MIXTURE = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "decoder_sparse_step": 1,
}


def _family(model_type: str, architecture: str, **changes: Any) -> dict[str, Any]:
    return _BASE | {"model_type": model_type, "architectures": [architecture]} | changes


FAMILIES: dict[str, dict[str, Any]] = {
    "llama": _family("llama", "LlamaForCausalLM"),
    "tied": _family("llama", "LlamaForCausalLM", tie_word_embeddings=True),
    "qwen2": _family("qwen2", "Qwen2ForCausalLM"),
    "qwen3": _family("qwen3", "Qwen3ForCausalLM", head_dim=32),
    "gemma": _family("gemma", "GemmaForCausalLM", head_dim=16),
    "gemma2": _family(
        "gemma2",
        "Gemma2ForCausalLM",
        head_dim=16,
        sliding_window=24,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
        query_pre_attn_scalar=16,
        hidden_activation="gelu_pytorch_tanh",
    ),
    "gemma3": _family(
        "gemma3_text",
        "Gemma3ForCausalLM",
        head_dim=16,
        sliding_window=24,
        query_pre_attn_scalar=16,
        layer_types=["sliding_attention", "full_attention"],
        hidden_activation="gelu_pytorch_tanh",
    ),
    # short and long rotary factors change at position 140
    "phi3": _family(
        "phi3",
        "Phi3ForCausalLM",
        original_max_position_embeddings=140,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10_000.0,
            "short_factor": [1.0] * 8,
            "long_factor": [2.0 + i for i in range(8)],
            "original_max_position_embeddings": 140,
        },
    ),
    "qwen2_moe": _family("qwen2_moe", "Qwen2MoeForCausalLM", **_MIXTURE),
    "qwen3_moe": _family("qwen3_moe", "Qwen3MoeForCausalLM", head_dim=16, **_MIXTURE),
    "gpt_oss": _family(
        "gpt_oss",
        "GptOssForCausalLM",
        head_dim=16,
        sliding_window=24,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "mamba2": _family(
        "mamba2",
        "Mamba2ForCausalLM",
        num_heads=4,
        head_dim=32,
        state_size=16,
        n_groups=1,
        chunk_size=32,
    ),
    "lfm2": _family("lfm2", "Lfm2ForCausalLM", layer_types=["conv", "full_attention"]),
    "qwen3_next": _family(
        "qwen3_next",
        "Qwen3NextForCausalLM",
        layer_types=["linear_attention", "full_attention"],
        head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
        **_MIXTURE,
    ),
}


# What the settings of any family that has them are in a tiny model.
TINY: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model"), 128),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "decoder_ffn_dim"), 256),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "decoder_layers"), 4),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 320),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 64),
    **dict.fromkeys(("n_shared_experts", "first_k_dense_replace", "n_group", "topk_group"), 1),
    **{"num_key_value_heads": 2, "head_dim": 32, "sliding_window": 64, "vocab_size": 262},
    **{"kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32},
    **{"linear_num_key_heads": 2, "linear_num_value_heads": 4},
    **{"linear_key_head_dim": 16, "linear_value_head_dim": 16},
    **{"mamba_n_heads": 8, "mamba_d_head": 32, "mamba_n_groups": 1, "mamba_d_state": 16},
    **{"mamba_d_ssm": 256, "mamba_d_conv": 4, "mamba_chunk_size": 32},
}
_LATENT = {"num_key_value_heads": 4, "head_dim": 16, "q_lora_rank": 64}
_HALF_LINEAR = {"layer_types": ["linear_attention", "full_attention"] * 2}
_HALF_WINDOWS = {"layer_types": ["sliding_attention", "full_attention"] * 2}
_HALF_CONV = {"layer_types": ["conv", "full_attention"] * 2}
_KIMI = {"num_key_value_heads": 4, "linear_head_dim": 16, "linear_num_heads": 4}
_ZAMBA = {"num_key_value_heads": 4, "mamba_d_state": 16, "chunk_size": 32}
_NEMOTRON = {"ssm_state_size": 16, "n_groups": 1, "chunk_size": 32}
_ROTARY = {"rotary_dim": 16}
_IMAGES = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2},
    **{"num_attention_heads": 2, "image_size": 28, "patch_size": 14},
}
_GEMMA4 = {"global_head_dim": 64, "vocab_size_per_layer_input": 262, **_HALF_WINDOWS}
# What some of them need beside.
TINY_OF: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("axk1", "axk2", "deepseek_v2", "deepseek_v3", "deepseek_v32"), _LATENT),
    **dict.fromkeys(("glm4_moe_lite", "glm_moe_dsa", "minicpm3", "sarvam_mla", "youtu"), _LATENT),
    **dict.fromkeys(("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"), _HALF_LINEAR),
    **dict.fromkeys(("olmo_hybrid", "qwen3_5", "qwen3_5_moe"), _HALF_LINEAR),
    "bailing_hybrid": {**_HALF_LINEAR, "num_key_value_heads": 4},
    "kimi_linear": {**_HALF_LINEAR, **_KIMI},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"] * 2, **_ZAMBA},
    **dict.fromkeys(("codegen", "gptj"), _ROTARY),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text"), _GEMMA4),
    "gemma3": {**_HALF_WINDOWS, "vision_config": _IMAGES, "mm_tokens_per_image": 4},
    "lfm2": _HALF_CONV,
    "lfm2_moe": {**_HALF_CONV, "num_dense_layers": 1},
    "bamba": {"attn_layer_indices": [1, 3]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2},
    "mamba2": {"num_heads": 8, "state_size": 16, "n_groups": 1, "chunk_size": 32},
    "nemotron_h": {"mamba_num_heads": 8, "mamba_head_dim": 32, **_NEMOTRON},
}


def tiny(model_type: str) -> PreTrainedConfig:
    """A tiny model of `model_type`, from what its configuration has of TINY."""
    settings = CONFIG_MAPPING[model_type]
    text = settings.sub_configs.get("text_config", settings)
    known = {**TINY, **TINY_OF.get(model_type, {})}
    beside = {
        key: known.pop(key) for key in ("vision_config", "mm_tokens_per_image") & known.keys()
    }
    names = set(text.__dataclass_fields__) - set(text.attribute_map)
    ids = {"bos_token_id": 256, "eos_token_id": IM_END, "pad_token_id": 0}
    inner = {key: known[key] for key in known if key in names or key in TINY_OF.get(model_type, {})}
    if text is settings:
        return settings(**inner, **ids)
    return settings(text_config={**inner, **ids}, **beside)


def config(family: str, **changes: Any) -> PreTrainedConfig:
    """The configuration of a family, with `changes`."""
    known = FAMILIES[family] | changes
    return AutoConfig.for_model(known.pop("model_type"), **known)


def original(family: str, **changes: Any) -> PreTrainedModel:
    """A network of random weights, its norms' too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = AutoModelForCausalLM.from_config(config(family, **changes), dtype=torch.float32)
        for name, parameter in network.named_parameters():
            if "norm" in name:  # all ones or zeros when made
                parameter.data.add_(0.1 * torch.randn_like(parameter))
    return network.requires_grad_(False).eval()


@torch.inference_mode()
def logits(network: PreTrainedModel, ids: torch.Tensor = IDS) -> torch.Tensor:
    """What it says after each of a few tokens, [tokens, vocab]."""
    return network(input_ids=ids, use_cache=False).logits[0]


class Counting:
    """The weights of a network, each read as a tensor of its own; counts those that still live."""

    def __init__(self, network: PreTrainedModel) -> None:
        self.parameters = dict(network.named_parameters())
        self.reads: list[str] = []
        # bytes of what was read and lived at once
        self.most = 0
        self._alive: list[weakref.ref[torch.UntypedStorage]] = []

    def read(self, name: str) -> torch.Tensor:
        self.reads.append(name)
        tensor = self.parameters[name].detach().clone()
        self._alive = [ref for ref in self._alive if ref() is not None]
        self._alive.append(weakref.ref(tensor.untyped_storage()))
        held = [storage for ref in self._alive if (storage := ref()) is not None]
        self.most = max(self.most, sum(storage.nbytes() for storage in held))
        return tensor
