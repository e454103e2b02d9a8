"""Heads that a model brings in its own files: read as published, exact, aligned; refused where
they are others."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from engine.api import Message, Sampling
from engine.drafters.head import HeadDrafter
from engine.errors import DraftRefused, OutOfMemory
from engine.guidance import Level, Verdict
from engine.heads import opening
from engine.heads.opening import open_mtp
from engine.kernels.network import kernels
from engine.library import own_head
from engine.loading import load
from engine.memory import estimate
from engine.session import Session
from tests.families import tiny
from tests.folders import CHATML, write_json, write_model, write_tokenizer
from tests.heads import mtp_reference, mtp_tensors
from tests.tiny import plain, policy, run
from tests.trained import acceptance, late, trained_mtp, trained_target

# Which family names its head in which way; the last is one whose files could be named so.
KINDS = {
    "deepseek_v3": "deepseek",
    "glm4_moe": "deepseek",
    "qwen3_next": "qwen",
    "qwen3_5_text": "qwen",
    "qwen2": "mimo",
}
DRAFTED = ["deepseek_v3", "glm4_moe", "qwen2"]


def write(folder, family, naming, change=lambda found: found):
    """A model with its head; the network, and the parts of the head."""
    config = tiny(family)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        for name, parameter in network.named_parameters():
            if "norm" in name:
                parameter.data.add_(0.1 * torch.randn_like(parameter))
    network.requires_grad_(False)
    network.get_output_embeddings().weight *= 50
    head, parts = mtp_tensors(network, naming)
    state = {n: t.contiguous().clone() for n, t in network.state_dict().items()} | head
    folder.mkdir()
    save_file(change(state), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", config.to_dict() | {
        "architectures": [type(network).__name__], "dtype": "float32"})  # fmt: skip
    write_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    return network, parts


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Each family once, at one precision."""
    root, made = tmp_path_factory.mktemp("models"), {}

    def of(family, precision="fp32"):
        folder = root / family
        if family not in made:
            made[family] = (*write(folder, family, KINDS[family]), {})
        network, parts, loaded = made[family]
        if precision not in loaded:
            loaded[precision] = load(folder, cache_folder=root / "cache", precision=precision)
        return network, parts, loaded[precision]

    yield of
    for *_, loaded in made.values():
        for one in loaded.values():
            one.close()


def opened(loaded, precision="fp32"):
    return open_mtp(loaded.model, loaded.loaded.info, precision)


@pytest.mark.parametrize(
    ("family", "precision"), [*((f, "fp32") for f in KINDS), ("qwen2", "int8")]
)
def test_a_head_says_what_its_family_says(models, family, precision):
    """Also where the target's table, output and stream are turned."""
    network, parts, loaded = models(family, precision)
    head = opened(loaded, "fp32")
    tokens = torch.tensor([(5 * j) % 250 for j in range(30)])
    with torch.no_grad():
        states = network(tokens[None], output_hidden_states=True).hidden_states[-1][0]
        wanted = mtp_reference(parts, network, KINDS[family], states[:-1], tokens[1:])
        out = torch.cat([head(states[:20], tokens[1:21], 0), head(states[20:-1], tokens[21:], 20)])
        near = {"rtol": 0, "atol": 0.02 * float(wanted.abs().max())}
        torch.testing.assert_close(out, wanted, **near)
        said = network.get_output_embeddings()(wanted)
        near = {"rtol": 0, "atol": 0.06 * float(said.abs().max())}
        torch.testing.assert_close(head.logits(out), said, **near)


@pytest.mark.parametrize("family", KINDS)
def test_that_a_target_has_a_head_is_told_from_its_headers(models, family):
    *_, loaded = models(family)
    assert own_head.judge(loaded.loaded.info) == Verdict(Level.GOOD, own_head.GOOD)


@pytest.mark.parametrize("family", DRAFTED)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_ids_equal_plain_decoding(models, family, precision):
    *_, loaded = models(family, precision)
    model = loaded.model
    drafter = HeadDrafter(opened(loaded, precision), model.device)
    model.tell(drafter)
    prompt = [(7 * j) % 250 for j in range(40)]
    drafted = 0
    for seed, temperature in enumerate((0.0, 0.8)):
        choose = policy(temperature=temperature, seed=seed)
        expected = plain(model, prompt, tokens=24, choose=choose)
        for length in (1, 3):
            found, proposed, _ = run(
                model, drafter, prompt, tokens=24, draft_length=length, choose=choose
            )
            assert found == expected
            drafted += proposed
    assert drafted > 0
    model.tell()


def without(name):
    return lambda state: {n: t for n, t in state.items() if n != name}


