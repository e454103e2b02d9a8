"""Linear layers whose rows do not depend on each other, packed for this processor.

Each kernel takes x [rows, in] in float32 and gives [rows, out] in float32. The products are
FBGEMM's, by way of torch: int8 with exact integer sums, and 16-bit weights that are widened in
registers. What this processor cannot do exactly is found out by trying (`grid`, `half_counts`).
"""

import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

import torch
import torch.nn.functional as F

from engine.kernels.rows import RowCounts, agreeing

_ops = torch.ops.quantized

# Keeps the scale of a row of zeros from being zero.
TINY = 1e-30
# Numbers quantised at once: larger pieces leave the processor's cache, and take memory.
AT_ONCE = 1 << 18
# Row counts up to this have buffers of their own.
KEPT_ROWS = 17
# Group of the 4-bit weights: one scale and zero for so many inputs.
GROUP = 64
# The output size that torch's packed 4-bit product works in.
INT4_ROWS = 32


class Kernel(Protocol):
    """A packed matrix and its product."""

    nbytes: int

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


@cache
def grid() -> tuple[bool, int] | None:
    """`reduce_range` and the largest activation level at which int8 sums are exact here.

    Levels -127..127 where the processor adds in 32 bits (VNNI), -63..63 where pairs are added
    in 16 bits and would saturate. None: not exact at either, or no such kernel.
    """
    for reduced, top in ((False, 127), (True, 63)):
        if _sums_exactly(reduced, top):
            return reduced, top
    return None


