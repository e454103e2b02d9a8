"""A folder or file on disk to a model that runs, with its tokenizer and its defaults.

Everything on disk is untrusted: headers are checked before a weight is read, no code of a
folder's is ever run, and nothing is fetched.
"""

import contextlib
import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from engine import quantised, stock, tokenizer_files
from engine.api import Kind, Loaded, ModelInfo, Precision, Progress, Sampling
from engine.checkpoint import FolderWeights, NetworkWeights, fits, skeleton
from engine.devices import Device, pick, release, rooms
from engine.errors import (
    EngineError,
    LoadError,
    OutOfMemory,
    Reason,
    Unsupported,
    first_line,
    heed,
)
from engine.exactness import attend, check, stamp, take_blocks
from engine.fit import USUAL_CONTEXT, Pair
from engine.gguf import config as gguf_config
from engine.gguf import weights as gguf_weights
from engine.kernels.linear import grid, half_counts
from engine.kernels.network import release as release_kernels
from engine.kernels.network import settle
from engine.kernels.packing import Weights, pack
from engine.kernels.store import Store, key_of
from engine.library import formats
from engine.library.folder import LARGEST, weight_files
from engine.library.gguf import parts, read_header
from engine.library.inspect import inspect
from engine.memory import compared
from engine.model import LanguageModel, beside_layers, layers_name
from engine.placement import place
from engine.quality import rise
from engine.tokenizer import Tokenizer
from engine.tokenizer_files import settings

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

log = logging.getLogger(__name__)

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]

DTYPES: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}

QUANTISED: frozenset[Precision] = frozenset({"int8", "int4"})

# "auto" takes int8 only where it raises the perplexity by no more than this.
WORST_RISE = 0.02

# A model that states no limit gets this many positions.
DEFAULT_CONTEXT = 32_768
# How CUDA, MPS, the CPU on Linux and on Windows, and cuBLAS say that memory ran out.
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "alloc_failed",
)


@dataclass
class LoadedModel:
    """A model ready to run."""

    model: LanguageModel
    tokenizer: Tokenizer
    loaded: Loaded

    def close(self) -> None:
        """Give its memory back, even while something still holds this object."""
        self.model.close()
        if self.tokenizer.template:
            self.tokenizer.template.close()
        release()


def load(
    path: Path,
    *,
    cache_folder: Path,
    device: str = "auto",
    precision: Precision | None = None,
    pair: Pair | None = None,
    sample: str = "",
    progress: Report = lambda progress: None,
    stopped: Stopped = lambda: False,
) -> LoadedModel:
    """The model at `path`, a folder of safetensors or a GGUF file, on `device`.

    On graphics cards its layers lie where they were judged to lie in `pair`. Where that is not
    settled, or without one, those that one card does not hold go to the others.

    Without a `precision` the fastest exact one that does not cost too much quality is chosen,
    and `notes` say which and why; what int8 costs is measured on the text `sample`, once. In
    `cache_folder` are kept: a tokenizer built from a GGUF, quantised weights, what was measured.
    Raises LoadError and its kinds, OutOfMemory, and Cancelled when `stopped` says so; nothing
    stays in memory then.
    """
    began = time.monotonic()
    info = inspect(path)
    formats.require(info.quantisation)
    if info.kind is not Kind.MODEL:
        raise Unsupported("cannot_answer", "{name} is not a model that can answer.", name=info.name)
    where = pick(device)
    opening = Opening(
        info,
        where,
        precision or fastest_exact(where),
        cache_folder,
        progress,
        stopped,
        sample,
        pair,
    )
    if precision is None and opening.rise > WORST_RISE:
        opening = replace(opening, precision="bf16")
    with failures_named(info.name):
        opened = _open(opening)
        if precision is None and opening.precision == "int8" and opening.rise > WORST_RISE:
            release_kernels(opened.network)
            opening = replace(opening, precision="bf16")
            opened = _open(opening)
        opened.network.requires_grad_(False).eval()
        model = LanguageModel(opened.network, _context(opened.network, info))
        model.stopped = stopped
        exact = _exact(opening, opened, model)
        model.stopped = lambda: False
    held = model.memory_bytes
    log.info("%s", compared(info, opened.precision, where, 0, held, 0))
    loaded = Loaded(
        info=info,
        device=where,
        precision=opened.precision,
        context=model.context,
        vocabulary=opened.tokenizer.fingerprint,
        defaults=opened.defaults,
        memory_bytes=held,
        seconds=time.monotonic() - began,
        layers_in_ram=pair.layers_in_ram if pair and where == "cuda" else 0,
        cache_precision=_cache_precision(opened),
        bit_exact=exact,
        notes=(*_notes(opening, opened, automatic=precision is None), *model.notes),
    )
    return LoadedModel(model, opened.tokenizer, loaded)


