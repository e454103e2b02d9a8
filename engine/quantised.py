"""Quantised weights where our own kernels do not run: made at load, or as a folder brings them.

Chooses among well-kept packages and writes their settings for transformers. Knows no file and
loads nothing.
"""

from collections.abc import Mapping
from typing import Any

from engine.api import Precision
from engine.errors import Unsupported
from engine.library.formats import WIDENED_ON_CPU, installed
from engine.memory import WIDENED

# Numbers that share a scale, as in the memory estimate.
INT4_GROUP = 64


def made_at_load(precision: Precision, device: str) -> Any:
    """transformers' settings for weights that are quantised to int8 or int4 while they are loaded.

    int8: bitsandbytes, rows and columns each with their own scale and no outliers apart, so that
    a row's bits depend on the row alone. int4: torchao's packing for torch's own kernel, else
    bitsandbytes' NF4, which takes the same memory but more time. Raises Unsupported when the
    package is not there.
    """
    if precision == "int8" and installed("bitsandbytes"):
        from transformers import BitsAndBytesConfig

        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=0.0)
    if precision == "int4" and device == "cuda" and installed("torchao") and _has_tensor_cores():
        from transformers import TorchAoConfig

        return TorchAoConfig(int4())
    if precision == "int4" and installed("bitsandbytes"):
        import torch
        from transformers import BitsAndBytesConfig

        return BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    packages = "bitsandbytes" if precision == "int8" or device != "cuda" else "torchao"
    raise Unsupported(
        "no_quantiser",
        "{precision} on {device} needs the package {packages}, which is not installed. Choose "
        "bf16, or install it.",
        precision=precision,
        device=device,
        packages=packages,
    )


def int4() -> Any:
    """torchao's settings for 4-bit weights in the layout of torch's own kernel."""
    from torchao.quantization import Int4WeightOnlyConfig

    return Int4WeightOnlyConfig(
        group_size=INT4_GROUP,
        int4_packing_format="tile_packed_to_4d",
        set_inductor_config=False,
    )


def as_stored(method: str, settings: Mapping[str, Any], precision: Precision, device: str) -> Any:
    """transformers' settings for weights that come quantised with `method`; None: as they are.

    `settings` are the folder's own. Raises Unsupported where the weights cannot run on `device`,
    or in another `precision` than they have.
    """
    if method in (WIDENED_ON_CPU if device == "cpu" else WIDENED):
        from transformers.quantizers import AutoQuantizationConfig

        return AutoQuantizationConfig.from_dict({**settings, "dequantize": True})
    if device == "cpu":
        raise Unsupported(
            "quantised_on_cpu",
            "Weights quantised with {method} run on a graphics card only.",
            method=method,
        )
    if precision in ("int8", "int4"):
        raise Unsupported(
            "quantised_already",
            "The weights are quantised with {method} already and cannot be loaded in {precision}. "
            "Choose auto.",
            method=method,
            precision=precision,
        )
    return None


def _has_tensor_cores() -> bool:
    """Whether the card is one that torch's 4-bit kernel runs on."""
    import torch

    return torch.cuda.get_device_capability() >= (8, 0)
