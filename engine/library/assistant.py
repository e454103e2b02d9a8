"""What a Gemma 4 assistant on disk is, and what is wrong with it.

A few decoder layers that keep nothing of their own: they read the keys and values of the target's
last layers, one with a window and one without, and go on from its last state. The larger ones look
for the next token only among those whose centroids are nearest. Reads no weights but the order of
the tokens behind those centroids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.library import caches
from engine.library.head_config import (
    ROPES,
    Tensors,
    bad_setting,
    checked,
    compare,
    eps,
    flag,
    number,
    only,
    whole_numbers,
)

FULL, SLIDING = "full_attention", "sliding_attention"
TABLE, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
CENTROIDS, ORDER = "masked_embedding.centroids.weight", "masked_embedding.token_ordering"
# Layers of models that keep their own have these; here nothing reads them.
OWN_KEYS = (".k_proj.weight", ".v_proj.weight", ".k_norm.weight", ".v_norm.weight")
MOST_LAYERS = 64
# What is left out of configurations that were saved as differences, by the kind of its layers,
# which are the same ones here; and the size of heads in layers without a window.
_TEXT: Mapping[str, Any] = {
    "vocab_size": 262_144,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 512,
    "max_position_embeddings": 131_072,
}
UNSTATED: Mapping[str, Mapping[str, Any]] = {
    "gemma4_text": _TEXT,
    "gemma4_unified_text": {**_TEXT, "sliding_window": 1024, "max_position_embeddings": 262_144},
}
GLOBAL_HEAD, CENTROID_COUNT, NEAR = 512, 2048, 32


@dataclass(frozen=True, kw_only=True)
class Assistant:
    """The shape of an assistant.

    `kinds` are those of its layers, with a window or without; `reads` says for each kind how many
    key heads of the target it looks at, and their size. `order` has the target's tokens, centroid
    by centroid, of which the nearest `near` are looked at; None: all tokens are. `stored` says
    under which name each of its tensors lies.
    """

    width: int
    target_width: int
    inner: int
    heads: int
    vocabulary: int
    eps: float
    kinds: tuple[str, ...]
    reads: Mapping[str, tuple[int, int]]
    window: int
    rope: Mapping[str, Any] | None
    trained: int
    centroids: int
    near: int
    order: tuple[int, ...] | None
    stored: Mapping[str, str]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that it needs, but the order of the tokens."""
        wide, inner = self.width, self.inner
        found: dict[str, tuple[int, ...]] = {
            "pre_projection.weight": (wide, 2 * self.target_width),
            "post_projection.weight": (self.target_width, wide),
            "model.norm.weight": (wide,),
            OUTPUT: (self.vocabulary, wide),
        }
        if self.centroids:
            found[CENTROIDS] = (self.centroids, wide)
        for place, kind in enumerate(self.kinds):
            at, size = f"model.layers.{place}.", self.reads[kind][1]
            found |= {
                f"{at}self_attn.q_proj.weight": (self.heads * size, wide),
                f"{at}self_attn.q_norm.weight": (size,),
                f"{at}self_attn.o_proj.weight": (wide, self.heads * size),
                f"{at}mlp.gate_proj.weight": (inner, wide),
                f"{at}mlp.up_proj.weight": (inner, wide),
                f"{at}mlp.down_proj.weight": (wide, inner),
                f"{at}layer_scalar": (1,),
            }
            for side in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
                found[f"{at}{side}_layernorm.weight"] = (wide,)
        return found


def read(config: Mapping[str, Any], tensors: Tensors, target: ModelInfo) -> Assistant:
    """The assistant that `config` and `tensors` describe, for `target`.

    Raises DraftRefused, naming the number or the tensor at fault (case SPC-2), and Incomplete.
    """
    layer = _layer(config)
    width = number(config, "backbone_hidden_size")
    if target.hidden_size not in (None, width):
        text = "Another target: width {head:,}, not {target:,}"
        raise DraftRefused("head_width", text, head=width, target=target.hidden_size or 0)
    vocabulary = number(layer, "vocab_size")
    if target.vocab_size not in (None, vocabulary):
        text = "Another target: {head:,} tokens, not {target:,}"
        raise DraftRefused("head_tokens", text, head=vocabulary, target=target.vocab_size or 0)
    only(layer, "hidden_activation", "gelu_pytorch_tanh")
    only(layer, "hidden_size_per_layer_input", 0)
    for key in ("attention_bias", "enable_moe_block", "use_double_wide_mlp"):
        only(layer, key, False)
    kinds = _kinds(layer)
    heads = number(layer, "num_attention_heads")
    ordered = flag(config, "use_ordered_embeddings", False)
    stored = _stored(tensors)
    found = Assistant(
        width=number(layer, "hidden_size"),
        target_width=width,
        inner=number(layer, "intermediate_size"),
        heads=heads,
        vocabulary=vocabulary,
        eps=eps(layer),
        kinds=kinds,
        reads=_reads(layer, kinds, heads, target),
        window=number(layer, "sliding_window") if SLIDING in kinds else 1,
        rope=_rope(layer),
        trained=number(layer, "max_position_embeddings"),
        centroids=number(config, "num_centroids", CENTROID_COUNT) if ordered else 0,
        near=number(config, "centroid_intermediate_top_k", NEAR) if ordered else 0,
        order=_order(tensors, vocabulary) if ordered else None,
        stored=stored,
    )
    if found.centroids and vocabulary % found.centroids:
        raise bad_setting("num_centroids", found.centroids, f"{vocabulary} / n")
    if found.near > found.centroids:
        raise bad_setting("centroid_intermediate_top_k", found.near, f"1 to {found.centroids}")
    compare(found.shapes, found.stored, tensors)
    return found


