"""What was measured on this machine: how fast a target answers, alone and with each draft.

Knows one small JSON file and how two measurements become one. Measures nothing itself, and what it
cannot read of the file was never measured.
"""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from engine.api import Precision
from engine.errors import Reason
from engine.guidance import Level, Verdict

NONE, NGRAM, SUFFIX, CHAIN, MTP, AUTO = "none", "ngram", "suffix", "chain", "mtp", "auto"
# What drafts without a model, and takes no memory to speak of.
LOOKUPS = (NGRAM, SUFFIX, CHAIN)
# All that is chosen by a word: MTP is a head that the target brings itself, AUTO whatever is the
# fastest round by round.
WITHOUT_MODEL = (AUTO, NONE, *LOOKUPS, MTP)
By = Literal["use", "bench"]

FORMAT = 1
LIMIT = 2**22  # bytes of the file
MOST = 1000  # setups; of more, those measured longest ago are dropped
MEMORY = 4096  # tokens of what was known before that count at most
GOOD_TIMES = 1.1  # from here on a draft is worth its memory


@dataclass(frozen=True)
class Setup:
    """A target and what drafted for it, as they ran on `device`.

    `target` and `draft` are identities (`library.index.identity`), or `draft` is one of
    `WITHOUT_MODEL`, and then without a precision.
    """

    target: str
    draft: str
    precision: Precision
    draft_precision: Precision | None
    device: str

    @property
    def plain(self) -> "Setup":
        """The same target without a draft."""
        return replace(self, draft=NONE, draft_precision=None)


@dataclass(frozen=True)
class Measurement:
    """Tokens per second of a setup, the share of drafts that was accepted, and over how many
    tokens; `plain` is the rate of the same target without a draft. None: not known."""

    tokens_per_second: float
    acceptance_rate: float | None
    tokens: int
    date: str
    by: By
    plain: float | None = None

    @property
    def times_plain(self) -> float | None:
        """How many times faster than plain decoding; below 1 it is slower."""
        return self.tokens_per_second / self.plain if self.plain else None


def verdict(advice: Verdict, found: Measurement) -> Verdict:
    """What a measurement says of a pair, in place of the general `advice` or, where plain decoding
    was never measured, behind it. A refusal stays one."""
    if advice.level is Level.REFUSED or found.acceptance_rate is None:
        return advice
    times, accepted = found.times_plain, round(100 * found.acceptance_rate)
    if times is None:
        values = {**advice.reason.values, "accepted": accepted}
        reason = Reason("accepted_here", f"{advice.reason.template}; {ACCEPTED}", values)
        return replace(advice, reason=reason)
    values = {"times": _shown(times), "accepted": accepted}
    if times >= GOOD_TIMES:
        reason = Reason("faster_here", f"Good: {{times}} times plain, {ACCEPTED}", values)
        return replace(advice, level=Level.GOOD, reason=reason, detail=advice.reason)
    if times < 1:
        reason = Reason("slower_here", "Slower here: {times} times plain", values)
        return replace(advice, level=Level.WARN, reason=reason, detail=advice.reason)
    reason = Reason("even_here", f"{{times}} times plain, {ACCEPTED}", values)
    return replace(advice, level=Level.EVEN, reason=reason, detail=advice.reason)


ACCEPTED = "{accepted} % accepted"


def _shown(times: float) -> float:
    """With one digit behind the point; near the thresholds two, rounded down, so that what is
    said never passes one that the pair does not."""
    return math.floor(100 * times) / 100 if 0.95 <= times < GOOD_TIMES else round(times, 1)


