"""The models on this computer, as the files lane looks at them: found, judged, fetched.

Every method is called in a lane of the worker and may take seconds. Knows no widget and no
thread.
"""

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import resources
from app import paths, places
from engine import guidance
from engine.api import Kind, ModelInfo, Precision, Progress
from engine.errors import Cancelled, EngineError, Reason
from engine.guidance import Level, Verdict
from engine.learned import Learned
from engine.library import catalogue, own_head, scan, starter, watch
from engine.library.candidates import head_verdict, predicted, setup
from engine.library.catalogue import Catalogue
from engine.library.index import Index
from engine.library.scan import Entry
from engine.measured import By, Measured, Measurement, Setup
from engine.vocabulary import Difference

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]
log = logging.getLogger(__name__)

UNREADABLE = "Its vocabulary could not be read: {kind}"


@dataclass(frozen=True)
class Offer:
    """The model offered on the first start; `size` of its file in bytes."""

    name: str
    size: int
    licence: str


@dataclass(frozen=True)
class Judgement:
    """Whether `draft` may and should draft for `target`; both are paths."""

    target: Path
    draft: Path
    verdict: Verdict


@dataclass(frozen=True)
class Gettable:
    """A draft that could be fetched. `info`: the model that it likely is, None of a head."""

    offer: catalogue.Offer
    verdict: Verdict
    info: ModelInfo | None


@dataclass(frozen=True)
class Running:
    """A target as it runs. `drafts`: the precision in which each would run or does, by the path of
    a model or of `measured.WITHOUT_MODEL`; those have None."""

    target: Path
    precision: Precision
    device: str
    drafts: Mapping[str, Precision | None]

    def setup(self, key: str) -> Setup:
        """What was or would be measured with a draft; asks for sizes and times of files."""
        draft = key if self.drafts[key] is None else Path(key)
        return setup(self.target, draft, self.precision, self.drafts[key], self.device)


@dataclass(frozen=True)
class Trial:
    """Answers that were made with the draft `key`: their speed, and the share accepted."""

    key: str
    tokens_per_second: float
    tokens: int
    acceptance_rate: float | None
    by: By = "use"


@dataclass(frozen=True)
class Known:
    """What was measured here of a running target's drafts, by their key; of those that were not,
    how many times plain they are predicted to make. `own_head`: whether the target's own can draft;
    None: it has none; `own_info`: what it takes."""

    running: Running
    found: Mapping[str, Measurement]
    predicted: Mapping[str, float] = field(default_factory=dict)
    own_head: Verdict | None = None
    own_info: ModelInfo | None = None


def guidance_table() -> Mapping[str, Any]:
    """The thresholds of a verdict."""
    table: Mapping[str, Any] = json.loads(resources.read_text("guidance.json"))
    return table


class ShelfLike(Protocol):
    """What the models' view model needs of a shelf."""

    @property
    def offer(self) -> Offer: ...

    def scan(self) -> list[Entry]: ...

    def look_again(self) -> list[Entry] | None: ...

    def judge(self, target: Entry, draft: Entry, stopped: Stopped) -> Judgement: ...

    def offers(self, target: ModelInfo, entries: Iterable[Entry]) -> list[Gettable]: ...

    def known(self, running: Running, trial: Trial | None) -> Known: ...

    def refusal(self, target: ModelInfo) -> Reason | None: ...

    def fetch(self, report: Report, stopped: Stopped) -> Path: ...

    def look_in(self, folders: Iterable[Path], store: Path) -> None: ...


