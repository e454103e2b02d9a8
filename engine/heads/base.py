"""What heads that lie on disk have in common, whatever their layers are."""

import torch
from torch import nn

from engine.heads.layer import Kept, Norm, Turn, rotary
from engine.library.head_config import Shape
from engine.model import LanguageModel


class StateHead(nn.Module):
    """A head of `target` with the keys and values of its `layers`.

    `known` counts the tokens that it has a row for. Its table is the target's, where it has none.
    """

    def __init__(self, shape: Shape, target: LanguageModel, layers: int) -> None:
        super().__init__()
        self.places, self.known = shape.places, shape.vocabulary
        self.fc = nn.Linear(len(shape.places) * shape.target_width, shape.width, bias=False)
        self.norm = Norm(shape.width, shape.eps)
        if shape.own_table:
            self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self._target = target
        self._positions = shape.head_size, dict(shape.rope), shape.trained
        self._ids = shape.map
        self._kept = [Kept() for _ in range(layers)]
        self._rotary: nn.Module | None = None
        self._map: torch.Tensor | None = None

    def ready(self, device: torch.device) -> None:
        """Make what no file holds; its parameters are filled."""
        self._rotary = rotary(*self._positions).to(device)
        if self._ids is not None:
            self._map = torch.tensor(self._ids, device=device)

    @property
    def length(self) -> int:
        """Positions held."""
        return self._kept[0].length

    def crop_to(self, length: int) -> None:
        """Hold at most `length` positions."""
        for kept in self._kept:
            kept.crop_to(length)

    def empty(self) -> None:
        """Hold nothing."""
        for kept in self._kept:
            kept.empty()

    def _embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        table = self.embed_tokens if hasattr(self, "embed_tokens") else self._target.embed
        found: torch.Tensor = table(tokens).to(self.norm.weight.dtype)
        return found

    def _turn(self, x: torch.Tensor, position: int) -> Turn:
        """Of the rows of x, at the positions from `position` on."""
        assert self._rotary is not None
        places = torch.arange(position, position + len(x), device=x.device)
        cosines, sines = self._rotary(x[None], places[None])
        return cosines[0], sines[0]

    def _whole(self, logits: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [rows, vocabulary]; minus infinity where the head has none."""
        whole = logits.new_full((len(logits), self._target.vocab_size), -torch.inf)
        whole[:, slice(logits.shape[-1]) if self._map is None else self._map] = logits
        return whole
