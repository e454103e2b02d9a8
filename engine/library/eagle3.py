"""What an EAGLE-3 head on disk is, in SafeAILab's format or speculators', and what is wrong with
it.

Li et al. 2025, "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via
Training-Time Test". A head that is read a little wrongly drafts all the same, and is never right:
so whatever is not known for certain is refused, by its number or tensor. Reads no weights but the
map of a reduced vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine import families
from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.library.folder import LARGEST
from engine.library.head_config import (
    Tensors,
    bad_setting,
    compare,
    eps,
    flag,
    number,
    only,
    refuse_lossy,
    rope,
    token_map,
)

LAYER, MIDLAYER = "layers.0.", "midlayer."


@dataclass(frozen=True)
class Eagle3:
    """The shape of a head. `places` are the states that it reads, as transformers numbers them;
    `stored` says under which name each of its tensors lies; `map` leads from its tokens to the
    target's, None where they are the same. `trained` is the length of the texts that it learned
    from, which its positions may well exceed. `window` in tokens, 0: it looks at all.
    """

    places: tuple[int, ...]
    width: int
    target_width: int
    heads: int
    key_heads: int
    head_size: int
    inner: int
    eps: float
    vocabulary: int
    tokens: int
    rope: Mapping[str, Any]
    trained: int | None
    window: int
    attention_bias: bool
    mlp_bias: bool
    head_norms: bool
    own_table: bool
    norm_before_residual: bool
    norm_before_fc: bool
    fc_norm: bool
    norm_output: bool
    stored: Mapping[str, str]
    map: tuple[int, ...] | None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the head needs, by speculators' names."""
        wide, joined = self.width, len(self.places) * self.target_width
        queries, keys = self.heads * self.head_size, self.key_heads * self.head_size
        attention = {"q": (queries, 2 * wide), "k": (keys, 2 * wide), "v": (keys, 2 * wide)}
        attention["o"] = (wide, queries)
        mlp = {"gate": (self.inner, wide), "up": (self.inner, wide), "down": (wide, self.inner)}
        found: dict[str, tuple[int, ...]] = {"fc.weight": (wide, joined)}
        for name, shape in attention.items():
            found[f"{LAYER}self_attn.{name}_proj.weight"] = shape
            if self.attention_bias:
                found[f"{LAYER}self_attn.{name}_proj.bias"] = shape[:1]
        for name, shape in mlp.items():
            found[f"{LAYER}mlp.{name}_proj.weight"] = shape
            if self.mlp_bias:
                found[f"{LAYER}mlp.{name}_proj.bias"] = shape[:1]
        for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
            found[f"{LAYER}{name}.weight"] = (wide,)
        if self.head_norms:
            for name in ("q_norm", "k_norm"):
                found[f"{LAYER}self_attn.{name}.weight"] = (self.head_size,)
        if self.norm_before_fc:
            found["input_norm.weight"] = (joined,)
        if self.fc_norm:
            for place in range(len(self.places)):
                found[f"fc_norm.{place}.weight"] = (self.target_width,)
        if self.own_table:
            found["embed_tokens.weight"] = (self.vocabulary, wide)
        return found | {"norm.weight": (wide,), "lm_head.weight": (self.tokens, wide)}


def is_eagle3(config: Mapping[str, Any], names: frozenset[str]) -> bool:
    """Whether a head is of this kind: it says so, or has the tensors that only these have."""
    stated = config.get("speculators_model_type")
    if stated is not None:
        return bool(stated == "eagle3")
    if "eagle3" in " ".join(families.names(config.get("architectures"))).lower():
        return True
    plain = {_plain(name) for name in names}
    return {"fc.weight", f"{LAYER}hidden_norm.weight"} <= plain


