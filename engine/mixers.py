"""Layers with a running state, taken row by row without giving up the matrices of all rows.

transformers' modules sum a chunk in one way and a single row in another, and hand out the state
behind the last row only. Here such a module is run a row at a time, with a note of the state
before each; the matrices at its ends are still read once for all rows.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from engine import families
from engine.running import States, states_of

Call = Callable[..., Any]


def take_rows(network: nn.Module) -> None:
    """Let every module of `network` that holds a running state take rows one by one when asked."""
    config: Any = network.config
    forgets = families.forgets(config.get_text_config(decoder=True).model_type)
    for module in network.modules():
        convolves = any(isinstance(child, nn.Conv1d) for child in module.children())
        taken = isinstance(vars(module).get("forward"), _Mixer)
        if convolves and hasattr(module, "layer_idx") and not taken:
            module.forward = _Mixer(module, forgets)


class _Mixer:
    """The forward of a module with a running state; takes and gives [1, rows, size].

    `forgets`: only a single row goes on from a state, a chunk does not.
    """

    def __init__(self, module: Any, forgets: bool) -> None:
        self._forward: Call = module.forward
        self._forgets = forgets
        self._layer: int = module.layer_idx
        self._matrices = [x for x in module.children() if hasattr(x, "out_features")]
        self._watched = False
        # those that read the module's own input, and the one whose result is the module's
        self._first: list[_End] = []
        self._last: list[_End] = []

    def __call__(self, hidden_states: torch.Tensor, cache: Any = None, **more: Any) -> Any:
        if not self._watched:
            self._watch(hidden_states, cache=cache, **more)
        states = states_of(cache, self._layer)
        rows = hidden_states.shape[1]
        if states is None or rows == 1:
            return self._forward(hidden_states, cache=cache, **more)
        if states.notes is None and not (self._forgets and states.start):
            return self._forward(hidden_states, cache=cache, **more)
        return self._by_rows(hidden_states, states, cache=cache, **more)

    def _by_rows(self, hidden: torch.Tensor, states: States, **more: Any) -> torch.Tensor:
        noted = hidden.shape[1] - (states.notes or 0)
        rows = torch.split(hidden, 1, 1)
        found = []
        try:
            for matrix in (*self._first, *self._last):
                matrix.begin(hidden)
            for i, row in enumerate(rows):
                if i >= noted:
                    states.note(i)
                found.append(self._forward(row, **more))
        finally:
            for matrix in (*self._first, *self._last):
                matrix.end()
        result = torch.cat(found, 1)
        return self._last[0].matrix(result) if self._last else result

    def _watch(self, hidden: torch.Tensor, **more: Any) -> None:
        """Run once without a cache, to see which matrices stand at the ends."""
        calls: list[tuple[Any, Any, Any]] = []

        def note(matrix: Any, given: tuple[Any, ...], result: Any) -> None:
            calls.append((matrix, given[0], result))

        hooks = [matrix.register_forward_hook(note) for matrix in self._matrices]
        try:
            found = self._forward(hidden, **{**more, "cache": None})
        finally:
            for hook in hooks:
                hook.remove()
        self._first = [_First(matrix) for matrix, given, _ in calls if given is hidden]
        self._last = [_End(matrix) for matrix, _, result in calls if result is found]
        self._watched = True


class _End:
    """The forward of a matrix at an end of a mixer; does something else while rows are taken."""

    def __init__(self, matrix: Any) -> None:
        self.matrix: Call = matrix.forward
        self._rows: Iterator[torch.Tensor] | None = None
        matrix.forward = self

    def begin(self, hidden: torch.Tensor) -> None:
        self._rows = iter(())

    def end(self) -> None:
        self._rows = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.matrix(x) if self._rows is None else self._one(x, self._rows)

    def _one(self, x: torch.Tensor, rows: Iterator[torch.Tensor]) -> torch.Tensor:
        """Leave it out: all rows come to this matrix when they are done."""
        return x


class _First(_End):
    """One that reads the mixer's input: computed for all rows when they begin."""

    def begin(self, hidden: torch.Tensor) -> None:
        self._rows = iter(torch.split(self.matrix(hidden), 1, 1))

    def _one(self, x: torch.Tensor, rows: Iterator[torch.Tensor]) -> torch.Tensor:
        return next(rows)
