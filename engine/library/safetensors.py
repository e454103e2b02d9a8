"""Safetensors headers: which tensors a file holds and whether all their bytes are there.

Knows the container. Does not read weights, nor know what a tensor is for. Files come from
strangers: every number is held against the size of the file before it is used.

Source: the format description in huggingface/safetensors, README.md.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from engine.errors import Incomplete
from engine.library import files

HEADER_LIMIT = 100 * 2**20  # bytes; the safetensors library allows 100 MB

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file. `begin` and `end` in bytes behind the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def read_header(path: Path) -> dict[str, TensorInfo]:
    """The tensors of the file at `path` by name; all of them lie inside it.

    Raises Incomplete when the file is missing, empty, cut off or damaged.
    """
    prefix = files.read_start(path, 8)
    size = path.stat().st_size
    if not prefix:
        raise Incomplete("file_empty", "{file} is empty.", file=path.name)
    length = int.from_bytes(prefix, "little")
    if length > HEADER_LIMIT:
        raise files.damaged(path.name)
    if length > size - 8:
        raise _cut_off(path, size, 8 + length)
    header = files.parse_object(files.read_start(path, 8 + length)[8:], path.name)
    header.pop("__metadata__", None)
    tensors = {name: _tensor(name, entry, path) for name, entry in header.items()}
    _check_places(tensors, path, size, 8 + length)
    return tensors


def read_tensor(path: Path, tensor: TensorInfo, limit: int) -> bytes:
    """The bytes of one small tensor of the file at `path`, as `read_header` found it.

    Raises Incomplete when there are more than `limit`, or the file is cut off.
    """
    if tensor.end - tensor.begin > limit:
        raise _misplaced(tensor.name, path)
    start = 8 + int.from_bytes(files.read_start(path, 8), "little")
    found = files.read_part(path, start + tensor.begin, tensor.end - tensor.begin)
    if len(found) < tensor.end - tensor.begin:
        raise _misplaced(tensor.name, path)
    return found


def _tensor(name: str, entry: Any, path: Path) -> TensorInfo:
    """One checked row of the header: its bytes are as many as type and shape say."""
    fields = entry if isinstance(entry, dict) else {}
    dtype, shape, place = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise _misplaced(name, path)
    if not _whole(shape) or not _whole(place) or len(place) != 2:
        raise _misplaced(name, path)
    tensor = TensorInfo(name, dtype, tuple(shape), place[0], place[1])
    if tensor.numel * BITS[dtype] != (tensor.end - tensor.begin) * 8:
        raise _misplaced(name, path)
    return tensor


def _whole(numbers: Any) -> TypeGuard[list[int]]:
    """Whether it is a list of whole numbers, none negative; True and False are no numbers."""
    return isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)


def _check_places(tensors: dict[str, TensorInfo], path: Path, size: int, start: int) -> None:
    """Each tensor begins where the one before it ends, and the last ends with the file."""
    position = 0
    for tensor in sorted(tensors.values(), key=lambda t: (t.begin, t.end)):
        if tensor.begin != position:
            raise _misplaced(tensor.name, path)
        position = tensor.end
    if start + position > size:
        raise _cut_off(path, size, start + position)
    if start + position < size:
        raise files.damaged(path.name)


def _misplaced(name: str, path: Path) -> Incomplete:
    return Incomplete(
        "tensor_damaged",
        "{file} is damaged: tensor {tensor} has a wrong type, shape or place.",
        file=path.name,
        tensor=name,
    )


def _cut_off(path: Path, size: int, needed: int) -> Incomplete:
    return Incomplete(
        "file_cut_off",
        "{file} is cut off: {size} of {needed} bytes are there.",
        file=path.name,
        size=size,
        needed=needed,
    )
