"""Stand-ins for the window's tests: a scripted session, a shelf of models, a gap meter."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer

from app.viewmodels.shelf import Gettable, Judgement, Known, Offer, Running, Trial
from engine.api import (
    Chunk,
    Drafting,
    Finish,
    Loaded,
    Message,
    ModelInfo,
    Precision,
    Progress,
    RoundStats,
    Sampling,
    Usage,
)
from engine.errors import Cancelled, EngineError, Reason
from engine.fit import Pair
from engine.guidance import Level, Verdict
from engine.library.files import missing
from engine.library.scan import Entry
from engine.measured import Measurement

TARGET, DRAFT, FOREIGN, BROKEN = (
    Path("/models") / name for name in ("target", "draft", "foreign", "broken")
)


# billions of parameters: layers, width of keys and values, hidden size, inner size
SHAPES = {
    0.135: (30, 384, 576, 1536),
    0.494: (24, 256, 896, 4864),
    1.54: (28, 512, 1536, 8960),
    3.09: (36, 512, 2048, 11008),
    7.62: (28, 1024, 3584, 18944),
    14.8: (48, 2048, 5120, 13824),
}


def info(path: Path, parameters: int = 7_600_000_000, **changes: object) -> ModelInfo:
    """What the headers of a pretended model say. Not enough to tell whether it fits: that would
    follow from the memory of the machine that the tests run on."""
    base = ModelInfo(
        name=path.name,
        path=path,
        format="safetensors",
        architecture="qwen2",
        parameters=parameters,
        context=32_768,
        licence="Apache-2.0",
        vocab_size=152_064,
        linear=parameters * 6 // 7,
        linear_rows=1_000_000,
        embedding=parameters // 14,
        head=parameters // 14,
        other=350_000,
        cache_widths=(1_024,) * 28,
        cache_windows=(0,) * 28,
    )
    return replace(base, **changes)


def shaped(told: ModelInfo) -> ModelInfo:
    """A model with the shape of one of about its size."""
    billions = (told.parameters or 0) / 1e9
    nearest = min(SHAPES, key=lambda known: abs(known - billions))
    layers, width, hidden, inner = SHAPES[nearest]
    return replace(
        told,
        layers=layers,
        cache_widths=(width,) * layers,
        cache_windows=(0,) * layers,
        hidden_size=hidden,
        intermediate_size=inner,
    )


def entries() -> list[Entry]:
    """A target, a good draft, one with another vocabulary that is translated, a broken folder."""
    return [
        Entry("Qwen2.5-Coder 7B Instruct", TARGET, info(TARGET), None),
        Entry("Qwen2.5-Coder 0.5B Instruct", DRAFT, info(DRAFT, 494_000_000), None),
        Entry("SmolLM2 135M Instruct", FOREIGN, info(FOREIGN, 135_000_000), None),
        Entry(
            "Half a model",
            BROKEN,
            None,
            missing("model-2.safetensors").reason,
        ),
    ]


VERDICTS = {
    TARGET: Verdict(Level.REFUSED, Reason("own_draft", "This is the target itself")),
    DRAFT: Verdict(
        Level.GOOD,
        Reason("much_smaller", "Good: {ratio} times smaller, same vocabulary", {"ratio": 15}),
    ),
    FOREIGN: Verdict(
        Level.GOOD,
        Reason("smaller_translated", "Good: {ratio} times smaller", {"ratio": 56}),
        Reason("first_difference", "Token 0 is “!” in the target and “<|endoftext|>” here."),
        translated=True,
    ),
}


class FakeShelf:
    """Models that are not there. `fetch_steps` are the bytes a download reports; `gettable` is what
    the catalogue has, `measured` what was measured by a draft's key, `trials` what was since."""

    offer = Offer("SmolLM2 135M Instruct", 98_000_000, "Apache-2.0")

    def __init__(self, found: Sequence[Entry] | None = None) -> None:
        self.found = list(entries() if found is None else found)
        self.refused: Reason | None = None
        self.gettable: list[Gettable] = []
        self.measured: dict[str, Measurement] = {}
        self.own_head: Verdict | None = None
        self.own_info: ModelInfo | None = None
        self.trials: list[Trial] = []
        self.looks = 0
        self._listed = list(self.found)
        self.fetch_error: EngineError | None = None
        self.fetch_steps: Sequence[int] = (20_000_000, 60_000_000)
        self.hold = threading.Event()
        self.hold.set()

    def scan(self) -> list[Entry]:
        self._listed = list(self.found)
        return list(self.found)

    def look_again(self) -> list[Entry] | None:
        self.looks += 1
        return None if self.found == self._listed else self.scan()

    def offers(self, target: ModelInfo, entries: Iterable[Entry]) -> list[Gettable]:
        return list(self.gettable)

    def known(self, running: Running, trial: Trial | None) -> Known:
        if trial is not None:
            self.trials.append(trial)
            self.measured[trial.key] = Measurement(
                trial.tokens_per_second, trial.acceptance_rate, trial.tokens, "2026-12-01", "use"
            )
        plain = self.measured.get("none")
        rate = plain.tokens_per_second if plain is not None else None
        found = {
            key: replace(value, plain=None if key == "none" else rate)
            for key, value in self.measured.items()
        }
        return Known(running, found, own_head=self.own_head, own_info=self.own_info)

    def judge(self, target: Entry, draft: Entry, stopped: Callable[[], bool]) -> Judgement:
        return Judgement(target.path, draft.path, VERDICTS[draft.path])

    def refusal(self, target: ModelInfo) -> Reason | None:
        return self.refused

    def look_in(self, folders: Iterable[Path], store: Path) -> None:
        self.folders, self.store = tuple(folders), store

    def fetch(self, report: Callable[[Progress], None], stopped: Callable[[], bool]) -> Path:
        for done in self.fetch_steps:
            report(Progress("download", done, self.offer.size))
        while not self.hold.wait(0.005):
            if stopped():
                raise Cancelled
        if self.fetch_error is not None:
            raise self.fetch_error
        self.found.append(Entry(self.offer.name, FOREIGN, info(FOREIGN, 135_000_000), None))
        return FOREIGN


