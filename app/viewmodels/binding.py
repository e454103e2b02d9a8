"""How widgets follow view models: properties that tell of a change, and calls held back.

Knows no view model and no widget.
"""

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from PySide6.QtCore import QObject, QTimer

T = TypeVar("T")


class Property(Generic[T]):
    """A value of a view model. Setting another one emits the model's `<name>_changed(object)`."""

    def __init__(self, default: T) -> None:
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, model: None, owner: type) -> "Property[T]": ...
    @overload
    def __get__(self, model: QObject, owner: type) -> T: ...
    def __get__(self, model: QObject | None, owner: type) -> "Property[T] | T":
        if model is None:
            return self
        value: T = model.__dict__.get(self._name, self._default)
        return value

    def __set__(self, model: QObject, value: T) -> None:
        if value != self.__get__(model, type(model)):
            model.__dict__[self._name] = value
            self.changed(model).emit(value)

    def changed(self, model: QObject) -> Any:
        """The signal of `model` that tells of a change."""
        return getattr(model, f"{self._name}_changed")


def bind(model: QObject, prop: Property[T], show: Callable[[T], object]) -> None:
    """Call `show` with the value now and after every change."""
    prop.changed(model).connect(show)
    show(prop.__get__(model, type(model)))


class Throttle(QObject):
    """Runs `action` at most once in `interval` milliseconds, and once after the last call."""

    def __init__(self, interval: int, action: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._interval = interval
        self._action = action
        self._last = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.now)

    def soon(self) -> None:
        """Run the action, now or when the interval is over."""
        waited = (time.monotonic() - self._last) * 1000
        if waited >= self._interval:
            self.now()
        elif not self._timer.isActive():
            self._timer.start(round(self._interval - waited) + 1)

    def now(self) -> None:
        """Run the action at once."""
        self._timer.stop()
        self._last = time.monotonic()
        self._action()