class Shelf:
    """The real one, over `folders`; the starter model goes into `store`."""

    def __init__(
        self, folders: Iterable[Path], store: Path, table: Mapping[str, Any], index: Index
    ) -> None:
        self.look_in(folders, store)
        self._table = table
        self._index = index
        self._catalogue = Catalogue(json.loads(resources.read_text("catalogue.json")))
        self._measured = Measured(paths.measured_file())
        self._learned = Learned(paths.learned_file())
        self._listed = self._last = watch.Stamp("", "")

    def look_in(self, folders: Iterable[Path], store: Path) -> None:
        """From the next look on, look in these. Called in the GUI thread while a lane may look."""
        self._folders = tuple(folders)
        self._store = store

    @property
    def offer(self) -> Offer:
        """The starter model."""
        facts = starter.STARTER
        return Offer(facts.name, facts.file_bytes, facts.licence)

    def scan(self) -> list[Entry]:
        """What lies in the folders, broken entries with their problem."""
        folders = self._folders
        self._listed = self._last = watch.stamp(folders)
        return self._scanned(folders)

    def look_again(self) -> list[Entry] | None:
        """The models anew if the folders changed since and have come to rest; else None.

        Of names that is: the same twice in a row. A file that grows is looked at when it no
        longer does, so that a copy or download is not listed as broken again and again.
        """
        folders = self._folders
        last, self._last = self._last, watch.stamp(folders)
        now = self._last
        if now == self._listed:
            return None
        named = now.names == last.names and now.names != self._listed.names
        if not named and now != last:
            return None
        self._listed = now
        return self._scanned(folders)

    def offers(self, target: ModelInfo, entries: Iterable[Entry]) -> list[Gettable]:
        """What the catalogue has for `target` that is not among `entries`, smallest first."""
        found = []
        for offer in self._catalogue.offers(target, entries):
            verdict, info = catalogue.verdict(offer, target, self._table)
            found.append(Gettable(offer, verdict, info))
        return sorted(found, key=lambda g: (g.offer.size is None, g.offer.size, g.offer.name))

    def known(self, running: Running, trial: Trial | None) -> Known:
        """What was measured of the running target with each draft, the new `trial` included."""
        if trial is not None:
            self._measured.add(
                running.setup(trial.key),
                trial.tokens_per_second,
                trial.tokens,
                trial.acceptance_rate,
                trial.by,
            )
        of = {key: self._measured.of(running.setup(key)) for key in running.drafts}
        found = {key: one for key, one in of.items() if one is not None}
        times = {key: self._predicted(running, key) for key in running.drafts if key not in found}
        predicted = {key: one for key, one in times.items() if one is not None}
        return Known(running, found, predicted, *self._own_head(running.target))

    def _own_head(self, target: Path) -> tuple[Verdict | None, ModelInfo | None]:
        with contextlib.suppress(EngineError):  # its files may be gone by now
            found = own_head.find(self._index.info(target))
            if found is not None:
                return found.verdict, found.info
        return None, None

    def _predicted(self, running: Running, key: str) -> float | None:
        infos: list[ModelInfo] = []
        if running.drafts[key] is not None:
            with contextlib.suppress(EngineError):  # its files may be gone by now
                infos = [self._index.info(path) for path in (running.target, Path(key))]
        return predicted(running.setup(key), self._learned, *infos)

    def _scanned(self, folders: Iterable[Path]) -> list[Entry]:
        found = scan.scan(folders, self._index.info)
        self._index.save()
        return found

    def judge(self, target: Entry, draft: Entry, stopped: Stopped) -> Judgement:
        """The verdict on a pair of whole entries; reads both vocabularies. Raises Cancelled."""
        if stopped():
            raise Cancelled
        assert target.info is not None
        assert draft.info is not None
        verdict = self._verdict(target.info, draft.info)
        self._index.save()
        return Judgement(target.path, draft.path, verdict)

    def refusal(self, target: ModelInfo) -> Reason | None:
        """Why nothing can draft for this target, or None."""
        return guidance.drafting_refusal(target)

    def fetch(self, report: Report, stopped: Stopped) -> Path:
        """Get the starter model. Raises DownloadError or Cancelled."""
        return starter.fetch(places.require(self._store), report, stopped)

    def _verdict(self, target: ModelInfo, draft: ModelInfo) -> Verdict:
        if draft.kind is Kind.HEAD:
            return head_verdict(draft, target, self._catalogue)
        try:
            found = self._difference(target, draft)
        except EngineError as error:
            return Verdict(Level.REFUSED, error.reason)
        except Exception as error:
            # Files are foreign, and a row without a verdict would stand as being checked for ever.
            log.exception("judging %s", draft.path)
            kind = type(error).__name__
            return Verdict(Level.REFUSED, Reason("unreadable", UNREADABLE, {"kind": kind}))
        return guidance.judge_pair(target, draft, found, self._table)

    def _difference(self, target: ModelInfo, draft: ModelInfo) -> Difference | None:
        # What is refused for its kind may have no vocabulary to read.
        if draft.path == target.path or guidance.draft_refusal(draft) is not None:
            return None
        return self._index.difference(target.path, draft.path)
