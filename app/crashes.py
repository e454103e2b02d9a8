"""Reports of crashes: one file for each in the folder of logs, readable by its owner only.

While the program runs a file stands ready for what Python's faulthandler writes when the process
is ended by a fault; it is gone after an end as it should be. At the next start what is in it
becomes a report. An error that nobody caught makes one at once. Knows no Qt and no window; what
may stand in a report is `app.report`'s.
"""

import contextlib
import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from app import paths, report

KEPT = 5
LONGEST = 64_000  # bytes of a trace that are read
TRACE, REPORT = ".trace", ".txt"
SEEN = "crashes.seen"  # holds the name of the last report that the user has been told of


class Crashes:
    """Those in `folder`. `private` tells the texts that must not stand in a report; before it is
    set, what an error says is left out altogether."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trace: IO[str] | None = None
        self._ready: Path | None = None  # the file that stands ready
        self.private: Callable[[], Iterable[str]] | None = None

    def stand_ready(self) -> None:
        """From now on a fault leaves a trace."""
        self._ready = self._folder / f"{_stamp()}{TRACE}"
        self._trace = _create(self._ready)
        faulthandler.enable(self._trace)

    def stand_down(self) -> None:
        """The program ends as it should."""
        if self._trace is None or self._ready is None:
            return
        faulthandler.disable()
        self._trace.close()
        with contextlib.suppress(OSError):
            self._ready.unlink()
        self._trace = self._ready = None

    def gather(self) -> Path | None:
        """Make reports of the traces of earlier starts; the newest report that the user has not
        been told of. Only for the one running copy."""
        for path in sorted(self._folder.glob(f"crash-*{TRACE}")):
            if path != self._ready:
                self._make(path)
        found = self._reports()
        return found[-1] if found and found[-1].name > self._seen() else None

    def write(self, error: BaseException) -> Path:
        """A report of an error that nobody caught. Raises OSError."""
        path = self._folder / f"{_stamp()}{REPORT}"
        with _create(path) as file:
            file.write(self.told(error))
        self._thin_out()
        return path

    def told(self, error: BaseException) -> str:
        """What its report says."""
        if self.private is None:
            places = traceback.format_tb(error.__traceback__)
            return report.of_crash("".join([f"{type(error).__name__}\n", *places]))
        return report.report(["".join(traceback.format_exception(error))], self.private())

    def see(self) -> None:
        """The user has been told of all that there are."""
        found = self._reports()
        with contextlib.suppress(OSError):
            (self._folder / SEEN).write_text(found[-1].name if found else "", encoding="utf-8")

    def _make(self, path: Path) -> None:
        """The report of one trace, which goes; of an empty one nothing is left."""
        with contextlib.suppress(OSError):
            with path.open("rb") as file:
                trace = file.read(LONGEST).decode("utf-8", "replace")
            if trace.strip():
                # of the crash, not of the start: what has been told since then is older
                name = f"{_stamp(path.stat().st_mtime)}{REPORT}"
                with _create(self._folder / name) as made:
                    made.write(report.of_crash(trace))
            path.unlink()
        self._thin_out()

    def _seen(self) -> str:
        try:
            return (self._folder / SEEN).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""

    def _reports(self) -> list[Path]:
        return sorted(self._folder.glob(f"crash-*{REPORT}"))

    def _thin_out(self) -> None:
        for path in self._reports()[:-KEPT]:
            with contextlib.suppress(OSError):
                path.unlink()


def leave_early(error: BaseException) -> int:
    """There is no window to say it in: leave a report, and tell where it lies; the exit code."""
    print(f"Slipstream cannot start: {type(error).__name__}: {error}", file=sys.stderr)
    with contextlib.suppress(OSError):
        path = Crashes(paths.ensure(paths.log_folder())).write(error)
        print(f"A report lies at {path}", file=sys.stderr)
    return 1


def _stamp(now: float | None = None) -> str:
    """The name of a crash; names are sorted as the crashes are."""
    now = time.time() if now is None else now
    return f"crash-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1e6):06}"


def _create(path: Path) -> IO[str]:
    """A new file that its owner alone may read."""
    kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return open(kept, "w", encoding="utf-8", errors="replace")
