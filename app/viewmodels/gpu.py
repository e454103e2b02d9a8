"""The graphics card: how it stands with it, what can be done, and how far that is.

Decides what the section of the settings says and when the sidebar points at it. The card lane does
the work. Knows no widget.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal

from app import gpu_addon, graphics, resources
from app.graphics import Outlook, State
from app.lanes import Job, Report, Stopped
from app.settings import Settings
from app.viewmodels import words
from app.viewmodels.alerts import Alerts
from app.viewmodels.binding import Property
from app.viewmodels.downloads import LOOK, Pace
from app.worker import Worker
from engine.api import Progress
from engine.errors import Reason
from engine.library.hub import Access


class Deed(StrEnum):
    """What a button of the section does."""

    ENABLE = "enable"
    GO_ON = "go_on"  # with a download that was begun
    RETRY = "retry"
    CANCEL = "cancel"
    RESTART = "restart"
    UNDO = "undo"
    REMOVE = "remove"
    LOOK = "look"


# What can be done when nothing runs, by how it stands.
DEEDS: dict[State, tuple[Deed, ...]] = {
    State.TOLD: (Deed.LOOK,),
    State.OFFERED: (Deed.ENABLE,),
    State.READY: (Deed.RESTART, Deed.UNDO),
    State.USED: (Deed.UNDO,),
    State.LEAVING: (Deed.RESTART,),
    State.REFUSED: (Deed.RETRY, Deed.REMOVE),
}


@dataclass(frozen=True)
class View:
    """The section: what is said and, smaller, how much; a command to copy; how far it is, as a
    share, where something runs. `bad`: something went wrong."""

    text: str
    detail: str = ""
    command: str = ""
    share: float | None = None
    deeds: tuple[Deed, ...] = ()
    bad: bool = False


class Gpu(QObject):
    """`view` is None until the card was looked at; `hint` is what the sidebar says, or nothing."""

    view_changed = Signal(object)
    hint_changed = Signal(object)
    restart_asked = Signal()

    view = Property[View | None](None)
    hint = Property[str]("")

    def __init__(
        self,
        worker: Worker,
        alerts: Alerts,
        settings: Callable[[], Settings],
        decline: Callable[[], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker, self._alerts = worker, alerts
        self._settings, self._decline = settings, decline
        self._outlook: Outlook | None = None  # not looked yet
        self._running: View | None = None
        self._failure: Reason | None = None
        self._pace, self._shown = Pace(), 0.0
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        worker.moved.connect(self._moved)

    def start(self) -> None:
        """Look at the card, and free what an earlier add-on left."""
        self._worker.set_up_card(lambda _, __: gpu_addon.tidy())
        self.look()

    def look(self, *_: object) -> None:
        """See how it stands now."""
        self._worker.set_up_card(lambda _, __: _seen())

    def act(self, deed: Deed) -> None:
        """Do what a button says."""
        match deed:
            case Deed.ENABLE | Deed.GO_ON | Deed.RETRY:
                self._enable()
            case Deed.CANCEL:
                self._worker.stop_setting_up()
            case Deed.RESTART:
                self.restart_asked.emit()
            case Deed.UNDO | Deed.REMOVE:
                self._failure = None
                self._worker.set_up_card(lambda _, __: gpu_addon.disable())
                self.look()
            case Deed.LOOK:
                self.look()

    def decline(self) -> None:
        """Point at it no more."""
        self._decline()
        self._show()

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self._running is not None

    def _enable(self) -> None:
        if self.busy:
            return
        self._failure = None
        self._alerts.withdraw(self._outlook.said.code if self._outlook else "")
        self._pace, self._shown = Pace(), 0.0
        self._run(View(self.tr("Starting the download"), share=0.0))

        def task(report: Report, stopped: Stopped) -> None:
            access = Access(offline=self._settings().offline)
            gpu_addon.enable(report, stopped, access)

        self._worker.set_up_card(task)
        self.look()

    def _run(self, view: View) -> None:
        self._running = View(view.text, view.detail, share=view.share, deeds=(Deed.CANCEL,))
        self._show()

    def _moved(self, job: Job, progress: Progress) -> None:
        now = time.monotonic()
        if job is not Job.CARD or self._running is None:
            return
        if progress.stage == "download":
            self._pace.note(now, progress.done)
        if now - self._shown < LOOK and progress.stage != "try":
            return
        self._shown = now
        share = progress.done / progress.total if progress.total else 0.0
        self._run(View(self._stage(progress, share), share=share))

    def _stage(self, progress: Progress, share: float) -> str:
        percent = words.percent(share)
        match progress.stage:
            case "download":
                return words.coming(progress, self._pace.rate)
            case "check":
                return self.tr("Checking what is here, {share}").format(share=percent)
            case "unpack":
                return self.tr("Unpacking, {share}").format(share=percent)
        return self.tr("Trying it")

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.CARD:
            return
        if isinstance(result, Outlook):
            self._running, self._outlook = None, result
            if result.fresh:
                self._alerts.stand(result.said)
        self._show()

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.CARD:
            self._running, self._failure = None, reason
            self._show()

    def _show(self) -> None:
        self.view = self._running or self._standing()
        outlook, declined = self._outlook, self._settings().card_declined
        if outlook is None or outlook.state is not State.OFFERED or self.busy or declined:
            self.hint = ""
            return
        size = words.megabytes(outlook.size)
        self.hint = self.tr(
            "The graphics card, {card}, is not used. Slipstream can compute on it after a download "
            "of {size}."
        ).format(card=outlook.said.values["card"], size=size)

    def _standing(self) -> View | None:
        """What is said while nothing runs."""
        outlook, failure = self._outlook, self._failure
        if outlook is None:
            return None
        deeds, detail = DEEDS[outlook.state], ""
        if outlook.state is State.OFFERED:
            detail = self._amounts(outlook)
            if outlook.come:
                deeds = (Deed.GO_ON, Deed.REMOVE)
        elif outlook.unpacked:
            size = words.megabytes(outlook.unpacked)
            detail = self.tr("{size} on the disk").format(size=size)
        # with a refusal, a failure is that it is still refused
        said, bad = failure or outlook.said, failure is not None or outlook.state is State.REFUSED
        return View(resources.translate(said), detail, outlook.command, None, deeds, bad)

    def _amounts(self, outlook: Outlook) -> str:
        disk = words.megabytes(outlook.unpacked)
        if outlook.come:
            amount = words.amount(Progress("download", outlook.come, outlook.size))
            said = self.tr("{amount} are here; then {disk} on the disk")
            return said.format(amount=amount, disk=disk)
        size = words.megabytes(outlook.size)
        return self.tr("{size} to download, then {disk} on the disk").format(size=size, disk=disk)


def _seen() -> Outlook:
    """How it stands now. What is fresh is told by this, and to nobody else after it."""
    outlook = graphics.look()
    if outlook.fresh:
        gpu_addon.note_told()
    return outlook
