"""What would help a pair that does not fit into memory: each change with its verdict.

Arithmetic like `fit`'s. Changes nothing: whoever shows a way out lets the user take it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.api import Precision
from engine.errors import Reason
from engine.fit import CHUNK, Fit, Pair, Room, Word, gib, layer_weights, margin
from engine.placement import judge_over

LEAST_CONTEXT = 512
# What a shorter context is offered in.
STEP = 1024
# From the most to the least exact.
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8", "int4")
# Of what a connection could carry at most, what copies out of ordinary memory get.
COPY_SHARE = 0.5


@dataclass(frozen=True)
class WayOut:
    """A change that may make a pair fit, and the verdict then."""

    code: str
    text: Reason
    pair: Pair
    fit: Fit


def longest_context(pair: Pair, rooms: Sequence[Room], limit: int) -> int | None:
    """The most tokens at which `pair` still is no worse than tight; None: not known, 0: none.

    At most `limit` and the target's own context, in steps of CHUNK.
    """
    limit = min(limit, pair.target.context or limit)
    if judge_over(replace(pair, context=CHUNK), rooms).word == "unknown":
        return None
    return _longest(pair, rooms, ("fits", "tight"), limit, CHUNK)


def ways_out(pair: Pair, rooms: Sequence[Room], ram: Room | None = None) -> list[WayOut]:
    """What else could be done for a pair that does not fit, in a fixed order, each judged.

    `ram` is the main memory where `rooms` are others: some layers may lie there.
    """
    found = [
        WayOut(text.code, text, changed, judge_over(changed, rooms))
        for text, changed in _changes(pair, rooms)
    ]
    outside = None if ram is None else _outside(pair, rooms, ram)
    return found if outside is None else [*found, outside]


def _changes(pair: Pair, rooms: Sequence[Room]) -> Iterator[tuple[Reason, Pair]]:
    if pair.draft is not None:
        # a target's own head lies in the target's files, and has its precision
        own = pair.draft.path == pair.target.path
        lower = _lower(pair.draft_precision, lambda p: replace(pair, draft_precision=p), rooms)
        if lower is not None and not own:
            values = {"precision": lower.draft_precision}
            yield Reason("draft_precision", "Draft in {precision}", values), lower
        yield Reason("ngram", "Repeats from the chat instead"), replace(pair, draft=None)
    # another precision is loaded anew, and placed anew
    anew = replace(pair, on_cards=())
    lower = _lower(pair.precision, lambda p: replace(anew, precision=p), rooms)
    if lower is not None:
        text = "Target in {precision}; answers may differ"
        yield Reason("precision", text, {"precision": lower.precision}), lower
    shorter = _shorter(pair, rooms)
    if shorter is not None:
        text = "Context of {tokens:,} tokens"
        yield Reason("context", text, {"tokens": shorter.context}), shorter


def _lower(
    now: Precision, change: Callable[[Precision], Pair], rooms: Sequence[Room]
) -> Pair | None:
    """The next lower precision at which it fits, else the lowest; None below the lowest."""
    at = PRECISIONS.index("bf16" if now == "fp16" else now)
    lower = [change(precision) for precision in PRECISIONS[at + 1 :]]
    fitting = (pair for pair in lower if judge_over(pair, rooms).word == "fits")
    return next(fitting, lower[-1] if lower else None)


def _shorter(pair: Pair, rooms: Sequence[Room]) -> Pair | None:
    """The longest context that fits, in steps of STEP, of no more than the target's own; else the
    longest that is tight, else the least that is of use."""
    if pair.context <= LEAST_CONTEXT:
        return None
    limit = min(pair.context - 1, pair.target.context or pair.context)
    fitting = _longest(pair, rooms, ("fits",), limit, STEP)
    longest = fitting or _longest(pair, rooms, ("fits", "tight"), limit, STEP)
    return replace(pair, context=longest or LEAST_CONTEXT)


def _longest(
    pair: Pair, rooms: Sequence[Room], words: tuple[Word, ...], limit: int, step: int
) -> int:
    """The most tokens, in steps, at which the verdict is one of `words`; 0: none."""
    low, high = 0, limit // step
    while low < high:
        middle = (low + high + 1) // 2
        if judge_over(replace(pair, context=middle * step), rooms).word in words:
            low = middle
        else:
            high = middle - 1
    return low * step


def _outside(pair: Pair, rooms: Sequence[Room], ram: Room) -> WayOut | None:
    """As few layers in main memory as make the rest fit; None where layers stay together."""
    size, layers = layer_weights(pair), pair.target.layers
    if size is None or not layers:
        return None
    ways = [replace(pair, layers_in_ram=count, on_cards=()) for count in range(1, layers + 1)]
    # the last if none fits
    least = bisect_left(ways[:-1], True, key=lambda way: judge_over(way, rooms).word == "fits")
    changed = ways[least]
    fit = judge_over(changed, rooms)
    copied = size * changed.layers_in_ram
    short = 0 if ram.free is None else copied + margin(ram.total or ram.free) - ram.free
    if short > 0:
        text = "Does not fit, {gib} GiB short in main memory"
        fit = replace(fit, word="no", reason=Reason("no_fit_in_ram", text, {"gib": gib(short)}))
    return WayOut("layers", _slowed(changed.layers_in_ram, copied, rooms[0].link), changed, fit)


def _slowed(layers: int, copied: int, link: float | None) -> Reason:
    """What layers in main memory cost: each pass waits for their copies."""
    values: dict[str, str | int | float] = {"layers": layers}
    if link is None:
        return Reason("layers", "{layers} layers in main memory: much slower", values)
    rate = COPY_SHARE * link / copied
    text = "{layers} layers in main memory: at most about {rate} passes a second"
    return Reason(
        "layers_rate", text, values | {"rate": round(rate, 1) if rate < 10 else round(rate)}
    )
