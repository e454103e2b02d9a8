"""Which models lie in the library's folders.

Knows their layouts: GGUF files, model folders, entries of the hub's cache. What a model is, is
`inspect`'s. A broken model is an entry with a problem; it neither hides others nor raises.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from re import fullmatch

from engine.api import ModelInfo
from engine.errors import EngineError, LoadError, Reason
from engine.library import files, folder
from engine.library.inspect import CACHE_PREFIX, inspect, name_of, resolve
from engine.library.starter import STARTER

DEPTH = 2  # folders in a library folder: LM Studio keeps publisher/repository/file.gguf
STARTER_NAME = "starter"


@dataclass(frozen=True)
class Entry:
    """One model of the library: what it is, or why it cannot be used."""

    name: str
    path: Path
    info: ModelInfo | None
    problem: Reason | None


def scan(folders: Iterable[Path]) -> list[Entry]:
    """Every model in `folders` and two levels below, by name; no two bear the same name."""
    paths = dict.fromkeys(path for root in folders for path in _models(root, DEPTH))
    return sorted(_distinct([_entry(path) for path in paths]), key=lambda e: e.name.lower())


def find(name: str, folders: Iterable[Path]) -> Path:
    """The model that `name` means: a path, "starter", or a name in the library.

    Names are an entry's own, its file's with or without suffix, its folder's or repository's,
    in any case. Raises LoadError when there is none or more than one, listing them.
    """
    if name and files.present(Path(name).expanduser()):
        return Path(name).expanduser()
    entries = scan(folders)
    wanted = STARTER.file if name.lower() == STARTER_NAME else name
    exact = [entry for entry in entries if entry.name.lower() == wanted.lower()]
    found = exact or [entry for entry in entries if wanted.lower() in _other_names(entry)]
    if len(found) > 1:
        raise LoadError(
            "ambiguous_name",
            "“{name}” may be any of these: {models}.",
            name=name,
            models=_listed(found),
        )
    if not found:
        raise _no_such_model(name, entries)
    return found[0].path


def _models(root: Path, depth: int) -> Iterator[Path]:
    """Paths of models in `root` and in `depth` levels of folders below it."""
    for path in _listing(root):
        if path.name.startswith("."):
            continue
        if _is_gguf(path):
            yield path
        elif not path.is_dir():
            continue
        elif path.name.startswith(CACHE_PREFIX):
            yield from _one_or_files(resolve(path))
        elif _is_model(path):
            yield path
        elif depth:
            yield from _models(path, depth - 1)


def _one_or_files(snapshot: Path) -> Iterator[Path]:
    """A snapshot as one model, or the GGUF files of which it is a collection."""
    ggufs = [path for path in _listing(snapshot) if _is_gguf(path)]
    if ggufs and not _is_model(snapshot):
        yield from ggufs
    else:
        yield snapshot


def _is_gguf(path: Path) -> bool:
    """Whether it is a GGUF file, and of a split set the first part."""
    if path.suffix.lower() != ".gguf" or path.is_dir():
        return False
    part = fullmatch(r"(.+)-(\d{5})-of-(\d{5})", path.stem)
    if part is None or part[2] == "00001":
        return True
    return not path.with_name(f"{part[1]}-00001-of-{part[3]}{path.suffix}").exists()


def _is_model(path: Path) -> bool:
    """Whether a folder is meant as a model, sound or not; GGUF files may bring a config.json."""
    names = {entry.name for entry in _listing(path)}
    suffixes = {Path(name).suffix.lower() for name in names}
    if ".safetensors" in suffixes or names & {folder.INDEX, folder.ADAPTER}:
        return True
    return ".gguf" not in suffixes and (
        "config.json" in names or not suffixes.isdisjoint(folder.PICKLES)
    )


def _entry(path: Path) -> Entry:
    try:
        info = inspect(path)
        return Entry(info.name, path, info, None)
    except EngineError as error:
        return Entry(name_of(path), path, None, error.reason)


def _distinct(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries; what tells them apart is added to a name that several have."""
    same: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        same[entry.name.lower()].append(entry)
    for group in same.values():
        if len(group) == 1:
            yield group[0]
            continue
        labels = next(
            labels
            for labels in (
                [entry.path.parent.name for entry in group],
                [entry.path.name for entry in group],
                [str(entry.path) for entry in group],
            )
            if len(set(labels)) == len(group)
        )
        for entry, label in zip(group, labels, strict=True):
            yield replace(entry, name=f"{entry.name} ({label})")


def _other_names(entry: Entry) -> set[str]:
    path = entry.path
    found = {path.name, path.stem} if path.suffix.lower() == ".gguf" else {path.name}
    found.add(name_of(path))
    if entry.info is not None:
        found.add(entry.info.name)
    repository = path.parent.parent.name
    if repository.startswith(CACHE_PREFIX):
        found.add(repository.removeprefix(CACHE_PREFIX).replace("--", "/"))
    return {name.lower() for name in found}


def _no_such_model(name: str, entries: Sequence[Entry]) -> LoadError:
    if name.lower() == STARTER_NAME:
        return LoadError(
            "no_starter",
            "The starter model is not in the library. “{command}” fetches its {size} MB.",
            command="slipstream get starter",
            size=round(STARTER.file_bytes / 1e6),
        )
    if not entries:
        return LoadError(
            "no_such_model", "“{name}” is neither a path nor in the library, which is empty.",
            name=name,
        )  # fmt: skip
    return LoadError(
        "no_such_model",
        "“{name}” is neither a path nor in the library, which holds: {models}.",
        name=name,
        models=_listed(entries),
    )


def _listed(entries: Sequence[Entry]) -> str:
    return ", ".join(entry.name for entry in entries)


def _listing(path: Path) -> list[Path]:
    """What is in a folder, in a fixed order; nothing when it cannot be read."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []
