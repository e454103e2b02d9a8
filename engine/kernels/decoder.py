"""The usual decoder layer in few operations.

A pass over one token makes thousands of small calls between its matrix products, and each finds
the processor's cache swept by the weights. Layers of the common shape (Llama's: norm, attention
with rotary positions, norm, gated MLP) are computed here with a third of them. Which families have
that shape was read in transformers 5.24; a layer's parts are looked at too, and results compared
(`exactness.attend`).
"""

from typing import Any

import torch
from torch import nn

from engine.kernels.attention import Segment, in_segments
from engine.kernels.network import Linear, Norm
from engine.kernels.pointwise import InRows

# Other families have layers of the same parts and do a little more: leave out the positions in some
# layers (SmolLM 3), or scale the queries, but only far into a text (Ministral 3).
FAMILIES = frozenset({"gemma", "llama", "ministral", "mistral", "qwen2", "qwen3"})
PARTS = {"input_layernorm", "post_attention_layernorm", "self_attn", "mlp"}
ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"}
MLP = {"gate_proj", "up_proj", "down_proj", "act_fn"}


class Layer(nn.Module):
    """A decoder layer whose matrices are packed; takes and gives [1, rows, size]."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.was = layer
        # who watches the layer watches this one
        self._forward_pre_hooks = layer._forward_pre_hooks
        attention: Any = layer.self_attn
        mlp: Any = layer.mlp
        self.index: int = attention.layer_idx
        self.scaling: float = attention.scaling
        self.size: int = attention.head_dim
        self.key_heads = attention.k_proj.out_features // self.size
        self.heads = attention.q_proj.out_features // self.size
        parts: Any = layer
        self.before_attention: Any = parts.input_layernorm
        self.before_mlp: Any = parts.post_attention_layernorm
        self.q_norm = getattr(attention, "q_norm", None)
        self.k_norm = getattr(attention, "k_norm", None)
        self.act = mlp.act_fn

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: list[Segment],
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        cache: Any,
        **_: Any,
    ) -> torch.Tensor:
        x = hidden_states[0]
        x = x + self._attend(self.before_attention(x), attention_mask, position_embeddings, cache)
        gated = self._mlp.gate_proj.shared.kernel(self.before_mlp(x))
        gate, up = gated.chunk(2, -1)
        return x.add_(self._mlp.down_proj.shared.kernel(self.act(gate).mul_(up)))[None]

    @property
    def _mlp(self) -> Any:
        return self.was.mlp

    def _attend(
        self,
        x: torch.Tensor,
        parts: list[Segment],
        positions: tuple[torch.Tensor, torch.Tensor],
        cache: Any,
    ) -> torch.Tensor:
        attention: Any = self.was.self_attn
        rows = len(x)
        heads = attention.q_proj.shared.kernel(x).view(rows, -1, self.size)
        turned, values = heads.split((self.heads + self.key_heads, self.key_heads), 1)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = turned.split((self.heads, self.key_heads), 1)
            turned = torch.cat([self.q_norm(q), self.k_norm(k)], 1)
        cosines, sines = positions
        turned = _turned(turned, cosines[0, :, None], sines[0, :, None])
        keys, values = cache.update(
            turned[:, self.heads :].transpose(0, 1)[None], values.transpose(0, 1)[None], self.index
        )
        query = turned[:, : self.heads].view(rows, self.key_heads, -1, self.size)
        mixed = in_segments(query, keys[0], values[0], parts, self.scaling)
        out: torch.Tensor = attention.o_proj.shared.kernel(mixed)
        return out


def _turned(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotary positions (Su et al. 2021), halves of a head paired: x [rows, heads, size]."""
    first, second = x.chunk(2, -1)
    return torch.mul(x, cosines).add_(torch.cat([-second, first], -1).mul_(sines))


def shorten(network: nn.Module) -> int:
    """Put `Layer` in the place of layers of its shape; how many."""
    count = 0
    model: Any = network
    if model.config.get_text_config(decoder=True).model_type not in FAMILIES:
        return count
    for stack in [m for m in network.modules() if isinstance(m, nn.ModuleList)]:
        for place, layer in enumerate(stack):
            if _suits(layer):
                stack[place] = Layer(layer)
                count += 1
    return count


def restore(network: nn.Module) -> None:
    """Take every `Layer` out again."""
    for stack in [m for m in network.modules() if isinstance(m, nn.ModuleList)]:
        for place, layer in enumerate(stack):
            if isinstance(layer, Layer):
                stack[place] = layer.was


def _suits(layer: nn.Module) -> bool:
    parts = dict(layer.named_children())
    if set(parts) != PARTS:
        return False
    attention, mlp = dict(parts["self_attn"].named_children()), dict(parts["mlp"].named_children())
    norms = [parts["input_layernorm"], parts["post_attention_layernorm"]]
    norms += [attention[name] for name in ("q_norm", "k_norm") if name in attention]
    matrices = [attention.get("o_proj"), attention.get("q_proj"), mlp.get("gate_proj")]
    return (
        set(attention) <= ATTENTION
        and set(mlp) == MLP
        and all(isinstance(norm, Norm) for norm in norms)
        and all(isinstance(matrix, Linear) for matrix in matrices)
        and isinstance(mlp["act_fn"], InRows)
        and _merged(attention, ("q_proj", "k_proj", "v_proj"))
        and _merged(mlp, ("gate_proj", "up_proj"))
        and all(hasattr(parts["self_attn"], n) for n in ("layer_idx", "scaling", "head_dim"))
    )


def _merged(parts: dict[str, nn.Module], names: tuple[str, ...]) -> bool:
    """Whether the layers `names` are computed as one."""
    shared = {id(getattr(parts.get(name), "shared", name)) for name in names}
    return len(shared) == 1
