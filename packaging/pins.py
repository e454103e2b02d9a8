"""Writes resources/gpu.json: python packaging/pins.py

What the graphics card add-on is made of: torch's CUDA build of the version that the packaged
program ships, and all that it needs and the program does not have. Asks the package index, and of
each wheel only for its table of contents, since pip would fetch gigabytes; needs `packaging`. Run
it when the torch of the bundle changes, and look at the difference before it is kept.
"""

import io
import json
import os
import re
import sys
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path
from urllib.parse import urljoin

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename

TOP = Path(__file__).parents[1]
sys.path.append(str(TOP))  # behind the packages: packaging/ here is none

from engine.library import unpacking  # noqa: E402

TORCH = "2.13.0"
PYTHON = "cp311"
# The oldest glibc that the bundle runs on is 2.36, so that every manylinux will do.
SYSTEMS = {
    "linux_x86_64": ("Linux", "linux", "x86_64"),
    "win32_amd64": ("Windows", "win32", "AMD64"),
}
# In the program already, and bound to no build of torch.
OURS = {
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx"),
    *("setuptools", "sympy", "typing-extensions"),
}
# The oldest driver and card by CUDA's major version: CUDA Toolkit release notes, "CUDA Toolkit and
# Corresponding Driver Versions" and "Deprecated Architectures".
NEEDS = {"13": {"driver": "580.65.06", "capability": [7, 5]}}
SIMPLE = "application/vnd.pypi.simple.v1+json"
CUDA = re.compile(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)


class Remote(io.RawIOBase):
    """A file on a server, read by parts."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.at = url, size, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, buffer: bytearray) -> int:
        end = min(self.at + len(buffer), self.size)
        if end <= self.at:
            return 0
        asked = urllib.request.Request(
            self.url, headers={"Range": f"bytes={self.at}-{end - 1}", "User-Agent": "slipstream"}
        )
        with urllib.request.urlopen(asked) as answer:
            if answer.status != 206:
                raise OSError(f"{self.url}: the server gives no parts of files")
            data = answer.read()
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def listed(name: str) -> list[dict]:
    """The files of a package, as the index has them."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    url = f"{index}/{name}/"
    asked = urllib.request.Request(url, headers={"Accept": SIMPLE, "User-Agent": "slipstream"})
    with urllib.request.urlopen(asked) as answer:
        return [{**file, "url": urljoin(url, file["url"])} for file in json.load(answer)["files"]]


def suits(tags: frozenset[Tag], system: str) -> bool:
    """Whether a wheel can be used there."""
    for tag in tags:
        python = tag.interpreter in (PYTHON, "py3") and tag.abi in (PYTHON, "abi3", "none")
        linux = system.startswith("linux") and re.fullmatch(r"manylinux.*x86_64", tag.platform)
        windows = system.startswith("win32") and tag.platform == "win_amd64"
        if python and (linux or windows or tag.platform == "any"):
            return True
    return False


def newest(wanted: Requirement, system: str) -> dict | None:
    """The newest wheel that is wanted."""
    found = []
    for file in listed(canonicalize_name(wanted.name)):
        if not file["filename"].endswith(".whl") or file.get("yanked"):
            continue
        _, version, _, tags = parse_wheel_filename(file["filename"])
        if wanted.specifier.contains(version) and suits(tags, system):
            found.append((version, file))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def opened(file: dict) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BufferedReader(Remote(file["url"], file["size"]), 2**16))


def required(archive: zipfile.ZipFile, extras: set[str], system: str) -> list[Requirement]:
    """What a wheel needs there."""
    name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
    lines = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    platform_system, sys_platform, machine = SYSTEMS[system]
    there = {
        "platform_system": platform_system,
        "sys_platform": sys_platform,
        "platform_machine": machine,
        "python_version": f"3.{PYTHON[3:]}",
    }
    wanted = [Requirement(line) for line in lines]
    return [
        one
        for one in wanted
        if one.marker is None or any(one.marker.evaluate({**there, "extra": e}) for e in extras)
    ]


def pinned(file: dict, archive: zipfile.ZipFile) -> dict:
    """What is kept of a wheel to know it by."""
    kept = [m for m in archive.infolist() if unpacking.is_needed(m.filename)]
    return {
        "name": file["filename"],
        "sha256": file["hashes"]["sha256"],
        "size": file["size"],
        "unpacked": sum(member.file_size for member in kept),
        "tops": sorted({member.filename.partition("/")[0] for member in kept}),
    }


def build(system: str) -> dict | None:
    """The wheels of torch's CUDA build there; None where the index has none."""
    todo, seen, wheels, cuda = [Requirement(f"torch=={TORCH}")], {}, [], ""
    while todo:
        wanted = todo.pop(0)
        name, extras = canonicalize_name(wanted.name), {"", *wanted.extras}
        if name in OURS or extras <= seen.get(name, set()):
            continue
        file = newest(wanted, system)
        if file is None:
            raise SystemExit(f"{wanted}: no wheel for {system}")
        with opened(file) as archive:
            if name == "torch":
                told = CUDA.search(archive.read("torch/version.py").decode())
                if told is None:
                    return None
                cuda = told[1]
            if name not in seen:
                wheels.append(pinned(file, archive))
            todo += required(archive, extras, system)
        seen[name] = seen.get(name, set()) | extras
        print(f"{file['filename']}: {file['size'] / 1e6:.0f} MB", file=sys.stderr)
    return {"cuda": cuda, **NEEDS[cuda.partition(".")[0]], "wheels": wheels}


def main() -> None:
    """Ask, and write the file."""
    builds = {f"{PYTHON}-{system}": build(system) for system in SYSTEMS}
    text = json.dumps({"torch": TORCH, "builds": builds}, indent=1)
    (TOP / "resources" / "gpu.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
