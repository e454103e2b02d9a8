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


@dataclass(frozen=True)
class Placement:
    """How many layers each card holds, in order; the layers left over lie in main memory."""

    on_cards: tuple[int, ...]
    in_ram: int = 0

    def device_map(self, names: Sequence[str], blocks: str) -> dict[str, int | str]:
        """transformers' device map for a network whose layer i is named "{blocks}.{i}".

        `names` are the modules beside the layers: they lie on the first card.
        """
        cards = [card for card, count in enumerate(self.on_cards) for _ in range(count)]
        places: list[int | str] = [*cards, *["cpu"] * self.in_ram]
        rest: dict[str, int | str] = dict.fromkeys(names, 0)
        return rest | {f"{blocks}.{index}": place for index, place in enumerate(places)}


def place(pair: Pair, rooms: Sequence[Room]) -> Placement | None:
    """Where the target's layers go; None: all on the first card.

    Those that the user wants in main memory lie there; else, where the first card does not hold
    the pair and all of them do, they are spread.
    """
    layers = pair.target.layers or 0
    if pair.layers_in_ram and layer_weights(pair) is not None:
        outside = min(pair.layers_in_ram, layers)
        return Placement((layers - outside,), outside)
    if len(rooms) < 2 or judge(pair, rooms[0]).word != "no":
        return None
    return spread(pair, rooms)


def spread(pair: Pair, rooms: Sequence[Room]) -> Placement | None:
    """The target's layers over the cards, each filled in turn, the draft on the first.

    None where all together hold too little, too little is known, or the layers must stay
    together (`fit.layer_weights`).
    """
    counts, left = _filled(pair, rooms)
    return None if left or not counts else Placement(tuple(counts))


def crowded(pair: Pair, rooms: Sequence[Room]) -> Placement | None:
    """As `spread`, with what no card has room for on the last: it shows what is too much."""
    counts, left = _filled(pair, rooms)
    return Placement((*counts[:-1], counts[-1] + left)) if counts else None


def _filled(pair: Pair, rooms: Sequence[Room]) -> tuple[list[int], int]:
    """How many layers each card has room for, and how many are left; no counts: not known, or
    the first does not even hold what belongs there."""
    sizes, left = _sizes(pair), pair.target.layers or 0
    if sizes is None or any(room.free is None for room in rooms):
        return [], left
    counts: list[int] = []
    for place, room in enumerate(rooms):
        fixed = sizes.first if place == 0 else sizes.other
        free = (room.free or 0) - fixed - margin(room.total or 0)
        if free < 0 and place == 0:
            return [], left
        counts.append(min(left, max(free, 0) // sizes.layer))
        left -= counts[-1]
    return counts, left


def judge_over(pair: Pair, rooms: Sequence[Room]) -> Fit:
    """On the first of `rooms`; or, where that does not hold it, on several together: the sums of
    what they hold and have, with the verdict of the tightest."""
    fits = [fit for fit in judge_each(pair, rooms) if fit.need]
    if len(fits) < 2:
        return judge(pair, rooms[0])
    held = [fit.room for fit in fits]
    room = Room(
        rooms[0].device,
        " + ".join(room.name for room in held),
        sum(room.total or 0 for room in held),
        sum(room.free or 0 for room in held),
    )
    return replace(tightest(fits), parts=_sum(fit.parts for fit in fits), room=room)


def judge_each(pair: Pair, rooms: Sequence[Room]) -> list[Fit]:
    """What each of `rooms` holds: all on the first, or spread where that does not hold it."""
    first = judge(pair, rooms[0])
    if first.word == "no" and len(rooms) > 1:
        placement = spread(pair, rooms) or crowded(pair, rooms)
        if placement is not None:
            return shares(pair, placement, rooms)
    nothing = Parts(0, 0, 0, 0, 0, 0)
    return [first, *(replace(first, parts=nothing, room=r, word="fits") for r in rooms[1:])]


def _sum(every: Iterable[Parts]) -> Parts:
    columns = zip(*(astuple(parts) for parts in every), strict=True)
    return Parts(*(sum(column) for column in columns))


def shares(pair: Pair, placement: Placement, rooms: Sequence[Room]) -> list[Fit]:
    """What each card then holds, and whether it fits there; nothing where that is not known."""
    sizes = _sizes(pair)
    if sizes is None:
        return []
    whole, layers = parts_of(pair, "cuda"), pair.target.layers or 1
    weights, kv = whole.target_weights or 0, whole.target_kv or 0
    found = []
    for place, (count, room) in enumerate(zip(placement.on_cards, rooms, strict=False)):
        of_layers, of_kv = sizes.weights * count, kv * count // layers
        if place == 0:
            beside = weights - sizes.weights * layers
            parts = replace(whole, target_weights=of_layers + beside, target_kv=of_kv)
        elif count:
            parts = Parts(of_layers, of_kv, 0, 0, whole.work, whole.overhead)
        else:
            parts = Parts(0, 0, 0, 0, 0, 0)
        found.append(Fit(parts, room, *word_of(parts, room), kv_type="bf16"))
    return found


def tightest(fits: Sequence[Fit]) -> Fit:
    """The one that decides for all cards together."""
    used = [fit for fit in fits if fit.need != 0] or fits
    return min(used, key=lambda fit: (_WORDS.index(fit.word), _spare(fit)))


def _spare(fit: Fit) -> int:
    return 0 if fit.room.free is None or fit.need is None else fit.room.free - fit.need


@dataclass(frozen=True)
class _Sizes:
    """Bytes of a layer's weights, of these with its keys and values, and of what else the first
    card and each other one holds."""

    weights: int
    layer: int
    first: int
    other: int


def _sizes(pair: Pair) -> _Sizes | None:
    weights, layers, parts = layer_weights(pair), pair.target.layers, parts_of(pair, "cuda")
    if weights is None or not layers or parts.need is None:
        return None
    layer = weights + (parts.target_kv or 0) // layers
    return _Sizes(weights, layer, parts.need - layer * layers, (parts.work or 0) + parts.overhead)
