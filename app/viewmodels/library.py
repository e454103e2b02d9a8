"""The models on this computer, and what is known of them as drafts for the one that runs.

Knows no widget and reads no file: the worker's files lane does.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.lanes import Job, Task
from app.viewmodels.rows import Drafts, Row, best_draft, draft_rows, target_rows
from app.viewmodels.shelf import Judgement, Known, Running, ShelfLike, Trial
from app.worker import Worker
from engine.api import Kind, Loaded, ModelInfo, Precision
from engine.fit import Fit
from engine.library.scan import Entry
from engine.measured import MTP, NONE, WITHOUT_MODEL

Precisions = Mapping[str, Precision]  # chosen for drafts; the others have their target's


class Library(QObject):
    """A key is the path of a model. `judged` when more is `known` of the drafts."""

    judged = Signal()

    def __init__(self, worker: Worker, shelf: ShelfLike, parent: QObject) -> None:
        super().__init__(parent)
        self._worker, self._shelf = worker, shelf
        self._target: Loaded | None = None
        self._key = ""
        self._running: Running | None = None
        self.known = Drafts(entries=(), chosen=NONE)
        worker.finished.connect(self._finished)

    @property
    def targets(self) -> list[str]:
        """The keys of what can be a target."""
        return [str(entry.path) for entry in self.known.entries if _usable(entry)]

    def find(self, key: str) -> Entry | None:
        """The model `key`, broken or not."""
        return next((entry for entry in self.known.entries if str(entry.path) == key), None)

    def name(self, key: str) -> str:
        """What the model `key` is called."""
        found = self.find(key)
        return found.name if found is not None else Path(key).stem

    def info(self, key: str) -> ModelInfo | None:
        """What the files of the model `key` say."""
        found = self.find(key)
        return found.info if found is not None else None

    def takes(self, key: str) -> ModelInfo | None:
        """What the draft `key` has in memory: a model, or the target's own head; None: nothing."""
        return self.known.own_info if key == MTP else self.info(key)

    def renew(self, entries: Sequence[Entry], in_use: Set[str], precisions: Precisions) -> None:
        """Other models may be there, and the same in other files: those are judged. What is
        `in_use` stays listed."""
        before = {entry.path: entry for entry in self.known.entries}
        paths = {entry.path for entry in entries}
        gone = [e for path, e in before.items() if str(path) in in_use and path not in paths]
        entries = [*entries, *gone]
        same = {entry.path for entry in entries if entry == before.get(entry.path)}
        verdicts = {path: v for path, v in self.known.verdicts.items() if path in same}
        self.known = replace(self.known, entries=entries, verdicts=verdicts)
        if self._target is not None:
            self._judge(self._target, precisions)

    def begin(self, key: str, target: Loaded, precisions: Precisions) -> None:
        """The model `key` runs as the target: what is known of others was for another."""
        self._key, self._target = key, target
        refusal = self._shelf.refusal(target.info)
        self.known = Drafts(self.known.entries, chosen=NONE, refusal=refusal)
        self._judge(target, precisions)

    def learn(self, precisions: Precisions, trial: Trial | None = None) -> None:
        """Have it found what was measured of the drafts, and `trial` added to it."""
        if self._target is None:
            return
        running = self._as_it_runs(self._target, precisions)
        if trial is None or trial.key in running.drafts:
            self._running = running
            self._worker.look(Job.JUDGE, lambda report, stopped: self._shelf.known(running, trial))

    def as_targets(self) -> tuple[Row, ...]:
        """The list of targets."""
        return target_rows(self.known.entries, self._key)

    def as_drafts(
        self, chosen: str, loading: str, fit: Callable[[str, ModelInfo], Fit | None]
    ) -> tuple[Row, ...]:
        """The list of drafts; `fit` tells whether one fits, by its key or an offer's repository."""
        fits = self._fits(fit)
        return draft_rows(replace(self.known, chosen=chosen, loading=loading, fits=fits))

    def best_draft(self, fit: Callable[[str, ModelInfo], Fit | None]) -> str:
        """The key of the model that "auto" holds beside what is no model; empty without one."""
        return best_draft(replace(self.known, fits=self._fits(fit)))

    def _fits(self, fit: Callable[[str, ModelInfo], Fit | None]) -> dict[str, Fit]:
        infos = {str(entry.path): entry.info for entry in self.known.entries}
        infos |= {gettable.offer.repository: gettable.info for gettable in self.known.offers}
        infos[MTP] = self.known.own_info
        fits = {key: fit(key, info) for key, info in infos.items() if info is not None}
        return {key: fit for key, fit in fits.items() if fit is not None}

    def _judge(self, target: Loaded, precisions: Precisions) -> None:
        """Have every other model judged as a draft; tried ones are known at once."""
        self._worker.stop_looking()
        offers = self._shelf.offers(target.info, self.known.entries)
        self.known = replace(self.known, offers=offers)
        self.learn(precisions)
        running = self.find(self._key)
        if running is None or self.known.refusal is not None:
            return
        for entry in self.known.entries:
            if entry.problem is None and entry.path not in self.known.verdicts:
                self._worker.look(Job.JUDGE, self._judging(running, entry))

    def _judging(self, target: Entry, draft: Entry) -> Task:
        return lambda report, stopped: self._shelf.judge(target, draft, stopped)

    def _as_it_runs(self, target: Loaded, precisions: Precisions) -> Running:
        drafts: dict[str, Precision | None] = dict.fromkeys(WITHOUT_MODEL)
        for entry in self.known.entries:
            key = str(entry.path)
            if entry.info is not None and key != self._key:
                drafts[key] = precisions.get(key, target.precision)
        return Running(Path(self._key), target.precision, target.device, drafts)

    def _finished(self, job: Job, result: object) -> None:
        match job, result:
            case Job.JUDGE, Known() if result.running == self._running:
                self.known = replace(
                    self.known,
                    measured=result.found,
                    predicted=result.predicted,
                    own_head=result.own_head,
                    own_info=result.own_info,
                )
            case Job.JUDGE, Judgement() if str(result.target) == self._key:
                verdicts = {**self.known.verdicts, result.draft: result.verdict}
                self.known = replace(self.known, verdicts=verdicts)
            case _:
                return
        self.judged.emit()


def _usable(entry: Entry) -> bool:
    return entry.problem is None and entry.info is not None and entry.info.kind is Kind.MODEL
