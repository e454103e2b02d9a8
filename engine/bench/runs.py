"""One way of decoding on one prompt, measured: plain data, to JSON and back. Knows no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.api import Precision, Usage

AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class Way:
    """A way of decoding, one row of the report.

    `draft` names a draft model. `draft_length` in tokens, "auto" where the engine decides it
    round by round, None where nothing is drafted.
    """

    engine: Literal["slipstream", "transformers"]
    drafter: str
    draft: str | None
    precision: Precision
    draft_precision: Precision | None
    draft_length: int | Literal["auto"] | None

    @property
    def drafts(self) -> bool:
        """Whether this is more than plain decoding."""
        return self.drafter != "none"

    @property
    def label(self) -> str:
        """In a few words, for a line of progress."""
        length = f" {self.draft_length}" if self.draft_length else ""
        return f"{self.engine} {self.draft or self.drafter}{length} {self.precision}"


@dataclass(frozen=True)
class Answer:
    """One turn answered. Tokens per second with the prefill left out; seconds."""

    ids: tuple[int, ...]
    tokens_per_second: float
    time_to_first_token: float
    usage: Usage | None = None


@dataclass(frozen=True)
class Run:
    """One conversation, an answer per turn. `prompt` and `again` count from 0.

    `memory_bytes`: weights and caches afterwards.
    """

    way: Way
    prompt: int
    again: int
    memory_bytes: int
    answers: tuple[Answer, ...]


def run_of(data: Mapping[str, Any]) -> Run:
    """A run from what dataclasses.asdict made of it, after a trip through JSON.

    Raises KeyError, TypeError or AttributeError when it is not one.
    """
    return Run(
        Way(**data["way"]),
        data["prompt"],
        data["again"],
        data["memory_bytes"],
        tuple(_answer(answer) for answer in data["answers"]),
    )


def _answer(data: Mapping[str, Any]) -> Answer:
    usage = data["usage"]
    return Answer(
        tuple(data["ids"]),
        data["tokens_per_second"],
        data["time_to_first_token"],
        None if usage is None else Usage(**{k: _tuple(v) for k, v in usage.items()}),
    )


def _tuple(value: Any) -> Any:
    """JSON knows no tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
