"""A table of what was answered before, brought up to date when it is asked for."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from engine.past import Text, Texts


class Table(Protocol):
    """What can be made of many texts, and takes one more."""

    def add(self, text: Sequence[int]) -> None: ...


T = TypeVar("T", bound=Table)


class Shared(Generic[T]):
    """`make` gives a table of texts, `part` what of a text goes into it. Without a `past` there
    are none."""

    def __init__(
        self,
        past: Texts | None,
        make: Callable[[Iterable[Sequence[int]]], T],
        part: Callable[[Text], Sequence[int]],
    ) -> None:
        self._past, self._make, self._part = past, make, part
        self._known = past.all if past is not None else ()
        self._table = make(map(part, self._known))

    @property
    def table(self) -> T:
        """With all that was learned since; where something was forgotten, made anew."""
        found = self._past.all if self._past is not None else ()
        if found is not self._known:
            before, self._known = self._known, found
            if found[: len(before)] == before:
                for text in found[len(before) :]:
                    self._table.add(self._part(text))
            else:
                self._table = self._make(map(self._part, found))
        return self._table
