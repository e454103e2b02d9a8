"""`slipstream --self-test`: does this installation work? One line for each check.

The checks (`app.checks`, `app.window_checks`) run in a process of their own: one that crashes or
hangs is told by its name like one that fails. It has a home of its own, which is removed at the
end; nothing of the user's is read but the starter model.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from app import bundle, libraries, paths
from engine.child import Child

SECONDS = 900.0  # for all checks together; on two free cores they take less than one minute
LAST_LINES = 12  # of what a process said before it crashed
START = "start"  # the name of what comes before the first check


def run() -> int:
    """Do all checks, print a line for each; 0 when all of them passed."""
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="slipstream-self-test-"))
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        passed = [_tell(*told) for told in _checked(home, _starter(), began + SECONDS)]
    finally:
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(home, ignore_errors=True)
    failed, took = passed.count(False), time.monotonic() - began
    said = f"{failed} of {len(passed)} checks failed" if failed else f"{len(passed)} checks passed"
    print(f"{said} in {took:.0f} s", flush=True)
    return 1 if failed else 0


def _leave(*_: object) -> None:
    """Whoever ends the program does not leave its process and its home behind."""
    raise SystemExit(1)


def _tell(name: str, passed: bool, detail: str) -> bool:
    print(f"{'ok     ' if passed else 'FAILED '} {name}: {detail}", flush=True)
    return passed


def _starter() -> Path | None:
    """The starter model: the packaged one, else the one in the library."""
    from app import settings
    from engine.library.starter import STARTER

    packaged = bundle.models()
    kept = settings.load(paths.config_folder())
    folders = [packaged] if packaged else paths.library_folders(kept.folders)
    places = (folder / STARTER.file for folder in folders)
    return next((place for place in places if place.is_file()), None)


def _checked(home: Path, model: Path | None, deadline: float) -> Iterator[tuple[str, bool, str]]:
    """Name, outcome and detail of each check, from the process that does them."""
    said, running = home / "said.txt", START
    child = Child(_serve, home, model, said, daemon=False)
    try:
        while True:
            told = child.receive(max(0.0, deadline - time.monotonic()))
            if told is None:
                return
            running, passed, detail = told
            if passed is not None:
                yield running, passed, detail
    except TimeoutError:
        yield running, False, f"not done when {SECONDS:.0f} s were over"
    except (EOFError, OSError):
        yield running, False, f"the process that does it {_end(child)}"
        with contextlib.suppress(OSError):
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
            print(*lines[-LAST_LINES:], sep="\n", flush=True)
    finally:
        child.close()


def _end(child: Child) -> str:
    code = child.exit_code(seconds=5.0)
    return f"was ended by signal {-code}" if code and code < 0 else f"ended with {code}"


def _serve(connection: Connection, home: Path, model: Path | None, said: Path) -> None:
    """Do the checks, and tell when one begins and how it ended. Runs in the child process."""
    _settle(home, said)
    from app import checks

    def do(named: Iterable[tuple[str, checks.Check]]) -> bool:
        return False not in [_do(connection, name, check) for name, check in named]

    missed = checks.watch_network()
    if do(checks.first()):
        from app import window_checks

        do(window_checks.every(model))
    do(checks.every(model))
    do(checks.last(missed))
    connection.send(None)


def _do(connection: Connection, name: str, check: Callable[[], str]) -> bool:
    connection.send((name, None, ""))
    try:
        connection.send((name, True, check()))
    except Exception as error:
        traceback.print_exc()
        connection.send((name, False, f"{error}" or type(error).__name__))
        return False
    return True


def _settle(home: Path, said: Path) -> None:
    """Have nothing of the user's touched, no network asked, and what libraries say kept in a
    file."""
    os.environ |= {"SLIPSTREAM_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    # Threads that wait for each other sleep: a busy machine gets done in half the time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if sys.platform.startswith("linux") and not libraries.platforms():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    stream = said.open("w", encoding="utf-8", errors="replace")
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            os.dup2(stream.fileno(), descriptor)
    sys.stdout = sys.stderr = stream
