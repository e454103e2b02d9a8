"""Which models there are, which one runs, and what may draft for it.

Decides what the target card, the draft list, the first-run screen and the loading line say.
Knows no widget and loads nothing itself: the worker does.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.settings import Settings
from app.viewmodels import precisions, words
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Property
from app.viewmodels.precisions import Badge
from app.viewmodels.rows import Row, draft_rows, target_rows
from app.viewmodels.shelf import Judgement, Offer, ShelfLike
from app.worker import Job, Task, Worker
from engine.api import Drafting, Kind, Loaded, Precision, Progress, Usage, Verification
from engine.errors import Reason
from engine.guidance import Verdict
from engine.library.scan import Entry

NONE, NGRAM = "none", "ngram"
KEEP_MS = 500  # a slider changes the settings with every step
MEASURABLE = 32  # tokens of an answer whose speed says something


@dataclass(frozen=True)
class Fetching:
    """A running download: a sentence on amount, rate and time left, and the share done."""

    text: str
    share: float


class Models(QObject):
    """The library, the loaded target and the chosen draft."""

    loaded_changed = Signal(object)
    loading_changed = Signal(object)
    loading_share_changed = Signal(object)
    targets_changed = Signal(object)
    drafts_changed = Signal(object)
    target_precisions_changed = Signal(object)
    draft_precisions_changed = Signal(object)
    precision_changed = Signal(object)
    badge_changed = Signal(object)
    draft_changed = Signal(object)
    choosing_changed = Signal(object)
    fitting_changed = Signal(object)
    settings_changed = Signal(object)
    first_run_changed = Signal(object)
    fetching_changed = Signal(object)
    settled = Signal()

    loaded = Property[Loaded | None](None)
    loading = Property[str]("")
    loading_share = Property[float](0.0)
    targets = Property[tuple[Row, ...]](())
    drafts = Property[tuple[Row, ...]](())
    target_precisions = Property[tuple[Row, ...]](())
    draft_precisions = Property[tuple[Row, ...]](())  # empty where no model drafts
    precision = Property[str]("")  # the target's, in words
    badge = Property[Badge | None](None)
    draft = Property[str](NONE)
    choosing = Property[bool](False)  # a draft was asked for
    fitting = Property[bool](False)  # and is a model that must be loaded
    settings = Property[Settings](Settings())
    first_run = Property[bool](False)
    fetching = Property[Fetching | None](None)

    def __init__(
        self,
        worker: Worker,
        shelf: ShelfLike,
        alerts: Alerts,
        settings: Settings,
        keep: Callable[[Settings], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._shelf = shelf
        self._alerts = alerts
        self._keep = keep
        self._entries: list[Entry] = []
        self._verdicts: dict[Path, Verdict] = {}
        self._refusal: Reason | None = None
        self._target_path: Path | None = None
        self._loading_path: Path | None = None
        self._loading_precision: Precision | None = None
        self._loading_draft = ""
        self._loading_draft_precision: Precision | None = None
        self._next_draft = ""
        self._fetch_began = 0.0
        self.settings = settings
        self._keeping = QTimer(self, singleShot=True, interval=KEEP_MS)
        self._keeping.timeout.connect(self.keep)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)

    def start(self) -> None:
        """Look at what is there; the last target is loaded when it is found."""
        self._worker.look(Job.SCAN, lambda report, stopped: self._shelf.scan())

    def choose_target(self, key: str) -> None:
        """Load the model at path `key`; the one that runs stays until that has worked."""
        if key != self.target_key:
            self._load_target(key, self.settings.precisions.get(key))

    def choose_precision(self, key: str) -> None:
        """Run the target in the precision `key`, or "auto": it is loaded anew, and runs as it did
        until that has worked."""
        chosen = precisions.named(key)
        if self.target_key and chosen != self._chosen_precision:
            self._load_target(self.target_key, chosen)

    def choose_draft(self, key: str) -> None:
        """Draft with "none", "ngram" or the model at path `key`; while another draft is loaded,
        the last choice is loaded after it."""
        if self._loading_draft:
            self._next_draft = "" if key == self._loading_draft else key
            self._show()
            return
        if key != self.draft:
            self._load_draft(key, self._draft_precision(key))

    def choose_draft_precision(self, key: str) -> None:
        """Run the draft in the precision `key`, or "same" for the target's: it is loaded anew."""
        chosen = precisions.named(key)
        free = not self._loading_draft and self._loading_path is None
        if free and self.draft_precisions and chosen != self._draft_precision(self.draft):
            self._load_draft(self.draft, chosen)

    def draft_with(self, *, length: int | None, verification: Verification) -> None:
        """Set how many tokens are drafted (None: automatic) and how they are judged."""
        self._remember(replace(self.settings, draft_length=length, verification=verification))
        self._show_running()

    def measured(self, usage: Usage) -> None:
        """Keep the speed of an answer made without a draft, where it is long enough."""
        speed = usage.tokens_per_second
        if self.loaded is None or usage.drafted or usage.tokens < MEASURABLE or speed is None:
            return
        precision = self.loaded.precision
        self._remember(self.settings.with_speed(self.target_key, precision, speed))
        self._show_running()

    def show_sidebar(self, wanted: bool) -> None:
        """Whether the sidebar stands beside the chat where there is room."""
        self._remember(replace(self.settings, sidebar=wanted))

    def get_starter(self) -> None:
        """Fetch the starter model, then load it."""
        if self.fetching is None:
            self._alerts.dismiss()
            self._fetch_began = time.monotonic()
            self.fetching = Fetching(self.tr("Starting the download"), 0.0)
            self._worker.fetch(self._shelf.fetch)

    def cancel_starter(self) -> None:
        """End the download."""
        self._worker.stop_fetching()

    @property
    def offer(self) -> Offer:
        """What the first-run screen offers."""
        return self._shelf.offer

    @property
    def busy(self) -> bool:
        """Whether a target is being loaded."""
        return self._loading_path is not None

    @property
    def target_key(self) -> str:
        """The running target's path, empty without one."""
        return str(self._target_path) if self._target_path else ""

    @property
    def target_name(self) -> str:
        """The running target's name, empty without one."""
        return self._name(self._target_path) if self._target_path else ""

    @property
    def _chosen_precision(self) -> Precision | None:
        """The one that the user wants the target to have; None: automatic."""
        return self.settings.precisions.get(self.target_key)

    def _draft_precision(self, key: str) -> Precision | None:
        """The one that the user wants a draft to have; None: its target's."""
        return self.settings.draft_precisions.get(key)

    @property
    def draft_name(self) -> str:
        """The draft in words, empty without one."""
        if self.draft == NONE:
            return ""
        return self.tr("repeats") if self.draft == NGRAM else self._name(Path(self.draft))

    @property
    def drafting(self) -> Drafting:
        """How the next answer drafts."""
        return self.settings.drafting

    def _finished(self, job: Job, result: object) -> None:
        match job, result:
            case Job.SCAN, list():
                self._scanned(result)
            case Job.JUDGE, Judgement() if str(result.target) == self.target_key:
                self._verdicts[result.draft] = result.verdict
                self._show()
            case Job.LOAD, _:
                self._target_settled(result if isinstance(result, Loaded) else None)
            case Job.DRAFT, _:
                self._draft_settled(None if result is None else str(result))
            case Job.FETCH, _:
                self._fetched(result if isinstance(result, Path) else None)

    def _failed(self, job: Job, reason: Reason) -> None:
        match job:
            case Job.LOAD:
                self._forget_target_precision()
                self._target_settled(None)
            case Job.DRAFT:
                self._draft_lost()
            case Job.FETCH:
                self.fetching = None
            case Job.SCAN:
                self.first_run = not self._entries
            case _:
                return
        self._alerts.show_reason(reason)

    def _moved(self, job: Job, progress: Progress) -> None:
        if job is Job.FETCH and self.fetching is not None:
            self.fetching = self._fetch_state(progress)
        elif job is Job.LOAD and self._loading_path is not None:
            self._show_loading(progress)

    def _show_loading(self, progress: Progress) -> None:
        once = {
            "tokenizer": self.tr("Preparing the tokenizer (once per model)"),
            "quality": self.tr("Measuring what 8 bits cost (once per model)"),
            "exactness": self.tr("Checking that drafts change no bit (once per model)"),
        }
        if progress.stage in once:
            self.loading = once[progress.stage]
        elif self._loading_path is not None and progress.total > 0:
            self.loading_share = progress.done / progress.total
            said = self.tr("Loading {name}, {share}")
            name, share = self._name(self._loading_path), words.percent(self.loading_share)
            self.loading = said.format(name=name, share=share)

    def _scanned(self, entries: list[Entry]) -> None:
        self._entries = entries
        usable = [e.path for e in entries if _usable(e)]
        self.first_run = not usable
        self._show()
        if usable and self.loaded is None and not self.busy:
            last = next((p for p in usable if str(p) == self.settings.target), usable[0])
            self.choose_target(str(last))
        elif self.loaded is not None:
            self._judge()
        self.settled.emit()

    def _load_target(self, key: str, precision: Precision | None) -> None:
        if self._loading_path is not None:
            return
        self._alerts.dismiss()
        self._next_draft = ""
        self._loading_path, self._loading_precision = Path(key), precision
        self.loading_share = 0.0
        self.loading = self.tr("Loading {name}").format(name=self._name(Path(key)))
        self._worker.load_target(Path(key), precision)
        self._show()

    def _target_settled(self, loaded: Loaded | None) -> None:
        path, self._loading_path = self._loading_path, None
        if loaded is not None:
            self._target_path = path
            self._remember(self.settings.with_target(self.target_key, self._loading_precision))
            self.draft = NONE
            self.loaded = loaded
            self._refusal = self._shelf.refusal(loaded.info)
            self._verdicts = {}
            self._judge()
            self._restore_draft()
        self.loading = ""
        self._show()
        self.settled.emit()

    def _forget_target_precision(self) -> None:
        """A kept precision that failed is not tried for ever: the next time it is automatic."""
        key, failed = str(self._loading_path), self._loading_precision
        if failed is not None and failed == self.settings.precisions.get(key):
            kept = {path: p for path, p in self.settings.precisions.items() if path != key}
            self._remember(replace(self.settings, precisions=kept))

    def _restore_draft(self) -> None:
        """The draft last used with this target; at first the one that needs no memory."""
        last = self.settings.drafts.get(self.target_key, NGRAM)
        known = last in (NONE, NGRAM) or any(str(e.path) == last for e in self._entries)
        if self._refusal is None:
            self.choose_draft(last if known else NGRAM)

    def _load_draft(self, key: str, precision: Precision | None) -> None:
        self._alerts.dismiss()
        self._loading_draft, self._loading_draft_precision = key, precision
        self._worker.choose_draft(key if key in (NONE, NGRAM) else Path(key), precision)
        self._show()

    def _draft_settled(self, key: str | None) -> None:
        asked, self._loading_draft = self._loading_draft, ""
        if key is not None:
            self.draft = key
        else:
            self.draft = NONE
            # Stopped: whether the old draft was already given up is known to the engine alone.
            if not self._next_draft:
                self._worker.choose_draft(NONE)
        if key == asked:
            kept = self.settings.with_draft(self.target_key, asked)
            self._remember(kept.with_draft_precision(asked, self._loading_draft_precision))
        self._show()
        self._take_next_draft()

    def _draft_lost(self) -> None:
        """A draft that cannot be loaded turns drafting off; the chat goes on without it. A kept
        precision that failed is not tried for ever."""
        key, self._loading_draft = self._loading_draft, ""
        failed = self._loading_draft_precision
        if failed is not None and failed == self._draft_precision(key):
            self._remember(self.settings.with_draft_precision(key, None))
        self.draft = NONE
        self._show()
        self._take_next_draft()

    def _take_next_draft(self) -> None:
        """What was chosen while another draft was loaded."""
        key, self._next_draft = self._next_draft, ""
        if key:
            self._load_draft(key, self._draft_precision(key))

    def _judge(self) -> None:
        """Have every other model judged as a draft for the target."""
        if self.loaded is None or self._refusal is not None:
            return
        self._worker.stop_looking()
        target = next((e for e in self._entries if e.path == self._target_path), None)
        if target is None:
            return
        for entry in self._entries:
            if entry.info is not None and entry.path not in self._verdicts:
                self._worker.look(Job.JUDGE, self._judging(target, entry))

    def _judging(self, target: Entry, draft: Entry) -> Task:
        return lambda report, stopped: self._shelf.judge(target, draft, stopped)

    def _fetch_state(self, progress: Progress) -> Fetching:
        spent = max(time.monotonic() - self._fetch_began, 0.001)
        rate = progress.done / spent
        text = words.amount(progress)
        if rate > 0 and 0 < progress.done < progress.total:
            left = words.duration((progress.total - progress.done) / rate)
            text = self.tr("{amount}, {rate} a second, {left} left").format(
                amount=text, rate=f"{rate / 1e6:.1f} MB", left=left
            )
        return Fetching(text, progress.done / progress.total if progress.total > 0 else 0.0)

    def _fetched(self, path: Path | None) -> None:
        self.fetching = None
        if path is not None:
            self.start()

    def _remember(self, settings: Settings) -> None:
        self.settings = settings
        self._keeping.start()

    def keep(self) -> None:
        """Write the settings that were changed and not yet written."""
        self._keeping.stop()
        try:
            self._keep(self.settings)
        except OSError as error:
            text = self.tr("The settings could not be saved: {detail}")
            self._alerts.show(text.format(detail=error.strerror or str(error)))

    def _name(self, path: Path) -> str:
        return next((e.name for e in self._entries if e.path == path), path.stem)

    def _show(self) -> None:
        self.targets = target_rows(self._entries, self.target_key)
        self.choosing = bool(self._loading_draft)
        self.fitting = self._loading_draft not in ("", NONE, NGRAM)
        chosen = self._next_draft or self._loading_draft or self.draft
        self.drafts = (
            draft_rows(self._entries, chosen, self._loading_draft, self._verdicts, self._refusal)
            if self.loaded is not None
            else ()
        )
        self._show_running()

    def _show_running(self) -> None:
        """How target and draft run, and how else they could."""
        loaded, settings = self.loaded, self.settings
        if loaded is None:
            return
        chosen, speeds = self._chosen_precision, settings.speeds
        self.badge = precisions.exactness(loaded, settings.verification)
        self.precision = precisions.in_words(loaded, chosen)
        self.target_precisions = precisions.target_precisions(
            loaded, chosen, speeds.get(self.target_key, {})
        )
        draft = next((e for e in self._entries if str(e.path) == self.draft), None)
        info = draft.info if draft is not None else None
        chosen = self._draft_precision(self.draft)
        self.draft_precisions = (
            precisions.draft_precisions(info, loaded, chosen, speeds.get(self.draft, {}))
            if info is not None
            else ()
        )


def _usable(entry: Entry) -> bool:
    return entry.problem is None and entry.info is not None and entry.info.kind is Kind.MODEL
