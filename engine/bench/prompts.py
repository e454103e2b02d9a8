"""Prompts by kind: a file of the user's, SPEED-Bench and Spec-Bench among them, or a built-in set.

Knows no model.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import EngineError, first_line

# Longer lines are no prompts; the file is the user's, but a mistake should end clearly.
LINE_BYTES = 4 << 20
# What is read of a Parquet file, and how many rows at once.
COLUMNS, BATCH = ("prompt", "turns", "category"), 64
LONGEST_KIND = 60

# What stands in rows of SPEED-Bench whose text must be fetched from where it came from.
PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"

# What the user says, turn by turn; each turn is asked after the answer to the one before.
Conversation = tuple[str, ...]


@dataclass(frozen=True)
class Prompts:
    """Conversations and the kind of each, "" where none is known. `skipped`: how many rows held
    nothing but a placeholder and were left out."""

    asked: tuple[Conversation, ...]
    kinds: tuple[str, ...]
    skipped: int = 0

    def limited(self, limit: int | None) -> "Prompts":
        """At most `limit` of them, taken evenly over the kinds."""
        groups: dict[str, list[Conversation]] = {}
        for kind, asked in zip(self.kinds, self.asked, strict=True):
            groups.setdefault(kind, []).append(asked)
        return replace(_gathered(list(_evenly(groups))[:limit]), skipped=self.skipped)


def read_prompts(file: Path, limit: int | None = None, turns: int = 1) -> Prompts:
    """The conversations of a file of JSON lines, `{"prompt": ...}` or `{"turns": [...]}` each,
    with a "category" if it has one; or of a Parquet file with these columns, as SPEED-Bench is
    published.

    The first `turns` of each; lines with fewer are left out, and those with a placeholder.
    `limit` of them, taken evenly over the categories. Raises EngineError, naming the first line
    that is neither, or what reads Parquet where that is not installed.
    """
    found: list[tuple[str, Conversation]] = []
    skipped = 0
    rows = _parquet_rows if file.suffix.lower() == ".parquet" else _json_rows
    try:
        for number, row in rows(file):
            category, asked = _conversation(row, number, file.name)
            if any(PLACEHOLDER in turn for turn in asked):
                skipped += 1
            elif len(asked) >= turns:
                found.append((category, asked[:turns]))
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            "prompts_unreadable", "{file} cannot be read: {error}", file=str(file), error=str(error)
        ) from error
    if not found and skipped:
        raise EngineError(
            "only_placeholders",
            "{file} holds placeholders only, {count} of them. The texts of SPEED-Bench are put in "
            "by the script that comes with it.",
            file=file.name,
            count=skipped,
        )
    if not found:
        raise EngineError(
            "no_prompts", "{file} holds no prompts of {turns} turns.", file=file.name, turns=turns
        )
    return replace(_gathered(found), skipped=skipped).limited(limit)


def built_in(
    sets: Mapping[str, Sequence[Sequence[str]]],
    kinds: Iterable[str],
    limit: int | None = None,
    turns: int = 1,
) -> Prompts:
    """The prompts of these `kinds` of the table `sets`; otherwise as `read_prompts`. Raises
    KeyError for a kind that the table lacks, and EngineError where no prompt has turns enough."""
    found = [(kind, tuple(asked[:turns])) for kind in kinds for asked in sets[kind]]
    long = [(kind, asked) for kind, asked in found if len(asked) == turns]
    if not long:
        raise EngineError("no_built_in", "No built-in prompt has {turns} turns.", turns=turns)
    return _gathered(long).limited(limit)


def _gathered(found: Sequence[tuple[str, Conversation]]) -> Prompts:
    return Prompts(tuple(asked for _, asked in found), tuple(kind for kind, _ in found))


def _json_rows(file: Path) -> Iterator[tuple[int, object]]:
    """Line by line, with its number from 1 on; None for one that is no JSON. Raises OSError and
    UnicodeDecodeError."""
    with file.open(encoding="utf-8") as lines:
        for number in itertools.count(1):
            line = lines.readline(LINE_BYTES + 1)
            if not line:
                return
            if not line.strip():
                continue
            try:
                entry = json.loads(line) if len(line) <= LINE_BYTES else None
            except (ValueError, RecursionError):
                entry = None
            yield number, entry


def _parquet_rows(file: Path) -> Iterator[tuple[int, object]]:
    """Row by row, with its number from 1 on. Raises OSError for a file that is damaged, too."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise EngineError(
            "no_parquet",
            "{file} is a Parquet file. To read it, install pyarrow beside Slipstream; or bring it "
            "as JSON lines, one object a line.",
            file=file.name,
        ) from error
    try:
        with parquet.ParquetFile(file) as table:
            columns = [name for name in COLUMNS if name in table.schema_arrow.names]
            batches = table.iter_batches(batch_size=BATCH, columns=columns)
            rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
            yield from enumerate(rows, 1)
    except ArrowException as error:
        raise OSError(first_line(error)) from error


def _conversation(entry: object, number: int, file: str) -> tuple[str, Conversation]:
    if isinstance(entry, dict):
        turns = entry.get("turns") or [entry.get("prompt")]
        if isinstance(turns, list) and all(isinstance(t, str) and t.strip() for t in turns):
            return str(entry.get("category") or "")[:LONGEST_KIND], tuple(turns)
    raise EngineError(
        "bad_prompt",
        'Line {number} of {file} is not an object with a "prompt" or "turns".',
        number=number,
        file=file,
    )


def _evenly(groups: Mapping[str, Sequence[Conversation]]) -> Iterator[tuple[str, Conversation]]:
    """The first of every group, then the second of every group, and so on."""
    for i in range(max(map(len, groups.values()), default=0)):
        yield from ((kind, group[i]) for kind, group in groups.items() if i < len(group))
