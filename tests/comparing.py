"""A session for comparisons: it answers at once, and says that it took as long as its draft would.

Its rates are by draft and kind of prompt, from the built-in prompts.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import resources
from engine.answer import context_full
from engine.api import Chunk, Drafting, Finish, Message, RoundStats, Sampling, Usage
from tests.fakes import DRAFT, ScriptedSession

PLAIN = 48.0  # tokens per second
# Times plain for code, edit, summarise, question, creative.
TIMES: dict[str, tuple[float, ...]] = {
    "none": (1, 1, 1, 1, 1),
    "ngram": (1.18, 2.36, 1.41, 1.06, 0.98),
    str(DRAFT): (1.84, 1.79, 1.58, 1.62, 1.37),
}
OTHER = (1.1, 1.1, 1.1, 1.1, 1.1)  # of any other draft
SETS = json.loads(resources.read_text("prompts.json"))
PLACES = {asked[0]: (k, n) for k, kind in enumerate(SETS) for n, asked in enumerate(SETS[kind])}


class ComparingSession(ScriptedSession):
    """`limit`: so many answers are given, the next one waits until it is raised; `broken`: what
    choosing a draft raises, by its key; `odd`: the drafts whose ids are not plain decoding's;
    `long`: questions that are longer than the context."""

    def __init__(self, times: Mapping[str, tuple[float, ...]] | None = None) -> None:
        super().__init__()
        self.auto, self.bit_exact = "int8", True
        self.times = dict(TIMES if times is None else times)
        self.limit = 10**9
        self.broken: dict[str, Exception] = {}
        self.odd: set[str] = set()
        self.long: set[str] = set()
        self.held: list[object] = []  # the models that came with "auto"
        self.answered: list[tuple[str, str, int]] = []  # draft, question, most tokens

    @property
    def now(self) -> str:
        """The draft that was chosen last."""
        return str(self.choices[-1]) if self.choices else "none"

    def choose_draft(self, choice: str | Path, **options: Any) -> None:
        error = self.broken.get(str(choice))
        if error is not None:
            self.choices.append("none")
            raise error
        if choice == "auto":
            self.held.append(options["model"])
        super().choose_draft(choice, **options)

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        drafting: Drafting,
        *,
        resume: bool,
        chat: str | None = None,
        stopped: Callable[[], bool],
    ) -> Iterator[Chunk]:
        self._note()
        tokens = sampling.max_tokens or 64
        while len(self.answered) >= self.limit and not stopped():
            time.sleep(0.002)
        if stopped():
            yield Chunk(usage=Usage(), finish=Finish.CANCELLED)
            return
        question = messages[-1].content
        if question in self.long:
            raise context_full(5_000, 4_096)
        self.answered.append((self.now, question, tokens))
        kind, number = PLACES.get(question, (0, 0))
        times = self.times.get(self.now, OTHER)[kind] * (1 + 0.06 * (number - 1.5))
        if self.now == "none":
            times = 1 + 0.01 * (number - 1.5)
        yield from _answer(tokens, PLAIN * times, self.now != "none", self.now in self.odd)


def _answer(tokens: int, rate: float, drafts: bool, odd: bool) -> Iterator[Chunk]:
    """All of it in one round and one chunk; then the end."""
    usage = Usage(prompt_tokens=80, time_to_first_token=0.21, prefill_seconds=0.2)
    if drafts:
        usage = usage.plus(RoundStats(tokens, round(0.7 * tokens), emitted=tokens))
    else:
        usage = usage.plus(RoundStats(0, 0, emitted=tokens))
    usage = replace(usage, seconds=0.2 + tokens / rate)
    ids = tuple(range(tokens - 1)) + ((-1,) if odd else (tokens,))
    yield Chunk(text="x", token_ids=ids, usage=usage)
    yield Chunk(usage=usage, finish=Finish.LENGTH)
