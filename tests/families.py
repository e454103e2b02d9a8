"""Configurations of tiny models, a family each: what a kernel must get right differs by family."""

from typing import Any

from tests.folders import IM_END, tiny_config

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
