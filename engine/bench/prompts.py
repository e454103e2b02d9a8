"""Prompts and conversations from a file of the user's. Knows no model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.errors import EngineError

# Longer lines are no prompts; the file is the user's, but a mistake should end clearly.
LINE_BYTES = 4 << 20

# What the user says, turn by turn; each turn is asked after the answer to the one before.
Conversation = tuple[str, ...]


def read_prompts(file: Path, limit: int | None = None, turns: int = 1) -> list[Conversation]:
    """The conversations of a JSON-lines file: `{"prompt": ...}` or `{"turns": [...]}` per line.

    The first `turns` of each; lines with fewer are left out. `limit` of them, taken evenly over
    the categories that the lines name. Raises EngineError, naming the first line that is neither.
    """
    by_category: dict[str, list[Conversation]] = {}
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    category, asked = _conversation(line, number, file.name)
                    if len(asked) >= turns:
                        by_category.setdefault(category, []).append(asked[:turns])
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            "prompts_unreadable", "{file} cannot be read: {error}", file=str(file), error=str(error)
        ) from error
    if not by_category:
        raise EngineError(
            "no_prompts", "{file} holds no prompts of {turns} turns.", file=file.name, turns=turns
        )
    spread = list(_evenly(by_category))
    return spread[:limit] if limit else spread


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


def _evenly(groups: Mapping[str, Sequence[Conversation]]) -> Iterator[Conversation]:
    """The first of every group, then the second of every group, and so on."""
    for i in range(max(map(len, groups.values()))):
        yield from (group[i] for group in groups.values() if i < len(group))
