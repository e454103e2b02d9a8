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
NVIDIA, AMD = "0x10de", "0x1002"  # makers' numbers on the PCI bus


class State(StrEnum):
    """What there is to do."""

    NOTHING = "nothing"  # and nothing to say
    TOLD = "told"  # nothing here, but something is to be said
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
    said: Reason | None = None
    command: str = ""
    size: int = 0
    come: int = 0
    unpacked: int = 0
    fresh: bool = False


def look(cards: Path = Path("/sys/class/drm")) -> Outlook:
    """How it stands now. Asks NVIDIA's library; never the network. `cards` is where Linux lists
    its graphics cards."""
    if sys.platform == "darwin":
        return Outlook(State.NOTHING)  # torch's one build for it uses the card
    found, problem = nvml.gpus()
    makers = _makers(cards)
    packaged = bundle.torch()
    if packaged is None:
        return _installed(found, makers)
    wanted = pinned()
    here = _here(wanted, torch_addon.version(packaged), found)
    if here is not None:
        return here
    if not found and (wanted is None or wanted.cuda is not None):
        return _without(problem, makers)
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


def _without(problem: Reason | None, makers: set[str]) -> Outlook:
    """What is said where NVIDIA's library sees no card."""
    if NVIDIA in makers and problem is not None:
        if problem.code not in ("nvml_no_driver", "nvml_missing"):
            return Outlook(State.TOLD, problem)
        said = Reason(
            "gpu_no_driver",
            "This computer has an NVIDIA graphics card, but no driver by NVIDIA, which is needed "
            "to compute on it.",
        )
        return Outlook(State.TOLD, said)
    if AMD in makers:
        return Outlook(State.TOLD, _rocm(), _pip(".venv/bin/python", ROCM_INDEX))
    return Outlook(State.NOTHING)


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
        return Outlook(State.TOLD, said, _pip("python", CUDA_INDEX))
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


def _installed(found: list[nvml.Gpu], makers: set[str]) -> Outlook:
    """Where torch came with pip: nothing is done here, but the way is shown."""
    from engine.devices import built_for

    built = built_for()
    if built:
        return Outlook(State.NOTHING)
    if found:
        said = Reason(
            "gpu_pip",
            "The PyTorch that is installed is the build for the processor. This installs the one "
            "that uses the graphics card, {card}:",
            {"card": found[0].name},
        )
        return Outlook(State.TOLD, said, _pip(sys.executable, CUDA_INDEX))
    if AMD in makers:
        return Outlook(State.TOLD, _rocm(), _pip(sys.executable, ROCM_INDEX))
    return Outlook(State.NOTHING)


def _rocm() -> Reason:
    return Reason(
        "gpu_rocm",
        "This computer has an AMD graphics card. Installed with pip, Slipstream can use many of "
        "them with PyTorch's build for ROCm:",
    )


def _pip(python: str, index: str) -> str:
    quoted = f'"{python}"' if sys.platform == "win32" else shlex.quote(python)
    return f"{quoted} -m pip install --force-reinstall torch --index-url {index}"


def _makers(cards: Path) -> set[str]:
    """The makers' numbers of the graphics cards that Linux lists."""
    found = set()
    with suppress(OSError):
        for card in cards.glob("card*"):
            with suppress(OSError, ValueError):
                found.add((card / "device" / "vendor").read_text(encoding="ascii").strip())
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"
