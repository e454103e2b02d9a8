"""Which layers of a target lie where: on several cards, or some of them in main memory.

Arithmetic over what a pair takes and what devices have free; asks no device and loads nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

from engine.fit import (
    Fit,
    Pair,
    Parts,
    Room,
    Word,
    judge,
    layer_weights,
    margin,
    parts_of,
    word_of,
)

_WORDS: tuple[Word, ...] = ("no", "unknown", "tight", "fits")
_NOTHING = Parts(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Placement:
    """How many layers each card holds, in order, and main memory; without any, all lie on the first
    card."""

    on_cards: tuple[int, ...] = ()
    in_ram: int = 0

    @property
    def whole(self) -> bool:
        """Whether all of the target lies on the first card."""
        return not any(self.on_cards[1:]) and not self.in_ram

    def device_map(self, names: Sequence[str], blocks: str) -> dict[str, int | str]:
        """transformers' device map for a network whose layer i is named "{blocks}.{i}".

        `names` are the modules beside the layers: they lie on the first card.
        """
        cards = [card for card, count in enumerate(self.on_cards) for _ in range(count)]
        places: list[int | str] = [*cards, *["cpu"] * self.in_ram]
        rest: dict[str, int | str] = dict.fromkeys(names, 0)
        return rest | {f"{blocks}.{index}": place for index, place in enumerate(places)}


def place(pair: Pair, rooms: Sequence[Room]) -> Placement:
    """Where the target's layers lie, or shall lie where that is not settled.

    As many as the user wants are in main memory. The others are spread evenly over as few cards as
    hold them with a margin, else without one; the draft and what is no layer are on the first. If
    all cards hold too little, what is too much is on the last.
    """
    layers = pair.target.layers
    if not layers or layer_weights(pair) is None:
        return Placement()
    outside = min(pair.layers_in_ram, layers)
    here = layers - outside
    if sum(pair.on_cards) == here:
        return Placement(pair.on_cards, outside)
    sizes = _sizes(pair)
    if sizes is None or any(room.free is None for room in rooms):
        return Placement((here,), outside)
    free = [
        (room.free or 0) - (sizes.other if card else sizes.first) for card, room in enumerate(rooms)
    ]
    spare = [left - margin(room.total or 0) for left, room in zip(free, rooms, strict=True)]
    tries = (
        _spread(sizes.layer, left[:cards], here)
        for left in (spare, free)
        for cards in range(1, len(rooms) + 1)
    )
    found = next((counts for counts in tries if counts), None)
    return Placement(found or _crowded(sizes.layer, free, here), outside)


def _spread(size: int, left: list[int], layers: int) -> tuple[int, ...]:
    """So many layers on each card that what is left there is as even as can be: it is what a draft
    and a longer context will need. Empty where the cards do not hold all."""
    if left[0] < 0 or sum(max(free, 0) // size for free in left) < layers:
        return ()
    counts = [0] * len(left)
    for _ in range(layers):
        card = max(range(len(left)), key=lambda c: left[c] - size * counts[c])
        counts[card] += 1
    return tuple(counts)


def _crowded(size: int, left: list[int], layers: int) -> tuple[int, ...]:
    """Each card filled in turn, and what none has room for on the last: it shows what is too
    much."""
    counts: list[int] = []
    for free in left[:-1]:
        counts.append(min(layers - sum(counts), max(free, 0) // size))
    return (*counts, layers - sum(counts))


def settle(pair: Pair, rooms: Sequence[Room]) -> Pair:
    """`pair` with its layers where they are judged to lie, wherever else there is room later."""
    return replace(pair, on_cards=place(pair, rooms).on_cards)


def judge_over(pair: Pair, rooms: Sequence[Room]) -> Fit:
    """On all of `rooms` that it is placed on together: the sums of what they hold and have, with
    the verdict of the tightest."""
    fits = [fit for fit in judge_each(pair, rooms) if fit.need != 0]
    if len(fits) == 1:
        return fits[0]
    held = [fit.room for fit in fits]
    room = Room(
        rooms[0].device,
        " + ".join(room.name for room in held),
        sum(room.total or 0 for room in held),
        sum(room.free or 0 for room in held),
    )
    return replace(tightest(fits), parts=_sum(fit.parts for fit in fits), room=room)


def judge_each(pair: Pair, rooms: Sequence[Room]) -> list[Fit]:
    """What each of `rooms` holds, as it is placed, and whether it fits there."""
    first, sizes = judge(pair, rooms[0]), _sizes(pair)
    others = place(pair, rooms).on_cards[1:]
    if sizes is None or not any(others):
        return [first, *(replace(first, parts=_NOTHING, room=r, word="fits") for r in rooms[1:])]
    every = [*_shares(first.parts, sizes, others), *[_NOTHING] * len(rooms)]
    return [
        Fit(parts, room, *word_of(parts, room), first.kv_type)
        for parts, room in zip(every, rooms, strict=False)
    ]


def _shares(whole: Parts, sizes: "_Sizes", others: Sequence[int]) -> list[Parts]:
    """What the first card holds of `whole`, and the others with so many layers each."""
    weights, kv, away = whole.target_weights or 0, whole.target_kv or 0, sum(others)
    first = replace(
        whole, target_weights=weights - sizes.weights * away, target_kv=kv - sizes.kv * away
    )
    return [
        first,
        *(
            Parts(sizes.weights * count, sizes.kv * count, 0, 0, sizes.work, whole.overhead)
            if count
            else _NOTHING
            for count in others
        ),
    ]


def _sum(every: Iterable[Parts]) -> Parts:
    columns = zip(*(astuple(parts) for parts in every), strict=True)
    return Parts(*(sum(column) for column in columns))


def tightest(fits: Sequence[Fit]) -> Fit:
    """The one that decides for all cards together."""
    used = [fit for fit in fits if fit.need != 0] or fits
    return min(used, key=lambda fit: (_WORDS.index(fit.word), _spare(fit)))


def _spare(fit: Fit) -> int:
    return 0 if fit.room.free is None or fit.need is None else fit.room.free - fit.need


@dataclass(frozen=True)
class _Sizes:
    """Bytes of a layer's weights, of its keys and values, of what else the first card holds, and
    of each other one's work space and all that it holds beside layers."""

    weights: int
    kv: int
    first: int
    work: int
    other: int

    @property
    def layer(self) -> int:
        return self.weights + self.kv


def _sizes(pair: Pair) -> _Sizes | None:
    """None where too little is known, or the layers must stay together (`fit.layer_weights`)."""
    weights, layers, parts = layer_weights(pair), pair.target.layers, parts_of(pair, "cuda")
    if not weights or not layers or parts.need is None:
        return None
    kv = (parts.target_kv or 0) // layers
    outside = min(pair.layers_in_ram, layers)
    # layers in main memory are computed on the first card: copies, keys and values are there
    work = (parts.work or 0) - (weights if outside else 0)
    first = parts.need - (weights + kv) * (layers - outside)
    return _Sizes(weights, kv, first, work, work + parts.overhead)
