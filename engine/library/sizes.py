"""Numbers in a model's tensors by kind, from names and shapes.

Counts numbers, not bytes: those depend on the precision (`engine.memory`).
"""

import math
import re
from collections.abc import Mapping
from typing import TypedDict

# Tables that are looked up, not multiplied: positions, token types.
TABLE = re.compile(r"(embed|wpe|wte)[^.]*\.weight$")
# What no text needs: images and sound; further heads, which transformers leaves in the file.
APART = re.compile(
    r"(^|\.)(vision_tower|vision_model|visual|vision_embed_tokens|audio_tower|audio_model"
    r"|multi_modal_projector|mm_projector|embed_vision|embed_audio)\."
)
FURTHER = re.compile(r"(^|\.)mtp(_\w+)?\.|^model\.layers\.(?P<layer>\d{1,9})\.")
EXPERTS = re.compile(r"\.experts\.|_exps\.|\.block_sparse_moe\.(in|out)put_linear\.")
# A second table of tokens, from which every layer reads (Gemma 3n and 4).
PER_LAYER = re.compile(r"(embed_tokens_per_layer|per_layer_token_embd)\.weight$")
Shape = tuple[int, ...]


class Weights(TypedDict, total=False):
    """Numbers in all tensors by kind, as `ModelInfo` names them; empty where not known."""

    linear: int
    linear_rows: int
    experts: int
    embedding: int
    head: int
    other: int


def of_text(shapes: Mapping[str, Shape], layers: int | None) -> dict[str, Shape]:
    """The tensors that text goes through, of a model of that many `layers`."""
    return {
        name: shape
        for name, shape in shapes.items()
        if not APART.search(name) and not _is_further(name, layers)
    }


def held(shapes: Mapping[str, Shape], layers: int | None) -> dict[str, Shape]:
    """The tensors that are loaded where a model's parts for images and sound are."""
    return {name: shape for name, shape in shapes.items() if not _is_further(name, layers)}


def _is_further(name: str, layers: int | None) -> bool:
    match = FURTHER.search(name)
    if match is None or match["layer"] is None:
        return match is not None
    return layers is not None and int(match["layer"]) >= layers


def active(
    shapes: Mapping[str, Shape], parameters: int, experts: int | None, used: int | None
) -> int | None:
    """Of all `parameters` those that a token uses, where it goes through `used` of `experts`;
    None where it uses all."""
    if not experts or not used or used >= experts:
        return None
    shared_out = sum(math.prod(s) for name, s in shapes.items() if EXPERTS.search(name))
    return parameters - shared_out * (experts - used) // experts if shared_out else None


def weights(
    shapes: Mapping[str, Shape], table: str | None, head: str | None, tied: bool
) -> Weights:
    """The numbers in the tensors of these `shapes`.

    `table` and `head` name the embedding and the output matrix; when `tied` the second is a copy
    of the first and is not counted. Without a table, which must be there unless it is "", nothing
    is known.
    """
    if table != "" and table not in shapes:
        return {}
    found = Weights(linear=0, linear_rows=0, experts=0, embedding=0, head=0, other=0)
    for name, shape in shapes.items():
        numbers = math.prod(shape)
        if name == table:
            found["embedding"] += numbers
        elif name == head:
            found["head"] += 0 if tied else numbers
        elif PER_LAYER.search(name):
            found["embedding"] += numbers
        elif _is_matrix(name, shape):
            found["linear"] += numbers
            found["linear_rows"] += math.prod(shape[:-1])
            found["experts"] += numbers if EXPERTS.search(name) else 0
        else:
            found["other"] += numbers
    return found


def _is_matrix(name: str, shape: Shape) -> bool:
    """Of a linear layer; experts that are stored as one stack have no layer's name."""
    if len(shape) < 2 or TABLE.search(name):
        return False
    stacked = EXPERTS.search(name) is not None and not name.endswith("bias")
    return stacked or name.endswith(".weight")
