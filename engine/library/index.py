"""What was read of models before, kept in one file, so that nothing unchanged is read again.

A model is known by its files' names, sizes and times. What cannot be read of the file, or no
longer fits, is read of the models anew: deleting it only costs time.
"""

import contextlib
import hashlib
import json
import os
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from engine.api import Kind, ModelInfo
from engine.errors import LoadError
from engine.library import files, gguf
from engine.library.inspect import inspect, read_vocabulary, resolve
from engine.vocabulary import Difference, Vocabulary, difference

# Raise it when something else is read of a model.
FORMAT = 6
LIMIT = 2**26  # bytes of the file
MOST = 5000  # models, and pairs of them
BEGINNING = 1000  # ids; other families differ within the first hundreds
AT_HAND = 3  # vocabularies in memory, of some 20 MB: the target's, a draft's, one to come


class Index:
    """Facts of models by identity. May be used by several threads of one program."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._infos: dict[str, dict[str, Any]] = {}
        self._fingerprints: dict[str, str] = {}
        self._pairs: dict[str, dict[str, Any] | None] = {}
        self._read: dict[str, Vocabulary] = {}
        self._changed = False
        self._load()

    def info(self, path: Path) -> ModelInfo:
        """What is at `path`, as `inspect` says it; raises what that raises."""
        # links of one file are one model, but bear their own names
        key = f"{identity(path)} {path}"
        kept = self._infos.get(key)
        if kept is not None:
            with contextlib.suppress(TypeError, ValueError, KeyError):
                return _info(kept)
        info = inspect(path)
        self._keep(self._infos, key, asdict(info) | {"path": str(info.path)})
        return info

    def fingerprint(self, path: Path) -> str:
        """That of the model's vocabulary; raises what `read_vocabulary` raises."""
        key = identity(path)
        if key in self._read:
            # what is asked for again and again, the target's, stays at hand
            self._read[key] = self._read.pop(key)
        if key not in self._fingerprints:
            self._keep(self._fingerprints, key, self._vocabulary(path).fingerprint)
        return self._fingerprints[key]

    def difference(self, target: Path, draft: Path) -> Difference | None:
        """How the two models' vocabularies differ, as `vocabulary.difference` says it.

        Read only where neither they nor this pair were read before, and of a draft's GGUF
        no more than the beginning where that differs. Raises what `read_vocabulary` raises.
        """
        key = f"{identity(target)} {identity(draft)}"
        if key not in self._pairs:
            found = self._compared(target, draft)
            self._keep(self._pairs, key, None if found is None else asdict(found))
        kept = self._pairs[key]
        return None if kept is None else Difference(**kept)

    def _compared(self, target: Path, draft: Path) -> Difference | None:
        ours = self.fingerprint(target)
        if not files.is_folder(resolve(draft)) and identity(draft) not in self._fingerprints:
            early = difference(self._vocabulary(target), read_vocabulary(draft, BEGINNING))
            if early is not None:
                return early
        if ours == self.fingerprint(draft):
            return None
        return difference(self._vocabulary(target), self._vocabulary(draft))

    def save(self) -> None:
        """Write what is new; a full disk only means that it is read again."""
        if self._file is None or not self._changed:
            return
        with self._lock:
            data = json.dumps(
                {
                    "format": FORMAT,
                    "infos": self._infos,
                    "fingerprints": self._fingerprints,
                    "pairs": self._pairs,
                }
            )
            self._changed = False
        beside = self._file.with_suffix(f".{os.getpid()}.partial")
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_text(data, encoding="utf-8")
            beside.replace(self._file)

    def _vocabulary(self, path: Path) -> Vocabulary:
        key = identity(path)
        if key not in self._read:
            found = read_vocabulary(path)
            while len(self._read) >= AT_HAND:
                del self._read[next(iter(self._read))]
            self._read[key] = found
        return self._read[key]

    def _keep(self, table: dict[str, Any], key: str, value: Any) -> None:
        with self._lock:
            if len(table) >= MOST:
                table.clear()
            table[key] = value
            self._changed = True

    def _load(self) -> None:
        if self._file is None:
            return
        try:
            kept = files.read_json(self._file, LIMIT)
        except LoadError:
            return
        if kept.get("format") != FORMAT:
            return
        for name, kind in (("infos", dict), ("fingerprints", str), ("pairs", dict | None)):
            table = kept.get(name)
            if isinstance(table, dict):
                sound = {key: value for key, value in table.items() if isinstance(value, kind)}
                getattr(self, f"_{name}").update(sound)
        whole = {key: pair for key, pair in self._pairs.items() if _is_difference(pair)}
        self._pairs = whole


def identity(path: Path) -> str:
    """The model at `path` by the names, sizes and times of its files, the same by whichever path
    it is reached; no file is opened."""
    path = resolve(path)
    try:
        parts = files.listed(path) if files.is_folder(path) else gguf.parts(path)
    except LoadError:
        parts = [path]
    facts = [os.path.realpath(path)]
    for part in parts:
        with contextlib.suppress(OSError):
            stat = part.stat()
            name = "" if part == path else part.name
            facts.append(f"{name} {stat.st_size} {stat.st_mtime_ns}")
    # a file's name may be no UTF-8
    return hashlib.sha256(os.fsencode("\n".join(facts))).hexdigest()


_FIELDS = {field.name for field in fields(ModelInfo)}


def _info(kept: dict[str, Any]) -> ModelInfo:
    """Raises TypeError or ValueError when it is not what a ModelInfo holds."""
    if kept.keys() != _FIELDS:
        raise ValueError
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
    values |= {"path": Path(kept["path"]), "kind": Kind(kept["kind"])}
    return ModelInfo(**values)


def _is_difference(pair: dict[str, Any] | None) -> bool:
    return pair is None or pair.keys() == {field.name for field in fields(Difference)}
