"""Bytes that a model takes on a device at a precision, from what its files say.

Arithmetic only: knows no file, no device's free memory and no model that runs. Whatever is not
known is None, never a guess.
"""

from dataclasses import dataclass

from engine.api import ModelInfo, Precision
from engine.errors import Reason

FLOAT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
# Of a number in a matrix that is packed for the processor; float32 as up to two float16 parts.
PACKED_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
ROW_BYTES = 8  # the scale of a row of int8, as torch keeps it
INT4_GROUP, GROUP_BYTES = 64, 4  # numbers that share a scale and a zero point; bytes of the two


@dataclass(frozen=True)
class Estimate:
    """Bytes of the weights and of the keys and values. None: the files do not say enough.

    `reason` says why keys and values are wider than the precision alone would have them.
    """

    weights: int | None
    cache: int | None
    cache_precision: Precision
    reason: Reason | None = None

    @property
    def total(self) -> int | None:
        """Both together."""
        if self.weights is None or self.cache is None:
            return None
        return self.weights + self.cache


def estimate(info: ModelInfo, precision: Precision, device: str, context: int) -> Estimate:
    """What `info` takes at `precision` on `device` when `context` tokens are held."""
    kept_as = cache_precision(precision, device)
    wide = kept_as == "fp32" and precision != "fp32"
    return Estimate(
        weights=weight_bytes(info, precision, device),
        cache=cache_bytes(info, context, FLOAT_BYTES[kept_as]),
        cache_precision=kept_as,
        reason=_WIDE_CACHE if wide else None,
    )


def cache_precision(precision: Precision, device: str) -> Precision:
    """The type of keys and values: the weights' own, bf16 beside quantised ones; fp32 on a CPU."""
    if device == "cpu":
        return "fp32"
    return precision if precision in FLOAT_BYTES else "bf16"


def weight_bytes(info: ModelInfo, precision: Precision, device: str) -> int | None:
    """Bytes of all weights.

    int8 takes a byte for each number of a matrix and a scale for each of its rows, int4 half a
    byte and 4 bytes for each group of 64. On a CPU every matrix is packed (`engine.kernels`), the
    output matrix in 8 bits at least, so that a tied one is there twice: packed, and as the table
    of tokens, which has 16 bits below fp32; the few other numbers have 32. Elsewhere a tied matrix
    is there once, and all but the linear layers has 16 bits beside int8 and int4 (desktop.md 7).
    """
    if info.linear is None or info.embedding is None or info.head is None:
        return None
    rows, rest = info.linear_rows or 0, info.other or 0
    if device == "cpu":
        table = 4 if precision == "fp32" else 2
        matrix, matrix_rows = info.head or info.embedding, info.vocab_size or 0
        output = _packed(matrix, matrix_rows, "int8" if precision == "int4" else precision)
        layers = _packed(info.linear, rows, precision)
        return layers + output + table * info.embedding + 4 * rest
    others = info.embedding + info.head + rest
    if precision in FLOAT_BYTES:
        return FLOAT_BYTES[precision] * (info.linear + others)
    return _packed(info.linear, rows, precision) + 2 * others


def cache_bytes(info: ModelInfo, context: int, element: int) -> int | None:
    """Bytes of the keys and values of `context` tokens, `element` bytes per number.

    The sum over layers of width x min(context, window), a width being 2 x kv_heads x head_dim, or
    rank + rotary size where a latent is kept (desktop.md 7).
    """
    if info.cache_widths is None or info.cache_windows is None:
        return None
    layers = zip(info.cache_widths, info.cache_windows, strict=True)
    return element * sum(width * min(context, window or context) for width, window in layers)


def _packed(numbers: int, rows: int, precision: Precision) -> int:
    """Bytes of a matrix of so many `numbers` in `rows`."""
    if precision == "int8":
        return numbers + ROW_BYTES * rows
    if precision == "int4":
        return numbers // 2 + GROUP_BYTES * -(-numbers // INT4_GROUP)
    return PACKED_BYTES[precision] * numbers


_WIDE_CACHE = Reason(
    "cache_fp32_on_cpu",
    "Keys and values stay in 32 bits on the processor: attention that is both fast and bit-exact "
    "there needs them so.",
)
