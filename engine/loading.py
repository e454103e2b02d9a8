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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
import torch

from engine.api import Kind, Loaded, ModelInfo, Precision, Progress, Sampling
from engine.child import Child
from engine.devices import Device, default_precision, pick, release
from engine.errors import Cancelled, EngineError, Incomplete, LoadError, OutOfMemory, Unsupported
from engine.gguf import config as gguf_config
from engine.gguf import tokenizer as gguf_tokenizer
from engine.gguf import weights as gguf_weights
from engine.library.folder import LARGEST
from engine.library.gguf import Header, read_header
from engine.library.inspect import inspect, template_text
from engine.model import LanguageModel
from engine.template import Template
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]

DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}

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
        self.model.cache.empty()
        self.model.network.to("meta")
        if self.tokenizer.template:
            self.tokenizer.template.close()
        release()


def load(
    path: Path,
    *,
    cache_folder: Path,
    device: str = "auto",
    precision: Precision | None = None,
    progress: Report = lambda progress: None,
    stopped: Stopped = lambda: False,
) -> LoadedModel:
    """The model at `path`, a folder of safetensors or a GGUF file, on `device`.

    A tokenizer built from a GGUF is kept in `cache_folder`. Raises LoadError and its kinds,
    OutOfMemory, and Cancelled when `stopped` says so; nothing stays in memory then.
    """
    began = time.monotonic()
    info = inspect(path)
    if info.kind is not Kind.MODEL:
        raise Unsupported("cannot_answer", "{name} is not a model that can answer.", name=info.name)
    where = pick(device)
    how = precision or default_precision(where)
    open_it = _open_gguf if info.format == "gguf" else _open_folder
    with _memory_named(info.name):
        network, tokenizer, defaults = open_it(
            info.path, where, DTYPES[how], cache_folder, progress, stopped
        )
        network.requires_grad_(False).eval()
        model = LanguageModel(network, _context(network, info))
    loaded = Loaded(
        info=info,
        device=where,
        precision=how,
        context=model.context,
        vocabulary=tokenizer.fingerprint,
        defaults=defaults,
        memory_bytes=model.memory_bytes,
        seconds=time.monotonic() - began,
    )
    return LoadedModel(model, tokenizer, loaded)


Opened = tuple["PreTrainedModel", Tokenizer, Sampling]


def _open_gguf(
    path: Path, device: Device, dtype: torch.dtype, cache: Path, progress: Report, stopped: Stopped
) -> Opened:
    header = read_header(path)
    _heed(stopped)
    config = gguf_config.config_of(header)
    tokenizer = _gguf_tokenizer(header, cache, progress, stopped)
    _heed(stopped)
    network = gguf_weights.empty_model(config, dtype, torch.device(device))
    parameters = dict(network.named_parameters())
    total = sum(p.numel() for p in parameters.values())
    done = 0
    with torch.no_grad():
        for name, tensor in gguf_weights.tensors(header, config, network, stopped):
            parameters[name].copy_(tensor)
            done += tensor.numel()
            progress(Progress("weights", done, total, "parameters"))
    return network, tokenizer, Sampling()


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


def _open_folder(
    path: Path, device: Device, dtype: torch.dtype, cache: Path, progress: Report, stopped: Stopped
) -> Opened:
    generation = _settings(path / "generation_config.json")
    config = _settings(path / "config.json")
    _heed(stopped)
    tokenizer = _folder_tokenizer(path, generation, config)
    _heed(stopped)
    network = _folder_network(path, device, dtype, progress, stopped)
    return network, tokenizer, _defaults(generation)


def _folder_network(
    path: Path, device: Device, dtype: torch.dtype, progress: Report, stopped: Stopped
) -> "PreTrainedModel":
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    # advice to install packages is of no use to who cannot; failures raise
    logging.set_verbosity_error()
    try:
        with _watched(progress, stopped):
            network, report = AutoModelForCausalLM.from_pretrained(
                path,
                dtype=dtype,
                device_map={"": device},
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except (ValueError, KeyError, ImportError, AttributeError, TypeError, OSError) as error:
        raise Unsupported(
            "cannot_load",
            "{name} could not be loaded: {error}",
            name=path.name,
            error=_first_line(error),
        ) from error
    missing = sorted({*report["missing_keys"], *(k[0] for k in report["mismatched_keys"])})
    if missing:
        raise Incomplete(
            "tensor_missing",
            "{name} lacks the tensor {tensor}, or has it in another shape.",
            name=path.name,
            tensor=missing[0],
        )
    return network


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
