"""How many numbers a quantised checkpoint's tensors stand for."""

import pytest

from engine.library import formats
from engine.library.safetensors import TensorInfo

# a matrix of 256 rows and 512 columns, a norm and an embedding
PLAIN = {"model.norm.weight": (512,), "model.embed_tokens.weight": (1000, 512)}
MATRIX = "model.layers.0.mlp.up_proj"


def tensors(**stored):
    named = {f"{MATRIX}.{key}": value for key, value in stored.items()}
    plain = {key: ("BF16", shape) for key, shape in PLAIN.items()}
    return {
        name: TensorInfo(name, dtype, shape, 0, 0)
        for name, (dtype, shape) in (named | plain).items()
    }


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        (
            {"quant_method": "gptq", "bits": 4},
            {
                "qweight": ("I32", (512 // 8, 256)),
                "qzeros": ("I32", (4, 32)),
                "scales": ("F16", (4, 256)),
                "g_idx": ("I32", (512,)),
            },
        ),
        (
            {"quant_method": "awq", "bits": 4},
            {
                "qweight": ("I32", (512, 256 // 8)),
                "qzeros": ("I32", (4, 32)),
                "scales": ("F16", (4, 256)),
            },
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4}}},
            },
            {
                "weight_packed": ("I32", (256, 512 // 8)),
                "weight_scale": ("BF16", (256, 4)),
                "weight_shape": ("I64", (2,)),
            },
        ),
        (
            {"quant_method": "fp8"},
            {"weight": ("F8_E4M3", (256, 512)), "weight_scale_inv": ("F32", (2, 4))},
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {}},
            {"weight": ("I8", (256, 512)), "weight_scale": ("BF16", (256, 1))},
        ),
    ],
)
def test_a_packed_matrix_stands_for_its_numbers(config, stored):
    found = formats.shapes(tensors(**stored), {"quantization_config": config})
    assert found == PLAIN | {f"{MATRIX}.weight": (256, 512)}


def test_two_numbers_of_four_bits_share_a_byte():
    four = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    stored = {
        "weight": ("U8", (256 * 512 // 2, 1)),
        "weight.absmax": ("F32", (2048,)),
        "weight.quant_map": ("F32", (16,)),
        "weight.quant_state.bitsandbytes__nf4": ("U8", (100,)),
    }
    found = formats.shapes(tensors(**stored), four)
    assert found == PLAIN | {f"{MATRIX}.weight": (1, 256 * 512)}


def test_blocks_of_mxfp4_are_the_experts_of_a_mixture():
    name = "model.layers.0.mlp.experts.gate_up_proj"
    stored = {
        f"{name}_blocks": TensorInfo("", "U8", (32, 5760, 90, 16), 0, 0),
        f"{name}_scales": TensorInfo("", "U8", (32, 5760, 90), 0, 0),
        f"{name}_bias": TensorInfo("", "BF16", (32, 5760), 0, 0),
    }
    found = formats.shapes(stored, {"quantization_config": {"quant_method": "mxfp4"}})
    assert found == {f"{name}.weight": (32 * 5760, 2880), f"{name}_bias": (32, 5760)}


@pytest.mark.parametrize(
    "config",
    [
        {"quant_method": "gptq"},
        {"quant_method": "gptq", "bits": 0},
        {"quant_method": "gptq", "bits": True},
        {"quant_method": "aqlm", "bits": 2},
        {"quant_method": "something"},
    ],
)
def test_what_is_not_known_is_not_counted(config):
    packed = tensors(qweight=("I32", (64, 256)))
    assert formats.shapes(packed, {"quantization_config": config}) is None
