"""Hidden states that a network hands out while it runs, for heads that draft from them.

Nothing is kept and no hook is set unless somebody listens. Knows how a network's stream may be
turned, and nothing of what the states are for.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from engine.kernels.rotation import Turned

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Found = Mapping[int, torch.Tensor]


class Listener(Protocol):
    """Who is told the states of every token that a model is fed.

    `places` are those of transformers' `hidden_states`: i is what layer i reads, before it runs,
    and the number of layers what comes out of the last norm.
    """

    @property
    def places(self) -> tuple[int, ...]: ...

    def hear(self, start: int, states: torch.Tensor) -> None:
        """`states` [rows, places x width] of the tokens at the positions from `start` on.

        The same positions may come again, after a rewind with other tokens.
        """
        ...


class Tap:
    """The states of one network, told to its listeners pass by pass."""

    def __init__(self, network: "PreTrainedModel") -> None:
        self._network = network
        # another one: what was captured of the network's passes says nothing any more
        self.version = 0
        self._listeners: list[Listener] = []
        self._last = 0
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._found: dict[int, torch.Tensor] = {}

    def set(self, listeners: Sequence[Listener], layers: Sequence[nn.Module]) -> None:
        """Tell these from the next pass on, and nobody else; `layers` are the network's."""
        if list(listeners) == self._listeners:
            return
        self._listeners, self._last = list(listeners), len(layers)
        self.version += 1
        for hook in self._hooks:
            hook.remove()
        places = {place for listener in listeners for place in listener.places}
        self._hooks = [self._hook(place, layers) for place in sorted(places)]
        self._found = {}

    def take(self) -> Found:
        """What the last pass left."""
        found, self._found = self._found, {}
        return found

    def tell(self, found: Found, start: int, rows: int) -> None:
        """Of what `take` gave, the first `rows`, which are the tokens from `start` on.

        Where layers that read others' keys leave out rows that nobody asked for, the last of them.
        """
        if not self._listeners:
            return
        plain = {place: self._plain(place, states[0, :rows]) for place, states in found.items()}
        for listener in self._listeners:
            parts = [plain[place] for place in listener.places]
            there = min(map(len, parts))
            states = torch.cat([part[len(part) - there :] for part in parts], -1)
            listener.hear(start + rows - there, states)

    def _hook(self, place: int, layers: Sequence[nn.Module]) -> torch.utils.hooks.RemovableHandle:
        if place < len(layers):
            return layers[place].register_forward_pre_hook(
                lambda _, args, more: self._keep(place, args[0] if args else more["hidden_states"]),
                with_kwargs=True,
            )
        network: Any = self._network
        decoder: nn.Module = network.get_decoder()
        return decoder.register_forward_hook(lambda _, args, out: self._keep(place, out[0]))

    def _keep(self, place: int, states: torch.Tensor) -> None:
        # layers may write over what they were given
        self._found[place] = states.clone()

    def _plain(self, place: int, states: torch.Tensor) -> torch.Tensor:
        """As the published network has them, whatever was folded into ours."""
        turned = turned_of(self._network)
        if turned is None:
            return states
        return turned.final(states) if place == self._last else turned.back(states)


def turned_of(network: nn.Module) -> Turned | None:
    """How the stream of `network` is turned, if it is."""
    return getattr(network, "turned", None)
