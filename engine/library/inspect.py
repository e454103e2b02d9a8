"""What a model on disk is, from its headers and configuration alone.

The one door to model folders and GGUF files for whoever loads no weights. Does not know where
models are kept (`scan`), nor whether two of them work together (`guidance`).
"""

import os
import re
from dataclasses import replace
from pathlib import Path

from engine import vocabulary
from engine.api import ModelInfo
from engine.errors import LoadError, Unsupported
from engine.library import files, folder, gguf, gguf_facts, stores
from engine.library.begun import PARTIAL
from engine.library.starter import STARTER
from engine.vocabulary import Vocabulary

TOKENIZER_LIMIT = 100 * 2**20  # bytes; the largest known tokenizer.json has 33 MB
CACHE_PREFIX = "models--"
COMMIT, COMMIT_LIMIT = re.compile("[0-9a-f]{40}"), 100  # bytes of a file that names one


def inspect(path: Path) -> ModelInfo:
    """What is at `path`: a model folder, an entry of the hub's cache, or a GGUF file.

    Heads and adapters are told by `kind`. Raises Incomplete when a file is missing, cut off or
    damaged, Unsafe when code would have to be run, Unsupported when it is no language model.
    """
    path = resolve(path)
    try:
        if files.is_folder(path):
            return folder.describe(path, name_of(path))
        _require_gguf(path)
        info = gguf_facts.describe(path, name_of(path))
    except OSError as error:
        raise files.unreadable(path, error) from error
    return replace(info, name=STARTER.name) if path.name == STARTER.file else info


def read_vocabulary(path: Path, most: int = vocabulary.LARGEST) -> Vocabulary:
    """The vocabulary of the model at `path`, of no more than its tokenizer's file. Of a GGUF's, no
    more than the first `most` ids are read.

    Raises Incomplete when that is missing or damaged, Unsupported for an unknown kind.
    """
    path = resolve(path)
    if files.is_folder(path):
        data = files.read_bytes(path / "tokenizer.json", TOKENIZER_LIMIT)
        return vocabulary.from_tokenizer_json(data)
    _require_gguf(path)
    arrays = dict.fromkeys(vocabulary.GGUF_KEYS, most)
    return vocabulary.from_gguf(gguf.read_header(path, arrays=arrays).metadata)


def template_text(path: Path) -> str | None:
    """The chat template of the model at `path`; None when it brings none.

    Raises Incomplete when the file that holds it cannot be read.
    """
    path = resolve(path)
    if files.is_folder(path):
        return folder.template(path)
    _require_gguf(path)
    return gguf_facts.template(gguf.read_header(path, arrays={}))


def resolve(path: Path) -> Path:
    """Where the model itself lies: the snapshot of an entry of the hub's cache, the one GGUF file
    of a folder that holds nothing else to load; otherwise `path`."""
    try:
        if path.name.startswith(CACHE_PREFIX):
            path = _main(path) or _newest(path)
        if files.is_folder(path) and not files.present(path / "config.json"):
            ggufs = [entry for entry in path.iterdir() if entry.suffix.lower() == ".gguf"]
            return ggufs[0] if len(ggufs) == 1 else path
    except OSError:
        pass  # what is wrong with the path is said by whoever reads it
    return path


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one model, be it over links or from where the program runs."""
    return os.path.realpath(resolve(one)) == os.path.realpath(resolve(other))


def _main(entry: Path) -> Path | None:
    """The snapshot that the hub's library takes when no revision is asked for."""
    try:
        commit = files.read_start(entry / "refs" / "main", COMMIT_LIMIT).decode("ascii").strip()
    except (LoadError, UnicodeDecodeError):
        return None
    found = entry / "snapshots" / commit
    return found if COMMIT.fullmatch(commit) and files.is_folder(found) else None


def _newest(entry: Path) -> Path:
    """The snapshot that came last; `entry` itself where none has come. Raises OSError."""
    snapshots = [path for path in (entry / "snapshots").iterdir() if files.is_folder(path)]
    return max(snapshots, key=lambda path: path.stat().st_mtime, default=entry)


def repository_of(path: Path) -> str | None:
    """The repository whose entry of the hub's cache, or a snapshot or file in it, is at `path`."""
    for part in (path, path.parent.parent, path.parent.parent.parent):
        if part.name.startswith(CACHE_PREFIX):
            return part.name.removeprefix(CACHE_PREFIX).replace("--", "/")
    return None


def name_of(path: Path) -> str:
    """What to call a model whose files do not say: by its file, its folder or its repository."""
    repository = repository_of(path)
    if repository is not None and path.suffix.lower() != ".gguf":
        return files.shown(repository.rpartition("/")[2])
    if not path.name:  # "."
        path = path.absolute()
    return files.shown(path.name if files.is_folder(path) else path.stem)


def _require_gguf(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        beside = path.with_name(path.name + PARTIAL)
        if files.present(beside) or (files.present(path) and any(folder.leftovers(path.parent))):
            raise folder.unfinished(path.name) from error
        raise files.unreadable(path, error) from error
    if path.suffix.lower() in folder.PICKLES:
        raise folder.pickle(path.name)
    if path.suffix.lower() != ".gguf" and not stores.is_blob(path):
        raise Unsupported(
            "not_a_model",
            "{file} is neither a model folder nor a GGUF file.",
            file=path.name,
        )