def _sums_exactly(reduced: bool, top: int) -> bool:
    """Whether the largest products, of every mixture of signs, sum to the true integer."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(0, 2, (64, 512), generator=generator, dtype=torch.int8) * 2 - 1
    weight = weight * 127
    levels = torch.randint(0, 2, (5, 512), generator=generator) * 2 - 1
    levels[0], weight[0] = 1, 127
    levels *= top
    try:
        packed = _packed_int8(weight, torch.ones(64))
        x = torch.cat([levels.float(), _sentinel(512, top)])
        found = _ops.linear_dynamic(x, packed, reduced)[:-1]
    except RuntimeError:
        return False
    return bool(torch.equal(found, (levels @ weight.long().T).float()))


def _packed_int8(weight: torch.Tensor, scales: torch.Tensor) -> torch.ScriptObject:
    zeros = torch.zeros(len(scales), dtype=torch.long)
    with warnings.catch_warnings():
        # torch is pinned to a version that has it (pyproject.toml)
        warnings.filterwarnings("ignore", message=".*quantize_per_channel.*")
        whole = torch._make_per_channel_quantized_tensor(weight, scales.double(), zeros, 0)
    packed: torch.ScriptObject = _ops.linear_prepack(whole, None)
    return packed


def _sentinel(width: int, top: int) -> torch.Tensor:
    """A row that holds the ends of the range, so that the scale chosen is always 1.

    Divided by `top`, it makes the scale 1 / top.
    """
    row = torch.zeros(1, width)
    row[0, 0], row[0, 1] = top + 0.5, -top - 0.5
    return row


def to_float(rows: torch.Tensor) -> torch.Tensor:
    return rows.float()


def quantised(
    weight: torch.Tensor, by_rows: Callable[[torch.Tensor], torch.Tensor] = to_float
) -> tuple[torch.Tensor, torch.Tensor]:
    """`weight` [out, in] as int8 and a scale per output, [out], rounded to the nearest.

    `by_rows` is done to some of its rows at a time before, and gives float32.
    """
    levels = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(weight.shape[0])
    for start in range(0, len(weight), step := _rows_at_once(weight)):
        here = slice(start, start + step)
        part = by_rows(weight[here])
        scales[here] = torch.linalg.vector_norm(part, float("inf"), 1).clamp_min_(TINY) / 127
        levels[here] = torch.div(part, scales[here, None]).round_()
    return levels, scales


def _rows_at_once(weight: torch.Tensor) -> int:
    """Rows that fit into the processor's cache with what is computed of them."""
    return max(1, AT_ONCE // weight.shape[1])


class _Buffers(threading.local):
    """Room for the rows of the int8 product, kept for the row counts of a round."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int, bool], tuple[torch.Tensor, ...]] = {}

    def of(self, shape: torch.Size, top: int, fine: bool) -> tuple[torch.Tensor, ...]:
        """For x of `shape`: all rows with the sentinel last, the coarse ones, the fine ones."""
        rows, width = shape
        found = self._kept.get((rows, width, top, fine))
        if found is None:
            # a tensor of inference mode could not be written to outside it
            with torch.inference_mode(False):
                every = torch.empty(rows * (1 + fine) + 1, width)
                every[-1:] = _sentinel(width, top) / (1 if fine else top)
            found = every, every[:rows], every[rows:-1]
            if rows <= KEPT_ROWS:
                self._kept[rows, width, top, fine] = found
        return found


_buffers = _Buffers()


class Int8:
    """int8 weights with a scale per output; each activation is one int8 number or two.

    A row is scaled to the grid and rounded. Where some channels are far larger than others that
    is too coarse: then what rounding left over is a second row at a finer scale, together 12 to 14
    bits, so that only the weights are approximate. Both are computed in one pass over the weights,
    which costs little where memory is the limit. Their integer sums are exact: a row cannot depend
    on the others. A sentinel row fixes the scale that the dynamic kernel would otherwise choose by
    all rows. Zero-point and scale as in Jacob et al. 2018, "Quantization and Training of Neural
    Networks".
    """

    def __init__(
        self,
        weight: torch.Tensor,
        scales: torch.Tensor,
        bias: torch.Tensor | None,
        *,
        fine: bool = True,
    ) -> None:
        found = grid()
        if found is None:
            raise ValueError("no exact int8 product on this processor")
        self._reduced, self._top = found
        self._packed = _packed_int8(weight, scales)
        self._bias = bias
        self.fine = fine
        # tensors: a number would be made one in every call
        self._step = torch.tensor(1 / self._top)
        # a power of two: its products are exact, so it does not matter how they are added
        self._finer = torch.tensor(self._top + 1.0)
        self.nbytes = weight.numel() + 8 * len(scales)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        largest = torch.linalg.vector_norm(x, float("inf"), -1, True).clamp_min_(TINY)
        out = self._finely(x, largest) if self.fine else self._evenly(x, largest)
        return out if self._bias is None else out.add_(self._bias)

    def _evenly(self, x: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
        every, coarse, _ = _buffers.of(x.shape, self._top, False)
        # the kernel itself rounds each row, to `top` levels
        torch.div(x, largest, out=coarse)
        return self._sums(every).narrow(0, 0, len(x)).mul_(largest)

    def _finely(self, x: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
        every, coarse, fine = _buffers.of(x.shape, self._top, True)
        scale = largest.mul_(self._step)
        levels = torch.div(x, scale)
        torch.round(levels, out=coarse)
        torch.sub(levels, coarse, out=fine).mul_(self._finer)
        found, rest, _ = torch.split_with_sizes(self._sums(every), (len(x), len(x), 1))
        return found.add_(rest, alpha=1 / (self._top + 1)).mul_(scale)

    def _sums(self, every: torch.Tensor) -> torch.Tensor:
        try:
            found: torch.Tensor = _ops.linear_dynamic(every, self._packed, self._reduced)
        except RuntimeError:
            # it refuses NaN; as the scale is NaN too, the row stays that, and no other becomes it
            found = _ops.linear_dynamic(every.nan_to_num_(), self._packed, self._reduced)
        return found


@cache
def half_counts() -> RowCounts | None:
    """Row counts at which the product with 16-bit weights agrees; None: there is no such kernel."""
    weight = torch.randn(48, 80, generator=torch.Generator().manual_seed(0))
    try:
        packed = _ops.linear_prepack_fp16(weight, None)
        _ops.linear_dynamic_fp16(weight[:1], packed)
    except RuntimeError:
        return None
    return agreeing(lambda x: _ops.linear_dynamic_fp16(x, packed), (80,), range(1, 129))


class Half:
    """Weights in 16 bits, as one float16 matrix or a sum of several.

    A bfloat16 number has 8 significant bits, a float16 number 11 and a smaller range, so one
    float16 matrix under a power of two holds bfloat16 weights exactly, down to 2^-32 of the
    largest. `planes` matrices, each what the ones before left over, hold float32 weights.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, planes: int = 1) -> None:
        counts = half_counts()
        if counts is None:
            raise ValueError("no product with 16-bit weights on this processor")
        self._counts = counts
        self._bias = bias
        self._planes: list[tuple[torch.ScriptObject, float]] = []
        self.nbytes = 0
        rest = weight
        for _ in range(planes):
            largest = float(rest.abs().amax())
            if self._planes and not largest:
                break
            scale = _power_of_two(largest)
            half = (rest * scale).half()
            self._planes.append((_ops.linear_prepack_fp16(half.float(), None), 1 / scale))
            self.nbytes += 2 * weight.numel()
            rest = rest - half.float() / scale if planes > 1 else rest

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._counts.run(self._product, x)

    def _product(self, x: torch.Tensor) -> torch.Tensor:
        packed, scale = self._planes[0]
        out: torch.Tensor = _ops.linear_dynamic_fp16(x, packed).mul_(scale)
        for packed, scale in self._planes[1:]:
            out.add_(_ops.linear_dynamic_fp16(x, packed), alpha=scale)
        return out if self._bias is None else out.add_(self._bias)


