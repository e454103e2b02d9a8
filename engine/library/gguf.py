"""GGUF headers: what a file says of itself, and where its tensors lie.

Knows the container: metadata, tensor table, block sizes. Does not know what any key means, what
an architecture is, or how a block becomes numbers. Files come from strangers: every length is
held against the bytes that are left before it is used, and a header may fill `HEADER_LIMIT` bytes.

Source: docs/gguf.md in ggml-org/ggml, versions 2 and 3.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.errors import Incomplete, Unsupported

# The largest known headers (a vocabulary of 262 144, merges of 500 000) take about 20 MB.
HEADER_LIMIT = 64 * 2**20
SHORT_ARRAY = 1024
MAX_DIMENSIONS = 4
SMALLEST_PAIR = 13  # bytes: a length, no key, a type, one byte
SMALLEST_TENSOR = 24  # bytes: a length, no name, no dimensions, a type, an offset

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # value type -> struct
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file. `shape` as torch has it, `offset` from the file's start in bytes."""

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Header:
    """What stands before the weights of a GGUF file."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]


def read_header(path: Path, *, skip_arrays: bool = False) -> Header:
    """The header of the GGUF file at `path`; every tensor in it lies inside the file.

    `skip_arrays` leaves out arrays of more than 1024 entries (vocabulary, merges), which take
    most of the time. Raises Incomplete when it is no GGUF, cut off or damaged, Unsupported for
    other versions, unknown block types and split sets.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 24:
                raise _not_gguf(path)
            with mmap.mmap(file.fileno(), min(size, HEADER_LIMIT), access=mmap.ACCESS_READ) as data:
                return _header(_Cursor(data, path, size), skip_arrays)
    except OSError as error:
        raise Incomplete(
            "gguf_unreadable",
            "{file} cannot be read: {reason}.",
            file=path.name,
            reason=error.strerror or type(error).__name__,
        ) from error


def _header(cursor: "_Cursor", skip_arrays: bool) -> Header:
    if cursor.take(4) != b"GGUF":
        raise _not_gguf(cursor.path)
    version = cursor.number(_U32)
    if version not in (2, 3):
        raise Unsupported(
            "gguf_version",
            "{file} is GGUF version {version}; versions 2 and 3 can be read.",
            file=cursor.path.name,
            version=version,
        )
    tensor_count, pair_count = cursor.number(_U64), cursor.number(_U64)
    metadata = _metadata(cursor, pair_count, skip_arrays)
    parts = _whole(cursor, metadata, "split.count", 1)
    if parts > 1:
        raise Unsupported(
            "gguf_split",
            "{file} is one of {parts} parts; only single GGUF files can be loaded.",
            file=cursor.path.name,
            parts=parts,
        )
    alignment = _whole(cursor, metadata, "general.alignment", 32)
    if alignment < 1 or alignment & (alignment - 1):
        raise cursor.damaged("general.alignment")
    return Header(cursor.path, metadata, _tensors(cursor, tensor_count, alignment))


def _metadata(cursor: "_Cursor", count: int, skip_arrays: bool) -> dict[str, Any]:
    cursor.expect(count * SMALLEST_PAIR, "metadata")
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.text("metadata")
        if key in metadata:
            raise cursor.damaged(key)
        kind = cursor.number(_U32)
        if kind == _ARRAY:
            value = _array(cursor, key, skip_arrays)
            if value is not None:
                metadata[key] = value
        else:
            metadata[key] = _scalar(cursor, key, kind)
    return metadata


def _scalar(cursor: "_Cursor", key: str, kind: int) -> Any:
    if kind == _STRING:
        # A name or a licence with a broken character is shown with a mark, not refused.
        return cursor.take(cursor.number(_U64), key).decode("utf-8", "replace")
    if kind not in _SCALARS:
        raise cursor.damaged(key)
    return cursor.number(struct.Struct("<" + _SCALARS[kind]))


def _array(cursor: "_Cursor", key: str, skip: bool) -> list[Any] | None:
    kind, count = cursor.number(_U32), cursor.number(_U64)
    skip = skip and count > SHORT_ARRAY
    if kind == _STRING:
        cursor.expect(count * 8, key)
        return cursor.texts(count, key, skip)
    if kind not in _SCALARS:
        raise cursor.damaged(key)
    data = cursor.take(count * struct.calcsize("<" + _SCALARS[kind]), key)
    return None if skip else list(struct.unpack(f"<{count}{_SCALARS[kind]}", data))