class Measured:
    """The table. Another program of ours may write the same `file`: it is read again before it is
    asked or added to, if it has changed. None: nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._found: dict[Setup, Measurement] = {}

    def of(self, setup: Setup) -> Measurement | None:
        """What is known of a setup, with the plain rate of its target."""
        self._refresh()
        found = self._found.get(setup)
        if found is None or setup.draft == NONE:
            return found
        plain = self._found.get(setup.plain)
        return replace(found, plain=plain.tokens_per_second if plain is not None else None)

    def add(
        self,
        setup: Setup,
        rate: float,
        tokens: int,
        acceptance_rate: float | None = None,
        by: By = "use",
    ) -> None:
        """Put one more measurement to what is known, and write the file.

        Times per token, and acceptance, are averaged by tokens. What was known before counts half
        its tokens and of them `MEMORY` at most, so that newer answers weigh more and old ones are
        outweighed in the end. Of a full disk one only notices that it is forgotten.
        """
        self._refresh()
        new = Measurement(rate, acceptance_rate, tokens, _today(), by)
        if not _sound(setup, new):
            return
        known = self._found.pop(setup, None)
        self._found[setup] = new if known is None else _merged(known, new)
        for longest_ago in list(self._found)[:-MOST]:
            del self._found[longest_ago]
        self._save()

    def _refresh(self) -> None:
        if self._file is None:
            return
        now = stamp(self._file)
        if now != self._stamp:
            self._stamp, self._found = now, _read(self._file)

    def _save(self) -> None:
        if self._file is None:
            return
        rows = [asdict(setup) | _kept(found) for setup, found in self._found.items()]
        write_rows(self._file, "measured", rows)
        self._stamp = stamp(self._file)


def _merged(known: Measurement, new: Measurement) -> Measurement:
    before = min(known.tokens, MEMORY) / 2
    whole = before + new.tokens
    seconds = before / known.tokens_per_second + new.tokens / new.tokens_per_second
    accepted = new.acceptance_rate
    if accepted is not None and known.acceptance_rate is not None:
        accepted = (before * known.acceptance_rate + new.tokens * accepted) / whole
    return replace(
        new,
        tokens_per_second=whole / seconds,
        acceptance_rate=accepted,
        tokens=known.tokens + new.tokens,
    )


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def stamp(file: Path) -> tuple[int, int] | None:
    """By what it is told that the file changed; None where it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _kept(found: Measurement) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name != "plain"}


def _read(file: Path) -> dict[Setup, Measurement]:
    """The sound rows of the file, those measured longest ago first; none of a damaged file."""
    found: dict[Setup, Measurement] = {}
    for row in read_rows(file, "measured"):
        with contextlib.suppress(KeyError, TypeError):
            setup, measurement = _row(row)
            if _sound(setup, measurement):
                found[setup] = measurement
    return found


def read_rows(file: Path, name: str) -> list[Any]:
    """The rows that `write_rows` wrote; none of a damaged file."""
    try:
        with file.open("rb") as opened:
            kept = json.loads(opened.read(LIMIT))
    except (OSError, ValueError, RecursionError):
        return []
    known = isinstance(kept, dict) and kept.get("format") == FORMAT
    rows = kept.get(name) if known else None
    return rows if isinstance(rows, list) else []


def write_rows(file: Path, name: str, rows: list[Any]) -> None:
    """Replace the file, all at once. Of a full disk one only notices that it is forgotten."""
    beside = file.with_suffix(f".{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.write_text(json.dumps({"format": FORMAT, name: rows}), encoding="utf-8")
        beside.replace(file)


def _row(row: Mapping[str, Any]) -> tuple[Setup, Measurement]:
    """Raises KeyError or TypeError for what is no row."""
    return (
        setup_of(row),
        Measurement(
            row["tokens_per_second"],
            row["acceptance_rate"],
            row["tokens"],
            row["date"],
            row["by"],
        ),
    )


def setup_of(row: Mapping[str, Any]) -> Setup:
    """Raises KeyError or TypeError for what is none."""
    return Setup(
        row["target"], row["draft"], row["precision"], row["draft_precision"], row["device"]
    )


def is_sound(setup: Setup) -> bool:
    """Whether every value is of its kind."""
    return (
        all(isinstance(text, str) for text in (setup.target, setup.draft, setup.device))
        and setup.precision in get_args(Precision)
        and (setup.draft_precision is None or setup.draft_precision in get_args(Precision))
    )


def _sound(setup: Setup, found: Measurement) -> bool:
    """Whether every value is of its kind and of a size that can be; files are edited by hand."""
    rate, accepted = found.tokens_per_second, found.acceptance_rate
    drafts = setup.draft != NONE
    return (
        is_sound(setup)
        and type(rate) in (int, float)
        and 0 < rate < 1e6
        and (_is_share(accepted) if drafts else accepted is None)
        and type(found.tokens) is int
        and 0 < found.tokens < 2**53
        and _is_date(found.date)
        and found.by in get_args(By)
    )


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False
