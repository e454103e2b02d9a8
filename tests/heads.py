"""Heads as they are published, written for tiny targets, and what they compute."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from engine.model import LanguageModel
from tests.folders import write_json

LAYER = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "hidden_act": "silu",
    "vocab_size": 262,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "max_position_embeddings": 64,
}
VERIFIER = {"name_or_path": "somebody/target", "architectures": ["LlamaForCausalLM"]}
PROPOSAL = {"proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1,
            "accept_tolerance": 0.0}  # fmt: skip
# The target has two layers, so heads have to say what they read.
PLACES = [0, 1, 2]


def safeailab(**changes: Any) -> dict[str, Any]:
    """config.json as SafeAILab's training writes it."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **LAYER,
        "draft_vocab_size": 100,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": PLACES, "use_aux_hidden_state": True},
        **changes,
    }


def speculators(layer: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """config.json as the speculators library writes it; `layer` changes the nested part."""
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": 100,
        "norm_before_residual": True,
        "eagle_aux_hidden_state_layer_ids": PLACES,
        "speculators_config": {
            "algorithm": "eagle3",
            "proposal_methods": [PROPOSAL],
            "default_proposal_method": "greedy",
            "verifier": VERIFIER,
        },
        "transformer_layer_config": {"model_type": "llama", **LAYER, **(layer or {})},
        **changes,
    }


def speculators_peagle(layer: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The same of a head that makes all guesses in one pass."""
    found = speculators(layer)
    del found["norm_before_residual"]
    return {
        **found,
        "architectures": ["PEagleSpeculator"],
        "speculators_model_type": "peagle",
        "mask_token_id": MASK,
        **changes,
    }


def tensors(config: dict[str, Any], *, table: bool = True, seed: int = 3) -> dict[str, Any]:
    """Random ones for `config`, named as its format names them."""
    layer = config.get("transformer_layer_config", config)
    eagle = config.get("eagle_config", {})
    width, inner, vocabulary = (
        layer[key] for key in ("hidden_size", "intermediate_size", "vocab_size")
    )
    size = layer.get("head_dim", width // layer["num_attention_heads"])
    queries, keys = (layer[f"num_{k}_heads"] * size for k in ("attention", "key_value"))
    states = config.get("target_hidden_size", width)
    places = config.get("eagle_aux_hidden_state_layer_ids") or eagle.get(
        "eagle_aux_hidden_state_layer_ids", PLACES
    )
    tokens = config["draft_vocab_size"]
    at = "layers.0." if "transformer_layer_config" in config else "midlayer."
    shapes = {
        "fc.weight": (width, len(places) * states),
        f"{at}self_attn.q_proj.weight": (queries, 2 * width),
        f"{at}self_attn.k_proj.weight": (keys, 2 * width),
        f"{at}self_attn.v_proj.weight": (keys, 2 * width),
        f"{at}self_attn.o_proj.weight": (width, queries),
        f"{at}mlp.gate_proj.weight": (inner, width),
        f"{at}mlp.up_proj.weight": (inner, width),
        f"{at}mlp.down_proj.weight": (width, inner),
        f"{at}hidden_norm.weight": (width,),
        f"{at}input_layernorm.weight": (width,),
        f"{at}post_attention_layernorm.weight": (width,),
        "norm.weight": (width,),
        "lm_head.weight": (tokens, width),
    }
    if table:
        shapes["embed_tokens.weight"] = (vocabulary, width)
    if layer.get("attention_bias"):
        for name, rows in (("q", queries), ("k", keys), ("v", keys), ("o", width)):
            shapes[f"{at}self_attn.{name}_proj.bias"] = (rows,)
    if config.get("norm_before_fc") or eagle.get("norm_before_fc"):
        shapes["input_norm.weight"] = (len(places) * states,)
    if config.get("fc_norm"):
        for i in range(len(places)):
            shapes[f"fc_norm.{i}.weight"] = (states,)
    first = {n.removeprefix(at): s for n, s in shapes.items() if n.startswith(at)}
    for i in range(1, layer.get("num_hidden_layers", 1)):
        for name, shape in first.items():
            narrow = name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))
            if name != "hidden_norm.weight":
                shapes[f"layers.{i}.{name}"] = (shape[0], width) if narrow else shape
    if "peagle" in config.get("speculators_model_type", "") or "ptd_token_id" in config:
        shapes["mask_hidden"] = (1, 1, len(places) * states)
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        found[name] = 1 + 0.1 * noise if len(shape) == 1 else 0.3 * noise
    if tokens < vocabulary:
        # ids from 20 on, one left out after every 30
        own = torch.arange(tokens)
        found["d2t"] = 20 + own // 30
        found["t2d"] = torch.zeros(vocabulary, dtype=torch.bool)
        found["t2d"][own + found["d2t"]] = True
    return found


def write_head(
    folder: Path, config: dict[str, Any], weights: dict[str, Any] | None = None, **more: Any
) -> Path:
    """A head in `folder`, random unless `weights` are given."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    save_file(weights or tensors(config, **more), folder / "model.safetensors")
    return folder


def changed(
    folder: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]] = lambda weights: weights,
    **config: Any,
) -> Path:
    """The head in `folder` with a change to its weights or `config`, beside it."""
    said = json.loads((folder / "config.json").read_text()) | config
    weights = load_file(folder / "model.safetensors")
    return write_head(folder.parent / "changed", said, change(weights))


