"""Formats in which weights come quantised: which are known, and what must be installed for them.

Knows names only; reads no weights and imports none of the packages. Source: `validate_environment`
of the quantizers in transformers 5.24.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from engine.errors import Unsupported

# By what config.json calls them, the packages that transformers reads them with.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "aqlm": ("aqlm",),
    "auto-round": ("auto_round",),
    "awq": ("gptqmodel",),
    "bitsandbytes": ("bitsandbytes",),
    "compressed-tensors": ("compressed_tensors",),
    "fbgemm_fp8": ("fbgemm_gpu",),
    "fp8": (),
    "gptq": ("optimum", "gptqmodel"),
    "hqq": ("hqq",),
    "mxfp4": (),
    "torchao": ("torchao",),
}
# Read back into 16 bits when loaded: fp8 and mxfp4 everywhere, for transformers would compute with
# them by compiled code that it fetches; compressed-tensors where there is no graphics card.
WIDENED = frozenset({"fp8", "mxfp4"})
WIDENED_ON_CPU = WIDENED | {"compressed-tensors"}


def method_of(config: Mapping[str, Any]) -> str | None:
    """The format that a config.json says its weights have; None when they are not quantised.

    Raises Unsupported when it is not known or cannot be read with what is installed.
    """
    quantised = config.get("quantization_config")
    if not quantised:
        return None
    said = quantised if isinstance(quantised, dict) else {}
    method = said.get("quant_method")
    if said.get("load_in_4bit") or said.get("load_in_8bit"):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in PACKAGES:
        raise Unsupported(
            "quantised_unknown",
            "The weights are quantised with {method}, which cannot be read here.",
            method=str(method or "an unnamed method")[:40],
        )
    lacking = [package for package in PACKAGES[method] if not installed(package)]
    if lacking:
        raise Unsupported(
            "quantised_folder",
            "The weights are quantised with {method}. To read them, {packages} must be installed.",
            method=method,
            packages=" and ".join(name.replace("_", "-") for name in lacking),
        )
    return method


def installed(package: str) -> bool:
    """Whether `package` could be imported."""
    return find_spec(package) is not None