def _power_of_two(largest: float) -> float:
    """What brings `largest` just below float16's end, 65504, so that small numbers stay."""
    if not 0 < largest < float("inf"):
        return 1.0
    _, exponent = torch.frexp(torch.tensor(largest))
    return float(2.0 ** max(-120, min(120, 15 - int(exponent))))


def grouped(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`weight` [out, in] in 4 bits: levels 0..15 as uint8, and scale and zero per group.

    The second is [in / GROUP, out, 2] in bfloat16, as torch's kernel reads it: a weight is
    (level - 8) * scale + zero.
    """
    levels = torch.empty(weight.shape, dtype=torch.uint8)
    pairs = torch.empty(len(weight), weight.shape[1] // GROUP, 2, dtype=torch.bfloat16)
    for start in range(0, len(weight), step := _rows_at_once(weight)):
        here = slice(start, start + step)
        part = weight[here].float()
        groups = part.view(len(part), -1, GROUP)
        low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
        scale = ((high - low) / 15).clamp_min(1e-9).bfloat16()
        zero = (low + 8 * scale.float()).bfloat16()
        found = ((groups - zero.float()) / scale.float() + 8).round_().clamp_(0, 15)
        levels[here] = found.view(part.shape)
        pairs[here] = torch.cat([scale, zero], -1)
    return levels, pairs.transpose(0, 1).contiguous()


def fits_int4(shape: Sequence[int]) -> bool:
    """Whether torch's 4-bit product takes a matrix of this shape."""
    return shape[0] % INT4_ROWS == 0 and shape[1] % GROUP == 0


class Int4:
    """4-bit weights in groups; activations in bfloat16."""

    def __init__(
        self, levels: torch.Tensor, pairs: torch.Tensor, bias: torch.Tensor | None
    ) -> None:
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels.to(torch.int32), 1)
        self._pairs = pairs
        self._bias = bias
        self.nbytes = levels.numel() // 2 + 2 * pairs.numel()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product = torch.ops.aten._weight_int4pack_mm_for_cpu
        out: torch.Tensor = product(x.bfloat16(), self._packed, GROUP, self._pairs).float()
        return out if self._bias is None else out.add_(self._bias)


class Dense:
    """torch's own product, of however many rows."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._weight, self._bias = weight, bias
        self.nbytes = weight.numel() * weight.element_size()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self._weight, self._bias)


class Plain:
    """torch's own product, for processors without the kernels above; padded to agreeing counts."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._product = Dense(weight, bias)
        self.nbytes = self._product.nbytes
        self._counts = agreeing(self._product, (weight.shape[1],), (1, 2, 3, 4, 8, 16, 32, 64, 128))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._counts.run(self._product, x)


def int8(
    levels: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None, *, fine: bool = True
) -> Kernel:
    """8-bit weights by the best means this processor has."""
    # the sentinel needs two places
    if grid() is not None and levels.shape[1] > 1:
        return Int8(levels, scales, bias, fine=fine)
    return half(levels.float() * scales[:, None], bias, 1)


def half(weight: torch.Tensor, bias: torch.Tensor | None, planes: int) -> Kernel:
    """Floating weights by the best means this processor has."""
    if half_counts() is not None:
        return Half(weight.float(), bias, planes)
    return Plain(weight.float(), bias)


def int4(levels: torch.Tensor, pairs: torch.Tensor, bias: torch.Tensor | None) -> Kernel:
    """4-bit weights by the best means this processor has."""
    if int4_agrees():
        return Int4(levels, pairs, bias)
    scale, zero = pairs.float().transpose(0, 1).repeat_interleave(GROUP, 1).unbind(-1)
    return half((levels.float() - 8) * scale + zero, bias, 1)


@cache
def int4_agrees() -> bool:
    """Whether the 4-bit product is there, right, and the same for one row as for many."""
    weight = torch.randn(INT4_ROWS, 2 * GROUP, generator=torch.Generator().manual_seed(0))
    levels, pairs = grouped(weight)
    x = torch.randn(17, 2 * GROUP, generator=torch.Generator().manual_seed(1))
    try:
        packed = Int4(levels, pairs, None)
        found, alone = packed(x), torch.cat([packed(row) for row in torch.split(x, 1)])
    except RuntimeError:
        return False
    expected = x @ weight.T
    near = float((found - expected).norm() / expected.norm()) < 0.2
    return near and bool(torch.equal(found, alone))
