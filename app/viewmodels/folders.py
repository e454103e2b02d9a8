"""The folders in which models are looked for, and the one into which downloads go.

Decides what each row says and which folders are taken. Whatever reads a disk that may be slow runs
in the worker's hub lane; the scan itself is the shelf's. Knows no widget.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal

from app import paths, places
from app.lanes import Job
from app.settings import Settings
from app.viewmodels import words
from app.viewmodels.binding import Property
from app.viewmodels.models import Models
from app.worker import Worker
from engine.errors import Reason

LOOKED_AT = 10_000  # names of a folder that are looked at to tell what it is
State = Literal["there", "missing", "unreadable", "model"]


@dataclass(frozen=True)
class FolderRow:
    """One folder: `path` as it is shown, `text` on whose it is and what it holds. `wrong`: the text
    says why nothing is found there; `added`: by the user, who can remove it; `there`: it can be
    opened."""

    key: str
    path: str
    text: str
    wrong: bool = False
    added: bool = False
    there: bool = False


@dataclass(frozen=True)
class _States:
    """How each folder is found."""

    found: Mapping[Path, State]


class Folders(QObject):
    """The list, and what is done with it. `keep` takes settings with other folders, and has them
    looked at; `opened` asks for the dialog."""

    opened = Signal()
    rows_changed = Signal(object)
    said_changed = Signal(object)

    rows = Property[tuple[FolderRow, ...]](())
    said = Property[str]("")  # why a folder was not added

    def __init__(
        self, worker: Worker, models: Models, keep: Callable[[Settings], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._worker, self._models, self._keep = worker, models, keep
        self._states: Mapping[Path, State] = {}
        self._looking = True
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        models.targets_changed.connect(self._show)

    @property
    def settings(self) -> Settings:
        """Those in force. Read in lanes, too: they are never changed, but replaced."""
        return self._models.settings

    def open(self) -> None:
        """Show the dialog."""
        self.said = ""
        self._show()
        self._check()
        self.opened.emit()

    def add(self, path: Path) -> None:
        """Look for models in `path` too, from now on."""
        folder = self._spelled(path)
        if not places.is_folder(folder):
            self.said = self.tr("{folder} is not there, or cannot be read.").format(folder=folder)
        elif folder in self._folders():
            self.said = self.tr("Models are looked for in {folder} already.").format(folder=folder)
        else:
            self._change(self.settings.with_folder(str(folder)))

    def remove(self, key: str) -> None:
        """Look in the added folder `key` no longer; nothing in it is touched."""
        self._change(self.settings.without_folder(key))

    def download_to(self, path: Path) -> str:
        """Have downloads go into `path` from now on, and models be looked for there; a sentence
        where that cannot be."""
        folder = self._spelled(path)
        if not places.is_folder(folder):
            return self.tr("{folder} is not there, or cannot be read.").format(folder=folder)
        if any(folder.is_relative_to(other) for other in paths.foreign_folders()):
            said = self.tr("{folder} is another program's; nothing is written there.")
            return said.format(folder=folder)
        own = folder == paths.model_folder()
        self._change(self.settings.with_store(None if own else str(folder)))
        return ""

    def _change(self, settings: Settings) -> None:
        self.said = ""
        self._looking = True
        self._keep(settings)
        self._show()
        self._check()

    def _folders(self) -> list[Path]:
        return paths.library_folders(self.settings.folders)

    def _spelled(self, path: Path) -> Path:
        """`path` as a known folder spells it, where it lies in that by another way: the same models
        have the same paths then."""
        real = Path(os.path.realpath(path))
        for known in self._folders():
            other = Path(os.path.realpath(known))
            if real.is_relative_to(other):
                return known / real.relative_to(other)
        return path.absolute()

    def _check(self) -> None:
        """See what has become of the folders: a disk that sleeps or is gone takes its time."""
        folders = self._folders()
        self._worker.ask(lambda _, __: _States({folder: state(folder) for folder in folders}))

    def _finished(self, job: Job, result: object) -> None:
        if job is Job.HUB and isinstance(result, _States):
            self._states = result.found
        elif job is Job.SCAN:
            self._looking = False
        else:
            return
        self._show()

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.SCAN:
            self._looking = False
            self._show()

    def _show(self, *_: object) -> None:
        self.rows = tuple(self._row(folder) for folder in self._folders())

    def _row(self, folder: Path) -> FolderRow:
        found, own = self._states.get(folder, "there"), folder == paths.model_folder()
        whose, wrong = self._whose(folder), self._wrong(found)
        if own and found == "missing":
            wrong = ""  # it is made by the first download
        holds = wrong or self._holds(folder)
        text = self.tr("{whose}: {holds}").format(whose=whose, holds=holds)
        if folder == places.store(self.settings):
            text = self.tr("{text}. Downloads go here").format(text=text.rstrip("."))
        added, there = str(folder) in self.settings.folders, found != "missing"
        return FolderRow(str(folder), str(folder), text, bool(wrong), added, there)

    def _whose(self, folder: Path) -> str:
        if folder == paths.model_folder():
            return self.tr("Slipstream's own")
        if str(folder) in self.settings.folders:
            return self.tr("Added by you")
        if {".lmstudio", "lm-studio"} & set(folder.parts):
            return "LM Studio"
        ollama = os.environ.get("OLLAMA_MODELS")
        if ".ollama" in folder.parts or (ollama and folder == Path(ollama).expanduser()):
            return "Ollama"
        return self.tr("Cache of the Hugging Face Hub")

    def _wrong(self, found: State) -> str:
        return {
            "there": "",
            "missing": self.tr("it is not there. If it is on another disk, plug that in"),
            "unreadable": self.tr("it cannot be read"),
            "model": self.tr("it is one model. Add the folder in which it lies"),
        }[found]

    def _holds(self, folder: Path) -> str:
        """How many of the models that are listed lie in it, sound or not."""
        listed = (Path(row.key) for row in self._models.targets if row.key)
        count = sum(path.is_relative_to(folder) for path in listed)
        if count:
            return words.counted(count, self.tr("{count} model"), self.tr("{count} models"))
        return self.tr("looking for models") if self._looking else self.tr("no model was found")


def state(folder: Path) -> State:
    """How a folder is found; "model" where it is one itself, which only its parent lists."""
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in islice(entries, LOOKED_AT)}
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "unreadable"
    weights = any(name.endswith(".safetensors") for name in names)
    return "model" if weights and "config.json" in names else "there"
