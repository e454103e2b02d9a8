"""What an EAGLE-3 head on disk is, in SafeAILab's format or speculators', and what is wrong with
it.

Li et al. 2025, "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via
Training-Time Test". A head that is read a little wrongly drafts all the same, and is never right:
so whatever is not known for certain is refused, by its number or tensor. Reads no weights but the
map of a reduced vocabulary.
"""

import array
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import families
from engine.api import ModelInfo
from engine.errors import DraftRefused
from engine.library.folder import LARGEST
from engine.library.safetensors import TensorInfo, read_tensor

MAP = "d2t"
LARGEST_MAP = 2**24  # bytes
LAYER, MIDLAYER = "layers.0.", "midlayer."
# Beside the head's own: what only training reads, and what every program computes for itself.
UNREAD = ("t2d", "verifier_norm.weight", "verifier_lm_head.weight")
ROPES = ("default", "linear", "dynamic", "yarn", "longrope", "llama3")
ROPE_KEYS = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")
FLOATS = ("F32", "F16", "BF16")

# Where each tensor lies and what it is.
Tensors = Mapping[str, tuple[Path, TensorInfo]]


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
    _refuse_lossy(config)
    nested = config.get("transformer_layer_config")
    layer = nested if isinstance(nested, Mapping) else config
    eagle = config.get("eagle_config")
    outer = {**(eagle if isinstance(eagle, Mapping) else {}), **config}
    stored = {_plain(name): name for name in tensors}
    shapes = {name: tensors[own][1].shape for name, own in stored.items()}
    speculators = "speculators_model_type" in config
    vocabulary = _number(layer, "vocab_size", target.vocab_size)
    if vocabulary != (target.vocab_size or vocabulary):
        raise DraftRefused(
            "head_tokens",
            "Another target: {head:,} tokens, not {target:,}",
            head=vocabulary,
            target=target.vocab_size or 0,
        )
    own_tokens = _number(outer, "draft_vocab_size", vocabulary)
    mapped = _map(own_tokens, tensors, stored, target)
    _only(layer, "num_hidden_layers", 1)
    _only(layer, "hidden_act", "silu")
    _only(outer, "use_aux_hidden_state", True)
    width = _number(layer, "hidden_size")
    heads = _number(layer, "num_attention_heads")
    target_width = target.hidden_size or _number(outer, "target_hidden_size", width)
    joined = "input_norm.weight" in shapes
    found = Eagle3(
        places=_places(outer, target, shapes.get("fc.weight", ()), target_width),
        width=width,
        target_width=target_width,
        heads=heads,
        key_heads=_number(layer, "num_key_value_heads", heads),
        head_size=_number(layer, "head_dim", width // heads),
        inner=_number(layer, "intermediate_size"),
        eps=_eps(layer),
        vocabulary=vocabulary,
        tokens=own_tokens,
        rope=_rope(layer),
        trained=layer.get("max_position_embeddings"),
        window=_window(layer),
        attention_bias=layer.get("attention_bias") is True,
        mlp_bias=layer.get("mlp_bias") is True,
        head_norms=f"{LAYER}self_attn.q_norm.weight" in shapes,
        own_table="embed_tokens.weight" in shapes,
        # what speculators' own files mean that leave it out; the library's default is the other
        norm_before_residual=_flag(outer, "norm_before_residual", speculators),
        norm_before_fc=_flag(outer, "norm_before_fc", joined),
        fc_norm=_flag(outer, "fc_norm", "fc_norm.0.weight" in shapes),
        norm_output=_flag(outer, "norm_output", False),
        stored=stored,
        map=mapped,
    )
    if found.norm_before_fc and found.fc_norm:
        raise _bad_number("fc_norm", "true", "norm_before_fc")
    if found.key_heads > heads or heads % found.key_heads:
        raise _bad_number("num_key_value_heads", found.key_heads, heads)
    if not found.own_table and width != target_width:
        raise DraftRefused(
            "head_no_table",
            "It lacks the tensor {tensor}, and its width {head:,} is not the target's {target:,}",
            tensor="embed_tokens.weight",
            head=width,
            target=target_width,
        )
    _compare(found, tensors)
    return found


def _plain(name: str) -> str:
    """A tensor's name as speculators write it."""
    name = name.removeprefix("model.")
    return LAYER + name.removeprefix(MIDLAYER) if name.startswith(MIDLAYER) else name


def _refuse_lossy(config: Mapping[str, Any]) -> None:
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


def _places(
    config: Mapping[str, Any], target: ModelInfo, fc: tuple[int, ...], width: int
) -> tuple[int, ...]:
    """The states that it reads: those it names, else three, as SafeAILab took them."""
    layers = target.layers or LARGEST
    stated = config.get("eagle_aux_hidden_state_layer_ids")
    if stated:
        if not isinstance(stated, list) or not all(type(i) is int for i in stated):
            raise _bad_number("eagle_aux_hidden_state_layer_ids", str(stated)[:40], "1, 2, 3")
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


def _rope(layer: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: layer[key] for key in ROPE_KEYS if layer.get(key) is not None}
    for key in ("rope_scaling", "rope_parameters"):
        part = found.get(key)
        kind = part.get("rope_type", part.get("type")) if isinstance(part, Mapping) else None
        # sections for pictures leave text as it is
        if kind not in (None, "mrope", *ROPES):
            raise _bad_number("rope_type", str(kind)[:20], ", ".join(ROPES))
    return found


def _window(layer: Mapping[str, Any]) -> int:
    kinds, window = layer.get("layer_types"), layer.get("sliding_window")
    sliding = isinstance(kinds, list) and kinds[:1] == ["sliding_attention"]
    return window if sliding and type(window) is int and window > 0 else 0


def _map(
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
    path, tensor = tensors[stored[MAP]]
    if tensor.dtype != "I64" or tensor.shape != (tokens,):
        text = "Its tensor {tensor} is not a map of {tokens:,} whole numbers"
        raise DraftRefused("head_bad_map", text, tensor=MAP, tokens=tokens)
    offsets = array.array("q", read_tensor(path, tensor, LARGEST_MAP))
    if sys.byteorder == "big":
        offsets.byteswap()
    found = tuple(own + far for own, far in enumerate(offsets))
    wrong = next((own for own, id_ in enumerate(found) if not 0 <= id_ < vocabulary), None)
    if wrong is not None:
        raise DraftRefused(
            "head_map_leads_out",
            "Its tensor {tensor} leads from token {token} to {id}, outside the target's {tokens:,}",
            tensor=MAP,
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
            tensor=MAP,
            token=twice,
            id=found[twice],
        )
    return found


def _compare(head: Eagle3, tensors: Tensors) -> None:
    """Raises DraftRefused unless the head has the tensors that it needs and no others."""
    for name, shape in head.shapes.items():
        if name not in head.stored:
            raise DraftRefused("head_lacks_tensor", "It lacks the tensor {tensor}", tensor=name)
        _, tensor = tensors[head.stored[name]]
        if tensor.shape != shape or tensor.dtype not in FLOATS:
            raise DraftRefused(
                "head_shape",
                "Its tensor {tensor} is {found}, not {needed}",
                tensor=name,
                found=" x ".join(map(str, (tensor.dtype, *tensor.shape))),
                needed=" x ".join(map(str, shape)),
            )
    surplus = head.stored.keys() - {*head.shapes, MAP, *UNREAD}
    surplus = {name for name in surplus if not name.endswith("rotary_emb.inv_freq")}
    if surplus:
        raise DraftRefused(
            "head_surplus",
            "Its tensor {tensor} has no use that is known here",
            tensor=min(surplus)[:60],
        )


def _number(part: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A size that must be stated, unless there is a default."""
    value = part.get(key)
    if value is None and default is not None:
        return default
    if type(value) is not int or not 0 < value < LARGEST:
        raise _bad_number(key, str(value)[:20], f"1 to {LARGEST}")
    return value


def _eps(layer: Mapping[str, Any]) -> float:
    value = layer.get("rms_norm_eps", 1e-6)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise _bad_number("rms_norm_eps", str(value)[:20], "0 to 1")
    return float(value)


def _flag(part: Mapping[str, Any], key: str, default: bool) -> bool:
    value = part.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise _bad_number(key, str(value)[:20], "true, false")
    return value


def _only(part: Mapping[str, Any], key: str, usable: int | str | bool) -> None:
    value = part.get(key)
    if value is not None and value != usable:
        raise _bad_number(key, str(value)[:20], str(usable).lower())


def _bad_number(key: str, value: str | int, usable: str | int) -> DraftRefused:
    return DraftRefused(
        "head_setting",
        "Its {key} is {value}; what can be used is {usable}",
        key=key,
        value=value,
        usable=usable,
    )
