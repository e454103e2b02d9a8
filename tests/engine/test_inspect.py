"""What headers and configurations say, and what is refused before a weight is read."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine import families
from engine.api import Kind
from engine.errors import EngineError, Incomplete, Unsafe, Unsupported
from engine.library.inspect import inspect, read_vocabulary, resolve, template_text
from engine.library.safetensors import read_header
from tests.folders import (
    CHATML,
    tiny_config,
    tokenizer_config,
    write_bare,
    write_gguf,
    write_json,
    write_model,
    write_safetensors,
    write_sharded,
)

LAYERS = {"model.layers.0.w": [2, 3], "model.layers.1.w": [4]}


@pytest.fixture
def folder(tmp_path):
    return write_bare(tmp_path / "model")


def problem(path: Path) -> EngineError:
    with pytest.raises(EngineError) as caught:
        inspect(path)
    return caught.value


def replaced(folder: Path, **config: object) -> Path:
    write_json(folder / "config.json", tiny_config(**config))
    return folder


# Facts


def test_a_whole_folder_says_what_it_is(tmp_path):
    folder = write_model(tmp_path / "Tiny-Model")
    (folder / "README.md").write_text("---\ntags: [a]\nlicense: apache-2.0\n---\n# Tiny\n")
    info = inspect(folder)
    assert (info.name, info.path, info.format) == ("Tiny-Model", folder, "safetensors")
    assert (info.architecture, info.kind) == ("llama", Kind.MODEL)
    assert (info.layers, info.hidden_size, info.context, info.vocab_size) == (2, 64, 512, 262)
    assert info.parameters == 107_584  # 2 x 262 x 64, 2 x 36 992, 64
    assert info.file_bytes == (folder / "model.safetensors").stat().st_size
    assert (info.licence, info.has_template, info.recurrent) == ("apache-2.0", True, False)


def test_shards_are_counted_together(tmp_path):
    single, sharded = write_model(tmp_path / "a"), write_sharded(tmp_path / "b")
    assert inspect(sharded).parameters == inspect(single).parameters
    assert inspect(sharded).file_bytes > inspect(single).file_bytes


@pytest.mark.parametrize(("tied", "counted"), [(True, 262 * 64), (False, 2 * 262 * 64)])
def test_a_tied_head_counts_once(tmp_path, tied, counted):
    shapes = {"model.embed_tokens.weight": [262, 64], "lm_head.weight": [262, 64]}
    folder = write_bare(tmp_path / "m", shapes, tie_word_embeddings=tied)
    assert inspect(folder).parameters == counted


def test_facts_are_found_in_a_nested_text_config(folder):
    text = {"model_type": "gemma3_text", "hidden_size": 640, "num_hidden_layers": 18}
    write_json(folder / "config.json", {"model_type": "gemma3", "text_config": text})
    info = inspect(folder)
    assert (info.architecture, info.hidden_size, info.layers) == ("gemma3", 640, 18)
    # what Gemma 3's configurations leave out
    assert info.context == 131_072


def test_a_cache_entry_is_named_by_its_repository(tmp_path):
    entry = tmp_path / "models--org--Some-Model"
    old = write_bare(entry / "snapshots" / "old")
    new = write_bare(entry / "snapshots" / "new")
    os.utime(old, (1, 1))
    (entry / "snapshots" / ".DS_Store").write_bytes(b"x")
    info = inspect(entry)
    assert (info.name, info.path) == ("Some-Model", new)


def test_a_gguf_says_what_it_is(tmp_path):
    path = write_gguf(
        tmp_path / "x.gguf",
        {"token_embd.weight": [20, 8], "blk.0.w": [8, 8]},
        general__name="Some Model 7B GGUF",
        general__license="mit",
        general__file_type=15,
        llama__block_count=3,
        llama__embedding_length=8,
        llama__context_length=1024,
        tokenizer__chat_template=CHATML,
    )
    info = inspect(path)
    assert (info.name, info.format, info.architecture) == ("Some Model 7B", "gguf", "llama")
    assert (info.layers, info.hidden_size, info.context, info.vocab_size) == (3, 8, 1024, 20)
    assert (info.parameters, info.quantisation, info.licence) == (224, "Q4_K_M", "mit")
    assert info.has_template
    assert template_text(path) == CHATML


@pytest.mark.parametrize(
    ("label", "counted"), [({}, 1000), ({"general__size_label": "1K"}, 1000),
                           ({"general__size_label": "2K"}, 2000)],
)  # fmt: skip
def test_a_copied_gguf_head_counts_by_the_label(tmp_path, label, counted):
    shapes = {"token_embd.weight": [100, 10], "output.weight": [100, 10]}
    assert inspect(write_gguf(tmp_path / "x.gguf", shapes, **label)).parameters == counted


def test_a_gguf_without_a_name_is_called_by_its_file(tmp_path):
    info = inspect(write_gguf(tmp_path / "my-model.q8.gguf", {"token_embd.weight": [2, 2]}))
    assert (info.name, info.quantisation) == ("my-model.q8", "F32")


def test_a_folder_with_one_gguf_is_that_gguf(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", {"token_embd.weight": [2, 2]})
    assert inspect(tmp_path).path == path


# WGT-1: missing, cut off, empty, dangling


def test_a_missing_shard_is_named(tmp_path):
    folder = write_sharded(tmp_path / "m")
    (folder / "model-00002-of-00002.safetensors").unlink()
    error = problem(folder)
    assert isinstance(error, Incomplete)
    assert error.reason.text == "model-00002-of-00002.safetensors is missing."


def test_a_tensor_that_its_shard_lacks_is_named(tmp_path):
    folder = write_sharded(tmp_path / "m")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.extra"] = "model-00001-of-00002.safetensors"
    write_json(folder / "model.safetensors.index.json", index)
    error = problem(folder)
    assert isinstance(error, Incomplete)
    assert error.reason.values["tensor"] == "model.extra"


def test_shards_without_their_index_are_incomplete(tmp_path):
    folder = write_sharded(tmp_path / "m")
    (folder / "model.safetensors.index.json").unlink()
    assert problem(folder).reason.text == "model.safetensors.index.json is missing."


def test_a_cut_off_file_says_how_much_is_there(folder):
    header = b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    content = len(header).to_bytes(8, "little") + header + bytes(10)
    (folder / "model.safetensors").write_bytes(content)
    error = problem(folder)
    assert isinstance(error, Incomplete)
    assert error.code == "file_cut_off"
    assert error.reason.values == {
        "file": "model.safetensors", "size": len(content), "needed": len(content) + 6,
    }  # fmt: skip


def test_a_file_cut_off_at_any_byte_is_incomplete(tmp_path):
    whole = write_safetensors(tmp_path / "w.safetensors", LAYERS).read_bytes()
    path = tmp_path / "cut.safetensors"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Incomplete, match=r"cut\.safetensors"):
            read_header(path)
    path.write_bytes(whole)
    assert {name: list(t.shape) for name, t in read_header(path).items()} == LAYERS


def test_an_empty_file_is_incomplete(folder):
    (folder / "model.safetensors").write_bytes(b"")
    assert problem(folder).reason.text == "model.safetensors is empty."


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer_config.json"])
def test_a_link_that_leads_nowhere_is_a_missing_file(folder, file):
    (folder / file).unlink()
    (folder / file).symlink_to(folder / "blobs" / "gone")
    error = problem(folder)
    assert isinstance(error, Incomplete)
    assert error.reason.text == f"{file} is missing."


def test_an_unfinished_download_is_named(folder):
    (folder / "model-2.safetensors.incomplete").write_bytes(b"half")
    error = problem(folder)
    assert isinstance(error, Incomplete)
    assert error.reason.values == {"file": "model-2.safetensors"}


def test_unfinished_blobs_of_the_cache_are_named_when_weights_are_missing(tmp_path):
    entry = tmp_path / "models--b--half"
    folder = write_bare(entry / "snapshots" / "rev")
    (entry / "blobs").mkdir()
    (entry / "blobs" / "abc.incomplete").write_bytes(b"half")
    assert inspect(entry).path == folder  # of some other revision
    (folder / "model.safetensors").unlink()
    assert problem(entry).reason.values == {"file": "half"}


def test_the_snapshot_of_main_is_taken_and_not_the_newest(tmp_path):
    """A newer one may be of a pull request, or hold one file that somebody asked for."""
    entry = tmp_path / "models--org--m"
    commits = "a" * 40, "b" * 40
    for age, commit in enumerate(commits):
        write_bare(entry / "snapshots" / commit)
        os.utime(entry / "snapshots" / commit, (age, age))
    main = entry / "refs" / "main"
    main.parent.mkdir()
    main.write_text(commits[0])
    assert resolve(entry) == entry / "snapshots" / commits[0]
    outside = write_bare(tmp_path / "outside")
    link = "../../outside"
    for said in (link, str(outside), ".", "", "c" * 40, "a" * 39, "a" * 10_000, "\u00e4" * 40):
        main.write_text(said)
        assert resolve(entry) == entry / "snapshots" / commits[1], said


def test_a_tensor_of_a_layer_without_end_is_counted_like_any(tmp_path):
    """Python refuses to read a number of so many digits."""
    name = f"model.layers.{'9' * 5000}.x.weight"
    shapes = {"model.embed_tokens.weight": [4, 4], name: [4]}
    assert inspect(write_bare(tmp_path / "m", shapes)).parameters == 20


def test_a_file_that_is_no_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "x.gguf"
    os.mkfifo(pipe)
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for the pipe"))
    signal.alarm(5)
    try:
        for read in (inspect, read_vocabulary, template_text):
            with pytest.raises(Incomplete, match="cannot be read"):
                read(pipe)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 12]},
        {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [True, 4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]},
        {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]},
        {"dtype": "F32", "shape": [4], "data_offsets": [0]},
        {"dtype": ["F32"], "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "Q9", "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": 4, "data_offsets": [0, 16]},
        "F32",
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, entry):
    path = tmp_path / "x.safetensors"
    header = json.dumps({"a": entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(Incomplete, match="tensor a "):
        read_header(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":%b,"a":%b}' % ((b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',) * 2),
        b'{"n":' + b"9" * 10_000 + b"}",
    ],
)
def test_a_header_that_is_no_json_object_is_refused(tmp_path, header):
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(1))
    with pytest.raises(Incomplete, match=r"x\.safetensors is damaged"):
        read_header(path)


def test_overlapping_tensors_and_extra_bytes_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    row = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    header = json.dumps({"a": row, "b": row}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(Incomplete):
        read_header(path)
    write_safetensors(path, LAYERS)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(Incomplete):
        read_header(path)


def test_a_configuration_of_absurd_size_is_not_read(folder):
    with (folder / "config.json").open("wb") as file:
        file.truncate(11 * 2**20)
    assert problem(folder).code == "file_too_large"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_place_of_a_file_does_not_block(folder):
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert problem(folder).reason.text == "config.json is damaged and cannot be read."


@pytest.mark.parametrize(
    "shard",
    ["../other/model.safetensors", "/etc/model.safetensors", "..", "a\\b.safetensors", "",
     "C:x.safetensors", "a\0.safetensors", "sub/x.safetensors"],
)  # fmt: skip
def test_an_index_does_not_lead_out_of_the_folder(folder, shard):
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": shard}})
    error = problem(folder)
    assert isinstance(error, Unsafe)
    assert error.code == "index_leads_out"


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": ["a"]}])
def test_an_index_that_names_nothing_is_damaged(folder, index):
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", index)
    assert problem(folder).reason.text.startswith("model.safetensors.index.json is damaged")


def test_nothing_there_is_incomplete(tmp_path):
    assert problem(tmp_path / "nowhere").reason.text == "nowhere is missing."
    assert isinstance(problem(tmp_path), Incomplete)


# EXE-1: pickles and custom code


class Marker:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "weights.PKL"]
)
def test_pickles_are_never_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Marker(tmp_path / "pwned")))
    for path in (folder, folder / name):
        error = problem(path)
        assert isinstance(error, Unsafe)
        assert "only safetensors are loaded" in error.reason.text
        assert name in error.reason.text
    assert not (tmp_path / "pwned").exists()


def test_an_index_of_pickles_is_refused(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "pytorch_model-00001-of-00002.bin"}}
    write_json(folder / "model.safetensors.index.json", index)
    assert problem(folder).code == "pickle"


def test_pickles_beside_safetensors_are_ignored(folder):
    before = inspect(folder)
    (folder / "pytorch_model.bin").write_bytes(b"x")
    assert inspect(folder) == before


@pytest.mark.parametrize(
    ("file", "auto_map", "code"),
    [
        ("config.json", {"AutoConfig": "cfg.C", "AutoModelForCausalLM": "m.M"}, "cfg.C, m.M"),
        ("tokenizer_config.json", {"AutoTokenizer": ["cfg.T", None]}, "cfg.T"),
        ("tokenizer_config.json", ["cfg.T", "cfg.F"], "cfg.T, cfg.F"),
        ("config.json", "odd", "odd"),
    ],
)
def test_custom_code_is_refused_by_name(folder, tmp_path, file, auto_map, code):
    (folder / "cfg.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')")
    known = tiny_config() if file == "config.json" else tokenizer_config()
    write_json(folder / file, known | {"auto_map": auto_map})
    error = problem(folder)
    assert isinstance(error, Unsafe)
    assert (error.reason.values["file"], error.reason.values["code"]) == (file, code)
    assert not (tmp_path / "pwned").exists()


def test_custom_code_of_a_nested_configuration_is_refused(folder):
    replaced(folder, text_config={"auto_map": {"AutoModel": "m.M"}})
    assert problem(folder).code == "custom_code"


def test_custom_code_is_refused_before_missing_weights_are_noticed(folder):
    (folder / "model.safetensors").unlink()
    assert problem(replaced(folder, auto_map={"AutoConfig": "a.B"})).code == "custom_code"


# What is no target and no draft


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000},
        {"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32000},
        {"architectures": ["DFlashDraftModel"], "dflash_config": {"mask_token_id": 1}},
        {"architectures": ["Qwen3NextMTP"]},
        {"architectures": ["X"], "speculators_config": {"algorithm": "eagle3"}},
        {"model_type": "gemma4_assistant", "architectures": ["Gemma4AssistantForCausalLM"]},
        {"model_type": "gemma4_unified_assistant", "architectures": None},
        {"model_type": "medusa", "architectures": None},
    ],
)
def test_drafting_heads_are_heads(folder, config):
    assert inspect(replaced(folder, **config)).kind is Kind.HEAD


def test_a_model_with_built_in_heads_is_a_model(folder):
    assert inspect(replaced(folder, num_nextn_predict_layers=1)).kind is Kind.MODEL


def test_an_adapter_is_an_adapter(tmp_path):
    write_json(tmp_path / "adapter_config.json", {"peft_type": "LORA"})
    write_safetensors(tmp_path / "adapter_model.safetensors", LAYERS)
    assert inspect(tmp_path).kind is Kind.ADAPTER


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"model_type": None}, "no_model_type"),
        ({"architectures": ["BertForMaskedLM"]}, "not_causal"),
        ({"architectures": ["CLIPModel"]}, "not_causal"),
        (
            {"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True},
            "not_causal",
        ),
        ({"quantization_config": {"quant_method": "mystery", "bits": 4}}, "quantised_unknown"),
    ],
)
def test_what_cannot_run_is_unsupported(folder, config, code):
    error = problem(replaced(folder, **config))
    assert isinstance(error, Unsupported)
    assert error.code == code


@pytest.mark.parametrize("architecture", ["bert", "nomic-bert", "clip", "t5encoder"])
def test_a_gguf_that_does_not_continue_text_is_unsupported(tmp_path, architecture):
    path = write_gguf(tmp_path / "x.gguf", {"a": [1]}, architecture=architecture)
    assert problem(path).code == "not_causal"


def test_a_gguf_adapter_is_an_adapter(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", {"a": [1]}, general__type="adapter")
    assert inspect(path).kind is Kind.ADAPTER


def test_other_files_are_no_models(folder):
    assert problem(folder / "config.json").code == "not_a_model"


# RBK-1: which models keep a running state


@pytest.mark.parametrize("model_type", ["mamba2", "lfm2", "qwen3_next", "falcon_h1", "minimax"])
def test_recurrent_families_are_known(folder, model_type):
    assert inspect(replaced(folder, model_type=model_type)).recurrent


@pytest.mark.parametrize(
    "layers",
    [
        {"layer_types": ["full_attention", "linear_attention"]},
        {"layer_types": ["conv", "full_attention"]},
        {"layers_block_type": ["mamba", "attention"]},
        {"block_types": ["recurrent", "attention"]},
        {"text_config": {"model_type": "new", "layer_types": ["hybrid"]}},
    ],
)
def test_an_unknown_family_is_recurrent_by_its_layers(folder, layers):
    assert inspect(replaced(folder, model_type="new", **layers)).recurrent


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma3_text", "minimax_m2", "phi3"])
def test_pure_attention_is_not_recurrent(folder, model_type):
    layers = ["full_attention", "sliding_attention", "chunked_attention"]
    assert not inspect(replaced(folder, model_type=model_type, layer_types=layers)).recurrent


@pytest.mark.parametrize(
    ("architecture", "metadata"),
    [("mamba", {}), ("lfm2", {}), ("qwen3next", {}), ("rwkv7", {}), ("falcon-h1", {}),
     ("granitehybrid", {}), ("unheard", {"unheard__ssm__state_size": 16}),
     ("unheard", {"unheard__shortconv__l_cache": 3})],
)  # fmt: skip
def test_recurrent_ggufs_are_known(tmp_path, architecture, metadata):
    path = write_gguf(tmp_path / "x.gguf", {"a": [1]}, architecture=architecture, **metadata)
    assert inspect(path).recurrent


def test_every_stateful_family_of_transformers_is_known():
    import transformers

    root = Path(transformers.__file__).parent / "models"
    stateful = {
        path.parent.name
        for path in root.glob("*/modeling_*.py")
        if "_is_stateful = True" in path.read_text(encoding="utf-8")
    }
    assert len(stateful) > 10
    assert {name for name in stateful if not families.is_recurrent(name, {})} == set()


# TPL-1: which template wins


def test_a_jinja_file_wins_over_the_other_places(folder):
    write_json(folder / "tokenizer_config.json", tokenizer_config(chat_template="OLD"))
    assert template_text(folder) == "OLD"
    write_json(folder / "chat_template.json", {"chat_template": "MIDDLE"})
    assert template_text(folder) == "MIDDLE"
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%d %b %Y %H:%M') }} ü")
    assert template_text(folder) == "{{ strftime_now('%d %b %Y %H:%M') }} ü"
    assert inspect(folder).has_template


def test_of_named_templates_the_default_is_taken(folder):
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    write_json(folder / "tokenizer_config.json", tokenizer_config(chat_template=named))
    assert template_text(folder) == "D"


def test_a_model_without_template_says_so(folder):
    assert template_text(folder) is None
    assert not inspect(folder).has_template


# The vocabulary


def test_the_vocabulary_is_read_from_a_folder(folder):
    vocabulary = read_vocabulary(folder)
    assert len(vocabulary.tokens) == 262
    assert vocabulary.tokens[10] == b"\n"
    assert vocabulary.special == frozenset(range(256, 262))


def test_the_vocabulary_is_read_from_a_gguf(tmp_path):
    path = write_gguf(
        tmp_path / "x.gguf",
        {"token_embd.weight": [3, 2]},
        tokenizer__ggml__model="gpt2",
        tokenizer__ggml__tokens=["a", "Ġb", "<s>"],
        tokenizer__ggml__token_type=[1, 1, 3],
    )
    assert read_vocabulary(path).tokens == (b"a", b" b", b"<s>")


def test_a_missing_tokenizer_is_named(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Incomplete, match=r"tokenizer\.json is missing"):
        read_vocabulary(folder)


def test_the_library_stays_light():
    code = (
        "import sys, engine.library.scan, engine.guidance, app.paths\n"
        "print([m for m in ('torch', 'transformers', 'PySide6') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["---\n" + "\n" * 60_000, "---" * 20_000, "--- \n" * 10_000])
def test_a_senseless_readme_costs_no_time(tmp_path, text):
    folder = write_bare(tmp_path / "model")
    (folder / "README.md").write_text(text)
    began = time.monotonic()
    assert inspect(folder).licence is None
    assert time.monotonic() - began < 1


def test_a_senseless_name_costs_no_time(tmp_path):
    path = tmp_path / "m.gguf"
    write_gguf(path, {"output_norm.weight": [64]}, general__name="_" * 200_000)
    began = time.monotonic()
    assert len(inspect(path).name) <= 200
    assert time.monotonic() - began < 1
