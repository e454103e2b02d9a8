"""Models that other programs keep: their folders are found, Ollama's names and blobs read."""

import hashlib
import json
from pathlib import Path

import pytest

from engine.api import Kind
from engine.errors import LoadError
from engine.library import stores
from engine.library.inspect import inspect
from engine.library.scan import find, scan
from tests.folders import write_gguf

SHAPES = {"token_embd.weight": [256, 64], "blk.0.attn_q.weight": [64, 64]}


def keep(root: Path, name: str, tag: str = "latest", shapes=SHAPES, host="registry.ollama.ai"):
    """A model as Ollama keeps it: a blob by its hash, and a manifest that names it."""
    (root / "blobs").mkdir(parents=True, exist_ok=True)
    file = write_gguf(root / "blobs" / "made.gguf", shapes, general__name=name)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    blob = file.rename(root / "blobs" / f"sha256-{digest}")
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64},
        {"mediaType": stores.MODEL_LAYER, "digest": f"sha256:{digest}"},
    ]
    manifest = root / "manifests" / host / "library" / name / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob


def layer(digest):
    """A manifest of one model layer."""
    return json.dumps({"layers": [{"mediaType": stores.MODEL_LAYER, "digest": digest}]})


@pytest.fixture
def ollama(tmp_path):
    return tmp_path / "ollama"


def test_ollamas_models_bear_the_names_that_it_shows(ollama):
    blob = keep(ollama, "llama3.2", "3b")
    keep(ollama, "mine", host="example.org")
    found = {entry.name: entry for entry in scan([ollama])}
    assert set(found) == {"llama3.2:3b", "example.org/library/mine:latest"}
    assert found["llama3.2:3b"].path == blob
    assert found["llama3.2:3b"].info.format == "gguf"
    assert find("llama3.2:3b", [ollama]) == blob


def test_a_blob_is_inspected_like_any_gguf(ollama):
    assert inspect(keep(ollama, "tiny")).vocab_size == 256


def test_a_blob_that_is_missing_is_an_entry_with_its_problem(ollama):
    keep(ollama, "tiny").unlink()
    (entry,) = scan([ollama])
    assert entry.name == "tiny:latest"
    assert "missing" in entry.problem.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"layers": 3}',
        '{"layers": [3]}',
        '{"layers": [{"mediaType": "x"}]}',
        json.dumps({"layers": [{"mediaType": stores.MODEL_LAYER, "digest": "../../etc/passwd"}]}),
        json.dumps(
            {"layers": [{"mediaType": stores.MODEL_LAYER, "digest": ["sha256:" + "a" * 64]}]}
        ),
    ],
)
def test_a_manifest_that_says_nothing_hides_no_other(ollama, text):
    keep(ollama, "good")
    broken = ollama / "manifests" / "registry.ollama.ai" / "library" / "bad" / "latest"
    broken.parent.mkdir()
    broken.write_text(text)
    assert [entry.name for entry in scan([ollama])] == ["good:latest"]


def test_a_model_of_two_tags_is_one_with_both_names(ollama):
    blob = keep(ollama, "tiny", "1b")
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "1b"
    (manifest.parent / "latest").write_bytes(manifest.read_bytes())
    (entry,) = scan([ollama])
    assert entry.name == "tiny:1b, tiny:latest"
    assert find("tiny:latest", [ollama]) == find("tiny:1b", [ollama]) == blob


def test_a_model_with_an_adapter_is_shown_as_that(ollama):
    """And the model that it was made upon under its own name alone."""
    base = keep(ollama, "tiny")
    made = write_gguf(ollama / "blobs" / "made", SHAPES, general__type="adapter")
    adapter = made.rename(made.with_name(f"sha256-{'a' * 64}"))
    layers = [
        {"mediaType": stores.MODEL_LAYER, "digest": base.name.replace("-", ":")},
        {"mediaType": stores.ADAPTER_LAYER, "digest": adapter.name.replace("-", ":")},
    ]
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "tuned" / "latest"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"layers": layers}))
    found = {entry.name: entry for entry in scan([ollama])}
    assert found["tiny:latest"].path == base
    assert found["tuned:latest"].path == adapter
    assert found["tuned:latest"].info.kind is Kind.ADAPTER


def test_a_blob_by_another_name_is_no_model(tmp_path):
    (tmp_path / "sha256-12").write_bytes(b"GGUF")
    with pytest.raises(LoadError, match="neither a model folder nor a GGUF"):
        inspect(tmp_path / "sha256-12")


def test_folders_are_found_where_the_programs_say(tmp_path):
    home = tmp_path / "home"
    places = [
        home / ".cache" / "huggingface" / "hub",
        home / ".lmstudio" / "models",
        home / ".ollama" / "models",
    ]
    for place in places:
        place.mkdir(parents=True)
    assert [f for f in stores.folders(home, {}) if home in f.parents] == places


@pytest.mark.parametrize(
    ("variable", "value", "found"),
    [
        ("HF_HUB_CACHE", "elsewhere", "elsewhere"),
        ("HF_HOME", "elsewhere", "elsewhere/hub"),
        ("XDG_CACHE_HOME", "elsewhere", "elsewhere/huggingface/hub"),
        ("OLLAMA_MODELS", "elsewhere", "elsewhere"),
    ],
)
def test_the_environment_moves_them(tmp_path, variable, value, found):
    (tmp_path / found).mkdir(parents=True)
    folders = stores.folders(tmp_path / "home", {variable: str(tmp_path / value)})
    assert tmp_path / found in folders
