"""A model folder in Hugging Face's layout: which files it needs, and what they say of the model.

Knows config.json, the index of shards, the places of a chat template. Reads no weights and runs
nothing out of the folder: pickles and custom code are refused before anything else is looked at.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from engine import families
from engine.api import Kind, ModelInfo
from engine.errors import Incomplete, LoadError, Unsafe, Unsupported
from engine.library import caches, files, formats, safetensors, sizes

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
UNFINISHED = (".incomplete", ".partial")
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, ADAPTER = "config.json", "adapter_config.json"
README_LIMIT = 2**16  # bytes; the front matter stands first
LARGEST = 2**31
ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
HEADS = ("lm_head.weight", "output.weight", "embed_out.weight")
LICENCE_LINE = re.compile(r"""(license|license_name):[ \t]*["']?([^\s"']+)""")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
USED = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_k")
MASK = "pard_token"
EMBEDDING = re.compile(r"(embed_tokens|wte|embed_in|embeddings?|word_embeddings)\.weight$")

Tensors = Mapping[str, safetensors.TensorInfo]


def describe(folder: Path, name: str) -> ModelInfo:
    """What `folder` holds. Raises Unsafe, Incomplete or Unsupported, in that order of search."""
    refuse_code(folder)
    if files.present(folder / ADAPTER) and not _has_weights(folder):
        return ModelInfo(name, folder, "safetensors", "adapter", Kind.ADAPTER)
    _refuse_pickles(folder)
    _refuse_unfinished(folder, name)
    config = files.read_json(folder / "config.json")
    text, config = config.get("text_config"), families.text_config(config)
    model_type, kind = family(config)
    quantisation = formats.method_of(config)
    headers = read_headers(folder)
    layers = _number(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    shapes = _shapes(headers, config)
    text_shapes = sizes.of_text(shapes, layers)
    parameters = _parameters(text_shapes, config) if shapes else None
    return ModelInfo(
        name,
        folder,
        "safetensors",
        model_type,
        kind,
        parameters=parameters,
        active=sizes.active(
            text_shapes, parameters or 0, _number(config, *EXPERTS), _number(config, *USED)
        ),
        apart=sum(map(math.prod, shapes.values())) - sum(map(math.prod, text_shapes.values())),
        layers=layers,
        hidden_size=_number(config, "hidden_size", "n_embd", "d_model"),
        intermediate_size=_number(config, "intermediate_size", "n_inner", "ffn_dim"),
        context=_number(config, "max_position_embeddings", "n_positions", "max_seq_len"),
        vocab_size=_number(config, "vocab_size"),
        recurrent=_recurrent(model_type, config, text),
        file_bytes=sum(path.stat().st_size for path in headers),
        quantisation=quantisation,
        licence=_licence(folder),
        has_template=template(folder) is not None,
        mask=_mask(config),
        **_weights(
            sizes.held(shapes, layers) if model_type in families.WHOLE else text_shapes,
            config,
            kind,
        ),
        **caches.of_config(config, model_type),
    )


def refuse_code(folder: Path) -> None:
    """Raises Unsafe when a configuration names code of its own, or files to load instead."""
    for file in (CONFIG, "tokenizer_config.json"):
        if not files.present(folder / file):
            continue
        refuse_config(file, files.read_json(folder / file))


def refuse_config(file: str, config: Mapping[str, Any]) -> None:
    """Raises Unsafe when the configuration in `file` names code, or files to load instead.

    A head's code is let be: nobody here would run it, the networks of heads being our own.
    """
    named = str(config.get("model_type") or "")
    head = file == CONFIG and families.kind_of(named, config) is Kind.HEAD
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        _refuse_part(file, part, head=head)


def _refuse_part(file: str, config: Mapping[str, Any], *, head: bool) -> None:
    if config.get("auto_map") and not head:
        raise Unsafe(
            "custom_code",
            "{file} asks for custom code to be run: {code}. "
            "Models that bring their own code are not loaded.",
            file=file,
            code=", ".join(_code(config["auto_map"])),
        )
    for key, value in config.items():
        # transformers would open that file instead, a pickle even; or fetch compiled code
        if key == "transformers_weights" or (key in ATTENTION and "/" in str(value)):
            raise Unsafe(
                "redirect",
                "{file} points elsewhere for weights or compiled code ({key}: {value}). "
                "Only what stands in the folder under its usual name is loaded.",
                file=file,
                key=key,
                value=str(value)[:100],
            )


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the model, as its index names them or the single one.

    Raises Incomplete when there is none or the index is no index, Unsafe when the index leads
    out of the folder or to a pickle. The files themselves may still be missing.
    """
    return [folder / file for file in sorted(_shards(folder))]


def read_headers(folder: Path) -> dict[Path, Tensors]:
    """The tensors of each weight file.

    Raises what `weight_files` raises, and Incomplete when a file is missing, empty, cut off or
    damaged, or lacks a tensor that the index promises.
    """
    headers: dict[Path, Tensors] = {}
    for file, promised in sorted(_shards(folder).items()):
        header = safetensors.read_header(folder / file)
        for name in promised:
            if name not in header:
                raise Incomplete(
                    "tensor_missing", "{file} lacks the tensor {tensor}.", file=file, tensor=name
                )
        headers[folder / file] = header
    return headers


def template(folder: Path) -> str | None:
    """The chat template: chat_template.jinja, else chat_template.json, else tokenizer_config.json.

    The order is transformers' own. Of several named templates it is the one named "default".
    Raises Incomplete when the file that comes first cannot be read.
    """
    if files.present(folder / "chat_template.jinja"):
        return files.read_text(folder / "chat_template.jinja")
    for file in ("chat_template.json", "tokenizer_config.json"):
        if files.present(folder / file):
            found = _named_default(files.read_json(folder / file).get("chat_template"))
            if found is not None:
                return found
    return None


def family(config: Mapping[str, Any]) -> tuple[str, Kind]:
    """Model type and kind. Raises Unsupported for what cannot be run here."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        if families.kind_of("", config) is Kind.HEAD:
            return next(iter(families.names(config.get("architectures"))), ""), Kind.HEAD
        raise Unsupported("no_model_type", "config.json does not say what kind of model it is.")
    kind = families.kind_of(model_type, config)
    if kind is Kind.MODEL and not families.is_causal(config):
        raise not_causal(", ".join(families.names(config.get("architectures"))) or model_type)
    return model_type, kind


def not_causal(architecture: str) -> Unsupported:
    """The model exists for something other than continuing text."""
    return Unsupported(
        "not_causal", "{architecture} does not continue text.", architecture=architecture
    )


def _has_weights(folder: Path) -> bool:
    return files.present(folder / SINGLE) or files.present(folder / INDEX)


def _refuse_pickles(folder: Path) -> None:
    """Raises Unsafe when the weights are there as pickles only."""
    every = files.listed(folder)
    if any(path.suffix == ".safetensors" for path in every) or _has_weights(folder):
        return
    for path in every:
        if path.suffix.lower() in PICKLES:
            raise pickle(path.name)


def pickle(file: str) -> Unsafe:
    """The weights would have to be unpickled."""
    return Unsafe(
        "pickle",
        "{file} is a pickle, which can run code: only safetensors are loaded.",
        file=file,
    )


def _refuse_unfinished(folder: Path, name: str) -> None:
    """Raises Incomplete for an unfinished download and for a link that leads nowhere."""
    begun = any(leftovers(folder))
    for path in files.listed(folder):
        needed = path.suffix in (".json", ".jinja", ".safetensors")
        if needed and files.present(path) and not files.exists(path):
            raise unfinished(path.name) if begun else files.missing(path.name)
        if path.suffix in UNFINISHED:
            raise unfinished(path.stem)
    if begun and not _has_weights(folder):
        # these are named by a hash, which says nothing to anybody
        raise unfinished(name)


def unfinished(file: str) -> Incomplete:
    """A download that stopped before its end."""
    return Incomplete("download_unfinished", "The download of {file} has not finished.", file=file)


def leftovers(folder: Path) -> Iterator[Path]:
    """Where the hub's library keeps what it has not finished: of a local folder, of its cache,
    where an entry has no snapshot before the first file has come."""
    entry = folder.parent.parent if folder.parent.name == "snapshots" else folder
    for place in (folder / ".cache" / "huggingface" / "download", entry / "blobs"):
        if files.is_folder(place):
            yield from place.glob("*.incomplete")


def _shards(folder: Path) -> dict[str, list[str]]:
    """File -> the tensors that the index promises in it; nothing is promised of a single file."""
    if files.present(folder / SINGLE):
        return {SINGLE: []}
    if not files.present(folder / INDEX):
        sharded = any(re.search(r"-of-\d+\.safetensors$", p.name) for p in files.listed(folder))
        raise files.missing(INDEX if sharded else SINGLE)
    promised = files.read_json(folder / INDEX, safetensors.HEADER_LIMIT).get("weight_map")
    if not isinstance(promised, dict) or not promised:
        raise files.damaged(INDEX)
    shards: dict[str, list[str]] = {}
    for name, shard in promised.items():
        shards.setdefault(str(shard), []).append(name)
    for shard in shards:
        _check_shard(shard)
    return shards


def _check_shard(shard: str) -> None:
    # A name written for one system can lead out of the folder on the other.
    parts = {*PurePosixPath(shard).parts, *PureWindowsPath(shard).parts}
    if len(parts) != 1 or parts & {"..", "."} or not shard.isprintable():
        raise Unsafe(
            "index_leads_out",
            "{file} names {shard}, which is not a file of this folder.",
            file=INDEX,
            shard=shard,
        )
    if not shard.endswith(".safetensors"):
        raise pickle(shard)


def _shapes(headers: Mapping[Path, Tensors], config: Mapping[str, Any]) -> formats.Shapes:
    """The shapes of all weights, unpacked; none where that is not known."""
    tensors = {name: tensor for header in headers.values() for name, tensor in header.items()}
    return formats.shapes(tensors, config) or {}


def _parameters(shapes: formats.Shapes, config: Mapping[str, Any]) -> int:
    """Numbers in all tensors; a head that is a copy of the embedding counts once."""
    total = sum(map(math.prod, shapes.values()))
    if config.get("tie_word_embeddings") is not True:
        return total
    tables = {shape for name, shape in shapes.items() if EMBEDDING.search(name)}
    heads = (shapes[name] for name in HEADS if name in shapes)
    return total - sum(math.prod(head) for head in heads if head in tables)


def _weights(shapes: formats.Shapes, config: Mapping[str, Any], kind: Kind) -> sizes.Weights:
    """Numbers by kind of tensor. An output matrix that the file lacks is the embedding; a drafting
    head that has no embedding takes its target's."""
    tables = [name for name in shapes if EMBEDDING.search(name) and len(shapes[name]) == 2]
    none = "" if kind is Kind.HEAD else None
    table = max(tables, key=lambda name: shapes[name][0], default=none)
    head = next((name for name in HEADS if name in shapes), None)
    return sizes.weights(shapes, table, head, config.get("tie_word_embeddings") is True)


def _recurrent(model_type: str, config: Mapping[str, Any], text: Any) -> bool:
    if families.is_recurrent(model_type, config):
        return True
    return isinstance(text, dict) and families.is_recurrent(str(text.get("model_type", "")), text)


def _number(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that holds a positive whole number of a size that a model may have."""
    values = (config.get(key) for key in keys)
    return next((value for value in values if type(value) is int and 0 < value < LARGEST), None)


def _mask(config: Mapping[str, Any]) -> int | str | None:
    """PARD's mask, as it stands there."""
    value = config.get(MASK)
    return value if value is None or type(value) is int else str(value)[:20]


def _licence(folder: Path) -> str | None:
    """The licence that the front matter of README.md states; what cannot be read states none."""
    try:
        text = files.read_start(folder / "README.md", README_LIMIT).decode("utf-8", "replace")
    except LoadError:
        return None
    first, *lines = text.splitlines() or [""]
    front = itertools.takewhile(lambda line: line.rstrip() != "---", lines)
    found = (LICENCE_LINE.match(line) for line in front) if first.rstrip() == "---" else ()
    stated = {match[1]: match[2] for match in found if match}
    licence = stated.get("license")
    return stated.get("license_name", licence) if licence == "other" else licence


def _named_default(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and entry.get("name") == "default":
            text = entry.get("template")
            return text if isinstance(text, str) else None
    return None


def _code(auto_map: Any) -> list[str]:
    """Every class that an auto_map names; tokenizers name two in a list, or one and null."""
    values = auto_map.values() if isinstance(auto_map, dict) else [auto_map]
    flat = (item for value in values for item in (value if isinstance(value, list) else [value]))
    return [item for item in flat if isinstance(item, str)] or ["auto_map"]
