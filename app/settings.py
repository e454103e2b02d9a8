"""What is remembered between two starts: one small TOML file in the config folder.

Knows no Qt and no widget. A missing or damaged file means the defaults.
"""

import os
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

import tomli_w

from engine.api import Drafting, Verification

FILE_NAME = "settings.toml"
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Settings:
    """`target` and the values of `drafts` are paths or "none" and "ngram"; `draft_length` None
    is automatic; `drafts` has the last draft of each target."""

    target: str | None = None
    drafts: dict[str, str] = field(default_factory=dict)
    draft_length: int | None = None
    verification: Verification = "coupled"
    sidebar: bool = True

    @property
    def drafting(self) -> Drafting:
        """How to draft, as the engine takes it."""
        return Drafting(self.draft_length, self.verification)

    def with_draft(self, target: str, draft: str) -> "Settings":
        """These settings, with `draft` as the last one used for `target`."""
        return replace(self, target=target, drafts={**self.drafts, target: draft})


def load(folder: Path) -> Settings:
    """The settings kept in `folder`; a value of the wrong kind falls back to its default."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            table = tomllib.loads(file.read(MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return Settings()
    target, drafts = table.get("target"), table.get("drafts")
    length = table.get("draft_length")
    named = drafts if isinstance(drafts, dict) else {}
    return Settings(
        target=target if isinstance(target, str) else None,
        drafts={k: v for k, v in named.items() if isinstance(v, str)},
        draft_length=length if type(length) is int and 0 <= length <= 16 else None,
        verification="rejection" if table.get("verification") == "rejection" else "coupled",
        sidebar=table.get("sidebar") is not False,
    )


def save(settings: Settings, folder: Path) -> None:
    """Write the settings; the old file stays whole until the new one is. Raises OSError."""
    table: dict[str, object] = {
        "draft_length": "auto" if settings.draft_length is None else settings.draft_length,
        "verification": settings.verification,
        "sidebar": settings.sidebar,
        "drafts": settings.drafts,
    }
    if settings.target is not None:
        table["target"] = settings.target
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE_NAME}.partial"
    with partial.open("wb") as file:
        tomli_w.dump(table, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / FILE_NAME)
