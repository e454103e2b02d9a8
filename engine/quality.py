"""What quantising costs a model: how much worse it predicts a text than its own weights do."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from engine.kernels.packing import Item, Weights, stored
from engine.model import layers

# Tokens that the rise is measured on, and how many logits are computed at once.
TOKENS = 1000
AT_ONCE = 100

Step = Callable[[], None]


def rise(
    network: nn.Module,
    items: Sequence[Item],
    weights: Weights,
    tokens: Sequence[int],
    step: Step = lambda: None,
) -> float:
    """By how much the perplexity of `tokens` rises over that with `weights`; 0.01 is 1 %.

    The packed network is run over all tokens twice, the second time with each layer's matrices as
    they are stored, in float32 and one layer at a time. `step` is called before each layer and
    may raise.
    """
    ids = list(tokens[:TOKENS])
    ours = loss(network, ids, step)
    with as_stored(network, items, weights):
        theirs = loss(network, ids, step)
    return math.exp(ours - theirs) - 1


@torch.inference_mode()
def loss(network: nn.Module, ids: Sequence[int], step: Step = lambda: None) -> float:
    """Mean negative log-likelihood of ids[1:], in nats."""
    model: Any = network
    x = torch.tensor([list(ids)])
    hooks = [layer.register_forward_pre_hook(lambda *_: step()) for layer in layers(network)]
    try:
        hidden = model.base_model(input_ids=x, use_cache=False).last_hidden_state[0, :-1]
    finally:
        for hook in hooks:
            hook.remove()
    total = 0.0
    for start in range(0, len(hidden), AT_ONCE):
        logits = model.get_output_embeddings()(hidden[start : start + AT_ONCE])
        wanted = x[0, start + 1 : start + 1 + len(logits)]
        total += float(F.cross_entropy(logits, wanted, reduction="sum"))
    return total / len(hidden)


@contextlib.contextmanager
def as_stored(network: nn.Module, items: Sequence[Item], weights: Weights) -> Iterator[None]:
    """Inside, each layer has its stored matrices while it runs, the output matrix all the time."""
    inner = {id(module) for layer in layers(network) for module in layer.modules()}
    outer = [i for i in items if i.group is not None and id(i.group.parent) not in inner]
    with contextlib.ExitStack() as stack:
        for layer in layers(network):
            within = {id(module) for module in layer.modules()}
            mine = [i for i in items if i.group is not None and id(i.group.parent) in within]
            swap = _Swap(mine, weights)
            stack.callback(layer.register_forward_pre_hook(swap.enter).remove)
            stack.callback(layer.register_forward_hook(swap.leave).remove)
            # a layer that was broken off
            stack.callback(swap.leave)
        around = _Swap(outer, weights)
        stack.callback(around.leave)
        around.enter()
        yield


class _Swap:
    """Puts stored matrices in the place of packed ones, and back."""

    def __init__(self, items: Sequence[Item], weights: Weights) -> None:
        self._items, self._weights = items, weights
        self._before: list[tuple[nn.Module, str, nn.Module]] = []

    def enter(self, *_: Any) -> None:
        for item in self._items:
            group = item.group
            assert group is not None
            self._before += [(module, n, getattr(module, n)) for module, n in group.slots]
            stored(item, self._weights)

    def leave(self, *_: Any) -> None:
        for parent, name, module in self._before:
            setattr(parent, name, module)
        self._before.clear()
