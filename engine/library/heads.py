"""Whether a drafting head belongs to a target, from its configuration and headers alone.

Knows the EAGLE-3 formats (SafeAILab's and speculators') as far as sizes and the map of a reduced
vocabulary go (methods.md 6). Runs nothing.
"""

import array
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.api import ModelInfo
from engine.errors import EngineError, Reason
from engine.library import files, folder, gguf
from engine.library.safetensors import TensorInfo, read_tensor

MAP = "d2t"
LARGEST_MAP = 2**24  # bytes
NESTED = ("transformer_layer_config", "eagle_config")


def fault(head: Path, target: ModelInfo) -> Reason | None:
    """Why the head in the folder or GGUF file `head` cannot draft for `target`; None: nothing
    says so.

    Names the number or the tensor at fault, case SPC-2. Of a GGUF the width alone is looked at.
    """
    try:
        if not files.is_folder(head):
            header = gguf.read_header(head, arrays={})
            return _width({}, {t.name: t.shape for t in header.tensors}, target)
        config = files.read_json(head / "config.json")
        headers = folder.read_headers(head)
        tensors = {
            name: (path, t) for path, header in headers.items() for name, t in header.items()
        }
        shapes = {name: tensor.shape for name, (_, tensor) in tensors.items()}
        return _width(config, shapes, target) or _map(config, tensors, target)
    except EngineError as error:
        return error.reason


def made_for(head: Path) -> str | None:
    """The model that a head's configuration names as its target."""
    try:
        config = files.read_json(head / "config.json")
    except EngineError:
        return None
    speculators = config.get("speculators_config")
    verifier = speculators.get("verifier") if isinstance(speculators, Mapping) else None
    stated = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    return stated if isinstance(stated, str) and stated else None


def _width(
    config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], target: ModelInfo
) -> Reason | None:
    """The states that it reads have the target's width: several, side by side, in `fc`."""
    theirs = target.hidden_size
    joined = shapes.get("fc.weight", ())
    stated = _stated(config, "target_hidden_size") or _stated(config, "hidden_size")
    if theirs is None:
        return None
    if len(joined) == 2:
        width = joined[1]
        if width % theirs == 0 and width:
            return None
        text = "Its tensor fc.weight reads {head} numbers, no multiple of the target's {target}"
        return Reason("head_fc", text, {"head": width, "target": theirs})
    if stated is not None and stated != theirs:
        text = "Another target: width {head:,}, not {target:,}"
        return Reason("head_width", text, {"head": stated, "target": theirs})
    return None


def _map(
    config: Mapping[str, Any], tensors: Mapping[str, tuple[Path, TensorInfo]], target: ModelInfo
) -> Reason | None:
    """A head with fewer tokens needs the map from its own to the target's."""
    own, vocabulary = _stated(config, "draft_vocab_size"), target.vocab_size
    if own is None or vocabulary is None or own == vocabulary:
        return None
    if MAP not in tensors:
        text = "Its {tokens:,} tokens are not the target's, and it lacks the tensor {tensor}"
        return Reason("head_no_map", text, {"tokens": own, "tensor": MAP})
    path, tensor = tensors[MAP]
    if tensor.dtype != "I64" or tensor.shape != (own,):
        text = "Its tensor {tensor} is not a map of {tokens:,} whole numbers"
        return Reason("head_bad_map", text, {"tensor": MAP, "tokens": own})
    numbers = array.array("q", read_tensor(path, tensor, LARGEST_MAP))
    if sys.byteorder == "big":
        numbers.byteswap()
    # what is stored is how far the target's id lies from its own
    outside = (own_id for own_id, far in enumerate(numbers) if not 0 <= own_id + far < vocabulary)
    wrong = next(outside, None)
    if wrong is None:
        return None
    text = "Its tensor {tensor} leads from token {token} to {id}, outside the target's {tokens:,}"
    leads = {"token": wrong, "id": wrong + numbers[wrong], "tokens": vocabulary}
    return Reason("head_map_leads_out", text, {"tensor": MAP, **leads})


def _stated(config: Mapping[str, Any], key: str) -> int | None:
    """A size, stated by the head or by the part of its configuration that describes its layer."""
    parts = [config, *(config[name] for name in NESTED if isinstance(config.get(name), Mapping))]
    found = (part.get(key) for part in parts)
    return next((v for v in found if type(v) is int and 0 < v < folder.LARGEST), None)
