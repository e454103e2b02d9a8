"""An EAGLE-3 head as a network (Li et al. 2025).

One decoder layer that reads a token and what the target thought of the text before it: the state
of position t is paired with the token at t + 1, and tells the token at t + 2. Where the target has
not been, the head's own output stands for its state; in a P-EAGLE head, which may have more layers
above that one, a state that was learned.
"""

import torch
from torch import nn

from engine.heads.base import StateHead
from engine.heads.layer import Attention, Kept, Mlp, Norm, Turn
from engine.library.eagle3 import MASK_STATE, Eagle3, PEagle
from engine.model import LanguageModel


class Layer(nn.Module):
    """A layer of the head: attention, then the MLP. The first one attends over token and state
    side by side, those above it over what comes out of the one below."""

    def __init__(self, shape: Eagle3, index: int) -> None:
        super().__init__()
        width, eps = shape.width, shape.eps
        self._first = index == 0
        if self._first:
            self.hidden_norm = Norm(width, eps)
        self.input_layernorm = Norm(width, eps)
        self.post_attention_layernorm = Norm(width, eps)
        self.self_attn = Attention(
            2 * width if self._first else width,
            width,
            shape.heads,
            shape.key_heads,
            shape.head_size,
            bias=shape.attention_bias,
            norm=eps if shape.head_norms else None,
            window=shape.windows[index],
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
        if self._first:
            normed = self.hidden_norm(x)
            # whether what goes on beside the attention is the normed state
            x = normed if self._before else x
            read = torch.cat([self.input_layernorm(embedded), normed], -1)
        else:
            read = self.input_layernorm(x)
        r = x + self.self_attn(read, turn, kept)
        out: torch.Tensor = r + self.mlp(self.post_attention_layernorm(r))
        return out


class Eagle3Head(StateHead):
    """A head that guesses token by token."""

    name = "eagle3"
    default_length = 4

    def __init__(self, shape: Eagle3, target: LanguageModel) -> None:
        super().__init__(shape, target, len(shape.windows))
        if shape.norm_before_fc:
            self.input_norm = Norm(len(shape.places) * shape.target_width, shape.eps)
        if shape.fc_norm:
            self.fc_norm = nn.ModuleList(Norm(shape.target_width, shape.eps) for _ in shape.places)
        self.layers = nn.ModuleList(Layer(shape, i) for i in range(len(shape.windows)))
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
        turn, embedded = self._turn(x, position), self._embedded(tokens)
        for layer, kept in zip(self.layers, self._kept, strict=True):
            x = layer(x, embedded, turn, kept)
        return self.norm(x) if self._shape.norm_output else x

    def logits(self, out: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [rows, vocabulary]; minus infinity where the head has none."""
        return self._whole(self.lm_head(out if self._shape.norm_output else self.norm(out)))


class PEagleHead(Eagle3Head):
    """A head that makes all guesses of a round in one pass: behind the text stand masks."""

    name = "p-eagle"
    default_length = 7  # with the target's own token the 8 rows of a block
    _masked: torch.Tensor

    def __init__(self, shape: PEagle, target: LanguageModel) -> None:
        super().__init__(shape, target)
        self.mask_hidden = nn.Parameter(torch.empty(shape.shapes[MASK_STATE]))
        self._mask = shape.mask

    def ready(self, device: torch.device) -> None:
        super().ready(device)
        self._masked = self.joined(self.mask_hidden[0])

    def block(
        self, x: torch.Tensor, tokens: torch.Tensor, position: int, count: int
    ) -> torch.Tensor:
        """What stands behind the last of `tokens` [rows], which x goes with as in `forward`: logits
        of the target's tokens, [count, vocabulary]. The masks' keys and values are kept too."""
        masks = count - 1
        ids = torch.cat([tokens, tokens.new_full((masks,), self._mask)])
        out = self(torch.cat([x, self._masked.expand(masks, -1)]), ids, position)
        return self.logits(out[-count:])
