"""A comparison in words and numbers: the verdict, a line for each draft, a chart for each kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QCoreApplication

from app import resources
from app.viewmodels import words
from app.viewmodels.models import NONE, Models
from engine.bench.prompts import Prompts
from engine.bench.report import Category, Row
from engine.commands import Peer
from engine.errors import Reason

SLOWER = 0.995  # times plain below which "slower" is said: what is shown as 1.00 is as fast
CELLS = 8
NOTHING = (words.DASH,) * CELLS


@dataclass(frozen=True)
class Source:
    """Prompts to choose."""

    key: str
    name: str


@dataclass(frozen=True)
class Ticked:
    """A draft that was or can be compared, and whether it is to be."""

    key: str
    name: str
    on: bool


@dataclass(frozen=True)
class Line:
    """A row of the table; its `cells` as HEADS has them. `note` stands in their place where there
    are none: why it failed (`bad`), or that it runs now."""

    key: str
    name: str
    ticked: bool
    cells: tuple[str, ...] = NOTHING
    fastest: bool = False
    note: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Bar:
    """A draft's times plain for a kind of prompt, and of its slowest and fastest prompt; None: not
    measured. `best` of its kind; `said` at its end."""

    times: float | None
    span: tuple[float, float] | None
    best: bool
    said: str


@dataclass(frozen=True)
class Chart:
    """One kind of prompt: a bar for each draft, in the order of `View.names`."""

    name: str
    count: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class View:
    """The dialog. `headline` is the verdict, `rest` goes on with it, `detail` is smaller; `share`
    of it is done, or None; `fastest` a key, or empty."""

    target: str = ""
    headline: str = ""
    rest: str = ""
    detail: str = ""
    lines: tuple[Line, ...] = ()
    names: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    share: float | None = None
    fastest: str = ""
    ready: bool = False
    sources: tuple[Source, ...] = ()
    source: str = ""
    length: int = 0
    repeat: int = 0
    said: str = ""
    bad: bool = False

    @property
    def twin(self) -> str:
        """The charts as a sentence for each kind."""
        return "\n".join(map(self._said, self.charts))

    def _said(self, chart: Chart) -> str:
        bars = zip(self.names, chart.bars, strict=True)
        return f"{chart.name}, {chart.count}: " + ", ".join(f"{n} {bar.said}" for n, bar in bars)


@dataclass(frozen=True)
class Offered:
    """A command to copy and what must be known; without one, `note` says why."""

    peer: Peer
    text: str
    note: str


@dataclass(frozen=True)
class Known:
    """All that the words are made of. Rows and reasons by the draft's key; `now` is measured;
    `too_long` prompts were left out; `took` seconds; `left` and `estimate` in words, or empty."""

    target: str
    state: Literal["idle", "running", "done", "stopped"]
    drafts: Sequence[Ticked]
    rows: Mapping[str, Row] = field(default_factory=dict)
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    now: str = ""
    repeat: int = 1
    too_long: int = 0
    took: float = 0.0
    share: float | None = None
    left: str = ""
    estimate: str = ""


def _tr(text: str) -> str:
    return QCoreApplication.translate("compare_words", text)


def heads() -> tuple[str, ...]:
    """Of the cells."""
    return (
        _tr("tok/s"),
        _tr("Times plain"),
        _tr("Range"),
        _tr("Accepted"),
        _tr("Tokens a round"),
        _tr("First token"),
        _tr("Memory"),
        _tr("Same text"),
    )


def view(known: Known) -> View:
    """What the dialog shows of it."""
    fastest = _fastest(known) if known.state != "running" else ""
    headline, rest = _verdict(known, fastest)
    shown = [d for d in known.drafts if d.key != NONE and d.key in known.rows]
    return View(
        target=known.target,
        headline=headline,
        rest=rest,
        detail=_detail(known),
        lines=tuple(_line(draft, known, fastest) for draft in known.drafts),
        names=tuple(draft.name for draft in shown),
        charts=_charts(known, shown),
        share=known.share,
        fastest=fastest,
    )


def target(models: Models) -> str:
    """The running target in words: its name and precision."""
    if models.loaded is None:
        return _tr("No model runs.")
    return f"{models.target_name}, {models.precision}"


def kind(name: str) -> str:
    """A kind of prompt; those of files have the names that the file gives them."""
    known = {
        "code": _tr("Code"),
        "edit": _tr("Edit"),
        "summarise": _tr("Summarise"),
        "question": _tr("Question"),
        "creative": _tr("Creative"),
    }
    return known.get(name, name)


def source(key: str, found: Prompts) -> str:
    """Prompts to choose, and how many they are."""
    named = {"all": _tr("Built-in set"), "own": _tr("My last questions")}
    return f"{named.get(key, kind(key))}, {_prompts(len(found.asked))}"


def file_name(name: str, found: Prompts, most: int) -> str:
    """A file that was read, how much of it is taken and what was left out."""
    count, taken = len(found.asked), min(len(found.asked), most)
    said = _prompts(count)
    if taken < count:
        said = _tr("{taken} of {count} prompts").format(taken=taken, count=words.grouped(count))
    if found.skipped:
        left_out = _tr("placeholders left out: {count}").format(count=words.grouped(found.skipped))
        said = f"{said}, {left_out}"
    return f"{name}, {said}"


def translated(reason: Reason) -> str:
    """What the engine says, in the window's language."""
    return resources.translate(reason)


