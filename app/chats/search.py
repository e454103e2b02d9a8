"""Finding text in chats: an index of every three characters, and the texts themselves.

The index only narrows down: each message it names is read and compared. What is not indexed yet
is compared too, so a search is right at once and becomes faster. Words under three characters are
in no index. Knows the store's tables; transactions are the store's.
"""

import sqlite3
import unicodedata
from collections.abc import Iterable
from typing import Any

from app.chats import plain
from app.chats.conversation import Hit

# Neither table holds a text as such; what is in `indexed` with `whole` 0 is too long for it.
TABLE = """
    CREATE VIRTUAL TABLE found USING fts5 (
        text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1'
    );
    CREATE TABLE indexed (seq INTEGER PRIMARY KEY, whole INTEGER NOT NULL)
"""
GRAM = 3
# Characters. Indexing takes 0.4 s for a million (2 slow cores), comparing 5 ms.
LONGEST, AT_ONCE = 500_000, 200_000
MOST_HITS, MOST_GRAMS = 200, 60
BEFORE, AROUND = 40, 160  # characters of the line that is shown with a hit

_TEXTS = "text, reasoning, attachments"


def find(db: sqlite3.Connection, text: str) -> list[Hit]:
    """Where all words of `text` stand together: in titles, then in messages from the newest on."""
    words = fold(text).split()
    if not words:
        return []
    titles = "SELECT id, title FROM chats WHERE NOT removed ORDER BY turn DESC"
    hits = [Hit(id, title, None, title) for id, title in db.execute(titles) if _all(words, title)]
    for id, chat, title, *texts in _candidates(db, words):
        if len(hits) >= MOST_HITS:
            break
        parts = _parts(*texts)
        if _all(words, "\n".join(parts)):
            hits.append(Hit(chat, title, id, _around(parts, words[0])))
    return hits[:MOST_HITS]


def index(db: sqlite3.Connection) -> None:
    """Take a bounded amount of finished text into the index, the newest first."""
    waiting = (
        "SELECT seq FROM messages WHERE state <> 'running'"
        " AND seq NOT IN (SELECT seq FROM indexed) ORDER BY seq DESC LIMIT 1000"
    )
    done = 0
    for (seq,) in db.execute(waiting).fetchall():
        text = _folded(db, seq)
        whole = len(text) <= LONGEST
        if whole:
            db.execute("INSERT INTO found (rowid, text) VALUES (?, ?)", (seq, text))
            done += len(text)
        db.execute("INSERT INTO indexed VALUES (?, ?)", (seq, whole))
        if done > AT_ONCE:
            return


def forget(db: sqlite3.Connection, seq: int) -> None:
    """Take a message out of the index, before its text changes."""
    known = db.execute("DELETE FROM indexed WHERE seq = ? RETURNING whole", (seq,)).fetchall()
    if known == [(1,)]:
        out = "INSERT INTO found (found, rowid, text) VALUES ('delete', ?, ?)"
        db.execute(out, (seq, _folded(db, seq)))


def forget_all(db: sqlite3.Connection) -> None:
    """Empty the index: what it holds of one message alone cannot be wiped with certainty."""
    db.execute("INSERT INTO found (found) VALUES ('delete-all')")
    db.execute("DELETE FROM indexed")


def fold(text: str) -> str:
    """`text` as it is compared: without case, composed, in compatible forms of characters."""
    text = unicodedata.normalize("NFKC", plain.sound(text)).casefold()
    return text.replace("\0", " ")  # where the index would end


def _candidates(db: sqlite3.Connection, words: list[str]) -> Iterable[tuple[Any, ...]]:
    """Messages that may hold `words`, the newest first."""
    grams = [w[i : i + GRAM] for w in words for i in range(len(w) - GRAM + 1)]
    columns = f"messages.id, chat, title, {_TEXTS}"
    query = f"SELECT {columns} FROM messages JOIN chats ON chats.id = chat WHERE NOT removed"
    if not grams:
        return db.execute(f"{query} ORDER BY messages.seq DESC")
    wanted = " AND ".join('"{}"'.format(g.replace('"', '""')) for g in grams[:MOST_GRAMS])
    query += (
        " AND (messages.seq IN (SELECT rowid FROM found WHERE found MATCH ?)"
        " OR messages.seq NOT IN (SELECT seq FROM indexed WHERE whole))"
    )
    return db.execute(f"{query} ORDER BY messages.seq DESC", (wanted,))


def _folded(db: sqlite3.Connection, seq: int) -> str:
    row = db.execute(f"SELECT {_TEXTS} FROM messages WHERE seq = ?", (seq,)).fetchone()
    return fold("\n".join(_parts(*row)))


def _parts(text: str, reasoning: str, attachments: str) -> list[str]:
    """All that can be found in a message."""
    attached = plain.attachments_in(plain.load(attachments))
    return [text, reasoning, *(part for a in attached for part in (a.name, a.text))]


def _all(words: list[str], text: str) -> bool:
    folded = fold(text)
    return all(word in folded for word in words)


def _around(parts: list[str], word: str) -> str:
    """The line in which `word` stands, cut to what a list can show."""
    for line in (line for part in parts for line in part.splitlines()):
        at = fold(line).find(word)
        if at >= 0:
            start = max(0, at - BEFORE) if at > AROUND - BEFORE else 0
            return ("…" if start else "") + line[start : start + AROUND].strip()
    return ""
