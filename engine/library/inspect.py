"""What a model on disk is, from its headers and configuration alone.

The one door to model folders and GGUF files for whoever loads no weights. Does not know where
models are kept (`scan`), nor whether two of them work together (`guidance`).
"""

from dataclasses import replace
from pathlib import Path

from engine import vocabulary
from engine.api import ModelInfo
from engine.errors import Unsupported
from engine.library import files, folder, gguf, gguf_facts
from engine.library.starter import STARTER
from engine.vocabulary import Vocabulary

TOKENIZER_LIMIT = 100 * 2**20  # bytes; the largest known tokenizer.json has 33 MB
CACHE_PREFIX = "models--"


def inspect(path: Path) -> ModelInfo:
    """What is at `path`: a model folder, an entry of the hub's cache, or a GGUF file.

    Heads and adapters are told by `kind`. Raises Incomplete when a file is missing, cut off or
    damaged, Unsafe when code would have to be run, Unsupported when it is no language model.
    """
    path = resolve(path)
    try:
        if path.is_dir():
            return folder.describe(path, name_of(path))
        _require_gguf(path)
        info = gguf_facts.describe(path, name_of(path))
    except OSError as error:
        raise files.unreadable(path, error) from error
    return replace(info, name=STARTER.name) if path.name == STARTER.file else info


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary of the model at `path`, of no more than its tokenizer's file.

    Raises Incomplete when that is missing or damaged, Unsupported for an unknown kind.
    """
    path = resolve(path)
    if path.is_dir():
        data = files.read_bytes(path / "tokenizer.json", TOKENIZER_LIMIT)
        return vocabulary.from_tokenizer_json(data)
    _require_gguf(path)
    return vocabulary.from_gguf(gguf.read_header(path).metadata)


def template_text(path: Path) -> str | None:
    """The chat template of the model at `path`; None when it brings none.

    Raises Incomplete when the file that holds it cannot be read.
    """
    path = resolve(path)
    if path.is_dir():
        return folder.template(path)
    _require_gguf(path)
    return gguf_facts.template(gguf.read_header(path, skip_arrays=True))


def resolve(path: Path) -> Path:
    """Where the model itself lies: the newest snapshot of an entry of the hub's cache, the one
    GGUF file of a folder that holds nothing else to load; otherwise `path`."""
    try:
        if path.name.startswith(CACHE_PREFIX):
            snapshots = [entry for entry in (path / "snapshots").iterdir() if entry.is_dir()]
            path = max(snapshots, key=lambda entry: entry.stat().st_mtime, default=path)
        if path.is_dir() and not files.present(path / "config.json"):
            ggufs = [entry for entry in path.iterdir() if entry.suffix.lower() == ".gguf"]
            return ggufs[0] if len(ggufs) == 1 else path
    except OSError:
        pass  # what is wrong with the path is said by whoever reads it
    return path


def name_of(path: Path) -> str:
    """What to call a model whose files do not say: by its file, its folder or its repository."""
    for part in (path, path.parent.parent):
        if part.name.startswith(CACHE_PREFIX):
            return part.name.split("--")[-1]
    return path.name if path.is_dir() else path.stem


def _require_gguf(path: Path) -> None:
    if not path.exists():
        raise files.missing(path.name)
    if path.suffix.lower() in folder.PICKLES:
        raise folder.pickle(path.name)
    if path.suffix.lower() != ".gguf":
        raise Unsupported(
            "not_a_model",
            "{file} is neither a model folder nor a GGUF file.",
            file=path.name,
        )
