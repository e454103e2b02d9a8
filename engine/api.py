"""The data that crosses the border between the engine and whoever uses it.

Frozen dataclasses of the standard library's types only: they can be stored, sent to another
process and compared. No behaviour beyond arithmetic on their own fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from engine.errors import Reason

Role = Literal["system", "user", "assistant"]
Precision = Literal["fp32", "bf16", "fp16", "int8", "int4"]
Verification = Literal["coupled", "rejection"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation.

    `token_ids` are the ids an answer was generated as, its thinking among them, valid only for the
    vocabulary whose fingerprint is `vocabulary`; with them a later turn finds its prefix in the
    cache, and the answer can go on. Drop both when the text is edited. `reasoning` is the thinking
    before an answer: the model's template decides whether the model sees it again.
    """

    role: Role
    content: str
    token_ids: tuple[int, ...] | None = None
    vocabulary: str | None = None
    reasoning: str = ""


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen from the target's probabilities.

    None means: as the model's folder says, else the neutral value. `temperature` 0 is greedy.
    `top_k` 0 switches it off. `repetition_penalty` looks at prompt and answer,
    `presence_penalty` and `frequency_penalty` at the answer only. Without a `seed` the session
    draws one and reports it. `max_tokens` None: up to the context's end.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def over(self, defaults: "Sampling") -> "Sampling":
        """These settings, with what is None taken from `defaults`."""
        names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
        missing = {n: getattr(defaults, n) for n in names if getattr(self, n) is None}
        return replace(self, **missing)


# What holds where neither the user nor the model's folder sets a value. 64: noise over a whole
# vocabulary of 150,000 would cost 10 ms a round.
NEUTRAL = Sampling(temperature=0.8, top_k=64, top_p=1.0, min_p=0.0, repetition_penalty=1.0)

# What a setting of how a token is chosen may be.
RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 100.0),
    "top_k": (0, 10**7),
    "top_p": (1e-6, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 100.0),
    "presence_penalty": (-100.0, 100.0),
    "frequency_penalty": (-100.0, 100.0),
}


@dataclass(frozen=True)
class Drafting:
    """How many tokens are drafted a round (None: automatic) and by which rule they are judged."""

    length: int | None = None
    verification: Verification = "coupled"


class Kind(StrEnum):
    """What a folder or file of a library is."""

    MODEL = "model"
    HEAD = "head"
    ADAPTER = "adapter"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ModelInfo:
    """What headers and configuration say of a model. None: the files do not say.

    `active` are the parameters that a token uses, where that is not all of them; `apart` numbers
    that no text needs (images, sound, further heads), which `parameters` leave out. `mask` is what
    they name as the token of a mask, in drafts that guess several tokens in one pass: maybe none.
    The last ones are what its memory follows from, counts of numbers: `linear` in the matrices of
    linear layers,
    which have `linear_rows` rows together, `experts` of them in those of a mixture's experts;
    `embedding` in the table of tokens; `head` in the output matrix, 0 where the table serves as
    one; `other` in all other tensors. `cache_widths` has the numbers that each layer keeps of a
    token, `cache_windows` how many tokens it keeps (0: all); `cache_fixed` what running states
    take whatever was fed, in the model's type and in float32.
    """

    name: str
    path: Path
    format: Literal["safetensors", "gguf"]
    architecture: str
    kind: Kind = Kind.MODEL
    parameters: int | None = None
    active: int | None = None
    apart: int = 0
    layers: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    context: int | None = None
    vocab_size: int | None = None
    recurrent: bool = False
    file_bytes: int = 0
    quantisation: str | None = None
    licence: str | None = None
    has_template: bool = False
    mask: int | str | None = None
    linear: int | None = None
    linear_rows: int | None = None
    experts: int = 0
    embedding: int | None = None
    head: int | None = None
    other: int | None = None
    cache_widths: tuple[int, ...] | None = None
    cache_windows: tuple[int, ...] | None = None
    cache_fixed: tuple[int, int] | None = None


