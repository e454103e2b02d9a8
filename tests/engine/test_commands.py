"""Commands of other programs for a pair: the right options, and names that a shell leaves whole."""

import json
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from engine.api import ModelInfo
from engine.commands import METHODS, TYPES, Command, Method, Setting, command, method_of
from engine.errors import EngineError

NAMES = [
    "plain",
    "two words",
    "it's",
    'say "hi"',
    "$HOME and `id` and $(id)",
    "a; touch pwned",
    "two\nlines\n",
    "tab\tand\\back\\",
    "* ? [a] {b,c} ~ ! # & | < > ( )",
    "Größe 日本 🦙",
    "-n",
    "",
]


def info(path, **changes):
    settings = {"name": Path(path).stem, "path": Path(path), "format": "gguf"}
    return ModelInfo(**(settings | {"architecture": "llama", "vocab_size": 100} | changes))


TARGET, DRAFT = info("/m/target.gguf"), info("/m/draft.gguf")
HEADS = ("eagle3", "p-eagle", "dflash", "dspark", "assistant", "pard")


def setting(method="none", **changes):
    draft = DRAFT if method in ("model", *HEADS) else None
    return Setting(
        **({"target": TARGET, "context": 4096, "method": method, "draft": draft} | changes)
    )


def as_a_shell_reads(text):
    """The words of a command line, told by a shell that prints them in place of running them."""
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True, timeout=20
    )
    return tuple(done.stdout.decode().split("\0")[:-1])


