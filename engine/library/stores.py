"""Where other programs keep their models: the hub's cache, LM Studio, Ollama.

Knows their folders and Ollama's manifests. Reads no model. Nothing is ever written there.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import LoadError
from engine.library import files

MANIFEST_LIMIT = 2**20  # bytes
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
BLOB = re.compile(r"sha256-[0-9a-f]{64}")
MODEL_LAYER = "application/vnd.ollama.image.model"
ADAPTER_LAYER = "application/vnd.ollama.image.adapter"
BETWEEN = ", "  # names of one model; no name of Ollama's has it
# What stands for nothing in Ollama's own listing: its registry, its own models.
REGISTRY, OWN = "registry.ollama.ai", "library"


def folders(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders of other programs that exist, as their documentation names them.

    Sources: huggingface_hub's environment variables; LM Studio's and Ollama's documentation.
    """
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environment.get("HF_HUB_CACHE") or (
        Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    )
    wanted = [
        hub,
        home / ".lmstudio" / "models",
        cache / "lm-studio" / "models",
        environment.get("OLLAMA_MODELS") or home / ".ollama" / "models",
        # where the service keeps them on Linux
        "/usr/share/ollama/.ollama/models",
    ]
    found = dict.fromkeys(Path(path).expanduser() for path in wanted)
    return [path for path in found if files.is_folder(path)]


def is_ollama(folder: Path) -> bool:
    """Whether `folder` is laid out as Ollama's: manifests that name blobs."""
    return files.is_folder(folder / "manifests") and files.is_folder(folder / "blobs")


def is_blob(path: Path) -> bool:
    """Whether `path` is named as Ollama names a file: by its hash, without a suffix."""
    return BLOB.fullmatch(path.name) is not None


def ollama_models(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and GGUF file of each of Ollama's models, several names of one file in one; a manifest
    that says nothing is passed over.

    Of a model that is an adapter upon another one it is the adapter's file. The file may be
    missing: whoever reads it says so.
    """
    root = folder / "manifests"
    names: dict[str, list[str]] = {}
    for manifest in sorted(_below(root, 4)):
        digest = _digest(manifest)
        if digest is not None:
            names.setdefault(digest, []).append(_name(manifest.relative_to(root).parts))
    for digest, several in names.items():
        yield BETWEEN.join(several), folder / "blobs" / f"sha256-{digest}"


def _name(parts: tuple[str, ...]) -> str:
    """registry/namespace/model/tag as Ollama shows it: model:tag."""
    *path, tag = parts
    if path and path[0] == REGISTRY:
        path = path[1:]
    if path and path[0] == OWN:
        path = path[1:]
    return f"{'/'.join(path)}:{tag}"


def _digest(manifest: Path) -> str | None:
    try:
        layers: Any = files.read_json(manifest, MANIFEST_LIMIT)["layers"]
        kinds = [layer["mediaType"] for layer in layers]
        wanted = ADAPTER_LAYER if ADAPTER_LAYER in kinds else MODEL_LAYER
        digests = [layer["digest"] for layer in layers if layer["mediaType"] == wanted]
    except (LoadError, KeyError, TypeError):
        return None
    # several: a model in parts, which Ollama no longer makes
    match = DIGEST.fullmatch(digests[0]) if len(digests) == 1 and type(digests[0]) is str else None
    return match[1] if match else None


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """The files exactly `depth` levels down."""
    try:
        entries = [e for e in folder.iterdir() if not e.name.startswith(".")]
    except OSError:
        return
    for entry in entries:
        if depth > 1 and files.is_folder(entry):
            yield from _below(entry, depth - 1)
        elif depth == 1 and os.path.isfile(entry):
            yield entry
