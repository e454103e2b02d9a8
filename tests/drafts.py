"""Every way to draft for a tiny target, heads and models as files in their published formats.

What the target says follows mostly from its last token, and each head and model goes by that token
alone. So they are often right and often wrong, without having been trained.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from engine.drafters import BUILT_IN
from engine.drafters.assistant import AssistantDrafter
from engine.drafters.base import Drafter
from engine.drafters.block import BlockDrafter
from engine.drafters.head import HeadDrafter
from engine.drafters.parallel import ParallelDrafter, ParallelHeadDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.heads.opening import open_head, open_mtp
from engine.model import LanguageModel
from tests.assistants import ORDERED, published, write_assistant, write_target
from tests.folders import IM_END, tiny_config, write_json, write_model
from tests.heads import (
    MASK,
    dflash_tensors,
    info_of,
    mtp_tensors,
    safeailab,
    speculators,
    speculators_dflash,
    speculators_peagle,
    tensors,
    write_head,
    zlab,
)
from tests.tiny import language_model
from tests.vocabularies import OTHERS, behind, write_other

Weights = dict[str, torch.Tensor]

WIDE = {"num_key_value_heads": 4}
OWN_ROW = {"layer_types": ["sliding_attention"], "sliding_window": 1}
TWO_ROWS = {**OWN_ROW, "sliding_window": 2}
HEADS: dict[str, dict[str, Any]] = {
    "eagle3, SafeAILab": safeailab(**WIDE, **OWN_ROW),
    "eagle3, speculators": speculators(
        {**WIDE, **OWN_ROW}, norm_before_fc=True, draft_vocab_size=262
    ),
    "p-eagle, speculators": speculators_peagle({**WIDE, **OWN_ROW}, draft_vocab_size=262),
    "dflash, authors": zlab(num_hidden_layers=1, **WIDE, **TWO_ROWS),
    "dflash, speculators": speculators_dflash(
        {"num_hidden_layers": 1, **WIDE, **OWN_ROW}, sample_from_anchor=True, draft_vocab_size=262
    ),
}
KINDS = {"eagle3": HeadDrafter, "p-eagle": ParallelHeadDrafter, "dflash": BlockDrafter}
MODELS = ("model", "pard", *OTHERS)
LOOKUPS = tuple(name for name in BUILT_IN if name != "none")
# These draft for Gemma 4 alone.
ASSISTANTS = {"assistant": published(), "assistant, nearest tokens": published(**ORDERED)}
EVERY = (*LOOKUPS, *MODELS, *HEADS, "mtp", *ASSISTANTS)


def lean(network: Any) -> None:
    """Let what `network` says follow mostly from its last token."""
    with torch.no_grad():
        network.get_input_embeddings().weight.mul_(4)


def head_tensors(name: str, network: Any) -> Weights:
    """Of a head that goes by the last token, as `network` does; states matter little."""
    table, matrix = (
        part.weight.detach().float()
        for part in (network.get_input_embeddings(), network.get_output_embeddings())
    )
    config, same = HEADS[name], torch.eye(64)
    found = (dflash_tensors if "dflash" in name else tensors)(config)
    at = "midlayer." if "SafeAILab" in name else "layers.0."
    found["fc.weight"] *= 0.2
    found[f"{at}mlp.down_proj.weight"] *= 0.02
    found[f"{at}self_attn.o_proj.weight"] = same.clone()
    if "dflash" in name:
        found[f"{at}self_attn.v_proj.weight"] = same
        found["embed_tokens.weight"] = table.clone()
        found["embed_tokens.weight"][MASK] = 0
        return found
    # of token and state, side by side, the token
    found[f"{at}self_attn.v_proj.weight"] = torch.cat([same, 0 * same], 1)
    found[f"{at}hidden_norm.weight"] *= 0.2
    found["embed_tokens.weight"] = table.clone()
    if "mask_hidden" in found:
        # a mask goes by nothing, and is unsure
        found["embed_tokens.weight"][MASK] = 0
        found["mask_hidden"] *= 0
    own = torch.arange(config["draft_vocab_size"])
    found["lm_head.weight"] = matrix[own + found["d2t"] if "d2t" in found else own]
    return found


def write_heads(folder: Path, network: Any) -> None:
    """Each of HEADS for `network`, by its name."""
    for name, config in HEADS.items():
        write_head(folder / name, config, head_tensors(name, network))


def own_tensors(network: Any) -> Weights:
    """Of a head in a model's own files, as Qwen names them."""
    found, _ = mtp_tensors(network, "qwen")
    width = found["mtp.fc.weight"].shape[0]
    found["mtp.fc.weight"][:, :width] += 4 * torch.eye(width)
    return found


def built(name: str, target: LanguageModel, folder: Path) -> Drafter:
    """The drafter `name` for a target in memory, listening to it; files go into `folder`."""
    drafter = _made(name, target, folder)
    target.tell(*getattr(drafter, "listeners", ()))
    return drafter


def _made(name: str, target: LanguageModel, folder: Path) -> Drafter:
    if name in LOOKUPS:
        return BUILT_IN[name]()
    if name in MODELS:
        little = language_model()
        with torch.no_grad():
            for part in ("get_input_embeddings", "get_output_embeddings"):
                theirs = getattr(target.network, part)().weight
                getattr(little.network, part)().weight.copy_(theirs)
            for layer in little.network.model.layers:
                layer.self_attn.o_proj.weight.mul_(0.5)
        if name == "model":
            return SmallModelDrafter(little)
        if name == "pard":
            return ParallelDrafter(little, MASK)
        return behind(OTHERS[name](), little)
    info = info_of(target)
    if name in ASSISTANTS:
        assistant: Any = open_head(write_assistant(folder, ASSISTANTS[name]), target, info, "fp32")
        return AssistantDrafter(assistant, target)
    if name == "mtp":
        folder.mkdir(parents=True, exist_ok=True)
        save_file(own_tensors(target.network), folder / "model.safetensors")
        head = open_mtp(target, replace(info, path=folder), "fp32")
        return HeadDrafter(head, target.device)
    weights = head_tensors(name, target.network)
    opened = open_head(write_head(folder, HEADS[name], weights), target, info, "fp32")
    kind: Any = KINDS[name.partition(",")[0]]
    found: Drafter = kind(opened, target.device)
    return found


def write_all(root: Path) -> None:
    """A llama that brings a head of its own, a Gemma 4, and beside them every draft that lies in a
    folder."""
    target = language_model()
    lean(target.network)
    settings = {"eos_token": "<|im_end|>", "bos_token": "<s>"}
    masked = {"pard_token": MASK}
    for name, layers, more in (("llama", None, {}), ("model", 1, {}), ("pard", 1, masked)):
        config = tiny_config(eos_token_id=IM_END, **more)
        folder = write_model(root / name, config=config, layers=layers)
        write_json(folder / "tokenizer_config.json", settings)
        state = load_file(folder / "model.safetensors")
        state["model.embed_tokens.weight"] = state["model.embed_tokens.weight"] * 4
        own = own_tensors(target.network) if name == "llama" else {}
        save_file(state | own, folder / "model.safetensors", metadata={"format": "pt"})
    for name, other in OTHERS.items():
        write_other(root / name, other(), root / "llama")
    write_heads(root, target.network)
    write_target(root / "gemma 4")
    for name, config in ASSISTANTS.items():
        write_assistant(root / name, config)
