"""The parameters of a model on disk, read one at a time, and a network that waits for them.

No code of a folder's is ever run, and nothing is fetched.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# Parameters of more numbers than this have no memory in a skeleton.
LARGE = 1 << 16


class _LargeOnMeta(TorchFunctionMode):
    """Large uninitialised tensors get no memory: they are parameters to be replaced."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and "out" not in kwargs:
            size = args[0] if args and isinstance(args[0], Sequence) else args
            if torch.Size(size).numel() > LARGE:
                kwargs["device"] = "meta"
        return func(*args, **kwargs)


def skeleton(config: "PreTrainedConfig") -> "PreTrainedModel":
    """A network in float32 whose large parameters have a shape and no memory.

    Tied parameters are tied; rotary tables and other buffers that no file stores are filled in.
    """
    from transformers import AutoModelForCausalLM
    from transformers.initialization import no_init_weights

    with _LargeOnMeta(), no_init_weights():
        network: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network.tie_weights()
    return network.eval()


class FolderWeights:
    """Tensors of safetensors files by their names; the files stay mapped, not read."""

    def __init__(self, files: Sequence[Path]) -> None:
        opened: list[Any] = [safe_open(file, framework="pt") for file in files]
        # an opened file has keys and cannot be iterated over
        self._where = {name: file for file in opened for name in file.keys()}  # noqa: SIM118

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of every tensor."""
        return {n: tuple(f.get_slice(n).get_shape()) for n, f in self._where.items()}

    def read(self, name: str) -> torch.Tensor:
        tensor: torch.Tensor = self._where[name].get_tensor(name)
        return tensor


class NetworkWeights:
    """The parameters of a network that transformers has filled."""

    def __init__(self, network: torch.nn.Module) -> None:
        self._parameters = dict(network.named_parameters())

    def read(self, name: str) -> torch.Tensor:
        return self._parameters[name].detach()


def fits(network: torch.nn.Module, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether every parameter of `network` is stored under its own name, in its own shape.

    Not so where it has other tensors that files hold: nobody would read those.
    """
    parameters = dict(network.named_parameters(remove_duplicate=False))
    return network.state_dict().keys() <= parameters.keys() and all(
        shapes.get(name) == tuple(parameter.shape) for name, parameter in network.named_parameters()
    )
