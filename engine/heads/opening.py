"""A head on disk to one that runs beside its target.

Everything is checked before a weight is read (`library.heads`); only safetensors are.
"""

from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from engine.api import ModelInfo, Precision
from engine.checkpoint import FolderWeights
from engine.errors import DraftRefused, first_line
from engine.heads.eagle3 import Eagle3Head
from engine.kernels import linear, packing
from engine.kernels.network import Embedding, groups, replace
from engine.library import heads
from engine.library.folder import weight_files
from engine.library.inspect import resolve
from engine.model import LanguageModel


class Head(Protocol):
    """What a drafter asks of a head, of whatever kind; `engine.heads.eagle3` explains it."""

    places: tuple[int, ...]
    known: int

    @property
    def length(self) -> int: ...

    def crop_to(self, length: int) -> None: ...

    def empty(self) -> None: ...

    def joined(self, states: torch.Tensor) -> torch.Tensor: ...

    def __call__(self, x: torch.Tensor, tokens: torch.Tensor, position: int) -> torch.Tensor: ...

    def logits(self, out: torch.Tensor) -> torch.Tensor: ...


def open_head(
    path: Path, target: LanguageModel, info: ModelInfo, precision: Precision
) -> Eagle3Head:
    """The head at `path`, for `target`, which `info` describes; on the target's device.

    On a processor its matrices are packed as those of a model are. Raises DraftRefused where it
    does not belong to the target, and what reading files raises.
    """
    shape = heads.read(path, info)
    with torch.device("meta"):
        head = Eagle3Head(shape, target.vocab_size, target.embed)
    weights = FolderWeights(weight_files(resolve(path)))
    for name, stored in shape.stored.items():
        if name in shape.shapes:
            _fill(head, name, weights.read(stored))
    if target.device.type == "cpu":
        _pack(head, precision)
    else:
        head.to(target.device, torch.bfloat16)
    head.requires_grad_(False).eval()
    try:
        head.ready(target.device)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DraftRefused(
            "head_positions",
            "Its rotary positions cannot be computed: {error}",
            error=first_line(error),
        ) from error
    return head


def _fill(head: nn.Module, name: str, tensor: torch.Tensor) -> None:
    path, _, attribute = name.rpartition(".")
    parameter = nn.Parameter(tensor.float(), requires_grad=False)
    head.get_submodule(path)._parameters[attribute] = parameter


def _pack(head: nn.Module, precision: Precision) -> None:
    """Its matrices as kernels, its table in 16 bits."""
    form: Precision = "int8" if precision in ("int8", "int4") else precision
    for group in groups(head):
        matrix = torch.cat([layer.weight.detach() for layer in group.layers])
        biases = [layer.bias.detach() for layer in group.layers if layer.bias is not None]
        if form == "int8":
            levels, scales = linear.quantised(matrix, linear.to_float)
            tensors = {"levels": levels, "scales": scales}
        else:
            tensors = {"weight": matrix.to(packing.DTYPES[form])}
        if biases:
            tensors["bias"] = torch.cat(biases)
        replace(group, packing.kernel(form, tensors))
    for name, module in list(head.named_children()):
        if isinstance(module, nn.Embedding):
            kept = torch.float32 if form == "fp32" else torch.bfloat16
            setattr(head, name, Embedding(module.weight.detach().to(kept), 1.0))