QUANTISED = torch.zeros(128, 256).to(torch.float8_e4m3fn)
BROKEN = {
    "none at all": (lambda s: {n: t for n, t in s.items() if "mtp" not in n}, "no_mtp", "m"),
    "a missing matrix": (
        without("model.mtp_layers.0.mlp.up_proj.weight"),
        "head_lacks_tensor",
        "model.mtp_layers.0.mlp.up_proj.weight",
    ),
    "a missing norm": (
        without("model.mtp_layers.0.final_layernorm.weight"),
        "head_lacks_tensor",
        "model.mtp_layers.0.final_layernorm.weight",
    ),
    "another width": (
        lambda s: s | {"model.mtp_layers.0.input_proj.weight": torch.zeros(128, 128)},
        "head_shape",
        "128 x 128",
    ),
    "a quantised matrix": (
        lambda s: s | {"model.mtp_layers.0.input_proj.weight": QUANTISED},
        "head_quantised",
        "model.mtp_layers.0.input_proj.weight",
    ),
    "a tensor too many": (
        lambda s: s | {"model.mtp_layers.0.gate.weight": torch.zeros(4)},
        "head_surplus",
        "model.mtp_layers.0.gate.weight",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_head_that_is_another_is_refused_by_tensor(name, tmp_path):
    change, code, value = BROKEN[name]
    write(tmp_path / "m", "qwen2", "mimo", change)
    session = Session(tmp_path / "cache")
    session.load_target(tmp_path / "m", precision="fp32")
    with pytest.raises(DraftRefused) as refused:
        session.choose_draft("mtp")
    assert refused.value.code == code
    assert value in refused.value.reason.values.values()
    session.close()


@pytest.mark.parametrize(("precision", "whole"), [("fp32", True), ("int8", True), ("fp32", False)])
def test_auto_holds_the_models_own_head_where_it_can_be_used(tmp_path, precision, whole):
    change = (lambda s: s) if whole else without("model.mtp_layers.0.mlp.up_proj.weight")
    write(tmp_path / "m", "qwen2", "mimo", change)
    session = Session(tmp_path / "cache")
    session.load_target(tmp_path / "m", precision=precision)
    asked = [Message("user", "abc abc")], Sampling(0.8, seed=2, max_tokens=24)
    plain = [token for chunk in session.reply(*asked) for token in chunk.token_ids]
    for choice in ("auto", "mtp") if whole else ("auto",):
        session.choose_draft(choice)
        assert ("mtp" in session._drafter._drafters) == whole
        chunks = list(session.reply(*asked))
        assert [token for chunk in chunks for token in chunk.token_ids] == plain
    by_head = [row for row in chunks[-1].usage.by_drafter if row[0] == "mtp"]
    assert bool(by_head) == whole
    session.close()


def test_auto_goes_without_it_where_memory_lacks(tmp_path, monkeypatch):
    write(tmp_path / "m", "qwen2", "mimo")
    session = Session(tmp_path / "cache")
    session.load_target(tmp_path / "m", precision="fp32")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(opening, "_settle", full)
    with pytest.raises(OutOfMemory):
        session.choose_draft("mtp")
    session.choose_draft("auto")
    assert set(session._drafter._drafters) == {"ngram", "suffix", "chain"}
    session.close()


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("precision", ["int8", "bf16", "int4"])
def test_its_memory_is_estimated_as_it_is(models, family, precision):
    *_, loaded = models(family)
    head, found = opened(loaded, precision), own_head.info(loaded.loaded.info)
    held = sum(kernel.nbytes for kernel in kernels(head))
    held += sum(p.numel() * p.element_size() for p in head.parameters())
    guessed = estimate(found, precision, "cpu", 128)
    assert guessed.weights == pytest.approx(held, rel=0.03)
    head(torch.zeros(128, head.join.in_features // 2), torch.zeros(128, dtype=torch.long), 0)
    assert guessed.cache == head._cache.nbytes


def test_on_a_card_its_positions_stay_as_precise_as_they_are(models, monkeypatch):
    """There it has 16 bits; of frequencies in 16 bits far positions would be others."""
    *_, loaded = models("qwen2")
    usual, told = opened(loaded), []
    cpu = loaded.model.device
    monkeypatch.setattr(opening, "_pack", lambda head, _, more: opening._move(head, cpu, more))
    moved = open_mtp(loaded.model, loaded.loaded.info, "int8", told.append)
    assert {p.dtype for p in moved.parameters()} == {torch.bfloat16}
    assert sum(told) == sum(p.numel() for p in moved.parameters())
    for name, buffer in moved.named_buffers():
        assert torch.equal(buffer, usual.get_buffer(name))
    assert any("inv_freq" in name for name, _ in moved.named_buffers())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A target that has learned a rule, with a head of its own that has learned from it."""
    knowing = trained_target()
    folder = tmp_path_factory.mktemp("trained") / "m"
    write_model(folder)
    state = {n: t.contiguous() for n, t in knowing.network.state_dict().items()}
    save_file(state | trained_mtp(knowing), folder / "model.safetensors")
    return folder


def right(loaded, kind=HeadDrafter, change=lambda head: None):
    """How often the first guess is."""
    head = opened(loaded, loaded.loaded.precision)
    change(head)
    return acceptance(loaded.model, kind(head, loaded.model.device))[0]


def other_way_round(head):
    head._kind = replace(head._kind, hidden_first=True)


def before_the_last_layer(head):
    head.places = (1,)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_trained_head_is_right_far_beyond_chance_and_only_if_read_as_it_was_trained(
    trained, tmp_path, precision
):
    """Chance is 1/16. In int8 the states that it reads are turned, and turned back."""
    loaded = load(trained, cache_folder=tmp_path, precision=precision)
    whole = right(loaded)
    assert whole > 0.7
    assert right(loaded, late(HeadDrafter)) < 0.25
    assert right(loaded, change=other_way_round) < 0.25
    # what the layers before read is in that state too
    assert right(loaded, change=before_the_last_layer) < 0.7 * whole
    if precision == "int8":
        loaded.model.network.turned = None
        assert right(loaded) < 0.25
    loaded.close()
