"""A transformers network made to run on our kernels.

Its linear layers are replaced, those that read the same input merged into one; its activation
functions and rotary tables are computed row by row; its attention is ours. Everything between
stays transformers', in float32.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.kernels.attention import NAME, is_asked, register
from engine.kernels.linear import Int8, Kernel
from engine.kernels.pointwise import InRows, NextInRows, RotaryInRows, RowByRow, in_rows

# Layers that read one input, by what transformers' models call them.
SIBLINGS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


@dataclass(frozen=True)
class Group:
    """Linear layers computed as one: the module that holds them, and their names in it."""

    path: str
    parent: nn.Module
    names: tuple[str, ...]

    @property
    def slots(self) -> list[tuple[nn.Module, str]]:
        """Where each layer is: the module it is an attribute of, and its name there."""
        held = [(name, getattr(self.parent, name)) for name in self.names]
        return [(m, "linear") if isinstance(m, _Around) else (self.parent, n) for n, m in held]

    @property
    def layers(self) -> list[nn.Linear]:
        return [getattr(module, name) for module, name in self.slots]

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the layers in the network."""
        return tuple(f"{self.path}.{name}" if self.path else name for name in self.names)

    @property
    def name(self) -> str:
        """The group's own name."""
        return "+".join((self.paths[0], *self.names[1:]))

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Names of the layers' matrices as parameters of the network."""
        return tuple(f"{path}.weight" for path in self.paths)

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs of all layers, and inputs."""
        return sum(layer.out_features for layer in self.layers), self.layers[0].in_features


def groups(network: nn.Module) -> list[Group]:
    """All linear layers of `network`, in its order, siblings together."""
    found = []
    for path, parent in network.named_modules():
        here = [n for n, child in parent.named_children() if type(child) is nn.Linear]
        while here:
            together = _siblings(parent, here)
            found.append(Group(path, parent, together))
            here = [name for name in here if name not in together]
    return found


def _siblings(parent: nn.Module, here: Sequence[str]) -> tuple[str, ...]:
    """The first of `here` with the layers that read the same input."""
    for names in SIBLINGS:
        layers = [getattr(parent, n) for n in names if n in here]
        if here[0] in names and len(layers) == len(names):
            biases = {layer.bias is None for layer in layers}
            if len({layer.in_features for layer in layers}) == len(biases) == 1:
                return names
    return (here[0],)


class Linear(nn.Module):
    """A packed linear layer, or one of several that are computed as one when the first is asked."""

    def __init__(self, shared: "_Shared", place: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.shared, self.place = shared, place
        # some models ask for a matrix's type before they call it
        self.weight = torch.empty(0)
        self.in_features, self.out_features = in_features, out_features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shared.part(self.place, x)


class _Shared:
    """One kernel for layers of one input; keeps the results until each was taken."""

    def __init__(self, kernel: Kernel, sizes: Sequence[int]) -> None:
        self.kernel = kernel
        self._sizes = list(sizes)
        self._x: torch.Tensor | None = None
        self._parts: dict[int, torch.Tensor] = {}

    def part(self, place: int, x: torch.Tensor) -> torch.Tensor:
        if x is not self._x or place not in self._parts:
            out = self.kernel(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], -1)
            self._x, self._parts = x, dict(enumerate(torch.split(out, self._sizes, -1)))
        part = self._parts.pop(place)
        if not self._parts:
            self._x = None
        return part


def replace(group: Group, kernel: Kernel) -> None:
    """Put `kernel` in the place of the group's layers."""
    layers = group.layers
    shared = _Shared(kernel, [layer.out_features for layer in layers])
    for place, ((module, name), layer) in enumerate(zip(group.slots, layers, strict=True)):
        setattr(module, name, Linear(shared, place, layer.in_features, layer.out_features))


def experts(network: nn.Module) -> list[tuple[str, nn.Module]]:
    """Stacks of experts in the layout that `Experts` knows: gate above up, [experts, out, in]."""
    return [
        (path, module)
        for path, module in network.named_modules()
        if getattr(module, "is_concatenated", False)
        and getattr(module, "has_gate", False)
        and not getattr(module, "is_transposed", False)
        and not getattr(module, "has_bias", False)
        and not getattr(module, "has_post_expert_norm", False)
        and hasattr(module, "gate_up_proj")
        and hasattr(module, "act_fn")
    ]


