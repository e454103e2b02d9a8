"""What can be made of this computer's graphics card, in a sentence.

The packaged program ships torch for the processor; the add-on is torch's CUDA build of the same
version. Knows no Qt, asks no network, and loads no torch.
"""

import re
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import resources
from app import bundle, torch_addon
from engine import nvml
from engine.errors import Reason
from engine.library import addon, wheels
from engine.library.pins import Build, build

CUDA_INDEX = "https://download.pytorch.org/whl/cu130"
ROCM_INDEX = "https://download.pytorch.org/whl/rocm7.0"
NVIDIA, AMD, INTEL = "0x10de", "0x1002", "0x8086"  # makers' numbers on the PCI bus
DISPLAY = "0x03"  # how the class of what can draw begins there


class State(StrEnum):
    """What there is to do."""

    TOLD = "told"  # nothing here
    OFFERED = "offered"
    READY = "ready"  # from the next start on
    USED = "used"
    LEAVING = "leaving"  # used until the program ends
    REFUSED = "refused"


@dataclass(frozen=True)
class Outlook:
    """What is said, and a command to be copied where that is the way. Bytes: to be downloaded,
    how much of it is there, on the disk in the end. `fresh`: the user was not told yet."""

    state: State
    said: Reason
    command: str = ""
    size: int = 0
    come: int = 0
    unpacked: int = 0
    fresh: bool = False


def look(devices: Path = Path("/sys/bus/pci/devices")) -> Outlook:
    """How it stands now. Asks NVIDIA's library; never the network. `devices` is where Linux lists
    what is on the PCI bus."""
    if sys.platform == "darwin":
        said = Reason("gpu_mac", "PyTorch for the Mac uses the graphics card by itself.")
        return Outlook(State.TOLD, said)
    found, problem = nvml.gpus()
    makers = _makers(devices)
    packaged = bundle.torch()
    if packaged is None:
        return _installed(found, problem, makers)
    wanted = pinned()
    here = _here(wanted, torch_addon.version(packaged), found)
    if here is not None:
        return here
    if not found and (wanted is None or wanted.cuda is not None):
        return _without(problem, makers, _anew(ROCM_INDEX))
    return _offer(wanted, found)


def pinned() -> Build | None:
    """What this program's add-on is made of; None where there is none for this system."""
    packaged = bundle.torch()
    if packaged is None:
        return None
    return build(resources.read_text("gpu.json"), torch_addon.version(packaged))


def _here(wanted: Build | None, torch: str, found: list[nvml.Gpu]) -> Outlook | None:
    """What is there already of an add-on."""
    home = torch_addon.home()
    there, used = addon.read(home), torch_addon.in_use()
    disk = wanted.unpacked if wanted else 0
    if there is None or not there.suits(torch):
        if used is None:
            return None
        said = Reason("gpu_leaving", "From the next start on the processor computes.")
        return Outlook(State.LEAVING, said)
    refused = addon.refusal(home)
    if refused is not None:
        reason, told = refused
        return Outlook(State.REFUSED, reason, unpacked=disk, fresh=not told)
    return Outlook(State.USED if used else State.READY, _ready(found, bool(used)), unpacked=disk)


def _ready(found: list[nvml.Gpu], used: bool) -> Reason:
    if not found:
        return Reason("gpu_unseen", "The graphics card add-on is here, but no card is seen now.")
    values = {"card": found[0].name}
    if used:
        return Reason("gpu_used", "Slipstream computes on the graphics card, {card}.", values)
    return Reason(
        "gpu_ready",
        "From the next start on Slipstream computes on the graphics card, {card}.",
        values,
    )


def _without(problem: Reason | None, makers: set[str], rocm: str) -> Outlook:
    """What is said where NVIDIA's library sees no card; `rocm`: the command for AMD's."""
    if NVIDIA in makers:
        return Outlook(State.TOLD, _unlisted(problem))
    if AMD in makers:
        return Outlook(State.TOLD, _rocm(), rocm)
    if INTEL in makers:
        said = Reason(
            "gpu_intel",
            "This computer has an Intel graphics card. Slipstream can use those by NVIDIA and AMD, "
            "so the processor computes.",
        )
        return Outlook(State.TOLD, said)
    said = Reason("gpu_none", "No NVIDIA or AMD graphics card is seen, so the processor computes.")
    return Outlook(State.TOLD, said)


