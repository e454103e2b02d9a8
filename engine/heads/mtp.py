"""A model's own head for several tokens (MTP) as a network.

DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", 2.2. A decoder layer of the target's own kind over
token and last state, joined; table and output matrix are the target's. Its own output stands for
the state where the target has not been.
"""

import copy
from typing import Any

import torch
from torch import nn

from engine.cache import Cache
from engine.checkpoint import skeleton
from engine.library.mtp import Mtp
from engine.model import LanguageModel

BASE, LAYER = "base.", "base.layers.0."


class MtpHead(nn.Module):
    """The head of `target`, empty, with its keys and values."""

    name = "mtp"
    # one head for all guesses: they get worse fast
    default_length = 2

    def __init__(self, kind: Mtp, target: LanguageModel) -> None:
        super().__init__()
        network: Any = skeleton(_one_layer(target.network.config))
        self.base = network.base_model
        self.base.embed_tokens = nn.Identity()
        self.token_norm = copy.deepcopy(self.base.norm)
        self.state_norm = copy.deepcopy(self.base.norm)
        width = network.config.hidden_size
        self.join = nn.Linear(2 * width, width, bias=False, device="meta")
        self.places: tuple[int, ...] = (target.layer_count,)
        self.known = target.vocab_size
        self._kind, self._target = kind, target
        self._cache = Cache(network.config)

    @property
    def sources(self) -> dict[str, str]:
        """Where each of its tensors lies: by name here, the name in the target's files."""
        kind = self._kind
        named = {
            "token_norm.weight": kind.token_norm,
            "state_norm.weight": kind.state_norm,
            "join.weight": kind.join,
            f"{BASE}norm.weight": kind.last_norm,
        }
        return {
            name: named.get(name, kind.layer + name.removeprefix(LAYER))
            for name in self.state_dict()
        }

    @property
    def length(self) -> int:
        """Pairs of state and token held."""
        return self._cache.length

    def crop_to(self, length: int) -> None:
        """Hold at most `length` pairs."""
        self._cache.crop_to(length)

    def empty(self) -> None:
        """Hold nothing."""
        self._cache.empty()

    def joined(self, states: torch.Tensor) -> torch.Tensor:
        """The target's last states [rows, width], as they are."""
        return states.to(self.token_norm.weight.dtype)

    def forward(self, x: torch.Tensor, tokens: torch.Tensor, position: int) -> torch.Tensor:
        """What stands for the target's last states behind `tokens` [rows], whose own are x [rows,
        width] at the positions from `position` on; keys and values are kept."""
        embedded = self._target.embed(tokens).to(x.dtype)
        if self._kind.zeroed and position == 0:
            embedded = torch.cat([embedded[:1] * 0, embedded[1:]])
        both = [self.token_norm(embedded), self.state_norm(x)]
        if self._kind.hidden_first:
            both.reverse()
        places = torch.arange(position, position + len(x), device=x.device)
        try:
            out = self.base(
                inputs_embeds=self.join(torch.cat(both, -1))[None],
                position_ids=places[None],
                cache=self._cache.opened(),
                use_cache=True,
            )
        except BaseException:
            self._cache.broke(len(x))
            raise
        self._cache.grew(len(x))
        found: torch.Tensor = out.last_hidden_state[0]
        return found

    def logits(self, out: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [rows, vocabulary]."""
        return self._target.logits(out)


def _one_layer(config: Any) -> Any:
    """The configuration of one of the target's layers: the last kind that it has, with attention
    to all."""
    found = copy.deepcopy(config.get_text_config(decoder=True))
    found.num_hidden_layers = 1
    if getattr(found, "layer_types", None):
        found.layer_types = ["full_attention"]
    if getattr(found, "mlp_layer_types", None):
        found.mlp_layer_types = found.mlp_layer_types[-1:]
    if hasattr(found, "first_k_dense_replace"):
        found.first_k_dense_replace = 0
    found._attn_implementation = "sdpa"
    return found
