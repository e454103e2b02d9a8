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
    Shape,
    Tensors,
    bad_setting,
    compare,
    flag,
    only,
    refuse_lossy,
    shape,
    stated_places,
)

LAYER, MIDLAYER = "layers.0.", "midlayer."


@dataclass(frozen=True, kw_only=True)
class Eagle3(Shape):
    """The shape of a head. `window` in tokens, 0: it looks at all."""

    window: int
    mlp_bias: bool
    head_norms: bool
    norm_before_residual: bool
    norm_before_fc: bool
    fc_norm: bool
    norm_output: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the head needs, by speculators' names."""
        wide, own = self.width, self.target_width
        found = self.ends() | self.layer(LAYER, 2 * wide, norms=self.head_norms)
        found[f"{LAYER}hidden_norm.weight"] = (wide,)
        if self.mlp_bias:
            for name, rows in (("gate", self.inner), ("up", self.inner), ("down", wide)):
                found[f"{LAYER}mlp.{name}_proj.bias"] = (rows,)
        if self.norm_before_fc:
            found["input_norm.weight"] = (len(self.places) * own,)
        if self.fc_norm:
            found |= {f"fc_norm.{place}.weight": (own,) for place in range(len(self.places))}
        return found | {"lm_head.weight": (self.tokens, wide)}


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
    only(outer, "use_aux_hidden_state", True)
    places = _places(outer, target)
    joined = "input_norm.weight" in shapes
    found = Eagle3(
        **shape(layer, outer, tensors, stored, target, places=places, own_output=True),
        window=_window(layer),
        mlp_bias=layer.get("mlp_bias") is True,
        head_norms=f"{LAYER}self_attn.q_norm.weight" in shapes,
        # what speculators' own files mean that leave it out; the library's default is the other
        norm_before_residual=flag(outer, "norm_before_residual", speculators),
        norm_before_fc=flag(outer, "norm_before_fc", joined),
        fc_norm=flag(outer, "fc_norm", "fc_norm.0.weight" in shapes),
        norm_output=flag(outer, "norm_output", False),
    )
    only(layer, "num_hidden_layers", 1)
    fc, width = shapes.get("fc.weight", ()), found.target_width
    if len(fc) == 2 and fc[1] != len(places) * width:
        raise DraftRefused(
            "head_joined",
            "Its tensor {tensor} reads {head} numbers, not {count} times the target's {target}",
            tensor="fc.weight",
            head=fc[1],
            count=len(places),
            target=width,
        )
    if found.norm_before_fc and found.fc_norm:
        raise bad_setting("fc_norm", "true", "norm_before_fc")
    if not found.own_table and found.width != width:
        raise DraftRefused(
            "head_no_table",
            "It lacks the tensor {tensor}, and its width {head:,} is not the target's {target:,}",
            tensor="embed_tokens.weight",
            head=found.width,
            target=width,
        )
    compare(found.shapes, found.stored, tensors)
    return found


def _plain(name: str) -> str:
    """A tensor's name as speculators write it."""
    name = name.removeprefix("model.")
    return LAYER + name.removeprefix(MIDLAYER) if name.startswith(MIDLAYER) else name


def _places(config: Mapping[str, Any], target: ModelInfo) -> tuple[int, ...]:
    """The states that it reads: those it names, else three, as SafeAILab took them."""
    key, layers = "eagle_aux_hidden_state_layer_ids", target.layers or LARGEST
    return stated_places(config, key) if config.get(key) else (2, layers // 2, layers - 3)


def _window(layer: Mapping[str, Any]) -> int:
    kinds, window = layer.get("layer_types"), layer.get("sliding_window")
    sliding = isinstance(kinds, list) and kinds[:1] == ["sliding_attention"]
    return window if sliding and type(window) is int and window > 0 else 0
