"""Functions of single numbers, computed so that a number's place does not matter.

torch computes exp and its kin in vectors, but the end of each thread's share number by number,
with another last bit. So rows are handed over in shares that one thread takes whole.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

# torch gives an elementwise function of no more numbers than this to one thread: GELU has a limit
# of its own, half of that of the others.
GRAIN = 16384
# Numbers in the widest vector that torch computes at once, twice: its inner loop takes two.
VECTOR = 32


def in_rows(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """`function` of x [..., width], each row computed the same wherever it lies."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    share = max(1, GRAIN // width) if width % VECTOR == 0 else 1
    if len(rows) <= share:
        return function(rows).view(x.shape)
    return torch.cat([function(part) for part in torch.split(rows, share)]).view(x.shape)


class InRows(torch.nn.Module):
    """An activation function, row by row."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return in_rows(self.function, x)


class NextInRows(torch.Tensor):
    """A tensor whose next function, which models call themselves, is computed row by row."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            x = args[0].as_subclass(torch.Tensor)
            return in_rows(lambda part: func(part, *args[1:], **(kwargs or {})), x)


class RotaryInRows(torch.nn.Module):
    """A rotary embedding whose cosines are computed a few positions at a time, or one by one."""

    def __init__(self, rotary: torch.nn.Module) -> None:
        super().__init__()
        self.rotary = rotary
        self.share = 16 if _positions_are_alike(rotary) else 1

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, *rest: Any, **more: Any) -> Any:
        parts = [
            self.rotary(x, positions, *rest, **more)
            for positions in torch.split(position_ids, self.share, dim=-1)
        ]
        if len(parts) == 1:
            return parts[0]
        return tuple(torch.cat(tables, dim=-2) for tables in zip(*parts, strict=True))


def _positions_are_alike(rotary: torch.nn.Module) -> bool:
    """Whether a position's cosines do not depend on the positions beside it.

    They do where frequencies are chosen by the largest position (longrope), and where a row is no
    multiple of the vectors that it is computed in.
    """
    kinds = getattr(rotary, "rope_type", "default")
    named = kinds.values() if isinstance(kinds, dict) else [kinds]
    widths = [2 * b.numel() for name, b in rotary.named_buffers() if name.endswith("inv_freq")]
    return not {"longrope", "dynamic"} & set(named) and not any(w % VECTOR for w in widths)


class RowByRow(torch.nn.Module):
    """A small module that is given one row of [rows, width] at a time."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        rows = [self.module(row[None]) for row in x.reshape(-1, x.shape[-1])]
        if isinstance(rows[0], torch.Tensor):
            return torch.cat(rows)
        return tuple(torch.cat(parts) for parts in zip(*rows, strict=True))
