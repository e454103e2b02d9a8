"""Bytes that a model takes on a device at a precision, from what its files say.

Arithmetic only: knows no file, no device's free memory and no model that runs. Whatever is not
known is None, never a guess.
"""

from dataclasses import dataclass

from engine import families
from engine.api import Kind, ModelInfo, Precision
from engine.errors import Reason

# Formats of quantised weights that are read back into 16 bits when loaded: transformers would
# compute with them by compiled code that it fetches.
WIDENED = frozenset({"fp8", "mxfp4"})
FLOAT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
# Of a number in a matrix that is packed for the processor; float32 as up to two float16 parts.
PACKED_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
ROW_BYTES = 8  # the scale of a row of int8, as torch keeps it
# As engine.cache and engine.kernels.attention have them, which this file may not import: torch.
BUCKET, KEPT_BEHIND = 128, 512
# A running state as it is, as it was at 4 earlier lengths (engine.running.KEPT_STATES), and before
# each row of a round of 4 drafts.
STATES = 1 + 4 + 5
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
    kept_as = cache_precision(info, precision, device)
    wide = kept_as == "fp32" and precision != "fp32"
    return Estimate(
        weights=weight_bytes(info, precision, device),
        cache=cache_bytes(info, context, FLOAT_BYTES[kept_as], device),
        cache_precision=kept_as,
        reason=_WIDE_CACHE if wide else None,
    )


def compared(
    info: ModelInfo, precision: Precision, device: str, context: int, weights: int, cache: int
) -> str:
    """The estimate beside the bytes that `weights` and a cache of `context` tokens really hold."""
    said = estimate(info, precision, device, context)
    pairs = (("weights", said.weights, weights), (f"{context} tokens", said.cache, cache))
    told = [f"{name}: {_mib(one)} MiB estimated, {_mib(other)} held" for name, one, other in pairs]
    return f"{info.name}, {precision}, {'; '.join(told)}"


def _mib(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**20:.1f}"


def cache_precision(info: ModelInfo, precision: Precision, device: str) -> Precision:
    """The type of keys and values: the weights' own, bf16 beside quantised ones; fp32 on a CPU,
    but for a model that runs as the library has it there."""
    if device == "cpu" and families.held(info) != "library's":
        return "fp32"
    return precision if precision in FLOAT_BYTES else "bf16"


def weight_bytes(info: ModelInfo, precision: Precision, device: str) -> int | None:
    """Bytes of all weights; None where it is not known how the model lies in memory.

    int8 takes a byte for each number of a matrix and a scale for each of its rows, int4 half a
    byte and 4 bytes for each group of 64. Beside them, but on a CPU, a tied matrix is there once,
    and all but the linear layers has 16 bits, a mixture's experts too: they are no linear layers
    to the packages that quantise there (desktop.md 7). A head is never smaller than in int8, and
    has 16 bits on any other device than a CPU (`engine.heads.opening`).
    """
    if info.kind is Kind.HEAD:
        precision = _of_head(precision, device)
    if info.format == "safetensors" and info.quantisation not in (None, *WIDENED):
        # kept as stored; without a graphics card not even that is sure
        return info.file_bytes if device == "cuda" else None
    if info.linear is None or info.embedding is None or info.head is None:
        return None
    rows, rest = info.linear_rows or 0, info.other or 0
    others = info.embedding + info.head + rest
    if device == "cpu":
        way = families.held(info)
        if way == "library's":
            return FLOAT_BYTES.get(precision, 2) * (info.linear + others)
        return None if way is None else _on_our_kernels(info, precision, way)
    if precision in FLOAT_BYTES:
        return FLOAT_BYTES[precision] * (info.linear + others)
    return _packed(info.linear - info.experts, rows, precision) + 2 * (others + info.experts)


def _of_head(precision: Precision, device: str) -> Precision:
    """The precision that a head has when this one is asked for."""
    if device != "cpu":
        return "bf16"
    return "int8" if precision == "int4" else precision


def _on_our_kernels(info: ModelInfo, precision: Precision, way: families.Held) -> int:
    """Bytes on a CPU, where every matrix that `way` allows is packed (`engine.kernels`).

    The output matrix has 8 bits at least, so that a tied one is there twice: packed, and as the
    table of tokens, which has 16 bits below fp32. All other numbers have 32.
    """
    linear, tables, rest = info.linear or 0, info.embedding or 0, info.other or 0
    wide = linear if way == "wide" else info.experts if way == "wide experts" else 0
    matrix = info.head or min(tables, (info.vocab_size or 0) * (info.hidden_size or 0)) or tables
    output = _packed(matrix, info.vocab_size or 0, "int8" if precision == "int4" else precision)
    layers = _packed(linear - wide, info.linear_rows or 0, precision) if linear > wide else 0
    return layers + output + (4 if precision == "fp32" else 2) * tables + 4 * (wide + rest)


def cache_bytes(info: ModelInfo, context: int, element: int, device: str) -> int | None:
    """Bytes of the keys and values of `context` tokens, `element` bytes per number.

    The sum over layers of width x tokens kept, a width being 2 x kv_heads x head_dim, or rank +
    rotary size where a latent is kept (desktop.md 7). A layer with a window keeps more than the
    window, as this engine holds it (`engine.cache`): on a CPU what a rewind may need, in whole
    buckets and dropped several at a time; on CUDA, where a block's shape may not change, all. A
    running state has one size at any length, and copies to go back to.
    """
    if info.cache_widths is None or info.cache_windows is None:
        return None
    layers = zip(info.cache_widths, info.cache_windows, strict=True)
    fixed, wide = info.cache_fixed or (0, 0)
    tokens = sum(width * _kept(context, window, device) for width, window in layers)
    copies = STATES if families.is_rewindable(info.architecture) else 1
    return element * tokens + copies * (element * fixed + 4 * wide)


def _kept(context: int, window: int, device: str) -> int:
    """Tokens that a layer has room for; `window` 0: it sees all."""
    if device not in ("cpu", "cuda"):
        return min(context, window or context)
    rooms = -(-context // BUCKET) * BUCKET
    if not window or device == "cuda":
        return rooms
    # before the window: what is not dropped yet; behind it: a rewind's and a chunk's
    return min(rooms, -(-(window - 1) // BUCKET) * BUCKET + KEPT_BEHIND + BUCKET)


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
