"""A Gemma 4 assistant as a network, over the target's keys and values.

The layers are the library's own for Gemma 4's text, all of which share keys and values with layers
of others: here with the target's. All guesses of a round are made at one position, the last
token's, so nothing is kept from one guess to the next but the state.
"""

from typing import Any

import torch
from torch import nn

from engine.checkpoint import skeleton
from engine.errors import DraftRefused, first_line
from engine.library.assistant import FULL, SLIDING, Assistant
from engine.model import LanguageModel

# Keys and values [1, heads, positions, size] by the kind of layer that looks at them.
Held = dict[str, tuple[torch.Tensor, torch.Tensor]]


class AssistantHead(nn.Module):
    """The assistant of `target`, empty."""

    name = "assistant"
    default_length = 3

    def __init__(self, shape: Assistant, target: LanguageModel) -> None:
        super().__init__()
        network = _layers(shape)
        self._config = network.config
        self.model = network.base_model
        self.model.embed_tokens = nn.Identity()
        self.model.rotary_emb = nn.Identity()
        self.pre_projection = nn.Linear(2 * shape.target_width, shape.width, bias=False)
        self.post_projection = nn.Linear(shape.width, shape.target_width, bias=False)
        self.lm_head: nn.Module
        if shape.order is None:
            self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        else:
            self.lm_head = nn.Embedding(shape.vocabulary, shape.width)
            centroids = nn.Linear(shape.width, shape.centroids, bias=False)
            self.masked_embedding = nn.ModuleDict({"centroids": centroids})
        self.places: tuple[int, ...] = (target.layer_count,)
        self._shape, self._target = shape, target
        self._order: torch.Tensor | None = None

    def ready(self, device: torch.device) -> None:
        """Make what no file holds; its parameters are filled."""
        from transformers.models.gemma4.modeling_gemma4 import Gemma4TextRotaryEmbedding

        self.model.rotary_emb = Gemma4TextRotaryEmbedding(self._config).to(device)
        if self._shape.order is not None:
            order = torch.tensor(self._shape.order, device=device)
            self._order = order.view(self._shape.centroids, -1)

    def held(self) -> Held | None:
        """What the target keeps for it of the text that it was fed; None where it keeps nothing."""
        norm: torch.Tensor = self.model.norm.weight
        found: Held = {}
        for kind in self._shape.reads:
            kept = self._target.cache.last_layer(windowed=kind == SLIDING)
            if kept is None:
                return None
            # as the library masks them: the row's own position does not count
            first = -(self._shape.window + 1) if kind == SLIDING else 0
            keys, values = (x[:, :, first:].to(norm.device, norm.dtype) for x in kept)
            found[kind] = keys, values
        return found

    def forward(self, state: torch.Tensor, token: int, position: int, held: Held) -> torch.Tensor:
        """What it makes of the last `token` and the target's `state` [1, target's width] before
        it, all guesses of a round at the `position` of its first: [1, width]."""
        norm: torch.Tensor = self.model.norm.weight
        ids = torch.tensor([token], device=norm.device)
        # Gemma scales its table
        embedded = self._target.embed(ids).to(norm) * self._shape.target_width**0.5
        both = torch.cat([embedded, state.to(norm)], -1)
        out = self.model(
            inputs_embeds=self.pre_projection(both)[None],
            attention_mask={FULL: None, SLIDING: None},
            position_ids=torch.tensor([[position]], device=norm.device),
            shared_kv_states=held,
            use_cache=False,
        )
        found: torch.Tensor = out.last_hidden_state[0]
        return found

    def next_state(self, out: torch.Tensor) -> torch.Tensor:
        """What stands for the target's state behind a guess, [1, target's width]."""
        found: torch.Tensor = self.post_projection(out)
        return found

    def logits(self, out: torch.Tensor) -> torch.Tensor:
        """Of the target's tokens, [1, vocabulary]; minus infinity where it does not look."""
        if self._order is None:
            found: torch.Tensor = self.lm_head(out)
            return found
        nearest = self.masked_embedding["centroids"](out).topk(self._shape.near).indices
        ids = self._order[nearest[0]].flatten()
        whole = out.new_full((1, self._shape.vocabulary), -torch.inf)
        whole[0, ids] = self.lm_head(ids) @ out[0]
        return whole


def _layers(shape: Assistant) -> Any:
    """The library's network of its layers. Raises DraftRefused where the library refuses."""
    from transformers import AutoConfig

    key_heads, size = shape.reads.get(SLIDING, shape.reads[FULL])
    full_heads, full_size = shape.reads[FULL]
    layers = len(shape.kinds)
    try:
        config = AutoConfig.for_model(
            "gemma4_text",
            hidden_size=shape.width,
            intermediate_size=shape.inner,
            num_hidden_layers=layers,
            num_kv_shared_layers=layers,
            layer_types=list(shape.kinds),
            num_attention_heads=shape.heads,
            num_key_value_heads=key_heads,
            head_dim=size,
            attention_k_eq_v=True,
            num_global_key_value_heads=full_heads,
            global_head_dim=full_size,
            sliding_window=shape.window,
            rope_parameters=shape.rope,
            max_position_embeddings=shape.trained,
            rms_norm_eps=shape.eps,
            vocab_size=shape.vocabulary,
            hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=0,
        )
        return skeleton(config)
    except Exception as error:
        # whatever it checks, and however it says so
        raise DraftRefused(
            "head_config", "Its settings do not go together: {error}", error=first_line(error)
        ) from error
