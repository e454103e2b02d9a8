"""Does what is chosen fit into memory: the bar, its legend, the context's slider, the ways out.

Decides what the section "Memory" says. Knows no widget and no device: the worker's sampler tells
how much is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QObject, Signal

from app import resources
from app.viewmodels import words
from app.viewmodels.binding import Property
from engine.fit import CHUNK, Fit, Pair, Parts, Room
from engine.placement import judge_each, judge_over, settle, tightest
from engine.ways import WayOut, longest_context, ways_out

GIB = 2**30


@dataclass(frozen=True)
class Part:
    """A part of a device's memory: its name, its words, its bytes."""

    name: str
    words: str
    size: int


@dataclass(frozen=True)
class Bar:
    """One device: its parts up to `total` bytes, drawn to `scale`; `text` says the same."""

    device: str
    amount: str
    parts: tuple[Part, ...]
    total: int
    scale: int
    over: bool
    text: str


@dataclass(frozen=True)
class Way:
    """One way out: what it would change, and the verdict then."""

    code: str
    title: str
    word: str
    reason: str


@dataclass(frozen=True)
class View:
    """All that the section shows. `longest` and `limit` are contexts in tokens; `waits`: it is
    not loaded yet."""

    word: str
    reason: str
    bars: tuple[Bar, ...]
    legend: tuple[Part, ...]
    context: int
    limit: int
    longest: int | None
    ways: tuple[Way, ...]
    waits: bool = False


class Fitting(QObject):
    """What would be in memory, against what is free now; what runs makes room for what comes."""

    view_changed = Signal(object)
    taken = Signal(object)  # a Pair that the user chose

    view = Property[View | None](None)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: Pair | None = None
        self._pair: Pair | None = None
        self._rooms: tuple[Room, ...] = ()
        self._ram: Room | None = None
        self._ways: dict[str, WayOut] = {}
        self._waits = False

    @property
    def pair(self) -> Pair | None:
        """What is judged."""
        return self._pair

    @property
    def device(self) -> str:
        """What models run on; empty while that is not known."""
        return self._rooms[0].device if self._rooms else ""

    def fit(self, pair: Pair) -> Fit | None:
        """Whether `pair` would fit in place of what runs; None while no device is known."""
        return judge_over(pair, self._free()) if self._rooms else None

    def settle(self, pair: Pair) -> Pair:
        """`pair` with its layers where they are judged to lie; as it is while that is not known."""
        fit = self.fit(pair)
        known = fit is not None and fit.word != "unknown"
        return settle(pair, self._free()) if known else pair

    def show(self, running: Pair | None, asked: Pair | None = None) -> None:
        """Judge what runs, or what is `asked` for in its place."""
        self._running, self._pair = running, asked or running
        self._waits = asked is not None
        self._show()

    def show_rooms(self, readings: Sequence[Room]) -> bool:
        """Another reading: all devices of one kind, then main memory where that is another.
        Whether anything has changed."""
        rooms = tuple(room for room in readings if room.device == readings[0].device)
        ram = next((room for room in readings if room not in rooms), None)
        if (rooms, ram) == (self._rooms, self._ram):
            return False
        self._rooms, self._ram = rooms, ram
        self._show()
        return True

    def choose_context(self, tokens: int) -> None:
        """Another length of the context, while the slider moves."""
        if self._pair is not None and tokens != self._pair.context:
            self._pair = replace(self._pair, context=max(tokens, CHUNK))
            self._show()

    def take(self, code: str) -> None:
        """Take a way out."""
        way = self._ways.get(code)
        if way is not None:
            self.taken.emit(way.pair)

    def _show(self) -> None:
        if self._pair is None or not self._rooms:
            self.view = None
            return
        rooms = self._free()
        fits = judge_each(self._pair, rooms)
        fit = tightest(fits)
        found = ways_out(self._pair, rooms, self._ram) if fit.word == "no" else []
        self._ways = {way.code: way for way in found}
        limit = self._pair.target.context or self._pair.context
        self.view = View(
            word=fit.word,
            reason=resources.translate(fit.reason),
            bars=tuple(_bar(fit) for fit in fits),
            legend=_legend(fits),
            context=self._pair.context,
            limit=max(limit, self._pair.context),
            longest=longest_context(self._pair, rooms, limit),
            ways=tuple(_way(way) for way in found),
            waits=self._waits,
        )

    def _free(self) -> list[Room]:
        """The devices without what the running models hold there for sure: weights and the
        device's own share."""
        if self._running is None:
            return list(self._rooms)
        empty = [replace(room, free=room.total) for room in self._rooms]
        held = [fit.parts for fit in judge_each(self._running, empty)]
        return [
            room if room.free is None else replace(room, free=_freed(room, parts))
            for room, parts in zip(self._rooms, held, strict=True)
        ]