def info_of(model: LanguageModel) -> Any:
    """What headers would say of a target in memory."""
    from engine.api import ModelInfo

    config = model.network.config
    return ModelInfo(
        "target",
        Path("target"),
        "safetensors",
        "llama",
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        layers=config.num_hidden_layers,
    )


def reference(
    weights: dict[str, Any], config: dict[str, Any], x: torch.Tensor, embedded: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The layers over whole texts, as published: x [texts, rows, width] are joined states, at
    positions from 0 on; the logits of the head's own tokens, and what goes on to the next guess."""
    layer = config.get("transformer_layer_config", config)
    w = {name.replace("midlayer.", "layers.0."): tensor for name, tensor in weights.items()}

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + layer["rms_norm_eps"])
        return x * scale * w[name + ".weight"]

    texts, rows, width = x.shape
    size = layer.get("head_dim", width // layer["num_attention_heads"])
    angles = torch.arange(rows)[:, None] * layer["rope_theta"] ** (-torch.arange(0, size, 2) / size)
    cos, sin = torch.cat([angles] * 2, -1).cos(), torch.cat([angles] * 2, -1).sin()
    far = torch.arange(rows)[:, None] - torch.arange(rows)
    before = config.get("norm_before_residual", config.get("speculators_model_type") == "eagle3")

    def through(i: int, x: torch.Tensor) -> torch.Tensor:
        at = f"layers.{i}."

        def linear(x: torch.Tensor, name: str) -> torch.Tensor:
            return F.linear(x, w[f"{at}{name}.weight"], w.get(f"{at}{name}.bias"))

        def heads_of(x: torch.Tensor, name: str, turn: bool = True) -> torch.Tensor:
            found = linear(x, f"self_attn.{name}_proj").view(texts, rows, -1, size).transpose(1, 2)
            first, second = found.chunk(2, -1)
            return found * cos + torch.cat([-second, first], -1) * sin if turn else found

        if i == 0:
            normed = norm(x, f"{at}hidden_norm")
            both = torch.cat([norm(embedded, f"{at}input_layernorm"), normed], -1)
            x = normed if before else x
        else:
            both = norm(x, f"{at}input_layernorm")
        q, k, v = heads_of(both, "q"), heads_of(both, "k"), heads_of(both, "v", turn=False)
        k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], 1) for part in (k, v))
        sliding = layer.get("layer_types", [])[i : i + 1] == ["sliding_attention"]
        seen = (far >= 0) & (far < (layer["sliding_window"] if sliding else rows))
        scores = (q @ k.transpose(-1, -2) / size**0.5).masked_fill(~seen, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(texts, rows, -1)
        r = x + linear(mixed, "self_attn.o_proj")
        y = norm(r, f"{at}post_attention_layernorm")
        inner = F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj")
        return r + linear(inner, "mlp.down_proj")

    for i in range(layer["num_hidden_layers"]):
        x = through(i, x)
    normed = norm(x, "norm")
    return F.linear(normed, w["lm_head.weight"]), normed if config.get("norm_output") else x


def joined(weights: dict[str, Any], config: dict[str, Any], states: torch.Tensor) -> torch.Tensor:
    """The target's states [.., places x width] as the layer reads them."""
    eps = config.get("transformer_layer_config", config)["rms_norm_eps"]

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weights[name]

    if "input_norm.weight" in weights:
        states = norm(states, "input_norm.weight")
    if config.get("fc_norm"):
        count = sum(name.startswith("fc_norm.") for name in weights)
        parts = enumerate(states.chunk(count, -1))
        states = torch.cat([norm(part, f"fc_norm.{i}.weight") for i, part in parts], -1)
    return F.linear(states, weights["fc.weight"])


# How families name the parts of the head in their own files, and what it reads first.
MTP = {
    "qwen": ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", "mtp.layers.0.",
             "mtp.norm"),
    "deepseek": ("{0}enorm", "{0}hnorm", "{0}eh_proj", "{0}", "{0}shared_head.norm"),
    "mimo": ("{1}token_layernorm", "{1}hidden_layernorm", "{1}input_proj", "{1}",
             "{1}final_layernorm"),
}  # fmt: skip


