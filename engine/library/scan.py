"""Which models lie in the library's folders.

Knows their layouts: GGUF files, model folders, entries of the hub's cache, what this program has
not finished to fetch. What a model is, is `inspect`'s. A broken model is an entry with a problem;
it neither hides others nor raises.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine import families
from engine.api import ModelInfo
from engine.errors import EngineError, Incomplete, LoadError, Reason
from engine.library import begun, files, folder, formats, stores
from engine.library.gguf import MOST_PARTS, PART
from engine.library.hub import RemoteFile
from engine.library.inspect import CACHE_PREFIX, inspect, name_of, repository_of, resolve
from engine.library.starter import STARTER

DEPTH = 2  # folders in a library folder: LM Studio keeps publisher/repository/file.gguf
STARTER_NAME = "starter"
Read = Callable[[Path], ModelInfo]


@dataclass(frozen=True)
class Entry:
    """One model of the library: what it is, and why it cannot be used where it cannot. `info` is
    None of what cannot even be read. `fetched`: this program got it, and can get again what of it
    is damaged; only told of what has a problem."""

    name: str
    path: Path
    info: ModelInfo | None
    problem: Reason | None
    fetched: bool = False


def scan(folders: Iterable[Path], read: Read = inspect) -> list[Entry]:
    """Every model in `folders` and two levels below, by name; no two bear the same name.

    One of the `folders` may be a model itself, or a GGUF file. What is reached by several ways is
    listed once. `read` says what is at a path, as `inspect` does: one that remembers is faster.
    """
    folders = list(folders)
    unfinished = {key: entry for root in folders for key, entry in _unfinished(root)}
    paths: dict[str, tuple[Path, str | None]] = {}
    for root in folders:
        for path, name in _found(root):
            place = _place(path)
            if place not in paths or str(path) == place:
                paths[place] = path, name
    entries = [_entry(*paths[key], read) for key in paths if key not in unfinished]
    entries += [entry for entry in unfinished.values() if entry is not None]
    return sorted(_distinct(entries), key=lambda e: e.name.lower())


def find(name: str, folders: Iterable[Path], read: Read = inspect) -> Path:
    """The model that `name` means: a path, "starter", or a name in the library.

    Names are an entry's own, its file's with or without suffix, its folder's or repository's,
    in any case. Raises LoadError when there is none or more than one, listing them.
    """
    path = given(name)
    if path is not None:
        return _only(path)
    entries = scan(folders, read)
    wanted = STARTER.file if name.lower() == STARTER_NAME else name
    exact = [entry for entry in entries if entry.name.lower() == wanted.lower()]
    found = exact or [entry for entry in entries if wanted.lower() in _other_names(entry)]
    if len(found) > 1:
        raise _ambiguous(name, [entry.name for entry in found])
    if not found:
        raise _no_such_model(name, entries)
    return found[0].path


def given(name: str) -> Path | None:
    """The path that `name` is, where something lies there."""
    path = Path(os.path.expanduser(name))
    return path if name and files.present(path) else None


def _place(path: Path) -> str:
    """The same for a model by whichever folders it is reached; a link of a file is a name that
    somebody gave it."""
    if files.is_folder(path):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(path.parent), path.name)


def _unfinished(root: Path) -> Iterator[tuple[str, Entry | None]]:
    """What this program began to fetch into `root`: an entry of it at its place, and None at those
    of its other files, which are no models without each other."""
    for item in begun.unfinished(root):
        target, path = begun.folder_of(item.plan.repository, root), begun.path_of(item.plan, root)
        every = [target / file.name for file in item.plan.files]
        if all(map(_is_whole, every, item.plan.files)):
            continue
        yield from ((_place(file), None) for file in every)
        problem = folder.unfinished(files.shown(path.name)).reason
        yield _place(path), Entry(name_of(path), path, None, problem)


def _is_whole(path: Path, file: RemoteFile) -> bool:
    """By its size; one that is fetched again has its new beginning beside it."""
    beside = path.with_name(path.name + begun.PARTIAL)
    return begun.length(path) == file.size and not files.present(beside)


def _found(root: Path) -> Iterator[tuple[Path, str | None]]:
    """Paths of models, with their name where their file cannot say it."""
    if stores.is_ollama(root):
        yield from ((path, name) for name, path in stores.ollama_models(root))
    elif root.name.startswith(CACHE_PREFIX):
        yield from ((path, None) for path in _one_or_files(resolve(root)))
    else:
        yield from ((path, None) for path in (*_itself(root), *_models(root, DEPTH)))


def _itself(root: Path) -> Iterator[Path]:
    """A folder to be looked through, where it is a model or a file itself."""
    if files.is_folder(root):
        stated = files.present(root / "config.json") or files.present(root / folder.ADAPTER)
        yield from [root] if stated and _is_model(root) else []
    elif root.suffix.lower() == ".gguf" and files.exists(root):
        yield root


def _models(root: Path, depth: int) -> Iterator[Path]:
    """Paths of models in `root` and in `depth` levels of folders below it."""
    for path in _listing(root):
        if path.name.startswith("."):
            continue
        if _is_gguf(path):
            yield path
        elif not files.is_folder(path):
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
    """Whether it is a GGUF file, and of a split set the first part that is here."""
    if path.suffix.lower() != ".gguf" or files.is_folder(path):
        return False
    part = PART.fullmatch(path.name)
    if part is None:
        return True
    before = range(1, min(int(part["number"]), MOST_PARTS))
    names = (f"{part['stem']}-{n:05d}-of-{part['count']}{part['suffix']}" for n in before)
    return not any(files.exists(path.with_name(name)) for name in names)


def _is_model(path: Path) -> bool:
    """Whether a folder is meant as a model, sound or not; GGUF files may bring a config.json."""
    names = {entry.name for entry in _listing(path)}
    suffixes = {Path(name).suffix.lower() for name in names}
    if ".safetensors" in suffixes or names & {folder.INDEX, folder.ADAPTER}:
        return True
    return ".gguf" not in suffixes and (
        "config.json" in names or not suffixes.isdisjoint(folder.PICKLES)
    )


def _entry(path: Path, name: str | None, read: Read) -> Entry:
    info = None
    try:
        info = read(path)
        if name is not None:
            info = replace(info, name=name)
        formats.require(info.quantisation)
        families.require(info)
    except EngineError as error:
        said = info.name if info is not None else name or name_of(path)
        fetched = isinstance(error, Incomplete) and begun.is_noted(path)
        return Entry(said, path, info, error.reason, fetched)
    return Entry(info.name, path, info, None)


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
                [files.shown(entry.path.parent.name) for entry in group],
                [files.shown(entry.path.name) for entry in group],
                [files.shown(str(entry.path)) for entry in group],
                [str(entry.path) for entry in group],
            )
            if len(set(labels)) == len(group)
        )
        for entry, label in zip(group, labels, strict=True):
            yield replace(entry, name=f"{entry.name} ({label})")


def _other_names(entry: Entry) -> set[str]:
    path = entry.path
    found = {path.name, path.stem} if path.suffix.lower() == ".gguf" else {path.name}
    found |= {name_of(path), *entry.name.split(stores.BETWEEN)}
    if entry.info is not None:
        found.add(entry.info.name)
    repository = repository_of(path)
    if repository is not None:
        found.add(repository)
    return {name.lower() for name in found}


def _only(path: Path) -> Path:
    """The model at a path: of a folder that just holds one GGUF file, that."""
    if not files.is_folder(path) or _is_model(path):
        return path
    ggufs = [file for file in _listing(path) if _is_gguf(file)]
    if len(ggufs) > 1:
        raise _ambiguous(path.name, [files.shown(file.name) for file in ggufs])
    return ggufs[0] if ggufs else path


def _ambiguous(name: str, models: Sequence[str]) -> LoadError:
    return LoadError(
        "ambiguous_name",
        "“{name}” may be any of these: {models}.",
        name=name,
        models=", ".join(models),
    )


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
