"""Does the window stay alive while an answer streams in? python -m tests.measure.streaming

The whole program, without a screen: a chat of many messages is opened, then a scripted engine
streams Markdown with code and tables into it. A timer is due every 10 ms; what is told are the
times between two ticks, how long opening took, and how much of the gaps other programs had the
processors. Exits with 1 above the gates.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["SLIPSTREAM_HOME"] = tempfile.mkdtemp()

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from app import paths, start
from app.chats.conversation import ChatRecord, Entry, Facts
from app.chats.store import Store
from engine.api import Chunk, Finish
from tests.fakes import FakeShelf, ScriptedSession, chunks_of
from tests.measure.rendering import lesson
from tests.measure.smoothness import Meter

OPEN_S, P99_MS, WORST_MS = 1.0, 30.0, 100.0
TOKEN = 4  # characters


def write_chat(messages: int) -> None:
    """A chat of `messages`, answers of 1,500 characters in Markdown."""
    store = Store(paths.history_file())
    store.put_chat(ChatRecord("chat", "A long chat", changed=time.time()))
    parent = None
    for number in range(messages):
        asks = number % 2 == 0
        text = f"Question {number}: what is the mean?" if asks else lesson(1_500)
        facts = Facts(finish=None if asks else Finish.STOP)
        role = "user" if asks else "assistant"
        entry = Entry(f"m{number}", "chat", parent, role, text, facts=facts)
        store.put(entry)
        parent = entry.id
    store.close()


def answer(seconds: float, rate: int) -> list[Chunk]:
    """An answer of `rate` tokens a second, in rounds of 4."""
    text = lesson(round(seconds * rate * TOKEN))
    size = 4 * TOKEN
    return chunks_of([text[at : at + size] for at in range(0, len(text), size)])


def until(done: Callable[[], bool], seconds: float) -> float:
    """Let the event loop run until `done`; the seconds that took."""
    began = time.monotonic()
    while not done():
        if time.monotonic() > began + seconds:
            sys.exit("it took too long")
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        time.sleep(0.001)
    return time.monotonic() - began


def main() -> int:
    """Measure and print; 0 when all gates hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=200, help="tokens a second")
    asked = parser.parse_args()
    paths.ensure(paths.data_folder())
    write_chat(asked.messages)
    session = ScriptedSession(answer(asked.seconds, asked.rate), pause=4 / asked.rate)
    program = start.build(["streaming"], session_factory=lambda: session, shelf=FakeShelf())
    program.window.show()
    program.begin()
    until(lambda: program.chat.can_send and bool(program.conversations.lines), 30)
    seen: list[float] = []
    began = time.monotonic()
    program.chat.opened.connect(lambda: seen.append(time.monotonic() - began))
    program.conversations.open("chat")
    until(lambda: bool(seen) and program.window.transcript.verticalScrollBar().maximum() > 0, 30)
    program.window.transcript.viewport().repaint()
    opened = time.monotonic() - began
    until(lambda: time.monotonic() > began + 3, 10)  # the rest is built
    meter = Meter()
    program.chat.send("And now all of it?")
    until(lambda: not program.chat.answering, 10 * asked.seconds)
    gaps = [1000 * (b - a) for a, b in pairwise(meter.ticks)]
    waits = [1000 * (b - a) for a, b in pairwise(meter.waits)]
    own = [max(gap - wait, 0) for gap, wait in zip(gaps, waits, strict=False)]
    p99, worst = statistics.quantiles(gaps, n=100)[98], max(gaps)
    characters = len(program.chat.turns[-1].text)
    print(f"opening {asked.messages} messages: {opened:.2f} s")
    print(f"{characters:,} characters in {meter.ticks[-1] - meter.ticks[0]:.0f} s")
    print(f"between two ticks: p99 {p99:.0f} ms, worst {worst:.0f} ms")
    print(
        "without the time others had the processors: "
        f"p99 {statistics.quantiles(own, n=100)[98]:.0f} ms, worst {max(own):.0f} ms"
    )
    program.window.close()
    program.worker.close(closing=program.history.close)
    return 0 if opened < OPEN_S and p99 < P99_MS and worst < WORST_MS else 1


if __name__ == "__main__":
    sys.exit(main())
