"""What the terminal commands judge drafts by, and the draft that is best of the library.

Knows the tables of the program and where its files lie. Imports no Qt and no torch.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.terminal import library_folders

if TYPE_CHECKING:
    from engine.api import Precision
    from engine.fit import Room
    from engine.library.candidates import Candidate, Terms
    from engine.library.index import Index


def index_of_models() -> "Index":
    """What was read of the files of models."""
    from app import paths
    from engine.library.index import Index

    return Index(paths.index_file())


def precision_of(asked: str, device: str) -> "Precision":
    """The precision asked for, or what "auto" likely is on that device."""
    if asked == "auto":
        return "int8" if device == "cpu" else "bf16"
    return cast("Precision", asked)


def terms(precision: "Precision", cards: "list[Room]") -> "Terms":
    """What candidates are judged by, in those rooms."""
    import resources
    from app import paths
    from engine.learned import Learned
    from engine.library.candidates import Terms
    from engine.library.catalogue import Catalogue
    from engine.measured import Measured

    return Terms(
        table=json.loads(resources.read_text("guidance.json")),
        catalogue=Catalogue(json.loads(resources.read_text("catalogue.json"))),
        measured=Measured(paths.measured_file()),
        learned=Learned(paths.learned_file()),
        rooms=cards,
        precision=precision,
    )


def candidates_for(
    target: Path, folders: Sequence[Path], device: str, precision: "Precision"
) -> "list[Candidate]":
    """Everything that might draft for the target, of the library and more folders."""
    from engine.devices import rooms
    from engine.library.candidates import candidates
    from engine.library.scan import scan

    index = index_of_models()
    entries = scan(library_folders(folders), index.info)
    found = candidates(target, entries, index, terms(precision, rooms(device)))
    index.save()
    return found


def automatic_draft(target: Path, device: str, precision: str | None) -> Path | None:
    """The model of the library that "auto" drafts with beside what needs none; None without one
    that fits and is advised."""
    from engine.devices import pick
    from engine.library.candidates import automatic

    device = pick(device)
    return automatic(candidates_for(target, [], device, precision_of(precision or "auto", device)))
