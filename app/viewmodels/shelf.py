"""The models on this computer, as the files lane looks at them: found, judged, fetched.

Every method is called in a lane of the worker and may take seconds. Knows no widget and no
thread.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import resources
from engine import guidance
from engine.api import ModelInfo, Progress
from engine.errors import Cancelled, EngineError, Reason
from engine.guidance import Level, Verdict
from engine.library import inspect, scan, starter
from engine.library.scan import Entry
from engine.vocabulary import Difference, Vocabulary, difference

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


def guidance_table() -> Mapping[str, Any]:
    """The thresholds of a verdict."""
    table: Mapping[str, Any] = json.loads(resources.read_text("guidance.json"))
    return table


class ShelfLike(Protocol):
    """What the models' view model needs of a shelf."""

    @property
    def offer(self) -> Offer: ...

    def scan(self) -> list[Entry]: ...

    def judge(self, target: Entry, draft: Entry, stopped: Stopped) -> Judgement: ...

    def refusal(self, target: ModelInfo) -> Reason | None: ...

    def fetch(self, report: Report, stopped: Stopped) -> Path: ...


class Shelf:
    """The real one, over `folders`; the starter model goes into `store`."""

    def __init__(self, folders: list[Path], store: Path, table: Mapping[str, Any]) -> None:
        self._folders = folders
        self._store = store
        self._table = table
        self._vocabularies: dict[Path, Vocabulary] = {}

    @property
    def offer(self) -> Offer:
        """The starter model."""
        facts = starter.STARTER
        return Offer(facts.name, facts.file_bytes, facts.licence)

    def scan(self) -> list[Entry]:
        """What lies in the folders, broken entries with their problem."""
        return scan.scan(self._folders)

    def judge(self, target: Entry, draft: Entry, stopped: Stopped) -> Judgement:
        """The verdict on a pair of whole entries; reads both vocabularies. Raises Cancelled."""
        if stopped():
            raise Cancelled
        assert target.info is not None
        assert draft.info is not None
        return Judgement(target.path, draft.path, self._verdict(target.info, draft.info))

    def refusal(self, target: ModelInfo) -> Reason | None:
        """Why nothing can draft for this target, or None."""
        return guidance.drafting_refusal(target)

    def fetch(self, report: Report, stopped: Stopped) -> Path:
        """Get the starter model. Raises DownloadError or Cancelled."""
        return starter.fetch(self._store, report, stopped)

    def _verdict(self, target: ModelInfo, draft: ModelInfo) -> Verdict:
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
        return difference(self._vocabulary(target.path), self._vocabulary(draft.path))

    def _vocabulary(self, path: Path) -> Vocabulary:
        if path not in self._vocabularies:
            self._vocabularies[path] = inspect.read_vocabulary(path)
        return self._vocabularies[path]
