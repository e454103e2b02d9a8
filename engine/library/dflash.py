"""What a DFlash head on disk is, in its authors' format or speculators', and what is wrong with it.

A block drafter: one pass over masks guesses all tokens of a block. Its authors number the layers
whose output it reads, speculators those that read it: one more. Reads no weights but the map of a
reduced vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine import families
from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.library.head_config import (
    MOST_LAYERS,
    Shape,
    Tensors,
    bad_setting,
    compare,
    flag,
    number,
    refuse_lossy,
    shape,
    stated_places,
    token,
)

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, kw_only=True)
class DFlash(Shape):
    """The shape of a head.

    `block` tokens are computed at once, the last one written and masks behind it; `from_anchor`:
    each row tells the token behind it, and not its own. `windows` of the layers in tokens, 0: all;
    in a window a row looks back only, unless `both_ways`.
    """

    windows: tuple[int, ...]
    both_ways: bool
    causal: bool
    block: int
    mask: int
    from_anchor: bool
    own_output: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the head needs."""
        found = self.ends() | {"hidden_norm.weight": (self.width,)}
        for index in range(len(self.windows)):
            found |= self.layer(f"layers.{index}.", self.width, norms=True)
        return found | ({"lm_head.weight": (self.tokens, self.width)} if self.own_output else {})


def is_dflash(config: Mapping[str, Any]) -> bool:
    """Whether a head says that it is of this kind."""
    stated = config.get("speculators_model_type")
    if stated is not None:
        return bool(stated == "dflash")
    classes = " ".join(families.names(config.get("architectures"))).lower()
    return isinstance(config.get("dflash_config"), Mapping) and "dspark" not in classes


def read(config: Mapping[str, Any], tensors: Tensors, target: ModelInfo) -> DFlash:
    """The head that `config` and `tensors` describe, for `target`.

    Raises DraftRefused, naming the number or the tensor at fault (case SPC-2), and Incomplete.
    """
    refuse_lossy(config)
    speculators = "speculators_model_type" in config
    nested, inner = config.get("transformer_layer_config"), config.get("dflash_config")
    layer = nested if isinstance(nested, Mapping) else config
    outer = {**(inner if isinstance(inner, Mapping) else {}), **config}
    stored = {name.removeprefix("model."): name for name in tensors}
    width = number(layer, "hidden_size")
    if target.hidden_size not in (None, width):
        # its blocks begin with the target's table, and most end with the target's output matrix
        text = "Another target: width {head:,}, not {target:,}"
        raise DraftRefused("head_width", text, head=width, target=target.hidden_size or 0)
    key = "aux_hidden_state_layer_ids" if speculators else "target_layer_ids"
    places = tuple(place + (not speculators) for place in stated_places(outer, key))
    own = "lm_head.weight" in stored
    common = shape(layer, outer, tensors, stored, target, places=places, own_output=own)
    found = DFlash(
        **common,
        windows=_windows(layer, outer, number(layer, "num_hidden_layers", most=MOST_LAYERS)),
        both_ways=flag(outer, "sliding_window_non_causal", False),
        causal=flag(outer, "causal", False),
        block=number(outer, "block_size"),
        mask=token(outer, "mask_token_id", common["vocabulary"]),
        from_anchor=flag(outer, "sample_from_anchor", False),
        own_output=own,
    )
    if found.block < 2:
        raise bad_setting("block_size", found.block, "2 and more")
    compare(found.shapes, stored, tensors)
    return found


def _windows(layer: Mapping[str, Any], outer: Mapping[str, Any], count: int) -> tuple[int, ...]:
    kinds = layer.get("layer_types") or [FULL] * count
    if outer.get("use_swa") is True:
        window = number(outer, "swa_window_size")
        return (window,) * count
    if len(kinds) != count or not set(kinds) <= {FULL, SLIDING}:
        raise bad_setting("layer_types", ", ".join(map(str, kinds))[:60], f"{FULL}, {SLIDING}")
    return tuple(number(layer, "sliding_window") if kind == SLIDING else 0 for kind in kinds)
