"""The finished runs of a bench in a file, so that one that was stopped can go on.

Knows how the file is written and what it must not be mixed with; not what the runs say.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.bench.runs import Run, run_of
from engine.errors import EngineError

# A run of 100 tokens takes about 1 kB.
LARGEST = 256 << 20


class Record:
    """The runs of one plan, in `file` if there is one. `complete`: no run is missing.

    Raises EngineError when the file cannot be read or written, is damaged, or is another plan's.
    """

    def __init__(self, file: Path | None, plan: Mapping[str, Any]) -> None:
        self._file, self._plan = file, dict(plan)
        self.runs: list[Run] = []
        self.complete = False
        if file is None:
            return
        kept = _read(file)
        if kept:
            self._take_over(file, kept)
        if not self.complete:
            self._write({})  # now rather than after minutes of measuring

    def add(self, run: Run) -> None:
        """Keep one more run."""
        self.runs.append(run)
        self._write({})

    def finish(self, report: Mapping[str, Any]) -> None:
        """Keep what the runs come to; no run is missing."""
        self.complete = True
        self._write(report)

    def other(self, differing: str) -> EngineError:
        """The refusal of a file whose plan differs in what `differing` names."""
        return EngineError(
            "other_plan",
            "{file} holds runs of another plan: {differing} not the same. Name another file.",
            file=str(self._file),
            differing=differing,
        )

    def _take_over(self, file: Path, kept: Mapping[str, Any]) -> None:
        plan = kept.get("plan")
        if not isinstance(plan, dict) or "runs" not in kept:
            raise EngineError(
                "not_a_record",
                "{file} is not a file of bench's runs. Name another file.",
                file=str(file),
            )
        named = sorted(n for n in plan | self._plan if plan.get(n) != self._plan.get(n))
        if named:
            raise self.other(", ".join(named) + (" is" if len(named) == 1 else " are"))
        try:
            if kept.get("sha256") != _digest({k: v for k, v in kept.items() if k != "sha256"}):
                raise ValueError("its checksum is wrong")
            self.runs = [run_of(run) for run in kept["runs"]]
            self.complete = bool(kept["complete"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(file, error) from error

    def _write(self, report: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        body = {
            **report,
            "complete": self.complete,
            "plan": self._plan,
            "runs": [asdict(run) for run in self.runs],
        }
        # beside where the file really is: a rename would replace a link by what it names
        file = self._file.resolve()
        beside = file.with_name(f"{file.name}.{os.getpid()}.partial")
        try:
            beside.write_text(_lines(body | {"sha256": _digest(body)}), encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            raise EngineError(
                "cannot_write",
                "{path} cannot be written: {error}",
                path=str(self._file),
                error=str(error),
            ) from error
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()


def _read(file: Path) -> dict[str, Any]:
    """What an earlier bench left in `file`; nothing where it is absent or empty."""
    try:
        if not file.exists():
            return {}
        if not file.is_file():
            raise EngineError(
                "cannot_write",
                "{path} cannot be written: {error}",
                path=str(file),
                error="it is not a file",
            )
        if file.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
        text = file.read_text(encoding="utf-8")
        found = json.loads(text) if text else {}
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(file, error) from error
    return found


def _damaged(file: Path, error: Exception) -> EngineError:
    return EngineError(
        "record_damaged",
        "{file} cannot be read: {error}. Remove it, or name another file.",
        file=str(file),
        error=str(error),
    )


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _lines(body: Mapping[str, Any]) -> str:
    """JSON with a line per field and per item of a list, not per number."""
    fields = []
    for name, value in body.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        fields.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"
