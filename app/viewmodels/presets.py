"""Named system prompts and named ways to choose tokens: the program's, and the user's own.

Own ones are kept in one TOML file; a missing or damaged file means that there are none. Knows no
chat and no widget.
"""

import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import tomli_w
from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.viewmodels import words
from app.viewmodels.binding import Property
from app.viewmodels.sampling import SHAPE, sound
from engine.api import Sampling

T = TypeVar("T")

MAX_BYTES = 1_000_000
MAX_NAME = 60  # characters

# What the model reads is not translated: it is kept in chats, and models follow English best.
PROMPTS: tuple[tuple[str, str], ...] = (
    ("none", ""),
    (
        "code",
        "You review code. Say first what is wrong, then what could be simpler, and quote the lines "
        "you mean. Suggest changes as short pieces of code. Do not praise.",
    ),
    (
        "brief",
        "Answer in as few words as are enough. No introduction, no summary, no lists unless asked "
        "for. If you do not know, say so.",
    ),
    (
        "editor",
        "You edit texts. Keep the meaning, the tone and the language of the text. Make it shorter "
        "and clearer, and give back the edited text only.",
    ),
    (
        "tutor",
        "You are a patient teacher. Explain in small steps with one example each, and end with one "
        "question that shows whether it was understood.",
    ),
    (
        "translator",
        "You translate. Text in English goes into German, all other text into English. Give back "
        "the translation only, with the formatting of the original.",
    ),
)

SAMPLINGS: tuple[tuple[str, Sampling], ...] = (
    ("precise", Sampling(temperature=0.0)),
    ("balanced", Sampling()),
    ("creative", Sampling(temperature=1.2, top_k=0, top_p=1.0, min_p=0.05)),
)


def _tr(text: str) -> str:
    return QCoreApplication.translate("presets", text)


def _names() -> dict[str, str]:
    return {
        "none": _tr("No system prompt"),
        "code": _tr("Code reviewer"),
        "brief": _tr("Short answers"),
        "editor": _tr("Editor"),
        "tutor": _tr("Teacher"),
        "translator": _tr("Translator"),
        "precise": _tr("Precise"),
        "balanced": _tr("Balanced"),
        "creative": _tr("Creative"),
    }


@dataclass(frozen=True)
class Preset(Generic[T]):
    """A value and what it is called; `own` ones can be renamed and deleted."""

    name: str
    value: T
    own: bool = True


