"""Folders and files become running models, or are refused before anything of theirs runs."""

import contextlib
import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import devices, loading
from engine.errors import Cancelled, Incomplete, LoadError, OutOfMemory, Unsafe
from engine.fit import Pair
from engine.loading import load, out_of_memory
from engine.placement import judge_each, place, settle
from engine.session import Session
from tests.engine.test_fit import card
from tests.engine.test_fit import model as sized
from tests.folders import (
    EOS,
    IM_END,
    THINK,
    tiny_config,
    tokenizer_config,
    write_json,
    write_model,
    write_sharded,
)
from tests.gguf_files import byte_level_metadata, converted, settings, write_gguf


@pytest.fixture
def opened(tmp_path):
    """Loads, and closes what was loaded."""
    models = []

    def open_(path, **options):
        models.append(load(path, cache_folder=tmp_path / "cache", **options))
        return models[-1]

    yield open_
    for model in models:
        model.close()


def logits(loaded):
    return loaded.model.forward([1, 2, 3, 4])


def test_a_sharded_folder_is_the_same_model(opened, tmp_path):
    single = opened(write_model(tmp_path / "single"))
    sharded = opened(write_sharded(tmp_path / "sharded"))
    # not to the bit: where a weight lies in memory may change how it is summed
    torch.testing.assert_close(logits(single), logits(sharded))


def test_what_is_loaded_is_described(opened, tmp_path):
    loaded = opened(write_model(tmp_path / "model")).loaded
    assert (loaded.device, loaded.precision, loaded.context) == ("cpu", "int8", 512)
    assert loaded.cache_precision == "fp32"
    assert loaded.bit_exact
    assert loaded.notes == ()


def test_a_coarser_precision_takes_less_memory(opened, tmp_path):
    path = write_model(tmp_path / "model")
    sizes = [
        opened(path, precision=p).loaded.memory_bytes for p in ("int4", "int8", "bf16", "fp32")
    ]
    assert sizes == sorted(set(sizes))


def test_closing_gives_the_weights_back(opened, tmp_path):
    loaded = opened(write_model(tmp_path / "model"))
    loaded.close()
    assert {p.device.type for p in loaded.model.network.parameters()} == {"meta"}


def test_a_cache_entry_is_opened_at_its_snapshot(opened, tmp_path):
    snapshot = tmp_path / "models--org--tiny" / "snapshots" / "abc"
    write_model(snapshot)
    assert opened(tmp_path / "models--org--tiny").loaded.info.name == "tiny"


@pytest.mark.parametrize(
    ("generation", "config", "tokenizer", "expected"),
    [
        ({"eos_token_id": 5}, {"eos_token_id": 6}, None, {5}),
        ({}, {"eos_token_id": [6, 7]}, None, {6, 7}),
        ({"eos_token_id": [5, 6]}, {}, "<|im_end|>", {5, 6, IM_END}),
        ({"eos_token_id": None}, {"eos_token_id": None}, None, set()),
        ({"eos_token_id": "x"}, {}, {"content": "</s>"}, {EOS}),
    ],
)
def test_end_tokens_come_from_the_folders_files(
    opened, tmp_path, generation, config, tokenizer, expected
):
    path = write_model(tmp_path / "model", config=tiny_config() | config)
    write_json(path / "generation_config.json", generation)
    write_json(path / "tokenizer_config.json", {"eos_token": tokenizer} if tokenizer else {})
    assert opened(path).tokenizer.eos_ids == expected


@pytest.mark.parametrize(
    ("settings_of_folder", "expected"),
    [
        ({"do_sample": True, "temperature": 0.6, "top_k": 20}, (0.6, 20, None)),
        ({"do_sample": False, "temperature": 0.6}, (0.0, None, None)),
        ({"temperature": "hot", "top_k": True, "top_p": 7}, (None, None, None)),
        ({"top_p": 0.9, "top_k": -3}, (None, None, 0.9)),
    ],
)
def test_sampling_defaults_come_from_the_folder(opened, tmp_path, settings_of_folder, expected):
    path = write_model(tmp_path / "model")
    write_json(path / "generation_config.json", settings_of_folder)
    defaults = opened(path).loaded.defaults
    assert (defaults.temperature, defaults.top_k, defaults.top_p) == expected


