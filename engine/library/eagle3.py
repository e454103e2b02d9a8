"""What an EAGLE-3 head on disk is, in SafeAILab's format or speculators', and what is wrong with
it; P-EAGLE's too, which are the same with a mask.

Li et al. 2025, "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via
Training-Time Test"; arXiv 2602.01469, "P-EAGLE: Parallel-Drafting EAGLE with Scalable Training". A
head that is read a little wrongly drafts all the same, and is never right: so whatever is not known
for certain is refused, by its number or tensor. Reads no weights but the map of a reduced
vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine import families
from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.library.folder import LARGEST
from engine.library.head_config import (
    MOST_LAYERS,
    Shape,
    Tensors,
    bad_setting,
    compare,
    flag,
    number,
    only,
    refuse_lossy,
    shape,
    stated_places,
    token,
)

LAYER, MIDLAYER = "layers.0.", "midlayer."
MASK_STATE = "mask_hidden"
# By what name a mask goes: in speculators' files, in PARD's, in those of P-EAGLE's authors.
MASKS = ("mask_token_id", "pard_token", "ptd_token_id")


@dataclass(frozen=True, kw_only=True)
class Eagle3(Shape):
    """The shape of a head. `windows` of its layers in tokens, 0: all; the layers above the first
    one read no tokens."""

    windows: tuple[int, ...]
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
        found = self.ends() | {f"{LAYER}hidden_norm.weight": (wide,)}
        for index in range(len(self.windows)):
            at = f"layers.{index}."
            found |= self.layer(at, wide if index else 2 * wide, norms=self.head_norms)
            if self.mlp_bias:
                for name, rows in (("gate", self.inner), ("up", self.inner), ("down", wide)):
                    found[f"{at}mlp.{name}_proj.bias"] = (rows,)
        if self.norm_before_fc:
            found["input_norm.weight"] = (len(self.places) * own,)
        if self.fc_norm:
            found |= {f"fc_norm.{place}.weight": (own,) for place in range(len(self.places))}
        return found | {"lm_head.weight": (self.tokens, wide)}


@dataclass(frozen=True, kw_only=True)
class PEagle(Eagle3):
    """The same of a head that guesses several tokens in one pass: all rows but the first are of
    the token `mask`, with a state of its own."""

    mask: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the head needs, by speculators' names."""
        return super().shapes | {MASK_STATE: (1, 1, len(self.places) * self.target_width)}


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
    layer, _ = _parts(config)
    # what speculators' own files mean that leave it out; the library's default is the other
    before = "speculators_model_type" in config
    found = Eagle3(**_fields(config, tensors, target, norm_before_residual=before))
    only(layer, "num_hidden_layers", 1)
    _check(found, tensors)
    return found


def read_parallel(config: Mapping[str, Any], tensors: Tensors, target: ModelInfo) -> PEagle:
    """The same of a P-EAGLE head."""
    _, outer = _parts(config)
    fields = _fields(config, tensors, target, norm_before_residual=False)
    key = next((key for key in MASKS if outer.get(key) is not None), MASKS[0])
    found = PEagle(**fields, mask=token(outer, key, fields["vocabulary"]))
    _check(found, tensors)
    return found


def _parts(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What it says of its layers, and the part around it."""
    nested, eagle = config.get("transformer_layer_config"), config.get("eagle_config")
    layer = nested if isinstance(nested, Mapping) else config
    return layer, {**(eagle if isinstance(eagle, Mapping) else {}), **config}


def _fields(
    config: Mapping[str, Any], tensors: Tensors, target: ModelInfo, *, norm_before_residual: bool
) -> dict[str, Any]:
    """The fields of `Eagle3`; the flag is what holds where nothing is said."""
    refuse_lossy(config)
    layer, outer = _parts(config)
    stored = {_plain(name): name for name in tensors}
    only(outer, "use_aux_hidden_state", True)
    places = _places(outer, target)
    return {
        **shape(layer, outer, tensors, stored, target, places=places, own_output=True),
        "windows": _windows(layer, number(layer, "num_hidden_layers", 1, MOST_LAYERS)),
        "mlp_bias": layer.get("mlp_bias") is True,
        "head_norms": f"{LAYER}self_attn.q_norm.weight" in stored,
        "norm_before_residual": flag(outer, "norm_before_residual", norm_before_residual),
        "norm_before_fc": flag(outer, "norm_before_fc", "input_norm.weight" in stored),
        "fc_norm": flag(outer, "fc_norm", "fc_norm.0.weight" in stored),
        "norm_output": flag(outer, "norm_output", False),
    }


def _check(found: Eagle3, tensors: Tensors) -> None:
    """Raises DraftRefused unless what is stated goes together, and with the tensors."""
    width, stored = found.target_width, found.stored.get("fc.weight")
    fc = () if stored is None else tensors[stored][1].shape
    if len(fc) == 2 and fc[1] != len(found.places) * width:
        raise DraftRefused(
            "head_joined",
            "Its tensor {tensor} reads {head} numbers, not {count} times the target's {target}",
            tensor="fc.weight",
            head=fc[1],
            count=len(found.places),
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


def _plain(name: str) -> str:
    """A tensor's name as speculators write it."""
    name = name.removeprefix("model.")
    return LAYER + name.removeprefix(MIDLAYER) if name.startswith(MIDLAYER) else name


def _places(config: Mapping[str, Any], target: ModelInfo) -> tuple[int, ...]:
    """The states that it reads: those it names, else three, as SafeAILab took them."""
    key, layers = "eagle_aux_hidden_state_layer_ids", target.layers or LARGEST
    return stated_places(config, key) if config.get(key) else (2, layers // 2, layers - 3)


def _windows(layer: Mapping[str, Any], count: int) -> tuple[int, ...]:
    kinds, window = layer.get("layer_types"), layer.get("sliding_window")
    if not isinstance(kinds, list) or type(window) is not int or window <= 0:
        return (0,) * count
    sliding = (kinds[index : index + 1] == ["sliding_attention"] for index in range(count))
    return tuple(window if slides else 0 for slides in sliding)
