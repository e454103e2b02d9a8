"""Whether anything changed in the library's folders, told from names, sizes and times.

Opens no file and does not know what a model is. Asked every few seconds rather than told by the
system: that would take a handle for each folder, of which there may be hundreds, and say nothing
on network drives.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 4  # folders below a library folder: Ollama's manifests lie so deep
MOST = 20_000  # files and folders that are looked at, those nearest first


@dataclass(frozen=True)
class Stamp:
    """Digests of what lies in the folders: of the `names`, and of the `sizes` and times too."""

    names: str
    sizes: str


def stamp(folders: Iterable[Path]) -> Stamp:
    """The folders as they are now; what cannot be read counts as empty."""
    names, sizes = hashlib.blake2b(), hashlib.blake2b()
    for entry in _entries(folders):
        path = os.fsencode(entry.path) + b"\n"
        names.update(path)
        sizes.update(path)
        try:
            if not entry.is_dir():
                facts = entry.stat()
                sizes.update(b"%d %d\n" % (facts.st_size, facts.st_mtime_ns))
        except OSError:
            continue  # gone meanwhile, or a link that leads nowhere
    return Stamp(names.hexdigest(), sizes.hexdigest())


def _entries(folders: Iterable[Path]) -> Iterator["os.DirEntry[str]"]:
    """What lies in the folders and below, breadth first, without what is hidden."""
    queue = deque((str(folder), 0) for folder in folders)
    seen = 0
    while queue:
        folder, depth = queue.popleft()
        for entry in _listing(folder):
            seen += 1
            if seen > MOST:
                return
            yield entry
            if depth < DEEPEST and _is_folder(entry):
                queue.append((entry.path, depth + 1))


def _listing(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return sorted(
                (entry for entry in found if not entry.name.startswith(".")), key=lambda e: e.name
            )
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
