"""How long looking at models takes: the drafts of a target, and a folder with many entries.

    python -m tests.measure.looking TARGET MODEL... [--runs 5] [--entries 200]

The first runs `slipstream drafts TARGET` as a process of its own, with nothing read before and
again with what was kept; the models are looked for in the target's folder. The second scans a
folder of hard links to the models, likewise. Medians, with the least and the most.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.library.index import Index
from engine.library.scan import scan


def timed(work: Callable[..., object], *given: object) -> float:
    """Seconds that `work` takes."""
    began = time.monotonic()
    work(*given)
    return time.monotonic() - began


def drafts(target: Path, home: Path) -> None:
    """What a newcomer types."""
    command = [sys.executable, "-m", "app", "drafts", "--json", str(target)]
    environment = os.environ | {"SLIPSTREAM_HOME": str(home)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def look(folder: Path, kept: Path, entries: int) -> None:
    """What the window does when it starts."""
    index = Index(kept)
    found = scan([folder], index.info)
    index.save()
    assert len(found) == entries, len(found)


def row(name: str, seconds: list[float]) -> str:
    """A line of the table."""
    middle = statistics.median(seconds)
    return f"| {name} | {middle:.2f} s | {min(seconds):.2f}-{max(seconds):.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=Path)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--entries", type=int, default=200)
    asked = parser.parse_args()
    times: dict[str, list[float]] = {}
    for _ in range(asked.runs):
        home = Path(tempfile.mkdtemp())
        folder = Path(tempfile.mkdtemp(dir=asked.target.parent.parent))  # on the same disk
        for number in range(asked.entries):
            model = asked.models[number % len(asked.models)]
            os.link(model, folder / f"{number}{model.suffix}")
        for again in ("first", "again"):
            for name, *work in (
                ("`slipstream drafts`", drafts, asked.target, home),
                (f"{asked.entries} entries", look, folder, home / "index", asked.entries),
            ):
                times.setdefault(f"{name}, {again}", []).append(timed(*work))
        shutil.rmtree(home)
        shutil.rmtree(folder)
    print("| what | median | span |\n|---|---|---|")
    for name, seconds in times.items():
        print(row(name, seconds))


if __name__ == "__main__":
    main()
