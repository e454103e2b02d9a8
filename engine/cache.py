"""The keys and values of one model: how long they are, how to take some back, how big they are.

The only file that knows transformers' caches (5.24: `crop` takes a negative count; sliding
layers keep more than their window only while they record).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import (
    CacheLayerMixin,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionCacheLayerMixin,
)

from engine import families
from engine.devices import release
from engine.kernels.attention import BUCKET, NAME
from engine.running import States

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# Tokens beyond its window that a sliding layer keeps at least, so that they can be taken back:
# more than a round drafts.
REWINDABLE = 64
# Positions that a window leaves behind before they are dropped: moving the rest has its price.
KEPT_BEHIND = 512


class Cache:
    """What a model has been fed: a prefix of the tokens, `length` of them.

    `has_running_state`: a layer keeps a sum over all it was fed, which cannot be cut back.

    `crop_to` only notes the new length; the tensors are cut when the model next reads them. So
    rewinding twice in a row costs nothing, and a sliding window, which can take back no more
    than its last pass, is cut once, by the sum. A running state cannot be cut: it is put back to
    what it was at the nearest length that `States` has of it, and the model is fed from there.
    """

    has_running_state = False
    _states: "Sequence[States]" = ()

    def __init__(self, config: "PreTrainedConfig", limit: int | None = None) -> None:
        """For a model of `config` that is never fed more than `limit` tokens."""
        self._config, self._limit = config, limit
        self.empty()

    @property
    def limit(self) -> int | None:
        """The most tokens that are ever fed; room is not made for more."""
        return self._limit

    @limit.setter
    def limit(self, tokens: int) -> None:
        self._limit = tokens
        for layer in self._inner.layers:
            if isinstance(layer, Buffers):
                layer.limit = tokens

    @property
    def length(self) -> int:
        """Tokens held."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors held."""
        return sum(t.numel() * t.element_size() for t in self._tensors())

    def free(self) -> None:
        """Hold nothing and give all memory back."""
        self.empty()

    def empty(self) -> None:
        """Hold nothing; the memory is freed."""
        self._inner = DynamicCache(config=self._config)
        if self._config.get_text_config(decoder=True)._attn_implementation == NAME:
            layers = self._inner.layers
            self._inner.layers = [_in_buffers(layer, self._limit) for layer in layers]
        self._length = 0
        self._held = 0
        for layer in self._inner.layers:
            if isinstance(layer, DynamicSlidingWindowLayer):
                DynamicSlidingWindowLayer.activate_past_recording(layer)
        running = [x for x in self._inner.layers if isinstance(x, LinearAttentionCacheLayerMixin)]
        self.has_running_state = bool(running)
        if families.is_rewindable(self._config.get_text_config(decoder=True).model_type):
            for layer in running:
                layer.record_past = False
                layer.states = States(layer.conv_states, layer.recurrent_states)
            self._states = [layer.states for layer in running]

    def crop_to(self, length: int) -> None:
        """Hold at most `length` tokens. What cannot be rewound so far is emptied instead."""
        if length >= self._length:
            return
        length = min([length, *(states.nearest(length) for states in self._states)])
        if length <= 0 or not self._can_rewind(self._held - length):
            self.empty()
        else:
            self._length = length

    def last_layer(self, *, windowed: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Keys and values [1, heads, positions, size] of the last layer that keeps its own, of
        those with a window or of those without, up to `length`; None where there is none.

        Of a window there may be more than it shows, and after a rewind less.
        """
        for layer in reversed(self._inner.layers):
            if getattr(layer, "keys", None) is not None and layer.is_sliding == windowed:
                return _up_to(layer, self._length)
        return None

    def opened(self, notes: int | None = None) -> DynamicCache:
        """The cache to hand to the model, cut to `length`.

        With `notes`, layers with a running state take the pass row by row, and can be put back to
        before each of its last `notes` rows (`engine.mixers`). Otherwise they take it as the
        network has it; then the length from which it starts is one to come back to later.
        """
        for states in self._states:
            if self._held != self._length:
                states.restore(self._length)
            states.begin(self._length, notes)
        freed = False
        for layer in self._inner.layers:
            kind = _attention(layer)
            if kind is None or layer.keys is None:
                continue
            surplus = layer.get_seq_length() - self._length
            if surplus > 0:
                kind.crop(layer, -surplus)
            if isinstance(layer, DynamicSlidingWindowLayer):
                _shorten(layer)
            if isinstance(layer, Buffers):
                layer.drop_oldest()
                freed |= layer.give_back()
        if freed:
            release()
        self._held = self._length
        return self._inner

    def grew(self, tokens: int) -> None:
        """A pass over `tokens` more tokens went through."""
        self._length += tokens
        self._held = self._length

    def broke(self, tokens: int) -> None:
        """A pass over `tokens` tokens was broken off, some layers done and some not."""
        self._held = self._length + tokens
        if self.has_running_state and not (self._states and self._length):
            self.empty()  # there is no state of before to put back

    def _can_rewind(self, tokens: int) -> bool:
        """Whether every layer can go back by `tokens` from what it holds at most.

        A windowed layer then still needs what lies in the window before.
        """
        if self.has_running_state and not self._states:
            return False
        buffers = [x for x in self._inner.layers if isinstance(x, Buffers)]
        return all(x.reaches(self._held - tokens) for x in buffers) and all(
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
        for states in self._states:
            yield from states.tensors()


class Buffers(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer in float32, in room that grows; a pass writes where it stands.

    The layer of our attention: it is handed the whole room, [1, heads, room, size], zeros where
    nothing was written yet, and reads it by buckets. With a `window` the oldest buckets that no
    row and no rewind needs any more are dropped; `first` is the position of what comes first.
    Room grows by a quarter, so that it is seldom moved, but not beyond `limit` tokens, and is
    given back when a much shorter text comes.
    """

    is_croppable = True

    def __init__(self, window: int | None = None, limit: int | None = None) -> None:
        super().__init__()
        self.window, self.limit = window, limit
        self.is_sliding = window is not None
        self.first = 0
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = (
            x.new_zeros(*x.shape[:2], 0, x.shape[3], dtype=torch.float32)
            for x in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.length - self.first
        stop = start + key_states.shape[2]
        self._make_room(stop)
        self.keys[:, :, start:stop] = key_states
        self.values[:, :, start:stop] = value_states
        self.length += key_states.shape[2]
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length - self.first, self.first

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1

    def crop(self, tokens_to_remove: int) -> None:
        """Take back -`tokens_to_remove` tokens: transformers' way to count."""
        self.length += tokens_to_remove

    def reaches(self, length: int) -> bool:
        """Whether what a row behind `length` tokens reads is still here."""
        return self.first <= self._oldest(length)

    def drop_oldest(self) -> None:
        """Drop the buckets that neither the next row nor a rewind by REWINDABLE reads."""
        oldest = self._oldest(max(self.length - REWINDABLE, 0))
        if oldest - self.first < KEPT_BEHIND:
            return
        gone, kept = oldest - self.first, self.length - oldest
        for held in (self.keys, self.values):
            held[:, :, :kept] = held[:, :, gone : gone + kept].clone()
        self.first = oldest

    def give_back(self) -> bool:
        """Give back room that growing would not have made; a window's stays, it is small. Whether
        there was any."""
        needed = _whole_buckets(self.length)
        if self.window is not None or self.keys.shape[2] <= needed + needed // 4 + BUCKET:
            return False
        self.keys, self.values = (x[:, :, :needed].clone() for x in (self.keys, self.values))
        return True

    def _oldest(self, length: int) -> int:
        """The first position that the bucket of position `length` reads."""
        if self.window is None:
            return 0
        bucket = length // BUCKET * BUCKET
        return max(bucket - self.window + 1, 0) // BUCKET * BUCKET

    def _make_room(self, size: int) -> None:
        room = self.keys.shape[2]
        needed = _whole_buckets(size)
        if needed <= room:
            return
        if self.window is None:
            grown = room + room // 4 // BUCKET * BUCKET
            most = grown if self.limit is None else _whole_buckets(self.limit)
            needed = max(needed, min(grown, most))
        more = needed - room
        self.keys, self.values = (
            torch.cat([x, x.new_zeros(*x.shape[:2], more, x.shape[3])], 2)
            for x in (self.keys, self.values)
        )


@dataclass
class _Room:
    """What the layers of a BlockCache share: their size in tokens, and what a pass finds there.

    In a block, `rows` [rows] are its positions, on the device, and `keys` how many are read.
    """

    size: int = 0
    length: int = 0
    keys: int = 0
    rows: torch.Tensor | None = None


class BlockCache(Cache):
    """Keys and values in room that is allotted ahead, for blocks that are always the same shape.

    A prompt writes at `length`, a block at positions that lie in a tensor on the device, so that
    it can be captured and played again. Windows are left to the mask. Going back only lowers
    `length`: what lies behind is written anew before a row may look at it. `allotment` changes
    when the room moves: what was captured over the old one must not be played again.
    """

    def __init__(self, config: "PreTrainedConfig") -> None:
        self._config = config
        self.allotment = 0
        self.free()

    @staticmethod
    def suits(config: "PreTrainedConfig") -> bool:
        """Whether a model keeps plain keys and values of its own in every layer."""
        layers = DynamicCache(config=config).layers
        return bool(layers) and all(
            type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers
        )

    @property
    def room(self) -> int:
        """Tokens there is room for."""
        return self._room.size

    def free(self) -> None:
        self._room = _Room()
        self._length = 0
        self.allotment += 1
        self._inner = DynamicCache(config=self._config)
        self._inner.layers = [_InRoom(self._room, x.is_sliding) for x in self._inner.layers]

    @torch.inference_mode()
    def empty(self) -> None:
        """Hold nothing; the room stays."""
        self._length = 0
        for tensor in self._tensors():
            tensor.zero_()

    def crop_to(self, length: int) -> None:
        self._length = max(0, min(length, self._length))

    @torch.inference_mode()
    def grow(self, size: int) -> None:
        """Make room for `size` tokens; what is held stays."""
        self._room.size = size
        self.allotment += 1
        for layer in self._inner.layers:
            layer.grow()

    def opened(self, notes: int | None = None) -> DynamicCache:
        self._room.length, self._room.rows = self._length, None
        return self._inner

    def opened_for_block(self, rows: torch.Tensor, keys: int) -> DynamicCache:
        """The cache for a block at the positions `rows`, that reads the first `keys` keys."""
        self._room.rows, self._room.keys = rows, keys
        return self._inner

    def grew(self, tokens: int) -> None:
        self._length += tokens

    def broke(self, tokens: int) -> None:
        pass


class _InRoom(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values, [1, room, heads, size].

    Positions come first: so neither growing nor the room's size changes how a row is laid out.
    """

    is_croppable = True

    def __init__(self, room: _Room, is_sliding: bool) -> None:
        super().__init__()
        self.room, self.is_sliding = room, is_sliding

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = (
            x.new_zeros(x.shape[0], self.room.size, x.shape[1], x.shape[3])
            for x in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        new = key_states.transpose(1, 2), value_states.transpose(1, 2)
        seen, _offset = self.get_mask_sizes(key_states.shape[2])
        for held, states in zip((self.keys, self.values), new, strict=True):
            if self.room.rows is None:
                held[:, self.room.length : seen] = states
            else:
                # on the layer's own device, where layers lie apart
                held.index_copy_(1, self.room.rows.to(held.device), states)
        return self.keys[:, :seen].transpose(1, 2), self.values[:, :seen].transpose(1, 2)

    def grow(self) -> None:
        """Move into the room's new size."""
        if self.is_initialized:
            self.keys = self._moved(self.keys)
            self.values = self._moved(self.values)

    def _moved(self, old: torch.Tensor) -> torch.Tensor:
        new = old.new_zeros(old.shape[0], self.room.size, *old.shape[2:])
        new[:, : old.shape[1]] = old
        return new

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        in_block = self.room.rows is not None
        return (self.room.keys if in_block else self.room.length + query_length), 0

    def get_seq_length(self) -> "int | torch.Tensor":
        """In a block a tensor, from which transformers makes the mask, on the device."""
        return self.room.length if self.room.rows is None else self.room.rows[0]

    def get_max_length(self) -> int:
        return -1


def _whole_buckets(tokens: int) -> int:
    return -(-tokens // BUCKET) * BUCKET


def _in_buffers(layer: CacheLayerMixin, limit: int | None) -> CacheLayerMixin:
    """Our own layer in place of transformers', where it is one of plain keys and values."""
    if type(layer) is DynamicLayer:
        return Buffers(limit=limit)
    if type(layer) is DynamicSlidingWindowLayer:
        return Buffers(layer.sliding_window)
    return layer


def _attention(layer: CacheLayerMixin) -> "type[CacheLayerMixin] | None":
    """What the keys and values of `layer` are cut by; some have a running state beside them."""
    kinds = (DynamicSlidingWindowLayer, DynamicLayer)
    if isinstance(layer, LinearAttentionCacheLayerMixin):
        return next((kind for kind in kinds if isinstance(layer, kind)), None)
    return type(layer)


def _up_to(layer: CacheLayerMixin, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What `layer` has of the first `length` tokens."""
    if isinstance(layer, _InRoom):
        keys, values = (x[:, :length].transpose(1, 2) for x in (layer.keys, layer.values))
        return keys, values
    own = isinstance(layer, Buffers)
    first = layer.first if own else layer.get_seq_length() - layer.keys.shape[2]
    keys, values = (x[:, :, : length - first] for x in (layer.keys, layer.values))
    return keys, values


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
