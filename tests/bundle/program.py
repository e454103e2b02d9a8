"""The program as people start it: a process that knows nothing of ours but what it is told.

That is the bundle in the folder that SLIPSTREAM_TEST_BUNDLE names; without one, `python -m app`.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from app.chats.conversation import Entry
from app.chats.store import Reader
from engine.errors import EngineError

TOP = Path(__file__).parents[2]
BUNDLE = os.environ.get("SLIPSTREAM_TEST_BUNDLE")
TINY = "org/tiny"  # in the hub
SECONDS = 300  # a busy machine needs more than the program does
CLOSED = ["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-']  # no console: all three are closed


class Program:
    """One program and the home it is started in, told nothing else of our environment."""

    def __init__(self, home: Path, words: list[str], **more: str) -> None:
        self.home, self._words = home, words
        for folder in (home, self.data, home / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "SLIPSTREAM_HOME": str(home / "slipstream"),
            "QT_QPA_PLATFORM": "offscreen",
            "OMP_NUM_THREADS": "1",
            **more,
        }
        if not BUNDLE:
            self.environment["PYTHONPATH"] = str(TOP)

    @property
    def data(self) -> Path:
        return self.home / "slipstream" / "data"

    @property
    def models(self) -> Path:
        return self.home / "slipstream" / "models"

    @property
    def log(self) -> str:
        """What it wrote where nobody reads along."""
        return (self.home / "slipstream" / "logs" / "slipstream.log").read_text(encoding="utf-8")

    def start(self, *words: str, closed: bool = False, **environment: str) -> subprocess.Popen[str]:
        """It begins; `closed`: without the three standard streams."""
        pipe = None if closed else subprocess.PIPE
        return subprocess.Popen(
            [*(CLOSED if closed else []), *self._words, *words],
            env=self.environment | environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
        )

    def run(self, *words: str, closed: bool = False, code: int = 0) -> tuple[str, str]:
        """What it says, and what it complains about, once it has ended with `code`."""
        process = self.start(*words, closed=closed)
        try:
            said, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        assert process.returncode == code, (said, errors)
        return said or "", errors or ""

    def entries(self) -> list[Entry]:
        """The messages of all chats, as they are in the file now."""
        try:
            with contextlib.closing(Reader(self.data / "chats.db")) as reader:
                return [entry for chat in reader.chats() for entry in reader.entries(chat.id)]
        except EngineError:  # nothing is written yet
            return []


def until(wanted: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait for what another process does. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def command(folder: Path | None = None) -> list[str]:
    """How it is started; a bundle from the copy in `folder`, if one is named."""
    if BUNDLE:
        return [str((folder or Path(BUNDLE)) / "slipstream")]
    return [sys.executable, "-m", "app"]


def copied(folder: Path) -> Path:
    """The bundle once more, in `folder`, where the file system allows without taking room."""
    if BUNDLE:
        same = os.stat(BUNDLE).st_dev == os.stat(folder.parent).st_dev
        copy = os.link if same else shutil.copy2
        shutil.copytree(BUNDLE, folder, symlinks=True, copy_function=copy)
    return folder
