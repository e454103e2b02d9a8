"""A network as transformers itself loads it: for what our kernels do not run, and to compare with.

No code of a folder's is ever run, and nothing is fetched.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from engine.api import Progress
from engine.errors import Incomplete, Unsupported, first_line, heed
from engine.gguf import config as gguf_config
from engine.gguf import weights as gguf_weights
from engine.library.gguf import Header

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]
# A device, or what each module lies on: a card's number, or "cpu" to be copied when it is needed.
Places = str | Mapping[str, int | str]


def _unheard(progress: Progress) -> None:
    pass


def _never() -> bool:
    return False


def of_gguf(
    header: Header,
    places: Places,
    dtype: torch.dtype,
    *,
    progress: Report = _unheard,
    stopped: Stopped = _never,
) -> "PreTrainedModel":
    """The network of a GGUF file, dequantised. Raises what `gguf.weights.Reader` raises."""
    config = gguf_config.config_of(header)
    device = places if isinstance(places, str) else "cpu"
    network = gguf_weights.empty_model(config, dtype, torch.device(device))
    parameters = dict(network.named_parameters())
    done, total = 0, sum(p.numel() for p in parameters.values())
    with torch.no_grad():
        for name, tensor in gguf_weights.tensors(header, config, network, stopped):
            parameters[name].copy_(tensor)
            done += tensor.numel()
            progress(Progress("weights", done, total, "parameters"))
    if not isinstance(places, str):
        from accelerate import dispatch_model

        dispatch_model(network, dict(places), main_device=0)
    return network


def of_folder(
    path: Path,
    places: Places,
    dtype: torch.dtype,
    settings: Mapping[str, Any] | None = None,
    *,
    progress: Report = _unheard,
    stopped: Stopped = _never,
) -> "PreTrainedModel":
    """The network of a folder of safetensors; `settings` are further ones for transformers.

    Raises Unsupported, and Incomplete when a tensor is missing.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    # advice to install packages is of no use to who cannot; failures raise
    logging.set_verbosity_error()
    with refusals(path), _watched(progress, stopped):
        network: PreTrainedModel
        network, report = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=dtype,
            device_map={"": places} if isinstance(places, str) else dict(places),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **(settings or {}),
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


def own_config(path: Path) -> "PreTrainedConfig":
    """The configuration in a folder, as transformers reads it."""
    from transformers import AutoConfig

    config: PreTrainedConfig = AutoConfig.from_pretrained(
        path, local_files_only=True, trust_remote_code=False
    )
    return config


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What transformers raises about a folder becomes ours."""
    try:
        yield
    except (ValueError, KeyError, ImportError, AttributeError, TypeError, OSError) as error:
        raise Unsupported(
            "cannot_load",
            "{name} could not be loaded: {error}",
            name=path.name,
            error=first_line(error),
        ) from error


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
            heed(stopped)
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
