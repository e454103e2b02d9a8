"""How many rows at once a kernel may be given so that each row's bits stay the same.

A matrix product may take another path for one row than for eight, and then sums in another
order. Nothing is assumed about which counts agree on this processor: each kernel is tried.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch

Call = Callable[[torch.Tensor], torch.Tensor]


class RowCounts:
    """Row counts at which a kernel agrees with itself; other counts are padded or split."""

    def __init__(self, good: Iterable[int]) -> None:
        self.good = tuple(sorted(good))

    def padded(self, rows: int) -> int | None:
        """The smallest good count that `rows` fit in; None when they need more than one part."""
        return next((count for count in self.good if count >= rows), None)

    def parts(self, rows: int) -> list[tuple[int, int]]:
        """How to compute `rows`: for each part its rows and the count they are padded to."""
        largest = self.good[-1]
        found = [(largest, largest)] * ((rows - 1) // largest)
        rest = rows - len(found) * largest
        return [*found, (rest, self.padded(rest) or largest)]

    def run(self, call: Call, x: torch.Tensor) -> torch.Tensor:
        """`call` on x [rows, width], in counts that are good."""
        rows = x.shape[0]
        if self.padded(rows) == rows:
            return call(x)
        done, results = 0, []
        for count, room in self.parts(rows):
            part = x[done : done + count]
            if room > count:
                part = torch.cat([part, x.new_zeros(room - count, *x.shape[1:])])
            results.append(call(part)[:count])
            done += count
        return results[0] if len(results) == 1 else torch.cat(results)


def agreeing(call: Call, width: Sequence[int], counts: Iterable[int]) -> RowCounts:
    """Those of `counts` at which `call` gives a row the same bits, wherever it lies among others.

    `call` takes [rows, *width]. The largest set of counts that agree with each other; where none
    does with itself, 1 alone: there is only one place then.
    """
    generator = torch.Generator().manual_seed(0)
    counts = list(counts)
    others = torch.randn(max(counts), *width, generator=generator)
    row = torch.randn(*width, generator=generator)
    bits: dict[int, bytes] = {}
    for count in counts:
        found = {_bits(call, others[:count], row, place) for place in {0, count // 2, count - 1}}
        if len(found) == 1:
            bits[count] = found.pop()
    if not bits:
        return RowCounts([1])
    most = Counter(bits.values()).most_common(1)[0][0]
    return RowCounts(count for count, found in bits.items() if found == most)


def _bits(call: Call, others: torch.Tensor, row: torch.Tensor, place: int) -> bytes:
    x = others.clone()
    x[place] = row
    return call(x)[place].contiguous().numpy().tobytes()
