"""A head on disk to one that runs beside its target.

Everything is checked before a weight is read (`library.heads`); only safetensors are.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from engine.api import ModelInfo, Precision
from engine.checkpoint import FolderWeights
from engine.errors import DraftRefused, first_line
from engine.heads.assistant import AssistantHead
from engine.heads.dflash import DFlashHead
from engine.heads.eagle3 import Eagle3Head, PEagleHead
from engine.heads.mtp import MtpHead
from engine.kernels import linear, packing
from engine.kernels.network import Embedding, groups, replace
from engine.library import heads, mtp
from engine.library.assistant import Assistant
from engine.library.dflash import DFlash
from engine.library.eagle3 import Eagle3, PEagle
from engine.library.folder import weight_files
from engine.library.inspect import resolve
from engine.library.mtp import Mtp
from engine.model import LanguageModel


class Head(Protocol):
    """What is asked of a head that guesses token by token; `engine.heads.eagle3` explains it."""

    name: str
    places: tuple[int, ...]
    known: int
    default_length: int

    @property
    def length(self) -> int: ...

    def crop_to(self, length: int) -> None: ...

    def empty(self) -> None: ...

    def joined(self, states: torch.Tensor) -> torch.Tensor: ...

    def __call__(self, x: torch.Tensor, tokens: torch.Tensor, position: int) -> torch.Tensor: ...

    def logits(self, out: torch.Tensor) -> torch.Tensor: ...


HEADS: Mapping[type, Callable[..., Eagle3Head | DFlashHead | AssistantHead]] = {
    Eagle3: Eagle3Head,
    PEagle: PEagleHead,
    DFlash: DFlashHead,
    Assistant: AssistantHead,
}


# Hears how many parameters more are in place, and may end the opening by an error.
Told = Callable[[int], None]


def _unheard(more: int) -> None:
    pass


def open_head(
    path: Path,
    target: LanguageModel,
    info: ModelInfo,
    precision: Precision,
    told: Told = _unheard,
) -> Eagle3Head | DFlashHead | AssistantHead:
    """The head at `path`, for `target`, which `info` describes; on the target's device.

    On a processor its matrices are packed as those of a model are. Raises DraftRefused where it
    does not belong to the target, what reading files raises, and what `told` does.
    """
    shape = heads.read(path, info)
    with torch.device("meta"):
        head = HEADS[type(shape)](shape, target)
    weights = FolderWeights(weight_files(resolve(path)))
    for name, stored in shape.stored.items():
        if name in shape.shapes:
            _fill(head, name, weights.read(stored), stored)
    _settle(head, target.device, precision, told)
    try:
        head.ready(target.device)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DraftRefused(
            "head_positions",
            "Its rotary positions cannot be computed: {error}",
            error=first_line(error),
        ) from error
    return head


def open_mtp(
    target: LanguageModel, info: ModelInfo, precision: Precision, told: Told = _unheard
) -> MtpHead:
    """The head that `target`, which `info` describes, brings in its own files.

    Raises DraftRefused where it has none, or one that is not read here, and what `told` raises.
    """
    weights = FolderWeights(weight_files(info.path) if info.format == "safetensors" else [])
    shapes = weights.shapes()
    kind = mtp.find(shapes, target.layer_count)
    if kind is None:
        raise DraftRefused("no_mtp", "{name} has no head of its own.", name=info.name)
    head = MtpHead(kind, target)
    stored = {name: _sources(source, shapes) for name, source in head.sources.items()}
    _compare(head, stored, shapes, kind)
    for name, sources in stored.items():
        _fill(head, name, _joined(sources, weights), sources[0][0])
    _settle(head, target.device, precision, told)
    return head


STORED = (torch.float32, torch.float16, torch.bfloat16)
# By what each of a mixture's experts is called in files, and all of them together in a network.
EXPERTS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
Shapes = Mapping[str, tuple[int, ...]]


def _sources(name: str, shapes: Shapes) -> list[list[str]]:
    """The tensors that make up `name`: itself, or for each expert those that lie one above the
    other."""
    path, _, part = name.rpartition(".")
    if name in shapes or not path.endswith(".experts") or part not in EXPERTS:
        return [[name]]
    found: list[list[str]] = []
    while f"{path}.{len(found)}.{EXPERTS[part][0]}.weight" in shapes:
        found.append([f"{path}.{len(found)}.{one}.weight" for one in EXPERTS[part]])
    return found or [[name]]


def _joined(sources: list[list[str]], weights: FolderWeights) -> torch.Tensor:
    parts = [torch.cat([weights.read(name) for name in expert]) for expert in sources]
    return parts[0] if len(parts) == 1 else torch.stack(parts)


def _compare(
    head: MtpHead, stored: Mapping[str, list[list[str]]], shapes: Shapes, kind: Mtp
) -> None:
    """Raises DraftRefused unless the head has the tensors that it needs and no others."""
    needed = {name: tuple(tensor.shape) for name, tensor in head.state_dict().items()}
    used = {one for sources in stored.values() for expert in sources for one in expert}
    for name, sources in stored.items():
        for one in (one for expert in sources for one in expert):
            if one not in shapes:
                raise DraftRefused("head_lacks_tensor", "It lacks the tensor {tensor}", tensor=one)
        rows = sum(shapes[one][0] for one in sources[0])
        whole = (rows, *shapes[sources[0][0]][1:])
        found = whole if len(sources) == 1 else (len(sources), *whole)
        if found != needed[name]:
            raise DraftRefused(
                "head_shape",
                "Its tensor {tensor} is {found}, not {needed}",
                tensor=sources[0][0],
                found=" x ".join(map(str, found)),
                needed=" x ".join(map(str, needed[name])),
            )
    surplus = {name for name in shapes if name.startswith(kind.layer)} - used
    surplus -= {*kind.unread, *kind.beside}
    if surplus:
        raise DraftRefused(
            "head_surplus",
            "Its tensor {tensor} has no use that is known here",
            tensor=min(surplus)[:60],
        )


def _settle(head: nn.Module, device: torch.device, precision: Precision, told: Told) -> None:
    """Bring a filled head to where and how it computes."""
    if device.type == "cpu":
        _pack(head, precision, told)
    else:
        _move(head, device, told)
    head.requires_grad_(False).eval()


def _move(head: nn.Module, device: torch.device, told: Told) -> None:
    """To `device`, in 16 bits. What is in no file, as the frequencies of rotary positions, stays
    as precise as it is: with fewer digits far positions would be others."""
    stored = head.state_dict().keys()
    for path, module in head.named_modules():
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.to(device, torch.bfloat16)
            told(parameter.numel())
        for name, buffer in module.named_buffers(recurse=False):
            shorter = f"{path}.{name}".lstrip(".") in stored and buffer.is_floating_point()
            kept = torch.bfloat16 if shorter else buffer.dtype
            module._buffers[name] = buffer.to(device, kept)


def _fill(head: nn.Module, name: str, tensor: torch.Tensor, stored: str) -> None:
    """Put a tensor, in files called `stored`, in its place, in the type that it is stored in."""
    if tensor.dtype not in STORED:
        raise DraftRefused(
            "head_quantised",
            "Its tensor {tensor} is quantised: {type}",
            tensor=stored,
            type=str(tensor.dtype).removeprefix("torch."),
        )
    path, _, attribute = name.rpartition(".")
    module = head.get_submodule(path)
    if attribute in module._buffers:
        module._buffers[attribute] = tensor.float()
    else:
        module._parameters[attribute] = nn.Parameter(tensor, requires_grad=False)


def _pack(head: nn.Module, precision: Precision, told: Told) -> None:
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
            tensors["bias"] = torch.cat(biases).float()
        replace(group, packing.kernel(form, tensors))
        told(matrix.numel())
    for name, module in list(head.named_children()):
        if isinstance(module, nn.Embedding):
            kept = torch.float32 if form == "fp32" else torch.bfloat16
            setattr(head, name, Embedding(module.weight.detach().to(kept), 1.0))
    tables = {id(m.weight) for m in head.modules() if isinstance(m, Embedding)}
    for parameter in head.parameters():
        if id(parameter) not in tables:
            parameter.data = parameter.data.float()
