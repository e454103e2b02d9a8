"""Models fetched from the Hugging Face Hub: the files that a plan names, whole and checked.

Goes on with a download that has stopped, and repairs what is damaged. What the hub says is `hub`'s,
what is needed of it `plan`'s.
"""

import errno
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.api import Progress
from engine.errors import DownloadError
from engine.library import answers, begun, files, hub, starter
from engine.library.begun import PARTIAL, folder_of
from engine.library.hub import ANYONE, Access, RemoteFile
from engine.library.patience import patiently
from engine.library.plan import Plan, plan
from engine.library.transfer import Report, Stopped, Transfer


@dataclass(frozen=True)
class Space:
    """Bytes that a download takes still, and bytes free where it goes."""

    needed: int
    free: int

    @property
    def fits(self) -> bool:
        return self.needed <= self.free


def space(wanted: Plan, models: Path) -> Space:
    """What `wanted` takes still, and what is free. Raises DownloadError where nobody can tell."""
    left = wanted.size - begun.come(wanted, models)
    target = folder_of(wanted.repository, models)
    try:
        return Space(left, free(target))
    except OSError as error:
        raise not_writable(error, models) from error


def fetch(
    wanted: Plan,
    models: Path,
    progress: Report,
    stopped: Stopped,
    access: Access = ANYONE,
) -> Path:
    """The folder below `models` that has every file of `wanted`, whole and checked.

    A file that is there and right is not fetched again; one that is damaged is. What was begun
    goes on where it stopped. Under a final name there is never anything but a whole file. Raises
    DownloadError; Cancelled when stopped, with what has come so far kept.
    """
    hub.require_online(access)
    target = folder_of(wanted.repository, models)
    room = space(wanted, models)
    if not room.fits:
        raise no_space(room, models)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with files.alone(target / ".download.lock"):
            _Errand(wanted, target, models, progress, stopped, access).run()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise no_space(space(wanted, models), models) from error
        raise not_writable(error, target) from error
    return target


def repair(
    path: Path, models: Path, progress: Report, stopped: Stopped, access: Access = ANYONE
) -> Path:
    """Fetch again what is wrong of the model at `path` below `models`; its folder or file.

    Raises DownloadError where it was not fetched by this program, and as `plan` and `fetch` do.
    """
    if path == models / starter.STARTER.file:
        hub.require_online(access)
        return starter.fetch(models, progress, stopped)
    wanted = patiently(lambda: plan_of(path, models, access), progress, stopped)
    fetch(wanted, models, progress, stopped, access)
    return path


def plan_of(path: Path, models: Path, access: Access = ANYONE) -> Plan:
    """By what the model at `path` was fetched; where that was not noted, its newest state.

    Raises DownloadError where it was not fetched by this program, and as `plan` does.
    """
    file = path.name if path.suffix.lower() == ".gguf" else None
    target = path.parent if file else path
    parts = target.relative_to(models).parts if target.is_relative_to(models) else ()
    repository = "/".join(parts)
    if len(parts) != 2 or not hub.is_name(repository):
        raise DownloadError(
            "not_fetched",
            "{name} was not fetched by this program, so it cannot be completed or repaired here.",
            name=path.name,
        )
    for known in sorted(begun.read(target), key=lambda known: known.whole):
        names = {remote.name for remote in known.plan.files}
        if known.plan.repository == repository and (file is None or file in names):
            return known.plan
    return plan(repository, None, file, access)


@dataclass(frozen=True)
class _Errand:
    """One download on its way."""

    wanted: Plan
    target: Path
    models: Path
    progress: Report
    stopped: Stopped
    access: Access

    def run(self) -> None:
        """Fetch what is missing or wrong. Raises DownloadError, Cancelled, OSError."""
        left, looked = [], 0
        for file in self.wanted.files:
            if not self._transfer(file, looked).is_right():
                left.append(file)
            looked += file.size
        self._require_space(left)
        # Not before: what is refused was not begun.
        begun.note(self.wanted, self.target, whole=False)
        done = self.wanted.size - sum(file.size for file in left)
        for file in left:
            self._transfer(file, done).run()
            done += file.size
        begun.note(self.wanted, self.target, whole=True)
        self._tell("download", self.wanted.size)

    def _require_space(self, left: Sequence[RemoteFile]) -> None:
        """As `space`, now that it is known which files are damaged."""
        come = sum(begun.length(self.target / f"{file.name}{PARTIAL}") for file in left)
        room = Space(sum(file.size for file in left) - come, free(self.target))
        if not room.fits:
            raise no_space(room, self.models)

    def _tell(self, stage: str, done: int) -> None:
        total = self.wanted.size
        self.progress(Progress(stage, min(done, total), total))

    def _transfer(self, file: RemoteFile, before: int) -> Transfer:
        """Of a file, with so many bytes of others before it."""
        wanted = self.wanted
        return Transfer(
            file,
            self.target,
            lambda start: hub.stream(wanted.repository, wanted.commit, file, start, self.access),
            lambda: answers.said(wanted.repository),
            lambda stage, done: self._tell(stage, before + done),
            self.progress,
            self.stopped,
        )


def free(path: Path) -> int:
    """Bytes free on the drive where `path` lies or would lie. Raises OSError."""
    there = next(part for part in (path, *path.parents) if part.exists())
    return shutil.disk_usage(there).free


def no_space(room: Space, models: Path) -> DownloadError:
    """That what is needed is not free there."""
    return DownloadError(
        "no_space",
        "{needed} are needed, {free} are free in {folder}.",
        needed=_amount(-(-room.needed // 10**6)),
        free=_amount(room.free // 10**6),
        folder=str(models),
    )


def _amount(megabytes: int) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes} MB"


def not_writable(error: OSError, target: Path) -> DownloadError:
    """What the system says of a folder."""
    return DownloadError(
        "not_writable",
        "{folder} cannot be written to: {reason}.",
        folder=str(target),
        reason=error.strerror or type(error).__name__,
    )
