"""Prompts by kind: a file of the user's, SPEED-Bench and Spec-Bench among them, or a built-in set.

Knows no model.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import EngineError

# Longer lines are no prompts; the file is the user's, but a mistake should end clearly.
LINE_BYTES = 4 << 20

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
    """The conversations of a JSON-lines file: `{"prompt": ...}` or `{"turns": [...]}` per line,
    with a "category" if it has one.

    The first `turns` of each; lines with fewer are left out, and those with a placeholder.
    `limit` of them, taken evenly over the categories. Raises EngineError, naming the first line
    that is neither.
    """
    found: list[tuple[str, Conversation]] = []
    skipped = 0
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    category, asked = _conversation(line, number, file.name)
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


def _conversation(line: str, number: int, file: str) -> tuple[str, Conversation]:
    try:
        entry = json.loads(line) if len(line) <= LINE_BYTES else None
    except (ValueError, RecursionError):
        entry = None
    if isinstance(entry, dict):
        turns = entry.get("turns") or [entry.get("prompt")]
        if isinstance(turns, list) and all(isinstance(t, str) and t.strip() for t in turns):
            return str(entry.get("category", "")), tuple(turns)
    raise EngineError(
        "bad_prompt",
        'Line {number} of {file} is not a JSON object with a "prompt" or "turns".',
        number=number,
        file=file,
    )


def _evenly(groups: Mapping[str, Sequence[Conversation]]) -> Iterator[tuple[str, Conversation]]:
    """The first of every group, then the second of every group, and so on."""
    for i in range(max(map(len, groups.values()), default=0)):
        yield from ((kind, group[i]) for kind, group in groups.items() if i < len(group))
