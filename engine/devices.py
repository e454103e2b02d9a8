"""What this machine has: NVIDIA's own count of its cards, torch's devices, memory.

NVML is asked without making a CUDA context; torch is imported last, inside functions.
"""

import contextlib
import sys
from dataclasses import dataclass
from typing import Any, Literal

from engine.errors import LoadError, Reason

Device = Literal["cuda", "mps", "xpu", "cpu"]
DEVICES: tuple[Device, ...] = ("cuda", "mps", "xpu", "cpu")


@dataclass(frozen=True)
class Gpu:
    """One card as NVML sees it; bytes."""

    name: str
    total: int
    free: int


def gpus() -> tuple[list[Gpu], Reason | None]:
    """The NVIDIA cards, and why none could be asked, where that is so. Never raises."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        return [], Reason("nvml_missing", "NVIDIA's library is not installed.")
    except Exception as error:
        return [], _nvml_reason(error)
    try:
        return [_gpu(pynvml, i) for i in range(pynvml.nvmlDeviceGetCount())], None
    except Exception as error:
        return [], _nvml_reason(error)
    finally:
        # a driver that went away fails here once more
        with contextlib.suppress(Exception):
            pynvml.nvmlShutdown()


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = nvml.nvmlDeviceGetName(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(name if isinstance(name, str) else name.decode(), memory.total, memory.free)


def _nvml_reason(error: Exception) -> Reason:
    code = getattr(error, "value", None)
    if code == 12:
        return Reason("nvml_no_driver", "No NVIDIA driver was found.")
    if code == 18:
        return Reason(
            "nvml_mismatch",
            "NVIDIA's driver was updated; restart the computer to use the graphics card.",
        )
    return Reason("nvml_failed", "NVIDIA's library did not answer: {error}", {"error": str(error)})


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
    """Give cached device memory back. Loads torch only if it is loaded already."""
    torch = sys.modules.get("torch")
    for device in DEVICES[:-1] if torch is not None else ():
        part = getattr(torch, device)
        if part.is_available():
            part.empty_cache()
