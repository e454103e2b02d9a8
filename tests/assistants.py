"""Gemma 4's assistants as they are published, and tiny targets for them."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from engine.api import ModelInfo
from engine.library import caches
from engine.model import LanguageModel
from tests.folders import CHATML, IM_END, write_json, write_tokenizer

Weights = dict[str, torch.Tensor]

FULL, SLIDING = "full_attention", "sliding_attention"
WIDTH, WINDOW, CONTEXT = 64, 24, 512
LAYER = {
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 32,
    "sliding_window": WINDOW,
    "vocab_size": 262,
    "max_position_embeddings": CONTEXT,
}
TARGET = {
    **LAYER,
    "hidden_size": WIDTH,
    "num_hidden_layers": 4,
    "num_kv_shared_layers": 2,
    "layer_types": [SLIDING, FULL] * 2,
    "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 262,
    "tie_word_embeddings": False,
    "bos_token_id": 256,
    "eos_token_id": IM_END,
    "pad_token_id": 0,
}
ORDERED = {"use_ordered_embeddings": True, "num_centroids": 131, "centroid_intermediate_top_k": 16}


def published(layer: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """config.json of an assistant, as it is published; `layer` changes the nested part."""
    text = {
        **LAYER,
        "model_type": "gemma4_text",
        "hidden_size": WIDTH,
        "num_hidden_layers": 3,
        "num_kv_shared_layers": 3,
        "layer_types": [SLIDING, SLIDING, FULL],
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "rms_norm_eps": 1e-6,
        **(layer or {}),
    }
    return {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": WIDTH,
        "use_ordered_embeddings": False,
        "tie_word_embeddings": True,
        "text_config": text,
        **changes,
    }


def random_network(config: dict[str, Any], seed: int) -> Any:
    """The library's own network of a target or an assistant."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = AutoConfig.for_model(**config)
        network = AutoModelForCausalLM.from_config(made, dtype=torch.float32).eval()
    return network.requires_grad_(False)


def randomised(network: Any) -> None:
    """Norms and scalars that are not all ones, and large enough matrices to tell them apart."""
    generator = torch.Generator().manual_seed(5)
    for name, tensor in network.state_dict().items():
        if "norm" in name or "scalar" in name:
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
        elif name.endswith("token_ordering"):
            tensor.copy_(torch.randperm(len(tensor), generator=generator))
        elif "proj" in name or "centroids" in name:
            tensor.mul_(5)


@functools.cache
def target() -> LanguageModel:
    """Its layers add little, so that what it says follows mostly from the last token."""
    network = random_network({"model_type": "gemma4_text", **TARGET}, 2)
    randomised(network)
    for name, tensor in network.state_dict().items():
        if ".post_" in name:
            tensor.mul_(0.1)
    network.get_input_embeddings().weight *= 8
    network.get_output_embeddings().weight *= 50
    return LanguageModel(network, CONTEXT)


def info_of(model: LanguageModel) -> ModelInfo:
    """What headers would say of a target in memory."""
    config = model.network.config
    kept = caches.of_config(config.to_dict(), "gemma4_text")
    sizes = {"vocab_size": config.vocab_size, "layers": config.num_hidden_layers}
    kind = "gemma4_text"
    return ModelInfo(
        "target", Path("target"), "safetensors", kind, hidden_size=WIDTH, **sizes, **kept
    )


def tensors(config: dict[str, Any]) -> Weights:
    """Of an assistant that says what the target says where the last token tells it."""
    state: Weights = {n: t.clone() for n, t in random_network(config, 4).state_dict().items()}
    small = 0.02 * torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(4))
    for name, tensor in state.items():
        if ".post_" in name:
            tensor.mul_(0.1)
    state["pre_projection.weight"] = torch.cat([torch.eye(WIDTH), small], 1)
    state["post_projection.weight"] = torch.eye(WIDTH)
    theirs: Any = target().network
    state["model.embed_tokens.weight"] = theirs.get_output_embeddings().weight.clone()
    state["model.norm.weight"] = theirs.model.norm.weight.clone()
    if "masked_embedding.token_ordering" in state:
        state["masked_embedding.token_ordering"] = torch.arange(262)
        pairs = state["model.embed_tokens.weight"].view(131, 2, WIDTH)
        state["masked_embedding.centroids.weight"] = pairs.mean(1)
    return state


def write_assistant(
    folder: Path,
    config: dict[str, Any],
    state: Weights | None = None,
    change: Callable[[Weights], Weights] = lambda state: state,
) -> Path:
    """An assistant in `folder`, for `target` unless `state` is given; without the matrix that is
    the table once more."""
    state = tensors(config) if state is None else state
    kept = {n: t.clone().contiguous() for n, t in state.items() if n != "lm_head.weight"}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    save_file(change(kept), folder / "model.safetensors")
    return folder


def write_target(folder: Path) -> Path:
    """`target` as a model in `folder`."""
    network: Any = target().network
    folder.mkdir(parents=True)
    state = {n: t.clone().contiguous() for n, t in network.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    more = {"architectures": ["Gemma4ForCausalLM"], "dtype": "float32"}
    write_json(folder / "config.json", network.config.to_dict() | more)
    write_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    return folder
