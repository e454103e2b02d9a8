"""Drafts compared on the running target: which, on what prompts, how far it is, what came out.

Decides what the dialog says; the model lane measures, a heat at a time: all prompts in one way. One
draft is loaded at a time, beside the target that is loaded anyway. Knows no widget.
"""

import contextlib
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal

import resources
from app.lanes import Job, Task
from app.viewmodels import compare_words as said
from app.viewmodels import words
from app.viewmodels.binding import Property, Throttle
from app.viewmodels.compare_words import Offered, Source, View
from app.viewmodels.history import History
from app.viewmodels.models import NONE, Models
from app.viewmodels.rows import Row as Draft
from app.viewmodels.shelf import Trial
from app.worker import Worker
from engine import commands
from engine.api import Drafting, Kind, Loaded, ModelInfo, Precision, Progress, Sampling
from engine.bench.asking import Heat, Manner
from engine.bench.prompts import Prompts, built_in, read_prompts
from engine.bench.report import Report, Row, rows_of
from engine.bench.runs import AUTO, Run, Way
from engine.commands import Method, Peer, Setting
from engine.errors import EngineError, Reason
from engine.library import heads
from engine.library.inspect import repository_of

MOST = 24  # prompts of a file
RECENT = 12  # questions of the user's own
LONGEST = 8_000  # characters of one
LENGTHS = (32, 64, 128, 256)
REPEATS = (1, 2, 3)
SHOW_MS = 250
ALL, OWN, FILE = "all", "own", "file"
State = Literal["idle", "running", "done", "stopped"]


