"""Errors that nobody caught: each is logged, makes a report and is said in a dialog.

The program goes on where it can. Knows the hooks of Python, and no view model.
"""

import contextlib
import logging
import sys
import threading
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from app.crashes import Crashes
from app.widgets.unforeseen import UnforeseenDialog

log = logging.getLogger(__name__)


class Unforeseen(QObject):
    """Hears of such errors in any thread, and shows them in the window's."""

    _heard = Signal(str, str)

    def __init__(self, crashes: Crashes, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._crashes = crashes
        self.dialog: UnforeseenDialog | None = None
        self._heard.connect(self._show, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Be what Python calls."""
        sys.excepthook = self._of_main
        threading.excepthook = self._of_thread

    def hear(self, error: BaseException) -> None:
        """Log `error`, write its report, and have it said."""
        log.critical("unhandled", exc_info=error)
        with contextlib.suppress(Exception):
            self._crashes.write(error)
        with contextlib.suppress(Exception):
            self._heard.emit(f"{type(error).__name__}: {error}"[:300], self._crashes.told(error))

    def end(self, error: BaseException) -> int:
        """Say it, wait until it is read; the exit code of a program that cannot go on."""
        self.hear(error)
        QApplication.processEvents()
        if self.dialog is not None:
            self.dialog.exec()
        return 1

    def _show(self, said: str, told: str) -> None:
        """Those that come while the dialog is open are only counted."""
        self._crashes.see()
        if self.dialog is None:
            self.dialog = UnforeseenDialog(QApplication.activeWindow())
        self.dialog.show_error(said, told)

    def _of_main(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            self.hear(error)

    def _of_thread(self, args: threading.ExceptHookArgs) -> None:
        self.hear(args.exc_value or args.exc_type())
