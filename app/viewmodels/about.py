"""What the program is: its version, its torch, its notice; and whether there is a newer one.

Nothing is asked of the network until `look` is called. Knows no widget.
"""

from collections.abc import Callable
from importlib import metadata

from PySide6.QtCore import QObject, Signal

from app import notice, release, resources
from app.lanes import Job, Report, Stopped
from app.release import Place, Release
from app.viewmodels.binding import Property
from app.worker import Worker
from engine.errors import Reason

BUILDS = {"cuda": "CUDA", "hip": "ROCm", "xpu": "XPU"}


class About(QObject):
    """`online` raises an EngineError while nothing may be asked; `built_for` tells what torch
    computes on beside the CPU, as `engine.devices` does; `place` is where versions are announced,
    None where this build names none."""

    notice_changed = Signal(object)
    said_changed = Signal(object)
    page_changed = Signal(object)
    looking_changed = Signal(object)
    notice = Property[str]("")
    said = Property[str]("")  # what came of looking for a new version, or why it is not looked for
    page = Property[str]("")  # where the new version is
    looking = Property[bool](False)

    def __init__(
        self,
        worker: Worker,
        online: Callable[[], object],
        built_for: Callable[[], str],
        place: Place | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker, self._online, self._place = worker, online, place
        self._built_for = built_for
        self._asked = False
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        if place is None:
            self.said = self.tr("This build names no place where new versions are announced.")

    @property
    def version(self) -> str:
        """Of the program; empty where it is not installed."""
        return _version("slipstream")

    @property
    def torch(self) -> str:
        """Version and build of torch, which is not imported for it."""
        build = BUILDS.get(self._built_for(), "CPU")
        version = _version("torch").partition("+")[0]
        return self.tr("{version}, {build} build").format(version=version, build=build)

    @property
    def can_look(self) -> bool:
        """Whether there is a place to ask."""
        return self._place is not None

    def read_notice(self) -> None:
        """Have the notice read, the first time."""
        if not self._asked:
            self._asked = True
            self._worker.ask(lambda _, __: notice.text(), Job.NOTICE)

    def look(self) -> None:
        """Ask whether there is a newer version."""
        place, own = self._place, self.version
        if place is None or self.looking:
            return

        def task(_: Report, __: Stopped) -> Release:
            self._online()
            return release.look(place, own)

        self.looking, self.said, self.page = True, self.tr("Looking…"), ""
        self._worker.ask(task, Job.RELEASE)

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.NOTICE and isinstance(result, str):
            self.notice = result
        elif job is Job.RELEASE:
            self.looking = False
            if isinstance(result, Release):
                self._tell(result)

    def _tell(self, found: Release) -> None:
        if found.newer:
            self.said = self.tr("Version {version} is there.").format(version=found.version)
            self.page = found.page
        else:
            self.said = self.tr("This is the newest version.")

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.NOTICE:
            self._asked = False
            self.notice = resources.translate(reason)
        elif job is Job.RELEASE:
            self.looking = False
            self.said = resources.translate(reason)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