class Compare(QObject):
    """`view` is what the dialog shows."""

    view_changed = Signal(object)

    view = Property[View](View())

    def __init__(
        self, worker: Worker, models: Models, history: History, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._worker, self._models, self._history = worker, models, history
        self._sets = json.loads(resources.read_text("prompts.json"))
        self._kept = {kind: built_in(self._sets, [kind]) for kind in self._sets}
        self._kept[ALL] = built_in(self._sets, self._sets)
        self._file = self._problem = self._exported = ""
        self.source, self.length, self.repeat = ALL, LENGTHS[1], REPEATS[0]
        self._ticks: dict[str, bool] = {}
        self._state: State = "idle"
        self._loaded: Loaded | None = None
        self._waiting: deque[tuple[str, Heat]] = deque()
        self._task: tuple[Job, Task] | None = None
        self._clear()
        self._soon = Throttle(SHOW_MS, self._show, self)
        models.drafts_changed.connect(self._soon.soon)
        models.loaded_changed.connect(self._renew)
        history.questions.connect(self._take_questions)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)

    def open(self) -> None:
        """The dialog is opened: the user's latest questions can be chosen."""
        self._history.look_for_questions(RECENT)
        self._show()

    @property
    def running(self) -> bool:
        """Whether it measures."""
        return self._state == "running"

    @property
    def _ready(self) -> bool:
        """Whether a target runs, and no other is being loaded."""
        return self._models.loaded is not None and not self._models.busy

    @property
    def prompts(self) -> Prompts:
        """Those chosen."""
        return self._kept[self.source]

    def choose_source(self, key: str) -> None:
        """Take the built-in prompts of all kinds or of one, the user's own, or those of the file
        that was read last."""
        if key in self._kept and not self.running:
            self.source = key
            self._show()

    def read(self, file: Path) -> None:
        """Take the prompts of a file."""
        self._problem = ""
        self._look(Job.PROMPTS, lambda report, stopped: (file.name, read_prompts(file)))

    def set_length(self, tokens: int) -> None:
        """Let each answer have so many tokens."""
        self.length = tokens
        self._show()

    def set_repeat(self, times: int) -> None:
        """Measure everything so many times."""
        self.repeat = times
        self._show()

    def tick(self, key: str, on: bool) -> None:
        """Compare a draft, or leave it out."""
        self._ticks[key] = on
        self._show()

    def run(self) -> None:
        """Measure what is ticked, and plain decoding."""
        loaded = self._models.loaded
        if self.running or loaded is None or not self._ready:
            return
        self._clear()
        self._loaded, self._measured = loaded, self.prompts
        names = self._names()
        keys = [NONE, *(d.key for d in self._drafts() if d.key != NONE and self._is_ticked(d))]
        ways = {key: self._way(key, names[key], loaded) for key in keys}
        self._begin([(key, names[key]) for key in keys], ways)
        for again in range(self.repeat):
            # the order moves on, so that a slow minute of the machine hits them all
            turned = [keys[(i + again) % len(keys)] for i in range(len(keys))]
            self._waiting.extend((key, self._heat(key, again, loaded)) for key in turned)
        self._state, self._began = "running", time.monotonic()
        self._next()

    def cancel(self) -> None:
        """End it; what is finished is kept."""
        if self.running:
            self._stopping = True
            self._waiting.clear()
            self._worker.stop_comparing()

    def use_fastest(self) -> None:
        """Draft with what was fastest from now on."""
        if self.view.fastest:
            self._models.choose_draft(self.view.fastest)

    def export(self, file: Path, picture: bytes = b"") -> None:
        """Write what came out to `file`, as its name ends: JSON, CSV, or else the `picture`."""
        form = file.suffix.lower()
        report = self.report()
        data = picture
        if form == ".json":
            data = (json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n").encode()
        elif form == ".csv":
            data = report.as_csv().encode()
        self._problem = self._exported = ""
        self._look(Job.EXPORT, lambda report, stopped: _write(file, data))

    def report(self) -> Report:
        """What came out so far, of all that was finished."""
        rows = self._rows()
        return Report(
            model=self._models.target_name,
            device=self._loaded.device if self._loaded is not None else "",
            prompts=len(self._answered()),
            max_tokens=self._asked[0],
            repeat=self._asked[1],
            rows=list(rows.values()),
            differing_ids=sum(row.differing_ids or 0 for row in rows.values()),
        )

    def offer(self, peer: Peer) -> Offered:
        """The command with which `peer` runs the fastest pair, or the one that runs now."""
        try:
            made = commands.command(peer, self._setting(self.view.fastest or self._models.draft))
        except EngineError as error:
            return Offered(peer, "", said.translated(error.reason))
        return Offered(peer, made.text, " ".join(map(said.translated, made.notes)))

    def _clear(self) -> None:
        """Forget what came out."""
        self._runs: list[Run] = []
        self._reasons: dict[str, Reason] = {}
        self._begin((), {})
        self._measured = Prompts((), ())
        self._asked = self.length, self.repeat
        self._now: tuple[str, int] = "", 0  # the key that is measured, and how many prompts of it
        self._done = 0  # prompts of finished heats
        self._began = self._took = 0.0
        self._stopping = False
        self._exported = self._problem = ""

    def _begin(self, lines: Sequence[tuple[str, str]], ways: dict[str, Way]) -> None:
        """What is compared: keys and names, and the way of each key."""
        self._lines, self._ways = list(lines), ways

    def _renew(self, *_: object) -> None:
        """Another target runs: what came out was of the one before."""
        if self.running:
            self.cancel()
        else:
            self._clear()
            self._state = "idle"
        self._show()

    def _drafts(self) -> list[Draft]:
        return [draft for draft in self._models.drafts if draft.usable]

    def _names(self) -> dict[str, str]:
        """What each draft is called; two of one name by where they lie."""
        drafts = self._drafts()
        names = [draft.name for draft in drafts]
        return {d.key: d.name if names.count(d.name) == 1 else d.key for d in drafts}

    def _is_ticked(self, draft: Draft) -> bool:
        good = draft.tone in ("plain", "good") and draft.fit_tone != "bad"
        return self._ticks.get(draft.key, good)

    def _precision(self, key: str) -> Precision | None:
        return self._models.settings.draft_precisions.get(key)

    def _length(self) -> int | None:
        """Of drafts, as it is set; 0 would compare nothing."""
        return self._models.settings.draft_length or None

    def _way(self, key: str, name: str, target: Loaded) -> Way:
        if key == NONE:
            return Way("slipstream", NONE, None, target.precision, None, None)
        length = self._length() or AUTO
        if self._models.info_of(key) is None:
            return Way("slipstream", key, None, target.precision, None, length)
        own = self._precision(key) or target.precision
        return Way("slipstream", "model", name, target.precision, own, length)

    def _heat(self, key: str, again: int, target: Loaded) -> Heat:
        # greedy and seed 0: runs must be comparable
        sampling = Sampling(temperature=0.0, seed=0, max_tokens=self.length)
        drafting = Drafting(self._length(), "coupled")
        manner = Manner(self._ways[key], sampling, drafting, target.vocabulary)
        choice = key if self._models.info_of(key) is None else Path(key)
        held = self._models.best_draft() if key == AUTO else ""
        precision = self._precision(held or key)
        asked = self._measured.asked
        return Heat(manner, choice, precision, asked, again, Path(held) if held else None)

    def _next(self) -> None:
        """The next heat, or the end."""
        if self._waiting:
            key, heat = self._waiting.popleft()
            self._now = key, 0
            self._worker.compare(heat)
        else:
            self._end("stopped" if self._stopping else "done")
        self._show()

    def _end(self, state: State) -> None:
        self._state, self._now = state, ("", 0)
        self._took = time.monotonic() - self._began
        self._waiting.clear()
        if self._models.loaded is self._loaded:
            self._learn()
        else:
            self._clear()
            self._state = "idle"
        self._models.draft_again()

    def _learn(self) -> None:
        """What was measured is known to the list of drafts, plain decoding first."""
        for key, row in self._rows().items():
            rate, accepted = row.tokens_per_second, row.acceptance_rate
            # of a row that never drafted nothing is learnt
            if row.tokens and (accepted is not None or not row.drafts):
                self._models.learn(Trial(key, rate, row.tokens, accepted, "bench"))

    def _rows(self) -> dict[str, Row]:
        """What came out, by draft; nothing while plain decoding has not."""
        if not any(not run.way.drafts for run in self._runs):
            return {}
        keys = {way: key for key, way in self._ways.items()}
        ways = dict.fromkeys(run.way for run in self._runs)
        asked = self._answered()
        rows = rows_of([r for r in self._runs if r.prompt in asked], self._measured.kinds)
        found = {keys[way]: row for way, row in zip(ways, rows, strict=True)}
        return {key: found[key] for key, _ in self._lines if key in found}

    def _answered(self) -> set[int]:
        """The prompts that were not too long, in any way."""
        found: dict[Way, set[int]] = {}
        for run in self._runs:
            found.setdefault(run.way, set()).add(run.prompt)
        return set.intersection(*found.values()) if found else set()

    def _finished(self, job: Job, result: object) -> None:
        match job, result:
            case Job.COMPARE, list():
                self._runs += result
                self._done += len(self._measured.asked)
                self._next()
            case Job.COMPARE, _:
                self._end("stopped")
                self._show()
            case ((Job.PROMPTS | Job.EXPORT), None) if self._task is not None:
                # the lane was asked to end all that it did for other reasons
                self._worker.look(*self._task)
            case Job.PROMPTS, (str(name), Prompts() as found):
                self._take_file(name, found)
            case Job.EXPORT, Path():
                self._exported = self.tr("Saved as {name}").format(name=result.name)
                self._show()

    def _failed(self, job: Job, reason: Reason) -> None:
        match job:
            case Job.COMPARE if self.running:
                self._fail(self._now[0], reason)
            case Job.PROMPTS | Job.EXPORT:
                self._task = None
                self._problem = said.translated(reason)
                self._show()

    def _fail(self, key: str, reason: Reason) -> None:
        """One of them cannot be measured: the others are, unless there is nothing to compare
        with."""
        self._reasons[key] = reason
        way = self._ways[key]
        heats = {run.again for run in self._runs if run.way == way}
        self._done -= len(heats) * len(self._measured.asked)
        self._runs = [run for run in self._runs if run.way != way]
        left = [waiting for waiting in self._waiting if waiting[0] != key]
        self._waiting = deque(left if key != NONE else ())
        self._next()

    def _moved(self, job: Job, progress: Progress) -> None:
        if job is Job.COMPARE and self.running:
            self._now = self._now[0], progress.done
            self._soon.soon()

    def _take_questions(self, questions: list[str]) -> None:
        short = tuple((text,) for text in questions if len(text) <= LONGEST)
        if self.running or (not short and self.source == OWN):
            return
        self._kept.pop(OWN, None)
        if short:
            self._kept[OWN] = Prompts(short, ("",) * len(short))
        self._show()

    def _take_file(self, name: str, found: Prompts) -> None:
        self._task = None
        if self.running:
            return
        self._kept[FILE], self._file = found.limited(MOST), said.file_name(name, found, MOST)
        self.choose_source(FILE)

    def _look(self, job: Job, task: Task) -> None:
        self._task = job, task
        self._worker.look(job, task)

    def _setting(self, key: str) -> Setting:
        models, target = self._models, self._models.loaded
        if target is None:
            raise EngineError("no_target", "No model is loaded.")
        draft = models.info_of(key)
        method = commands.method_of(key) if draft is None else _method(draft)
        whole = [info for info in (target.info, draft) if info is not None]
        hub = [repository_of(i.path) if i.format == "safetensors" else None for i in whole]
        return Setting(
            target.info,
            models.context,
            method,
            draft,
            self._length(),
            models.is_translated(key),
            (hub[0], hub[1] if draft is not None else None),
        )

    def _show(self) -> None:
        """All that the dialog shows."""
        rows = self._rows()
        shown = said.Known(
            target=said.target(self._models),
            state=self._state,
            drafts=self._shown_drafts(),
            rows=rows,
            reasons=self._reasons,
            now=self._now[0],
            repeat=self._asked[1],
            too_long=len(self._measured.asked) - len(self._answered()) if rows else 0,
            took=self._took,
            share=self._share(),
            left=self._left(),
            estimate=self._estimate(),
        )
        view = said.view(shown)
        sources = self._sources()
        self.view = replace(
            view,
            sources=sources,
            source=self.source,
            length=self.length,
            repeat=self.repeat,
            said=self._problem or self._exported,
            bad=bool(self._problem),
            ready=self._ready,
        )

    def _shown_drafts(self) -> list[said.Ticked]:
        """Those that were compared, and those that can be; each with whether it is ticked."""
        drafts = self._drafts()
        compared = dict(self._lines)
        gone = [key for key in compared if key not in {draft.key for draft in drafts}]
        names = self._names()
        shown = [
            said.Ticked(d.key, names[d.key], d.key == NONE or self._is_ticked(d)) for d in drafts
        ]
        return shown + [said.Ticked(key, compared[key], True) for key in gone]

    def _sources(self) -> tuple[Source, ...]:
        found = [Source(ALL, said.source(ALL, self._kept[ALL]))]
        found += [Source(kind, said.source(kind, self._kept[kind])) for kind in self._sets]
        if OWN in self._kept:
            found.append(Source(OWN, said.source(OWN, self._kept[OWN])))
        if FILE in self._kept:
            found.append(Source(FILE, self._file))
        return tuple(found)

    def _share(self) -> float | None:
        if not self.running:
            return None
        whole = self._whole()
        return (self._done + self._now[1]) / whole if whole else 0.0

    def _whole(self) -> int:
        """How many prompts all heats together ask."""
        return self._done + (len(self._waiting) + 1) * len(self._measured.asked)

    def _left(self) -> str:
        """How long it will take still, by what it took so far."""
        done = self._done + self._now[1]
        if not self.running or not done:
            return ""
        spent = time.monotonic() - self._began
        return words.duration(spent * (self._whole() - done) / done)

    def _estimate(self) -> str:
        """How long all of it would take, as far as plain decoding's speed is known."""
        speed = self._models.plain_speed
        if not speed:
            return ""
        ways = 1 + sum(d.key != NONE and self._is_ticked(d) for d in self._drafts())
        answers = sum(map(len, self.prompts.asked)) * ways * self.repeat
        return words.duration(answers * self.length / speed)


def _method(draft: ModelInfo) -> Method:
    """How a draft on disk drafts. Raises EngineError where that is not known."""
    if draft.kind is not Kind.HEAD:
        return "model"
    found = heads.kind_of(draft.path)
    if found is None:
        raise EngineError("head_unknown", "It is not known how {name} drafts.", name=draft.name)
    return found


def _write(file: Path, data: bytes) -> Path:
    """Raises EngineError where that does not work; the old file is then as it was."""
    beside = file.with_name(f"{file.name}.partial")
    try:
        beside.write_bytes(data)
        beside.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise EngineError(
            "cannot_write",
            "{path} cannot be written: {error}",
            path=str(file),
            error=error.strerror or str(error),
        ) from error
    return file
