"""What is said of a family's memory on a processor, against what loading it really takes."""

import contextlib

import pytest
import torch

from engine import families, loading
from engine.api import Kind
from engine.errors import Unsupported
from engine.fit import Pair, Room, judge
from engine.gguf.config import _ARCHITECTURES, _Settings
from engine.kernels.linear import grid, half_counts, int4_agrees
from engine.library.gguf import read_header
from engine.library.inspect import inspect
from engine.library.scan import scan
from engine.memory import estimate, weight_bytes
from tests.families import FAMILIES, tiny
from tests.folders import write_bare, write_gguf, write_tokenizer
from tests.published import FACTS, config

CONTEXT = 256
TRIED = {
    "packed": families.PACKED,
    "wide experts": families.WIDE_EXPERTS,
    "wide": families.WIDE,
    "library's": families.LIBRARYS,
}
EVERY = sorted(set().union(*TRIED.values()))
# The types of tests/families.py and tests/published.py, and one of each way that they have not.
USUAL = sorted(
    {known["model_type"] for known in FAMILIES.values()}
    | {config(name)["model_type"] for name in FACTS}
    | {"falcon", "gpt2", "mpt", "opt"}
)
MIXTURES = ["deepseek_v3", "mixtral", "phimoe", "qwen2_moe", "qwen3_moe", "qwen3_next"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Exactness takes longer than all the rest and is of no matter here."""
    if grid() is None or half_counts() is None or not int4_agrees():
        pytest.skip("this processor takes other kernels")
    monkeypatch.setattr(loading, "check", lambda model: False)


@pytest.fixture
def opened(tmp_path):
    """Load a tiny model; its stacks of experts stay such where not `published` as files are."""
    from transformers import AutoModelForCausalLM

    with contextlib.ExitStack() as stack:

        def load(model_type, precision, *, published=True):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                network = AutoModelForCausalLM.from_config(tiny(model_type), dtype=torch.float32)
            for parameter in network.parameters():
                if not torch.isfinite(parameter).all():  # made, but not filled
                    parameter.data.normal_(0, 0.02)
            network.save_pretrained(tmp_path / "m", save_original_format=published)
            write_tokenizer(tmp_path / "m")
            found = loading.load(
                tmp_path / "m", cache_folder=tmp_path, device="cpu", precision=precision
            )
            return stack.enter_context(contextlib.closing(found))

        yield load


def near(said, held):
    return said is not None and abs(said / held - 1) <= 0.05


def agrees(model, precision):
    said = estimate(model.loaded.info, precision, "cpu", CONTEXT)
    assert near(said.weights, model.loaded.memory_bytes)
    assert said.cache_precision == model.loaded.cache_precision
    own = families.held(model.loaded.info) == "library's"
    assert model.loaded.precision == ("bf16" if own else precision)
    return said


@pytest.mark.parametrize("model_type", USUAL)
def test_as_much_is_held_as_was_said(opened, model_type):
    model = opened(model_type, "int8")
    said = agrees(model, "int8")
    model.model.limit(CONTEXT)
    # a long chat's end: running states are kept of several lengths, and of each row of a round
    tokens = [(7 * i) % 250 for i in range(CONTEXT)]
    for start in range(0, CONTEXT - 5, 50):
        model.model.feed(tokens[start : min(start + 50, CONTEXT - 5)])
    model.model.forward(tokens[CONTEXT - 5 :], rows=5)
    held = model.model.cache.nbytes
    assert held <= 1.03 * said.cache
    if not any(model.loaded.info.cache_windows):
        assert near(said.cache, held)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", sorted(set(EVERY) - set(USUAL)))
def test_as_much_is_held_as_was_said_of_every_type(opened, model_type):
    agrees(opened(model_type, "int8"), "int8")


@pytest.mark.parametrize("precision", ["bf16", "int4"])
@pytest.mark.parametrize("model_type", ["falcon", "gpt2", "gpt_oss", "mixtral"])
def test_it_is_so_in_other_precisions(opened, model_type, precision):
    agrees(opened(model_type, precision), precision)


@pytest.mark.parametrize("model_type", MIXTURES)
def test_experts_in_one_stack_take_what_single_ones_take(opened, model_type):
    agrees(opened(model_type, "int8", published=False), "int8")


def test_a_type_lies_in_memory_in_one_way():
    assert sum(len(types) for types in TRIED.values()) == len(EVERY)


def test_of_a_type_that_was_never_tried_nothing_is_said(tmp_path):
    shapes = {"model.embed_tokens.weight": [262, 64], "model.layers.0.mlp.up.weight": [64, 64]}
    info = inspect(write_bare(tmp_path / "m", shapes, model_type="something_new"))
    assert families.held(info) is None
    assert {weight_bytes(info, p, "cpu") for p in ("fp32", "bf16", "int8", "int4")} == {None}
    assert weight_bytes(info, "bf16", "cuda") == 2 * (262 * 64 + 64 * 64)
    found = judge(Pair(info, "int8", 256), Room("cpu", "m", 2**34, 2**34))
    assert (found.word, found.reason.values) == ("unknown", {"architecture": "something_new"})


def test_the_gguf_architectures_that_are_read_are_those_that_are_known():
    assert set(_ARCHITECTURES) == families.GGUF


# What cannot be loaded


@pytest.mark.parametrize("architecture", ["gpt-oss", "llama4", "deepseek2", "something"])
def test_a_gguf_that_cannot_be_loaded_is_told_so_when_it_is_looked_at(tmp_path, architecture):
    shapes = {"token_embd.weight": [64, 64], "blk.0.attn_q.weight": [64, 64]}
    (tmp_path / "library").mkdir()
    path = write_gguf(tmp_path / "library" / "x.gguf", shapes, architecture=architecture)
    [entry] = scan([path.parent])
    with pytest.raises(Unsupported) as refused:
        loading.load(path, cache_folder=tmp_path, device="cpu")
    assert entry.problem == refused.value.reason
    # what it would take elsewhere is known
    assert weight_bytes(entry.info, "bf16", "cuda") == 2 * 2 * 64 * 64
    assert weight_bytes(entry.info, "bf16", "cpu") is None


def test_experts_of_an_architecture_without_any_are_told_too(tmp_path):
    shapes = {"token_embd.weight": [64, 64], "blk.0.ffn_up_exps.weight": [4, 64, 64]}
    settings = {"block_count": 1, "embedding_length": 64, "feed_forward_length": 64}
    settings |= {"attention__head_count": 4, "context_length": 64, "expert_count": 4}
    keys = {f"llama__{key}": value for key, value in settings.items()}
    (tmp_path / "library").mkdir()
    path = write_gguf(tmp_path / "library" / "x.gguf", shapes, **keys)
    [entry] = scan([path.parent])
    settings = _Settings(read_header(path))
    with pytest.raises(Unsupported) as refused:
        _ARCHITECTURES["llama"].extra(settings, read_header(path), {})
    assert entry.problem == refused.value.reason


def test_a_head_in_a_gguf_is_not_refused_for_its_architecture(tmp_path):
    write_gguf(tmp_path / "x.gguf", {"fc.weight": [64, 64]}, architecture="eagle3")
    [entry] = scan([tmp_path])
    assert (entry.info.kind, entry.problem) == (Kind.HEAD, None)
