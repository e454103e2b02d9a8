"""NVIDIA's library, played: cards that a test makes up."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 2**30


class NVMLError(Exception):
    """As pynvml raises it, with NVIDIA's number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


@dataclass
class Card:
    """Bytes; `others` are the programs on it, by number, with what each holds (None: not told).

    With numbers of NVML's errors: `memory_fails` when its memory is asked for, `newer_fails` in
    the second form alone, `lost` whatever is asked.
    """

    name: str = "NVIDIA GeForce RTX 4070"
    uuid: str = "GPU-aaaa"
    total: int = 12 * GIB
    used: int = GIB
    reserved: int = GIB // 4
    others: dict[int, int | None] = field(default_factory=dict)
    memory_fails: int | None = None
    newer_fails: int | None = None
    lost: int | None = None
    capability: tuple[int, int] = (8, 9)


class Nvml:
    """Stands for the module pynvml; `fails` is the number of the error that every call raises."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 2

    def __init__(self, *cards: Card, fails: int | None = None, driver: str = "580.95.05") -> None:
        self.cards, self.fails, self.driver = list(cards), fails, driver
        self.open = 0

    def nvmlInit(self) -> None:
        self._check()
        self.open += 1

    def nvmlShutdown(self) -> None:
        self._check()
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        self._check()
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        card = self.cards[index]
        if card.lost is not None:
            raise NVMLError(card.lost)
        return card

    def nvmlDeviceGetName(self, card: Card) -> str:
        if not card.name:
            raise NVMLError(3)
        return card.name

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: int = 1) -> Any:
        if card.memory_fails is not None:
            raise NVMLError(card.memory_fails)
        if version == 2 and card.newer_fails is not None:
            raise NVMLError(card.newer_fails)
        free = card.total - card.used - card.reserved
        return SimpleNamespace(total=card.total, used=card.used, reserved=card.reserved, free=free)

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[Any]:
        return [SimpleNamespace(pid=p, usedGpuMemory=used) for p, used in card.others.items()]

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: Card) -> list[Any]:
        # the same programs again, as some drivers list them
        return self.nvmlDeviceGetComputeRunningProcesses(card)

    def nvmlDeviceGetMaxPcieLinkGeneration(self, card: Card) -> int:
        return 4

    def nvmlDeviceGetMaxPcieLinkWidth(self, card: Card) -> int:
        return 16

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:
        return card.capability

    def nvmlSystemGetDriverVersion(self) -> str:
        self._check()
        return self.driver

    def _check(self) -> None:
        if self.fails is not None:
            raise NVMLError(self.fails)
