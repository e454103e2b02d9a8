"""The decoder layer of a head, with its keys and values.

A head is never exact and need not be: what it says is verified. So nothing here keeps rows apart.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

# Room grows by so many tokens, and so many are computed at once.
STEP = 256

# Cosines and sines.
Turn = tuple[torch.Tensor, torch.Tensor]


class Norm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


class Kept:
    """Keys and values of one layer, [heads, room, size], for the tokens from the first one on."""

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Hold nothing; the memory is freed."""
        self.length = 0
        self._room: tuple[torch.Tensor, torch.Tensor] | None = None

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self._room or ())

    def crop_to(self, length: int) -> None:
        """Hold at most `length` tokens."""
        self.length = max(0, min(self.length, length))

    def add(self, *new: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take in keys and values [heads, rows, size]; all that is held then."""
        end = self.length + new[0].shape[1]
        if self._room is None:
            self._room = new[0][:, :0], new[1][:, :0]
        more = -(-end // STEP) * STEP - self._room[0].shape[1]
        if more > 0:
            keys, values = (
                torch.cat([x, x.new_zeros(x.shape[0], more, x.shape[2])], 1) for x in self._room
            )
            self._room = keys, values
        for held, states in zip(self._room, new, strict=True):
            held[:, self.length : end] = states
        self.length = end
        keys, values = self._room
        return keys[:, :end], values[:, :end]


class Attention(nn.Module):
    """Grouped attention with rotary positions over what is kept, of inputs `reads` wide.

    `window` is how many tokens a row looks at, 0: all; unless `causal`, at those behind it too.
    `rotary` gives cosines and sines as transformers' modules do; it may turn only the first part
    of a head.
    """

    def __init__(
        self,
        reads: int,
        width: int,
        heads: int,
        key_heads: int,
        size: int,
        *,
        bias: bool = False,
        norm: float | None = None,
        window: int = 0,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.size, self.window, self.causal = size, window, causal
        self.q_proj = nn.Linear(reads, heads * size, bias=bias)
        self.k_proj = nn.Linear(reads, key_heads * size, bias=bias)
        self.v_proj = nn.Linear(reads, key_heads * size, bias=bias)
        self.o_proj = nn.Linear(heads * size, width, bias=bias)
        self.q_norm: nn.Module = nn.Identity() if norm is None else Norm(size, norm)
        self.k_norm: nn.Module = nn.Identity() if norm is None else Norm(size, norm)

    def keys(self, x: torch.Tensor, turn: Turn) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [heads, rows, size] of x [rows, reads]."""
        k, v = (proj(x).view(len(x), -1, self.size) for proj in (self.k_proj, self.v_proj))
        return turned(self.k_norm(k).transpose(0, 1), turn), v.transpose(0, 1)

    def forward(self, x: torch.Tensor, turn: Turn, kept: Kept) -> torch.Tensor:
        """x [rows, reads]; `turn` the cosines and sines of their positions, [rows, size]."""
        q = self.q_norm(self.q_proj(x).view(len(x), -1, self.size)).transpose(0, 1)
        seen = kept.length
        keys, values = kept.add(*self.keys(x, turn))
        mask = self._mask(len(x), seen, x.device)
        mixed = F.scaled_dot_product_attention(
            turned(q, turn)[None], keys[None], values[None], attn_mask=mask, enable_gqa=True
        )
        out: torch.Tensor = self.o_proj(mixed[0].transpose(0, 1).reshape(len(x), -1))
        return out

    def _mask(self, rows: int, seen: int, device: torch.device) -> torch.Tensor | None:
        if not self.window and (rows == 1 or not self.causal):
            return None
        places = torch.arange(seen, seen + rows, device=device)[:, None]
        far = places - torch.arange(seen + rows, device=device)
        before = far >= 0 if self.causal else torch.ones_like(far, dtype=torch.bool)
        return before & (far < self.window) if self.window else before


def turned(x: torch.Tensor, turn: Turn) -> torch.Tensor:
    """Rotary positions (Su et al. 2021), halves of a head paired: x [heads, rows, size]."""
    cosines, sines = (part.to(x.dtype) for part in turn)
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class Mlp(nn.Module):
    """The gated MLP of Llama."""

    def __init__(self, width: int, inner: int, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


def rotary(size: int, rope: dict[str, Any], trained: int | None) -> nn.Module:
    """transformers' rotary positions for heads of `size`, as a configuration states them.

    Raises what transformers raises of settings that do not go together.
    """
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=size,
        num_attention_heads=1,
        head_dim=size,
        max_position_embeddings=trained or 2048,
        **rope,
    )
    found: nn.Module = LlamaRotaryEmbedding(config)
    return found
