"""A folder or file on disk to a model that runs, with its tokenizer and its defaults.

Everything on disk is untrusted: headers are checked before a weight is read, no code of a
folder's is ever run, and nothing is fetched.
"""

import contextlib
import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
import torch

from engine import quantised
from engine.api import Kind, Loaded, ModelInfo, Precision, Progress, Sampling
from engine.checkpoint import FolderWeights, NetworkWeights, fits, skeleton
from engine.child import Child
from engine.devices import Device, pick, release
from engine.errors import (
    Cancelled,
    EngineError,
    Incomplete,
    LoadError,
    OutOfMemory,
    Reason,
    Unsupported,
)
from engine.exactness import attend, check, stamp, take_blocks
from engine.gguf import config as gguf_config
from engine.gguf import tokenizer as gguf_tokenizer
from engine.gguf import weights as gguf_weights
from engine.kernels.linear import grid, half_counts
from engine.kernels.network import release as release_kernels
from engine.kernels.network import settle
from engine.kernels.packing import Weights, pack
from engine.kernels.store import Store, key_of
from engine.library.folder import LARGEST, weight_files
from engine.library.gguf import Header, read_header
from engine.library.inspect import inspect, template_text
from engine.model import LanguageModel
from engine.quality import rise
from engine.template import Template
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

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
# JSON beside the weights: generation and tokenizer settings are a few kB.
SETTINGS_BYTES = 10 << 20
# How CUDA, MPS, the CPU on Linux and on Windows, and cuBLAS say that memory ran out.
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "alloc_failed",
)
# Part of a cached tokenizer's name; raise it when the conversion changes.
TOKENIZER_CACHE = 1


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
    sample: str = "",
    progress: Report = lambda progress: None,
    stopped: Stopped = lambda: False,
) -> LoadedModel:
    """The model at `path`, a folder of safetensors or a GGUF file, on `device`.

    Without a `precision` the fastest exact one that does not cost too much quality is chosen,
    and `notes` say which and why; what int8 costs is measured on the text `sample`, once. In
    `cache_folder` are kept: a tokenizer built from a GGUF, quantised weights, what was measured.
    Raises LoadError and its kinds, OutOfMemory, and Cancelled when `stopped` says so; nothing
    stays in memory then.
    """
    began = time.monotonic()
    info = inspect(path)
    if info.kind is not Kind.MODEL:
        raise Unsupported("cannot_answer", "{name} is not a model that can answer.", name=info.name)
    where = pick(device)
    opening = Opening(
        info, where, precision or fastest_exact(where), cache_folder, progress, stopped, sample
    )
    if precision is None and opening.rise > WORST_RISE:
        opening = replace(opening, precision="bf16")
    with _memory_named(info.name):
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
    loaded = Loaded(
        info=info,
        device=where,
        precision=opened.precision,
        context=model.context,
        vocabulary=opened.tokenizer.fingerprint,
        defaults=opened.defaults,
        memory_bytes=model.memory_bytes,
        seconds=time.monotonic() - began,
        cache_precision=_cache_precision(model),
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

    @property
    def path(self) -> Path:
        return self.info.path

    @property
    def files(self) -> list[Path]:
        """Where the weights are."""
        return [self.path] if self.info.format == "gguf" else weight_files(self.path)

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


def _cache_precision(model: LanguageModel) -> Precision:
    if model.attends:
        return "fp32"
    names: dict[torch.dtype, Precision] = {dtype: name for name, dtype in DTYPES.items()}
    return names.get(model.network.dtype, "fp32")


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
    _heed(opening.stopped)
    config = gguf_config.config_of(header)
    tokenizer = _gguf_tokenizer(header, opening.cache_folder, opening.progress, opening.stopped)
    _heed(opening.stopped)
    if opening.device == "cpu":
        network = skeleton(config)
        weights = gguf_weights.Reader(header, config, network, opening.stopped)
        if _pack(opening, network, weights, tokenizer):
            return Opened(network, tokenizer, Sampling(), opening.precision, packed=True)
        config = gguf_config.config_of(header)
    precision = _unpacked(opening)
    network = gguf_weights.empty_model(config, DTYPES[precision], torch.device(opening.device))
    parameters = dict(network.named_parameters())
    done, total = 0, sum(p.numel() for p in parameters.values())
    with torch.no_grad():
        for name, tensor in gguf_weights.tensors(header, config, network, opening.stopped):
            parameters[name].copy_(tensor)
            done += tensor.numel()
            opening.progress(Progress("weights", done, total, "parameters"))
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
        _heed(opening.stopped)
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
        found = rise(network, items, weights, ids, lambda: _heed(opening.stopped))
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


def _heed(stopped: Stopped) -> None:
    """Raises Cancelled when `stopped` says so: between steps that ask nothing themselves."""
    if stopped():
        raise Cancelled()


def _gguf_tokenizer(header: Header, cache: Path, progress: Report, stopped: Stopped) -> Tokenizer:
    key = _tokenizer_key(header)
    kept = cache / "tokenizers" / f"{key}.json"
    backend = None
    if kept.is_file():
        with contextlib.suppress(Exception):  # a damaged copy is made again
            backend = _read_tokenizer(kept)
    if backend is None:
        progress(Progress("tokenizer", 0, 1, "files"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        _build_tokenizer(header.path, kept, stopped)
        backend = _read_tokenizer(kept)
    template = gguf_tokenizer.template_of(header)
    return Tokenizer(
        backend,
        eos_ids=frozenset(gguf_tokenizer.eos_ids_of(header)),
        template=Template(template) if template else None,
        special_tokens=gguf_tokenizer.special_tokens_of(header),
        fingerprint=key,
        add_bos=bool(header.metadata.get("tokenizer.ggml.add_bos_token", False)),
    )


def _read_tokenizer(file: Path) -> tokenizers.Tokenizer:
    """A tokenizer.json; many have been saved with a limit and padding meant for training."""
    backend = tokenizers.Tokenizer.from_file(str(file))
    backend.no_truncation()
    backend.no_padding()
    return backend


def _build_tokenizer(gguf_file: Path, kept: Path, stopped: Stopped) -> None:
    """Build the tokenizer of a GGUF file into `kept`: seconds of one call that asks nothing.

    So it runs in a child process, which a stop kills and which leaves the window its time.
    """
    beside = kept.with_suffix(f".{os.getpid()}.partial")
    child = Child(gguf_tokenizer.build_into, gguf_file, beside)
    try:
        failure = None
        while True:
            _heed(stopped)
            with contextlib.suppress(TimeoutError):
                failure = child.receive(0.1)
                break
        if failure is not None:
            kind, reason = failure
            raise kind(reason.code, reason.template, **reason.values)
        beside.replace(kept)
    except EOFError as error:
        raise LoadError(
            "tokenizer_crashed", "The tokenizer of {name} could not be built.", name=gguf_file.name
        ) from error
    finally:
        child.close()
        beside.unlink(missing_ok=True)


def _tokenizer_key(header: Header) -> str:
    digest = hashlib.sha256(f"{TOKENIZER_CACHE} {tokenizers.__version__}".encode())
    for key, value in sorted(header.metadata.items()):
        if key.startswith("tokenizer.ggml") or key == "general.architecture":
            digest.update(f"{key}={value!r}\n".encode())
    return digest.hexdigest()[:32]


def _open_folder(opening: Opening) -> Opened:
    path = opening.path
    generation = _settings(path / "generation_config.json")
    config = _settings(path / "config.json")
    _heed(opening.stopped)
    tokenizer = _folder_tokenizer(path, generation, config)
    _heed(opening.stopped)
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
    with _library_refusals(opening.path):
        network = skeleton(_own_config(opening.path))
        stored = FolderWeights(opening.files)
        direct = not opening.info.quantisation and fits(network, stored.shapes())
    if direct:
        return network if _pack(opening, network, stored, tokenizer) else None
    whole = torch.float32 if opening.precision == "fp32" else torch.bfloat16
    network = _folder_network(opening, whole)
    weights = NetworkWeights(network)
    return network if _pack(opening, network, weights, tokenizer) else None


def _own_config(path: Path) -> "PreTrainedConfig":
    from transformers import AutoConfig

    config: PreTrainedConfig = AutoConfig.from_pretrained(
        path, local_files_only=True, trust_remote_code=False
    )
    return config


@contextlib.contextmanager
def _library_refusals(path: Path) -> Iterator[None]:
    """What transformers raises about a folder becomes ours."""
    try:
        yield
    except (ValueError, KeyError, ImportError, AttributeError, TypeError, OSError) as error:
        raise Unsupported(
            "cannot_load",
            "{name} could not be loaded: {error}",
            name=path.name,
            error=_first_line(error),
        ) from error


def _folder_network(opening: Opening, dtype: torch.dtype) -> "PreTrainedModel":
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    path = opening.path
    settings = _quantisation(opening)
    # advice to install packages is of no use to who cannot; failures raise
    logging.set_verbosity_error()
    with _library_refusals(path), _watched(opening.progress, opening.stopped):
        network, report = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=dtype,
            device_map={"": opening.device},
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **settings,
        )
    missing = sorted({*report["missing_keys"], *(k[0] for k in report["mismatched_keys"])})
    if missing:
        raise Incomplete(
            "tensor_missing",
            "{name} lacks the tensor {tensor}, or has it in another shape.",
            name=path.name,
            tensor=missing[0],
        )
    return network


def _quantisation(opening: Opening) -> dict[str, Any]:
    """What transformers is told of quantised weights: the folder's, or such as it is to make."""
    method, precision, device = opening.info.quantisation, opening.precision, opening.device
    found = None
    if method:
        config = _settings(opening.path / "config.json")
        stored = config.get("quantization_config") or config["text_config"]["quantization_config"]
        with _library_refusals(opening.path):
            found = quantised.as_stored(method, stored, precision, device)
    elif precision in QUANTISED and device != "cpu":
        found = quantised.made_at_load(precision, device)
    return {} if found is None else {"quantization_config": found}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


@contextlib.contextmanager
def _watched(progress: Report, stopped: Stopped) -> Iterator[None]:
    """transformers' progress bars, made ours: they report, and break off when asked to."""
    from transformers.utils import logging

    class Bar:
        def __init__(self, items: Any = None, *_: Any, total: int | None = None, **__: Any) -> None:
            self.items, self.n = items, 0
            self.total = total if total is not None else (len(items) if items is not None else 0)

        def __iter__(self) -> Iterator[Any]:
            for item in self.items:
                yield item
                self.update()

        def update(self, n: int = 1) -> None:
            _heed(stopped)
            self.n += n
            progress(Progress("weights", self.n, self.total, "tensors"))

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: None

    before = logging.set_tqdm_hook(lambda factory, args, kwargs: Bar(*args, **kwargs))
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def _folder_tokenizer(
    path: Path, generation: Mapping[str, Any], config: Mapping[str, Any]
) -> Tokenizer:
    file = path / "tokenizer.json"
    if not file.is_file():
        raise Incomplete("no_tokenizer", "{name} has no tokenizer.json.", name=path.name)
    try:
        backend = _read_tokenizer(file)
    except Exception as error:  # the library raises bare Exception
        raise Incomplete(
            "tokenizer_damaged",
            "The tokenizer.json of {name} cannot be read: {error}",
            name=path.name,
            error=_first_line(error),
        ) from error
    settings = {
        **_settings(path / "special_tokens_map.json"),
        **_settings(path / "tokenizer_config.json"),
    }
    special = {
        key: token if isinstance(token, str) else str(token.get("content", ""))
        for key, token in settings.items()
        if key.endswith("_token") and isinstance(token, str | dict)
    }
    template = template_text(path)
    bos = backend.token_to_id(special.get("bos_token", ""))
    eos = _ids(generation.get("eos_token_id", config.get("eos_token_id")))
    eos |= _ids(backend.token_to_id(special.get("eos_token", "")))
    return Tokenizer(
        backend,
        eos_ids=frozenset(eos),
        template=Template(template) if template else None,
        special_tokens=special,
        fingerprint=hashlib.sha256(file.read_bytes()).hexdigest()[:32],
        add_bos=bos is not None and bos in backend.encode("").ids,
    )


def _ids(value: object) -> set[int]:
    """One id, a list of them or none, as configurations write them."""
    values = value if isinstance(value, list) else [value]
    return {v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0}


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


def _settings(file: Path) -> dict[str, Any]:
    """A small JSON file's object; empty where there is none. Raises Incomplete."""
    if not file.is_file():
        return {}
    try:
        if file.stat().st_size > SETTINGS_BYTES:
            raise ValueError("too large")
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        raise Incomplete(
            "settings_damaged",
            "{file} cannot be read: {error}",
            file=file.name,
            error=_first_line(error),
        ) from error
    return found


def _context(network: "PreTrainedModel", info: ModelInfo) -> int:
    config = network.config.get_text_config(decoder=True)
    limit = info.context or getattr(config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and 0 < limit < LARGEST else DEFAULT_CONTEXT


@contextlib.contextmanager
def _memory_named(name: str) -> Iterator[None]:
    """Out-of-memory errors of torch and the system become ours."""
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
                error=_first_line(error),
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
