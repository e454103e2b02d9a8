"""The stream between a model's layers, turned so that no channel stands out.

A few channels of that stream are a hundred times as large as the others, and a row of 7 or 8 bits
spends them on those. Multiplied by an orthogonal matrix, a row has all channels alike, and one row
of integers says as much as two did. The matrix is folded into the weights that write the stream
and its transpose, with the norms' factors, into those that read it, so that the model computes the
same as before: Ashkboos et al. 2024, "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs".
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from engine.kernels import decoder
from engine.kernels.decoder import ATTENTION, MLP, PARTS

# Families with the usual layer, whose norms only scale: Gemma's add one to their factors.
FAMILIES = decoder.FAMILIES - {"gemma"}
READERS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
MLP_READERS = ("mlp.gate_proj", "mlp.up_proj")
WRITERS = ("self_attn.o_proj", "mlp.down_proj")
# Channels mixed by a Hadamard matrix; the groups of so many by a cosine transform.
MIXED = 128
# Rows turned at once.
AT_ONCE = 4096

Read = Callable[[str], torch.Tensor]


class Rotation:
    """An orthogonal matrix of `size`, that spreads each channel over all: signs, then a
    Hadamard matrix within groups of channels, then a cosine transform over the groups."""

    def __init__(self, size: int) -> None:
        self.size = size
        within = math.gcd(size, MIXED)
        signs = torch.randint(0, 2, (size,), generator=torch.Generator().manual_seed(0)) * 2 - 1
        self._signs = signs.float()
        self._within = _hadamard(within)
        self._across = _cosines(size // within)

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """x [n, size] in float32 times the matrix."""
        groups = (x * self._signs).view(len(x), len(self._across), -1) @ self._within
        return (self._across.T @ groups).view(len(x), self.size)

    def back(self, x: torch.Tensor) -> torch.Tensor:
        """x [n, size] in float32 times the matrix's inverse."""
        groups = self._across @ x.view(len(x), len(self._across), -1)
        return (groups @ self._within.T).view(len(x), self.size) * self._signs


def _hadamard(size: int) -> torch.Tensor:
    """Sylvester's, for a power of two, scaled to be orthogonal."""
    found = torch.ones(1, 1)
    while len(found) < size:
        found = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), found)
    return found / math.sqrt(size)


def _cosines(size: int) -> torch.Tensor:
    """The orthogonal cosine transform of type II, one frequency a column."""
    place = torch.arange(size, dtype=torch.float64)
    found = torch.cos(math.pi * (place[:, None] + 0.5) * place / size) * math.sqrt(2 / size)
    found[:, 0] = math.sqrt(1 / size)
    return found.float()


@dataclass(frozen=True)
class Turn:
    """What becomes of a parameter.

    A matrix that reads the stream, after the norm whose parameter is `norm` (none: a table, whose
    rows are the stream), a matrix that writes it, or a norm, whose factors went elsewhere.
    `even`: 7 bits are enough for what the matrix reads.
    """

    rotation: Rotation
    side: Literal["reads", "writes", "norm"]
    norm: str = ""
    even: bool = False

    def rows(self, read: Read) -> Callable[[torch.Tensor], torch.Tensor]:
        """For what is turned row by row: the function of a part [n, size] in float32."""
        if not self.norm:
            return self.rotation.rows
        factors = read(self.norm).float()
        return lambda part: self.rotation.rows(part * factors)

    def whole(
        self, tensor: torch.Tensor, read: Read, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """All of a parameter."""
        if self.side == "norm":
            return torch.ones(tensor.shape, dtype=dtype)
        if self.side == "writes":
            return self.rotation.rows(tensor.float().T.contiguous()).T.to(dtype)
        turn = self.rows(read)
        return torch.cat([turn(part.float()).to(dtype) for part in torch.split(tensor, AT_ONCE)])


@dataclass(frozen=True)
class Turned:
    """The stream of a turned network beside that of the published one.

    `factors` [size] are those of its last norm, which went into the output matrix.
    """

    rotation: Rotation
    factors: torch.Tensor

    def back(self, states: torch.Tensor) -> torch.Tensor:
        """The published network's states or rows of its table: [n, size] between two layers."""
        return self.rotation.back(states)

    def final(self, states: torch.Tensor) -> torch.Tensor:
        """The same of [n, size] behind the last norm."""
        return self.rotation.back(states) * self.factors

    def read(self, states: torch.Tensor) -> torch.Tensor:
        """What the turned output matrix reads where the published one reads `states`."""
        return self.rotation.rows(states / self.factors)


def turns(network: nn.Module) -> dict[str, Turn]:
    """What becomes of which module, by its path; empty where the stream cannot be turned."""
    model: Any = network
    if model.config.get_text_config(decoder=True).model_type not in FAMILIES:
        return {}
    paths = {id(module): path for path, module in network.named_modules()}
    base = model.base_model
    table, output, norm = model.get_input_embeddings(), model.get_output_embeddings(), base.norm
    if output is None or not all(_suits(layer) for layer in base.layers):
        return {}
    rotation = Rotation(table.embedding_dim)
    found = {
        paths[id(table)]: Turn(rotation, "reads"),
        paths[id(norm)]: Turn(rotation, "norm"),
        paths[id(output)]: Turn(rotation, "reads", f"{paths[id(norm)]}.weight"),
    }
    for layer in base.layers:
        found |= _turns(rotation, paths[id(layer)])
    return found


def turned(network: nn.Module, read: Read) -> Turned | None:
    """How `turns` turns the stream of `network`, if it does; `read` gives parameters by name."""
    model: Any = network
    output = model.get_output_embeddings()
    path = next((name for name, module in network.named_modules() if module is output), "")
    turn = turns(network).get(path)
    return Turned(turn.rotation, read(turn.norm).float()) if turn else None


def _turns(rotation: Rotation, path: str) -> Iterator[tuple[str, Turn]]:
    for norm, readers in (
        ("input_layernorm", READERS),
        ("post_attention_layernorm", MLP_READERS),
    ):
        yield f"{path}.{norm}", Turn(rotation, "norm")
        for reader in readers:
            even = readers is MLP_READERS
            yield f"{path}.{reader}", Turn(rotation, "reads", f"{path}.{norm}.weight", even)
    for writer in WRITERS:
        yield f"{path}.{writer}", Turn(rotation, "writes")


def _suits(layer: nn.Module) -> bool:
    """Whether `layer` has the usual parts and no others, and adds nothing that is not turned."""
    parts = dict(layer.named_children())
    return (
        set(parts) == PARTS
        and {name for name, _ in parts["self_attn"].named_children()} <= ATTENTION
        and {name for name, _ in parts["mlp"].named_children()} == MLP
        and all(layer.get_submodule(name).bias is None for name in WRITERS)
    )