@dataclass(frozen=True)
class Loaded:
    """A model as it runs now. `context` in tokens, `memory_bytes` of its weights.

    `layers_in_ram` of its layers lie beside the device. `cache_precision` is the type of the keys
    and values. `bit_exact`: a check of this model,
    precision and device found every row of logits the same however it was fed, so an answer with
    a draft is the answer without, bit for bit; False: the same up to rounding. `notes` say what
    was chosen for the user and why.
    """

    info: ModelInfo
    device: str
    precision: Precision
    context: int
    vocabulary: str
    defaults: Sampling
    memory_bytes: int
    seconds: float
    layers_in_ram: int = 0
    cache_precision: Precision = "fp32"
    bit_exact: bool = False
    notes: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far a long job is: `done` of `total` in `unit` ("bytes", "tensors", "tokens")."""

    stage: str
    done: int
    total: int
    unit: str = "bytes"


@dataclass(frozen=True)
class RoundStats:
    """One pass of the target: what was drafted for it and what became of it.

    `accepted` drafts were emitted, `ignored` ones never judged or cut off behind a stop; the
    rest were rejected. `emitted` counts the tokens that left the round, the target's own among
    them. Seconds by the monotonic clock. `drafter` names what drafted.
    """

    drafted: int
    accepted: int
    ignored: int = 0
    emitted: int = 1
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    drafter: str = ""

    @property
    def rejected(self) -> int:
        return self.drafted - self.accepted - self.ignored


@dataclass(frozen=True)
class Usage:
    """Sums over one answer, as methods for speculative decoding define them.

    `rounds` had a draft, `plain_steps` had none. `drafted_at[i]` counts the rounds that drafted
    more than i tokens, `accepted_at[i]` those in which the first i + 1 were all accepted.
    `prompt_tokens` is all that lay before, in an answer that goes on its beginning too;
    `reasoning_tokens` of the `tokens` were thinking, its tags among them. `by_drafter` has a row
    for each that drafted: its name, rounds, drafted and accepted.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    reasoning_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    ignored: int = 0
    rounds: int = 0
    plain_steps: int = 0
    round_tokens: int = 0
    drafted_at: tuple[int, ...] = ()
    accepted_at: tuple[int, ...] = ()
    time_to_first_token: float | None = None
    prefill_seconds: float = 0.0
    seconds: float = 0.0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    seed: int = 0
    by_drafter: tuple[tuple[str, int, int, int], ...] = ()

    def plus(self, stats: RoundStats) -> "Usage":
        """The sums with one more round. Tokens and time to first token are the session's."""
        drafting = stats.drafted > 0
        return replace(
            self,
            tokens=self.tokens + stats.emitted,
            drafted=self.drafted + stats.drafted,
            accepted=self.accepted + stats.accepted,
            ignored=self.ignored + stats.ignored,
            rounds=self.rounds + drafting,
            plain_steps=self.plain_steps + (not drafting),
            round_tokens=self.round_tokens + (stats.emitted if drafting else 0),
            drafted_at=_raised(self.drafted_at, stats.drafted),
            accepted_at=_raised(self.accepted_at, stats.accepted, stats.drafted),
            draft_seconds=self.draft_seconds + stats.draft_seconds,
            verify_seconds=self.verify_seconds + stats.verify_seconds,
            by_drafter=_counted(self.by_drafter, stats),
        )

    @property
    def rejected(self) -> int:
        return self.drafted - self.accepted - self.ignored

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / drafted; None when nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def tokens_per_round(self) -> float | None:
        """Tokens emitted by rounds with a draft, per such round."""
        return self.round_tokens / self.rounds if self.rounds else None

    @property
    def accepted_by_position(self) -> tuple[float, ...]:
        """Unconditional rate at i: rounds with the first i accepted / rounds that drafted i."""
        return tuple(a / d for a, d in zip(self.accepted_at, self.drafted_at, strict=True))

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens over the time they took, the prefill of target and draft left out."""
        span = self.seconds - self.prefill_seconds
        return self.tokens / span if self.tokens and span > 0 else None


def _raised(counts: tuple[int, ...], upto: int, width: int = 0) -> tuple[int, ...]:
    """`counts` with one more in each of the first `upto` places, at least `width` long."""
    length = max(len(counts), upto, width)
    padded = counts + (0,) * (length - len(counts))
    return tuple(c + (i < upto) for i, c in enumerate(padded))


def _counted(
    rows: tuple[tuple[str, int, int, int], ...], stats: RoundStats
) -> tuple[tuple[str, int, int, int], ...]:
    """`rows` with one more round of its drafter."""
    if not stats.drafted or not stats.drafter:
        return rows
    counts = {row[0]: row for row in rows}
    name, rounds, drafted, accepted = counts.get(stats.drafter, (stats.drafter, 0, 0, 0))
    counts[name] = name, rounds + 1, drafted + stats.drafted, accepted + stats.accepted
    return tuple(counts.values())


class Finish(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    CONTEXT = "context"
    CANCELLED = "cancelled"
    MEMORY = "memory"


@dataclass(frozen=True)
class Chunk:
    """What one round added to an answer.

    `text` is to be appended to what is shown, `reasoning` to the folded thinking; either may be
    empty while half a character or the start of a stop string is held back. An answer that ends
    early keeps that back for good: when it goes on, it may become something else. `token_ids` are
    the ids kept, `drafted` says of each whether it was an accepted draft, `lengths` how many
    characters of `text` it released. The last chunk of an answer carries `finish`, and
    `token_ids_exact`: whether the ids of all chunks are the whole answer and nothing else (not so
    where a stop string cut it, or where it went on from text).
    """

    text: str = ""
    reasoning: str = ""
    token_ids: tuple[int, ...] = ()
    drafted: tuple[bool, ...] = ()
    lengths: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    round: RoundStats | None = None
    notices: tuple[Reason, ...] = ()
    prefilled: Progress | None = None
    finish: Finish | None = None
    token_ids_exact: bool = True
