"""What a layer with a running state was at earlier lengths of a text, to go back to.

Knows one layer's tensors; when a pass is noted `engine.mixers` says, how far is gone back
`engine.cache`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

# Running states that are kept of a text, to go back to after an edit: so many copies, spread over
# it. Going back further than the last pass costs feeding again what lies behind the nearest.
KEPT_STATES = 4

State = list[torch.Tensor | None]


class States:
    """What a layer's running state was at earlier lengths of the text, as copies.

    Of the last pass where it began and before its noted rows; of the passes before, some lengths
    that lie apart. `start` is the length from which the last pass goes on; `notes`: how many of its
    last rows are noted; None: it is not taken row by row.
    """

    def __init__(self, *held: Mapping[Any, torch.Tensor | None]) -> None:
        """Of the layer that holds these tensors."""
        # not the layer, which holds this: what is dropped would live on until it is collected
        self._held = held
        self.start = 0
        self._pass: dict[int, State] = {}
        self._kept: dict[int, State] = {}
        self.notes: int | None = None

    def nearest(self, length: int) -> int:
        """The largest known length that is not above `length`; 0 without one."""
        return max((x for x in (*self._pass, *self._kept) if x <= length), default=0)

    def begin(self, length: int, notes: int | None) -> None:
        """A pass starts behind `length` tokens."""
        self.start, self.notes = length, notes
        self._pass = {}
        self._kept = {x: state for x, state in self._kept.items() if x <= length}
        self.note(0)
        if notes is None:
            self._kept |= self._pass
            self._thin()

    def note(self, row: int) -> None:
        """Copy the state before `row` of this pass."""
        length = self.start + row
        if length and length not in self._pass:
            self._pass[length] = [None if x is None else x.clone() for x in self._all()]

    def restore(self, length: int) -> None:
        """Put the state back to what it was behind `length` tokens, a known length."""
        known = self._pass.get(length) or self._kept[length]
        for held, then in zip(self._all(), known, strict=True):
            if held is not None and then is not None:
                held.copy_(then)

    def tensors(self) -> Iterator[torch.Tensor]:
        """All copies."""
        for state in {id(x): x for x in (*self._pass.values(), *self._kept.values())}.values():
            yield from (x for x in state if x is not None)

    def _all(self) -> State:
        return [state for kind in self._held for state in kind.values()]

    def _thin(self) -> None:
        """Of too many, drop the one between the two that are nearest each other."""
        if len(self._kept) > KEPT_STATES:
            known = [0, *sorted(self._kept)]
            apart = {b: c - a for a, b, c in zip(known, known[1:], known[2:], strict=False)}
            del self._kept[min(apart, key=lambda length: apart[length])]


def states_of(cache: Any, layer: int) -> States | None:
    """Where a network's layer notes its running state; None where it is not asked to."""
    return None if cache is None else getattr(cache.layers[layer], "states", None)
