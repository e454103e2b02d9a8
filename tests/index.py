"""A package index of our own on this machine, wheels to put there, and pins that name them."""

import contextlib
import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from engine.library import pins, unpacking
from engine.library.pins import Build, Wheel
from tests.hub import Handler, Hub, serving

TORCH = "torch-2.13.0-py3-none-any.whl"
# As much of torch as a trial asks for.
SOURCE = """
import os
from pathlib import Path
{first}
__version__ = "{version}"
class version:
    cuda, hip = {cuda!r}, None
class cuda:
    is_available = staticmethod(lambda: {card})
    @staticmethod
    def init(): raise RuntimeError("no card in this play")
class _Ones(list):
    def __add__(self, other): return _Ones(a + b for a, b in zip(self, other))
    def tolist(self): return list(self)
def ones(count, device): return _Ones([1.0] * count)
"""


def wheel(members: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    """A wheel's bytes; `modes` of members other than plain files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return made.getvalue()


def torch(
    version: str = "2.13.0+cu130", cuda: str | None = "13.0", card: bool = True, first: str = ""
) -> bytes:
    """A wheel of a torch that says so; `first` is what it does before anything else."""
    source = SOURCE.format(version=version, cuda=cuda, card=card, first=first)
    library = b"torch" * 250_000
    return wheel(
        {
            "torch/__init__.py": source.encode(),
            "torch/lib/libtorch_cpu.so": library,
            "torch/lib/libold.a": b"a" * 100,
            "torch/test/test_all.py": b"raise SystemExit",
            "torch/bin/torch_shm_manager": b"#!",
            "torch-2.13.0.dist-info/METADATA": b"Name: torch\nVersion: 2.13.0\n",
        },
        {"torch/bin/torch_shm_manager": stat.S_IFREG | 0o755},
    )


def pinned(name: str, data: bytes) -> Wheel:
    """A pin of that wheel, as packaging/pins.py writes it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kept = [m for m in archive.infolist() if unpacking.is_needed(m.filename)]
    return Wheel(
        name,
        hashlib.sha256(data).hexdigest(),
        len(data),
        sum(member.file_size for member in kept),
        frozenset(member.filename.partition("/")[0] for member in kept),
    )


def build(files: Mapping[str, bytes], cuda: str | None = "13.0") -> Build:
    """Pins of all these wheels."""
    wheels = tuple(pinned(name, data) for name, data in files.items())
    return Build("2.13.0", cuda, "580.65.06", (7, 5), wheels)


def table(made: Build) -> str:
    """resources/gpu.json with that build for this system alone."""
    wheels = [{**vars(wheel), "tops": sorted(wheel.tops)} for wheel in made.wheels]
    told = {**vars(made), "capability": list(made.capability), "wheels": wheels}
    return json.dumps({"torch": made.torch, "builds": {pins.tag(): told}})


@contextlib.contextmanager
def index(files: dict[str, bytes]) -> Iterator[Hub]:
    """An index that has these files; the hub's faults are its faults."""
    with serving({"index": files}, kind=_Index) as served:
        yield served


class _Index(Handler):
    """Answers as PEP 691 says."""

    def do_GET(self) -> None:
        served, path = self.served, unquote(urlsplit(self.path).path)
        served.requests.append((path, self.headers.get("Range")))
        files = served.repositories["index"]
        if self._scripted(path):
            return None
        if path.startswith("/simple/"):
            package = path.split("/")[2]
            listed = [
                {
                    "filename": name,
                    "url": f"../../files/{name}",
                    "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                    "size": served.sizes.get(name, len(data)),
                }
                for name, data in files.items()
                if name.partition("-")[0].replace("_", "-") == package
            ]
            if not listed:
                return self._answer(404, b"{}", {})
            return self._answer(200, json.dumps({"files": listed}).encode(), {})
        name = path.rpartition("/")[2]
        if name not in files:
            return self._answer(404, b"", {})
        return self._file(name, served.lies.get(name, files[name]))
