"""Chats on disk: one SQLite file, written as answers grow.

Knows transactions and what may befall a file; no Qt and no threads: a store belongs to the thread
that made it. The rows are `tables`', how a damaged file is read `salvage`'s, the forms of exports
`exchange`'s.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from app import paths
from app.chats import exchange, salvage, search, tables
from app.chats.conversation import ChatRecord, Entry, Hit, Unsent
from app.chats.exchange import Form
from app.chats.plain import FactsWriter
from engine.errors import EngineError, Reason
from engine.past import Past

BUSY_SECONDS = 5.0  # SQLite's own wait for another process
PATIENCE = 60.0  # seconds after which what another process keeps locked is given up
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
PARTS = ("", "-wal", "-shm")  # of a database: the file, its log, the log's index

T = TypeVar("T")


class Reader:
    """Chats read from the file at `path`, which is not changed: for exports beside an open window.

    `notices` say what befell it. Every method may raise an EngineError: the file is locked, of a
    newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mended = False
        self.notices: list[Reason] = []
        if not path.exists():
            raise EngineError(
                "no_history", "There are no chats yet: {path} is not there.", path=str(path)
            )
        self._db = self._patiently(lambda: _connect(path, "ro"))
        self._do(lambda: _check(self._db, path), "BEGIN")

    def chats(self) -> list[ChatRecord]:
        """All chats, pinned ones first, then by when they were last written to."""
        return self._do(lambda: tables.chats(self._db), "BEGIN")

    def entries(self, chat: str) -> list[Entry]:
        """The messages of a chat with all their versions, in the order of writing."""
        return self._do(lambda: tables.entries(self._db, chat), "BEGIN")

    def first_questions(self, count: int) -> list[str]:
        """What the last `count` chats to be begun were begun with, the newest first; those with
        attachments are left out."""
        return self._do(lambda: tables.first_questions(self._db, count), "BEGIN")

    def export(self, chats: Sequence[str], path: Path, form: Form) -> int:
        """Write chats into the file at `path`; how many of them are known."""
        known = {record.id: record for record in self.chats()}
        wanted = [known[chat] for chat in chats if chat in known]
        return exchange.save(path, ((chat, self.entries(chat.id)) for chat in wanted), form)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _do(self, work: Callable[[], T], begin: str = "BEGIN IMMEDIATE") -> T:
        """`work` as one transaction: all of it is done, or nothing."""

        def transaction() -> T:
            self._db.execute(begin)
            try:
                result = work()
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
            return result

        return self._patiently(transaction)

    def _patiently(self, work: Callable[[], T]) -> T:
        """`work`, begun anew while another process keeps the file, or once it is mended."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return work()
            except (sqlite3.Error, OSError) as error:
                if _is(error, LOCKED) and time.monotonic() < deadline:
                    time.sleep(0.05)
                elif not (_is(error, DAMAGED) and self._mend()):
                    raise _failure(error, self._path) from error

    def _mend(self) -> bool:
        """Make a damaged file usable; whether that was done."""
        if self._mended:
            return False
        self._mended = True
        self._patiently(self._rescue)
        return True

    def _rescue(self) -> None:
        """What can be read of a damaged file is held in memory."""
        fresh = sqlite3.connect(":memory:", isolation_level=None)
        messages, chats = _salvage(self._path, fresh)
        self._db.close()
        self._db = fresh
        self.notices.append(
            Reason(
                "history_partly",
                "The file of chats is damaged. What could be read of it is used (chats: {chats}, "
                "messages: {messages}): {path}",
                {"messages": messages, "chats": chats, "path": str(self._path)},
            )
        )


class Store(Reader):
    """Chats read and written, in a file that is made where there is none.

    `clock` gives seconds since 1970, which are shown and never sorted by. A chat that is wiped is
    forgotten in the `past` too.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, past: Past | None = None
    ) -> None:
        self._path, self._clock, self._past = path, clock, past or Past()
        self._db = sqlite3.connect(":memory:")  # until the file is open
        self._mended = False
        self.notices = []
        self._writer = FactsWriter()
        self._patiently(self._open)
        self._do(lambda: tables.interrupt(self._db))
        with contextlib.suppress(EngineError):  # tried again at the next opening
            self.purge()

    def search(self, text: str) -> list[Hit]:
        """Where all words of `text` are found, parts of words too: titles first, then messages
        from the newest on, in all their versions."""
        with contextlib.suppress(EngineError):  # a full disk; it is found without an index
            self._do(lambda: search.index(self._db))
        return self._do(lambda: search.find(self._db, text), "BEGIN")

    def put_chat(self, chat: ChatRecord) -> None:
        """Write a chat; of a known one all but when it was made."""
        self._do(lambda: tables.put_chat(self._db, chat, self._clock()))

    def put(self, entry: Entry) -> None:
        """Write a message, or what has become of a known one: its text, state and facts.

        A new one becomes the chosen version; of a known one, `choose` alone changes that.
        """
        self._do(lambda: tables.put(self._db, entry, self._clock(), self._writer))

    def choose(self, entry: str) -> None:
        """Make a message the chosen one of its versions."""
        self._do(lambda: tables.choose(self._db, entry))

    def drop(self, entry: str) -> None:
        """Delete a message and all that follows it, in all versions, from the log too."""
        self._do(lambda: tables.drop(self._db, entry))
        self._empty_log()

    def unsent(self) -> dict[str, Unsent]:
        """What was being written when the program ended, by chat; "" is the chat that is none."""
        return self._do(lambda: tables.unsent(self._db), "BEGIN")

    def put_unsent(self, unsent: Mapping[str, Unsent]) -> None:
        """Write all that is being written."""
        self._do(lambda: tables.put_unsent(self._db, unsent))

    def remove(self, chat: str) -> None:
        """Hide a chat until `purge` wipes it."""
        self._do(lambda: tables.mark(self._db, chat, True))

    def restore(self, chat: str) -> None:
        """Show a removed chat again."""
        if not self._do(lambda: tables.mark(self._db, chat, False)):
            raise _gone()

    def take_in(self, path: Path) -> list[str]:
        """Add the chats of an exported file, all of them or none; their ids, in its order."""
        talks = exchange.read(path)

        def take() -> None:
            for chat, entries in reversed(talks):  # the first of a file is the newest
                tables.put_chat(self._db, chat, self._clock())
                for entry in entries:
                    tables.add(self._db, entry, self._writer)

        self._do(take)
        return [chat.id for chat, _ in talks]

    def purge(self) -> None:
        """Wipe removed chats from all files; their marks go last, so that nothing is forgotten
        where the program ends meanwhile or another one keeps reading."""
        removed = self._do(lambda: tables.empty(self._db))
        if not removed:
            return
        for chat in removed:
            self._patiently(partial(self._past.forget, chat))
        for copy in (*_beside(self._path, "before"), *_beside(self._path, "damaged")):
            self._patiently(partial(copy.unlink, missing_ok=True))
        # Rows that moved may have left copies; a file that is written anew holds none.
        self._patiently(lambda: self._db.execute("VACUUM"))
        if self._empty_log():
            self._do(lambda: self._db.execute("DELETE FROM chats WHERE removed"))

    def forget_learned(self) -> None:
        """Forget what drafters learned of all chats; those stay."""
        self._patiently(self._past.clear)

    def _empty_log(self) -> bool:
        """Bring the log into the file; whether it is empty now, or another program reads in it."""
        truncate = "PRAGMA wal_checkpoint(TRUNCATE)"
        busy: int = self._patiently(lambda: self._db.execute(truncate).fetchone())[0]
        return not busy

    def _open(self) -> None:
        """Connect, and bring the file to this version. Raises what SQLite raises."""
        _finish_mending(self._path)
        if self._path.exists() and self._path.stat().st_size:
            # A newer version's file is not even to be checkpointed.
            with contextlib.closing(_connect(self._path, "ro")) as db:
                _check(db, self._path)
        self._db.close()
        self._db = _create(self._path)
        checked = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if checked != "ok":
            raise _damage(checked)
        self._upgrade()

    def _upgrade(self) -> None:
        """Bring the schema to this version; a copy of the file as it was lies beside it."""
        version = _version(self._db)
        if 0 < version < len(tables.STEPS):
            copy = self._path.with_name(f"{self._path.stem}.before-{len(tables.STEPS)}.db")
            copy.unlink(missing_ok=True)
            with contextlib.closing(_connect(_private(copy), "rw")) as backup:
                self._db.backup(backup)
        _migrate(self._db)

    def _rescue(self) -> None:
        """Bring what can be read of a damaged file into a new one, and keep it under a new name."""
        self._db.close()
        fresh = _mending(self._path)
        _delete(fresh)
        with contextlib.closing(_create(fresh)) as db:
            messages, chats = _salvage(self._path, db)
        kept = _put_aside(self._path)
        _finish_mending(self._path)
        self.notices.append(
            Reason(
                "history_mended",
                "The file of chats was damaged. What could be read of it is here (chats: {chats}, "
                "messages: {messages}). The damaged file lies at {path} until a chat is deleted.",
                {"messages": messages, "chats": chats, "path": str(kept)},
            )
        )
        self._open()


