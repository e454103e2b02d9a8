"""The graphics card add-on: fetched, unpacked, tried, and given up again.

Knows no Qt. Contacts the network only in `enable`, and imports torch only in a child.
"""

import errno
from contextlib import suppress
from pathlib import Path

from app import graphics, paths, torch_addon
from app.graphics import State
from engine.api import Progress
from engine.errors import Cancelled, EngineError, Reason
from engine.library import addon, files, unpacking, wheels
from engine.library.download import no_space, not_writable
from engine.library.hub import Access
from engine.library.pins import Build
from engine.library.transfer import Report, Stopped

TRIALS = ("trial_slow", "trial_crashed", "trial_failed")  # what may go well another time


def enable(progress: Report, stopped: Stopped, access: Access) -> None:
    """Fetch the add-on, unpack and try it; the next start uses it. What was begun goes on.

    Raises EngineError where it cannot be had or does not work, Cancelled; then the program stays
    as it was.
    """
    wanted, outlook = graphics.pinned(), graphics.look()
    if outlook.state in (State.READY, State.USED):
        return
    if outlook.state not in (State.REFUSED, State.OFFERED) or wanted is None:
        raise _error(outlook.said)
    home = paths.ensure(torch_addon.home())
    with files.alone(home / ".lock"):
        if outlook.state is State.REFUSED:
            _retry(wanted, progress, stopped)
        else:
            _close(home)
            addon.tidy(home)
            wheels.fetch(wanted, home / addon.WHEELS, progress, stopped, access)
            _install(wanted, home, progress, stopped)


def _close(home: Path) -> None:
    """Let nobody else write into a folder that was made wider, or the add-on would not be used.
    Raises DownloadError."""
    try:
        home.chmod(0o700)
    except OSError as error:
        raise not_writable(error, home) from error


def _install(wanted: Build, home: Path, progress: Report, stopped: Stopped) -> None:
    """Unpack the wheels and try what comes of them."""
    try:
        half = _unpack(wanted, home, progress, stopped)
        problem = _tried(wanted, half, progress, stopped)
        addon.write(home, half, wanted.torch, wanted.cuda)
    except Cancelled:
        raise
    except EngineError as error:
        # wheels that hold what they should are not to blame for a busy or odd computer
        addon.tidy(home, keep_wheels=error.reason.code in TRIALS)
        raise
    except OSError as error:
        addon.tidy(home)
        if error.errno == errno.ENOSPC:
            raise no_space(wheels.space(wanted, home / addon.WHEELS), home) from error
        raise not_writable(error, home) from error
    addon.tidy(home, keep_wheels=False)
    _hold(home, problem)


def _retry(wanted: Build, progress: Report, stopped: Stopped) -> None:
    """Try once more an add-on that is not used."""
    home = torch_addon.home()
    there = addon.read(home)
    if there is None:
        return
    trouble = addon.trouble(home, there)
    if trouble is not None:
        raise _error(trouble)
    problem = _tried(wanted, home / there.site, progress, stopped)
    addon.allow(home)
    _hold(home, problem)


def disable() -> None:
    """From the next start on the program's own build is used; the disk space is free at once, or
    at that start where this process uses the add-on. Raises OSError."""
    home = torch_addon.home()
    addon.forget(home)
    torch_addon.leave()
    if torch_addon.in_use() is None:
        addon.tidy(home, keep_wheels=False)


def tidy() -> None:
    """Free what an earlier add-on left, where nobody is busy with one."""
    home = torch_addon.home()
    if home.is_dir() and torch_addon.in_use() is None:
        with suppress(EngineError, OSError), files.alone(home / ".lock"):
            addon.tidy(home)


def _unpack(wanted: Build, home: Path, progress: Report, stopped: Stopped) -> Path:
    """All wheels, into one folder. Raises DownloadError, Cancelled; OSError."""
    half, done = home / addon.HALF, 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        progress(Progress("unpack", done, wanted.unpacked))

    half.mkdir(mode=0o700)  # whatever the umask: what others can write to is not run
    for wheel in wanted.wheels:
        unpacking.unpack(wheel, home / addon.WHEELS / wheel.name, half, tell, stopped)
    return half


def _tried(wanted: Build, site: Path, progress: Report, stopped: Stopped) -> Reason | None:
    """Why it computes on no card, where it does not. Raises EngineError where it is not what it
    should be."""
    from engine import trial

    progress(Progress("try", 0, 1))
    tried = trial.run(site, stopped)
    version = tried.version.partition("+")[0]
    if (version, tried.cuda) != (wanted.torch, wanted.cuda) or Path(tried.folder) != site:
        raise EngineError(
            "trial_wrong",
            "The graphics card add-on is PyTorch {found}, not {expected}, so it was removed.",
            found=f"{tried.version}, CUDA {tried.cuda}",
            expected=f"{wanted.torch}, CUDA {wanted.cuda}",
        )
    if tried.on_card or wanted.cuda is None:
        return None
    return Reason(
        "gpu_unusable",
        "The graphics card add-on does not see the card, so the processor is used. It says: {why}",
        {"why": tried.why or "-"},
    )


def _hold(home: Path, problem: Reason | None) -> None:
    """Keep the add-on off. Raises EngineError to say so."""
    if problem is not None:
        addon.refuse(home, problem, told=True)
        raise _error(problem)


def _error(reason: Reason) -> EngineError:
    return EngineError(reason.code, reason.template, **reason.values)


def note_told() -> None:
    """The user has been told why the add-on is not used."""
    home = torch_addon.home()
    refused = addon.refusal(home)
    if refused is not None:
        addon.refuse(home, refused[0], told=True)
