"""The tokenizer of a model on disk, and the small settings that lie beside it.

Files are untrusted: bounded reads, and no code of a folder's is ever run.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from engine.api import Progress
from engine.child import Child
from engine.counting import built_file
from engine.errors import Incomplete, LoadError, first_line, heed
from engine.gguf import tokenizer as gguf_tokenizer
from engine.library.gguf import Header
from engine.library.inspect import template_text
from engine.template import Template
from engine.tokenizer import Tokenizer

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]

# JSON beside the weights: generation and tokenizer settings are a few kB.
SETTINGS_BYTES = 10 << 20
# Part of a cached tokenizer's name; raise it when the conversion changes.
TOKENIZER_CACHE = 1


def of_gguf(header: Header, cache: Path, progress: Report, stopped: Stopped) -> Tokenizer:
    """The tokenizer that a GGUF file describes, built once and kept in the folder `cache`.

    Raises LoadError when it cannot be built, and Cancelled when `stopped` says so.
    """
    key = _key(header)
    kept = built_file(cache, key)
    backend = None
    if kept.is_file():
        with contextlib.suppress(Exception):  # a damaged copy is made again
            backend = _read(kept)
    if backend is None:
        progress(Progress("tokenizer", 0, 1, "files"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        _build(header.path, kept, stopped)
        backend = _read(kept)
    template = gguf_tokenizer.template_of(header)
    return Tokenizer(
        backend,
        eos_ids=frozenset(gguf_tokenizer.eos_ids_of(header)),
        template=Template(template) if template else None,
        special_tokens=gguf_tokenizer.special_tokens_of(header),
        fingerprint=key,
        add_bos=bool(header.metadata.get("tokenizer.ggml.add_bos_token", False)),
    )


def _read(file: Path) -> tokenizers.Tokenizer:
    """A tokenizer.json; many have been saved with a limit and padding meant for training."""
    backend = tokenizers.Tokenizer.from_file(str(file))
    backend.no_truncation()
    backend.no_padding()
    return backend


def _build(gguf_file: Path, kept: Path, stopped: Stopped) -> None:
    """Build the tokenizer of a GGUF file into `kept`: seconds of one call that asks nothing.

    So it runs in a child process, which a stop kills and which leaves the window its time.
    """
    beside = kept.with_suffix(f".{os.getpid()}.partial")
    child = Child(gguf_tokenizer.build_into, gguf_file, beside)
    try:
        failure = None
        while True:
            heed(stopped)
            with contextlib.suppress(TimeoutError):
                failure = child.receive(0.1)
                break
        if failure is not None:
            kind, reason = failure
            raise kind(reason.code, reason.template, **reason.values)
        beside.replace(kept)
    except EOFError as error:
        raise LoadError(
            "tokenizer_crashed", "The tokenizer of {name} could not be built.", name=gguf_file.name
        ) from error
    finally:
        child.close()
        beside.unlink(missing_ok=True)


def _key(header: Header) -> str:
    digest = hashlib.sha256(f"{TOKENIZER_CACHE} {tokenizers.__version__}".encode())
    for key, value in sorted(header.metadata.items()):
        if key.startswith("tokenizer.ggml") or key == "general.architecture":
            digest.update(f"{key}={value!r}\n".encode())
    return digest.hexdigest()[:32]


def of_folder(path: Path, generation: Mapping[str, Any], config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a model's folder, whose settings are given. Raises Incomplete."""
    file = path / "tokenizer.json"
    if not file.is_file():
        raise Incomplete("no_tokenizer", "{name} has no tokenizer.json.", name=path.name)
    try:
        backend = _read(file)
    except Exception as error:  # the library raises bare Exception
        raise Incomplete(
            "tokenizer_damaged",
            "The tokenizer.json of {name} cannot be read: {error}",
            name=path.name,
            error=first_line(error),
        ) from error
    said = {
        **settings(path / "special_tokens_map.json"),
        **settings(path / "tokenizer_config.json"),
    }
    special = {
        key: token if isinstance(token, str) else str(token.get("content", ""))
        for key, token in said.items()
        if key.endswith("_token") and isinstance(token, str | dict)
    }
    template = template_text(path)
    bos = backend.token_to_id(special.get("bos_token", ""))
    eos = _ids(generation.get("eos_token_id", config.get("eos_token_id")))
    eos |= _ids(backend.token_to_id(special.get("eos_token", "")))
    return Tokenizer(
        backend,
        eos_ids=frozenset(eos),
        template=Template(template) if template else None,
        special_tokens=special,
        fingerprint=hashlib.sha256(file.read_bytes()).hexdigest()[:32],
        add_bos=bos is not None and bos in backend.encode("").ids,
    )


def _ids(value: object) -> set[int]:
    """One id, a list of them or none, as configurations write them."""
    values = value if isinstance(value, list) else [value]
    return {v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0}


def settings(file: Path) -> dict[str, Any]:
    """A small JSON file's object; empty where there is none. Raises Incomplete."""
    if not file.is_file():
        return {}
    try:
        if file.stat().st_size > SETTINGS_BYTES:
            raise ValueError("too large")
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        raise Incomplete(
            "settings_damaged",
            "{file} cannot be read: {error}",
            file=file.name,
            error=first_line(error),
        ) from error
    return found