def _layer(config: Mapping[str, Any]) -> dict[str, Any]:
    """What it says of its layers, and what it leaves out."""
    nested = config.get("text_config")
    stated = nested if isinstance(nested, Mapping) else {}
    whole = str(config.get("model_type", "")).replace("assistant", "text")
    kind = str(stated.get("model_type") or whole)
    if kind not in UNSTATED:
        raise bad_setting("model_type", kind[:20], ", ".join(UNSTATED))
    return {**UNSTATED[kind], **stated}


def _stored(tensors: Tensors) -> dict[str, str]:
    """Where its tensors lie, but what nothing reads. Table and output matrix are one, whichever
    name it has."""
    stored = {name: name for name in tensors if name != ORDER and not name.endswith(OWN_KEYS)}
    table = stored.pop(TABLE, None)
    return stored if table is None else {OUTPUT: table, **stored}


def _kinds(layer: Mapping[str, Any]) -> tuple[str, ...]:
    count, listed = number(layer, "num_hidden_layers"), layer.get("layer_types")
    if count > MOST_LAYERS:
        raise bad_setting("num_hidden_layers", count, f"1 to {MOST_LAYERS}")
    kinds = listed if isinstance(listed, list) else []
    # transformers takes the last one for a layer without a window, whatever it is called
    if len(kinds) != count or not set(map(str, kinds)) <= {FULL, SLIDING} or kinds[-1] != FULL:
        raise bad_setting("layer_types", str(listed)[:60], f"{SLIDING}, {FULL}")
    return tuple(kinds)


def _reads(
    layer: Mapping[str, Any], kinds: tuple[str, ...], heads: int, target: ModelInfo
) -> dict[str, tuple[int, int]]:
    """Key heads and their size by the kind of layer, as the target's last layer of it has them."""
    found: dict[str, tuple[int, int]] = {}
    for place, kind in enumerate(kinds):
        here = caches.at(layer, place)
        count, size = number(here, "num_key_value_heads"), number(here, "head_dim")
        if kind == FULL and "per_layer_config" not in layer:
            size = number(layer, "global_head_dim", GLOBAL_HEAD)
            if layer.get("attention_k_eq_v") is True:
                count = number(layer, "num_global_key_value_heads", count)
        if found.setdefault(kind, (count, size)) != (count, size):
            raise bad_setting("head_dim", size, found[kind][1])
        if heads % count:
            raise bad_setting("num_key_value_heads", count, heads)
    for kind, (count, size) in found.items():
        kept = _kept(target, kind)
        if kept not in (None, 2 * count * size):
            raise DraftRefused(
                "head_keys",
                "Its layers read {head:,} numbers of each token; the target's last one of the kind "
                "{kind} keeps {target:,}",
                head=2 * count * size,
                target=kept or 0,
                kind=kind,
            )
    return found


def _kept(target: ModelInfo, kind: str) -> int | None:
    """What the last layer of a kind that keeps keys and values keeps of a token; 0 where there is
    none, None where it is not known."""
    if target.cache_widths is None or target.cache_windows is None:
        return None
    layers = zip(target.cache_widths, target.cache_windows, strict=True)
    kept = [width for width, window in layers if width and bool(window) == (kind == SLIDING)]
    return kept[-1] if kept else 0


def _rope(layer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Its rotary positions by the kind of layer."""
    stated = layer.get("rope_parameters")
    if stated is None:
        return None
    parts = stated.values() if isinstance(stated, Mapping) else [stated]
    for part in parts:
        kind = part.get("rope_type") if isinstance(part, Mapping) else part
        if kind not in (*ROPES, "proportional"):
            raise bad_setting("rope_type", str(kind)[:20], ", ".join((*ROPES, "proportional")))
    return dict(stated)


def _order(tensors: Tensors, vocabulary: int) -> tuple[int, ...]:
    """The target's tokens, centroid by centroid."""
    if ORDER not in tensors:
        raise DraftRefused("head_lacks_tensor", "It lacks the tensor {tensor}", tensor=ORDER)
    return checked(ORDER, whole_numbers(ORDER, vocabulary, tensors[ORDER]), vocabulary)
