"""What a GGUF header says of its model.

Knows llama.cpp's metadata keys. Does not read the container (`gguf` does), vocabularies or
weights.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import families
from engine.api import Kind, ModelInfo
from engine.errors import Incomplete
from engine.library import caches, folder, sizes
from engine.library.gguf import Header, TensorInfo, read_header

SIZE_LABEL = re.compile(r"(\d+(?:\.\d+)?)([KMBT])")
SCALES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
NAME_LENGTH = 200  # a name is shown; the pattern below takes the square of its length
PACKAGING = re.compile(r"([\s_-]+(GGUF|AWQ|GPTQ))+$", re.IGNORECASE)


def describe(path: Path, name: str) -> ModelInfo:
    """What the file at `path` holds, `name` where it does not say its own.

    Raises what `gguf.read_header` raises, Incomplete for a file without architecture, and
    Unsupported for what does not continue text.
    """
    header = read_header(path, arrays={})
    metadata = header.metadata
    architecture = _text(metadata, "general.architecture")
    if not architecture:
        raise Incomplete(
            "gguf_no_architecture", "{file} does not say what kind of model it is.", file=path.name
        )
    kind = _kind(metadata, architecture)
    if kind is Kind.MODEL and not families.is_causal_gguf(architecture):
        raise folder.not_causal(architecture)
    tensors = {tensor.name: tensor for tensor in header.tensors}
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    parameters = _parameters(tensors, _text(metadata, "general.size_label"))
    return ModelInfo(
        PACKAGING.sub("", (_text(metadata, "general.name") or "")[:NAME_LENGTH]) or name,
        path,
        "gguf",
        architecture,
        kind,
        parameters=parameters,
        active=sizes.active(
            shapes,
            parameters,
            _number(metadata, f"{architecture}.expert_count"),
            _number(metadata, f"{architecture}.expert_used_count"),
        ),
        layers=_number(metadata, f"{architecture}.block_count"),
        hidden_size=_number(metadata, f"{architecture}.embedding_length"),
        intermediate_size=_number(metadata, f"{architecture}.feed_forward_length"),
        context=_number(metadata, f"{architecture}.context_length"),
        vocab_size=_vocab_size(metadata, architecture, tensors),
        recurrent=families.is_recurrent_gguf(architecture, metadata),
        file_bytes=sum(file.stat().st_size for file in header.files),
        quantisation=_quantisation(header),
        licence=_text(metadata, "general.license"),
        has_template=bool(template(header)),
        # A file with an output matrix is loaded with two, be they copies of each other.
        **sizes.weights(shapes, "token_embd.weight", "output.weight", tied=False),
        **caches.of_gguf(metadata, architecture),
    )


def template(header: Header) -> str | None:
    """The chat template that the file carries."""
    return _text(header.metadata, "tokenizer.chat_template")


def _kind(metadata: Mapping[str, Any], architecture: str) -> Kind:
    if metadata.get("general.type") == "adapter":
        return Kind.ADAPTER
    if metadata.get("general.type") not in (None, "model"):
        raise folder.not_causal(str(metadata["general.type"]))
    return families.kind_of(architecture, {})


def _parameters(tensors: Mapping[str, TensorInfo], label: str | None) -> int:
    """Numbers in all tensors; an output matrix that is a copy of the embedding counts once.

    The format does not say whether it is a copy: converters write it out in other blocks. The
    size that the file was labelled with decides; without a label it counts as a copy.
    """
    total = sum(_numel(tensor) for tensor in tensors.values())
    output, embedding = tensors.get("output.weight"), tensors.get("token_embd.weight")
    if output is None or embedding is None or output.shape != embedding.shape:
        return total
    once = total - _numel(output)
    match = SIZE_LABEL.fullmatch(label or "")
    if match is None:
        return once
    labelled = float(match[1]) * SCALES[match[2]]
    return min(once, total, key=lambda count: abs(count - labelled))


def _numel(tensor: TensorInfo) -> int:
    return math.prod(tensor.shape)


def _vocab_size(
    metadata: Mapping[str, Any], architecture: str, tensors: Mapping[str, TensorInfo]
) -> int | None:
    """Rows of the embedding, padding included; what the metadata says where there is none."""
    embedding = tensors.get("token_embd.weight")
    if embedding is not None and embedding.shape:
        return embedding.shape[0]
    return _number(metadata, f"{architecture}.vocab_size")


def _quantisation(header: Header) -> str | None:
    """The file's own type such as Q4_K_M, else the block type that most bytes have."""
    from gguf.constants import GGMLQuantizationType, LlamaFileType

    try:
        name = LlamaFileType(header.metadata["general.file_type"]).name
        return name.removeprefix("MOSTLY_").removeprefix("ALL_")
    except (KeyError, ValueError):
        sizes: Counter[int] = Counter()
        for tensor in header.tensors:
            sizes[tensor.ggml_type] += tensor.nbytes
        return GGMLQuantizationType(max(sizes, key=sizes.__getitem__)).name if sizes else None


def _text(metadata: Mapping[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) and value else None


def _number(metadata: Mapping[str, Any], key: str) -> int | None:
    value = metadata.get(key)
    return value if type(value) is int and 0 < value < folder.LARGEST else None