def _connect(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    """The file opened; nothing of it is read yet."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
    )
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    db.execute("PRAGMA temp_store = MEMORY")  # no text in a folder for temporary files
    return db


def _create(path: Path) -> sqlite3.Connection:
    """The file opened for writing, made where there is none; the owner alone may read it."""
    db = _connect(_private(path), "rw")
    try:
        for setting in (
            f"page_size = {salvage.PAGE}",
            "secure_delete = ON",
            "foreign_keys = ON",
            "journal_mode = WAL",
            "synchronous = NORMAL",
        ):
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


def _private(path: Path) -> Path:
    """`path`, with a file there that nobody else may read; SQLite gives its log the same mode."""
    paths.ensure(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for part in PARTS:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(f"{path}{part}", 0o600)
    return path


def _migrate(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in tables.STEPS[_version(db) :]:
            for statement in step.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(tables.STEPS)}")
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _salvage(path: Path, db: sqlite3.Connection) -> tuple[int, int]:
    """Bring what can be read of a damaged file into an empty one; how many messages and chats."""
    _migrate(db)
    db.execute("BEGIN")
    chats, messages = tables.bring_back(db, salvage.rows(path))
    db.execute("COMMIT")
    return messages, chats


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what a newer version wrote. Raises EngineError."""
    if _version(db) > len(tables.STEPS):
        raise EngineError(
            "history_newer",
            "The chats were last kept by a newer version of Slipstream, which is needed to open "
            "them. Nothing was changed: {path}",
            path=str(path),
        )


def _mending(path: Path) -> Path:
    return path.with_name(f"{path.stem}.mending.db")


def _finish_mending(path: Path) -> None:
    """Put a mended file in its place, where the damaged one was just put aside; else it is not
    whole, and goes."""
    fresh = _mending(path)
    if fresh.exists() and not path.exists():
        fresh.replace(path)
    _delete(fresh)


def _put_aside(path: Path) -> Path:
    """Rename the file and its log; the new path. The log goes first: beside another file it would
    be taken for that one's."""
    taken = {other.name for other in _beside(path, "damaged")}
    names = (f"{path.stem}.damaged-{n}.db" for n in range(1, len(taken) + 2))
    kept = path.with_name(next(name for name in names if name not in taken))
    for part in reversed(PARTS):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{part}", f"{kept}{part}")
    return kept


def _beside(path: Path, word: str) -> list[Path]:
    """Our other files beside the one at `path`: backups ("before") or "damaged" ones."""
    start = f"{path.stem}.{word}-"
    return [other for other in path.parent.iterdir() if other.name.startswith(start)]


def _delete(path: Path) -> None:
    for part in PARTS:
        Path(f"{path}{part}").unlink(missing_ok=True)


def _damage(detail: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(detail)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is(error: Exception, codes: Sequence[int]) -> bool:
    """Whether SQLite's error is one of `codes`; the higher bits tell details."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _gone() -> EngineError:
    return EngineError("chat_gone", "This chat is no longer there.")


def _failure(error: Exception, path: Path) -> EngineError:
    """What went wrong with the file, in words."""
    place = str(path)
    if _is(error, (sqlite3.SQLITE_CONSTRAINT,)):
        return _gone()
    if _is(error, (sqlite3.SQLITE_FULL,)):
        return EngineError(
            "history_disk_full",
            "The disk is full, so this could not be kept. What was kept before is whole: {path}",
            path=place,
        )
    if _is(error, LOCKED):
        return EngineError(
            "history_locked", "Another program keeps the file of chats locked: {path}", path=place
        )
    if _is(error, DAMAGED):
        return EngineError(
            "history_damaged",
            "The file of chats is damaged. Slipstream saves what can be read of it when its "
            "window starts: {path}",
            path=place,
        )
    return EngineError(
        "history_failed",
        "The file of chats could not be used: {path}: {detail}",
        path=place,
        detail=str(error),
    )
