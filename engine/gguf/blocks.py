"""Tensors of a GGUF file, one at a time, as float32. Knows blocks, not models."""

import math
from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
import torch

from engine.errors import Cancelled, Incomplete, Unsupported
from engine.library.gguf import Header, TensorInfo

# Numbers dequantised at once: larger pieces leave the CPU's cache (measured). Whole blocks.
CHUNK = 2**17


def read_tensor(
    header: Header,
    info: TensorInfo,
    stopped: Callable[[], bool] = lambda: False,
) -> torch.Tensor:
    """One tensor as float32, read and dequantised in pieces.

    Raises Incomplete when the file ends early, Unsupported for blocks without a dequantiser, and
    Cancelled when `stopped` says so between two pieces.
    """
    kind = gguf.GGMLQuantizationType(info.ggml_type)
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    values = np.empty(math.prod(info.shape), np.float32)
    with header.files[info.part].open("rb") as file:
        file.seek(info.offset)
        for start in range(0, values.size, CHUNK):
            if stopped():
                raise Cancelled()
            piece = values[start : start + CHUNK]
            # As one long row: gguf takes 16 rows at a time, too few for numpy (measured).
            data = np.frombuffer(file.read(piece.size // block * block_bytes), np.uint8)
            if data.size * block != piece.size * block_bytes:
                raise missing(header, info.name)
            piece[:] = _numbers(data, kind, header)
    return torch.from_numpy(values).reshape(info.shape)


def _numbers(data: "np.ndarray[Any, Any]", kind: Any, header: Header) -> Any:
    try:
        return gguf.dequantize(data, kind)
    except NotImplementedError as error:
        raise Unsupported(
            "gguf_quantisation",
            "{file} is quantised as {type}, which cannot be read.",
            file=header.path.name,
            type=kind.name,
        ) from error


def has(header: Header, tensor: str) -> bool:
    return any(info.name == tensor for info in header.tensors)


def missing(header: Header, tensor: str) -> Incomplete:
    return Incomplete(
        "gguf_tensor_missing",
        "In {file} the tensor {tensor} is missing or of another size than the settings say.",
        file=header.path.name,
        tensor=tensor,
    )