def chunks_of(
    pieces: Sequence[str], *, drafted: int = 4, accepted: int = 3, prompt: int = 464
) -> list[Chunk]:
    """An answer: each piece a round with so many of its draft accepted, statistics that agree."""
    usage = Usage(prompt_tokens=prompt, time_to_first_token=0.21)
    made = []
    for number, piece in enumerate(pieces):
        stats = RoundStats(
            drafted, accepted, emitted=accepted + 1, draft_seconds=0.01, verify_seconds=0.03
        )
        usage = replace(usage.plus(stats), seconds=0.21 + 0.045 * (number + 1))
        ids = tuple(range(usage.tokens - stats.emitted, usage.tokens))
        made.append(Chunk(text=piece, token_ids=ids, usage=usage, round=stats))
    made.append(Chunk(usage=usage, finish=Finish.STOP))
    return made


class ScriptedSession:
    """A session that says what it was given.

    `script` holds a chunk list for each reply, an exception among them is raised at its place;
    `pause` seconds lie between two chunks. A stop ends the reply with a cancelled chunk. `auto`
    is the precision it takes where none is asked for; `precisions` are those that were asked for.
    `spare`: how many of the oldest messages it says must go.
    """

    def __init__(self, *script: Sequence[Chunk | Exception], pause: float = 0.0) -> None:
        self.script = list(script)
        self.pause = pause
        self.asked: list[Sequence[Message]] = []
        self.sampling: list[Sampling] = []
        self.drafting: list[Drafting] = []
        self.resumed: list[bool] = []
        self.chats: list[str | None] = []
        self.rooms: list[int] = []
        self.forgotten = 0
        self.spare: int | Exception = 2
        self.choices: list[str | Path] = []
        self.describe: Callable[[Path], ModelInfo] = info
        self.loads: list[Path] = []
        self.limits: list[int | None] = []
        self.precisions: list[Precision | None] = []
        self.draft_precisions: list[Precision | None] = []
        self.auto: Precision = "fp32"
        self.bit_exact = False
        self.notes: tuple[Reason, ...] = ()
        self.load_error: Exception | None = None
        self.draft_error: Exception | None = None
        self.load_hold = threading.Event()
        self.load_hold.set()
        self.draft_hold = threading.Event()
        self.draft_hold.set()
        self.sent = 0
        self.ended_at = 0.0
        self.closed = False
        self.threads: set[str] = set()

    def limit_context(self, tokens: int | None) -> None:
        self.limits.append(tokens)

    def load_target(
        self,
        path: Path,
        *,
        precision: Precision | None,
        pair: Pair | None,
        progress: Callable[[Progress], None],
        stopped: Callable[[], bool],
    ) -> Loaded:
        self._note()
        self.pair = pair
        self.layers_in_ram = pair.layers_in_ram if pair else 0
        progress(Progress("load", 45_000_000, 98_000_000))
        while not self.load_hold.wait(0.005):
            if stopped():
                raise Cancelled
        if self.load_error is not None:
            raise self.load_error
        self.loads.append(path)
        self.precisions.append(precision)
        return Loaded(
            self.describe(path),
            "cpu",
            precision or self.auto,
            8_192,
            f"vocabulary of {path}",
            Sampling(),
            1,
            0.5,
            bit_exact=self.bit_exact,
            notes=self.notes,
        )

    def choose_draft(
        self,
        choice: str | Path,
        *,
        model: Path | None,
        precision: Precision | None,
        progress: Callable[[Progress], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._note()
        while choice != "none" and not self.draft_hold.wait(0.005):
            if stopped():
                raise Cancelled
        if self.draft_error is not None:
            raise self.draft_error
        self.choices.append(choice)
        self.held_by_auto = model
        self.draft_precisions.append(precision)

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        drafting: Drafting,
        *,
        resume: bool,
        chat: str | None,
        stopped: Callable[[], bool],
    ) -> Iterator[Chunk]:
        self._note()
        self.asked.append(tuple(messages))
        self.sampling.append(sampling)
        self.drafting.append(drafting)
        self.resumed.append(resume)
        self.chats.append(chat)
        usage = Usage()
        for item in self.script.pop(0):
            if stopped():
                self.ended_at = time.monotonic()
                yield Chunk(usage=usage, finish=Finish.CANCELLED)
                return
            if isinstance(item, Exception):
                raise item
            usage = item.usage
            self.sent += 1
            yield item
            if self.pause:
                time.sleep(self.pause)

    @property
    def memory_bytes(self) -> int:
        return 1_650_000_000 if self.choices[-1:] in ([], ["none"], ["ngram"]) else 2_180_000_000

    def forget(self) -> None:
        self.forgotten += 1

    def oldest(self, messages: Sequence[Message], room: int) -> int:
        self.rooms.append(room)
        if isinstance(self.spare, Exception):
            raise self.spare
        return self.spare

    def close(self) -> None:
        self.closed = True

    def _note(self) -> None:
        self.threads.add(threading.current_thread().name)


class GapMeter(QObject):
    """Is the GUI thread alive? Notes the time of each tick of a 10 ms timer."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks: list[float] = []
        self.timer = QTimer(self)
        self.timer.setInterval(10)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(lambda: self.ticks.append(time.monotonic()))
        self.timer.start()

    def worst(self) -> float:
        """Longest time between two ticks, in seconds."""
        return max(b - a for a, b in itertools.pairwise(self.ticks))