def _prompts(count: int) -> str:
    return words.counted(count, _tr("{count} prompt"), _tr("{count} prompts"))


def _times(number: float | None) -> str:
    return words.decimals(number, 2)


def _fastest(known: Known) -> str:
    """The key of the fastest row, where there is one to compare with."""
    if len(known.rows) < 2:
        return ""
    return max(known.rows, key=lambda key: known.rows[key].tokens_per_second)


def _verdict(known: Known, fastest: str) -> tuple[str, str]:
    names = {draft.key: draft.name for draft in known.drafts}
    if known.state == "running":
        said = _tr("Measuring {name}").format(name=names.get(known.now, ""))
        if known.now == NONE:
            said = _tr("Measuring without a draft")
        left = _tr("{left} left").format(left=known.left) if known.left else ""
        return said, left
    if known.state == "idle":
        return _tr("Which draft is fastest here?"), ""
    if not fastest:
        if NONE in known.reasons:
            return _tr("Plain decoding could not be measured."), translated(known.reasons[NONE])
        return _tr("Nothing was measured to the end."), ""
    if fastest == NONE:
        return _tr("No draft is faster here than none."), ""
    times = _times(known.rows[fastest].speedup)
    said = _tr("{name} is fastest here: {times} times plain.")
    return said.format(name=names[fastest], times=times), _but(known, fastest, names)


def _but(known: Known, fastest: str, names: Mapping[str, str]) -> str:
    """Where another was faster still, the kind in which it was so by most."""
    gains = []
    for name, best in known.rows[fastest].by_category.items():
        for key, row in known.rows.items():
            other = row.by_category[name]
            if other.tokens_per_second > best.tokens_per_second > 0:
                gains.append((other.tokens_per_second / best.tokens_per_second, name, names[key]))
    if not gains:
        return ""
    _, found, other_name = max(gains)
    said = _tr("For “{kind}”, {name} was faster still.")
    return said.format(kind=kind(found), name=other_name)


def _detail(known: Known) -> str:
    took = words.duration(known.took)
    if known.state == "running":
        return _tr(
            "The target stays loaded, with one draft at a time beside it. The chat goes on when "
            "this is over, with the draft that it had."
        )
    if known.state == "idle":
        text = _tr(
            "Every prompt is answered without a draft and with each that is ticked, one of them "
            "loaded at a time beside the target. The draft chosen now is loaded again at the end."
        )
        about = _tr("This takes up to {time}.").format(time=known.estimate)
        return f"{text} {about}" if known.estimate else text
    began = _tr("Finished in {time}.") if known.state == "done" else _tr("Stopped after {time}.")
    return " ".join(
        (
            began.format(time=took),
            words.counted(
                known.repeat,
                _tr("Medians of {count} run, drafts taken in turn, temperature 0."),
                _tr("Medians of {count} runs, drafts taken in turn, temperature 0."),
            ),
            _tr("Range: slowest to fastest prompt."),
            *_too_long(known.too_long),
        )
    )


def _too_long(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    one = _tr("{count} prompt is longer than the context.")
    return (words.counted(count, one, _tr("{count} prompts are longer than the context.")),)


def _line(draft: Ticked, known: Known, fastest: str) -> Line:
    row, reason = known.rows.get(draft.key), known.reasons.get(draft.key)
    name, key = draft.name, draft.key
    if reason is not None:
        return Line(key, name, draft.on, note=translated(reason), bad=True)
    if row is not None:
        return Line(key, name, draft.on, _cells(row), fastest == key)
    running = known.state == "running" and key == known.now
    return Line(key, name, draft.on, note=_tr("Running") if running else "")


def _cells(row: Row) -> tuple[str, ...]:
    plain = not row.drafts
    span = words.DASH
    if row.span is not None and not plain:
        low, high = map(_times, row.span)
        span = _tr("{low} to {high}").format(low=low, high=high)
    same = _tr("{count} of {all}").format(count=row.same, all=row.prompts)
    return (
        words.decimals(row.tokens_per_second),
        _times(row.speedup),
        span,
        words.percent(row.acceptance_rate),
        _times(row.tokens_per_round),
        resources.figures(f"{row.time_to_first_token:.2f} s"),
        words.gibibytes(row.memory_bytes),
        words.DASH if plain else same,
    )


def _charts(known: Known, shown: Sequence[Ticked]) -> tuple[Chart, ...]:
    """A chart for each kind; one where no kind is known."""
    if not shown:
        return ()
    rows = [known.rows[draft.key] for draft in shown]
    kinds = list(rows[0].by_category)
    if not kinds:
        overall = [Category(r.tokens_per_second, r.speedup, r.span, r.prompts) for r in rows]
        return (_chart(_tr("All prompts"), overall),)
    return tuple(_chart(kind(name), [row.by_category[name] for row in rows]) for name in kinds)


def _chart(name: str, found: Sequence[Category]) -> Chart:
    most = max((each.speedup or 0.0 for each in found), default=0.0)
    bars = tuple(_bar(each, each.speedup is not None and each.speedup == most) for each in found)
    return Chart(name, _prompts(found[0].prompts), bars)


def _bar(found: Category, best: bool) -> Bar:
    said = _times(found.speedup)
    if found.speedup is not None and found.speedup < SLOWER:
        return Bar(found.speedup, found.span, False, _tr("{times} slower").format(times=said))
    return Bar(found.speedup, found.span, best, said)
