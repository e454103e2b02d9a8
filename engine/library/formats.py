"""Formats in which weights come quantised: which are known, and what must be installed for them.

Knows names and how many numbers a packed tensor stands for; reads no weights and imports none of
the packages. Sources: `validate_environment` of the quantizers in transformers 5.24, and the layers
of the packages, as each function says.
"""

import math
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from engine.errors import Reason, Unsupported
from engine.library.safetensors import TensorInfo
from engine.memory import WIDENED

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
# Read back into 16 bits when loaded where there is no graphics card.
WIDENED_ON_CPU = WIDENED | {"compressed-tensors"}


def method_of(config: Mapping[str, Any]) -> str | None:
    """The format that a config.json says its weights have; None when they are not quantised.

    Raises Unsupported when it is not known.
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
    return method


def require(method: str | None) -> None:
    """Raises Unsupported where what is needed to read weights of this format is not here."""
    reason = refusal(method)
    if reason is not None:
        raise Unsupported(reason.code, reason.template, **reason.values)


def refusal(method: str | None) -> Reason | None:
    """Why weights of this format cannot be read here, or None."""
    lacking = [package for package in PACKAGES.get(method or "", ()) if not installed(package)]
    if not lacking:
        return None
    return Reason(
        "cannot_run",
        "Cannot run on this computer: needs {packages} for weights quantised with {method}.",
        {
            "packages": " and ".join(name.replace("_", "-") for name in lacking),
            "method": method or "",
        },
    )


def installed(package: str) -> bool:
    """Whether `package` could be imported."""
    return find_spec(package) is not None


# Beside the packed numbers: scales, zero points, orders, tables.
SIDE = re.compile(
    r"(qzeros|scales|g_idx|SCB|_scales|scale_inv|weight_scale\w*|weight_zero_point|weight_shape"
    r"|weight_g_idx|\w*_scale|absmax|quant_map|nested_\w+|quant_state\.[\w.]+|weight_format)$"
)
COUNTED = frozenset(PACKAGES) - {"aqlm", "hqq", "torchao"}
Shapes = dict[str, tuple[int, ...]]


def shapes(tensors: Mapping[str, TensorInfo], config: Mapping[str, Any]) -> Shapes | None:
    """Name and shape of the weights that `tensors` stand for, unpacked; None: not known.

    GPTQ and AWQ keep 32 / bits numbers in each int32 of a `qweight`, by rows of the input
    (AutoGPTQ, AutoAWQ); compressed-tensors in `weight_packed`, by rows of the output; bitsandbytes
    and mxfp4 two in a byte. Only the counts and the number of rows hold, not the order.
    """
    quantised = config.get("quantization_config")
    if not isinstance(quantised, Mapping) or not quantised:
        return {name: tensor.shape for name, tensor in tensors.items()}
    if quantised.get("quant_method", "bitsandbytes") not in COUNTED:
        return None
    bits = _bits(quantised)
    found: Shapes = {}
    for name, tensor in tensors.items():
        if SIDE.search(name):
            continue
        if name.endswith((".qweight", ".weight_packed")):
            if bits is None or len(tensor.shape) != 2:
                return None
            count = tensor.numel * 32 // bits
            rows = tensor.shape[0] if name.endswith("packed") else _outputs(tensor, quantised, bits)
            found[name.rpartition(".")[0] + ".weight"] = (rows, count // max(rows, 1))
        elif name.endswith("_blocks"):
            rows = math.prod(tensor.shape[:-2])
            found[name.removesuffix("_blocks") + ".weight"] = (
                rows,
                2 * tensor.numel // max(rows, 1),
            )
        elif tensor.dtype == "U8":
            found[name] = (1, 2 * tensor.numel)
        else:
            found[name] = tensor.shape
    return found


def _outputs(tensor: TensorInfo, quantised: Mapping[str, Any], bits: int) -> int:
    """Rows of the matrix that a `qweight` stands for: AWQ packs along them, GPTQ across."""
    wide = tensor.shape[1]
    return wide * 32 // bits if quantised.get("quant_method") == "awq" else wide


def _bits(quantised: Mapping[str, Any]) -> int | None:
    """Bits of a packed number, where it says so."""
    groups = quantised.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    stated = weights.get("num_bits") if isinstance(weights, Mapping) else quantised.get("bits")
    return stated if type(stated) is int and 1 <= stated <= 8 else None
