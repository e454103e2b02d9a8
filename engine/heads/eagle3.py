"""An EAGLE-3 head as a network (Li et al. 2025).

One decoder layer that reads a token and what the target thought of the text before it: the state
of position t is paired with the token at t + 1, and tells the token at t + 2. Where the target has
not been, the head's own output stands for its state.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from engine.heads.layer import Attention, Kept, Mlp, Norm, rotary
from engine.library.eagle3 import Eagle3

Embed = Callable[[torch.Tensor], torch.Tensor]


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
        turn: tuple[torch.Tensor, torch.Tensor],
        kept: Kept,
    ) -> torch.Tensor:
        normed = self.hidden_norm(x)
        both = torch.cat([self.input_layernorm(embedded), normed], -1)
        # whether what goes on beside the attention is the normed state
        r = (normed if self._before else x) + self.self_attn(both, turn, kept)
        out: torch.Tensor = r + self.mlp(self.post_attention_layernorm(r))
        return out


class Eagle3Head(nn.Module):
    """A head with its keys and values. `embed` is the target's table, for heads without one.

    `known` counts the tokens that it has a row for, `vocabulary` those of the target.
    """

    name = "eagle3"
    default_length = 4

    def __init__(self, shape: Eagle3, vocabulary: int, embed: Embed) -> None:
        super().__init__()
        self.places = shape.places
        self.known, self.vocabulary = shape.vocabulary, vocabulary
        joined = len(shape.places) * shape.target_width
        if shape.norm_before_fc:
            self.input_norm = Norm(joined, shape.eps)
        if shape.fc_norm:
            self.fc_norm = nn.ModuleList(Norm(shape.target_width, shape.eps) for _ in shape.places)
        self.fc = nn.Linear(joined, shape.width, bias=False)
        self.layers = nn.ModuleList([Layer(shape)])
        self.norm = Norm(shape.width, shape.eps)
        self.lm_head = nn.Linear(shape.width, shape.tokens, bias=False)
        if shape.own_table:
            self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self._shape, self._embed = shape, embed
        self._kept = Kept()
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
        """Pairs of state and token held."""
        return self._kept.length

    @property
    def cache_bytes(self) -> int:
        """Bytes of its keys and values."""
        return self._kept.nbytes

    def crop_to(self, length: int) -> None:
        """Hold at most `length` pairs."""
        self._kept.crop_to(length)

    def empty(self) -> None:
        """Hold nothing."""
        self._kept.empty()

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
        assert self._rotary is not None
        places = torch.arange(position, position + len(x), device=x.device)
        cosines, sines = self._rotary(x[None], places[None])
        table = self.embed_tokens if self._shape.own_table else self._embed
        embedded = table(tokens).to(x.dtype)
        out: torch.Tensor = self.layers[0](x, embedded, (cosines[0], sines[0]), self._kept)
        return self.norm(out) if self._shape.norm_output else out

    def logits(self, out: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [rows, vocabulary]; minus infinity where the head has none."""
        found: torch.Tensor = self.lm_head(out if self._shape.norm_output else self.norm(out))
        if self._map is None:
            return F.pad(found, (0, self.vocabulary - found.shape[-1]), value=-torch.inf)
        whole = found.new_full((len(found), self.vocabulary), -torch.inf)
        whole[:, self._map] = found
        return whole
