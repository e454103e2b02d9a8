"""A scripted hour of chatting: does the program grow? python -m tests.measure.hour MODEL

The whole program, without a screen, and a real model: questions, edits, answers anew, stops, and
changes between chats, at a context of 2,048 tokens. What is told is the resident memory after each
ten turns without the keys and values, which are checked against their length times their size, and
every warning in the log. Exits with 1 where it grew by more than 50 MB after the first ten turns.
"""

import argparse
import gc
import logging
import sys
from dataclasses import replace
from pathlib import Path

import psutil

from app import paths, start
from app.settings import Settings
from engine.api import Sampling
from engine.kernels.attention import BUCKET
from engine.memory import cache_bytes
from engine.session import Session
from tests.measure.program import OneModel, opened, until

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
        self.session = Session(paths.ensure(paths.cache_folder()))
        kept = Settings(contexts={str(model): CONTEXT}, precisions={str(model): "int8"})
        self.program = opened(self.session, OneModel(model), kept)

    def rest(self) -> None:
        """Until nothing is answered."""
        chat = self.program.chat
        until(lambda: not chat.answering and chat.can_send, 600)

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
            until(lambda: chat.chat_id == lines[-1], 60)
            chat.send(question)
        else:
            chat.send(question)
        if kind == 7:
            until(lambda: chat.turns[-1].usage.tokens > 10 or not chat.answering, 600)
            chat.stop()
        self.rest()
        if chat.overflow is not None:
            chat.drop_oldest()
            self.rest()


def held(session: Session) -> tuple[int, int, int]:
    """Bytes of the keys and values: as they are, as their length times their size says, and as
    many as room made ahead may take: a quarter more, and a bucket."""
    cache, info = session.target.model.cache, session.target.loaded.info
    said = cache_bytes(info, cache.length, 4, "cpu") or 0
    whole = cache_bytes(info, cache.length // BUCKET * BUCKET + BUCKET, 4, "cpu") or 0
    bucket = cache_bytes(info, BUCKET, 4, "cpu") or 0
    return cache.nbytes, said, whole * 5 // 4 + bucket


def main() -> int:
    """Measure and print; 0 when it did not grow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--turns", type=int, default=60)
    asked = parser.parse_args()
    warnings = Warnings()
    logging.getLogger().addHandler(warnings)
    hour = Hour(asked.model)
    process, after, fits = psutil.Process(), [], True
    for number in range(asked.turns):
        hour.turn(number)
        if number % 10 == 9:
            gc.collect()
            bytes_held, said, most = held(hour.session)
            fits &= said <= bytes_held <= most
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
    held_so = growth < GROWTH_MB and fits and not warnings.said
    return start.leave(hour.program, 0 if held_so else 1)


if __name__ == "__main__":
    sys.exit(main())
