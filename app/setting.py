"""One setting as people see it: what it may be, and how that is written, typed and read.

Knows no Qt, and not which settings there are.
"""

from dataclasses import dataclass, fields
from typing import Any

SHOWN = "shown"  # the key in a field's metadata
Value = str | int | bool | None


@dataclass(frozen=True)
class Choice:
    """A value, the word for it in the file and the terminal, and what people read."""

    value: Value
    word: str
    label: str


@dataclass(frozen=True)
class Entry:
    """One setting: one of `choices` or, where there are any, of `numbers` in `unit`, whose step is
    that of the arrows alone. `help` says more where the label does not say it all; `group` is the
    heading that it stands under."""

    name: str
    default: Value
    group: str
    label: str
    help: str
    choices: tuple[Choice, ...]
    numbers: range | None
    unit: str

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return self.choices == SWITCH

    def read(self, written: object) -> Value:
        """The value of what stands in the file. Raises ValueError for what is none."""
        for choice in self.choices:
            if written == choice.word or (written is choice.value and written is not None):
                return choice.value
        if type(written) is int and self._is_within(written):
            return written
        raise ValueError(self.name)

    def parse(self, word: str) -> Value:
        """The value of what was typed. Raises ValueError for what is none."""
        return self.read(int(word) if word.isdecimal() and len(word) < 10 else word)

    def word(self, value: Value) -> str:
        """`value` as it is typed."""
        return next((c.word for c in self.choices if c.value is value), str(value))

    def written(self, value: Value) -> str | int | bool:
        """`value` as the file has it."""
        return value if isinstance(value, bool | int) and self._is_plain else self.word(value)

    @property
    def allowed(self) -> str:
        """What may be typed: "system, light or dark", "auto or 0 to 16"."""
        words = [choice.word for choice in self.choices]
        if self.numbers:
            words.append(f"{self.numbers[0]} to {self.numbers[-1]}")
        return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))

    @property
    def _is_plain(self) -> bool:
        return self.is_switch or self.numbers is not None

    def _is_within(self, number: int) -> bool:
        return self.numbers is not None and self.numbers[0] <= number <= self.numbers[-1]


SWITCH = (Choice(True, "on", "On"), Choice(False, "off", "Off"))
VISIBLE = (
    Choice(None, "auto", "Where there is room"),
    Choice(True, "shown", "Shown"),
    Choice(False, "hidden", "Hidden"),
)


def shown(
    group: str,
    label: str,
    help_: str = "",
    *,
    choices: tuple[Choice, ...] = (),
    numbers: range | None = None,
    unit: str = "",
) -> dict[str, Any]:
    """The metadata of a dataclass's field that people can set."""
    return {
        SHOWN: {
            "group": group,
            "label": label,
            "help": help_,
            "choices": choices,
            "numbers": numbers,
            "unit": unit,
        }
    }


def words(**labels: str) -> tuple[Choice, ...]:
    """Choices whose values are the words themselves."""
    return tuple(Choice(word, word, label) for word, label in labels.items())


def entries(kind: Any) -> tuple[Entry, ...]:
    """The entries of a dataclass, in the order of its fields."""
    asked = [each for each in fields(kind) if SHOWN in each.metadata]
    defaults: list[Any] = [each.default for each in asked]
    return tuple(
        Entry(each.name, default, **each.metadata[SHOWN])
        for each, default in zip(asked, defaults, strict=True)
    )