def fastest_exact(device: Device) -> Precision:
    """What "auto" means: the fastest precision whose rows do not depend on each other here."""
    if device != "cpu":
        return "bf16"
    if grid() is not None:
        return "int8"
    return "bf16" if half_counts() is not None else "fp32"


@dataclass(frozen=True)
class Opening:
    """What is to be loaded, and how."""

    info: ModelInfo
    device: Device
    precision: Precision
    cache_folder: Path
    progress: Report
    stopped: Stopped
    sample: str = ""
    pair: Pair | None = None

    @property
    def path(self) -> Path:
        return self.info.path

    @property
    def files(self) -> list[Path]:
        """Where the weights are."""
        return parts(self.path) if self.info.format == "gguf" else weight_files(self.path)

    @property
    def store(self) -> Store:
        return Store(self.cache_folder / "weights")

    def key(self, precision: Precision | None = None) -> str:
        """The name of these weights in the store."""
        return key_of(self.path, self.files, precision or self.precision)

    @property
    def rise(self) -> float:
        """What int8 is known to cost this model in perplexity; 0 where that is not known."""
        found = self.store.facts(self.key("int8")).get("rise")
        return found if isinstance(found, float) else 0.0


@dataclass
class Opened:
    """A filled network with what belongs to it. `packed`: it runs on our kernels."""

    network: "PreTrainedModel"
    tokenizer: Tokenizer
    defaults: Sampling
    precision: Precision
    packed: bool = False


def _open(opening: Opening) -> Opened:
    return _open_gguf(opening) if opening.info.format == "gguf" else _open_folder(opening)


def _exact(opening: Opening, opened: Opened, model: LanguageModel) -> bool:
    """Whether this model's rows were found independent of each other; tried once per machine."""
    if opened.packed:
        attend(model)
    elif opening.device == "cuda":
        take_blocks(model)
    store, key = opening.store, opening.key(opened.precision)
    known = store.facts(key).get("exact")
    here = stamp(model)
    if isinstance(known, list) and known[0] == here:
        return known[1] is True
    opening.progress(Progress("exactness", 0, 1, "checks"))
    found = check(model)
    store.note(key, exact=[here, found])
    opening.progress(Progress("exactness", 1, 1, "checks"))
    return found


def _cache_precision(opened: Opened) -> Precision:
    """What is computed in: float32 between our kernels, whatever the tables are kept in."""
    names: dict[torch.dtype, Precision] = {dtype: name for name, dtype in DTYPES.items()}
    return "fp32" if opened.packed else names.get(opened.network.dtype, "fp32")


def _notes(opening: Opening, opened: Opened, *, automatic: bool) -> tuple[Reason, ...]:
    notes = []
    percent = f"{100 * opening.rise:.1f}"
    if opening.device == "cpu" and not opened.packed:
        notes.append(
            Reason(
                "own_kernels",
                "{name} runs on the library's own kernels, in {precision}: ours do not fit its "
                "architecture yet.",
                {"name": opening.info.name, "precision": opened.precision},
            )
        )
    elif automatic and opened.precision == "bf16" and opening.rise > WORST_RISE:
        notes.append(
            Reason(
                "int8_costs_quality",
                "bf16 was chosen: int8 would raise the perplexity of {name} by {percent} %.",
                {"name": opening.info.name, "percent": percent},
            )
        )
    elif opened.precision == "int8" and opening.rise > WORST_RISE:
        notes.append(
            Reason(
                "int8_is_worse",
                "In int8 the perplexity of {name} is {percent} % higher.",
                {"name": opening.info.name, "percent": percent},
            )
        )
    return tuple(notes)


