"""Quantised weights kept on disk, so that a model is quantised once.

One safetensors file per model and precision, and beside it what was found out about it. Written
beside and renamed, checked by size and hash when read, deleted oldest first when there are too
many; deleting any of them only costs time.
"""

import contextlib
import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open

# All kept weights together, bytes: a 14B model in int8, or several small ones.
LIMIT = 20 << 30
# Seconds after which nobody writes to a file any more.
LEFT_BEHIND = 24 * 3600
# Raise it when the way of quantising changes.
RECIPE = 2
NAMES = {
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.float32: "F32",
}

Shapes = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]


def key_of(path: Path, files: Sequence[Path], precision: str) -> str:
    """A name for the quantised weights of the model whose weights are `files`."""
    digest = hashlib.sha256(f"{RECIPE} {precision} {path}".encode())
    for file in files:
        stat = file.stat()
        digest.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


class Store:
    """The folder of kept weights."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._limit = folder, limit

    def facts(self, key: str) -> dict[str, Any]:
        """What is known of the weights `key`, empty where nothing is."""
        try:
            found = json.loads(self._facts(key).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def note(self, key: str, **facts: Any) -> None:
        """Keep `facts` beside the weights; a full disk only means they are not kept."""
        beside = self._facts(key).with_suffix(f".{os.getpid()}.partial")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(self.facts(key) | facts), encoding="utf-8")
            beside.replace(self._facts(key))

    def tensors(self, key: str, shapes: Shapes) -> Iterator[tuple[str, torch.Tensor]] | None:
        """The kept tensors of `key` in the order of `shapes`, or None where they are not kept.

        The iterator raises Damaged at its end when their hash is not the one noted.
        """
        file = self._weights(key)
        expected = self.facts(key).get("sha256")
        if not file.is_file() or not isinstance(expected, str):
            return None
        try:
            if file.stat().st_size != _size(shapes):
                raise Damaged(file.name)
            return _read(file, shapes, expected)
        except (OSError, Damaged):
            self.drop(key)
            return None

    def drop(self, key: str) -> None:
        """Delete the weights `key` and what was noted of them."""
        for file in (self._weights(key), self._facts(key)):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)

    def writer(self, key: str, shapes: Shapes) -> "Writer | None":
        """A writer for tensors of these shapes; None when there is no room for them."""
        size = _size(shapes)
        if size > self._limit:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room(size)
            return Writer(self, key, self._weights(key), shapes)
        except OSError:
            return None

    def _make_room(self, size: int) -> None:
        """Delete the least recently used weights until `size` bytes more stay in the limit.

        And what a program that was killed left half written.
        """
        for left in self._folder.glob("*.partial"):
            if time.time() - left.stat().st_mtime > LEFT_BEHIND:
                left.unlink(missing_ok=True)
        kept = sorted(self._folder.glob("*.safetensors"), key=lambda f: f.stat().st_mtime)
        total = sum(f.stat().st_size for f in kept)
        while kept and total + size > self._limit:
            oldest = kept.pop(0)
            total -= oldest.stat().st_size
            self.drop(oldest.stem)

    def _weights(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"

    def _facts(self, key: str) -> Path:
        return self._folder / f"{key}.json"


class Damaged(Exception):
    """Kept weights are not what was written."""


class Writer:
    """Writes tensors one by one; `finish` makes them the kept ones, `cancel` leaves nothing."""

    def __init__(self, store: Store, key: str, file: Path, shapes: Shapes) -> None:
        self._store, self._key, self._file = store, key, file
        self._beside = file.with_suffix(f".{os.getpid()}.partial")
        self._digest = hashlib.sha256()
        self._out: BinaryIO | None = self._beside.open("wb")
        self._put(_header(shapes), hashed=False)

    def put(self, tensor: torch.Tensor) -> None:
        """The next tensor of the shapes. Once the disk is full, nothing is written any more."""
        self._put(memoryview(_bytes(tensor)), hashed=True)

    def finish(self) -> None:
        if self._out is None:
            return
        try:
            self._out.close()
            self._beside.replace(self._file)
            self._store.note(self._key, sha256=self._digest.hexdigest())
        except OSError:
            self.cancel()

    def cancel(self) -> None:
        if self._out is not None:
            with contextlib.suppress(OSError):
                self._out.close()
        self._out = None
        with contextlib.suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _put(self, data: bytes | memoryview, *, hashed: bool) -> None:
        if self._out is None:
            return
        try:
            self._out.write(data)
        except OSError:
            self.cancel()
            return
        if hashed:
            self._digest.update(data)


def _read(file: Path, shapes: Shapes, expected: str) -> Iterator[tuple[str, torch.Tensor]]:
    digest = hashlib.sha256()
    try:
        with safe_open(file, framework="pt") as kept:
            for name, (dtype, shape) in shapes.items():
                tensor = kept.get_tensor(name)
                if tensor.dtype != dtype or tuple(tensor.shape) != shape:
                    raise Damaged(file.name)
                digest.update(_bytes(tensor))
                yield name, tensor
    except (SafetensorError, OSError) as error:
        raise Damaged(file.name) from error
    if digest.hexdigest() != expected:
        raise Damaged(file.name)
    with contextlib.suppress(OSError):
        os.utime(file)


def _bytes(tensor: torch.Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()


def _header(shapes: Shapes) -> bytes:
    """The head of a safetensors file: its length in 8 bytes, and JSON that says where each is."""
    at, entries = 0, {}
    for name, (dtype, shape) in shapes.items():
        size = dtype.itemsize * torch.Size(shape).numel()
        entries[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _size(shapes: Shapes) -> int:
    data = sum(d.itemsize * torch.Size(s).numel() for d, s in shapes.values())
    return len(_header(shapes)) + data
