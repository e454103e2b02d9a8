"""Conversations as they are kept: a chat, its messages as a tree, what is known of an answer.

Plain data without Qt. The store writes it, the window and the exports read it; nothing here knows
where it is kept or how it is shown.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.api import Finish, Role, Sampling, Usage
from engine.errors import Reason

State = Literal["running", "done", "interrupted", "failed"]


def new_id() -> str:
    """A name for a chat or message that no other has."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Attachment:
    """A text file that goes with a question."""

    name: str
    text: str


@dataclass(frozen=True)
class Round:
    """One pass of the target as an answer shows it: what it `drafted` and `accepted`, how many
    `seconds` it took, and the runs of the text that it added: how many characters each has, and
    whether they were drafted."""

    drafted: int
    accepted: int
    seconds: float
    runs: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True)
class Facts:
    """What is known of an answer beyond its text. `thinking` in seconds, None while there is none.

    `token_ids` are those it was generated as, its thinking among them, empty where they are not
    all of it; they mean something only to the vocabulary with the fingerprint `vocabulary`.
    `drafted`: a draft was chosen; `times_plain`: how fast it was against plain decoding, as that
    was last measured. `left_out`: how many of the oldest messages the model was not shown.
    """

    model: str = ""
    thinking: float | None = None
    usage: Usage = field(default_factory=Usage)
    finish: Finish | None = None
    drafted: bool = False
    rounds: tuple[Round, ...] = ()
    times_plain: float | None = None
    token_ids: tuple[int, ...] = ()
    vocabulary: str = ""
    notices: tuple[Reason, ...] = ()
    problem: Reason | None = None
    left_out: int = 0


@dataclass(frozen=True)
class Entry:
    """One message. `parent` is the message before it, None of a chat's first; messages with the
    same parent are versions of one another, of which one is `chosen`."""

    id: str
    chat: str
    parent: str | None
    role: Role
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    reasoning: str = ""
    state: State = "done"
    facts: Facts = field(default_factory=Facts)
    written: float = 0.0  # seconds since 1970, as the clock said; never what messages are sorted by
    chosen: bool = True


@dataclass(frozen=True)
class Choices:
    """What belongs to a chat: its system prompt, sampling, target and draft. None: as it was last.

    The model is no longer shown the oldest messages, up to the one with the id `left_out`;
    `summary` stands for them, unless it is empty.
    """

    system: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    target: str | None = None
    draft: str | None = None
    summary: str = ""
    left_out: str | None = None


@dataclass(frozen=True)
class ChatRecord:
    """A chat as a list shows it. `made` and `changed` in seconds since 1970."""

    id: str
    title: str
    pinned: bool = False
    made: float = 0.0
    changed: float = 0.0
    choices: Choices = field(default_factory=Choices)


@dataclass(frozen=True)
class Unsent:
    """A message that is being written."""

    text: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class Hit:
    """A place where a search was found; `around` is a line of text with it."""

    chat: str
    title: str
    entry: str | None
    around: str


def rooted(entries: Iterable[Entry]) -> list[Entry]:
    """`entries`, in the order of writing, each behind one that was written before it: where the
    message before is lost, behind the one that was written last."""
    found: dict[str, Entry] = {}
    last = None
    for entry in entries:
        if entry.parent is not None and entry.parent not in found:
            entry = replace(entry, parent=last)
        found[entry.id] = entry
        last = entry.id
    return list(found.values())


def branch(entries: Iterable[Entry]) -> list[Entry]:
    """The messages that are shown: from the first on, always the chosen version."""
    children: dict[str | None, list[Entry]] = {}
    for entry in entries:
        children.setdefault(entry.parent, []).append(entry)
    shown: list[Entry] = []
    seen: set[str] = set()
    parent = None
    while versions := children.get(parent):
        chosen = next((v for v in reversed(versions) if v.chosen), versions[-1])
        if chosen.id in seen:  # a damaged file may hold a circle
            break
        seen.add(chosen.id)
        shown.append(chosen)
        parent = chosen.id
    return shown


def versions(entries: Sequence[Entry], entry: Entry) -> list[Entry]:
    """`entry` and what was written in its place, in the order of writing."""
    return [other for other in entries if other.parent == entry.parent]
