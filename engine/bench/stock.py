"""The models that a bench runs on: ours by our loading, transformers' own beside them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from engine import stock
from engine.api import Precision
from engine.bench.plan import Plan
from engine.devices import pick, release
from engine.errors import Cancelled
from engine.library.gguf import read_header
from engine.loading import LoadedModel, Stopped, load

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What transformers runs in; the other precisions are ours.
FLOATS: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}

Say = Callable[[str], None]
Role = Literal["target", "draft"]


class Stock:
    """The models of a plan, each loaded once per precision; a draft never shares the target's."""

    def __init__(self, plan: Plan, say: Say, stopped: Stopped) -> None:
        self._plan, self._say, self._stopped = plan, say, stopped
        self._models: dict[tuple[str, Path, Precision | None], LoadedModel] = {}
        self._networks: dict[tuple[str, Path, Precision], PreTrainedModel] = {}

    def model(self, role: Role, path: Path, precision: Precision | None) -> LoadedModel:
        """The model as our engine runs it; None: in what the engine takes for it."""
        if (role, path, precision) not in self._models:
            self._say(f"loading {path.name}" + (f" in {precision}" if precision else ""))
            new = load(
                path,
                cache_folder=self._plan.cache_folder,
                device=self._plan.device,
                precision=precision,
                stopped=self._stopped,
            )
            kept = self._models.setdefault((role, path, new.loaded.precision), new)
            if kept is not new:
                new.close()
            self._models[role, path, precision] = kept
        return self._models[role, path, precision]

    def network(self, role: Role, path: Path, precision: Precision) -> "PreTrainedModel":
        """The model as transformers runs it, untouched by us."""
        if (role, path, precision) not in self._networks:
            if self._stopped():
                raise Cancelled()
            self._say(f"loading {path.name} in {precision} for transformers")
            device = pick(self._plan.device)
            self._networks[role, path, precision] = _load_plain(path, device, FLOATS[precision])
        return self._networks[role, path, precision]

    def close(self) -> None:
        """Give all memory back."""
        for model in {id(m): m for m in self._models.values()}.values():
            model.close()
        for network in self._networks.values():
            network.to("meta")
        release()


def _load_plain(path: Path, device: str, dtype: torch.dtype) -> "PreTrainedModel":
    """The network of a folder or GGUF file, which our own load has found sound before."""
    if path.is_dir():
        network = stock.of_folder(path, device, dtype)
    else:
        network = stock.of_gguf(read_header(path), device, dtype)
    return network.requires_grad_(False).eval()
