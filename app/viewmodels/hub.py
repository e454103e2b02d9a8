"""Models on the hub: what a search finds, what one of them takes, and what may be asked at all.

Decides what the dialog says. Whatever needs the network or the keyring runs in the worker's hub
lane; the downloads themselves are `downloads`'. Knows no widget.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import paths, places, resources
from app.hub_token import Source, Tokens
from app.lanes import Job, Report, Stopped
from app.places import Wanted
from app.viewmodels import hub_words, words
from app.viewmodels.binding import Property
from app.viewmodels.downloads import LOCKED, Downloads
from app.viewmodels.folders import Folders
from app.viewmodels.rows import Row
from app.worker import Worker
from engine.api import Progress
from engine.errors import EngineError, Reason
from engine.library import hub, plan
from engine.library.download import Space
from engine.library.hub import Access, Contents, Found
from engine.library.patience import patiently
from engine.library.plan import Plan


@dataclass(frozen=True)
class Detail:
    """The chosen repository. `choices`: its models, where there are several; `size` and `room` are
    sentences on what a download takes and whether it fits on the disk; `place` says where it goes,
    or why not elsewhere; `elsewhere`: another folder may help; `ready`: it can be got.
    `waiting` says how long the hub wants to be left alone first, `problem` why it cannot, `locked`
    that a token may help, `page` where its terms are."""

    repository: str
    about: str = ""
    reading: bool = True
    choices: tuple[Row, ...] = ()
    size: str = ""
    room: str = ""
    place: str = ""
    fits: bool = True
    elsewhere: bool = False
    ready: bool = False
    waiting: str = ""
    problem: str = ""
    locked: bool = False
    page: str = ""


class _Ask(StrEnum):
    SEARCH = "search"
    LOOK = "look"
    CHOOSE = "choose"
    PLACE = "place"
    BEGUN = "begun"
    TOKEN = "token"


@dataclass(frozen=True)
class _Answer:
    """What came of asking `ask` about `subject`; a reason instead of a value where it failed."""

    ask: _Ask
    subject: str
    value: object
    reason: Reason | None = None


@dataclass(frozen=True)
class _Seen:
    """A repository, and a plan for it with its place where there is but one model to choose."""

    held: Contents
    plan: Plan | None = None
    place: "_Place | None" = None


@dataclass(frozen=True)
class _Place:
    """Where a plan goes, and its space there; or why it goes nowhere."""

    wanted: Wanted | None = None
    space: Space | None = None
    reason: Reason | None = None


class Hub(QObject):
    """Search, detail, downloads, the token and the offline switch.

    `opened` asks for the dialog; `fetched` has the path of a model that is there now.
    """

    opened = Signal()
    fetched = Signal(object)  # Path
    query_changed = Signal(object)
    searching_changed = Signal(object)
    results_changed = Signal(object)
    said_changed = Signal(object)
    detail_changed = Signal(object)
    offline_changed = Signal(object)
    token_changed = Signal(object)
    word_changed = Signal(object)

    query = Property[str]("")
    searching = Property[bool](False)
    results = Property[tuple[Row, ...]](())
    said = Property[str]("")  # what stands in place of results
    detail = Property[Detail | None](None)
    offline = Property[bool](False)
    token = Property[Source](Source.NONE)
    word = Property[str]("")  # the state in a word: "Offline", "45 %" of a download, or nothing

    def __init__(
        self,
        worker: Worker,
        folders: Folders,
        offline: bool,
        keep: Callable[[bool], object],
        tokens: Tokens | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker, self._folders, self._keep = worker, folders, keep
        self._tokens = tokens or Tokens()
        self._found: dict[str, Found] = {}
        self._held: Contents | None = None
        self._plan: Plan | None = None
        self._wanted: Wanted | None = None
        self.fixed = hub.is_offline()  # by the environment: it cannot be switched off here
        self.downloads = Downloads(worker, lambda: folders.settings, self._access, self)
        self.downloads.fetched.connect(self.fetched)
        self.downloads.fetched.connect(self._measure)
        self.downloads.items_changed.connect(self._show_word)
        self.offline_changed.connect(self._show_word)
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)
        self.offline = offline or self.fixed
        self.said = self._invitation()

    def open(self) -> None:
        """Show the dialog; what was begun earlier is looked for."""
        self._ask(_Ask.BEGUN, "", lambda: places.unfinished(self._folders.settings))
        self._ask(_Ask.TOKEN, "", lambda: self._tokens.find().source)
        self.opened.emit()

    def open_for(self, repository: str) -> None:
        """Show the dialog with this repository chosen."""
        self.open()
        self.choose(repository)

    def search(self, text: str) -> None:
        """Look for models whose name holds `text`; the name or address of one is chosen at once."""
        self.query = text = hub_words.plain(text)
        self.results, self._found = (), {}
        self.searching = bool(text)
        self.said = self._searching() if text else self._invitation()
        if text:
            self._ask_hub(_Ask.SEARCH, text, lambda: hub.search(text, self._access()))

    def choose(self, repository: str) -> None:
        """Look at what a repository holds and takes."""
        self._held = self._plan = self._wanted = None
        found = self._found.get(repository)
        page = f"{hub.endpoint()}/{repository}"
        self.detail = Detail(repository, hub_words.about(found) if found else "", page=page)
        self.results = tuple(replace(row, checked=row.key == repository) for row in self.results)
        self._ask_hub(_Ask.LOOK, repository, lambda: self._look(repository))

    def choose_file(self, file: str) -> None:
        """Of a repository with several models, this one."""
        held, detail = self._held, self.detail
        if held is None or detail is None:
            return
        rows = tuple(replace(row, checked=row.key == file) for row in detail.choices)
        self._plan = self._wanted = None
        self.detail = replace(
            detail,
            choices=rows,
            reading=True,
            size="",
            room="",
            place="",
            elsewhere=False,
            ready=False,
            problem="",
        )
        subject = f"{held.repository}/{file}"
        self._ask_hub(_Ask.CHOOSE, subject, lambda: self._planned(held, file))

    def move(self, folder: Path) -> None:
        """Have downloads go into `folder` from now on; see whether what is chosen fits there."""
        detail, made = self.detail, self._plan
        refusal = self._folders.download_to(folder)
        if detail is None or made is None:
            return
        if refusal:
            self.detail = replace(detail, place=refusal)
            return
        self.detail = replace(detail, ready=False)
        self._measure()

    def get(self) -> None:
        """Fetch what is chosen."""
        if self._wanted is not None and self.detail is not None and self.detail.ready:
            self.downloads.get(self._wanted)

    @property
    def is_coming(self) -> bool:
        """Whether what is chosen comes or waits already."""
        return self._plan is not None and self.downloads.is_coming(self._plan)

    def repair(self, path: Path) -> None:
        """Fetch again what is damaged of the model at `path`, and nothing else of it."""
        self.open()
        self.downloads.repair(path)

    def set_offline(self, wanted: bool) -> None:
        """Ask nothing of the network from now on, or again; what comes just now is paused."""
        if self.fixed:
            return
        self._keep(wanted)
        self.offline = wanted
        if wanted:
            self._worker.stop_fetching()
            self.downloads.pause_all()

    def set_token(self, value: str) -> None:
        """Use this token, and look again at what was refused without it."""
        self._change_token(lambda: self._tokens.keep(value))

    def remove_token(self) -> None:
        """Forget the token that was typed in."""
        self._change_token(self._tokens.remove)

    def _change_token(self, change: Callable[[], None]) -> None:
        def work() -> Source:
            change()
            return self._tokens.find().source

        self._ask(_Ask.TOKEN, "", work)
        if self.detail is not None and self.detail.locked:
            self.choose(self.detail.repository)

    def _access(self) -> Access:
        """Called in a lane: the keyring may take its time."""
        if self.offline:
            return Access(offline=True)
        return Access(self._tokens.find().value)

    def _look(self, repository: str) -> _Seen:
        access = self._access()
        held = hub.contents(repository, None, access)
        return _Seen(held) if plan.choices(held) else self._planned(held, None)

    def _planned(self, held: Contents, file: str | None) -> _Seen:
        made = plan.choose(held, file, self._access())
        return _Seen(held, made, self._placed(made))

    def _placed(self, made: Plan) -> _Place:
        """Called in a lane, as the two above."""
        try:
            return _Place(*places.choose(made, self._folders.settings))
        except EngineError as error:
            return _Place(reason=error.reason)

    def _measure(self, *_: object) -> None:
        """See what is still to come of what is chosen, and whether it fits."""
        made = self._plan
        if made is not None:
            self._ask(_Ask.PLACE, made.key, lambda: self._placed(made))

    def _ask(self, ask: _Ask, subject: str, work: Callable[[], object]) -> None:
        self._worker.ask(lambda _, __: _answer(ask, subject, work))

    def _ask_hub(self, ask: _Ask, subject: str, work: Callable[[], object]) -> None:
        """As `_ask`, for what may have to wait; not once something else is wanted."""

        def task(report: Report, stopped: Stopped) -> _Answer:
            def ended() -> bool:
                hub.require_online(Access(offline=self.offline))
                return stopped() or not self._is_wanted(ask, subject)

            return _answer(ask, subject, lambda: patiently(work, report, ended))

        self._worker.ask(task)

    def _is_wanted(self, ask: _Ask, subject: str) -> bool:
        """Whether the answer would be shown. Called in a lane, too: what it reads is never
        changed, but replaced."""
        if ask is _Ask.SEARCH:
            return self.searching and subject == self.query
        return self._is_awaited(subject)

    def _moved(self, job: Job, progress: Progress) -> None:
        """The hub lane waits."""
        if job is not Job.HUB:
            return
        if self.searching:
            self.said = words.waiting(progress)
        elif self.detail is not None and self.detail.reading:
            self.detail = replace(self.detail, waiting=words.waiting(progress))

    def _finished(self, job: Job, answer: object) -> None:
        if job is not Job.HUB or not isinstance(answer, _Answer):
            return
        match answer.ask, answer.value:
            case _Ask.SEARCH, found if self._is_wanted(answer.ask, answer.subject):
                self._show_found(found if isinstance(found, list) else [], answer.reason)
            case _Ask.LOOK | _Ask.CHOOSE, seen if self._is_awaited(answer.subject):
                self._show_seen(seen if isinstance(seen, _Seen) else None, answer.reason)
            case _Ask.PLACE, _Place() as place if self._is_planned(answer.subject):
                self._show_place(place)
            case _Ask.BEGUN, list(found):
                self.downloads.show_begun(found)
            case _Ask.TOKEN, Source() as source:
                self.token = source

    def _failed(self, job: Job, reason: Reason) -> None:
        """An error nobody has foreseen; the log has more."""
        if job is not Job.HUB:
            return
        if self.searching:
            self._show_found([], reason)
        elif self.detail is not None and self.detail.reading:
            self._show_seen(None, reason)

    def _is_awaited(self, subject: str) -> bool:
        detail = self.detail
        if detail is None or not detail.reading:
            return False
        file = next((row.key for row in detail.choices if row.checked), "")
        return subject == (f"{detail.repository}/{file}" if file else detail.repository)

    def _is_planned(self, key: str) -> bool:
        return self._plan is not None and self._plan.key == key

    def _show_found(self, found: list[Found], reason: Reason | None) -> None:
        self.searching = False
        self._found = {one.repository: one for one in found}
        chosen = self.detail.repository if self.detail is not None else ""
        rows = [
            Row(
                one.repository,
                one.repository,
                "",
                hub_words.about(one),
                checked=one.repository == chosen,
                fit=hub_words.refusal(one),
                fit_tone="bad",
            )
            for one in found
        ]
        if hub.is_name(self.query) and self.query not in self._found and reason is None:
            rows.insert(0, Row(self.query, self.query, "", self.tr("Look for this very name")))
        self.results = tuple(rows)
        nothing = self.tr("The hub has no model for “{text}”.").format(text=self.query)
        self.said = resources.translate(reason) if reason is not None else "" if rows else nothing

    def _show_seen(self, seen: _Seen | None, reason: Reason | None) -> None:
        detail = self.detail
        assert detail is not None
        if seen is None:
            said = resources.translate(reason) if reason is not None else ""
            code = reason.code if reason is not None else ""
            self.detail = replace(
                detail, reading=False, waiting="", problem=said, locked=code in LOCKED
            )
            return
        self._held, self._plan = seen.held, seen.plan
        choices = detail.choices or hub_words.choice_rows(seen.held)
        self.detail = replace(
            detail, reading=False, choices=choices, waiting="", problem="", locked=False
        )
        if seen.place is not None:
            self._show_place(seen.place)

    def _show_place(self, place: _Place) -> None:
        """What is chosen fits there, or does not."""
        detail, made, space = self.detail, self._plan, place.space
        assert detail is not None
        assert made is not None
        self._wanted = place.wanted
        fits = space is not None and space.fits
        said = resources.translate(place.reason) if place.reason is not None else ""
        self.detail = replace(
            detail,
            size=hub_words.size(made),
            room=hub_words.room(space) if space is not None else said,
            place="" if place.wanted is None else self._into(place.wanted.folder, fits),
            fits=fits,
            elsewhere=not fits,
            ready=fits,
        )

    def _into(self, folder: Path, fits: bool) -> str:
        """Where it goes, unless that goes without saying."""
        if fits and folder == paths.model_folder():
            return ""
        return self.tr("Goes into {folder}").format(folder=folder)

    def _show_word(self, *_: object) -> None:
        running = self.downloads.running
        if self.offline:
            self.word = self.tr("Offline")
        else:
            self.word = words.percent(running.share) if running is not None else ""

    def _searching(self) -> str:
        return self.tr("Searching for “{text}”").format(text=self.query)

    def _invitation(self) -> str:
        return self.tr(
            "Type a model's name, such as “qwen2.5 coder”, or a repository as “owner/model”. "
            "Nothing is asked of the network before."
        )


def _answer(ask: _Ask, subject: str, work: Callable[[], object]) -> _Answer:
    try:
        return _Answer(ask, subject, work())
    except EngineError as error:
        return _Answer(ask, subject, None, error.reason)
