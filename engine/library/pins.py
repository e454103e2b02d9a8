"""Which wheels the graphics card add-on is made of, as the program's own table says.

Knows the table's format. Fetches nothing, and does not know what a wheel holds.
"""

import json
import platform
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wheel:
    """One pinned wheel: bytes of the file, bytes on the disk, its top-level names."""

    name: str
    sha256: str
    size: int
    unpacked: int
    tops: frozenset[str]


@dataclass(frozen=True)
class Build:
    """A build of torch: its version without what stands behind a "+", its CUDA (None: for the
    processor), the oldest driver and the least capable card that it runs with, its wheels."""

    torch: str
    cuda: str | None
    driver: str
    capability: tuple[int, int]
    wheels: tuple[Wheel, ...]

    @property
    def size(self) -> int:
        """Bytes to be downloaded."""
        return sum(wheel.size for wheel in self.wheels)

    @property
    def unpacked(self) -> int:
        """Bytes on the disk."""
        return sum(wheel.unpacked for wheel in self.wheels)


def tag() -> str:
    """This Python and this system, as wheels and the table call them."""
    machine = platform.machine().lower()
    return f"cp{sys.version_info.major}{sys.version_info.minor}-{sys.platform}_{machine}"


def build(text: str, torch: str) -> Build | None:
    """What the table `text` pins for this system and that version of torch; None: nothing."""
    table = json.loads(text)
    found = table["builds"].get(tag())
    if found is None or table["torch"] != torch:
        return None
    major, minor = found["capability"]
    wheels = tuple(_wheel(entry) for entry in found["wheels"])
    return Build(torch, found["cuda"], found["driver"], (major, minor), wheels)


def _wheel(entry: dict[str, Any]) -> Wheel:
    return Wheel(
        entry["name"],
        entry["sha256"],
        entry["size"],
        entry["unpacked"],
        frozenset(entry["tops"]),
    )
