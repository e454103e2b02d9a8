"""What the configurations of all heads share: sizes, positions, the map of a vocabulary.

Whatever is not as it must be is refused, by its number or tensor. Reads no weights but that map.
"""

import array
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.guidance import SETTING
from engine.library.folder import LARGEST
from engine.library.safetensors import TensorInfo, read_tensor

MAP = "d2t"
LARGEST_MAP = 2**24  # bytes
MOST_LAYERS = 64
# Beside the head's own: what only training reads.
UNREAD = ("t2d", "verifier_norm.weight", "verifier_lm_head.weight")
ROPES = ("default", "linear", "dynamic", "yarn", "longrope", "llama3")
ROPE_KEYS = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")
FLOATS = ("F32", "F16", "BF16")
WHOLE = {"I64": "q", "I32": "i"}  # as the array module calls them

# Where each tensor lies and what it is.
Tensors = Mapping[str, tuple[Path, TensorInfo]]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is said of heads of every kind. `places` are the states that it reads, as transformers
    numbers them; `stored` says under which name each of its tensors lies; `map` leads from its
    tokens to the target's, None where they are the same. `trained` is the length of the texts that
    it learned from, which its positions may well exceed.
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
    attention_bias: bool
    own_table: bool
    stored: Mapping[str, str]
    map: tuple[int, ...] | None

    def ends(self) -> dict[str, tuple[int, ...]]:
        """The tensors before and behind its layers."""
        joined = len(self.places) * self.target_width
        table = {"embed_tokens.weight": (self.vocabulary, self.width)} if self.own_table else {}
        return {"fc.weight": (self.width, joined), "norm.weight": (self.width,), **table}

    def layer(self, at: str, reads: int, *, norms: bool) -> dict[str, tuple[int, ...]]:
        """Those of a layer `at`, whose attention reads so many numbers, with `norms` of its own."""
        wide, size = self.width, self.head_size
        queries, keys = self.heads * size, self.key_heads * size
        matrices = {
            "self_attn.q_proj": (queries, reads),
            "self_attn.k_proj": (keys, reads),
            "self_attn.v_proj": (keys, reads),
            "self_attn.o_proj": (wide, queries),
            "mlp.gate_proj": (self.inner, wide),
            "mlp.up_proj": (self.inner, wide),
            "mlp.down_proj": (wide, self.inner),
        }
        found: dict[str, tuple[int, ...]] = {f"{at}{n}.weight": x for n, x in matrices.items()}
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}{name}.weight"] = (wide,)
        if self.attention_bias:
            for name, shape in matrices.items():
                if name.startswith("self_attn"):
                    found[f"{at}{name}.bias"] = shape[:1]
        if norms:
            found |= {f"{at}self_attn.{name}.weight": (size,) for name in ("q_norm", "k_norm")}
        return found


