"""An EAGLE-3 head as a network (Li et al. 2025).

One decoder layer that reads a token and what the target thought of the text before it: the state
of position t is paired with the token at t + 1, and tells the token at t + 2. Where the target has
not been, the head's own output stands for its state.
"""

import torch
from torch import nn

from engine.heads.base import StateHead
from engine.heads.layer import Attention, Kept, Mlp, Norm, Turn
from engine.library.eagle3 import Eagle3
from engine.model import LanguageModel


class Layer(nn.Module):
    """The head's layer: attention over token and state side by side, then the MLP."""

    def __init__(self, shape: Eagle3) -> None:
        super().__init__()
        width, eps = shape.width, shape.eps
        self.hidden_norm = Norm(width, eps)
        self.input_layernorm = Norm(width, eps)
        self.post_attention_layernorm = Norm(width, eps)
        self.self_attn = Attention(
            2 * width,
            width,
            shape.heads,
            shape.key_heads,
            shape.head_size,
            bias=shape.attention_bias,
            norm=eps if shape.head_norms else None,
            window=shape.window,
        )
        self.mlp = Mlp(width, shape.inner, shape.mlp_bias)
        self._before = shape.norm_before_residual

    def forward(
        self,
        x: torch.Tensor,
        embedded: torch.Tensor,
        turn: Turn,
        kept: Kept,
    ) -> torch.Tensor:
        normed = self.hidden_norm(x)
        both = torch.cat([self.input_layernorm(embedded), normed], -1)
        # whether what goes on beside the attention is the normed state
        r = (normed if self._before else x) + self.self_attn(both, turn, kept)
        out: torch.Tensor = r + self.mlp(self.post_attention_layernorm(r))
        return out


class Eagle3Head(StateHead):
    """A head that guesses token by token."""

    name = "eagle3"
    default_length = 4

    def __init__(self, shape: Eagle3, target: LanguageModel) -> None:
        super().__init__(shape, target, 1)
        if shape.norm_before_fc:
            self.input_norm = Norm(len(shape.places) * shape.target_width, shape.eps)
        if shape.fc_norm:
            self.fc_norm = nn.ModuleList(Norm(shape.target_width, shape.eps) for _ in shape.places)
        self.layers = nn.ModuleList([Layer(shape)])
        self.lm_head = nn.Linear(shape.width, shape.tokens, bias=False)
        self._shape = shape

    def joined(self, states: torch.Tensor) -> torch.Tensor:
        """The target's states [rows, places x target's width] as the layer reads them."""
        shape = self._shape
        states = states.to(self.norm.weight.dtype)
        if shape.norm_before_fc:
            states = self.input_norm(states)
        if shape.fc_norm:
            parts = states.chunk(len(shape.places), -1)
            states = torch.cat([n(part) for n, part in zip(self.fc_norm, parts, strict=True)], -1)
        found: torch.Tensor = self.fc(states)
        return found

    def forward(self, x: torch.Tensor, tokens: torch.Tensor, position: int) -> torch.Tensor:
        """What stands for the target's states behind `tokens` [rows], whose own are x [rows,
        width] at the positions from `position` on; keys and values are kept."""
        turn = self._turn(x, position)
        out: torch.Tensor = self.layers[0](x, self._embedded(tokens), turn, self._kept[0])
        return self.norm(out) if self._shape.norm_output else out

    def logits(self, out: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [rows, vocabulary]; minus infinity where the head has none."""
        return self._whole(self.lm_head(out if self._shape.norm_output else self.norm(out)))
