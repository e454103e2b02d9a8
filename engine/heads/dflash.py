"""A DFlash head as a network: a block of masks behind the text, filled in one pass.

What the target thought of the text before the block goes, joined, into the keys and values of every
layer; the rows of the block look at it and at each other.
"""

import torch
import torch.nn.functional as F
from torch import nn

from engine.heads.layer import Attention, Kept, Mlp, Norm, rotary, turned
from engine.library.dflash import DFlash
from engine.model import LanguageModel

Turn = tuple[torch.Tensor, torch.Tensor]


class Layer(nn.Module):
    """One layer of the head."""

    def __init__(self, shape: DFlash, window: int) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.width, shape.eps)
        self.post_attention_layernorm = Norm(shape.width, shape.eps)
        self.self_attn = Attention(
            shape.width,
            shape.width,
            shape.heads,
            shape.key_heads,
            shape.head_size,
            bias=shape.attention_bias,
            norm=shape.eps,
        )
        self.mlp = Mlp(shape.width, shape.inner)
        self.window = window
        self._causal = shape.causal or (window > 0 and not shape.both_ways)

    def keys(self, x: torch.Tensor, turn: Turn) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [heads, rows, size] of x [rows, width]."""
        attention = self.self_attn
        k, v = (
            proj(x).view(len(x), -1, attention.size)
            for proj in (attention.k_proj, attention.v_proj)
        )
        return turned(attention.k_norm(k).transpose(0, 1), turn), v.transpose(0, 1)

    def forward(self, x: torch.Tensor, turn: Turn, kept: Kept) -> torch.Tensor:
        """x [block, width] behind what is `kept`, which stays as it is."""
        attention = self.self_attn
        normed = self.input_layernorm(x)
        q = attention.q_norm(attention.q_proj(normed).view(len(x), -1, attention.size))
        seen = kept.length
        keys, values = kept.add(*self.keys(normed, turn))
        kept.crop_to(seen)
        mixed = F.scaled_dot_product_attention(
            turned(q.transpose(0, 1), turn)[None],
            keys[None],
            values[None],
            attn_mask=self._mask(len(x), seen, x.device),
            enable_gqa=True,
        )
        r = x + attention.o_proj(mixed[0].transpose(0, 1).reshape(len(x), -1))
        out: torch.Tensor = r + self.mlp(self.post_attention_layernorm(r))
        return out

    def _mask(self, rows: int, seen: int, device: torch.device) -> torch.Tensor | None:
        if not self._causal and not self.window:
            return None
        places = torch.arange(seen, seen + rows, device=device)[:, None]
        far = places - torch.arange(seen + rows, device=device)
        near = far < self.window if self.window else torch.ones_like(far, dtype=torch.bool)
        return near & (far >= 0) if self._causal else near


class DFlashHead(nn.Module):
    """A head with its keys and values. Table and output matrix are the target's, where it has none
    of its own."""

    name = "dflash"

    def __init__(self, shape: DFlash, target: LanguageModel) -> None:
        super().__init__()
        self.places, self.known = shape.places, shape.vocabulary
        self.default_length = shape.block - (not shape.from_anchor)
        self.fc = nn.Linear(len(shape.places) * shape.target_width, shape.width, bias=False)
        self.hidden_norm = Norm(shape.width, shape.eps)
        self.layers = nn.ModuleList(Layer(shape, window) for window in shape.windows)
        self.norm = Norm(shape.width, shape.eps)
        if shape.own_table:
            self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        if shape.own_output:
            self.lm_head = nn.Linear(shape.width, shape.tokens, bias=False)
        self._shape, self._target = shape, target
        self._kept = [Kept() for _ in shape.windows]
        self._rotary: nn.Module | None = None
        self._map: torch.Tensor | None = None

    def ready(self, device: torch.device) -> None:
        """Make what no file holds; its parameters are filled."""
        shape = self._shape
        self._rotary = rotary(shape.head_size, dict(shape.rope), shape.trained).to(device)
        if shape.map is not None:
            self._map = torch.tensor(shape.map, device=device)

    @property
    def length(self) -> int:
        """States held."""
        return self._kept[0].length

    def crop_to(self, length: int) -> None:
        """Hold at most `length` states."""
        for kept in self._kept:
            kept.crop_to(length)

    def empty(self) -> None:
        """Hold nothing."""
        for kept in self._kept:
            kept.empty()

    def joined(self, states: torch.Tensor) -> torch.Tensor:
        """The target's states [rows, places x width] as the layers read them."""
        found: torch.Tensor = self.hidden_norm(self.fc(states.to(self.norm.weight.dtype)))
        return found

    def take(self, x: torch.Tensor, position: int) -> None:
        """Keep the joined states x [rows, width] of the positions from `position` on."""
        turn = self._turn(x, position)
        for layer, kept in zip(self.layers, self._kept, strict=True):
            assert isinstance(layer, Layer)
            kept.add(*layer.keys(x, turn))

    def block(self, token: int, position: int) -> torch.Tensor:
        """What stands behind `token`, the last one, at `position`: logits of the target's tokens,
        a row for each guess."""
        shape, device = self._shape, self.norm.weight.device
        ids = torch.full((shape.block,), shape.mask, device=device)
        ids[0] = token
        table = self.embed_tokens if shape.own_table else self._target.embed
        x = table(ids).to(self.norm.weight.dtype)
        turn = self._turn(x, position)
        for layer, kept in zip(self.layers, self._kept, strict=True):
            x = layer(x, turn, kept)
        return self._logits(self.norm(x if shape.from_anchor else x[1:]))

    def _turn(self, x: torch.Tensor, position: int) -> Turn:
        assert self._rotary is not None
        places = torch.arange(position, position + len(x), device=x.device)
        cosines, sines = self._rotary(x[None], places[None])
        return cosines[0], sines[0]

    def _logits(self, out: torch.Tensor) -> torch.Tensor:
        if not self._shape.own_output:
            return self._target.logits(out)
        found: torch.Tensor = self.lm_head(out)
        if self._map is None:
            return found
        whole = found.new_full((len(found), self._target.vocab_size), -torch.inf)
        whole[:, self._map] = found
        return whole