class Experts(nn.Module):
    """A mixture's experts, each with packed matrices of its own.

    The sum over a token's experts goes by the experts' number, so it does not depend on which
    other tokens are computed.
    """

    def __init__(self, stack: nn.Module) -> None:
        super().__init__()
        activation: Any = stack.act_fn
        self.act_fn = InRows(activation)
        shapes = {part: tuple(getattr(stack, part).shape) for part in ("gate_up_proj", "down_proj")}
        self.matrices = [(part, shape[0], shape[1:]) for part, shape in shapes.items()]
        self.kernels: dict[str, dict[int, Kernel]] = {part: {} for part in shapes}

    def put(self, part: str, expert: int, kernel: Kernel) -> None:
        """The matrix of one expert, in the place of the one it had."""
        self.kernels[part][expert] = kernel

    def forward(
        self, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """hidden [tokens, size]; chosen and weights [tokens, experts a token]."""
        out = torch.zeros_like(hidden)
        for expert in torch.unique(chosen).tolist():
            if expert not in self.kernels["down_proj"]:
                continue
            tokens, place = torch.where(chosen == expert)
            gate, up = self.kernels["gate_up_proj"][expert](hidden[tokens]).chunk(2, -1)
            made = self.kernels["down_proj"][expert](self.act_fn(gate) * up)
            out.index_add_(0, tokens, made * weights[tokens, place, None])
        return out


class Embedding(nn.Module):
    """An embedding table kept in 16 bits, read in float32."""

    def __init__(self, table: torch.Tensor, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(table, requires_grad=False)
        self.scale = scale

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rows = nn.functional.embedding(ids, self.weight).float()
        return rows if self.scale == 1 else rows * self.scale


def settle(network: nn.Module) -> None:
    """Make all of `network` but its linear layers independent of the row count."""
    register()
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            kind = type(child).__name__
            if name in ("act_fn", "act", "activation_fn"):
                if not isinstance(child, InRows):
                    setattr(module, name, InRows(child))
            elif kind.lower().endswith("topkrouter"):
                setattr(module, name, RowByRow(child))
            elif name == "shared_expert_gate":
                setattr(module, name, Gate(child))
            elif kind.endswith("RMSNorm"):
                _quicken(module, name, child)
            elif kind.endswith("RotaryEmbedding"):
                setattr(module, name, RotaryInRows(child))
    _cap_in_rows(network)


def take_attention(network: nn.Module) -> None:
    """Let `network` attend by our function, where its models ask transformers for one at all."""
    register()
    if is_asked(network):
        change: Any = network
        change.set_attn_implementation(NAME)


def _cap_in_rows(network: nn.Module) -> None:
    """Gemma 2's bound on the logits, row by row and not over all of them at once."""
    config: Any = network.config
    cap = getattr(config, "final_logit_softcapping", None)
    if cap:
        config.final_logit_softcapping = None
        output: Any = network
        output.set_output_embeddings(Capped(output.get_output_embeddings(), float(cap)))


class _Around(nn.Module):
    """A linear layer and something done to its result."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.out_features = linear.out_features


class Gate(_Around):
    """A mixture's gate with one output, of which the model itself takes the sigmoid."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(x)
        return found.as_subclass(NextInRows)


class Capped(_Around):
    """An output matrix with bounded logits."""

    def __init__(self, linear: nn.Module, cap: float) -> None:
        super().__init__(linear)
        self.cap = cap

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return in_rows(lambda part: torch.tanh(part / self.cap) * self.cap, self.linear(x))


def _quicken(parent: nn.Module, name: str, norm: nn.Module) -> None:
    """torch's fused norm in place of a composed one, where both give the same."""
    weight = getattr(norm, "weight", None)
    eps = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    if weight is None or not isinstance(eps, float):
        return
    x = torch.randn(3, weight.shape[-1], generator=torch.Generator().manual_seed(0))
    expected = norm(x)
    for factor in (weight.detach().float(), 1 + weight.detach().float()):
        fused = Norm(factor, eps)
        if torch.allclose(fused(x), expected, rtol=1e-5, atol=1e-6):
            setattr(parent, name, fused)
            return


class Norm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019) by torch's LayerNorm, which is one operation.

    Of [x, -x] the mean is zero and the variance is the mean square of x.
    """

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        super().__init__()
        self.size = len(weight)
        doubled = torch.cat([weight, torch.zeros_like(weight)])
        self.weight = nn.Parameter(doubled, requires_grad=False)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.cat([x, -x], -1)
        found = nn.functional.layer_norm(both, (2 * self.size,), self.weight, None, self.eps)
        return found[..., : self.size]


def kernels(network: nn.Module) -> list[Kernel]:
    """Every packed matrix in `network`, each once."""
    shared = {id(m.shared): m.shared.kernel for m in network.modules() if isinstance(m, Linear)}
    stacks = (m.kernels.values() for m in network.modules() if isinstance(m, Experts))
    return [*shared.values(), *(k for parts in stacks for part in parts for k in part.values())]


@contextlib.contextmanager
def finely(network: nn.Module) -> Iterator[None]:
    """Inside, no activation is rounded to 8 bits, so that small differences stay small."""
    coarse = [k for k in kernels(network) if isinstance(k, Int8) and not k.fine]
    for kernel in coarse:
        kernel.fine = True
    try:
        yield
    finally:
        for kernel in coarse:
            kernel.fine = False


def release(network: nn.Module) -> None:
    """Give the memory of the packed matrices back; the network cannot run any more."""
    for module in network.modules():
        if isinstance(module, Linear):
            module.shared = _Shared(_Gone(), [])
        elif isinstance(module, Experts):
            module.kernels = {}


class _Gone:
    """In the place of a matrix whose memory was given back."""

    nbytes = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("the model was closed")