def test_a_missing_shard_is_named_and_nothing_is_loaded(opened, tmp_path):
    """WGT-1 a."""
    path = write_sharded(tmp_path / "model")
    (path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(Incomplete, match=r"model-00002-of-00002\.safetensors"):
        opened(path)


@pytest.mark.parametrize("size", [0, 4, 50, 3000])
def test_a_cut_off_file_is_named(opened, tmp_path, size):
    """WGT-1 b and c."""
    path = write_model(tmp_path / "model")
    data = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(data[:size])
    with pytest.raises(Incomplete, match=r"model\.safetensors"):
        opened(path)


def test_a_tensor_that_no_file_holds_is_named(opened, tmp_path):
    """WGT-1: never random numbers in place of weights."""
    path = write_model(tmp_path / "model", layers=1)
    write_json(path / "config.json", tiny_config())
    with pytest.raises(Incomplete, match=r"model\.layers\.1\."):
        opened(path)


def test_a_tensor_of_another_shape_is_named(opened, tmp_path):
    path = write_model(tmp_path / "model")
    write_json(path / "config.json", tiny_config(vocab_size=300))
    with pytest.raises(LoadError):
        opened(path)


class Touch:
    """Pickled, it creates a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_never_opened(opened, tmp_path):
    """EXE-1 a."""
    path = write_model(tmp_path / "model")
    (path / "model.safetensors").unlink()
    marker = tmp_path / "pwned_bin"
    (path / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(marker)))
    with pytest.raises(Unsafe, match="safetensors"):
        opened(path)
    assert not marker.exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_in_a_folder_is_never_run(opened, tmp_path, file):
    """EXE-1 b and c."""
    path = write_model(tmp_path / "model")
    marker = tmp_path / "pwned_map"
    for name in ("cfg.py", "m.py"):
        (path / name).write_text(f"open({str(marker)!r}, 'w')\nclass C: ...\nclass M: ...\n")
    own = {"AutoConfig": "cfg.C", "AutoModelForCausalLM": "m.M", "AutoTokenizer": ["cfg.C", None]}
    content = tiny_config() if file == "config.json" else tokenizer_config()
    write_json(path / file, content | {"auto_map": own})
    with pytest.raises(Unsafe, match=r"cfg\.C"):
        opened(path)
    assert not marker.exists()


def test_the_weights_come_from_where_they_were_checked(opened, tmp_path):
    """EXE-1: transformers would follow `transformers_weights`, to a pickle even."""
    path = write_model(tmp_path / "model")
    marker = tmp_path / "pwned_bin"
    (path / "adapter_model.bin").write_bytes(pickle.dumps(Touch(marker)))
    for config in (
        {"transformers_weights": "adapter_model.bin"},
        {"text_config": {"transformers_weights": "other.safetensors"}},
        {"_attn_implementation": "somebody/compiled-attention"},
    ):
        write_json(path / "config.json", tiny_config() | config)
        with pytest.raises(Unsafe) as refused:
            opened(path)
        assert refused.value.code == "redirect"
    assert not marker.exists()


def test_a_tokenizer_saved_with_truncation_and_padding_does_neither(opened, tmp_path):
    import tokenizers

    path = write_model(tmp_path / "model")
    saved = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    saved.enable_truncation(max_length=8)
    saved.enable_padding(length=40)
    saved.save(str(path / "tokenizer.json"))
    assert len(opened(path).tokenizer.encode("x" * 20)) == 20


@pytest.mark.parametrize("context", [-5, 0, 10**30, "many", None])
def test_a_senseless_context_is_not_believed(opened, tmp_path, context):
    path = write_model(tmp_path / "model")
    write_json(path / "config.json", tiny_config(max_position_embeddings=context or 512))
    with contextlib.suppress(LoadError):  # transformers itself refuses some of them
        assert 0 < opened(path).loaded.context <= 32_768


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.cuda.OutOfMemoryError("x"), True),
        (MemoryError(), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 5 GB)"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_every_way_to_say_that_memory_ran_out_is_understood(error, is_one):
    """OOM-1, for its whole kind."""
    assert out_of_memory(error) is is_one


@pytest.mark.parametrize("broken", ["{", "[]", '{"model": 5}', '"x"'])
def test_a_damaged_tokenizer_is_named(opened, tmp_path, broken):
    path = write_model(tmp_path / "model")
    (path / "tokenizer.json").write_text(broken)
    with pytest.raises(Incomplete, match=r"tokenizer\.json"):
        opened(path)


@pytest.mark.parametrize("file", ["generation_config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("broken", ["{", "[1]", "[" * 100_000])
def test_damaged_settings_are_named(opened, tmp_path, file, broken):
    path = write_model(tmp_path / "model")
    (path / file).write_text(broken)
    with pytest.raises(Incomplete, match=file.replace(".", r"\.")):
        opened(path)


def test_a_model_without_a_tokenizer_is_refused(opened, tmp_path):
    with pytest.raises(Incomplete, match=r"tokenizer\.json"):
        opened(write_model(tmp_path / "model", tokenizer=False))


def test_an_unknown_architecture_is_refused(opened, tmp_path):
    path = write_model(tmp_path / "model")
    write_json(path / "config.json", tiny_config(model_type="nobody_knows"))
    with pytest.raises(LoadError):
        opened(path)


def test_loading_stops_when_asked(opened, tmp_path):
    path = write_model(tmp_path / "model")
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        opened(path, stopped=lambda: next(asked, True))


def test_an_unknown_device_names_those_there_are(opened, tmp_path):
    with pytest.raises(LoadError, match="cpu"):
        opened(write_model(tmp_path / "model"), device="tpu")


def test_running_out_of_memory_while_loading_is_said(opened, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    def run_out(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    path = write_model(tmp_path / "model")
    monkeypatch.setattr(AutoModelForCausalLM, "from_config", run_out)
    with pytest.raises(OutOfMemory, match="model"):
        opened(path)


SAMPLE = "The quick brown fox jumps over the lazy dog. " * 4


def test_tensors_that_have_their_own_names_are_read_one_by_one(opened, tmp_path, monkeypatch):
    """transformers' own loading holds the whole model in 16 bits first."""
    from transformers import AutoModelForCausalLM

    def refuse(*_, **__):
        raise AssertionError("the whole model was loaded")

    path = write_model(tmp_path / "model")
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", refuse)
    assert opened(path, precision="bf16").loaded.bit_exact


def test_tensors_of_other_names_go_through_the_library_and_are_packed_all_the_same(
    opened, tmp_path
):
    """As mixtures are stored: each expert apart."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from tests.families import FAMILIES

    path = write_model(tmp_path / "model", config=dict(FAMILIES["qwen2_moe"]))
    expected = logits(opened(path, precision="fp32"))
    whole = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    (path / "model.safetensors").unlink()
    whole.save_pretrained(path)
    assert AutoConfig.from_pretrained(path).model_type == "qwen2_moe"
    apart = opened(path, precision="fp32")
    assert apart.loaded.bit_exact
    assert torch.equal(logits(apart), expected)


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_a_second_load_takes_the_kept_weights(opened, tmp_path, monkeypatch, precision):
    from engine.checkpoint import FolderWeights

    path = write_model(tmp_path / "model")
    expected = logits(opened(path, precision=precision))

    def refuse(weights, name, read=FolderWeights.read):
        # one norm's factors, for whoever reads hidden states
        assert (precision, name) == ("int8", "model.norm.weight"), "read again"
        return read(weights, name)

    monkeypatch.setattr(FolderWeights, "read", refuse)
    assert torch.equal(logits(opened(path, precision=precision)), expected)


def test_weights_that_changed_on_disk_are_quantised_anew(opened, tmp_path):
    path = write_model(tmp_path / "model")
    before = logits(opened(path))
    write_model(path, seed=2)
    after = logits(opened(path))
    assert not torch.equal(before, after)
    assert torch.equal(logits(opened(path, precision="int8")), after)


def test_int8_that_costs_too_much_gives_way_to_bf16_and_it_is_said(opened, tmp_path, monkeypatch):
    from engine import loading

    measured = []
    monkeypatch.setattr(loading, "rise", lambda *_: measured.append(1) or 0.05)
    path = write_model(tmp_path / "model")
    first = opened(path, sample=SAMPLE).loaded
    assert first.precision == "bf16"
    (note,) = first.notes
    assert note.code == "int8_costs_quality"
    assert "5.0 %" in note.text
    assert opened(path, sample=SAMPLE).loaded.precision == "bf16"
    # who asks for int8 gets it, and is told
    asked = opened(path, precision="int8", sample=SAMPLE).loaded
    assert (asked.precision, asked.notes[0].code) == ("int8", "int8_is_worse")
    assert len(measured) == 1


def test_what_int8_costs_is_measured_once_and_without_a_text_never(opened, tmp_path, monkeypatch):
    from engine import loading

    measured = []
    real = loading.rise
    monkeypatch.setattr(loading, "rise", lambda *a: measured.append(1) or real(*a))
    path = write_model(tmp_path / "model")
    assert opened(path).loaded.precision == "int8"
    assert measured == []
    for _ in range(2):
        heard = []
        opened(path, precision="int8", sample=SAMPLE, progress=heard.append)
        assert len(measured) == 1
    assert not [p for p in heard if p.stage == "quality"]


@pytest.mark.parametrize("stage", ["weights", "quality", "exactness"])
def test_a_stop_in_any_stage_leaves_nothing_half_done(opened, tmp_path, stage):
    path = write_model(tmp_path / "model")
    expected = logits(opened(path, precision="int8"))
    cache = tmp_path / "another cache"
    reached = []

    def progress(heard):
        reached.append(heard.stage)

    with pytest.raises(Cancelled):
        load(
            path,
            cache_folder=cache,
            precision="int8",
            sample=SAMPLE,
            progress=progress,
            stopped=lambda: stage in reached,
        )
    assert not list(cache.rglob("*.partial"))
    again = load(path, cache_folder=cache, precision="int8", sample=SAMPLE)
    assert torch.equal(logits(again), expected)
    assert again.loaded.bit_exact
    again.close()


def test_what_was_checked_is_not_checked_again(opened, tmp_path):
    path = write_model(tmp_path / "model")
    for precision in ("bf16", "int8"):
        stages = []
        for _ in range(2):
            heard = []
            assert opened(path, precision=precision, progress=heard.append).loaded.bit_exact
            stages.append({p.stage for p in heard})
            assert all(p.done == p.total for p in heard[-1:])
        assert "exactness" in stages[0]
        assert "exactness" not in stages[1]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8", "int4"])
def test_a_gguf_runs_at_every_precision_and_exactly(opened, tmp_path, precision):
    path, model = tiny_gguf(tmp_path)
    first = opened(path, precision=precision)
    assert (first.loaded.precision, first.loaded.bit_exact) == (precision, True)
    found = logits(first)
    assert torch.equal(logits(opened(path, precision=precision)), found)
    with torch.inference_mode():
        expected = model(torch.tensor([[1, 2, 3, 4]])).logits[0, -1:]
    near = {"fp32": 1e-4, "bf16": 0.05, "int8": 0.1, "int4": 1.0}[precision]
    assert (found - expected).norm() < near * expected.norm()


def tiny_gguf(folder, **more):
    """A tiny llama with the byte tokenizer as a GGUF file."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**tiny_config())).eval()
    metadata = settings(model.config) | byte_level_metadata()
    metadata |= {"tokenizer.chat_template": "{{ messages[0].content }}"} | more
    path = folder / "tiny.gguf"
    write_gguf(path, "llama", metadata, converted(model, "llama"), "F32")
    return path, model


def test_a_gguf_is_the_model_it_was_made_from(opened, tmp_path):
    path, model = tiny_gguf(tmp_path)
    loaded = opened(path, precision="fp32")
    with torch.inference_mode():
        expected = model(torch.tensor([[1, 2, 3, 4]])).logits[0, -1:]
    torch.testing.assert_close(logits(loaded), expected, rtol=1e-4, atol=1e-5)
    assert loaded.tokenizer.template is not None


def test_a_tokenizer_built_from_a_gguf_is_built_once(opened, tmp_path, monkeypatch):
    from engine import tokenizer_files

    built = []
    build = tokenizer_files._build
    monkeypatch.setattr(tokenizer_files, "_build", lambda *a: built.append(1) or build(*a))
    path, _ = tiny_gguf(tmp_path)
    first = opened(path).tokenizer.encode("Hello")
    assert opened(path).tokenizer.encode("Hello") == first
    assert len(built) == 1
    (kept,) = (tmp_path / "cache" / "tokenizers").iterdir()
    kept.write_text("damaged")
    assert opened(path).tokenizer.encode("Hello") == first
    assert len(built) == 2


def test_building_a_tokenizer_stops_when_asked_and_leaves_nothing_behind(opened, tmp_path):
    path, _ = tiny_gguf(tmp_path)
    asked = []
    with pytest.raises(Cancelled):
        opened(path, stopped=lambda: asked.append(1) or len(asked) > 1)
    assert list((tmp_path / "cache" / "tokenizers").iterdir()) == []


def test_a_tokenizer_that_cannot_be_built_says_why(opened, tmp_path):
    path, _ = tiny_gguf(tmp_path, **{"tokenizer.ggml.pre": "nobody-knows"})
    with pytest.raises(LoadError, match="nobody-knows"):
        opened(path)


def test_loading_a_gguf_stops_when_asked(opened, tmp_path):
    path, _ = tiny_gguf(tmp_path)
    with pytest.raises(Cancelled):
        opened(path, stopped=lambda: True)


def test_loading_a_gguf_stops_in_the_middle_of_a_tensor(opened, tmp_path, monkeypatch):
    """The largest tensor of a real model takes seconds."""
    from engine.gguf import blocks

    monkeypatch.setattr(blocks, "CHUNK", 1024)
    path, model = tiny_gguf(tmp_path)
    asked = []
    with pytest.raises(Cancelled):
        opened(path, stopped=lambda: asked.append(1) or len(asked) > 12)
    assert model.model.embed_tokens.weight.numel() > 12 * 1024


def test_thinking_tags_are_tokens_of_the_fixture():
    """The fixture's own promise, which the tokenizer tests build on."""
    assert THINK == 260


@pytest.mark.parametrize(
    ("code", "expected"), [(12, "nvml_no_driver"), (18, "nvml_mismatch"), (15, "nvml_failed")]
)
def test_nvml_that_fails_is_a_reason_not_an_error(monkeypatch, code, expected):
    """GPU-1 rows 2, 3 and 7, as far as asking once goes."""
    import sys
    import types

    class NVMLError(Exception):
        value = code

    def fail():
        raise NVMLError

    stub = types.SimpleNamespace(nvmlInit=fail, NVMLError=NVMLError)
    monkeypatch.setitem(sys.modules, "pynvml", stub)
    cards, reason = devices.gpus()
    assert (cards, reason.code) == ([], expected)


def test_a_driver_that_goes_away_is_a_reason_not_an_error(monkeypatch):
    """GPU-1 row 7: it started, then every call fails, the last one too."""
    import sys
    import types

    class NVMLError(Exception):
        value = 15

    def fail(*_):
        raise NVMLError

    calls = {"nvmlDeviceGetCount": fail, "nvmlShutdown": fail}
    stub = types.SimpleNamespace(nvmlInit=lambda: None, **calls)
    monkeypatch.setitem(sys.modules, "pynvml", stub)
    cards, reason = devices.gpus()
    assert (cards, reason.code) == ([], "nvml_failed")


def test_a_missing_nvml_is_a_reason_not_an_error(monkeypatch):
    """GPU-1 row 1."""
    import sys

    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert devices.gpus()[1].code == "nvml_missing"


def test_no_kernel_is_ever_fetched():
    from transformers.integrations import hub_kernels

    assert not hub_kernels._kernels_enabled


@pytest.fixture
def places_of(monkeypatch, tmp_path):
    """Where a session puts the modules of a target of 32 layers, on cards with so much room."""
    folder = write_model(tmp_path / "m", config=tiny_config(num_hidden_layers=32))
    session, given = Session(tmp_path / "cache"), []
    network = loading.skeleton(loading.stock.own_config(folder))

    def of_folder(path, places, *others, **more):
        given.append(places)
        raise LoadError("far_enough", "far enough")

    monkeypatch.setattr(loading, "pick", lambda device: "cuda")
    monkeypatch.setattr(loading, "skeleton", lambda config: network)
    monkeypatch.setattr(loading.stock, "of_folder", of_folder)

    def load_it(info, rooms, pair=None):
        monkeypatch.setattr(loading, "rooms", lambda device: rooms)
        monkeypatch.setattr(loading, "inspect", lambda path: replace(info, path=path))
        with pytest.raises(LoadError, match="far enough"):
            session.load_target(folder, precision="bf16", pair=pair)
        return given.pop()

    return load_it


def test_what_is_loaded_is_what_was_judged(places_of):
    """Whatever the pair, the context and the cards, and whatever else they hold by then."""
    chosen, seen = random.Random(4), set()
    for _ in range(24):
        draft = chosen.choice([None, sized(0.5), sized(3)])
        pair = Pair(sized(chosen.choice([9, 14, 30])), "bf16", chosen.randint(512, 40_000), draft)
        pair = replace(pair, layers_in_ram=chosen.choice([0, 0, 6]))
        cards = [card(chosen.randint(6, 40)) for _ in range(chosen.randint(1, 3))]
        later = [card(40, free=chosen.randint(0, 40)) for _ in cards]
        judged = judge_each(pair, cards)
        places = places_of(pair.target, later, settle(pair, cards))
        if places == "cuda":
            places = {f"model.layers.{layer}": 0 for layer in range(32)}
        layers = [places[f"model.layers.{layer}"] for layer in range(32)]
        assert layers.count("cpu") == pair.layers_in_ram
        found = tuple(layers.count(place) for place in range(len(cards)))
        assert judge_each(replace(pair, on_cards=found), cards) == judged
        seen.add((judged[0].word, sum(count > 0 for count in found)))
    assert len(seen) > 4


def test_a_pair_that_is_not_settled_is_placed_when_it_is_loaded(places_of):
    cards = [card(24), card(24)]
    pair = Pair(sized(14), "bf16", 32_768, sized(0.5), "bf16")
    for asked in (pair, None):
        places = places_of(pair.target, cards, asked)
        placed = place(asked or replace(pair, context=8192, draft=None), cards)
        assert list(places.values()).count(1) == placed.on_cards[1] > 0
    # all of it is on the first card: nothing is mapped
    assert places_of(pair.target, [card(80)]) == "cuda"
