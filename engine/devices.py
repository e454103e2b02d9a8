"""What this machine has: the devices that torch computes on and their memory.

torch is imported last, inside functions, and asked for memory only where `nvml` cannot tell: that
makes a context.
"""

import contextlib
import ctypes
import os
import platform
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from engine.errors import LoadError
from engine.fit import Room
from engine.nvml import CARD, Gpu
from engine.nvml import gpus as gpus

Device = Literal["cuda", "mps", "xpu", "cpu"]
DEVICES: tuple[Device, ...] = ("cuda", "mps", "xpu", "cpu")
# How torch's own version file names what it was built for.
BUILT_FOR = re.compile(r"^(cuda|hip|xpu)\b[^=]*=\s*['\"]", re.MULTILINE)


def rooms(device: str, cards: list[Gpu] | None = None) -> list[Room]:
    """The memory of all devices of the kind `device` that torch would compute on, in its order.

    `cards` is what NVML just said, if it was asked. Each of torch's devices is matched with
    NVML's by its UUID: what torch numbers 0 need not be NVML's first.
    """
    if device != "cuda":
        return [_shared_room(device)]
    torch = sys.modules.get("torch")
    if torch is None and built_for() == "hip":
        return [Room("cuda", "AMD graphics card", None, None)]
    cards = gpus()[0] if cards is None else cards
    # torch is not worth seconds here
    found = _of_nvml(_visible(cards)) if torch is None else _of_torch(torch, cards)
    return found or [Room("cuda", CARD, None, None)]


def _of_nvml(cards: list[Gpu]) -> list[Room]:
    return [Room("cuda", gpu.name, gpu.total, gpu.free, gpu.link) for gpu in cards]


def _visible(cards: list[Gpu]) -> list[Gpu]:
    """Which cards CUDA would use, in its order, by CUDA_VISIBLE_DEVICES.

    It holds indices, or beginnings of UUIDs; from the first that is none of the cards on, all are
    hidden, and all where one is named twice (CUDA C++ Programming Guide, environment variables).
    """
    stated = os.environ.get("CUDA_VISIBLE_DEVICES")
    if stated is None:
        return cards
    chosen: list[Gpu] = []
    taken: set[int] = set()
    for word in map(str.strip, stated.split(",")):
        if word.startswith("MIG-"):
            # a part of a card, whose memory nobody is asked for here
            chosen.append(Gpu(CARD, word))
            continue
        index = _index(word, cards)
        if index is None:
            break
        if index in taken:
            return []
        taken.add(index)
        chosen.append(cards[index])
    return chosen


def _index(word: str, cards: list[Gpu]) -> int | None:
    """Which card a word of CUDA_VISIBLE_DEVICES names; None: none, or more than one."""
    if word.isascii() and word.isdecimal():
        index = int(word[:9])
        return index if index < len(cards) else None
    found = [i for i, gpu in enumerate(cards) if word and gpu.uuid.startswith(word)]
    return found[0] if len(found) == 1 else None


def _of_torch(torch: Any, cards: list[Gpu]) -> list[Room]:
    by_uuid = {gpu.uuid.removeprefix("GPU-"): gpu for gpu in cards}
    found = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        gpu = by_uuid.get(str(getattr(facts, "uuid", "")))
        free = total = link = None
        if gpu is not None:
            free, total, link = gpu.free, gpu.total, gpu.link
        if total is None:
            # ROCm, and cards that share the system's memory
            with contextlib.suppress(Exception):
                free, total = torch.cuda.mem_get_info(index)
        found.append(Room("cuda", facts.name, total, free, link))
    return found


def _shared_room(device: str) -> Room:
    """The memory of a device that has no NVML; of one that shares the system's, the system's."""
    if device == "xpu":
        return _of_xpu()
    total, free = memory()
    name = "Main memory"
    if device == "mps":
        import torch

        with contextlib.suppress(Exception):
            # what the system lets the GPU have of one memory
            total = torch.mps.recommended_max_memory()
            free, name = min(free, total), "Unified memory"
    return Room(device, name, total, free)


def _of_xpu() -> Room:
    """An Intel card's, which torch alone can ask; it is not worth seconds here."""
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        free, total = torch.xpu.mem_get_info()
        return Room("xpu", torch.xpu.get_device_name(), total, free)
    return Room("xpu", "Intel graphics card", None, None)


def likely() -> Device:
    """The device that "auto" will be, told without torch: an NVIDIA, AMD or Intel card that torch
    was built for, Apple's chip, or none."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    built = built_for()
    if built == "xpu":
        return "xpu"
    cards = _visible(gpus()[0]) if built == "cuda" else []
    return "cuda" if cards or built == "hip" else "cpu"


def built_for() -> str:
    """ "cuda", "hip", "xpu", or nothing of the kind, as torch's files say; it is not imported."""
    spec = find_spec("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            match = BUILT_FOR.search((Path(folder) / "version.py").read_text(encoding="utf-8"))
            return match[1] if match else ""
    return ""


def available() -> list[Device]:
    """The devices torch can compute on, best first; "cpu" is always the last."""
    import torch

    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "xpu": torch.xpu.is_available(),
        "cpu": True,
    }
    return [d for d in DEVICES if present[d]]


def pick(wanted: str = "auto") -> Device:
    """The device to compute on. Raises LoadError when `wanted` is not here."""
    here = available()
    if wanted == "auto":
        return here[0]
    for device in here:
        if device == wanted:
            return device
    raise LoadError(
        "no_such_device",
        "There is no device {wanted} here. There is {here}.",
        wanted=wanted,
        here=", ".join(here),
    )


def memory() -> tuple[int, int]:
    """Total and available main memory, bytes."""
    import psutil

    now = psutil.virtual_memory()
    return int(now.total), int(now.available)


def release() -> None:
    """Give back memory that is kept though it is free: of devices, and of the heap, which keeps
    what lies between two blocks. Loads torch only if it is loaded already."""
    torch = sys.modules.get("torch")
    for device in DEVICES[:-1] if torch is not None else ():
        part = getattr(torch, device)
        if part.is_available():
            part.empty_cache()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(0)