def _unlisted(problem: Reason | None) -> Reason:
    """Why NVIDIA's library does not list a card that is there."""
    if problem is None:
        return Reason(
            "gpu_unlisted",
            "This computer has an NVIDIA graphics card, but NVIDIA's driver does not list it, so "
            "the processor computes.",
        )
    if problem.code not in ("nvml_no_driver", "nvml_missing"):
        return problem
    return Reason(
        "gpu_no_driver",
        "This computer has an NVIDIA graphics card, but no driver by NVIDIA, which is needed "
        "to compute on it.",
    )


def _offer(wanted: Build | None, found: list[nvml.Gpu]) -> Outlook:
    """What an NVIDIA card can be used with."""
    name = found[0].name if found else nvml.CARD
    if wanted is None:
        said = Reason(
            "gpu_not_offered",
            "For this system Slipstream has no add-on that uses the graphics card, {card}. "
            "Installed with pip, it can use it with this build of PyTorch:",
            {"card": name},
        )
        return Outlook(State.TOLD, said, _anew(CUDA_INDEX))
    old = _too_old(wanted, found)
    if old is not None:
        return Outlook(State.TOLD, old)
    come = wheels.come(wanted, torch_addon.home() / addon.WHEELS)
    values = {"card": name}
    said = Reason(
        "gpu_offered",
        "Slipstream can compute on the graphics card, {card}, with an add-on that is downloaded "
        "once.",
        values,
    )
    return Outlook(State.OFFERED, said, "", wanted.size, come, wanted.unpacked)


def _too_old(wanted: Build, found: list[nvml.Gpu]) -> Reason | None:
    """That driver or card are older than the build needs."""
    if wanted.cuda is None:
        return None
    have = nvml.driver()
    if have and _numbers(have) < _numbers(wanted.driver):
        return Reason(
            "gpu_old_driver",
            "The driver of the graphics card is version {have}; version {need} or newer is needed "
            "to compute on it. Update NVIDIA's driver, then look here again.",
            {"have": have, "need": wanted.driver},
        )
    known = [gpu.capability for gpu in found if gpu.capability is not None]
    if known and max(known) < wanted.capability:
        return Reason(
            "gpu_old_card",
            "The graphics card, {card}, is too old to compute on: its compute capability is "
            "{have}, and {need} is needed.",
            {
                "card": found[0].name,
                "have": _dotted(max(known)),
                "need": _dotted(wanted.capability),
            },
        )
    return None


def _installed(found: list[nvml.Gpu], problem: Reason | None, makers: set[str]) -> Outlook:
    """Where torch came with pip: nothing is done here, but the way is shown."""
    from engine.devices import built_for

    built = built_for()
    if built:
        build = {"hip": "ROCm"}.get(built, built.upper())
        said = Reason(
            "gpu_built", "The PyTorch that is installed is the build for {build}.", {"build": build}
        )
        return Outlook(State.TOLD, said)
    if found:
        said = Reason(
            "gpu_pip",
            "The PyTorch that is installed is the build for the processor. This installs the one "
            "that uses the graphics card, {card}:",
            {"card": found[0].name},
        )
        return Outlook(State.TOLD, said, _pip(CUDA_INDEX))
    return _without(problem, makers, _pip(ROCM_INDEX))


def _rocm() -> Reason:
    return Reason(
        "gpu_rocm",
        "This computer has an AMD graphics card. Installed with pip, Slipstream can use many of "
        "them with PyTorch's build for ROCm:",
    )


def _pip(index: str) -> str:
    """Another build, in the environment that the program runs in."""
    python = sys.executable
    quoted = f'"{python}"' if sys.platform == "win32" else shlex.quote(python)
    return f"{quoted} -m pip install --force-reinstall torch --index-url {index}"


def _anew(index: str) -> str:
    """The README's command before Slipstream is installed with pip."""
    windows = sys.platform == "win32"
    python, pip = ("python", r".venv\Scripts\pip") if windows else ("python3", ".venv/bin/pip")
    return f"{python} -m venv .venv && {pip} install torch --index-url {index}"


def _makers(devices: Path) -> set[str]:
    """The makers' numbers of the graphics cards that Linux lists, also those without a driver."""
    found = set()
    for device in devices.glob("*"):
        with suppress(OSError, ValueError):
            if (device / "class").read_text(encoding="ascii").startswith(DISPLAY):
                found.add((device / "vendor").read_text(encoding="ascii").strip())
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"
