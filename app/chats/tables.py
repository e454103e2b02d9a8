"""The tables of the history file, and chats and messages as their rows.

Writes single rows; transactions and the file are the store's.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.chats import plain, search
from app.chats.conversation import ChatRecord, Entry, Unsent, rooted
from app.chats.plain import FactsWriter
from app.chats.salvage import Row

# The schema of version n is made by the first n steps; a step that was released never changes.
# `turn` counts writings to chats, and rows of messages are numbered as they are written: a clock
# orders nothing. The index comes first: it can be made again, and the second page of a file is lost
# more often than others.
STEPS: tuple[str, ...] = (
    f"""
    {search.TABLE};
    CREATE TABLE chats (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
        pinned INTEGER NOT NULL, removed INTEGER NOT NULL, turn INTEGER NOT NULL,
        made REAL NOT NULL, changed REAL NOT NULL, choices TEXT NOT NULL
    );
    CREATE INDEX chats_by_turn ON chats (turn);
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE, parent TEXT,
        role TEXT NOT NULL, state TEXT NOT NULL, chosen INTEGER NOT NULL, written REAL NOT NULL,
        text TEXT NOT NULL, reasoning TEXT NOT NULL, attachments TEXT NOT NULL,
        facts TEXT NOT NULL
    );
    CREATE INDEX messages_by_parent ON messages (chat, parent);
    CREATE INDEX messages_running ON messages (seq) WHERE state = 'running'
    """,
    "CREATE TABLE unsent (chat TEXT PRIMARY KEY, text TEXT NOT NULL, attachments TEXT NOT NULL)",
)
TITLE_LENGTH = 80

_CHAT = "id, title, pinned, made, changed, choices"
_MESSAGE = "id, chat, parent, role, state, chosen, written, text, reasoning, attachments, facts"
_ADD = f"INSERT INTO messages ({_MESSAGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NEXT_TURN = "(SELECT coalesce(max(turn), 0) + 1 FROM chats)"


def chats(db: sqlite3.Connection) -> list[ChatRecord]:
    """All chats that are not removed: pinned ones first, then by when they were last written to."""
    query = f"SELECT {_CHAT} FROM chats WHERE NOT removed ORDER BY pinned DESC, turn DESC"
    return [
        ChatRecord(id, title, bool(pinned), made, changed, plain.choices_in(plain.load(choices)))
        for id, title, pinned, made, changed, choices in db.execute(query)
    ]


def entries(db: sqlite3.Connection, chat: str) -> list[Entry]:
    """The messages of a chat with all their versions, in the order of writing."""
    query = f"SELECT {_MESSAGE} FROM messages WHERE chat = ? ORDER BY seq"
    return rooted(_entry(*row) for row in db.execute(query, (chat,)))


def first_questions(db: sqlite3.Connection, count: int) -> list[str]:
    """The questions without attachments that chats begin with, each once, the newest first;
    nothing of removed chats."""
    rows = db.execute(
        "SELECT text, max(seq) AS last FROM messages WHERE parent IS NULL AND role = 'user'"
        " AND attachments = '[]' AND trim(text) <> ''"
        " AND chat IN (SELECT id FROM chats WHERE NOT removed)"
        " GROUP BY text ORDER BY last DESC LIMIT ?",
        (count,),
    )
    return [text for text, _ in rows]


def unsent(db: sqlite3.Connection) -> dict[str, Unsent]:
    """What is being written, by chat; "" is the chat that is none yet."""
    rows = db.execute("SELECT chat, text, attachments FROM unsent")
    return {
        chat: Unsent(text, plain.attachments_in(plain.load(attachments)))
        for chat, text, attachments in rows
    }


def put_unsent(db: sqlite3.Connection, unsent: Mapping[str, Unsent]) -> None:
    """Write what is being written, and nothing of removed chats."""
    there = {"", *(id for (id,) in db.execute("SELECT id FROM chats WHERE NOT removed"))}
    db.execute("DELETE FROM unsent")
    db.executemany(
        "INSERT INTO unsent VALUES (?, ?, ?)",
        (
            (chat, plain.sound(one.text), plain.dump(plain.attachments_out(one.attachments)))
            for chat, one in unsent.items()
            if chat in there
        ),
    )


def put_chat(db: sqlite3.Connection, chat: ChatRecord, now: float) -> None:
    """Write a chat; of a known one all but when it was made."""
    db.execute(
        f"INSERT INTO chats ({_CHAT}, removed, turn) VALUES (?, ?, ?, ?, ?, ?, 0, {_NEXT_TURN})"
        " ON CONFLICT (id) DO UPDATE SET"
        " title = excluded.title, pinned = excluded.pinned, changed = excluded.changed,"
        " choices = excluded.choices",
        (
            chat.id,
            plain.sound(chat.title),
            chat.pinned,
            chat.made or now,
            chat.changed or now,
            plain.dump(plain.choices_out(chat.choices)),
        ),
    )


def put(db: sqlite3.Connection, entry: Entry, now: float, writer: FactsWriter) -> None:
    """Write a message: a new one as the chosen version, of a known one what may have changed."""
    known = db.execute("SELECT seq FROM messages WHERE id = ?", (entry.id,)).fetchone()
    if known is not None:
        search.forget(db, *known)
        db.execute(
            "UPDATE messages SET state = ?, text = ?, reasoning = ?, attachments = ?, facts = ?"
            " WHERE seq = ?",
            (entry.state, *_texts(entry, writer), *known),
        )
        return
    if entry.chosen:
        _unchoose(db, entry.chat, entry.parent)
    add(db, replace(entry, written=entry.written or now), writer)
    turn = f"UPDATE chats SET changed = ?, turn = {_NEXT_TURN} WHERE id = ?"
    db.execute(turn, (now, entry.chat))


def add(db: sqlite3.Connection, entry: Entry, writer: FactsWriter) -> None:
    """Write a new message, whatever its versions are."""
    start = (entry.id, entry.chat, entry.parent, entry.role, entry.state, entry.chosen)
    db.execute(_ADD, (*start, entry.written, *_texts(entry, writer)))


def choose(db: sqlite3.Connection, id: str) -> None:
    """Make a message the chosen one of its versions."""
    found = db.execute("SELECT chat, parent FROM messages WHERE id = ?", (id,)).fetchone()
    if found is not None:
        _unchoose(db, *found)
        db.execute("UPDATE messages SET chosen = 1 WHERE id = ?", (id,))


def drop(db: sqlite3.Connection, id: str) -> None:
    """Delete a message and all that follows it."""
    following = (
        "WITH RECURSIVE later (id) AS (SELECT ? UNION SELECT messages.id FROM messages, later"
        " WHERE messages.chat = (SELECT chat FROM messages WHERE id = ?)"
        " AND messages.parent = later.id)"
        " SELECT seq FROM messages WHERE id IN (SELECT id FROM later)"
    )
    search.forget_all(db)
    for (seq,) in db.execute(following, (id, id)).fetchall():
        db.execute("DELETE FROM messages WHERE seq = ?", (seq,))


def mark(db: sqlite3.Connection, chat: str, removed: bool) -> bool:
    """Mark a chat as removed, or no longer; whether it was there."""
    return db.execute("UPDATE chats SET removed = ? WHERE id = ?", (removed, chat)).rowcount > 0


def empty(db: sqlite3.Connection) -> list[str]:
    """Delete what removed chats hold; their ids. Their marks stay."""
    removed = [id for (id,) in db.execute("SELECT id FROM chats WHERE removed")]
    for id in removed:
        db.execute("DELETE FROM messages WHERE chat = ?", (id,))
        db.execute("DELETE FROM unsent WHERE chat = ?", (id,))
        db.execute("UPDATE chats SET title = '', choices = '' WHERE id = ?", (id,))
    if removed:
        search.forget_all(db)
    return removed


def interrupt(db: sqlite3.Connection) -> None:
    """Answers that were being written when the program ended are interrupted ones."""
    db.execute("UPDATE messages SET state = 'interrupted' WHERE state = 'running'")


def bring_back(db: sqlite3.Connection, found: Iterable[Row]) -> tuple[int, int]:
    """Write what was salvaged of these tables, rows of others left aside; how many chats and
    messages. What belongs to a removed chat stays out."""
    known: dict[str, list[Any]] = {}
    messages: list[tuple[int, list[Any]]] = []
    for row in found:
        match row.values:
            case [None, str(id), str(_), 0 | 1, 0 | 1, int(_), *_] if id and len(row.values) == 9:
                known[id] = row.values
            case [None, str(id), str(chat), str() | None, str(role), *_] if (
                id and chat and role in plain.ROLES and len(row.values) == 12
            ):
                messages.append((row.rowid, row.values))
    messages.sort(key=lambda message: message[0])
    for values in sorted(known.values(), key=lambda values: values[5]):
        _bring_chat(db, values)
    homeless = {values[2]: values for _, values in reversed(messages) if values[2] not in known}
    for chat, first in reversed(homeless.items()):
        title = " ".join(_text(first[8]).split())[:TITLE_LENGTH]
        put_chat(db, ChatRecord(chat, title, changed=plain.amount(first[7])), 0.0)
    for _, values in messages:
        if values[2] in homeless or not known[values[2]][4]:
            _bring_message(db, values)
    kept = sum(not values[4] for values in known.values()) + len(homeless)
    return kept, db.execute("SELECT count(*) FROM messages").fetchone()[0]


def _bring_chat(db: sqlite3.Connection, values: list[Any]) -> None:
    _, id, title, pinned, removed, _, made, changed, choices = values
    if not removed:
        known = plain.choices_in(plain.load(choices))
        times = plain.amount(made), plain.amount(changed)
        put_chat(db, ChatRecord(id, title, bool(pinned), *times, known), 0.0)


def _bring_message(db: sqlite3.Connection, values: list[Any]) -> None:
    _, id, chat, parent, role, state, chosen, written, text, reasoning, attachments, facts = values
    db.execute(
        _ADD.replace("INSERT", "INSERT OR IGNORE", 1),
        (
            *(id, chat, parent, role, state if state in plain.STATES else "interrupted"),
            *(int(bool(chosen)), plain.amount(written), _text(text), _text(reasoning)),
            *(_text(attachments), _text(facts)),
        ),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _unchoose(db: sqlite3.Connection, chat: str, parent: str | None) -> None:
    versions = "UPDATE messages SET chosen = 0 WHERE chat = ? AND parent IS ? AND chosen"
    db.execute(versions, (chat, parent))


def _texts(entry: Entry, writer: FactsWriter) -> tuple[str, str, str, str]:
    return (
        plain.sound(entry.text),
        plain.sound(entry.reasoning),
        plain.dump(plain.attachments_out(entry.attachments)),
        writer.text(entry.facts),
    )


def _entry(
    id: str, chat: str, parent: str | None, role: Any, state: Any, chosen: int, written: float,
    text: str, reasoning: str, attachments: str, facts: str,
) -> Entry:  # fmt: skip
    return Entry(
        id,
        chat,
        parent,
        role,
        text,
        plain.attachments_in(plain.load(attachments)),
        reasoning,
        state,
        plain.facts_in(plain.load(facts)),
        written,
        bool(chosen),
    )
