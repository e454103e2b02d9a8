"""The tensors of a GGUF file as the parameters of a transformers model."""

from collections.abc import Callable, Iterator, Mapping

import gguf
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from engine.errors import Unsupported
from engine.gguf.blocks import missing, read_tensor
from engine.gguf.config import ROPE_FACTORS, Architecture, architecture_of
from engine.library.gguf import Header, TensorInfo


def empty_model(
    config: PreTrainedConfig, dtype: torch.dtype, device: torch.device | str
) -> PreTrainedModel:
    """A model on `device` with everything but its weights: those hold whatever lay in memory.

    Tied weights are tied. Rotary tables and other buffers that no file stores are filled in, which
    a model made on the meta device would lack.
    """
    with torch.device(device), no_init_weights():
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.tie_weights()
    model.eval()
    return model


def tensors(
    header: Header,
    config: PreTrainedConfig,
    model: PreTrainedModel,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and float32 values of each parameter of `model`, one at a time; raises as Reader."""
    reader = Reader(header, config, model, stopped)
    return ((name, reader.read(name)) for name in reader.names)


class Reader:
    """The parameters of `model` from the tensors of a file, in float32, in any order.

    Raises, when built, Incomplete when a tensor is missing or of another shape, and Unsupported
    when the file holds one that the model has no place for; while reading, what `read_tensor`
    raises.
    """

    def __init__(
        self,
        header: Header,
        config: PreTrainedConfig,
        model: PreTrainedModel,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._header, self._config, self._stopped = header, config, stopped
        self._architecture = architecture_of(header)
        self._plan = _plan(header, config, model)
        self._shapes = {name: value.shape for name, value in model.named_parameters()}
        used = {info.name for infos in self._plan.values() for info in infos}
        for info in header.tensors:
            if info.name not in used and info.name != ROPE_FACTORS:
                raise Unsupported(
                    "gguf_tensor_unknown",
                    "{file} holds the tensor {tensor}, which has no place in the architecture "
                    "{architecture}.",
                    file=header.path.name,
                    tensor=info.name,
                    architecture=str(header.metadata["general.architecture"]),
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, tied ones once."""
        return tuple(self._plan)

    def read(self, name: str) -> torch.Tensor:
        """The parameter `name`, dequantised."""
        infos = self._plan[name]
        values = [read_tensor(self._header, info, self._stopped) for info in infos]
        joined = torch.cat(values, dim=1) if len(values) > 1 else values[0]
        undone = _undone(self._architecture, self._config, infos[0].name, joined)
        return undone.reshape(self._shapes[name])


_Plan = Mapping[str, tuple[TensorInfo, ...]]


def _plan(header: Header, config: PreTrainedConfig, model: PreTrainedModel) -> _Plan:
    """For each parameter the tensors of the file that make it up."""
    name = str(header.metadata["general.architecture"])
    architecture = next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == name)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    stored = {info.name: info for info in header.tensors}
    plan = {}
    for parameter, value in model.named_parameters():
        sources = _sources(names, parameter)
        absent = next((source for source in sources if source not in stored), None)
        if absent is not None:
            raise missing(header, absent)
        plan[parameter] = tuple(stored[source] for source in sources)
        if _joined_shape(plan[parameter]) != [size for size in value.shape if size > 1]:
            raise missing(header, sources[0])
    return plan


def _sources(names: gguf.TensorNameMap, parameter: str) -> tuple[str, ...]:
    """Names in the file of what makes up a parameter. Experts are stored as gate and up apart."""
    stem, _, suffix = parameter.rpartition(".")
    if suffix not in ("weight", "bias"):
        stem, suffix = parameter, "weight"
    if stem.endswith(".experts.gate_up_proj"):
        layer = stem.split(".")[2]
        return f"blk.{layer}.ffn_gate_exps.weight", f"blk.{layer}.ffn_up_exps.weight"
    return (f"{names.get_name(stem) or stem}.{suffix}",)


def _joined_shape(infos: tuple[TensorInfo, ...]) -> list[int]:
    """Shape of gate and up, or of one tensor alone; axes of length 1 come and go in conversion."""
    shape = list(infos[0].shape)
    if any(info.shape != infos[0].shape for info in infos):
        return []
    if len(shape) > 1:
        shape[1] *= len(infos)
    return [size for size in shape if size > 1]


def _undone(
    architecture: Architecture, config: PreTrainedConfig, name: str, values: torch.Tensor
) -> torch.Tensor:
    """The weights as they were before llama.cpp's converter changed them."""
    if architecture.shifted and name.endswith("norm.weight"):
        return values - 1
    if architecture.interleaved and ".attn_q." in name:
        return _halves(values, config.num_attention_heads)
    if architecture.interleaved and ".attn_k." in name:
        return _halves(values, config.num_key_value_heads)
    return values


def _halves(values: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of each head from pairs (0, 1), (2, 3) ... back to first halves and second halves."""
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])
    return pairs.transpose(1, 2).reshape(values.shape)
