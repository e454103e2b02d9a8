"""Where Slipstream keeps its things, as the system has it or below SLIPSTREAM_HOME.

Knows names of folders. Creates none but in `ensure`, and does not know what is written there.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from app import bundle

if TYPE_CHECKING:
    from engine.errors import EngineError

NAME = "slipstream"


def data_folder() -> Path:
    """Chats and what else must not be lost."""
    return _home("data") or platformdirs.user_data_path(NAME, appauthor=False)


def cache_folder() -> Path:
    """What can be made again, such as tokenizers built from GGUF files."""
    return _home("cache") or platformdirs.user_cache_path(NAME, appauthor=False)


def model_folder() -> Path:
    """Models that Slipstream fetched."""
    return _home("models") or platformdirs.user_data_path(NAME, appauthor=False) / "models"


def config_folder() -> Path:
    """Settings."""
    return _home("config") or platformdirs.user_config_path(NAME, appauthor=False)


def log_folder() -> Path:
    """Logs."""
    return _home("logs") or platformdirs.user_log_path(NAME, appauthor=False)


def library_folders(added: Iterable[str] = ()) -> list[Path]:
    """Where models are looked for: our own folder, those that the user `added`, what came with the
    program, and those of other programs."""
    packaged = bundle.models()
    own = [model_folder(), *(Path(folder) for folder in added), *([packaged] if packaged else [])]
    return list(dict.fromkeys([*own, *foreign_folders()]))


def foreign_folders() -> list[Path]:
    """Where other programs keep models. Nothing is written there."""
    from engine.library import stores

    return stores.folders(Path.home(), os.environ)


def index_file() -> Path:
    """What was read of models before."""
    return cache_folder() / "models.json"


def history_file() -> Path:
    """All chats."""
    return data_folder() / "chats.db"


def mark_file() -> Path:
    """Which model is being loaded."""
    return data_folder() / "loading"


def measured_file() -> Path:
    """What was measured of pairs on this machine."""
    return data_folder() / "measured.json"


def past_folder() -> Path:
    """What drafters learn of answers."""
    return data_folder() / "past"


def learned_file() -> Path:
    """What drafting has learnt on this machine."""
    return data_folder() / "learned.json"


def ensure(folder: Path) -> Path:
    """`folder`, created when missing and readable by its owner only."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def closed(error: OSError) -> "EngineError":
    """What the system says of a folder that is needed."""
    from engine.errors import EngineError

    return EngineError(
        "not_writable",
        "{folder} cannot be written to: {reason}.",
        folder=str(error.filename or data_folder()),
        reason=error.strerror or type(error).__name__,
    )


def _home(part: str) -> Path | None:
    home = os.environ.get("SLIPSTREAM_HOME")
    return Path(home).expanduser().absolute() / part if home else None
