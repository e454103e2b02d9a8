"""GGUF headers: what a file says of itself, and where its tensors lie.

Knows the container: metadata, tensor table, block sizes. Does not know what any key means, what
an architecture is, or how a block becomes numbers. Files come from strangers: every length is
held against the bytes that are left before it is used, and a header may fill `HEADER_LIMIT` bytes.

Source: docs/gguf.md in ggml-org/ggml, versions 2 and 3.
"""

import hashlib
import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import Incomplete, Unsupported
from engine.library import files

# The largest known headers (a vocabulary of 262 144, merges of 500 000) take about 20 MB.
HEADER_LIMIT = 64 * 2**20
SHORT_ARRAY = 1024
MOST_WALKED = 48  # arrays of strings that are remembered, two for each vocabulary
EDGE = 64  # bytes at both ends of one, by which others are told from it; each has more
MAX_DIMENSIONS = 4
# Parts of a split set, by llama.cpp's way to name them.
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.I)
MOST_PARTS = 1000
SPLIT_COUNT, SPLIT_NUMBER, SPLIT_TENSORS = "split.count", "split.no", "split.tensors.count"
SMALLEST_PAIR = 13  # bytes: a length, no key, a type, one byte
SMALLEST_TENSOR = 24  # bytes: a length, no name, no dimensions, a type, an offset

# Block type -> numbers in a block, bytes of a block: gguf.constants.GGML_QUANT_SIZES of gguf 0.19,
# which takes numpy and a fifth of a second to import, too long for a list of models.
BLOCKS = {
    **{0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34)},
    **{9: (32, 40), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176)},
    **{14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98)},
    **{19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1)},
    **{25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54)},
    **{35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18)},
}

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # value type -> struct
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True)
class TensorInfo:
    """One tensor. `shape` as torch has it, `offset` from its file's start in bytes.

    `part` is the number of the file in a split set, from 0.
    """

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    offset: int
    nbytes: int
    part: int = 0


@dataclass(frozen=True)
class Header:
    """What stands before the weights of a GGUF file, or of all files of a split set."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]
    parts: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Where the tensors lie, by the number of their part."""
        return self.parts or (self.path,)


def read_header(path: Path, *, arrays: Mapping[str, int] | None = None) -> Header:
    """The header of the GGUF file at `path`; every tensor in it lies inside its file.

    Of a split set any part will do: the metadata are the first one's, the tensors all parts'.
    Of arrays with more than 1024 entries (vocabulary, merges), which take most of the time, so
    many are read as `arrays` has for their key, by default all. Raises Incomplete when it is no
    GGUF, cut off or damaged or lacks a part, Unsupported for other versions and unknown block
    types.
    """
    every = parts(path)
    if len(every) == 1:
        header = _read(path, arrays)
        if _stated(header, SPLIT_COUNT, 1) > 1:
            # it says that it is a part, and its name does not say of what
            raise _part_missing(path, 2)
        return header
    headers = [_read(file, arrays) for file in every]
    for number, header in enumerate(headers):
        if (_stated(header, SPLIT_COUNT, 1), _stated(header, SPLIT_NUMBER, 0)) != (
            len(every),
            number,
        ):
            raise _damaged(header.path, SPLIT_NUMBER)
    tensors = [replace(t, part=n) for n, header in enumerate(headers) for t in header.tensors]
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise _damaged(path, "the tensor table")
    if _stated(headers[0], SPLIT_TENSORS, len(tensors)) != len(tensors):
        raise _damaged(path, SPLIT_TENSORS)
    return Header(every[0], headers[0].metadata, tuple(tensors), tuple(every))


def parts(path: Path) -> list[Path]:
    """All files of the split set that `path` is a part of, by name; otherwise `path` alone.

    Raises Incomplete when one is missing.
    """
    match = PART.fullmatch(path.name)
    if match is None or not 1 < int(match["count"]) <= MOST_PARTS:
        return [path]
    stem, count, suffix = match["stem"], match["count"], match["suffix"]
    found = [path.with_name(f"{stem}-{n:05d}-of-{count}{suffix}") for n in range(1, int(count) + 1)]
    for number, file in enumerate(found, 1):
        if not files.exists(file):
            raise _part_missing(path, number)
    return found


def _part_missing(path: Path, number: int) -> Incomplete:
    return Incomplete(
        "gguf_part_missing", "Part {part} of {file} is missing.", file=path.name, part=number
    )


def _stated(header: Header, key: str, default: int) -> int:
    value = header.metadata.get(key, default)
    if not isinstance(value, int):
        raise _damaged(header.path, key)
    return value


def _damaged(path: Path, part: str) -> Incomplete:
    return Incomplete("gguf_damaged", "{file} is damaged at {part}.", file=path.name, part=part)


