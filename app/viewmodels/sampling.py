"""The settings of sampling as a panel shows them: names, ranges, and what is typed as a value.

Knows no widget and no probability; what a setting does is the engine's.
"""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app.resources import figures
from engine import api
from engine.api import NEUTRAL, Sampling

RANGES: dict[str, tuple[float, float]] = {
    **api.RANGES,
    "max_tokens": (1, 10**7),
    "seed": (0, 2**63 - 1),
}
SHAPE = tuple(api.RANGES)  # how a token is chosen: what a preset stands for
WHOLE = {"top_k", "max_tokens", "seed"}
# An arrow key's step.
STEPS: dict[str, float] = {
    "temperature": 0.1,
    "top_k": 1,
    "top_p": 0.05,
    "min_p": 0.01,
    "repetition_penalty": 0.05,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "max_tokens": 64,
    "seed": 1,
}


def _tr(text: str) -> str:
    return QCoreApplication.translate("sampling", text)


@dataclass(frozen=True)
class Setting:
    """One row of the panel: the name of a field of Sampling, what it is called and does."""

    field: str
    name: str
    about: str

    def default(self, folder: Sampling) -> str:
        """What holds while nothing is set, in words."""
        if self.field == "seed":
            return _tr("new each time")
        if self.field == "max_tokens":
            return _tr("up to the context's end")
        if self.field not in DEFERRED:
            return "0"
        return words_of(getattr(folder.over(NEUTRAL), self.field))

    def value(self, sampling: Sampling) -> str:
        """What is set, as it is typed; "" where nothing is."""
        held = getattr(sampling, self.field)
        unset = held is None or (held == 0 and self.field not in DEFERRED | {"seed"})
        return "" if unset else words_of(held)

    def read(self, text: str) -> float | int | None:
        """The value that was typed, None for nothing. Raises ValueError with a sentence."""
        text = text.strip()
        # Either decimal sign is taken in either language; thousands are not grouped.
        number = text.replace("−", "-").replace(",", ".")
        if not text:
            return None if self.field in DEFERRED | {"seed", "max_tokens"} else 0.0
        try:
            value = int(number) if self.field in WHOLE else float(number)
        except ValueError:
            kind = _tr("a whole number") if self.field in WHOLE else _tr("a number")
            said = _tr("{name} must be {kind}; it is “{text}”.")
            raise ValueError(said.format(name=self.name, kind=kind, text=text[:40])) from None
        if not sound(self.field, value):
            said = _tr("{name} must lie between {least} and {most}; it is {value}.")
            least, most = RANGES[self.field]
            raise ValueError(
                said.format(
                    name=self.name,
                    least=words_of(least),
                    most=words_of(most),
                    value=words_of(value),
                )
            )
        return value

    def stepped(self, text: str, steps: int, folder: Sampling) -> str:
        """`text` after an arrow key: so many steps on from it, or from the default."""
        start = text if text.strip() else self.default(folder)
        try:
            value = self.read(start)
        except ValueError:
            return text
        least, most = RANGES[self.field]
        moved = min(max((value or 0) + steps * STEPS[self.field], least), most)
        return words_of(round(moved) if self.field in WHOLE else round(moved, 6))


# None means here: as the model's folder says.
DEFERRED = {"temperature", "top_k", "top_p", "min_p", "repetition_penalty"}


def sound(field: str, value: object) -> bool:
    """Whether `value` is a number that `field` may have."""
    whole = field in WHOLE
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    least, most = RANGES[field]
    return least <= value <= most


def words_of(value: float) -> str:
    """A value as it is typed: "0.7", "40"; "0,7" in German."""
    if isinstance(value, int):
        return str(value)
    return figures(f"{value:.6f}".rstrip("0").rstrip("."))


def settings() -> tuple[Setting, ...]:
    """All rows, in the order in which they are shown."""
    return (
        Setting(
            "temperature",
            _tr("Temperature"),
            _tr("How freely is chosen. 0 always takes the likeliest token."),
        ),
        Setting("top_k", _tr("Top-k"), _tr("Choose among so many likeliest tokens. 0: all.")),
        Setting(
            "top_p",
            _tr("Top-p"),
            _tr("Choose among the likeliest tokens that together have this share. 1: all."),
        ),
        Setting(
            "min_p",
            _tr("Min-p"),
            _tr("Leave out tokens below this share of the likeliest one's probability. 0: none."),
        ),
        Setting(
            "repetition_penalty",
            _tr("Repetition penalty"),
            _tr("Above 1, tokens that stand in the chat already become less likely."),
        ),
        Setting(
            "presence_penalty",
            _tr("Presence penalty"),
            _tr("Above 0, tokens that the answer has already become less likely, once."),
        ),
        Setting(
            "frequency_penalty",
            _tr("Frequency penalty"),
            _tr("Above 0, tokens become less likely each time the answer has them."),
        ),
        Setting("max_tokens", _tr("Longest answer"), _tr("An answer ends after so many tokens.")),
        Setting(
            "seed",
            _tr("Seed"),
            _tr("The same seed, chat and settings give the same answer."),
        ),
    )


def in_words(sampling: Sampling) -> str:
    """What `sampling` sets of how a token is chosen: "Temperature 1.2, min-p 0.05"."""
    said = [f"{one.name} {one.value(sampling)}" for one in settings()[:7] if one.value(sampling)]
    return ", ".join(said) or _tr("As the model's files say")


def stop_strings(text: str) -> tuple[str, ...]:
    """One a line; \\n in a line is a line break in the string."""
    lines = (line.replace("\\n", "\n") for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def stop_text(stop: tuple[str, ...]) -> str:
    """Stop strings as they are typed."""
    return "\n".join(line.replace("\n", "\\n") for line in stop)
