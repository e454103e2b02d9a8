"""`slipstream fit`: which draft is meant, and what is said where the pair could not run."""

import json
import os
import re
import sys

import pytest

from app import listing
from app.__main__ import main
from engine import devices
from tests.folders import tiny_config, write_bare, write_gguf, write_json

TOKENS = [f"t{number}" for number in range(64)]
SAME = {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__tokens": TOKENS}
OTHER = {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__tokens": [*TOKENS[:9], "x"]}


@pytest.fixture
def folder(tmp_path):
    """A target, a draft, one of another vocabulary, a head, an adapter; in no library."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_gguf(
        folder / "target.gguf", {"token_embd.weight": [64, 640]}, general__name="Target", **SAME
    )
    write_gguf(
        folder / "small.gguf", {"token_embd.weight": [64, 64]}, general__name="Small", **SAME
    )
    write_gguf(
        folder / "other.gguf", {"token_embd.weight": [64, 64]}, general__name="Other", **OTHER
    )
    head = tiny_config(model_type="eagle3", architectures=["LlamaForCausalLMEagle3"])
    write_bare(folder / "head", None)
    write_json(folder / "head" / "config.json", head)
    (folder / "lora").mkdir()
    write_json(folder / "lora" / "adapter_config.json", {})
    return folder


def told(capsys, *arguments):
    """What is printed, as a table and as `reason` in JSON."""
    asked = ["fit", *map(str, arguments), "--device", "cpu"]
    assert main(asked) == 0
    table = capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    return table, json.loads(capsys.readouterr().out)["reason"]


@pytest.mark.parametrize("name", ["small", "Small", "small.gguf"])
def test_a_drafts_name_is_looked_for_beside_the_targets_path(folder, capsys, name):
    table, _ = told(capsys, folder / "target.gguf", "--draft", name)
    assert "\nSmall, " in table


def test_a_pair_that_can_run_has_no_caveat(folder, capsys):
    table, reason = told(capsys, folder / "target.gguf", "--draft", "small", "--context", "64")
    assert table.endswith(f"\n\n{reason}.\n")


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ("target", "This is the target itself."),
        ("head", "head: Another target: 262 tokens, not 64."),
        ("lora", "lora: An adapter, not a model of its own."),
    ],
)
def test_what_cannot_draft_is_said_in_a_sentence_below_the_verdict(folder, capsys, draft, said):
    table, reason = told(capsys, folder / "target.gguf", "--draft", draft)
    assert table.splitlines()[-1] == said
    assert reason.endswith(f". {said}")


def test_a_target_without_a_head_of_its_own_says_so(folder, capsys):
    table, reason = told(capsys, folder / "target.gguf", "--draft", "mtp")
    assert table.splitlines()[-1] == "Target has no head of its own."
    assert reason.endswith(". Target has no head of its own.")


def test_a_draft_of_another_vocabulary_can_run(folder, capsys):
    table, reason = told(capsys, folder / "target.gguf", "--draft", "other", "--context", "64")
    assert table.endswith(f"\n\n{reason}.\n")


def test_the_target_by_another_path_is_still_the_target(folder, capsys):
    os.symlink(folder / "target.gguf", folder / "again.gguf")
    table, _ = told(capsys, folder / "target.gguf", "--draft", folder / "again.gguf")
    assert table.splitlines()[-1] == "This is the target itself."


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("head", "head: Head for an unknown model: cannot be used yet."),
        ("lora", "lora: An adapter, not a model of its own."),
    ],
)
def test_what_is_no_target_is_said_too(folder, capsys, target, said):
    table, reason = told(capsys, folder / target)
    assert table.splitlines()[-1] == said
    assert reason.endswith(f". {said}")


def test_a_context_beyond_the_models_own_is_said(folder, capsys):
    write_gguf(
        folder / "short.gguf",
        {"token_embd.weight": [64, 64]},
        general__name="Short",
        llama__context_length=128,
        **SAME,
    )
    said = "Short is made for at most 128 tokens."
    for arguments in ([folder / "short.gguf"], [folder / "target.gguf", "--draft", "short"]):
        table, reason = told(capsys, *arguments, "--context", 129)
        assert table.splitlines()[-1] == said
        assert reason.endswith(f". {said}")
        assert said not in told(capsys, *arguments, "--context", 128)[0]


def test_a_device_that_is_none_is_refused(folder, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fit", str(folder / "target.gguf"), "--device", "banana"])
    assert caught.value.code == 2
    assert "invalid choice: 'banana'" in capsys.readouterr().err
    assert devices.DEVICES == listing.DEVICES


def test_no_torch_is_loaded_for_an_amd_or_intel_card(folder, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(devices, "built_for", lambda: "hip")
    for device in ("cuda", "xpu"):
        assert main(["fit", str(folder / "target.gguf"), "--device", device]) == 0
        said = capsys.readouterr().out
        assert re.search(r"(AMD|Intel) graphics card +unknown", said)
        assert "Unknown: " in said
    assert "torch" not in sys.modules
