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

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class DFlash:
    """The shape of a head; what is not explained here is as in `engine.library.eagle3`.

    `block` tokens are computed at once, the last one written and masks behind it; `from_anchor`:
    each row tells the token behind it, and not its own. `windows` of the layers in tokens, 0: all;
    in a window a row looks back only, unless `both_ways`.
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
    windows: tuple[int, ...]
    both_ways: bool
    causal: bool
    attention_bias: bool
    block: int
    mask: int
    from_anchor: bool
    own_table: bool
    own_output: bool
    stored: Mapping[str, str]
    map: tuple[int, ...] | None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the head needs."""
        wide, queries = self.width, self.heads * self.head_size
        keys = self.key_heads * self.head_size
        found: dict[str, tuple[int, ...]] = {
            "fc.weight": (wide, len(self.places) * self.target_width),
            "hidden_norm.weight": (wide,),
            "norm.weight": (wide,),
        }
        for index in range(len(self.windows)):
            at = f"layers.{index}."
            for name, shape in (
                ("q_proj", (queries, wide)),
                ("k_proj", (keys, wide)),
                ("v_proj", (keys, wide)),
                ("o_proj", (wide, queries)),
            ):
                found[f"{at}self_attn.{name}.weight"] = shape
                if self.attention_bias:
                    found[f"{at}self_attn.{name}.bias"] = shape[:1]
            for name, shape in (
                ("gate_proj", (self.inner, wide)),
                ("up_proj", (self.inner, wide)),
                ("down_proj", (wide, self.inner)),
            ):
                found[f"{at}mlp.{name}.weight"] = shape
            for name in ("q_norm", "k_norm"):
                found[f"{at}self_attn.{name}.weight"] = (self.head_size,)
            for name in ("input_layernorm", "post_attention_layernorm"):
                found[f"{at}{name}.weight"] = (wide,)
        if self.own_table:
            found["embed_tokens.weight"] = (self.vocabulary, wide)
        if self.own_output:
            found["lm_head.weight"] = (self.tokens, wide)
        return found


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
    vocabulary = number(layer, "vocab_size", target.vocab_size)
    if vocabulary != (target.vocab_size or vocabulary):
        text = "Another target: {head:,} tokens, not {target:,}"
        raise DraftRefused("head_tokens", text, head=vocabulary, target=target.vocab_size or 0)
    own_output = "lm_head.weight" in stored
    tokens = number(outer, "draft_vocab_size", vocabulary) if own_output else vocabulary
    mapped = token_map(tokens, tensors, stored, target)
    only(layer, "hidden_act", "silu")
    count = number(layer, "num_hidden_layers")
    heads = number(layer, "num_attention_heads")
    found = DFlash(
        places=_places(outer, speculators, target),
        width=width,
        target_width=target.hidden_size or width,
        heads=heads,
        key_heads=number(layer, "num_key_value_heads", heads),
        head_size=number(layer, "head_dim", width // heads),
        inner=number(layer, "intermediate_size"),
        eps=eps(layer),
        vocabulary=vocabulary,
        tokens=tokens,
        rope=rope(layer),
        trained=layer.get("max_position_embeddings"),
        windows=_windows(layer, outer, count),
        both_ways=flag(outer, "sliding_window_non_causal", False),
        causal=flag(outer, "causal", False),
        attention_bias=layer.get("attention_bias") is True,
        block=number(outer, "block_size"),
        mask=_mask(outer, vocabulary),
        from_anchor=flag(outer, "sample_from_anchor", False),
        own_table="embed_tokens.weight" in stored,
        own_output=own_output,
        stored=stored,
        map=mapped,
    )
    if found.block < 2:
        raise bad_setting("block_size", found.block, "2 and more")
    if found.key_heads > heads or heads % found.key_heads:
        raise bad_setting("num_key_value_heads", found.key_heads, heads)
    compare(found.shapes, stored, tensors)
    return found


def _places(config: Mapping[str, Any], speculators: bool, target: ModelInfo) -> tuple[int, ...]:
    """The states that it reads, as transformers numbers them."""
    key = "aux_hidden_state_layer_ids" if speculators else "target_layer_ids"
    stated = config.get(key)
    if not isinstance(stated, list) or not stated or not all(type(i) is int for i in stated):
        raise bad_setting(key, str(stated)[:40], "1, 2, 3")
    places = tuple(place if speculators else place + 1 for place in stated)
    layers = target.layers or LARGEST
    outside = [place for place in places if not 0 <= place <= layers]
    if outside:
        raise DraftRefused(
            "head_layers",
            "It reads layer {place}; the target has {layers}",
            place=outside[0],
            layers=layers,
        )
    return places


def _windows(layer: Mapping[str, Any], outer: Mapping[str, Any], count: int) -> tuple[int, ...]:
    if count > 64:
        raise bad_setting("num_hidden_layers", count, "1 to 64")
    kinds = layer.get("layer_types") or [FULL] * count
    if outer.get("use_swa") is True:
        window = number(outer, "swa_window_size")
        return (window,) * count
    if len(kinds) != count or not set(kinds) <= {FULL, SLIDING}:
        raise bad_setting("layer_types", ", ".join(map(str, kinds))[:60], f"{FULL}, {SLIDING}")
    return tuple(number(layer, "sliding_window") if kind == SLIDING else 0 for kind in kinds)


def _mask(config: Mapping[str, Any], vocabulary: int) -> int:
    value = config.get("mask_token_id")
    if type(value) is not int or not 0 <= value < vocabulary:
        raise bad_setting("mask_token_id", str(value)[:20], f"0 to {vocabulary - 1}")
    return value