def _freed(room: Room, parts: Parts) -> int:
    free = room.free or 0
    free += (parts.target_weights or 0) + (parts.draft_weights or 0) + parts.overhead
    return min(free, room.total or free)


def _tr(text: str) -> str:
    return QCoreApplication.translate("fit", text)


def _parts(fit: Fit) -> list[Part]:
    """In the order in which they are drawn; CUDA's own share is part of the work space."""
    parts = fit.parts
    work = None if parts.work is None else parts.work + parts.overhead
    named = [
        ("target_weights", _tr("Target weights"), parts.target_weights),
        ("target_kv", _tr("Target cache"), parts.target_kv),
        ("draft_weights", _tr("Draft weights"), parts.draft_weights),
        ("draft_kv", _tr("Draft cache"), parts.draft_kv),
        ("work", _tr("Work space"), work),
        ("others", _tr("Other programs"), fit.others),
    ]
    return [Part(name, said, size) for name, said, size in named if size]


def _legend(fits: Sequence[Fit]) -> tuple[Part, ...]:
    """Each part once, summed over the devices."""
    summed: dict[str, Part] = {}
    for part in (part for fit in fits for part in _parts(fit)):
        known = summed.get(part.name)
        summed[part.name] = replace(part, size=part.size + (known.size if known else 0))
    over = sum(_over(fit) for fit in fits)
    parts = tuple(summed.values())
    return (*parts, Part("over", _tr("Too much"), over)) if over else parts


def _over(fit: Fit) -> int:
    if fit.need is None or fit.room.free is None:
        return 0
    return max(fit.need - fit.room.free, 0)


def _bar(fit: Fit) -> Bar:
    parts, over = _parts(fit), _over(fit)
    used = sum(part.size for part in parts)
    total = fit.room.total or used
    drawn = _within(parts, total, over)
    amount = _tr("{used} of {total}").format(used=f"{used / GIB:.1f}", total=words.gibibytes(total))
    said = ", ".join(f"{p.words} {p.size / GIB:.2f}" for p in parts)
    return Bar(
        fit.room.name,
        amount,
        drawn,
        total,
        max(total, used),
        over > 0,
        f"{fit.room.name}: {amount}. {said}. {resources.translate(fit.reason)}",
    )


def _within(parts: list[Part], total: int, over: int) -> tuple[Part, ...]:
    """The parts as drawn: of what is ours, as much as others leave room for, and what is too much
    behind the capacity."""
    if not over:
        return tuple(parts)
    left, drawn = total - sum(p.size for p in parts if p.name == "others"), []
    for part in parts:
        size = part.size if part.name == "others" else min(part.size, left)
        left -= 0 if part.name == "others" else size
        drawn.append(replace(part, size=size))
    return (*drawn, Part("over", _tr("Too much"), over))


def _way(way: WayOut) -> Way:
    return Way(
        way.code,
        resources.translate(way.text),
        way.fit.word,
        resources.translate(way.fit.reason),
    )