def _open_gguf(opening: Opening) -> Opened:
    header = read_header(opening.path)
    heed(opening.stopped)
    config = gguf_config.config_of(header)
    tokenizer = tokenizer_files.of_gguf(
        header, opening.cache_folder, opening.progress, opening.stopped
    )
    heed(opening.stopped)
    if opening.device == "cpu":
        network = skeleton(config)
        weights = gguf_weights.Reader(header, config, network, opening.stopped)
        if _pack(opening, network, weights, tokenizer):
            return Opened(network, tokenizer, Sampling(), opening.precision, packed=True)
    precision = _unpacked(opening)
    network = stock.of_gguf(
        header,
        _places(opening, config),
        DTYPES[precision],
        progress=opening.progress,
        stopped=opening.stopped,
    )
    return Opened(network, tokenizer, Sampling(), precision)


def _pack(
    opening: Opening, network: "PreTrainedModel", weights: Weights, tokenizer: Tokenizer
) -> bool:
    """Fill `network` with our kernels; whether it then runs.

    Quantised weights are kept for the next time, and what int8 costs is measured the first time.
    """
    total = sum(p.numel() for p in network.parameters())
    done = 0

    def tell(numel: int) -> None:
        nonlocal done
        heed(opening.stopped)
        done = min(done + numel, total)
        opening.progress(Progress("weights", done, total, "parameters"))

    store, key = opening.store, opening.key()
    keep = store if opening.precision in QUANTISED else None
    items, _ = pack(network, weights, opening.precision, store=keep, key=key, done=tell)
    network.requires_grad_(False).eval()
    settle(network)
    if not _runs(network):
        return False
    ids = tokenizer.encode(opening.sample) if opening.sample else []
    if opening.precision == "int8" and len(ids) > 1 and "rise" not in store.facts(key):
        opening.progress(Progress("quality", 0, 1, "checks"))
        found = rise(network, items, weights, ids, lambda: heed(opening.stopped))
        store.note(key, rise=found)
        opening.progress(Progress("quality", 1, 1, "checks"))
    return True


def _runs(network: "PreTrainedModel") -> bool:
    """Whether the network accepts what was put into it; exotic ones reach for its parts."""
    try:
        with torch.inference_mode():
            found = network(input_ids=torch.tensor([[1, 2, 3]]), use_cache=False).logits
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        if out_of_memory(error):
            raise
        return False
    return bool(torch.isfinite(found).all())


def _unpacked(opening: Opening) -> Precision:
    """The precision without our kernels. Raises Unsupported where there is none."""
    if opening.precision not in QUANTISED:
        return opening.precision
    if opening.device == "cpu":
        return "bf16"
    raise Unsupported(
        "quantised_gguf_device",
        "A GGUF file cannot be loaded in {precision} on {device} yet. Choose bf16, or the "
        "model's own folder.",
        precision=opening.precision,
        device=opening.device,
    )


def _open_folder(opening: Opening) -> Opened:
    path = opening.path
    generation = settings(path / "generation_config.json")
    config = settings(path / "config.json")
    heed(opening.stopped)
    tokenizer = tokenizer_files.of_folder(path, generation, config)
    heed(opening.stopped)
    defaults = _defaults(generation)
    if opening.device == "cpu":
        network = _packed_folder(opening, tokenizer)
        if network is not None:
            return Opened(network, tokenizer, defaults, opening.precision, packed=True)
    if opening.precision in QUANTISED and opening.device != "cpu":
        network = _folder_network(opening, torch.bfloat16)
        return Opened(network, tokenizer, defaults, opening.precision)
    precision = _unpacked(opening)
    network = _folder_network(opening, DTYPES[precision])
    return Opened(network, tokenizer, defaults, precision)