def _read(path: Path, arrays: Mapping[str, int] | None) -> Header:
    try:
        with files.opened(path) as file:
            size = file.seek(0, 2)
            if size < 24:
                raise _not_gguf(path)
            with mmap.mmap(file.fileno(), min(size, HEADER_LIMIT), access=mmap.ACCESS_READ) as data:
                return _header(_Cursor(data, path, size), arrays)
    except OSError as error:
        raise files.unreadable(path, error) from error


def _header(cursor: "_Cursor", arrays: Mapping[str, int] | None) -> Header:
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
    metadata = _metadata(cursor, pair_count, arrays)
    alignment = _whole(cursor, metadata, "general.alignment", 32)
    if alignment < 1 or alignment & (alignment - 1):
        raise cursor.damaged("general.alignment")
    return Header(cursor.path, metadata, _tensors(cursor, tensor_count, alignment))


def _metadata(cursor: "_Cursor", count: int, arrays: Mapping[str, int] | None) -> dict[str, Any]:
    cursor.expect(count * SMALLEST_PAIR, "metadata")
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.text("metadata")
        if key in metadata:
            raise cursor.damaged(key)
        kind = cursor.number(_U32)
        if kind == _ARRAY:
            value = _array(cursor, key, arrays)
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


def _array(cursor: "_Cursor", key: str, arrays: Mapping[str, int] | None) -> list[Any] | None:
    kind, count = cursor.number(_U32), cursor.number(_U64)
    most = count if arrays is None or count <= SHORT_ARRAY else min(count, arrays.get(key, 0))
    if kind == _STRING:
        cursor.expect(count * 8, key)
        found = cursor.texts(count, key, most)
    elif kind in _SCALARS:
        data = cursor.take(count * struct.calcsize("<" + _SCALARS[kind]), key)
        found = list(struct.unpack_from(f"<{most}{_SCALARS[kind]}", data))
    else:
        raise cursor.damaged(key)
    return None if most < count and not most else found


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
    sizes = BLOCKS.get(ggml_type)
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


def _not_gguf(path: Path) -> Incomplete:
    return Incomplete("gguf_magic", "{file} is not a GGUF file.", file=path.name)


class _Walked:
    """Long arrays of strings that were walked: most files share their vocabulary with others, and
    to hash its bytes takes a tenth of the time of going from length to length.

    Of each are kept its count, its first and last bytes, its length and its digest. Threads may
    both add one, and so lose the other's: it is walked again.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[int, bytes, bytes, int, bytes], ...] = ()

    def length(self, data: mmap.mmap, start: int, count: int) -> int | None:
        """The bytes of the `count` strings at `start` where they are, byte for byte, known ones."""
        for known, first, last, length, digest in self._known:
            end = start + length
            if (
                known == count
                and end <= len(data)
                and data[start : start + EDGE] == first
                and data[end - EDGE : end] == last
                and _digest(data, start, end) == digest
            ):
                return length
        return None

    def keep(self, data: mmap.mmap, start: int, end: int, count: int) -> None:
        """Remember the `count` strings from `start` to `end`."""
        first, last = data[start : start + EDGE], data[end - EDGE : end]
        new = (count, first, last, end - start, _digest(data, start, end))
        self._known = (new, *self._known[: MOST_WALKED - 1])


def _digest(data: mmap.mmap, start: int, end: int) -> bytes:
    # by SHA-256 and not BLAKE2: processors of today have it built in, and take a third of the time
    with memoryview(data) as view, view[start:end] as part:
        return hashlib.sha256(part).digest()


_walked = _Walked()


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
        self.expect(kind.size, "the header")
        start = self.position
        self.position += kind.size
        return kind.unpack_from(self.data, start)[0]

    def text(self, part: str) -> str:
        try:
            return self.take(self.number(_U64), part).decode()
        except UnicodeDecodeError as error:
            raise self.damaged(part) from error

    def texts(self, count: int, part: str, most: int) -> list[str]:
        """The first `most` of `count` strings; the others are passed over. The file's hot loop."""
        found = self._strings(most, part, keep=True)
        self._pass_over(count - most, part)
        try:
            return [string.decode() for string in found]
        except UnicodeDecodeError as error:
            raise self.damaged(part) from error

    def _pass_over(self, count: int, part: str) -> None:
        """Go on behind `count` strings: at once where the same ones were walked before."""
        if count <= SHORT_ARRAY:
            self._strings(count, part, keep=False)
            return
        length = _walked.length(self.data, self.position, count)
        if length is None:
            start = self.position
            self._strings(count, part, keep=False)
            _walked.keep(self.data, start, self.position, count)
        else:
            self.position += length

    def _strings(self, count: int, part: str, *, keep: bool) -> list[bytes]:
        data, position, end = self.data, self.position, len(self.data)
        strings: list[bytes] = []
        for _ in range(count):
            start = position + 8
            stop = start + _U64.unpack_from(data, position)[0] if start <= end else start
            if stop > end:
                self.position = position
                self.expect(stop - position, part)
            if keep:
                strings.append(data[start:stop])
            position = stop
        self.position = position
        return strings

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
        return _damaged(self.path, part)