@pytest.mark.parametrize("peer", ["llama-server", "vLLM"])
@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_the_words_that_were_meant(tmp_path, monkeypatch, peer, name):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    target, draft = info(f"/m/{name}/t.gguf"), info(f"{name} d", format="safetensors", name=name)
    made = command(peer, setting("model", target=target, draft=draft))
    assert as_a_shell_reads(made.text) == made.words
    assert any(name in word for word in made.words)
    assert not list(empty.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_json_is_the_name_again(name):
    repositories = ("owner/target", f"owner/{name}")
    made = command("vLLM", setting("model", repositories=repositories))
    words = as_a_shell_reads(made.text)
    assert words[2] == "owner/target"
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["model"] == f"owner/{name}"


def test_no_name_is_an_option():
    for peer in ("llama-server", "vLLM"):
        made = command(peer, setting(target=info("-x.gguf")))
        assert "./-x.gguf" in made.words


@pytest.mark.parametrize("peer", ["llama-server", "vLLM"])
def test_a_name_that_is_no_text_has_no_command(peer):
    with pytest.raises(EngineError) as refused:
        command(peer, setting(target=info("/m/\udcff.gguf")))
    assert refused.value.code == "name_no_text"


LLAMA = {
    "none": "--spec-type none",
    "ngram": "--spec-type ngram-simple --spec-ngram-simple-size-m 8",
    "chain": "--spec-type ngram-mod",
    "model": "--spec-type draft-simple --spec-draft-n-max 4 --spec-draft-p-min 0.75",
    "eagle3": "--spec-type draft-eagle3 --spec-draft-n-max 3",
    "dflash": "--spec-type draft-dflash --spec-draft-n-max 15",
    "dspark": "--spec-type draft-dspark --spec-draft-n-max 7",
    "mtp": "--spec-type draft-mtp --spec-draft-n-max 1",
    "assistant": "--spec-type draft-mtp --spec-draft-n-max 1",
}


@pytest.mark.parametrize("method", LLAMA)
def test_llama_server_is_told_its_type_and_its_length(method):
    made = command("llama-server", setting(method))
    first, drafting, room = made.groups
    assert " ".join(drafting) == LLAMA[method]
    draft = ("-md", "/m/draft.gguf") if method in ("model", *HEADS) else ()
    assert first == ("llama-server", "-m", "/m/target.gguf", *draft)
    assert ("-ngld" in room) == bool(draft)
    assert room[room.index("-c") + 1] == "4096"
    assert ("-fa" in room) == (method in ("dflash", "dspark"))


VLLM = {
    "ngram": {
        "method": "ngram",
        "num_speculative_tokens": 8,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 5,
    },
    "suffix": {"method": "suffix", "num_speculative_tokens": 24},
    "model": {"method": "draft_model", "num_speculative_tokens": 4},
    "eagle3": {"method": "eagle3", "num_speculative_tokens": 3},
    "p-eagle": {"method": "eagle3", "num_speculative_tokens": 3, "parallel_drafting": True},
    "dflash": {"method": "dflash", "num_speculative_tokens": 15},
    "dspark": {"method": "dspark", "num_speculative_tokens": 7},
    "mtp": {"method": "mtp", "num_speculative_tokens": 1},
    "assistant": {"method": "mtp", "num_speculative_tokens": 1},
    "pard": {"method": "draft_model", "num_speculative_tokens": 12, "parallel_drafting": True},
}


def config_of(made: Command):
    return json.loads(made.words[made.words.index("--speculative-config") + 1])


@pytest.mark.parametrize("method", VLLM)
def test_vllm_is_told_its_method_and_its_length(method):
    made = command("vLLM", setting(method))
    model = {"model": "/m/draft.gguf"} if method in ("model", *HEADS) else {}
    assert config_of(made) == VLLM[method] | model
    assert made.groups[:2] == (("vllm", "serve", "/m/target.gguf"), ("--max-model-len", "4096"))


def test_without_a_draft_vllm_is_told_of_none():
    assert "--speculative-config" not in command("vLLM", setting()).words


def test_a_length_that_was_set_is_passed_on():
    assert "--spec-draft-n-max 6" in command("llama-server", setting("model", length=6)).text
    assert config_of(command("vLLM", setting("model", length=6)))["num_speculative_tokens"] == 6
    assert "-size-m 6" in command("llama-server", setting("ngram", length=6)).text


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize(("peer", "known"), [("llama-server", TYPES), ("vLLM", METHODS)])
def test_what_a_peer_cannot_do_has_a_reason(peer, known, method):
    if method in known or (peer, method) == ("vLLM", "none"):
        assert command(peer, setting(method)).words
        return
    with pytest.raises(EngineError) as refused:
        command(peer, setting(method))
    assert refused.value.code == ("auto_is_ours" if method == "auto" else "peer_lacks_method")


def test_another_vocabulary_is_refused_by_one_and_named_to_the_other():
    """Different sizes are enough for vLLM to refuse: it does not look at the tokens."""
    with pytest.raises(EngineError) as refused:
        command("llama-server", setting("model", translated=True))
    assert refused.value.code == "peer_translates_not"
    padded = info("/m/draft.gguf", vocab_size=128)
    for made in (
        command("vLLM", setting("model", translated=True)),
        command("vLLM", setting("model", draft=padded)),
    ):
        assert config_of(made)["use_heterogeneous_vocab"] is True
        assert "vllm_greedy" in [note.code for note in made.notes]
    assert "use_heterogeneous_vocab" not in config_of(command("vLLM", setting("model")))
    assert command("llama-server", setting("model", draft=padded)).words


def test_what_must_be_converted_is_said():
    folder = info("/m/target", format="safetensors")
    made = command("llama-server", setting(target=folder))
    assert "target.gguf" in made.words
    assert [note.code for note in made.notes] == ["needs_gguf"]
    assert [note.code for note in command("vLLM", setting()).notes] == ["vllm_gguf"]
    assert command("vLLM", setting(target=folder)).notes == ()


def test_only_what_is_chosen_by_a_word_has_a_method_of_it():
    assert [method_of(word) for word in ("suffix", "mtp", "auto", "none", "/a/eagle3")] == [
        "suffix", "mtp", "auto", "none", "none",
    ]  # fmt: skip
