"""NVIDIA's own count of its cards: names, memory, who holds it.

Asked through NVML, which makes no CUDA context. Does not know what torch makes of the cards.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import Reason

# NVML's own numbers for what went wrong.
NOT_SUPPORTED, NO_DRIVER, MISMATCH = 3, 12, 18
# Bytes a second of one lane of PCI Express, by generation.
LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
CARD = "Graphics card"  # one without a name


@dataclass(frozen=True)
class Process:
    """A program that holds memory of a card; `used` bytes, None where the system does not tell."""

    pid: int
    used: int | None


@dataclass(frozen=True)
class Gpu:
    """One card as NVML sees it; bytes, None where it does not tell: memory shared with the system.

    `reserved` is held by the driver and is part of neither `used` nor `free`. `link`: bytes a
    second that its connection carries at most. `capability`: NVIDIA's number for what it can
    compute, (8, 9) of an RTX 4070.
    """

    name: str
    uuid: str
    total: int | None = None
    used: int | None = None
    reserved: int | None = None
    free: int | None = None
    processes: tuple[Process, ...] = ()
    link: float | None = None
    capability: tuple[int, int] | None = None


class Gauge:
    """NVML kept open, to be read again and again; a driver that goes away may come back."""

    def __init__(self) -> None:
        self._nvml: Any = None

    def read(self) -> tuple[list[Gpu], Reason | None]:
        """The NVIDIA cards now, and why none could be asked, where that is so. Never raises."""
        try:
            if self._nvml is None:
                import pynvml

                pynvml.nvmlInit()
                self._nvml = pynvml
            return _gpus(self._nvml), None
        except ImportError:
            return [], Reason("nvml_missing", "NVIDIA's library is not installed.")
        except Exception as error:
            self.close()
            return [], _nvml_reason(error)

    def close(self) -> None:
        """Let NVML go. Never raises."""
        # a driver that went away fails here once more
        with contextlib.suppress(Exception):
            if self._nvml is not None:
                self._nvml.nvmlShutdown()
        self._nvml = None


def gpus() -> tuple[list[Gpu], Reason | None]:
    """The NVIDIA cards, and why none could be asked, where that is so. Never raises."""
    gauge = Gauge()
    try:
        return gauge.read()
    finally:
        gauge.close()


def driver() -> str:
    """The version of NVIDIA's driver, such as "580.65.06"; empty where it cannot be told."""
    with contextlib.suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        try:
            return _text(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    return ""


def _gpus(nvml: Any) -> list[Gpu]:
    """Every card; one that fails is unknown, beside those that do not. Raises where all fail."""
    found, failures = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as error:
            failures.append(error)
            found.append(Gpu(CARD, ""))
            continue
        gpu = Gpu(
            _name(nvml, handle),
            _uuid(nvml, handle),
            link=_link(nvml, handle),
            capability=_capability(nvml, handle),
        )
        try:
            found.append(_measured(gpu, nvml, handle))
        except Exception as error:
            failures.append(error)
            found.append(gpu)
    if failures and len(failures) == len(found):
        raise failures[0]
    return found


def _measured(found: Gpu, nvml: Any, handle: Any) -> Gpu:
    """With what the card says of its memory; raises as NVML does."""
    memory = _memory(nvml, handle)
    if memory is None:
        return found
    reserved = getattr(memory, "reserved", None)
    processes = tuple(_processes(nvml, handle))
    return replace(
        found,
        total=memory.total,
        used=memory.used,
        reserved=reserved,
        free=memory.free,
        processes=processes,
    )


def _link(nvml: Any, handle: Any) -> float | None:
    """What PCI Express carries to the card, bytes a second; None where it does not say."""
    with contextlib.suppress(Exception):
        generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
        lanes = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
        return float(LANE.get(generation, LANE[max(LANE)]) * lanes)
    return None


def _capability(nvml: Any, handle: Any) -> tuple[int, int] | None:
    with contextlib.suppress(Exception):
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        return int(major), int(minor)
    return None


def _memory(nvml: Any, handle: Any) -> Any:
    """What the card says of its memory, the driver's share apart; None where it says nothing."""
    # Whatever goes wrong: an older library lacks the question, an older driver the answer.
    with contextlib.suppress(Exception):
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle)
    except Exception as error:
        if _code(error) != NOT_SUPPORTED:
            raise
        return None


def _processes(nvml: Any, handle: Any) -> Iterator[Process]:
    """The programs that hold memory; none where the system does not say."""
    seen: set[int] = set()
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        with contextlib.suppress(Exception):
            for process in getattr(nvml, name)(handle):
                if process.pid not in seen:
                    seen.add(process.pid)
                    yield Process(process.pid, process.usedGpuMemory)


def _name(nvml: Any, handle: Any) -> str:
    with contextlib.suppress(Exception):
        return _text(nvml.nvmlDeviceGetName(handle))
    return CARD


def _uuid(nvml: Any, handle: Any) -> str:
    with contextlib.suppress(Exception):
        return _text(nvml.nvmlDeviceGetUUID(handle))
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")


def _code(error: Exception) -> Any:
    return getattr(error, "value", None)


def _nvml_reason(error: Exception) -> Reason:
    if _code(error) == NO_DRIVER:
        return Reason("nvml_no_driver", "No NVIDIA driver was found.")
    if _code(error) == MISMATCH:
        return Reason(
            "nvml_mismatch",
            "NVIDIA's driver was updated; restart the computer to use the graphics card.",
        )
    return Reason("nvml_failed", "NVIDIA's library did not answer: {error}", {"error": str(error)})
