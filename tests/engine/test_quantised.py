"""Weights that come quantised or are to be: what is loaded, what is refused, and how it is said."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import quantised
from engine.errors import Unsupported
from engine.library import formats
from engine.library.inspect import inspect
from engine.library.scan import scan
from engine.loading import load
from tests.folders import tiny_config, write_json, write_model

BLOCK = 128


@pytest.fixture
def present(monkeypatch):
    """Lets packages be there, or not."""

    def only(*names):
        monkeypatch.setattr(formats, "installed", lambda name: name in names)
        monkeypatch.setattr(quantised, "installed", lambda name: name in names)

    return only


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = tiny_config(hidden_size=BLOCK, intermediate_size=2 * BLOCK)
    return write_model(tmp_path_factory.mktemp("model") / "m", config=config, dtype="bfloat16")


def with_settings(folder, settings, weights=None):
    """A copy of `folder` that says its weights are quantised so."""
    copy = shutil.copytree(folder, folder.parent / f"q{len(list(folder.parent.iterdir()))}")
    hidden = {"hidden_size": BLOCK, "intermediate_size": 2 * BLOCK}
    write_json(copy / "config.json", tiny_config(**hidden, quantization_config=settings))
    if weights is not None:
        save_file(weights, copy / "model.safetensors")
    return copy


def in_fp8(folder):
    """Its linear layers in 8-bit floating point, a scale for each block of 128 x 128."""
    weights = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if "proj" not in name:
            weights[name] = tensor
            continue
        high = min(BLOCK, tensor.shape[0])
        blocks = tensor.float().view(-1, high, tensor.shape[1] // BLOCK, BLOCK)
        scale = blocks.abs().amax((1, 3), keepdim=True) / 448
        weights[name] = (blocks / scale).view_as(tensor).to(torch.float8_e4m3fn)
        weights[f"{name}_scale_inv"] = scale.view(blocks.shape[0], -1)
    return with_settings(
        folder,
        {"quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK], "fmt": "e4m3"},
        weights,
    )


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_fp8_is_read_back_on_the_cpu(folder, tmp_path, precision):
    path = in_fp8(folder)
    assert inspect(path).quantisation == "fp8"
    tokens = list(range(40))
    found = []
    for one in (folder, path):
        model = load(one, cache_folder=tmp_path, device="cpu", precision=precision)
        found.append(model.model.forward(tokens, rows=40))
        model.close()
    expected, got = found
    # e4m3 keeps 3 bits behind the first: 2 to 6 % a number
    assert 0 < float((got - expected).norm() / expected.norm()) < 0.1


@pytest.mark.parametrize(
    ("settings", "package"),
    [
        ({"quant_method": "awq"}, "gptqmodel"),
        ({"quant_method": "gptq"}, "optimum and gptqmodel"),
        ({"quant_method": "compressed-tensors"}, "compressed-tensors"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"load_in_8bit": True}, "bitsandbytes"),
        ({"quant_method": "torchao"}, "torchao"),
    ],
)
def test_a_missing_package_is_named_before_a_weight_is_read(folder, present, settings, package):
    """MEM-2: in the library, with what the files take, and by whoever loads it all the same."""
    present()
    path = with_settings(folder, settings)
    (entry,) = (entry for entry in scan([folder.parent]) if entry.path == path)
    said = f"Cannot run on this computer: needs {package} for weights quantised with "
    assert entry.problem.text.startswith(said)
    assert entry.info.file_bytes == (path / "model.safetensors").stat().st_size
    with pytest.raises(Unsupported, match=said):
        load(path, cache_folder=folder)


def test_only_what_is_missing_is_named(folder, present):
    present("optimum")
    with pytest.raises(Unsupported, match="needs gptqmodel for"):
        formats.require(inspect(with_settings(folder, {"quant_method": "gptq"})).quantisation)
    formats.require("Q4_K_M")
    formats.require(None)


@pytest.mark.parametrize(
    "settings", [{"quant_method": "other"}, {"bits": 4}, "4 bits", [4], {"quant_method": [1]}]
)
def test_an_unknown_format_is_refused(folder, settings):
    with pytest.raises(Unsupported) as caught:
        inspect(with_settings(folder, settings))
    assert caught.value.code == "quantised_unknown"


def test_a_format_for_graphics_cards_is_refused_on_the_cpu(folder, present, tmp_path):
    present("gptqmodel")
    path = with_settings(folder, {"quant_method": "awq", "bits": 4})
    assert inspect(path).quantisation == "awq"
    with pytest.raises(Unsupported) as caught:
        load(path, cache_folder=tmp_path, device="cpu", precision="bf16")
    assert caught.value.code == "quantised_on_cpu"


def test_packed_numbers_are_not_counted(folder, present):
    present("hqq")
    info = inspect(with_settings(folder, {"quant_method": "hqq"}))
    assert (info.parameters, info.linear, info.embedding) == (None, None, None)


def test_weights_of_another_kind_are_not_quantised_twice():
    with pytest.raises(Unsupported) as caught:
        quantised.as_stored("awq", {}, "int8", "cuda")
    assert caught.value.code == "quantised_already"
    assert quantised.as_stored("awq", {}, "bf16", "cuda") is None


@pytest.mark.parametrize("method", ["fp8", "mxfp4"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_formats_that_need_fetched_code_are_read_back_everywhere(method, device):
    settings = {"quant_method": method, "modules_to_not_convert": ["lm_head"]}
    found = quantised.as_stored(method, settings, "bf16", device)
    assert found.dequantize
    assert found.modules_to_not_convert == ["lm_head"]


@pytest.mark.parametrize(
    ("precision", "device", "package"),
    [
        ("int8", "cuda", "bitsandbytes"),
        ("int4", "cuda", "torchao"),
        ("int4", "xpu", "bitsandbytes"),
        ("int8", "mps", "bitsandbytes"),
    ],
)
def test_a_quantiser_that_is_missing_is_named(present, precision, device, package):
    present()
    with pytest.raises(Unsupported, match=f"needs the package {package}") as caught:
        quantised.made_at_load(precision, device)
    assert caught.value.code == "no_quantiser"


def test_8_bits_are_made_without_outliers_apart(present):
    """They would make a row's bits depend on its neighbours."""
    present("bitsandbytes")
    found = quantised.made_at_load("int8", "cuda")
    assert found.load_in_8bit
    assert found.llm_int8_threshold == 0


def test_4_bits_are_made_by_bitsandbytes_where_torchao_is_not(present):
    present("bitsandbytes")
    found = quantised.made_at_load("int4", "cuda")
    assert found.load_in_4bit
    assert found.bnb_4bit_compute_dtype == torch.bfloat16
