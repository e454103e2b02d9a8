"""The order in which Tab goes through a conversation: as it is read."""

from collections.abc import Iterable, Iterator

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget


def chain(first: QWidget, parts: Iterable[QWidget]) -> None:
    """Have Tab go from `first` through what can have the focus in each of `parts`."""
    last = first
    for part in parts:
        for stop in _stops(part):
            QWidget.setTabOrder(last, stop)
            last = stop


def _stops(part: QWidget) -> Iterator[QWidget]:
    """What Tab stops at: the part itself, then what is in it, from line to line."""
    mirrored = part.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def place(widget: QWidget) -> tuple[int, int]:
        at = widget.mapTo(part, QPoint(0, 0))
        return at.y(), -at.x() if mirrored else at.x()

    held = [widget for widget in part.findChildren(QWidget) if _is_stop(widget)]
    if _is_stop(part):
        yield part
    yield from sorted(held, key=place)


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None
