"""Whether a drafting head belongs to a target, from its configuration and headers alone.

Knows which kinds of heads can be used. What one kind needs is in a file of its own. Runs nothing.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine import families, guidance
from engine.api import ModelInfo
from engine.commands import Method
from engine.errors import DraftRefused, EngineError, Reason
from engine.library import assistant, dflash, eagle3, files, folder, gguf
from engine.library.assistant import Assistant
from engine.library.dflash import DFlash
from engine.library.eagle3 import Eagle3
from engine.library.head_config import Tensors
from engine.library.inspect import resolve

Read = Callable[[Mapping[str, Any], Tensors, ModelInfo], Eagle3 | DFlash | Assistant]
NESTED = ("transformer_layer_config", "eagle_config")
# What each published format is called, and those of which heads are read.
FORMS: Mapping[str, str] = {
    "eagle3": "EAGLE-3",
    "p-eagle": "P-EAGLE",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "mtp": "MTP",
    "assistant": "Gemma 4 assistant",
}
READERS: Mapping[str, Read] = {
    "eagle3": eagle3.read,
    "p-eagle": eagle3.read_parallel,
    "dflash": dflash.read,
    "assistant": assistant.read,
}
STATED: Mapping[str, Method] = {
    "eagle3": "eagle3",
    "peagle": "p-eagle",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
}
# Those whose guesses are all made in one pass.
AT_ONCE: frozenset[Method | None] = frozenset({"p-eagle", "dflash"})
# Only in heads whose guesses are made side by side: they stand for what the target has not said.
MASKED = "mask_hidden"


def fault(head: Path, target: ModelInfo) -> Reason | None:
    """Why the head in the folder or GGUF file `head` cannot draft for `target`; None: nothing
    says so.

    Names the number or the tensor at fault, case SPC-2. Of a GGUF the width alone is looked at.
    """
    try:
        if not files.is_folder(head):
            header = gguf.read_header(head, arrays={})
            return _width({}, {t.name: t.shape for t in header.tensors}, target)
        config, tensors = _opened(head)
        found = _width(config, {name: t.shape for name, (_, t) in tensors.items()}, target)
        reader = _reader(config, tensors)
        if found is None and reader is not None:
            reader(config, tensors, target)
        return found
    except EngineError as error:
        return error.reason


def is_known(head: Path) -> bool:
    """Whether the head is of a kind that can be used at all."""
    return files.is_folder(head) and kind_of(head) in READERS


def kind_of(head: Path) -> Method | None:
    """How the head in a folder or GGUF file drafts, by what it says of itself; None: not known."""
    head = resolve(head)
    try:
        if not files.is_folder(head):
            stated = gguf.read_header(head, arrays={}).metadata.get("general.architecture")
            return _named(str(stated))
        config, tensors = _opened(head)
    except EngineError:
        return None
    return _kind(config, tensors)


def refusal(head: Path, target: str | None) -> Reason:
    """That heads of its format cannot be used; `target` names the model that it was made for."""
    kind = kind_of(head)
    form = None if kind is None else FORMS.get(kind)
    if form is not None and not files.is_folder(resolve(head)):
        form = f"{form} (GGUF)"
    return guidance.head_refusal(target, form)


def _kind(config: Mapping[str, Any], tensors: Tensors) -> Method | None:
    stated = config.get("speculators_model_type")
    if stated is not None:
        return STATED.get(str(stated))
    if dflash.is_dflash(config):
        return "dflash"
    if "pard_token" in config or any(name.endswith(MASKED) for name in tensors):
        return "p-eagle"
    if eagle3.is_eagle3(config, frozenset(tensors)):
        return "eagle3"
    classes = families.names(config.get("architectures"))
    return _named(" ".join((str(config.get("model_type")), *classes)))


def _named(text: str) -> Method | None:
    """By a name that only one kind bears, of an architecture or a class."""
    plain = text.lower().replace("_", "").replace("-", "")
    named = {**STATED, **ASSISTANTS}.items()
    return next((kind for word, kind in named if word in plain), None)


ASSISTANTS: Mapping[str, Method] = {
    "gemma4assistant": "assistant",
    "gemma4unifiedassistant": "assistant",
}


def _reader(config: Mapping[str, Any], tensors: Tensors) -> Read | None:
    """Who reads heads of this kind; None where nobody does."""
    kind = _kind(config, tensors)
    return None if kind is None else READERS.get(kind)


def read(head: Path, target: ModelInfo) -> Eagle3 | DFlash | Assistant:
    """The head at `head`, for `target`. Raises DraftRefused where it does not belong to it, and
    Unsafe, Incomplete."""
    head = resolve(head)
    reason = fault(head, target)
    if reason is not None:
        raise DraftRefused(reason.code, reason.template, **reason.values)
    config, tensors = _opened(head)
    reader = _reader(config, tensors)
    if reader is None:
        reason = refusal(head, made_for(head))
        raise DraftRefused(reason.code, reason.template, **reason.values)
    return reader(config, tensors, target)


def _opened(head: Path) -> tuple[dict[str, Any], Tensors]:
    """The configuration of the head in a folder, and where its tensors lie."""
    if not files.is_folder(head):
        return {}, {}
    config = files.read_json(head / "config.json")
    headers = folder.read_headers(head)
    return config, {
        name: (path, tensor) for path, header in headers.items() for name, tensor in header.items()
    }


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


def _stated(config: Mapping[str, Any], key: str) -> int | None:
    """A size, stated by the head or by the part of its configuration that describes its layer."""
    parts = [config, *(config[name] for name in NESTED if isinstance(config.get(name), Mapping))]
    found = (part.get(key) for part in parts)
    return next((v for v in found if type(v) is int and 0 < v < folder.LARGEST), None)
