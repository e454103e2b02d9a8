"""Tiny models, a family each: what a kernel must get right differs by family."""

import weakref
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

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