def _packed_folder(opening: Opening, tokenizer: Tokenizer) -> "PreTrainedModel | None":
    """The network with our kernels, read tensor by tensor where names and shapes allow it."""
    with stock.refusals(opening.path):
        network = skeleton(stock.own_config(opening.path))
        stored = FolderWeights(opening.files)
        direct = not opening.info.quantisation and fits(network, stored.shapes())
    if direct:
        return network if _pack(opening, network, stored, tokenizer) else None
    whole = torch.float32 if opening.precision == "fp32" else torch.bfloat16
    network = _folder_network(opening, whole)
    weights = NetworkWeights(network)
    return network if _pack(opening, network, weights, tokenizer) else None


def _folder_network(opening: Opening, dtype: torch.dtype) -> "PreTrainedModel":
    with stock.refusals(opening.path):
        config = stock.own_config(opening.path)
    return stock.of_folder(
        opening.path,
        _places(opening, config),
        dtype,
        _quantisation(opening),
        progress=opening.progress,
        stopped=opening.stopped,
    )


def _places(opening: Opening, config: "PreTrainedConfig") -> stock.Places:
    """The device, or what each module of the network lies on."""
    if opening.device != "cuda":
        return opening.device
    pair = opening.pair or Pair(opening.info, opening.precision, USUAL_CONTEXT)
    pair = replace(pair, target=opening.info, precision=opening.precision)
    placement = place(pair, rooms("cuda"))
    if placement.whole:
        return opening.device
    network = skeleton(config)
    return placement.device_map(beside_layers(network), layers_name(network))


def _quantisation(opening: Opening) -> dict[str, Any]:
    """What transformers is told of quantised weights: the folder's, or such as it is to make."""
    method, precision, device = opening.info.quantisation, opening.precision, opening.device
    found = None
    if method:
        config = settings(opening.path / "config.json")
        stored = config.get("quantization_config") or config["text_config"]["quantization_config"]
        with stock.refusals(opening.path):
            found = quantised.as_stored(method, stored, precision, device)
    elif precision in QUANTISED and device != "cpu":
        found = quantised.made_at_load(precision, device)
    return {} if found is None else {"quantization_config": found}


def _defaults(generation: Mapping[str, Any]) -> Sampling:
    """The folder's sampling settings; values of the wrong kind count as absent."""

    def number(key: str, least: float, most: float) -> float | None:
        value = generation.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if least <= value <= most else None

    top_k = number("top_k", 0, 1e6)
    greedy = generation.get("do_sample") is False
    return Sampling(
        temperature=0.0 if greedy else number("temperature", 0, 100),
        top_k=None if top_k is None else int(top_k),
        top_p=number("top_p", 1e-6, 1),
        min_p=number("min_p", 0, 1),
        repetition_penalty=number("repetition_penalty", 0.1, 10),
    )


def _context(network: "PreTrainedModel", info: ModelInfo) -> int:
    config = network.config.get_text_config(decoder=True)
    limit = info.context or getattr(config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and 0 < limit < LARGEST else DEFAULT_CONTEXT


@contextlib.contextmanager
def failures_named(name: str) -> Iterator[None]:
    """What torch and the system raise while the model `name` is loaded becomes ours."""
    try:
        yield
        return
    except Exception as error:
        if isinstance(error, EngineError):
            raise
        if not out_of_memory(error):
            raise LoadError(
                "load_failed",
                "{name} could not be loaded: {error}",
                name=name,
                error=first_line(error),
            ) from error
        traceback.clear_frames(error.__traceback__)
    # outside the handler, so that the old error, whose frames hold the tensors, is gone
    release()
    raise OutOfMemory("no_memory_loading", "There is not enough memory to load {name}.", name=name)


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that memory ran out; most of torch's allocators have no type for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(sign in text for sign in OUT_OF_MEMORY)
