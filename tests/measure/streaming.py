"""Does the window stay alive while an answer streams in? python -m tests.measure.streaming

The whole program, without a screen. A chat of many messages is opened, and a scripted engine
streams Markdown with code and tables into it; or, with --model, a real one answers in a new chat,
and is watched behind its first tokens. A timer is due every 10 ms; what is told are the times
between two ticks, how long opening took, and how much of the gaps other programs had the
processors. Exits with 1 above the gates.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from app import paths, start
from app.chats.conversation import ChatRecord, Entry, Facts
from app.chats.store import Store
from app.settings import Settings
from engine.api import Chunk, Finish, Sampling
from engine.session import Session
from tests.fakes import FakeShelf, ScriptedSession, chunks_of
from tests.measure.program import OneModel, opened, until
from tests.measure.rendering import lesson
from tests.measure.smoothness import Meter, tell

OPEN_S = 1.0
TOKEN = 4  # characters
WARM_UP = 32  # tokens
STORY = "Tell a long story about a lighthouse keeper and the sea, with a list of the ships."


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


def open_chat(program: start.Program) -> float:
    """Open the long chat; how many seconds it takes until its end is painted."""
    seen: list[bool] = []
    began = time.monotonic()
    program.chat.opened.connect(lambda: seen.append(True))
    program.conversations.open("chat")
    until(lambda: bool(seen) and program.window.transcript.verticalScrollBar().maximum() > 0, 30)
    program.window.transcript.viewport().repaint()
    took = time.monotonic() - began
    until(lambda: time.monotonic() > began + 3, 10)  # the rest is built
    return took


def ask(program: start.Program, question: str, warm_up: int) -> Meter:
    """Ask, and watch the answer behind its first tokens."""
    chat = program.chat
    chat.send(question)
    until(lambda: chat.turns[-1].usage.tokens >= warm_up or not chat.answering, 300)
    meter = Meter()
    until(lambda: not chat.answering, 1_800)
    meter.timer.stop()
    usage = chat.turns[-1].usage
    print(f"{len(chat.turns[-1].text):,} characters, {usage.tokens_per_second or 0.0:.1f} tok/s")
    return meter


def scripted(asked: argparse.Namespace) -> tuple[start.Program, Meter, bool]:
    """A scripted engine in a long chat."""
    write_chat(asked.messages)
    session = ScriptedSession(answer(asked.seconds, asked.rate), pause=4 / asked.rate)
    program = opened(session, FakeShelf())
    until(lambda: bool(program.conversations.lines), 30)
    took = open_chat(program)
    print(f"opening {asked.messages} messages: {took:.2f} s")
    return program, ask(program, "And now all of it?", 0), took < OPEN_S


def real(asked: argparse.Namespace) -> tuple[start.Program, Meter, bool]:
    """A real model in a new chat; nothing ends its answer but the number of tokens."""
    session = Session(paths.ensure(paths.cache_folder()))
    settings = Settings(precisions={str(asked.model): "int8"})
    program = opened(session, OneModel(asked.model), settings)
    never = dict.fromkeys(session.target.tokenizer.eos_ids, -100.0)
    sampling = Sampling(temperature=0.8, seed=1, max_tokens=asked.tokens, logit_bias=never)
    program.chat.choose(replace(program.chat.choices, sampling=sampling))
    return program, ask(program, STORY, WARM_UP), True


def main() -> int:
    """Measure and print; 0 when all gates hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=200, help="tokens a second")
    parser.add_argument("--model", type=Path, help="a real model in place of a script")
    parser.add_argument("--tokens", type=int, default=1_500, help="that it answers with")
    asked = parser.parse_args()
    program, meter, opens = (real if asked.model else scripted)(asked)
    held = tell(meter)
    return start.leave(program, 0 if held and opens else 1)


if __name__ == "__main__":
    sys.exit(main())
