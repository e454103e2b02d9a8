"""Whether a model can draft for itself: with the head for several tokens in its own files.

Knows headers; which tensors a head has in which family, `engine.library.mtp` knows. Reads no
weights: what is left to find, such as a tensor of its layer that is missing, is found as it is
opened.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from engine import guidance
from engine.api import Kind, ModelInfo
from engine.errors import EngineError, Reason
from engine.guidance import Level, Verdict
from engine.library import folder, gguf, mtp
from engine.library.head_config import FLOATS
from engine.library.inspect import resolve
from engine.library.mtp import Mtp
from engine.library.safetensors import TensorInfo

NAME = "Own head (MTP)"
# How a head is told from a model's layers where its family is not known here.
ANY = re.compile(r"(^|\.)(mtp|mtp_layers|nextn)\.")
GOOD = Reason("own_head", "Good: trained with the model, in its own files")
IN_GGUF = Reason("own_head_gguf", "Built in: cannot be read out of GGUF files yet")
UNKNOWN = Reason("own_head_unknown", "Built in: a head of a kind that cannot be used yet")


@dataclass(frozen=True)
class OwnHead:
    """Whether a target's own head can draft for it, and what its headers say of it as of any other
    draft: None where it cannot."""

    verdict: Verdict
    info: ModelInfo | None = None


def find(target: ModelInfo) -> OwnHead | None:
    """The target's own head; None: it brings none."""
    try:
        if target.format != "safetensors":
            header = gguf.read_header(resolve(target.path), arrays={})
            named = any(ANY.search(tensor.name) for tensor in header.tensors)
            return OwnHead(Verdict(Level.REFUSED, IN_GGUF)) if named else None
        headers = folder.read_headers(resolve(target.path))
    except EngineError as error:
        return OwnHead(Verdict(Level.REFUSED, error.reason))
    tensors = {name: tensor for held in headers.values() for name, tensor in held.items()}
    if not any(_is_head(name, target.layers) for name in tensors):
        return None
    kind = mtp.find(tensors, target.layers or 0)
    fault = guidance.drafting_refusal(target)
    if kind is None:
        return OwnHead(Verdict(Level.REFUSED, fault or UNKNOWN))
    fault = fault or _fault(kind, tensors, target)
    if fault is not None:
        return OwnHead(Verdict(Level.REFUSED, fault))
    return OwnHead(Verdict(Level.GOOD, GOOD), _info(kind, tensors, target))


def judge(target: ModelInfo) -> Verdict | None:
    """Whether the target's own head can draft for it; None: it brings none."""
    found = find(target)
    return None if found is None else found.verdict


def info(target: ModelInfo) -> ModelInfo | None:
    """What the headers say of the target's own head; None where it has none that can draft."""
    found = find(target)
    return None if found is None else found.info


def refusal(target: ModelInfo) -> Reason | None:
    """Why the target cannot draft for itself, or None."""
    found = judge(target)
    if found is None:
        return Reason("no_mtp", "{name} has no head of its own.", {"name": target.name})
    return found.reason if found.level is Level.REFUSED else None


def _info(kind: Mtp, tensors: Mapping[str, TensorInfo], target: ModelInfo) -> ModelInfo:
    names = {n for n in tensors if n.startswith(kind.layer)} | kind.beside
    held = {name: tensors[name].shape for name in names.difference(kind.unread)}
    # experts stay as they are stored, with 32 bits on a processor, as norms do
    matrices = [s for name, s in held.items() if len(s) == 2 and ".experts." not in name]
    linear, every = sum(map(prod, matrices)), sum(map(prod, held.values()))
    return replace(
        target,
        name=NAME,
        architecture="",
        kind=Kind.HEAD,
        parameters=every,
        active=None,
        quantisation=None,
        apart=0,
        layers=1,
        linear=linear,
        linear_rows=sum(rows for rows, _ in matrices),
        experts=0,
        embedding=0,
        head=0,
        other=every - linear,
        # attention to all, whatever the target's layers do
        cache_widths=target.cache_widths and (max(target.cache_widths),),
        cache_windows=(0,),
        cache_fixed=None,
    )


def _is_head(name: str, layers: int | None) -> bool:
    return ANY.search(name) is not None or name == f"model.layers.{layers}.eh_proj.weight"


def _fault(found: Mtp, tensors: Mapping[str, TensorInfo], target: ModelInfo) -> Reason | None:
    """Why it cannot be used, where its headers say so."""
    width = target.hidden_size
    for name in (found.join, found.token_norm, found.state_norm, found.last_norm):
        if name not in tensors:
            return Reason("head_lacks_tensor", "It lacks the tensor {tensor}", {"tensor": name})
        tensor = tensors[name]
        needed = (width, 2 * width) if width and name == found.join else (width,)
        if tensor.dtype not in FLOATS:
            text = "Its tensor {tensor} is quantised: {type}"
            return Reason("head_quantised", text, {"tensor": name, "type": tensor.dtype})
        if width and tensor.shape != needed:
            values: dict[str, str | int | float] = {
                "tensor": name,
                "found": " x ".join(map(str, tensor.shape)),
                "needed": " x ".join(map(str, needed)),
            }
            return Reason("head_shape", "Its tensor {tensor} is {found}, not {needed}", values)
    return None
