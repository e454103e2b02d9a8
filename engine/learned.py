"""What drafting has learnt on this machine, from one start to the next.

Knows one small JSON file; what its rows hold the controller wrote, and looks at before it trusts
it. What cannot be read of the file was never learnt.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.measured import Setup, is_sound, read_rows, setup_of, stamp, write_rows

MOST = 300  # setups; of more, those that were used longest ago are dropped

State = Mapping[str, Any]


class Learned:
    """The table. Of a target alone, the setup with draft "none", what its passes take; of a target
    with a draft what a step of that takes, and how often it is right. Another program of ours may
    write the same `file`: it is read again if it has changed. None: nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._states: dict[Setup, State] = {}

    def of(self, setup: Setup) -> State:
        """What is known of a setup; nothing as a rule."""
        self._refresh()
        return self._states.get(setup, {})

    def keep(self, states: Mapping[Setup, State]) -> None:
        """Put these in place of what was known of their setups, and write the file."""
        self._refresh()
        for setup, state in states.items():
            self._states.pop(setup, None)
            self._states[setup] = state
        for longest_ago in list(self._states)[:-MOST]:
            del self._states[longest_ago]
        if self._file is not None:
            rows = [{**asdict(setup), "state": state} for setup, state in self._states.items()]
            write_rows(self._file, "learned", rows)
            self._stamp = stamp(self._file)

    def clear(self) -> None:
        """Forget all of it. Raises OSError where the file cannot be deleted."""
        self._states = {}
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._stamp = stamp(self._file)

    def _refresh(self) -> None:
        if self._file is not None and (now := stamp(self._file)) != self._stamp:
            self._stamp, self._states = now, _read(self._file)


def _read(file: Path) -> dict[Setup, State]:
    found: dict[Setup, State] = {}
    for row in read_rows(file, "learned"):
        with contextlib.suppress(KeyError, TypeError):
            setup, state = setup_of(row), row["state"]
            if is_sound(setup) and isinstance(state, dict):
                found[setup] = state
    return found
