"""A DFlash head as a network: a block of masks behind the text, filled in one pass.

What the target thought of the text before the block goes, joined, into the keys and values of every
layer; the rows of the block look at it and at each other.
"""

import torch
from torch import nn

from engine.heads.base import StateHead
from engine.heads.layer import Attention, Kept, Mlp, Norm, Turn
from engine.library.dflash import DFlash
from engine.model import LanguageModel


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
            window=window,
            causal=shape.causal or (window > 0 and not shape.both_ways),
        )
        self.mlp = Mlp(shape.width, shape.inner)

    def forward(self, x: torch.Tensor, turn: Turn, kept: Kept) -> torch.Tensor:
        """x [block, width] behind what is `kept`, which stays as it is."""
        seen = kept.length
        r = x + self.self_attn(self.input_layernorm(x), turn, kept)
        kept.crop_to(seen)
        out: torch.Tensor = r + self.mlp(self.post_attention_layernorm(r))
        return out


class DFlashHead(StateHead):
    """A head that fills blocks. Its output matrix is the target's, where it has none of its own."""

    name = "dflash"

    def __init__(self, shape: DFlash, target: LanguageModel) -> None:
        super().__init__(shape, target, len(shape.windows))
        self.default_length = shape.block - (not shape.from_anchor)
        self.hidden_norm = Norm(shape.width, shape.eps)
        self.layers = nn.ModuleList(Layer(shape, window) for window in shape.windows)
        if shape.own_output:
            self.lm_head = nn.Linear(shape.width, shape.tokens, bias=False)
        self._shape = shape

    def joined(self, states: torch.Tensor) -> torch.Tensor:
        """The target's states [rows, places x width] as the layers read them."""
        found: torch.Tensor = self.hidden_norm(self.fc(states.to(self.norm.weight.dtype)))
        return found

    def take(self, x: torch.Tensor, position: int) -> None:
        """Keep the joined states x [rows, width] of the positions from `position` on."""
        turn = self._turn(x, position)
        for layer, kept in zip(self.layers, self._kept, strict=True):
            assert isinstance(layer, Layer)
            kept.add(*layer.self_attn.keys(x, turn))

    def block(self, token: int, position: int) -> torch.Tensor:
        """What stands behind `token`, the last one, at `position`: logits of the target's tokens,
        a row for each guess."""
        shape, device = self._shape, self.norm.weight.device
        ids = torch.full((shape.block,), shape.mask, device=device)
        ids[0] = token
        x = self._embedded(ids)
        turn = self._turn(x, position)
        for layer, kept in zip(self.layers, self._kept, strict=True):
            x = layer(x, turn, kept)
        out = self.norm(x if shape.from_anchor else x[1:])
        return self._whole(self.lm_head(out)) if shape.own_output else self._target.logits(out)
