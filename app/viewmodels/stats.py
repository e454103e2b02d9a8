"""The live acceptance numbers of the last answer (definitions: `engine.api.Usage`).

Decides the figures, the chart's values and the one sentence; numbers change at most 4 times a
second, charts 10 times. Knows no widget.
"""

from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.viewmodels import words
from app.viewmodels.binding import Property, Throttle
from app.viewmodels.chat import Chat
from app.viewmodels.models import NONE, Models
from app.viewmodels.turns import Turn
from engine.api import RoundStats, Usage
from engine.measured import LOOKUPS

ROUNDS_SHOWN = 50
NUMBERS_MS = 250
CHARTS_MS = 100
SMOOTHING = 5


@dataclass(frozen=True)
class Figures:
    """The numbers in words; `live` while an answer runs."""

    rate: str = words.DASH
    counts: str = ""
    per_round: str = words.DASH
    state: str = ""
    sentence: str = ""
    live: bool = False


@dataclass(frozen=True)
class Charts:
    """`line`: acceptance of the last rounds, 0 to 1, smoothed; `bars`: rate by position."""

    line: tuple[float, ...] = ()
    rounds: int = 0
    bars: tuple[float, ...] = ()


class Stats(QObject):
    """What the acceptance panel shows."""

    figures_changed = Signal(object)
    charts_changed = Signal(object)

    figures = Property[Figures](Figures())
    charts = Property[Charts](Charts())

    def __init__(self, chat: Chat, models: Models, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chat, self._models = chat, models
        self._usage = Usage()
        self._answering = False
        self._recent: deque[RoundStats] = deque(maxlen=ROUNDS_SHOWN)
        self._numbers = Throttle(NUMBERS_MS, self._show_figures, self)
        self._chart = Throttle(CHARTS_MS, self._show_charts, self)
        chat.turn_added.connect(self._begin)
        chat.turn_grew.connect(self._grow)
        chat.turn_ended.connect(self._end)
        chat.rounds_added.connect(self._add)
        chat.cleared.connect(self._reset)
        chat.opened.connect(self._reset)
        models.draft_changed.connect(self._numbers.soon)
        self._show_figures()

    def _begin(self, turn: Turn) -> None:
        if turn.role == "assistant":
            self._recent.clear()
            self._usage, self._answering = Usage(), True
            self._numbers.soon()

    def _grow(self, turn: Turn) -> None:
        self._usage = turn.usage
        self._numbers.soon()

    def _add(self, rounds: list[RoundStats]) -> None:
        self._recent.extend(r for r in rounds if r.drafted)
        self._chart.soon()

    def _end(self, turn: Turn) -> None:
        self._usage, self._answering = turn.usage, False
        self._numbers.now()
        self._chart.now()

    def _reset(self) -> None:
        """Other turns are shown: what their last answer came to."""
        self._recent.clear()
        answers = [turn.usage for turn in self._chat.turns if turn.role == "assistant"]
        self._usage, self._answering = answers[-1] if answers else Usage(), False
        self._numbers.now()
        self._chart.now()

    def _show_figures(self) -> None:
        usage = self._usage
        self.figures = Figures(
            rate=words.percent(usage.acceptance_rate),
            counts=self._counts(),
            per_round=words.decimals(usage.tokens_per_round, 2),
            state=self._state(),
            sentence=self._sentence(),
            live=self._answering,
        )

    def _show_charts(self) -> None:
        rates = [r.accepted / r.drafted for r in self._recent]
        self.charts = Charts(
            line=tuple(_smoothed(rates)),
            rounds=len(rates),
            bars=self._usage.accepted_by_position,
        )

    def _counts(self) -> str:
        usage = self._usage
        if not usage.drafted:
            return self.tr("nothing drafted")
        return self.tr("{accepted} of {drafted} accepted").format(
            accepted=words.grouped(usage.accepted), drafted=words.grouped(usage.drafted)
        )

    def _state(self) -> str:
        if not self._answering:
            return self.tr("Last answer") if self._usage.tokens else self.tr("No answer yet")
        if self._models.draft == NONE:
            return self.tr("Not drafting")
        if not self._recent:
            return self.tr("Drafting")
        return self.tr("Drafting {count}").format(count=words.tokens(self._recent[-1].drafted))

    def _sentence(self) -> str:
        """What the drafter does now, or did."""
        if self._models.draft == NONE and not self._usage.drafted:
            return self.tr("No draft: every token is a step of the target.")
        if not self._usage.tokens:
            return self.tr("The numbers come with the next answer.")
        if not self._recent:
            if self._models.draft in LOOKUPS:
                return self.tr("Paused: nothing repeats.")
            return self.tr("Nothing was drafted in this answer.")
        return self._paces()

    def _paces(self) -> str:
        usage = self._usage
        drafted = sorted({r.drafted for r in self._recent})
        few, most = drafted[0], drafted[-1]
        span = str(few) if few == most else self.tr("{few} to {most}").format(few=few, most=most)
        spent = usage.draft_seconds + usage.verify_seconds
        steps = usage.rounds + usage.plain_steps
        each = words.pace(spent / steps) if steps else words.DASH
        return self.tr("{span} drafted at a time; {each} a round.").format(span=span, each=each)


def _smoothed(rates: list[float]) -> list[float]:
    """Means over the last few rounds: single rounds jump between none and all."""
    means = []
    for end in range(1, len(rates) + 1):
        window = rates[max(0, end - SMOOTHING) : end]
        means.append(sum(window) / len(window))
    return means
