"""What is remembered between two starts: one small TOML file in the config folder.

Knows no Qt and no widget. A missing or damaged file means the defaults.
"""

import os
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import tomli_w

from engine.api import Drafting, Precision, Verification

FILE_NAME = "settings.toml"
MAX_BYTES = 1_000_000
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Settings:
    """`target` and the values of `drafts` are paths or "none" and "ngram"; `draft_length` None
    is automatic; `drafts` has the last draft of each target. `precisions` has those chosen for a
    target, by its path; the others are automatic. `draft_precisions` likewise for a draft; the
    others have their target's. `contexts` has the length of the context in tokens that was chosen
    for a target. `speeds`: tokens per second without a draft, as last measured, by
    a model's path and its precision. `offline`: nothing is asked of the network. `folders`: where
    models are looked for beside the usual places; `store`: the one of them into which downloads
    go, None for our own."""

    target: str | None = None
    drafts: dict[str, str] = field(default_factory=dict)
    precisions: dict[str, Precision] = field(default_factory=dict)
    draft_precisions: dict[str, Precision] = field(default_factory=dict)
    contexts: dict[str, int] = field(default_factory=dict)
    speeds: dict[str, dict[Precision, float]] = field(default_factory=dict)
    draft_length: int | None = None
    verification: Verification = "coupled"
    sidebar: bool = True
    offline: bool = False
    folders: tuple[str, ...] = ()
    store: str | None = None

    @property
    def drafting(self) -> Drafting:
        """How to draft, as the engine takes it."""
        return Drafting(self.draft_length, self.verification)

    def with_draft(self, target: str, draft: str) -> "Settings":
        """These settings, with `draft` as the last one used for `target`."""
        return replace(self, target=target, drafts={**self.drafts, target: draft})

    def with_target(self, target: str, precision: Precision | None) -> "Settings":
        """These settings, with `target` as the last one, in `precision` (None: automatic)."""
        return replace(self, target=target, precisions=_put(self.precisions, target, precision))

    def with_draft_precision(self, draft: str, precision: Precision | None) -> "Settings":
        """These settings, with `precision` (None: its target's) for `draft`."""
        return replace(self, draft_precisions=_put(self.draft_precisions, draft, precision))

    def with_context(self, target: str, tokens: int) -> "Settings":
        """These settings, with a context of `tokens` for `target`."""
        return replace(self, contexts={**self.contexts, target: tokens})

    def with_speed(self, model: str, precision: Precision, speed: float) -> "Settings":
        """These settings, with the tokens per second that `model` made in `precision`."""
        measured = {**self.speeds.get(model, {}), precision: round(speed, 2)}
        return replace(self, speeds={**self.speeds, model: measured})

    def with_folder(self, folder: str) -> "Settings":
        """These settings, with models looked for in `folder` too."""
        return replace(self, folders=tuple(dict.fromkeys((*self.folders, folder))))

    def without_folder(self, folder: str) -> "Settings":
        """These settings, without `folder`; downloads no longer go there either."""
        kept = tuple(other for other in self.folders if other != folder)
        return replace(self, folders=kept, store=None if self.store == folder else self.store)

    def with_store(self, folder: str | None) -> "Settings":
        """These settings, with downloads going into `folder` (None: our own), where models are
        looked for from then on, even if downloads go elsewhere later."""
        return replace(self if folder is None else self.with_folder(folder), store=folder)


def _put(
    chosen: dict[str, Precision], path: str, precision: Precision | None
) -> dict[str, Precision]:
    kept = {key: value for key, value in chosen.items() if key != path}
    return kept if precision is None else {**kept, path: precision}


def load(folder: Path) -> Settings:
    """The settings kept in `folder`; a value of the wrong kind falls back to its default."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            table = tomllib.loads(file.read(MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return Settings()
    target, length = table.get("target"), table.get("draft_length")
    speeds = {path: _speeds(measured) for path, measured in _table(table, "speeds").items()}
    kept = Settings(
        target=target if isinstance(target, str) else None,
        drafts={k: v for k, v in _table(table, "drafts").items() if isinstance(v, str)},
        precisions=_precisions(_table(table, "precisions")),
        draft_precisions=_precisions(_table(table, "draft_precisions")),
        contexts={k: v for k, v in _table(table, "contexts").items() if _is_context(v)},
        speeds={path: measured for path, measured in speeds.items() if measured},
        draft_length=length if type(length) is int and 0 <= length <= 16 else None,
        verification="rejection" if table.get("verification") == "rejection" else "coupled",
        sidebar=table.get("sidebar") is not False,
        offline=table.get("offline") is True,
        folders=_folders(table.get("folders")),
    )
    store = _folders([table.get("store")])
    return kept.with_store(store[0]) if store else kept


def _table(table: dict[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _precisions(named: dict[str, Any]) -> dict[str, Precision]:
    return {path: p for path, name in named.items() for p in PRECISIONS if p == name}


def _folders(named: Any) -> tuple[str, ...]:
    """Whole paths, each once; others would mean another folder wherever the program is started."""
    found = named if isinstance(named, list) else []
    sound = (f for f in found if isinstance(f, str) and "\0" not in f and Path(f).is_absolute())
    return tuple(dict.fromkeys(sound))


def _is_context(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**31


def _speeds(measured: Any) -> dict[Precision, float]:
    found = measured if isinstance(measured, dict) else {}
    return {p: v for p in PRECISIONS if isinstance(v := found.get(p), float) and 0 < v < 1e6}


def save(settings: Settings, folder: Path) -> None:
    """Write the settings; the old file stays whole until the new one is. Raises OSError."""
    table: dict[str, object] = {
        "draft_length": "auto" if settings.draft_length is None else settings.draft_length,
        "verification": settings.verification,
        "sidebar": settings.sidebar,
        "offline": settings.offline,
        "folders": settings.folders,
        "drafts": settings.drafts,
        "precisions": settings.precisions,
        "draft_precisions": settings.draft_precisions,
        "contexts": settings.contexts,
        "speeds": settings.speeds,
    }
    if settings.target is not None:
        table["target"] = settings.target
    if settings.store is not None:
        table["store"] = settings.store
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE_NAME}.partial"
    with partial.open("wb") as file:
        tomli_w.dump(table, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / FILE_NAME)
