"""Which model runs and what drafts for it: loading them, and how they run.

Decides what the target card, the draft list, the first-run screen and the loading line say.
Knows no widget and loads nothing itself: the worker does.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.lanes import Job
from app.mark import Mark
from app.setting import Value
from app.settings import Settings, changed
from app.viewmodels import precisions, words
from app.viewmodels.alerts import Action, Alerts
from app.viewmodels.binding import Property
from app.viewmodels.fit import Fitting
from app.viewmodels.library import Library
from app.viewmodels.pairs import Asked, Pairs, wanted_context
from app.viewmodels.precisions import Badge
from app.viewmodels.rows import Row
from app.viewmodels.shelf import ShelfLike, Trial
from app.viewmodels.starter import Starter
from app.worker import Worker
from engine import measured
from engine.api import Drafting, Loaded, ModelInfo, Precision, Progress, Usage, Verification
from engine.errors import Reason
from engine.fit import Fit, Pair
from engine.library.inspect import repository_of
from engine.library.scan import Entry

NONE, NGRAM, AUTO = measured.NONE, measured.NGRAM, measured.AUTO
LOOK_MS = 2000  # between two looks at the folders
KEEP_MS = 500  # a slider changes the settings with every step
MEASURABLE = 32  # tokens of an answer whose speed says something


class Models(QObject):
    """The loaded target, the chosen draft, and what there is to choose from."""

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
        self._library = Library(worker, shelf, self)
        self._library.judged.connect(self._show_drafts)
        self.target_key = ""  # the running target's path, empty without one
        self._loading: Asked | None = None
        self._loading_pair: Pair | None = None
        self._loading_draft: Asked | None = None
        self._next_draft = self._held_by_auto = ""
        self.starter = Starter(worker, shelf, alerts, self)
        self.starter.fetched.connect(self.start)
        self.memory = Fitting(self)
        self.memory.taken.connect(self._take)
        self._pairs = Pairs(self.memory, self._library)
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
        if not self._looking and not self.busy and self._loading_draft is None:
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
            self._load_target(Asked(key, self.settings.precisions.get(key)))

    def choose_precision(self, key: str) -> None:
        """Run the target in the precision `key`, or "auto": it is loaded anew, and runs as it did
        until that has worked."""
        chosen = precisions.named(key)
        if self.target_key and chosen != self._chosen_precision:
            self._load_target(Asked(self.target_key, chosen))

    def choose_context(self, tokens: int) -> None:
        """Let the target hold `tokens`: at once in what is shown, in the engine once the slider
        rests."""
        held = self._pairs.held
        if self.loaded is None or (held is not None and not held.draft):
            self.memory.choose_context(tokens)
            return
        self.context = max(1, min(tokens, self.loaded.context))
        self._remember(self.settings.with_context(self.target_key, self.context))
        self._pairs.limit(self.context)
        self._pairs.show(self._draft_as_wanted(self._held_by_auto or self.draft))
        self._show_drafts()

    def load_anyway(self) -> None:
        """Load what was held back because it did not fit."""
        held, judged = self._pairs.held, self.memory.pair
        if held is None or judged is None:
            return
        if held.draft:
            self._load_draft(held, anyway=True)
        else:
            self._remember(self.settings.with_context(held.key, judged.context))
            self._load_target(held, judged)

    def choose_draft(self, key: str) -> None:
        """Draft with one of `measured.WITHOUT_MODEL` or the model at path `key`; while another
        draft is loaded, the last choice is loaded after it."""
        if self._loading_draft is not None:
            self._next_draft = "" if key == self._loading_draft.key else key
            self._show()
            return
        if key == self.draft:
            self._let_go()
        else:
            self._load_draft(self._draft_as_wanted(key))

    def choose_draft_precision(self, key: str) -> None:
        """Run the draft in the precision `key`, or "same" for the target's: it is loaded anew."""
        chosen = precisions.named(key)
        free = self._loading_draft is None and not self.busy
        asked = Asked(self.draft, chosen)
        if free and self.draft_precisions and asked != self._draft_as_wanted(self.draft):
            self._load_draft(asked)

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
        self.learn(Trial(key, speed, usage.tokens, usage.acceptance_rate))

    def learn(self, trial: Trial) -> None:
        """Keep what was measured of a draft of the running target."""
        self._library.learn(self.settings.draft_precisions, trial)

    def draft_again(self) -> None:
        """Load the draft anew: the engine has drafted with others meanwhile."""
        if self.loaded is not None and self._loading_draft is None:
            self._load_draft(self._draft_as_wanted(self.draft), anyway=True)

    def set(self, name: str, value: Value) -> None:
        """Give a setting of the table another value."""
        self._remember(changed(self.settings, name, value))
        self._show_running()

    @property
    def busy(self) -> bool:
        """Whether a target is being loaded."""
        return self._loading is not None

    @property
    def target_name(self) -> str:
        """The running target's name, empty without one."""
        return self.name_of(self.target_key)

    @property
    def _chosen_precision(self) -> Precision | None:
        """The one that the user wants the target to have; None: automatic."""
        return self.settings.precisions.get(self.target_key)

    def _draft_as_wanted(self, key: str) -> Asked:
        """A draft in the precision that the user wants it to have; None: its target's."""
        return Asked(key, self.settings.draft_precisions.get(key))

    @property
    def draft_name(self) -> str:
        """The draft in words, empty without one."""
        if self.draft == NONE:
            return ""
        short = {
            AUTO: self.tr("the fastest"),
            NGRAM: self.tr("repeats"),
            measured.SUFFIX: self.tr("past answers"),
            measured.CHAIN: self.tr("all chats"),
            measured.MTP: self.tr("own head"),
        }
        return short.get(self.draft) or self.name_of(self.draft)

    def has(self, key: str) -> bool:
        """Whether the model at path `key` is here and can be a target."""
        return key in self._library.targets

    def name_of(self, key: str) -> str:
        """What the model at path `key` is called."""
        return self._library.name(key)

    def info_of(self, key: str) -> ModelInfo | None:
        """What the files of the model at path `key` say."""
        return self._library.info(key)

    def is_translated(self, key: str) -> bool:
        """Whether the draft at path `key` has another vocabulary than the running target."""
        verdict = self._library.known.verdicts.get(Path(key))
        return verdict is not None and verdict.translated

    @property
    def plain_speed(self) -> float | None:
        """Tokens per second of the running target without a draft, as last measured here."""
        plain = self._library.known.measured.get(NONE)
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
                self.first_run = not self._library.known.entries
            case _:
                return
        self._alerts.show_reason(reason)

    def _moved(self, job: Job, progress: Progress) -> None:
        if job is not Job.LOAD or self._loading is None:
            return
        once = {
            "tokenizer": self.tr("Preparing the tokenizer (once per model)"),
            "quality": self.tr("Measuring what 8 bits cost (once per model)"),
            "exactness": self.tr("Checking that drafts change no bit (once per model)"),
        }
        if progress.stage in once:
            self.loading = once[progress.stage]
        elif progress.total > 0:
            self.loading_share = progress.done / progress.total
            said = self.tr("Loading {name}, {share}")
            share = words.percent(self.loading_share)
            self.loading = said.format(name=self.name_of(self._loading.key), share=share)

    def _scanned(self, entries: list[Entry]) -> None:
        """Other models may be there, and the same in other files. What runs stays listed."""
        first = not self._library.targets
        loading = {asked.key for asked in (self._loading, self._loading_draft) if asked is not None}
        in_use = {self.target_key, self.draft, *loading}
        self._library.renew(entries, in_use, self.settings.draft_precisions)
        usable = self._library.targets
        self._welcome()
        self._show()
        if usable and first and self.loaded is None and not self.busy:
            last = self.settings.target
            self._load_last(last if last in usable else usable[0])
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

    def _load_target(self, asked: Asked, agreed: Pair | None = None) -> None:
        """Load it, unless it does not fit and the user has not `agreed` to what it makes."""
        if self.busy:
            return
        self._alerts.dismiss()
        pair = agreed or self._pairs.of_target(asked, self.settings)
        if self._pairs.hold(asked, None if agreed else pair, draft=False):
            self._show()
            return
        self._next_draft = self._held_by_auto = ""
        self._loading = asked
        self._loading_pair = None if pair is None else self.memory.settle(pair)
        self.loading_share = 0.0
        self.loading = self.tr("Loading {name}").format(name=self.name_of(asked.key))
        self._mark.put(asked.key)
        self._worker.load_target(Path(asked.key), asked.precision, self._loading_pair)
        self._show()

    def _let_go(self) -> None:
        """What runs is what is wanted."""
        if self._pairs.held is not None:
            self._pairs.held = None
            self._show()

    def _target_settled(self, loaded: Loaded | None) -> None:
        asked, self._loading = self._loading, None
        self._mark.clear()
        if loaded is not None and asked is not None:
            self._begin(loaded, asked)
        self.loading = ""
        self._welcome()
        self._show()
        self.settled.emit()

    def _welcome(self) -> None:
        """On the first run nothing is here, and nothing from elsewhere runs or is on its way."""
        here = bool(self._library.targets)
        self.first_run = not here and self.loaded is None and not self.busy

    def _begin(self, loaded: Loaded, asked: Asked) -> None:
        """Another target runs; its draft comes after it."""
        self.target_key = asked.key
        self._remember(self.settings.with_target(asked.key, asked.precision))
        self.draft = NONE
        context = wanted_context(self.settings, asked.key, loaded.context)
        self._pairs.run(loaded, context, self._loading_pair)
        self.loaded = loaded
        self.context = context
        self._worker.limit_context(context)
        self._library.begin(asked.key, loaded, self.settings.draft_precisions)
        self._restore_draft()

    def _forget_target_precision(self) -> None:
        """A kept precision that failed is not tried for ever: the next time it is automatic."""
        failed, kept = self._loading, self.settings.precisions
        if failed is not None and (failed.key, failed.precision) in kept.items():
            others = {key: p for key, p in kept.items() if key != failed.key}
            self._remember(replace(self.settings, precisions=others))

    def _restore_draft(self) -> None:
        """The draft last used with this target; at first the one that needs no memory."""
        last = self.settings.drafts.get(self.target_key, NGRAM)
        known = last in measured.WITHOUT_MODEL or self._library.find(last) is not None
        if self._library.known.refusal is None:
            self.choose_draft(last if known else NGRAM)

    def _load_draft(self, asked: Asked, *, anyway: bool = False) -> None:
        """Load it, unless it does not fit and nobody has said to load it anyway."""
        self._alerts.dismiss()
        pair = None if anyway else self._pairs.of_draft(asked)
        if self._pairs.hold(asked, pair, draft=True):
            self._show()
            return
        self._loading_draft = asked
        if asked.key in measured.WITHOUT_MODEL:
            self._choose_built_in(asked.key)
        else:
            self._held_by_auto = ""
            self._worker.choose_draft(Path(asked.key), asked.precision)
        self._show()

    def _choose_built_in(self, key: str) -> None:
        """With "auto" comes the best of the models, in the precision that it is wanted in."""
        self._held_by_auto = held = self.best_draft() if key == AUTO else ""
        precision = self.settings.draft_precisions.get(held)
        self._worker.choose_draft(key, precision, Path(held) if held else None)

    def best_draft(self) -> str:
        """The path of the model that "auto" holds, empty without one that fits and is advised."""
        return self._library.best_draft(self._fit)

    def _draft_settled(self, key: str | None) -> None:
        asked, self._loading_draft = self._loading_draft, None
        if key is not None:
            self.draft = key
        else:
            self.draft = NONE
            # Stopped: whether the old draft was already given up is known to the engine alone.
            if not self._next_draft:
                self._worker.choose_draft(NONE)
        if asked is not None and key == asked.key:
            self._remember_draft(asked)
            self._library.learn(self.settings.draft_precisions)
        self._show()
        self._take_next_draft()

    def _draft_lost(self) -> None:
        """A draft that cannot be loaded turns drafting off; the chat goes on without it. A kept
        precision that failed is not tried for ever."""
        failed, self._loading_draft = self._loading_draft, None
        kept = self.settings.draft_precisions
        if failed is not None and (failed.key, failed.precision) in kept.items():
            self._remember(self.settings.with_draft_precision(failed.key, None))
        self.draft = NONE
        self._show()
        self._take_next_draft()

    def _take_next_draft(self) -> None:
        """What was chosen while another draft was loaded."""
        key, self._next_draft = self._next_draft, ""
        if key:
            self._load_draft(self._draft_as_wanted(key))

    def _remember_draft(self, asked: Asked) -> None:
        kept = self.settings.with_draft(self.target_key, asked.key)
        self._remember(kept.with_draft_precision(asked.key, asked.precision))

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

    def _show(self) -> None:
        asked = self._loading_draft
        self.targets = self._library.as_targets()
        self.choosing = asked is not None
        self.fitting = asked is not None and (
            asked.key not in measured.WITHOUT_MODEL or bool(self._held_by_auto)
        )
        self._show_drafts()
        self._show_running()

    def _show_drafts(self) -> None:
        """The list of drafts, as far as it differs from the one that is shown."""
        if self.loaded is None:
            self.drafts = ()
            return
        held = self._pairs.held
        loading = self._loading_draft.key if self._loading_draft is not None else ""
        waiting = held.key if held is not None and held.draft else ""
        self.drafts = self._library.as_drafts(
            self._next_draft or loading or waiting or self.draft,
            loading,
            self._fit,
        )

    def _fit(self, key: str, info: ModelInfo) -> Fit | None:
        return self._pairs.fit(info, self.settings.draft_precisions.get(key))

    def _show_running(self) -> None:
        """How target and draft run, and how else they could."""
        loaded, settings = self.loaded, self.settings
        self._pairs.show(self._draft_as_wanted(self._held_by_auto or self.draft))
        if loaded is None:
            return
        chosen, speeds = self._chosen_precision, settings.speeds
        self.badge = precisions.exactness(loaded, settings.verification)
        self.precision = precisions.in_words(loaded, chosen)
        self.target_precisions = precisions.target_precisions(
            loaded, chosen, speeds.get(self.target_key, {})
        )
        info = self._library.info(self.draft)
        chosen = settings.draft_precisions.get(self.draft)
        self.draft_precisions = (
            precisions.draft_precisions(info, loaded, chosen, speeds.get(self.draft, {}))
            if info is not None
            else ()
        )

    def _sampled(self, rooms: object) -> None:
        """What the devices have free now."""
        if isinstance(rooms, list) and rooms and self.memory.show_rooms(rooms):
            self._show_drafts()

    def _take(self, pair: Pair) -> None:
        """A way out that the user chose."""
        held, running = self._pairs.held, self._pairs.target
        if held is not None and not held.draft:
            self._remember(self.settings.with_context(held.key, pair.context))
            self._load_otherwise(held, held.pair, pair)
        elif running is None:
            return
        elif pair.draft is None and (held is not None or self.draft not in measured.WITHOUT_MODEL):
            self.choose_draft(NGRAM)
        elif not self._pairs.is_running(pair):
            if held is not None:  # it comes after the target
                self._remember_draft(held)
            self._load_otherwise(Asked(self.target_key, self._chosen_precision), running, pair)
        elif pair.context != self.context:
            self.choose_context(pair.context)
            if held is not None:
                self._load_draft(held)
        elif held is not None:
            self._load_draft(replace(held, precision=pair.draft_precision))
        elif pair.draft is not None:
            self.choose_draft_precision(pair.draft_precision)

    def _load_otherwise(self, asked: Asked, before: Pair, pair: Pair) -> None:
        """The target that was `asked` for, loaded as in `pair` where that is not as `before`."""
        changed = pair.precision != before.precision
        self._load_target(
            replace(asked, precision=pair.precision) if changed else asked,
            pair if pair.layers_in_ram else None,
        )
