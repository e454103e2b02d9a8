"""Does the window stay alive while a model answers? python -m tests.measure.smoothness MODEL

A window's event loop without a window: a timer is due every 10 ms while the model lane answers;
what is told are the times between two ticks, after a warm-up. Exits with 1 above the gates. On
Linux it also says how much of them the thread was ready but other threads, of this program or of
others, had the processors: on a busy machine most of it is theirs.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app import paths
from app.lanes import Job
from app.worker import SessionLike, Worker
from engine.api import Chunk, Drafting, Message, Sampling
from tests.fakes import GapMeter

PROMPT = [Message("user", "Tell a long story about a lighthouse keeper and the sea.")]
P99_MS, WORST_MS = 30.0, 100.0


class Meter(GapMeter):
    """Notes beside each tick how long the thread has waited for a processor so far, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.timer.timeout.connect(lambda: self.waits.append(_waited()))


def _waited() -> float:
    """Seconds that this thread was ready and had no processor (Linux; 0 elsewhere)."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Run:
    """One answer, from loading to its end: `rate` in tokens per second, `meter` of the part
    behind the first `warm_up` tokens."""

    def __init__(self, worker: Worker, asked: argparse.Namespace) -> None:
        self.worker, self.asked = worker, asked
        self.meter: Meter | None = None
        self.last = Chunk()
        worker.pieces.connect(self._take)
        worker.finished.connect(self._finished)
        worker.failed.connect(lambda _, reason: sys.exit(reason.text))
        worker.load_target(asked.model, asked.precision)
        worker.choose_draft(asked.draft)

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.DRAFT:
            sampling = Sampling(
                temperature=0.8, seed=1, max_tokens=self.asked.tokens, logit_bias=self.asked.ends
            )
            self.worker.reply(PROMPT, sampling, Drafting())
        elif job is Job.REPLY:
            QCoreApplication.quit()

    def _take(self, chunks: Sequence[Chunk]) -> None:
        self.last = chunks[-1]
        if self.meter is None and self.last.usage.tokens >= self.asked.warm_up:
            self.meter = Meter()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when both gates hold."""
    asked = _parser().parse_args(arguments)
    app = QCoreApplication([])
    asked.ends = {}
    worker = Worker(lambda: _session(asked))
    run = Run(worker, asked)
    app.exec()
    assert run.meter is not None
    run.meter.timer.stop()
    usage = run.last.usage
    print(f"{usage.tokens} tokens, {usage.tokens_per_second or 0.0:.1f} tok/s")
    held = tell(run.meter)
    worker.close()
    return 0 if held else 1


def _session(asked: argparse.Namespace) -> SessionLike:
    from engine.session import Session

    class Endless(Session):
        """Tells which tokens must not come, so that the answer is as long as asked for."""

        def choose_draft(self, *args: object, **options: object) -> None:
            super().choose_draft(*args, **options)  # type: ignore[arg-type]
            asked.ends.update(dict.fromkeys(self.target.tokenizer.eos_ids, -100.0))

    return Endless(paths.ensure(paths.cache_folder()))


def tell(meter: Meter) -> bool:
    """Print the times between ticks; whether both gates hold."""
    pairs = list(zip(meter.ticks, meter.waits, strict=True))
    gaps = [1e3 * (b[0] - a[0]) for a, b in pairwise(pairs)]
    own = [1e3 * (b[0] - a[0] - b[1] + a[1]) for a, b in pairwise(pairs)]
    print(f"{len(gaps)} ticks in {meter.ticks[-1] - meter.ticks[0]:.0f} s")
    for name, found in (("between ticks", gaps), ("without waits for a processor", own)):
        print(f"{name}: {_summary(found)}", flush=True)
    return _percentile(gaps, 99) <= P99_MS and max(gaps) <= WORST_MS


def _summary(gaps: Sequence[float]) -> str:
    points = ", ".join(f"p{p:g} {_percentile(gaps, p):.0f}" for p in (50, 90, 99, 99.9))
    return f"{points}, worst {max(gaps):.0f} ms"


def _percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--draft", default="ngram", help="none, ngram or a model (default: ngram)")
    parser.add_argument("--tokens", type=int, default=1500, help="an answer (default: 1500)")
    parser.add_argument("--warm-up", type=int, default=32, help="tokens (default: 32)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
