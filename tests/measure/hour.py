"""A scripted hour of chatting: does the program grow? python -m tests.measure.hour MODEL

The whole program, without a screen, and a real model: questions, edits, answers anew, stops, and
changes between chats, at a context of 2,048 tokens. What is told is the resident memory after each
ten turns without the keys and values, which are checked against their length times their size, and
every warning in the log. Exits with 1 where it grew by more than 50 MB after the first ten turns.
"""

import argparse
import gc
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["SLIPSTREAM_HOME"] = tempfile.mkdtemp()

import psutil
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from app import paths, start
from engine.api import ModelInfo, Sampling
from engine.memory import cache_bytes
from engine.session import Session
from tests.fakes import FakeShelf

CONTEXT, TOKENS, GROWTH_MB = 2048, 80, 50.0
QUESTIONS = (
    "Tell me about a river in two sentences.",
    "Write a short list of five things to pack for the sea.",
    "What is 17 times 3? Show the steps.",
    "Write a Python function that adds two numbers.",
)


class Warnings(logging.Handler):
    """Every warning that is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.name}: {record.getMessage()}")


class Hour:
    """The program and what is done with it."""

    def __init__(self, model: Path) -> None:
        paths.ensure(paths.data_folder())
        self.session = Session(paths.ensure(paths.cache_folder()))
        self.program = start.build(
            ["hour"], session_factory=lambda: self.session, shelf=FakeShelf([])
        )
        self.program.window.show()
        self.program.conversations.start()
        self.program.worker.load_target(model, "int8")
        self.until(lambda: self.session._target is not None)
        models = self.program.models
        models._target_path, models._loading_path = model, None
        models.loaded = self.session.target.loaded
        self.program.worker.choose_draft("ngram")
        self.program.worker.limit_context(CONTEXT)
        self.chats: list[str] = []

    def until(self, done: Callable[[], bool], seconds: float = 300) -> None:
        """Let the event loop run until `done`."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                sys.exit("it took too long")
            QApplication.processEvents()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            time.sleep(0.002)

    def rest(self) -> None:
        """Until nothing is answered."""
        chat = self.program.chat
        self.until(lambda: not chat.answering and chat.can_send)

    def turn(self, number: int) -> None:
        """One of the things that people do."""
        chat = self.program.chat
        question = f"{QUESTIONS[number % 4]} ({number})"
        kind = number % 10
        if kind == 9:
            chat.new_chat()
        sampling = Sampling(temperature=0.8, seed=number, max_tokens=TOKENS)
        chat.choose(replace(chat.choices, sampling=sampling))
        if kind == 4 and chat.turns:
            chat.regenerate(chat.turns[-1].id)
        elif kind == 6 and len(chat.turns) > 1:
            chat.edit(chat.turns[-2].id, question)
        elif kind == 2 and self.program.conversations.lines:
            lines = [line.id for line in self.program.conversations.lines if line.id]
            self.program.conversations.open(lines[-1])
            self.until(lambda: chat.chat_id == lines[-1])
            chat.send(question)
        else:
            chat.send(question)
        if kind == 7:
            self.until(lambda: chat.turns[-1].usage.tokens > 10 or not chat.answering)
            chat.stop()
        self.rest()
        if chat.overflow is not None:
            chat.drop_oldest()
            self.rest()


def held(session: Session, info: ModelInfo) -> tuple[int, int]:
    """Bytes of the keys and values, as they are and as length times size says."""
    cache = session.target.model.cache
    said = cache_bytes(info, cache.length, 4, "cpu")
    return cache.nbytes, said or 0


def main() -> int:
    """Measure and print; 0 when it did not grow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--turns", type=int, default=60)
    asked = parser.parse_args()
    warnings = Warnings()
    logging.getLogger().addHandler(warnings)
    hour = Hour(asked.model)
    process, after = psutil.Process(), []
    for number in range(asked.turns):
        hour.turn(number)
        if number % 10 == 9:
            gc.collect()
            bytes_held, said = held(hour.session, hour.session.target.loaded.info)
            rest = (process.memory_info().rss - bytes_held) / 1e6
            after.append(rest)
            print(
                f"after {number + 1} turns: {rest:,.0f} MB without keys and values, which take "
                f"{bytes_held / 1e6:.1f} MB (length times size: {said / 1e6:.1f} MB)",
                flush=True,
            )
    growth = after[-1] - after[0]
    print(f"grown by {growth:.0f} MB after the first 10 turns; {len(warnings.said)} warnings")
    for line in warnings.said:
        print(line)
    hour.program.window.close()
    hour.program.worker.close(closing=hour.program.history.close)
    return 0 if growth < GROWTH_MB and not warnings.said else 1


if __name__ == "__main__":
    sys.exit(main())