def _whole(cursor: "_Cursor", metadata: Mapping[str, Any], key: str, default: int) -> int:
    value = metadata.get(key, default)
    if not isinstance(value, int):
        raise cursor.damaged(key)
    return value


def _tensors(cursor: "_Cursor", count: int, alignment: int) -> tuple[TensorInfo, ...]:
    cursor.expect(count * SMALLEST_TENSOR, "the tensor table")
    rows = [_row(cursor) for _ in range(count)]
    start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, ggml_type, offset in rows:
        nbytes = _nbytes(cursor, name, shape, ggml_type)
        if name in tensors or offset % alignment:
            raise cursor.damaged(name)
        if start + offset + nbytes > cursor.file_size:
            raise cursor.cut_off(name, start + offset + nbytes)
        tensors[name] = TensorInfo(name, shape, ggml_type, start + offset, nbytes)
    return tuple(tensors.values())


def _row(cursor: "_Cursor") -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape as torch has it, block type, offset behind the header in bytes."""
    name = cursor.text("the tensor table")
    dimensions = cursor.number(_U32)
    if dimensions > MAX_DIMENSIONS:
        raise cursor.damaged(name)
    shape = tuple(cursor.number(_U64) for _ in range(dimensions))[::-1]
    return name, shape, cursor.number(_U32), cursor.number(_U64)


def _nbytes(cursor: "_Cursor", name: str, shape: tuple[int, ...], ggml_type: int) -> int:
    sizes = _block_sizes().get(ggml_type)
    if sizes is None:
        raise Unsupported(
            "gguf_block_type",
            "Tensor {tensor} in {file} has the unknown block type {type}.",
            file=cursor.path.name,
            tensor=name,
            type=ggml_type,
        )
    block, block_bytes = sizes
    if 0 in shape or (shape and shape[-1] % block) or (not shape and block > 1):
        raise cursor.damaged(name)
    return math.prod(shape) // block * block_bytes


@cache
def _block_sizes() -> dict[int, tuple[int, int]]:
    """Block type -> numbers in a block, bytes of a block."""
    from gguf.constants import GGML_QUANT_SIZES

    return {int(kind): sizes for kind, sizes in GGML_QUANT_SIZES.items()}


def _not_gguf(path: Path) -> Incomplete:
    return Incomplete("gguf_magic", "{file} is not a GGUF file.", file=path.name)


class _Cursor:
    """Reads forwards through a file's first bytes and never beyond them."""

    def __init__(self, data: mmap.mmap, path: Path, file_size: int) -> None:
        self.data = data
        self.path = path
        self.file_size = file_size
        self.position = 0

    def expect(self, count: int, part: str) -> None:
        """Raises Incomplete unless `count` more bytes are there for `part`."""
        end = self.position + count
        if end > self.file_size:
            raise self.cut_off(part, end)
        if end > len(self.data):
            raise self.damaged(part)

    def take(self, count: int, part: str = "the header") -> bytes:
        self.expect(count, part)
        start = self.position
        self.position += count
        return self.data[start : self.position]

    def number(self, kind: struct.Struct) -> Any:
        return kind.unpack(self.take(kind.size))[0]

    def text(self, part: str) -> str:
        try:
            return self.take(self.number(_U64), part).decode()
        except UnicodeDecodeError as error:
            raise self.damaged(part) from error

    def texts(self, count: int, part: str, skip: bool) -> list[str] | None:
        """`count` strings, or None when they are only passed over. The hot loop of the file."""
        data, position, end = self.data, self.position, len(self.data)
        strings: list[bytes] = []
        for _ in range(count):
            start = position + 8
            stop = start + _U64.unpack_from(data, position)[0] if start <= end else start
            if stop > end:
                self.position = position
                self.expect(stop - position, part)
            if not skip:
                strings.append(data[start:stop])
            position = stop
        self.position = position
        try:
            return None if skip else [string.decode() for string in strings]
        except UnicodeDecodeError as error:
            raise self.damaged(part) from error

    def cut_off(self, part: str, needed: int) -> Incomplete:
        return Incomplete(
            "gguf_cut_off",
            "{file} is cut off: {part} needs {needed} bytes of a file that has {size}.",
            file=self.path.name,
            part=part,
            needed=needed,
            size=self.file_size,
        )

    def damaged(self, part: str) -> Incomplete:
        return Incomplete(
            "gguf_damaged", "{file} is damaged at {part}.", file=self.path.name, part=part
        )
