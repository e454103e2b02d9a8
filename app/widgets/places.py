"""Where in a document each piece of a Markdown source stands.

Positions in a source are characters; in a document they are UTF-16 units, as Qt counts.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

_WIDE = re.compile("([\U00010000-\U0010ffff])")


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of the source and its place. Of unequal lengths it stands for one sign."""

    source: int
    length: int
    position: int
    room: int


def units(text: str) -> int:
    """Length of `text` as Qt counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class Places:
    """The places of one document, in order."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._sources: list[int] = []
        self._positions: list[int] = []

    def add(self, text: str, source: int, position: int) -> None:
        """`text` stands in the document as it does in the source."""
        if text.isascii():
            self.add_sign(source, len(text), position, len(text))
            return
        for piece in _WIDE.split(text):
            room = units(piece)
            self.add_sign(source, len(piece), position, room)
            source += len(piece)
            position += room

    def add_sign(self, source: int, length: int, position: int, room: int) -> None:
        """A piece of the source stands in the document as something else."""
        behind = self._places[-1].source + self._places[-1].length if self._places else 0
        if length > 0 and source >= behind:
            self._places.append(Place(source, length, position, room))
            self._sources.append(source)
            self._positions.append(position)

    def drop(self, position: int) -> None:
        """Forget what stands from `position` on."""
        count = bisect_left(self._positions, position)
        for held in (self._places, self._sources, self._positions):
            del held[count:]

    def between(self, first: int, last: int) -> list[Place]:
        """What stands between two positions of the document."""
        start = max(bisect_right(self._positions, first) - 1, 0)
        return self._places[start : bisect_left(self._positions, last)]

    def source_at(self, position: int) -> int | None:
        """The place in the source of what stands at a position of the document."""
        index = bisect_right(self._positions, position) - 1
        if index < 0:
            return None
        place = self._places[index]
        if position >= place.position + place.room:
            return None
        return place.source + min(position - place.position, place.length - 1)

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Where the source from `first` up to `last` stands; pieces that touch are one."""
        found: list[tuple[int, int]] = []
        index = max(bisect_right(self._sources, first) - 1, 0)
        for place in self._places[index:]:
            if place.source >= last:
                break
            start, end = max(first, place.source), min(last, place.source + place.length)
            if start >= end:
                continue
            a, b = _within(place, start, end)
            if found and found[-1][1] == a:
                a = found.pop()[0]
            found.append((a, b))
        return found


def _within(place: Place, start: int, end: int) -> tuple[int, int]:
    if place.length != place.room:
        return place.position, place.position + place.room
    shift = place.position - place.source
    return start + shift, end + shift