def read(config: Mapping[str, Any], tensors: Tensors, target: ModelInfo) -> Eagle3:
    """The head that `config` and `tensors` describe, for `target`.

    Raises DraftRefused, naming the number or the tensor at fault (case SPC-2), and Incomplete.
    """
    refuse_lossy(config)
    nested = config.get("transformer_layer_config")
    layer = nested if isinstance(nested, Mapping) else config
    eagle = config.get("eagle_config")
    outer = {**(eagle if isinstance(eagle, Mapping) else {}), **config}
    stored = {_plain(name): name for name in tensors}
    shapes = {name: tensors[own][1].shape for name, own in stored.items()}
    speculators = "speculators_model_type" in config
    vocabulary = number(layer, "vocab_size", target.vocab_size)
    if vocabulary != (target.vocab_size or vocabulary):
        raise DraftRefused(
            "head_tokens",
            "Another target: {head:,} tokens, not {target:,}",
            head=vocabulary,
            target=target.vocab_size or 0,
        )
    own_tokens = number(outer, "draft_vocab_size", vocabulary)
    mapped = token_map(own_tokens, tensors, stored, target)
    only(layer, "num_hidden_layers", 1)
    only(layer, "hidden_act", "silu")
    only(outer, "use_aux_hidden_state", True)
    width = number(layer, "hidden_size")
    heads = number(layer, "num_attention_heads")
    target_width = target.hidden_size or number(outer, "target_hidden_size", width)
    joined = "input_norm.weight" in shapes
    found = Eagle3(
        places=_places(outer, target, shapes.get("fc.weight", ()), target_width),
        width=width,
        target_width=target_width,
        heads=heads,
        key_heads=number(layer, "num_key_value_heads", heads),
        head_size=number(layer, "head_dim", width // heads),
        inner=number(layer, "intermediate_size"),
        eps=eps(layer),
        vocabulary=vocabulary,
        tokens=own_tokens,
        rope=rope(layer),
        trained=layer.get("max_position_embeddings"),
        window=_window(layer),
        attention_bias=layer.get("attention_bias") is True,
        mlp_bias=layer.get("mlp_bias") is True,
        head_norms=f"{LAYER}self_attn.q_norm.weight" in shapes,
        own_table="embed_tokens.weight" in shapes,
        # what speculators' own files mean that leave it out; the library's default is the other
        norm_before_residual=flag(outer, "norm_before_residual", speculators),
        norm_before_fc=flag(outer, "norm_before_fc", joined),
        fc_norm=flag(outer, "fc_norm", "fc_norm.0.weight" in shapes),
        norm_output=flag(outer, "norm_output", False),
        stored=stored,
        map=mapped,
    )
    if found.norm_before_fc and found.fc_norm:
        raise bad_setting("fc_norm", "true", "norm_before_fc")
    if found.key_heads > heads or heads % found.key_heads:
        raise bad_setting("num_key_value_heads", found.key_heads, heads)
    if not found.own_table and width != target_width:
        raise DraftRefused(
            "head_no_table",
            "It lacks the tensor {tensor}, and its width {head:,} is not the target's {target:,}",
            tensor="embed_tokens.weight",
            head=width,
            target=target_width,
        )
    compare(found.shapes, found.stored, tensors)
    return found


def _plain(name: str) -> str:
    """A tensor's name as speculators write it."""
    name = name.removeprefix("model.")
    return LAYER + name.removeprefix(MIDLAYER) if name.startswith(MIDLAYER) else name


def _places(
    config: Mapping[str, Any], target: ModelInfo, fc: tuple[int, ...], width: int
) -> tuple[int, ...]:
    """The states that it reads: those it names, else three, as SafeAILab took them."""
    layers = target.layers or LARGEST
    stated = config.get("eagle_aux_hidden_state_layer_ids")
    if stated:
        if not isinstance(stated, list) or not all(type(i) is int for i in stated):
            raise bad_setting("eagle_aux_hidden_state_layer_ids", str(stated)[:40], "1, 2, 3")
        places = tuple(stated)
    else:
        places = (2, layers // 2, layers - 3)
    outside = [place for place in places if not 0 <= place <= layers]
    if outside:
        raise DraftRefused(
            "head_layers",
            "It reads layer {place}; the target has {layers}",
            place=outside[0],
            layers=layers,
        )
    if len(fc) == 2 and fc[1] != len(places) * width:
        raise DraftRefused(
            "head_joined",
            "Its tensor {tensor} reads {head} numbers, not {count} times the target's {target}",
            tensor="fc.weight",
            head=fc[1],
            count=len(places),
            target=width,
        )
    return places


def _window(layer: Mapping[str, Any]) -> int:
    kinds, window = layer.get("layer_types"), layer.get("sliding_window")
    sliding = isinstance(kinds, list) and kinds[:1] == ["sliding_attention"]
    return window if sliding and type(window) is int and window > 0 else 0
