"""What is remembered between two starts: one small TOML file in the config folder.

The fields of `Settings` are the one table of what people can set: the dialog, the command
`slipstream settings` and the defaults are made from it. Knows no Qt and no widget. A missing or
damaged file means the defaults.
"""

import contextlib
import logging
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from app.setting import SWITCH, VISIBLE, Choice, Entry, Value, entries, shown, words
from engine.api import Drafting, Precision, Verification

FILE_NAME = "settings.toml"
MAX_BYTES = 1_000_000
log = logging.getLogger(__name__)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Theme = Literal["system", "light", "dark"]
Language = Literal["system", "en", "de"]
Overflow = Literal["ask", "drop", "summarise", "stop"]


@dataclass(frozen=True)
class Settings:
    """`target` is a path, and so are the values of `drafts` where they are not of
    `measured.WITHOUT_MODEL`; `draft_length` None is automatic; `drafts` has the last draft of each
    target. `precisions` has those chosen for a target, by its path; the others are automatic.
    `draft_precisions` likewise for a draft; the others have their target's. `contexts` has the
    length of the context in tokens that was chosen for a target. `speeds`: tokens per second
    without a draft, as last measured, by a model's path and its precision. `folders`: where models
    are looked for beside the usual places; `store`: the one of them into which downloads go, None
    for our own. `sidebar` and `chats` are None where the width of the window decides.
    `card_declined`: the graphics card's add-on is pointed at no more."""

    theme: Theme = field(
        default="system",
        metadata=shown(
            "Look",
            "Theme",
            choices=words(system="As the system", light="Light", dark="Dark"),
        ),
    )
    font_size: int = field(
        default=100,
        metadata=shown(
            "Look", "Font size", "Of the system's font size", numbers=range(80, 201, 10), unit="%"
        ),
    )
    language: Language = field(
        default="system",
        metadata=shown(
            "Look",
            "Language",
            "From the next start on",
            choices=words(system="As the system", en="English", de="Deutsch"),
        ),
    )
    sidebar: bool | None = field(
        default=None,
        metadata=shown("Look", "Sidebar", "Target, draft, memory and acceptance", choices=VISIBLE),
    )
    chats: bool | None = field(default=None, metadata=shown("Look", "Chat list", choices=VISIBLE))
    tint: bool = field(
        default=False,
        metadata=shown(
            "Chat", "Draft tint", "Marks what the draft wrote in an answer", choices=SWITCH
        ),
    )
    thinking: bool = field(
        default=False,
        metadata=shown(
            "Chat", "Unfold thinking", "Thoughts before an answer are open at first", choices=SWITCH
        ),
    )
    overflow: Overflow = field(
        default="ask",
        metadata=shown(
            "Chat",
            "When the context is full",
            "What the model no longer sees stays in the chat",
            choices=words(
                ask="Ask", drop="Drop the oldest turns", summarise="Summarise", stop="Stop"
            ),
        ),
    )
    notifications: bool = field(
        default=True,
        metadata=shown(
            "Chat",
            "Notifications",
            "When a long answer ends while another window is used",
            choices=SWITCH,
        ),
    )
    draft_length: int | None = field(
        default=None,
        metadata=shown(
            "Drafting",
            "Draft length",
            "How many are drafted at a time",
            choices=(Choice(None, "auto", "Automatic"),),
            numbers=range(17),
            unit="tokens",
        ),
    )
    verification: Verification = field(
        default="coupled",
        metadata=shown(
            "Drafting",
            "Verification",
            "Coupled keeps the target's own text, rejection only its odds",
            choices=words(coupled="Coupled", rejection="Rejection"),
        ),
    )
    offline: bool = field(
        default=False,
        metadata=shown("Network", "Offline", "Nothing is searched for or fetched", choices=SWITCH),
    )
    target: str | None = None
    drafts: dict[str, str] = field(default_factory=dict)
    precisions: dict[str, Precision] = field(default_factory=dict)
    draft_precisions: dict[str, Precision] = field(default_factory=dict)
    contexts: dict[str, int] = field(default_factory=dict)
    speeds: dict[str, dict[Precision, float]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    store: str | None = None
    card_declined: bool = False

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


TABLE = entries(Settings)
NAMED = {entry.name: entry for entry in TABLE}


def changed(settings: Settings, name: str, value: Value) -> Settings:
    """`settings` with another value of the entry `name`."""
    chosen: dict[str, Any] = {NAMED[name].name: value}
    return replace(settings, **chosen)


def texts() -> Iterator[str]:
    """All that people read of the table, for translators."""
    for entry in TABLE:
        yield from filter(None, (entry.group, entry.label, entry.help, entry.unit))
        yield from (choice.label for choice in entry.choices)


def load(folder: Path) -> Settings:
    """The settings kept in `folder`; a value of the wrong kind falls back to its default."""
    try:
        return read(folder)
    except OSError:
        return Settings()
    except ValueError as error:
        _put_aside(folder / FILE_NAME, error)
        return Settings()


def read(folder: Path) -> Settings:
    """As `load`, but raises OSError where there is no file, ValueError where it is damaged."""
    with (folder / FILE_NAME).open("rb") as file:
        table = tomllib.loads(file.read(MAX_BYTES).decode("utf-8"))
    if table.get("sidebar") is True:
        del table["sidebar"]  # earlier versions wrote this unasked
    target = table.get("target")
    speeds = {path: _speeds(measured) for path, measured in _table(table, "speeds").items()}
    kept = Settings(
        **{entry.name: _value(entry, table) for entry in TABLE},
        target=target if isinstance(target, str) else None,
        drafts={k: v for k, v in _table(table, "drafts").items() if isinstance(v, str)},
        precisions=_precisions(_table(table, "precisions")),
        draft_precisions=_precisions(_table(table, "draft_precisions")),
        contexts={k: v for k, v in _table(table, "contexts").items() if _is_context(v)},
        speeds={path: measured for path, measured in speeds.items() if measured},
        folders=_folders(table.get("folders")),
        card_declined=table.get("card_declined") is True,
    )
    store = _folders([table.get("store")])
    return kept.with_store(store[0]) if store else kept


def _put_aside(path: Path, error: ValueError) -> None:
    """A damaged file is kept beside the one that is written next."""
    kept = path.with_suffix(".damaged")
    log.warning("%s is damaged and lies at %s now: %s", path, kept, error)
    with contextlib.suppress(OSError):
        path.replace(kept)


def _value(entry: Entry, table: dict[str, Any]) -> Any:
    try:
        return entry.read(table.get(entry.name))
    except ValueError:
        return entry.default


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
    import tomli_w  # not above: what only tells the version or the options needs no other package

    table: dict[str, object] = {
        entry.name: entry.written(getattr(settings, entry.name)) for entry in TABLE
    }
    table |= {
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
    if settings.card_declined:
        table["card_declined"] = True
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE_NAME}.partial"
    with partial.open("wb") as file:
        tomli_w.dump(table, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / FILE_NAME)
