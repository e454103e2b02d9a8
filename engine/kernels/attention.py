"""Attention whose rows do not depend on each other, for transformers' attention interface.

A row attends to the keys of its own bucket: positions up to the next multiple of BUCKET, those
behind the row masked. So the length that a row sums over follows from its position alone. All
rows of a bucket are computed together, grouped by key head, in counts at which torch's product
gives a row the same bits (`rows.agreeing`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from engine.kernels.pointwise import in_rows
from engine.kernels.rows import RowCounts, agreeing

NAME = "slipstream"
# Keys are read up to multiples of this, so that a prompt's chunk lies in one bucket.
BUCKET = 128
# Where row counts are tried; a prompt's chunk is the largest.
COUNTS = (*range(1, 17), 24, 32, 48, 64, 96, BUCKET)


@dataclass(frozen=True)
class Segment:
    """Rows [start, stop) of a pass, that share a bucket, and the keys [first, last) they read.

    `mask` [rows, last - first] is 0 where a row may look and minus infinity where not.
    """

    start: int
    stop: int
    first: int
    last: int
    mask: torch.Tensor
    _repeated: dict[tuple[int, int, int, int], torch.Tensor] = field(default_factory=dict)

    def mask_of(self, start: int, count: int, room: int, group: int) -> torch.Tensor:
        """For `count` rows from `start` on, padded to `room`, each `group` times; kept."""
        key = start, count, room, group
        if key not in self._repeated:
            rows = self.mask[start - self.start : start - self.start + count]
            if room > count:
                rows = torch.cat([rows, rows.new_zeros(room - count, rows.shape[1])])
            self._repeated[key] = rows.repeat_interleave(group, 0)
        return self._repeated[key]


def segments(
    *,
    q_length: int,
    q_offset: int,
    kv_offset: int,
    mask_function: Callable[..., torch.Tensor],
    device: torch.device | str = "cpu",
    **_more: Any,
) -> list[Segment]:
    """The rows at positions q_offset ... by bucket: what transformers calls the mask.

    `kv_offset` is the position of the first key that the cache still holds.
    """
    found = []
    start = q_offset
    end = q_offset + q_length
    while start < end:
        border = (start // BUCKET + 1) * BUCKET
        stop = min(end, border)
        first = _first_key(mask_function, border - BUCKET, kv_offset, border, device)
        mask = _seen(mask_function, start, stop, first, border, device)
        bias = torch.zeros(mask.shape, device=device).masked_fill_(~mask, float("-inf"))
        found.append(
            Segment(start - q_offset, stop - q_offset, first - kv_offset, border - kv_offset, bias)
        )
        start = stop
    return found


def _seen(
    visible: Callable[..., torch.Tensor],
    start: int,
    stop: int,
    first: int,
    last: int,
    device: torch.device | str,
) -> torch.Tensor:
    zero = torch.zeros((), dtype=torch.long, device=device)
    rows = torch.arange(start, stop, device=device)[:, None]
    keys = torch.arange(first, last, device=device)[None, :]
    seen: torch.Tensor = visible(zero, zero, rows, keys)
    return seen.expand(stop - start, last - first)


def _first_key(
    visible: Callable[..., torch.Tensor],
    bucket: int,
    oldest: int,
    border: int,
    device: torch.device | str,
) -> int:
    """The bucket of the first key that the bucket's first row sees: later rows see none before."""
    if bucket == 0:
        return 0
    seen = _seen(visible, bucket, bucket + 1, 0, bucket + 1, device)[0]
    first = int(seen.long().argmax()) // BUCKET * BUCKET
    return max(first, oldest)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: list[Segment],
    *,
    scaling: float,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_more: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention call: query [1, heads, rows, size] to [1, rows, heads, size].

    `key` and `value` [1, key heads, room, size] are the cache's own buffers, in float32.
    """
    _, heads, rows, size = query.shape
    key_heads = key.shape[1]
    grouped = query[0].transpose(0, 1).reshape(rows, key_heads, -1, size)
    found = in_segments(grouped, key[0], value[0], attention_mask, scaling, softcap, s_aux)
    return found.view(1, rows, heads, -1), None


def in_segments(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    parts: list[Segment],
    scaling: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """query [rows, key heads, group, size] to [rows, heads x size]; key, value [heads, room, size].

    Every row in the bucket of its own position, in a row count that agrees with all others.
    """
    rows, key_heads, group, size = query.shape
    counts = _counts(key_heads, group, size)
    found = []
    for part in parts:
        keys = key[:, part.first : part.last]
        values = value[:, part.first : part.last]
        done = part.start
        for count, room in counts.parts(part.stop - part.start):
            mask = part.mask_of(done, count, room, group)
            q = query if count == rows else query[done : done + count]
            if room > count:
                q = torch.cat([q, q.new_zeros(room - count, *q.shape[1:])])
            found.append(_rows(q, keys, values, mask, scaling, softcap, sinks)[:count])
            done += count
    return found[0] if len(found) == 1 else torch.cat(found)


def _rows(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    scaling: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """query [rows, key heads, group, size], mask [rows x group, keys]; [rows, heads x size]."""
    rows, heads, group, size = query.shape
    stacked = query.transpose(0, 1).reshape(heads, rows * group, size)
    across = keys.transpose(1, 2)
    mask = mask.expand(heads, *mask.shape)
    if softcap is None:
        scores = torch.baddbmm(mask, stacked, across, alpha=scaling)
    else:
        scores = torch.bmm(stacked, across).mul_(scaling / softcap)
        scores = in_rows(torch.tanh, scores).mul_(softcap).add_(mask)
    if sinks is not None:
        scores = _with_sinks(scores, sinks, rows)
    weights = scores.softmax(-1)[..., : keys.shape[1]]
    mixed = torch.bmm(weights, values).view(heads, rows, group, -1)
    return mixed.transpose(0, 1).reshape(rows, -1)


def _with_sinks(scores: torch.Tensor, sinks: torch.Tensor, rows: int) -> torch.Tensor:
    """A score per head beside the keys', which takes weight and gives nothing (gpt-oss)."""
    heads, stacked, _ = scores.shape
    extra = sinks.float().view(heads, 1, -1).expand(heads, rows, stacked // rows)
    return torch.cat([scores, extra.reshape(heads, stacked, 1)], -1)


@cache
def _counts(key_heads: int, group: int, size: int) -> RowCounts:
    """Row counts that agree for heads of this shape, at a short and at a longer text."""
    found: set[int] = set(COUNTS)
    for length in (BUCKET, 6 * BUCKET):
        generator = torch.Generator().manual_seed(0)
        keys, values = (torch.randn(key_heads, length, size, generator=generator) for _ in range(2))
        mask = torch.zeros(max(COUNTS) * group, length)
        mask[:, -3:] = float("-inf")

        def call(
            query: torch.Tensor,
            keys: torch.Tensor = keys,
            values: torch.Tensor = values,
            mask: torch.Tensor = mask,
        ) -> torch.Tensor:
            return _rows(query, keys, values, mask[: len(query) * group], size**-0.5)

        found &= set(agreeing(call, (key_heads, group, size), COUNTS).good)
    return RowCounts(found or {1})


def is_asked(network: torch.nn.Module) -> bool:
    """Whether `network` lets its attention be chosen at all."""
    return bool(
        getattr(network, "_supports_sdpa", False)
        or getattr(network, "_supports_attention_backend", False)
    )


def register() -> None:
    """Make `attend` known to transformers under NAME. May be repeated."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, segments)
