"""The keys and values of one model: how long they are, how to take some back, how big they are.

The only file that knows transformers' caches (5.24: `crop` takes a negative count; sliding
layers keep more than their window only while they record).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import (
    DynamicCache,
    DynamicSlidingWindowLayer,
    LinearAttentionCacheLayerMixin,
)

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# Tokens beyond its window that a sliding layer keeps at least, so that they can be taken back:
# more than a round drafts.
REWINDABLE = 64


class Cache:
    """What a model has been fed: a prefix of the tokens, `length` of them.

    `crop_to` only notes the new length; the tensors are cut when the model next reads them. So
    rewinding twice in a row costs nothing, and a sliding window, which can take back no more
    than its last pass, is cut once, by the sum.
    """

    def __init__(self, config: "PreTrainedConfig") -> None:
        self._config = config
        self.empty()

    @property
    def length(self) -> int:
        """Tokens held."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors held."""
        return sum(t.numel() * t.element_size() for t in self._tensors())

    def empty(self) -> None:
        """Hold nothing; the memory is freed."""
        self._inner = DynamicCache(config=self._config)
        self._length = 0
        self._held = 0
        for layer in self._inner.layers:
            if isinstance(layer, DynamicSlidingWindowLayer):
                layer.activate_past_recording()

    def crop_to(self, length: int) -> None:
        """Hold at most `length` tokens. What cannot be rewound so far is emptied instead."""
        if length >= self._length:
            return
        if length <= 0 or not self._can_rewind(self._held - length):
            self.empty()
        else:
            self._length = length

    def opened(self) -> DynamicCache:
        """The cache to hand to the model, cut to `length`."""
        for layer in self._inner.layers:
            if isinstance(layer, LinearAttentionCacheLayerMixin) or not layer.is_initialized:
                continue
            surplus = layer.get_seq_length() - self._length
            if surplus > 0:
                layer.crop(-surplus)
            if isinstance(layer, DynamicSlidingWindowLayer):
                _shorten(layer)
        self._held = self._length
        return self._inner

    def grew(self, tokens: int) -> None:
        """A pass over `tokens` more tokens went through."""
        self._length += tokens
        self._held = self._length

    def broke(self, tokens: int) -> None:
        """A pass over `tokens` tokens was broken off, some layers done and some not."""
        self._held = self._length + tokens
        if self._has_running_state:
            self.empty()

    @property
    def _has_running_state(self) -> bool:
        return any(isinstance(x, LinearAttentionCacheLayerMixin) for x in self._inner.layers)

    def _can_rewind(self, tokens: int) -> bool:
        """Whether every layer can go back by `tokens` from what it holds at most.

        A windowed layer then still needs what lies in the window before.
        """
        if self._has_running_state:
            return False
        return all(
            _stored(layer) == layer.get_seq_length()
            or _stored(layer) - tokens >= layer.sliding_window - 1
            for layer in self._inner.layers
            if isinstance(layer, DynamicSlidingWindowLayer)
        )

    def _tensors(self) -> Iterator[torch.Tensor]:
        for layer in self._inner.layers:
            for value in vars(layer).values():
                parts: list[Any] = list(value.values()) if isinstance(value, dict) else [value]
                yield from (p for p in parts if isinstance(p, torch.Tensor) and p.dim() > 1)


def _stored(layer: DynamicSlidingWindowLayer) -> int:
    """Positions whose keys the layer still has."""
    return int(layer.keys.shape[-2]) if layer.is_initialized else 0


def _shorten(layer: DynamicSlidingWindowLayer) -> None:
    """Drop what no window and no rewind needs any more.

    transformers' own way, `crop(0)`, would leave nothing to rewind; then a draft model, which is
    fed token by token, could take back only its last one.
    """
    needed = layer.sliding_window - 1 + REWINDABLE
    if _stored(layer) > needed + REWINDABLE:
        layer.keys = layer.keys[..., -needed:, :]
        layer.values = layer.values[..., -needed:, :]