def shape(
    layer: Mapping[str, Any],
    outer: Mapping[str, Any],
    tensors: Tensors,
    stored: Mapping[str, str],
    target: ModelInfo,
    *,
    places: tuple[int, ...],
    own_output: bool,
) -> dict[str, Any]:
    """The fields of `Shape`, as `layer` and `outer`, the part around it, say.

    Raises DraftRefused, naming the number or the tensor at fault (case SPC-2).
    """
    vocabulary = number(layer, "vocab_size", target.vocab_size)
    if vocabulary != (target.vocab_size or vocabulary):
        raise DraftRefused(
            "head_tokens",
            "Another target: {head:,} tokens, not {target:,}",
            head=vocabulary,
            target=target.vocab_size or 0,
        )
    tokens = number(outer, "draft_vocab_size", vocabulary) if own_output else vocabulary
    only(layer, "hidden_act", "silu")
    width, heads = number(layer, "hidden_size"), number(layer, "num_attention_heads")
    key_heads = number(layer, "num_key_value_heads", heads)
    if key_heads > heads or heads % key_heads:
        raise bad_setting("num_key_value_heads", key_heads, heads)
    return {
        "places": _there(places, target),
        "width": width,
        "target_width": target.hidden_size or number(outer, "target_hidden_size", width),
        "heads": heads,
        "key_heads": key_heads,
        "head_size": number(layer, "head_dim", width // heads),
        "inner": number(layer, "intermediate_size"),
        "eps": eps(layer),
        "vocabulary": vocabulary,
        "tokens": tokens,
        "rope": rope(layer),
        "trained": layer.get("max_position_embeddings"),
        "attention_bias": layer.get("attention_bias") is True,
        "own_table": "embed_tokens.weight" in stored,
        "stored": stored,
        "map": token_map(tokens, tensors, stored, target),
    }


def stated_places(config: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """The layers that it names under `key`, at least one."""
    stated = config.get(key)
    if not isinstance(stated, list) or not stated or not all(type(i) is int for i in stated):
        raise bad_setting(key, str(stated)[:40], "1, 2, 3")
    return tuple(stated)


def _there(places: tuple[int, ...], target: ModelInfo) -> tuple[int, ...]:
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


def refuse_lossy(config: Mapping[str, Any]) -> None:
    """Raises DraftRefused for a head that is meant to change the answer."""
    speculators = config.get("speculators_config")
    methods = speculators.get("proposal_methods") if isinstance(speculators, Mapping) else None
    for method in methods if isinstance(methods, list) else []:
        for key, exact in (("verifier_accept_k", 1), ("accept_tolerance", 0)):
            said = method.get(key, exact) if isinstance(method, Mapping) else exact
            if said is not None and said != exact:
                raise DraftRefused(
                    "head_lossy",
                    "Made to change answers: its {key} is {value}",
                    key=key,
                    value=str(said)[:20],
                )


def rope(layer: Mapping[str, Any]) -> dict[str, Any]:
    """What it says of its rotary positions."""
    found = {key: layer[key] for key in ROPE_KEYS if layer.get(key) is not None}
    for key in ("rope_scaling", "rope_parameters"):
        part = found.get(key)
        kind = part.get("rope_type", part.get("type")) if isinstance(part, Mapping) else None
        # sections for pictures leave text as it is
        if kind not in (None, "mrope", *ROPES):
            raise bad_setting("rope_type", str(kind)[:20], ", ".join(ROPES))
    return found


def token_map(
    tokens: int, tensors: Tensors, stored: Mapping[str, str], target: ModelInfo
) -> tuple[int, ...] | None:
    """The target's id of each of its own; what is stored is how far it lies from that."""
    vocabulary = target.vocab_size or tokens
    if MAP not in stored:
        if tokens == vocabulary:
            return None
        raise DraftRefused(
            "head_no_map",
            "Its {tokens:,} tokens are not the target's, and it lacks the tensor {tensor}",
            tokens=tokens,
            tensor=MAP,
        )
    offsets = whole_numbers(MAP, tokens, tensors[stored[MAP]])
    return checked(MAP, [own + far for own, far in enumerate(offsets)], vocabulary)


def whole_numbers(name: str, count: int, found: tuple[Path, TensorInfo]) -> "array.array[int]":
    """The tensor `name`, so many whole numbers in a row. Raises DraftRefused where it is not."""
    path, tensor = found
    if tensor.dtype not in WHOLE or tensor.shape != (count,):
        text = "Its tensor {tensor} is not a map of {tokens:,} whole numbers"
        raise DraftRefused("head_bad_map", text, tensor=name, tokens=count)
    numbers = array.array(WHOLE[tensor.dtype], read_tensor(path, tensor, LARGEST_MAP))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def checked(name: str, ids: Sequence[int], vocabulary: int) -> tuple[int, ...]:
    """The target's ids that the tensor `name` leads to: each of its `vocabulary`, none twice.
    Raises DraftRefused where not."""
    found = tuple(ids)
    wrong = next((own for own, id_ in enumerate(found) if not 0 <= id_ < vocabulary), None)
    if wrong is not None:
        raise DraftRefused(
            "head_map_leads_out",
            "Its tensor {tensor} leads from token {token} to {id}, outside the target's {tokens:,}",
            tensor=name,
            token=wrong,
            id=found[wrong],
            tokens=vocabulary,
        )
    if len(set(found)) < len(found):
        taken: dict[int, int] = {}
        twice = next(own for own, id_ in enumerate(found) if taken.setdefault(id_, own) != own)
        raise DraftRefused(
            "head_map_twice",
            "Its tensor {tensor} leads from token {token} to {id}, as from another one",
            tensor=name,
            token=twice,
            id=found[twice],
        )
    return found


def compare(shapes: Shapes, stored: Mapping[str, str], tensors: Tensors) -> None:
    """Raises DraftRefused unless the head has tensors of the `shapes` that it needs and no others;
    `stored` says under which name each of those that it has lies."""
    for name, shape in shapes.items():
        if name not in stored:
            raise DraftRefused("head_lacks_tensor", "It lacks the tensor {tensor}", tensor=name)
        _, tensor = tensors[stored[name]]
        if tensor.shape != shape or tensor.dtype not in FLOATS:
            raise DraftRefused(
                "head_shape",
                "Its tensor {tensor} is {found}, not {needed}",
                tensor=name,
                found=" x ".join(map(str, (tensor.dtype, *tensor.shape))),
                needed=" x ".join(map(str, shape)),
            )
    surplus = stored.keys() - {*shapes, MAP, *UNREAD}
    surplus = {name for name in surplus if not name.endswith("rotary_emb.inv_freq")}
    if surplus:
        raise DraftRefused(
            "head_surplus",
            "Its tensor {tensor} has no use that is known here",
            tensor=min(surplus)[:60],
        )


def number(
    part: Mapping[str, Any], key: str, default: int | None = None, most: int = LARGEST
) -> int:
    """A size that must be stated, unless there is a default."""
    value = part.get(key)
    if value is None and default is not None:
        return default
    if type(value) is not int or not 0 < value <= most:
        raise bad_setting(key, str(value)[:20], f"1 to {most}")
    return value


def token(part: Mapping[str, Any], key: str, vocabulary: int) -> int:
    """A token that must be stated, one of so many."""
    value = part.get(key)
    if type(value) is not int or not 0 <= value < vocabulary:
        raise bad_setting(key, str(value)[:20], f"0 to {vocabulary - 1}")
    return value


def eps(layer: Mapping[str, Any]) -> float:
    """What its norms add."""
    value = layer.get("rms_norm_eps", 1e-6)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise bad_setting("rms_norm_eps", str(value)[:20], "0 to 1")
    return float(value)


def flag(part: Mapping[str, Any], key: str, default: bool) -> bool:
    """What is true or false."""
    value = part.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_setting(key, str(value)[:20], "true, false")
    return value


def only(part: Mapping[str, Any], key: str, usable: int | str | bool) -> None:
    """Raises DraftRefused where it says anything but the one value that can be used."""
    value = part.get(key)
    if value is not None and value != usable:
        raise bad_setting(key, str(value)[:20], str(usable).lower())


def bad_setting(key: str, value: str | int, usable: str | int) -> DraftRefused:
    """A setting with which a head cannot be used."""
    return DraftRefused("head_setting", SETTING, key=key, value=value, usable=usable)
