"""Which models there are, which one runs, and what may draft for it.

Decides what the target card, the draft list, the first-run screen and the loading line say.
Knows no widget and loads nothing itself: the worker does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.mark import Mark
from app.setting import Value
from app.settings import Settings, changed
from app.viewmodels import precisions, words
from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import Property
from app.viewmodels.fit import Fitting
from app.viewmodels.precisions import Badge
from app.viewmodels.rows import Drafts, Row, draft_rows, target_rows
from app.viewmodels.shelf import Gettable, Judgement, Known, Running, ShelfLike, Trial
from app.viewmodels.starter import Starter
from app.worker import Job, Task, Worker
from engine import measured
from engine.api import Drafting, Kind, Loaded, ModelInfo, Precision, Progress, Usage, Verification
from engine.errors import Reason
from engine.fit import USUAL_CONTEXT, Fit, Pair
from engine.guidance import Verdict
from engine.library.inspect import repository_of
from engine.library.scan import Entry
from engine.measured import Measurement

NONE, NGRAM = measured.NONE, measured.NGRAM
LOOK_MS = 2000  # between two looks at the folders
KEEP_MS = 500  # a slider changes the settings with every step
MEASURABLE = 32  # tokens of an answer whose speed says something


@dataclass(frozen=True)
class _Held:
    """A target or draft that was not loaded, since it does not fit: how it was asked for."""

    key: str
    precision: Precision | None
    pair: Pair
    draft: bool


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
    context_changed = Signal(object)
    first_run_changed = Signal(object)
    settled = Signal()
    get_asked = Signal(str)  # a repository of the catalogue
    resume_asked = Signal(object)  # the Path of a download that has not finished

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
    context = Property[int](0)  # tokens that the running target may hold
    first_run = Property[bool](False)

    def __init__(
        self,
        worker: Worker,
        shelf: ShelfLike,
        alerts: Alerts,
        settings: Settings,
        keep: Callable[[Settings], None],
        mark: Mark,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._shelf = shelf
        self._alerts = alerts
        self._keep, self._mark = keep, mark
        self._entries: list[Entry] = []
        self._verdicts: dict[Path, Verdict] = {}
        self._known: dict[str, Measurement] = {}
        self._offers: list[Gettable] = []
        self._refusal: Reason | None = None
        self._target_path: Path | None = None
        self._loading_path: Path | None = None
        self._loading_precision: Precision | None = None
        self._loading_pair: Pair | None = None
        self._on_cards: tuple[int, ...] = ()  # where the running target's layers lie
        self._loading_draft = ""
        self._loading_draft_precision: Precision | None = None
        self._next_draft = ""
        self._held: _Held | None = None
        self.starter = Starter(worker, shelf, alerts, self)
        self.starter.fetched.connect(self.start)
        self.memory = Fitting(self)
        self.memory.taken.connect(self._take)
        self.settings = settings
        self._keeping = QTimer(self, singleShot=True, interval=KEEP_MS)
        self._keeping.timeout.connect(self.keep)
        self._looking = False
        self._looks = QTimer(self, interval=LOOK_MS)
        self._looks.timeout.connect(self.look_again)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)
        worker.sampled.connect(self._sampled)

    def start(self) -> None:
        """Look at what is there; the last target is loaded when it is found. From now on the lists
        follow the folders."""
        self._looking = True
        self._worker.look(Job.SCAN, lambda report, stopped: self._shelf.scan())
        self._looks.start()

    def look_again(self) -> None:
        """List the models anew if the folders changed; not while a model is loaded."""
        if not self._looking and not self.busy and not self._loading_draft:
            self._looking = True
            self._worker.look(Job.SCAN, lambda report, stopped: self._shelf.look_again())

    def act(self, key: str) -> None:
        """Do what the button of a row offers: get a repository, resume a download. What another
        program began in the hub's cache is not ours to go on with: it is got anew."""
        row = next((row for row in (*self.targets, *self.drafts) if row.key == key), None)
        if row is None or not row.action:
            return
        repository = key if row.action == "get" else repository_of(Path(key))
        if repository is not None:
            self.get_asked.emit(repository)
        else:
            self.resume_asked.emit(Path(key))

    def choose_target(self, key: str) -> None:
        """Load the model at path `key`; the one that runs stays until that has worked."""
        if key == self.target_key:
            self._let_go()
        else:
            self._load_target(key, self.settings.precisions.get(key))

    def choose_precision(self, key: str) -> None:
        """Run the target in the precision `key`, or "auto": it is loaded anew, and runs as it did
        until that has worked."""
        chosen = precisions.named(key)
        if self.target_key and chosen != self._chosen_precision:
            self._load_target(self.target_key, chosen)

    def choose_context(self, tokens: int) -> None:
        """Let the target hold `tokens`: at once in what is shown, in the engine once the slider
        rests."""
        held = self._held
        if self.loaded is None or (held is not None and not held.draft):
            self.memory.choose_context(tokens)
            return
        self.context = max(1, min(tokens, self.loaded.context))
        self._remember(self.settings.with_context(self.target_key, self.context))
        if held is not None:
            self._held = replace(held, pair=replace(held.pair, context=self.context))
        self._show_memory()
        self._show_drafts()

    def load_anyway(self) -> None:
        """Load what was held back because it did not fit."""
        held, judged = self._held, self.memory.pair
        if held is None or judged is None:
            return
        if held.draft:
            self._load_draft(held.key, held.precision, checked=True)
        else:
            self._remember(self.settings.with_context(held.key, judged.context))
            self._load_target(held.key, held.precision, judged)

    def choose_draft(self, key: str) -> None:
        """Draft with "none", "ngram" or the model at path `key`; while another draft is loaded,
        the last choice is loaded after it."""
        if self._loading_draft:
            self._next_draft = "" if key == self._loading_draft else key
            self._show()
            return
        if key == self.draft:
            self._let_go()
        else:
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
        """Keep the speed of an answer, where it is long enough: with its draft, or without one."""
        loaded, speed = self.loaded, usage.tokens_per_second
        if loaded is None or usage.tokens < MEASURABLE or speed is None:
            return
        if not usage.drafted:
            self._remember(self.settings.with_speed(self.target_key, loaded.precision, speed))
            self._show_running()
        key = self.draft if usage.drafted else NONE
        if key in self._running(loaded).drafts:
            self._learn(Trial(key, speed, usage.tokens, usage.acceptance_rate))

    def set(self, name: str, value: Value) -> None:
        """Give a setting of the table another value."""
        self._remember(changed(self.settings, name, value))
        self._show_running()

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

    def has(self, key: str) -> bool:
        """Whether the model at path `key` is here and can be a target."""
        return any(str(e.path) == key and _usable(e) for e in self._entries)

    def name_of(self, key: str) -> str:
        """What the model at path `key` is called."""
        return self._name(Path(key))

    @property
    def plain_speed(self) -> float | None:
        """Tokens per second of the running target without a draft, as last measured here."""
        plain = self._known.get(NONE)
        return plain.tokens_per_second if plain is not None else None

    @property
    def drafting(self) -> Drafting:
        """How the next answer drafts."""
        return self.settings.drafting

    def _finished(self, job: Job, result: object) -> None:
        self._looking = self._looking and job is not Job.SCAN
        match job, result:
            case Job.SCAN, list():
                self._scanned(result)
            case Job.JUDGE, Known() if self._is_running(result.running):
                self._known = dict(result.found)
                self._show_drafts()
            case Job.JUDGE, Judgement() if str(result.target) == self.target_key:
                self._verdicts[result.draft] = result.verdict
                self._show()
            case Job.LOAD, _:
                self._target_settled(result if isinstance(result, Loaded) else None)
            case Job.DRAFT, _:
                self._draft_settled(None if result is None else str(result))

    def _failed(self, job: Job, reason: Reason) -> None:
        self._looking = self._looking and job is not Job.SCAN
        match job:
            case Job.LOAD:
                self._forget_target_precision()
                self._target_settled(None)
            case Job.DRAFT:
                self._draft_lost()
            case Job.SCAN:
                self.first_run = not self._entries
            case _:
                return
        self._alerts.show_reason(reason)

    def _moved(self, job: Job, progress: Progress) -> None:
        if job is Job.LOAD and self._loading_path is not None:
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
        """Other models may be there, and the same in other files. What runs stays listed."""
        before = {entry.path: entry for entry in self._entries}
        first = not any(_usable(entry) for entry in self._entries)
        running = {self.target_key, self.draft, str(self._loading_path), self._loading_draft}
        paths = {entry.path for entry in entries}
        gone = [e for p, e in before.items() if str(p) in running and p not in paths]
        self._entries = [*entries, *gone]
        same = {entry.path for entry in self._entries if entry == before.get(entry.path)}
        self._verdicts = {path: v for path, v in self._verdicts.items() if path in same}
        usable = [e.path for e in self._entries if _usable(e)]
        self._welcome()
        self._offer()
        self._show()
        if usable and first and self.loaded is None and not self.busy:
            last = next((p for p in usable if str(p) == self.settings.target), usable[0])
            self._load_last(str(last))
        elif self.loaded is not None:
            self._judge()
        self.settled.emit()

    def _load_last(self, key: str) -> None:
        """Load a target unasked, unless that ended the program the last time."""
        if self._mark.left != key:
            self.choose_target(key)
            return
        self._mark.clear()
        said = self.tr(
            "The program ended while {name} was being loaded. It is not loaded unasked this time."
        )
        self._alerts.show(said.format(name=self.name_of(key)), Action.CHOOSE_MODEL)

    def _load_target(
        self, key: str, precision: Precision | None, agreed: Pair | None = None
    ) -> None:
        """Load it, unless it does not fit and the user has not `agreed` to what it makes."""
        if self._loading_path is not None:
            return
        self._alerts.dismiss()
        pair = agreed or self._pair_of(key, precision)
        if self._hold(key, precision, None if agreed else pair, draft=False):
            return
        self._next_draft = ""
        self._loading_path, self._loading_precision = Path(key), precision
        self._loading_pair = None if pair is None else self.memory.settle(pair)
        self.loading_share = 0.0
        self.loading = self.tr("Loading {name}").format(name=self._name(Path(key)))
        self._mark.put(key)
        self._worker.load_target(Path(key), precision, self._loading_pair)
        self._show()

    def _hold(self, key: str, precision: Precision | None, pair: Pair | None, draft: bool) -> bool:
        """Hold back what would make `pair` where that does not fit; whether it does not."""
        fit = None if pair is None else self.memory.fit(pair)
        held = pair is not None and fit is not None and fit.word == "no"
        self._held = _Held(key, precision, pair, draft) if held and pair is not None else None
        if held:
            self._show()
        return held

    def _let_go(self) -> None:
        """What runs is what is wanted."""
        if self._held is not None:
            self._held = None
            self._show()

    def _target_settled(self, loaded: Loaded | None) -> None:
        path, self._loading_path = self._loading_path, None
        self._mark.clear()
        if loaded is not None:
            self._target_path = path
            self._on_cards = self._loading_pair.on_cards if self._loading_pair else ()
            self._remember(self.settings.with_target(self.target_key, self._loading_precision))
            self.draft = NONE
            self.loaded = loaded
            self.context = self._context_of(self.target_key, loaded.context)
            self._worker.limit_context(self.context)
            self._refusal = self._shelf.refusal(loaded.info)
            self._verdicts, self._known = {}, {}
            self._offer()
            self._judge()
            self._restore_draft()
        self.loading = ""
        self._welcome()
        self._show()
        self.settled.emit()

    def _welcome(self) -> None:
        """On the first run nothing is here, and nothing from elsewhere runs or is on its way."""
        here = any(map(_usable, self._entries))
        self.first_run = not here and self.loaded is None and not self.busy

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

    def _load_draft(self, key: str, precision: Precision | None, *, checked: bool = False) -> None:
        """Load it, unless it does not fit and nobody has said to load it anyway."""
        self._alerts.dismiss()
        pair = None if checked else self._pair_beside(key, precision)
        if self._hold(key, precision, pair, draft=True):
            return
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
            self._learn()
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
        """Have every other model judged as a draft for the target; tried ones are known at once."""
        self._worker.stop_looking()
        self._learn()
        if self.loaded is None or self._refusal is not None:
            return
        target = next((e for e in self._entries if e.path == self._target_path), None)
        if target is None:
            return
        for entry in self._entries:
            if entry.problem is None and entry.path not in self._verdicts:
                self._worker.look(Job.JUDGE, self._judging(target, entry))

    def _judging(self, target: Entry, draft: Entry) -> Task:
        return lambda report, stopped: self._shelf.judge(target, draft, stopped)

    def _running(self, loaded: Loaded) -> Running:
        drafts: dict[str, Precision | None] = {NONE: None, NGRAM: None}
        for entry in self._entries:
            if entry.info is not None and entry.path != self._target_path:
                key = str(entry.path)
                drafts[key] = self._draft_precision(key) or loaded.precision
        return Running(Path(self.target_key), loaded.precision, loaded.device, drafts)

    def _is_running(self, running: Running) -> bool:
        return self.loaded is not None and running == self._running(self.loaded)

    def _learn(self, trial: Trial | None = None) -> None:
        """Have it found what was measured of the target's drafts, and `trial` added to it."""
        if self.loaded is not None:
            running = self._running(self.loaded)
            self._worker.look(Job.JUDGE, lambda report, stopped: self._shelf.known(running, trial))

    def _offer(self) -> None:
        """What could be fetched for the target."""
        loaded = self.loaded
        self._offers = [] if loaded is None else self._shelf.offers(loaded.info, self._entries)

    def _remember(self, settings: Settings) -> None:
        self.settings = settings
        self._keeping.start()

    def keep(self) -> None:
        """Write the settings that were changed and not yet written; the engine learns of the
        context."""
        self._keeping.stop()
        if self.loaded is not None and not self.busy:
            self._worker.limit_context(self.context)
        try:
            self._keep(self.settings)
        except OSError as error:
            text = self.tr("The settings could not be saved: {detail}")
            self._alerts.show(text.format(detail=error.strerror or str(error)))

    def _name(self, path: Path) -> str:
        return next((e.name for e in self._entries if e.path == path), path.stem)

    def _info(self, key: str) -> ModelInfo | None:
        return next((e.info for e in self._entries if str(e.path) == key), None)

    def _show(self) -> None:
        self.targets = target_rows(self._entries, self.target_key)
        self.choosing = bool(self._loading_draft)
        self.fitting = self._loading_draft not in ("", NONE, NGRAM)
        self._show_drafts()
        self._show_running()

    def _show_drafts(self) -> None:
        """The list of drafts, as far as it differs from the one that is shown."""
        if self.loaded is None:
            self.drafts = ()
            return
        held = self._held.key if self._held is not None and self._held.draft else ""
        known = Drafts(
            entries=self._entries,
            chosen=self._next_draft or self._loading_draft or held or self.draft,
            loading=self._loading_draft,
            refusal=self._refusal,
            verdicts=self._verdicts,
            measured=self._known,
            fits=self._fits(self.loaded),
            offers=self._offers,
        )
        self.drafts = draft_rows(known)

    def _fits(self, loaded: Loaded) -> dict[str, Fit]:
        """Whether each draft fits beside the target, by its key."""
        infos = {str(e.path): e.info for e in self._entries if e.info is not None}
        offered = {g.offer.repository: g.info for g in self._offers if g.info is not None}
        found = {
            key: self.memory.fit(self._pair_with(loaded, key, info))
            for key, info in {**infos, **offered}.items()
        }
        return {key: fit for key, fit in found.items() if fit is not None}

    def _pair_with(self, loaded: Loaded, key: str, draft: ModelInfo | None) -> Pair:
        """The running target, where it lies, beside a draft."""
        precision = self._draft_precision(key) or loaded.precision
        return Pair(
            loaded.info,
            loaded.precision,
            self.context,
            draft,
            precision,
            layers_in_ram=loaded.layers_in_ram,
            on_cards=self._on_cards,
        )

    def _pair_beside(self, key: str, precision: Precision | None) -> Pair | None:
        """What loading the draft `key` would make; None where it takes no memory."""
        info = self._info(key)
        if self.loaded is None or info is None:
            return None
        pair = self._pair_with(self.loaded, key, info)
        return replace(pair, draft_precision=precision or self.loaded.precision)

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
        info = self._info(self.draft)
        chosen = self._draft_precision(self.draft)
        self.draft_precisions = (
            precisions.draft_precisions(info, loaded, chosen, speeds.get(self.draft, {}))
            if info is not None
            else ()
        )
        self._show_memory()

    def _sampled(self, rooms: object) -> None:
        """What the devices have free now."""
        if isinstance(rooms, list) and rooms and self.memory.show_rooms(rooms):
            self._show_drafts()

    def _show_memory(self) -> None:
        """What runs, and what was held back."""
        loaded, running = self.loaded, None
        if loaded is not None:
            running = self._pair_with(loaded, self.draft, self._info(self.draft))
        self.memory.show(running, self._held.pair if self._held is not None else None)

    def _pair_of(self, key: str, precision: Precision | None) -> Pair | None:
        """What loading the target `key` would make: with the draft last used beside it, which is
        loaded next, unless that is too much."""
        info = self._info(key)
        if info is None:
            return None
        automatic: Precision = "int8" if self.memory.device == "cpu" else "bf16"
        context = self._context_of(key, info.context or USUAL_CONTEXT)
        alone = Pair(info, precision or automatic, context)
        last = self.settings.drafts.get(key, NGRAM)
        beside = self._draft_precision(last) or alone.precision
        both = replace(alone, draft=self._info(last), draft_precision=beside)
        fit = self.memory.fit(both)
        return alone if fit is not None and fit.word == "no" else both

    def _context_of(self, key: str, most: int) -> int:
        return min(self.settings.contexts.get(key, USUAL_CONTEXT), most)

    def _take(self, pair: Pair) -> None:
        """A way out that the user chose."""
        held, loaded = self._held, self.loaded
        if held is not None and not held.draft:
            self._take_target(held, pair)
        elif loaded is None:
            return
        elif pair.draft is None and (held is not None or self.draft not in (NONE, NGRAM)):
            self.choose_draft(NGRAM)
        elif not self._runs_as(loaded, pair):
            self._take_anew(held, loaded, pair)
        elif pair.context != self.context:
            self.choose_context(pair.context)
            if held is not None:
                self._load_draft(held.key, held.precision)
        elif held is not None:
            self._load_draft(held.key, pair.draft_precision)
        elif pair.draft is not None:
            self.choose_draft_precision(pair.draft_precision)

    def _runs_as(self, loaded: Loaded, pair: Pair) -> bool:
        """Whether the target of `pair` is the one that runs, in its precision and where it lies."""
        asked = pair.precision, pair.layers_in_ram, pair.on_cards
        return asked == (loaded.precision, loaded.layers_in_ram, self._on_cards)

    def _take_target(self, held: _Held, pair: Pair) -> None:
        """The target that was held back, loaded otherwise."""
        self._remember(self.settings.with_context(held.key, pair.context))
        changed = pair.precision != held.pair.precision
        self._load_target(
            held.key,
            pair.precision if changed else held.precision,
            pair if pair.layers_in_ram else None,
        )

    def _take_anew(self, held: _Held | None, loaded: Loaded, pair: Pair) -> None:
        """The running target, loaded otherwise; the draft that was held back comes after it."""
        if held is not None:
            kept = self.settings.with_draft(self.target_key, held.key)
            self._remember(kept.with_draft_precision(held.key, held.precision))
        changed = pair.precision != loaded.precision
        self._load_target(
            self.target_key,
            pair.precision if changed else self._chosen_precision,
            pair if pair.layers_in_ram else None,
        )


def _usable(entry: Entry) -> bool:
    return entry.problem is None and entry.info is not None and entry.info.kind is Kind.MODEL
