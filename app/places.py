"""Into which folder a download goes: where it was begun, else the one chosen for it, else ours.

Knows settings and what lies in the folders. Knows no Qt, and creates nothing.
"""

from dataclasses import dataclass
from pathlib import Path

from app import bundle, paths
from app.settings import Settings
from engine.errors import DownloadError
from engine.library import begun, download
from engine.library.download import Space
from engine.library.hub import Access
from engine.library.plan import Plan
from engine.library.starter import STARTER
from engine.library.transfer import Report, Stopped


@dataclass(frozen=True)
class Wanted:
    """A model and the folder into which it goes, also once downloads go elsewhere."""

    plan: Plan
    folder: Path

    @property
    def key(self) -> str:
        """What tells it from other models, and from the same in another folder."""
        own = self.folder == paths.model_folder()
        return self.plan.key if own else str(self.folder / self.plan.key)

    @property
    def path(self) -> Path:
        """What the library will call it by."""
        return begun.path_of(self.plan, self.folder)

    @property
    def come(self) -> int:
        """Bytes of it that are there."""
        return begun.come(self.plan, self.folder)

    def fetch(self, report: Report, stopped: Stopped, access: Access) -> Path:
        """Fetch what is missing. Raises DownloadError, Cancelled."""
        download.fetch(self.plan, require(self.folder), report, stopped, access)
        return self.path

    def forget(self) -> None:
        """Delete what has come of it."""
        begun.forget(self.plan, self.folder)


def packaged_starter() -> Path | None:
    """The starter model that came with the program; None where it did not."""
    folder = bundle.models()
    path = folder / STARTER.file if folder else None
    return path if path and path.is_file() else None


def store(kept: Settings) -> Path:
    """The folder into which downloads go."""
    return Path(kept.store) if kept.store is not None else paths.model_folder()


def known(kept: Settings) -> tuple[Path, ...]:
    """Every folder into which downloads go or may have gone."""
    return tuple(dict.fromkeys([paths.model_folder(), store(kept), *map(Path, kept.folders)]))


def require(folder: Path) -> Path:
    """`folder`, which must be there unless it is our own. Raises DownloadError.

    One that is gone may lie on a disk that was taken out: creating it would fill the disk below.
    """
    if folder != paths.model_folder() and not is_folder(folder):
        raise DownloadError(
            "store_gone",
            "Downloads go into {folder}, which is not there. If it is on another disk, plug that "
            "in; else choose another folder.",
            folder=str(folder),
        )
    return folder


def choose(plan: Plan, kept: Settings) -> tuple[Wanted, Space]:
    """Where a model goes, and its space there: where it is whole or was begun and the rest fits,
    else where downloads go. Raises DownloadError where that is gone or nobody can tell."""
    for folder in known(kept):
        if is_folder(folder) and _has(folder, plan):
            space = download.space(plan, folder)
            if space.fits:
                return Wanted(plan, folder), space
    chosen = require(store(kept))
    return Wanted(plan, chosen), download.space(plan, chosen)


def unfinished(kept: Settings) -> list[Wanted]:
    """Every download that has not ended, in whichever folder."""
    return [
        Wanted(item.plan, folder) for folder in known(kept) for item in begun.unfinished(folder)
    ]


def root_of(path: Path, kept: Settings) -> Path:
    """The folder into which the model at `path` was fetched; our own where it was into none."""
    own, roots = paths.model_folder(), known(kept)
    if path.name == STARTER.file and path.parent in roots:
        return path.parent
    target = path.parent if path.suffix.lower() == ".gguf" else path
    root = target.parent.parent
    # What others put into a folder of the user's is not ours to change.
    fetched = root in (own, store(kept)) or bool(begun.read(target))
    return require(root) if root in roots and fetched else own


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder that can be reached."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _has(folder: Path, plan: Plan) -> bool:
    """Whether all of a model is below `folder`, or was begun there by us."""
    if begun.come(plan, folder) == plan.size:
        return True
    noted = begun.read(begun.folder_of(plan.repository, folder))
    return any(item.plan.key == plan.key and not item.whole for item in noted)
