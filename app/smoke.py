"""The program's own start, one answer, and the end: `slipstream --smoke`.

The same window, worker and engine as always; only the typing and the closing are done for the
user. For continuous integration and for whoever packages the program.
"""

import sys
import time

from PySide6.QtCore import QTimer

from app import paths, start
from app.start import Program
from app.viewmodels.turns import Turn

QUESTION = "Say hello in one sentence."
# An answer this long is proof enough; the Stop button ends it.
ENOUGH_TOKENS = 48
SECONDS = 180


def run(began: float) -> int:
    """Open the window, ask the model one thing, close; 0 when an answer came.

    `began` is when the program started, by the monotonic clock.
    """
    start.install_hooks(paths.ensure(paths.log_folder()))
    program = start.build([])
    script = _Script(program)
    program.window.show()
    program.app.processEvents()
    script.shown = time.monotonic() - began
    program.begin()
    program.app.exec()
    return start.leave(program, script.report())


class _Script:
    """Sends once the model is ready, stops a long answer, closes the window at its end."""

    def __init__(self, program: Program) -> None:
        self.began = time.monotonic()
        self.shown = 0.0
        self._program = program
        self._asked = False
        self._watch = QTimer(program.app, interval=100)
        self._watch.timeout.connect(self._look)
        self._watch.start()
        program.chat.answered.connect(program.window.close)

    def report(self) -> int:
        """Say what happened; the exit code."""
        answer = self._answer()
        if answer is None or not answer.text or answer.finish is None:
            print(f"no answer: {self._reason()}", file=sys.stderr)
            return 1
        print(f"window after {self.shown:.2f} s; answer of {answer.usage.tokens} tokens:")
        print(answer.text)
        return 0

    def _answer(self) -> Turn | None:
        """The last turn; a question that could not be answered leaves none."""
        turns = self._program.chat.turns
        return turns[-1] if self._asked and turns else None

    def _reason(self) -> str:
        alert = self._program.alerts.current
        if alert is not None:
            return alert.text
        if self._program.models.first_run:
            return "no model was found"
        return "it is empty" if self._answer() else "it took too long"

    def _look(self) -> None:
        program, answer = self._program, self._answer()
        late = time.monotonic() - self.began > SECONDS
        if late or program.models.first_run or (not self._asked and program.alerts.current):
            self._watch.stop()
            program.window.close()
        elif not self._asked and program.chat.can_send and not program.models.choosing:
            self._asked = program.chat.send(QUESTION)
        elif answer is not None and answer.usage.tokens >= ENOUGH_TOKENS:
            program.chat.stop()