def mtp_tensors(network: Any, naming: str, seed: int = 4) -> tuple[dict[str, Any], Any]:
    """Random tensors of a head for `network`, as published, and the layer they are of, with its
    last norm: a network of one layer."""
    from transformers import AutoModelForCausalLM

    from engine.heads.mtp import _one_layer

    config = _one_layer(network.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        one = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        for name, parameter in one.named_parameters():
            if "norm" in name:
                parameter.data.add_(0.1 * torch.randn_like(parameter))
        width = config.hidden_size
        norms = [one.model.norm.weight + 0.1 * torch.randn(width) for _ in range(2)]
        join = 0.1 * torch.randn(width, 2 * width)
    deep = f"model.layers.{network.config.num_hidden_layers}."
    named = [part.format(deep, "model.mtp_layers.0.") for part in MTP[naming]]
    found = {
        f"{named[0]}.weight": norms[0],
        f"{named[1]}.weight": norms[1],
        f"{named[2]}.weight": join,
        f"{named[4]}.weight": one.model.norm.weight,
    }
    for name, tensor in one.model.layers[0].state_dict().items():
        if name.endswith("experts.gate_up_proj"):
            for i, expert in enumerate(tensor):
                for part, matrix in zip(("gate", "up"), expert.chunk(2), strict=True):
                    found[f"{named[3]}mlp.experts.{i}.{part}_proj.weight"] = matrix
        elif name.endswith("experts.down_proj"):
            for i, expert in enumerate(tensor):
                found[f"{named[3]}mlp.experts.{i}.down_proj.weight"] = expert
        else:
            found[named[3] + name] = tensor
    if naming == "deepseek":
        found[f"{deep}embed_tokens.weight"] = network.get_input_embeddings().weight
        found[f"{deep}shared_head.head.weight"] = network.get_output_embeddings().weight
    one.requires_grad_(False)
    return {n: t.detach().clone().contiguous() for n, t in found.items()}, (one, *norms, join)


def mtp_reference(
    parts: Any, network: Any, naming: str, states: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """What goes on to the next guess, over a whole text: [rows, width]."""
    one, token_norm, state_norm, join = parts

    def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        before = one.model.norm.weight
        one.model.norm.weight = torch.nn.Parameter(weight.detach(), requires_grad=False)
        found = one.model.norm(x)
        one.model.norm.weight = before
        return found

    embedded = network.get_input_embeddings()(tokens)
    if naming != "qwen":
        embedded = torch.cat([torch.zeros_like(embedded[:1]), embedded[1:]])
    both = [normed(embedded, token_norm), normed(states, state_norm)]
    x = torch.cat(both[::-1] if naming == "mimo" else both, -1) @ join.T
    return one.model(inputs_embeds=x[None], use_cache=False).last_hidden_state[0]


BLOCK, MASK = 4, 250
FLASH = {**LAYER, "num_hidden_layers": 2, "head_dim": 16, "model_type": "qwen3"}


def zlab(**changes: Any) -> dict[str, Any]:
    """config.json of a DFlash head as its authors write it: they count layers by their output."""
    return {
        "architectures": ["DFlashDraftModel"],
        **FLASH,
        "block_size": BLOCK,
        "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [-1, 0, 1]},
        **changes,
    }


def speculators_dflash(layer: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The same as the speculators library writes it."""
    return {
        "architectures": ["DFlashSpeculator"],
        "speculators_model_type": "dflash",
        "block_size": BLOCK,
        "mask_token_id": MASK,
        "aux_hidden_state_layer_ids": PLACES,
        "draft_vocab_size": 100,
        "speculators_config": {"algorithm": "dflash", "verifier": VERIFIER},
        "transformer_layer_config": {**FLASH, **(layer or {})},
        **changes,
    }


def dflash_tensors(
    config: dict[str, Any], *, table: bool = False, output: bool = False, seed: int = 6
) -> dict[str, Any]:
    """Random ones, with a table or an output matrix of the head's own."""
    layer = config.get("transformer_layer_config", config)
    width, inner = layer["hidden_size"], layer["intermediate_size"]
    queries, keys = (16 * layer[f"num_{kind}_heads"] for kind in ("attention", "key_value"))
    shapes = {"fc.weight": (width, 3 * 64), "hidden_norm.weight": (width,), "norm.weight": (width,)}
    for i in range(layer["num_hidden_layers"]):
        shapes |= {
            f"layers.{i}.self_attn.q_proj.weight": (queries, width),
            f"layers.{i}.self_attn.k_proj.weight": (keys, width),
            f"layers.{i}.self_attn.v_proj.weight": (keys, width),
            f"layers.{i}.self_attn.o_proj.weight": (width, queries),
            f"layers.{i}.self_attn.q_norm.weight": (16,),
            f"layers.{i}.self_attn.k_norm.weight": (16,),
            f"layers.{i}.mlp.gate_proj.weight": (inner, width),
            f"layers.{i}.mlp.up_proj.weight": (inner, width),
            f"layers.{i}.mlp.down_proj.weight": (width, inner),
            f"layers.{i}.input_layernorm.weight": (width,),
            f"layers.{i}.post_attention_layernorm.weight": (width,),
        }
    if table:
        shapes["embed_tokens.weight"] = (262, width)
    if output:
        shapes["lm_head.weight"] = (config["draft_vocab_size"], width)
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        found[name] = 1 + 0.1 * noise if len(shape) == 1 else 0.2 * noise
    if output:
        own = torch.arange(config["draft_vocab_size"])
        found["d2t"] = 20 + own // 30
    return found


def dflash_reference(
    w: dict[str, Any], config: dict[str, Any], states: torch.Tensor, embedded: torch.Tensor
) -> torch.Tensor:
    """What stands in the rows of a block behind `states` [texts, rows, 3 x width]: `embedded`
    [texts, block, width] are the last token and the masks; behind the last norm."""
    layer = config.get("transformer_layer_config", config)

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + layer["rms_norm_eps"])
        return x * scale * w[name + ".weight"]

    context = norm(F.linear(states, w["fc.weight"]), "hidden_norm")
    texts, seen, _ = context.shape
    rows = seen + embedded.shape[1]
    angles = torch.arange(rows)[:, None] * layer["rope_theta"] ** (-torch.arange(0, 16, 2) / 16)
    cos, sin = torch.cat([angles] * 2, -1).cos(), torch.cat([angles] * 2, -1).sin()

    def turn(x: torch.Tensor, places: slice) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * cos[places] + torch.cat([-second, first], -1) * sin[places]

    x = embedded
    for i in range(layer["num_hidden_layers"]):
        at = f"layers.{i}."

        def linear(x: torch.Tensor, name: str, at: str = at) -> torch.Tensor:
            return F.linear(x, w[f"{at}{name}.weight"])

        def split(x: torch.Tensor) -> torch.Tensor:
            return x.view(texts, x.shape[1], -1, 16)

        y = norm(x, f"{at}input_layernorm")
        both = torch.cat([context, y], 1)
        q = norm(split(linear(y, "self_attn.q_proj")), f"{at}self_attn.q_norm").transpose(1, 2)
        k = norm(split(linear(both, "self_attn.k_proj")), f"{at}self_attn.k_norm").transpose(1, 2)
        v = split(linear(both, "self_attn.v_proj")).transpose(1, 2)
        q, k = turn(q, slice(seen, None)), turn(k, slice(None))
        k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], 1) for part in (k, v))
        far = torch.arange(seen, rows)[:, None] - torch.arange(rows)
        kinds = layer.get("layer_types")
        allowed = torch.ones_like(far, dtype=torch.bool)
        if kinds and kinds[i] == "sliding_attention":
            allowed = (far >= 0) & (far < layer["sliding_window"])
        scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~allowed, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(texts, embedded.shape[1], -1)
        x = x + linear(mixed, "self_attn.o_proj")
        y = norm(x, f"{at}post_attention_layernorm")
        x = x + linear(F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"),
                       "mlp.down_proj")  # fmt: skip
    return norm(x, "norm")