class PresetList(QObject, Generic[T]):
    """The presets of one kind. What changes them returns the sentence that stands against it,
    "" when it was done."""

    presets_changed = Signal(object)
    presets = Property[tuple[Preset[Any], ...]](())

    def __init__(
        self,
        given: Sequence[Preset[T]],
        own: Sequence[Preset[T]],
        keep: Callable[[], str],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._keep = keep
        taken = {preset.name.casefold() for preset in given}
        self.presets = (*given, *(p for p in own if p.name.casefold() not in taken))

    def find(self, name: str) -> Preset[T] | None:
        """The preset with that name."""
        return next((p for p in self.presets if p.name.casefold() == name.casefold()), None)

    def holding(self, value: T) -> Preset[T] | None:
        """The first preset with that value."""
        return next((p for p in self.presets if p.value == value), None)

    def save(self, name: str, value: T) -> str:
        """Keep `value` under `name`, in place of an own preset of that name."""
        name = " ".join(name.split())
        there = self.find(name)
        if against := _against(name, there):
            return against
        kept = tuple(p for p in self.presets if p is not there)
        return self._change((*kept, Preset(name, value)))

    def rename(self, old: str, new: str) -> str:
        """Call an own preset by another name."""
        new = " ".join(new.split())
        preset, there = self.find(old), self.find(new)
        if preset is None or not preset.own:
            return ""
        if there is not None and there is not preset:
            return _tr("There is a preset “{name}” already.").format(name=there.name)
        if against := _against(new, there):
            return against
        return self._change(tuple(replace(p, name=new) if p is preset else p for p in self.presets))

    def delete(self, name: str) -> str:
        """Forget an own preset."""
        return self._change(
            tuple(p for p in self.presets if not (p.own and p.name.casefold() == name.casefold()))
        )

    def own(self) -> list[Preset[T]]:
        """Those that are the user's."""
        return [preset for preset in self.presets if preset.own]

    def _change(self, presets: tuple[Preset[T], ...]) -> str:
        before, self.presets = self.presets, presets
        against = self._keep()
        if against:
            self.presets = before
        return against


def _against(name: str, there: Preset[Any] | None) -> str:
    if not name:
        return _tr("A preset needs a name.")
    if len(name) > MAX_NAME:
        said = _tr("The name has {count} characters; {most} is the most.")
        return said.format(count=words.grouped(len(name)), most=MAX_NAME)
    if there is not None and not there.own:
        return _tr("“{name}” comes with the program. Another name is needed.").format(
            name=there.name
        )
    return ""


class Presets(QObject):
    """Both kinds, and their file."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        prompts, samplings = load(path)
        names = _names()
        self.prompts: PresetList[str] = PresetList(
            [Preset(names[key], text, own=False) for key, text in PROMPTS],
            prompts,
            self._keep,
            self,
        )
        self.samplings: PresetList[Sampling] = PresetList(
            [Preset(names[key], value, own=False) for key, value in SAMPLINGS],
            samplings,
            self._keep,
            self,
        )

    def prompt_name(self, text: str) -> str:
        """What a button calls a system prompt."""
        preset = self.prompts.holding(text.strip())
        return preset.name if preset is not None else _tr("Own")

    def sampling_name(self, sampling: Sampling) -> str:
        """What a button calls a way to choose tokens; seed and limits do not count."""
        preset = self.samplings.holding(shape(sampling))
        return preset.name if preset is not None else _tr("Own")

    def _keep(self) -> str:
        try:
            return save(self._path, self.prompts.own(), self.samplings.own())
        except OSError as error:
            said = _tr("The presets could not be saved: {detail}")
            return said.format(detail=error.strerror or type(error).__name__)


def shape(sampling: Sampling) -> Sampling:
    """The part of `sampling` that a preset stands for: how a token is chosen."""
    return Sampling(**{name: getattr(sampling, name) for name in SHAPE})


def reshaped(sampling: Sampling, preset: Sampling) -> Sampling:
    """`sampling` with the part that `preset` stands for taken from there."""
    return replace(sampling, **{name: getattr(preset, name) for name in SHAPE})


def load(path: Path) -> tuple[list[Preset[str]], list[Preset[Sampling]]]:
    """The user's presets in the file at `path`; what is not one is left out."""
    table = _read(path)
    prompts = [
        Preset(name, text)
        for name, row in _rows(table, "prompts")
        if isinstance(text := row.get("text"), str) and text.strip()
    ]
    samplings = [Preset(name, _sampling(row)) for name, row in _rows(table, "samplings")]
    return prompts, samplings


def save(path: Path, prompts: Sequence[Preset[str]], samplings: Sequence[Preset[Sampling]]) -> str:
    """Write the user's presets; the old file stays whole until the new one is, and one that could
    not be read is put aside. The sentence that stands against it, or "". Raises OSError."""
    table = {
        "prompts": [{"name": p.name, "text": p.value} for p in prompts],
        "samplings": [{"name": p.name, **_given(p.value)} for p in samplings],
    }
    written = tomli_w.dumps(table).encode("utf-8")
    if len(written) > MAX_BYTES:
        said = _tr("The presets would take {size}; {most} is the most.")
        return said.format(size=words.megabytes(len(written)), most=words.megabytes(MAX_BYTES))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and not _read(path):
        path.replace(path.with_suffix(".damaged"))
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(written)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return ""


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _rows(table: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    """Rows with a name, each name once."""
    rows = table.get(key)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for row in rows if isinstance(rows, list) else []:
        name = row.get("name") if isinstance(row, dict) else None
        if isinstance(name, str) and 0 < len(name.strip()) <= MAX_NAME:
            found.setdefault(name.strip().casefold(), (name.strip(), row))
    return list(found.values())


def _given(sampling: Sampling) -> dict[str, float | int]:
    return {name: value for name in SHAPE if (value := getattr(sampling, name)) is not None}


def _sampling(row: dict[str, Any]) -> Sampling:
    """What a row says, without values that are not numbers in their range."""
    values: dict[str, Any] = {name: row[name] for name in SHAPE if sound(name, row.get(name))}
    return Sampling(**values)
