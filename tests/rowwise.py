"""Does a row have the same bits whatever is computed beside it? Asked of kernels and of models.

Run as a program, because torch and its libraries read what they may use when they are imported:
`python -m tests.rowwise THREADS` prints a line for each kernel or model whose rows do depend on
each other.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from engine.kernels import linear
from engine.kernels.attention import BUCKET, Segment, attend, segments
from engine.kernels.pointwise import in_rows

Call = Callable[[torch.Tensor], torch.Tensor]

# [out, in]: multiples of everything, of nothing, one of one, and wide.
SHAPES = ((64, 64), (262, 64), (48, 80), (33, 100), (7, 5), (1, 64), (96, 192), (300, 1100))
COUNTS = range(1, 34)
# Key heads, heads that share one, numbers of each.
HEADS = ((2, 2, 16), (1, 4, 64), (3, 3, 32))
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "softcap": {"softcap": 5.0},
    "window": {"window": 24},
    "sinks": {"s_aux": True},
}
FUNCTIONS: dict[str, Call] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


def matrix(shape: Sequence[int], seed: int = 0) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def kernels(shape: tuple[int, int]) -> Iterator[tuple[str, torch.Tensor, linear.Kernel]]:
    """Every kernel with random weights of `shape`: its name, the weights it should have, itself."""
    weight, bias = matrix(shape), matrix(shape[:1], 1)
    levels, scales = linear.quantised(weight)
    for name, fine in (("int8", True), ("int8 of even rows", False)):
        yield name, levels * scales[:, None], linear.int8(levels, scales, bias, fine=fine)
    rounded = weight.bfloat16().float()
    yield "bf16", rounded, linear.half(rounded, bias, 1)
    yield "fp32", weight, linear.half(weight, bias, 3)
    if linear.fits_int4(shape):
        levels, pairs = linear.grouped(weight)
        yield "int4", spread(levels, pairs), linear.int4(levels, pairs, bias)


def spread(levels: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The numbers that 4-bit levels stand for."""
    scale, zero = (pairs[..., i].float().T.repeat_interleave(linear.GROUP, 1) for i in (0, 1))
    return (levels.float() - 8) * scale + zero


def dependent(call: Call, x: torch.Tensor, counts: Sequence[int] = COUNTS) -> list[int]:
    """The counts at which some row of x is not what it is alone, at the front or further on."""
    alone = torch.cat([call(row) for row in torch.split(x, 1)])
    return [
        count
        for count in counts
        for start in {0, min(3, len(x) - count)}
        if not torch.equal(call(x[start : start + count]), alone[start : start + count])
    ]


def visible(window: int | None = None) -> Callable[..., torch.Tensor]:
    """transformers' mask function: a row sees itself and what is before, in its window."""

    def see(_batch: int, _head: int, row: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        seen = key <= row
        return seen if window is None else seen & (key > row - window)

    return see


def attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    start: int,
    block: int,
    *,
    window: int | None = None,
    **more: object,
) -> torch.Tensor:
    """Rows [rows, heads, size] at positions from `start`, `block` of them at a time."""
    found = []
    for at in range(0, query.shape[2], block):
        part = query[:, :, at : at + block]
        mask: list[Segment] = segments(
            q_length=part.shape[2], q_offset=start + at, kv_offset=0, mask_function=visible(window)
        )
        module = torch.nn.Module()
        scaling = query.shape[3] ** -0.5
        out, _ = attend(module, part, keys, values, mask, scaling=scaling, **more)  # type: ignore[arg-type]
        found.append(out[0])
    return torch.cat(found)


def failures(shapes: Sequence[tuple[int, int]] = SHAPES) -> list[str]:
    """Which kernels' rows depend on each other here, and at which counts."""
    found = []
    for shape in shapes:
        for name, _, kernel in kernels(shape):
            if bad := dependent(kernel, matrix((36, shape[1]), 2)):
                found.append(f"{name} {shape} {bad}")
    for name, function in FUNCTIONS.items():
        for width in (64, 33, 4096):
            x = 3 * matrix((20, width), 3)
            if bad := dependent(lambda part, f=function: in_rows(f, part), x, range(1, 18)):  # type: ignore[misc]
                found.append(f"{name} {width} {bad}")
    norm = matrix((1536,), 4)
    if bad := dependent(lambda x: F.rms_norm(x, (1536,), norm, 1e-6), matrix((36, 1536), 5)):
        found.append(f"norm {bad}")
    return found + attention_failures()


def attention_failures() -> list[str]:
    """The same for attention, over a bucket's border."""
    cases = [(HEADS[0], kind) for kind in KINDS] + [(heads, "plain") for heads in HEADS[1:]]
    return [
        f"attention {heads} {kind} {bad}" for heads, kind in cases if (bad := _bad(heads, kind))
    ]


def _bad(shape: tuple[int, int, int], kind: str) -> list[int]:
    heads, group, size = shape
    keys, values = (matrix((1, heads, 2 * BUCKET, size), seed) for seed in (6, 7))
    query = matrix((1, heads * group, 24, size), 8)
    more = dict(KINDS[kind])
    if "s_aux" in more:
        more["s_aux"] = matrix((heads * group,), 9)
    alone, *blocks = (
        attention(query, keys, values, BUCKET - 12, block, **more)  # type: ignore[arg-type]
        for block in (1, 3, 8, 17, 24)
    )
    return [len(rows) for rows in blocks if not torch.equal(rows, alone)]


def model_failures(precisions: Sequence[str]) -> list[str]:
    """Precisions at which a tiny model's rows depend on each other."""
    from engine.exactness import check
    from engine.loading import load
    from tests.folders import write_model

    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = write_model(Path(name) / "model")
        for precision in precisions:
            loaded = load(folder, cache_folder=Path(name), precision=precision)  # type: ignore[arg-type]
            if not (loaded.loaded.bit_exact and check(loaded.model)):
                found.append(f"model {precision}")
            loaded.close()
    return found


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    print("\n".join(failures() + (model_failures(sys.argv[2:]) if sys.argv[2:] else [])))
