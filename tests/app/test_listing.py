"""The commands that look at models and load none: models, drafts, fit."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from app import paths
from app.__main__ import main
from engine.learned import Learned
from engine.library.candidates import setup
from engine.measured import Measured
from tests.folders import write_bare, write_gguf, write_json, write_model

PARTS = {"target_weights", "target_kv", "draft_weights", "draft_kv", "work", "overhead"}
FIT = {"parts", "others", "need", "free", "verdict", "reason", "kv_type"}
DRAFT = {
    "name", "path", "kind", "compatible", "translated", "advice", "reason", "ratio", "fit",
    "measured", "predicted_times_plain",
}  # fmt: skip
TWIN = {"model.embed_tokens.weight": [262, 64], "model.layers.0.self_attn.q_proj.weight": [64, 64]}


@pytest.fixture
def library(tmp_path):
    """A target, a smaller twin, one with another vocabulary, an adapter and a broken folder."""
    folder = tmp_path / "library"
    folder.mkdir()
    write_model(folder / "target")
    write_bare(folder / "twin", TWIN)
    write_gguf(
        folder / "foreign.gguf",
        {"token_embd.weight": [256, 64], "blk.0.attn_q.weight": [64, 64]},
        general__name="Foreign",
        tokenizer__ggml__model="gpt2",
        tokenizer__ggml__tokens=["x", "y"],
    )
    (folder / "lora").mkdir()
    write_json(folder / "lora" / "adapter_config.json", {})
    (folder / "broken").mkdir()
    write_json(folder / "broken" / "config.json", {"model_type": "llama"})
    return folder


def said(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def told(capsys, *arguments):
    return json.loads(said(capsys, *arguments, "--json"))


def test_models_lists_all_and_says_what_is_wrong(library, capsys):
    found = {row["name"]: row for row in told(capsys, "models", "--models", library)}
    assert set(found) == {"target", "twin", "Foreign", "lora", "broken"}
    assert found["lora"]["kind"] == "adapter"
    assert found["broken"]["problem"] == "model.safetensors is missing."
    assert found["target"]["problem"] is None
    table = said(capsys, "models", "--models", library)
    assert "model.safetensors is missing." in table
    assert all(name in table for name in found)


def test_an_empty_library_has_a_sentence(capsys):
    assert "No model was found" in said(capsys, "models")
    assert told(capsys, "models") == []


def test_a_pair_not_tried_is_predicted_once_its_target_has_run(library, capsys):
    def twin():
        return next(r for r in told(capsys, "drafts", library / "target") if r["name"] == "twin")

    assert twin()["predicted_times_plain"] is None
    alone = setup(library / "target", "none", "int8", None, "cpu")
    pair = setup(library / "target", library / "twin", "int8", "int8", "cpu")
    costs = {"costs": [[0, 1, 0.1], [0, 8, 0.1]]}
    Learned(paths.learned_file()).keep({alone: costs, pair: {"costs": [[0, 1, 0.01]]}})
    assert twin()["predicted_times_plain"] == pytest.approx(1.67, rel=0.2)
    assert "times plain, predicted" in said(capsys, "drafts", library / "target")
    Measured(paths.measured_file()).add(pair, 50.0, 500, 0.5)
    Measured(paths.measured_file()).add(alone, 40.0, 500)
    assert twin()["predicted_times_plain"] is None


@pytest.mark.parametrize(("more", "times"), [({}, 1.07), ({"pard_token": 5}, 1.64)])
def test_a_draft_that_guesses_all_at_once_is_predicted_to_spend_one_step(
    library, capsys, more, times
):
    config = json.loads((library / "twin" / "config.json").read_text())
    write_json(library / "twin" / "config.json", config | more)
    alone, twin = (
        setup(library / "target", draft, "int8", precision, "cpu")
        for draft, precision in (("none", None), (library / "twin", "int8"))
    )
    costs = {"costs": [[0, 1, 0.1], [0, 8, 0.1]]}
    Learned(paths.learned_file()).keep({alone: costs, twin: {"costs": [[0, 1, 0.05]]}})
    row = next(r for r in told(capsys, "drafts", library / "target") if r["name"] == "twin")
    assert row["predicted_times_plain"] == pytest.approx(times, abs=0.01)


def test_drafts_lists_who_can_and_who_cannot_with_a_reason(library, capsys):
    rows = told(capsys, "drafts", library / "target", "--models", library)
    assert all(row.keys() == DRAFT for row in rows)
    found = {row["name"]: row for row in rows}
    assert "target" not in found
    assert found["twin"]["compatible"]
    assert found["twin"]["advice"] == "warn"
    assert found["twin"]["fit"] in ("fits", "tight", "unknown")
    assert (found["twin"]["translated"], found["Foreign"]["translated"]) == (False, True)
    assert not found["Foreign"]["compatible"]
    assert found["Foreign"]["advice"] == "warn"
    assert found["Foreign"]["fit"] in ("fits", "tight", "unknown")
    assert found["Foreign"]["reason"].startswith("Other vocabulary: translated; Warning: ")
    for name in ("lora", "broken"):
        assert not found[name]["compatible"]
        assert not found[name]["translated"]
        assert found[name]["advice"] is None
        assert found[name]["fit"] is None
    assert "adapter" in found["lora"]["reason"]
    table = said(capsys, "drafts", library / "target", "--models", library)
    order = ("twin", "Foreign", "Cannot draft for this target", "lora")
    assert [table.index(name) for name in order] == sorted(map(table.index, order))


def test_drafts_lists_the_targets_own_head(tmp_path, capsys):
    write_model(tmp_path / "m")
    state = load_file(tmp_path / "m" / "model.safetensors")
    at, width = "model.mtp_layers.0.", state["model.norm.weight"].shape[0]
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        state[f"{at}{name}.weight"] = torch.ones(width)
    state[f"{at}input_proj.weight"] = torch.zeros(width, 2 * width)
    save_file(state, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    row = told(capsys, "drafts", tmp_path / "m")[0]
    assert (row["name"], row["kind"], row["path"]) == ("Own head (MTP)", "mtp", str(tmp_path / "m"))
    assert (row["compatible"], row["advice"]) == (True, "good")
    assert row["fit"] in ("fits", "tight", "unknown")
    alone, both = (told(capsys, "fit", tmp_path / "m", *more)["parts"]
                   for more in ([], ["--draft", "mtp"]))  # fmt: skip
    assert alone["draft_weights"] == 0
    assert both["draft_weights"] > width * 2 * width
    assert "Own head (MTP), int8" in said(capsys, "fit", tmp_path / "m", "--draft", "mtp")
    assert "to get" not in said(capsys, "drafts", tmp_path / "m")


def try_out(library, rate, *, plain=None):
    """As if the twin had been measured with the target, as `drafts` would run them here."""
    table = Measured(paths.measured_file())
    pair = library / "target", library / "twin"
    for device, precision in (("cpu", "int8"), ("cuda", "bf16"), ("mps", "bf16"), ("xpu", "bf16")):
        tried = setup(*pair, precision, precision, device)
        table.add(tried, rate, 200, 0.71, "bench")
        if plain is not None:
            table.add(tried.plain, plain, 200, by="bench")


@pytest.mark.parametrize(
    ("plain", "advice", "reason", "times"),
    [
        (6.0, "good", "Good: 1.5 times plain, 71 % accepted", 1.5),
        (9.0, None, "1.0 times plain, 71 % accepted", 1.0),
        (12.0, "warn", "Slower here: 0.8 times plain", 0.75),
        (None, "warn", "unlikely to be faster; 71 % accepted", None),
    ],
)
def test_what_was_measured_here_is_said_instead(library, capsys, plain, advice, reason, times):
    try_out(library, 9.0, plain=plain)
    rows = {row["name"]: row for row in told(capsys, "drafts", library / "target")}
    twin = rows.pop("twin")
    assert twin["compatible"]
    assert twin["advice"] == advice
    assert twin["reason"].endswith(reason)
    assert twin["measured"]["tokens_per_second"] == 9.0
    assert twin["measured"]["times_plain"] == times
    assert twin["measured"]["by"] == "bench"
    assert all(row["measured"] is None for row in rows.values())
    table = said(capsys, "drafts", library / "target")
    assert reason in table
    assert "9.0" in table


def test_what_was_measured_is_forgotten_when_the_draft_changes(library, capsys):
    try_out(library, 9.0, plain=6.0)
    write_bare(library / "twin", {**TWIN, "model.norm.weight": [64]})
    rows = {row["name"]: row for row in told(capsys, "drafts", library / "target")}
    assert rows["twin"]["measured"] is None
    assert rows["twin"]["advice"] == "warn"


def test_the_fastest_draft_stands_first(library, capsys):
    write_bare(library / "a", {"model.embed_tokens.weight": [262, 64]})
    assert told(capsys, "drafts", library / "target")[0]["name"] == "a"
    try_out(library, 9.0)
    assert told(capsys, "drafts", library / "target")[0]["name"] == "twin"


@pytest.mark.parametrize(
    ("folder", "config", "said_of"),
    [
        ("Qwen3-8B-speculator.eagle3", {}, "Qwen3 8B"),
        ("mine", {"speculators_config": {"verifier": {"name_or_path": "o/Big-70B"}}}, "Big-70B"),
        ("mine", {"speculators_config": {"verifier": {"name_or_path": 5}}}, "an unknown model"),
        (
            "mine",
            {"speculators_config": {"verifier": {"name_or_path": "\x1b"}}},
            "an unknown model",
        ),
        ("mine", {}, "an unknown model"),
    ],
)
def test_a_head_is_named_after_the_model_that_it_was_made_for(
    library, capsys, folder, config, said_of
):
    write_bare(library / folder, **{"draft_vocab_size": 262, **config})
    rows = {row["name"]: row for row in told(capsys, "drafts", library / "target")}
    head = rows[folder]
    assert head["reason"] == f"Head for {said_of}: cannot be used yet"
    assert (head["kind"], head["compatible"], head["advice"]) == ("head", False, None)


def refused(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 1
    return capsys.readouterr().err


def test_what_cannot_be_a_target_says_why(library, capsys):
    assert "lora cannot be a target: An adapter" in refused(capsys, "drafts", library / "lora")
    (library / "target" / "tokenizer.json").unlink()
    assert "tokenizer.json is missing" in refused(capsys, "drafts", library / "target")


def test_a_folder_of_gguf_files_is_the_one_or_asks_which(library, capsys):
    one = library / "ggufs"
    one.mkdir()
    (library / "foreign.gguf").rename(one / "foreign.gguf")
    assert told(capsys, "fit", one)["parts"]["target_weights"] != 0
    (one / "second.gguf").write_bytes((one / "foreign.gguf").read_bytes())
    assert "may be any of these: foreign.gguf, second.gguf" in refused(capsys, "fit", one)


def test_a_format_that_cannot_run_here_is_said_of_a_target_and_a_draft(library, capsys):
    """MEM-2: what lacks is a package, not a number in the file."""
    config = json.loads((library / "twin" / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "awq", "bits": 4}
    write_json(library / "twin" / "config.json", config)
    needs = "Cannot run on this computer: needs gptqmodel"
    assert needs in told(capsys, "fit", library / "twin")["reason"]
    pair = ("fit", library / "target", "--draft", library / "twin")
    assert needs in told(capsys, *pair)["reason"]
    assert needs in refused(capsys, "drafts", library / "twin")


def test_what_speaks_against_a_head_is_said_first(tmp_path):
    from engine.library.candidates import head_verdict
    from engine.library.catalogue import Catalogue
    from engine.library.inspect import inspect

    head = inspect(write_bare(tmp_path / "head", hidden_size=48, draft_vocab_size=262))
    target = inspect(write_bare(tmp_path / "target"))
    verdict = head_verdict(head, target, Catalogue({"targets": [], "drafts": []}))
    assert verdict.reason.text == "Another target: width 48, not 64"
    assert verdict.detail.text == "Head for an unknown model: cannot be used yet"


def test_what_the_catalogue_has_stands_below_what_is_here(library, capsys):
    (library / "target").rename(library / "Qwen2.5-7B-Instruct")
    rows = told(capsys, "drafts", library / "Qwen2.5-7B-Instruct")
    places = [row["path"] is None for row in rows]
    assert places == sorted(places)
    offer = next(row for row in rows if row["name"] == "Qwen/Qwen2.5-0.5B-Instruct")
    assert offer["compatible"]
    assert "to get" in said(capsys, "drafts", library / "Qwen2.5-7B-Instruct")


def test_a_folder_to_look_through_must_be_there(library, capsys):
    (library / "notes.txt").write_text("x")
    for command in (["models"], ["drafts", "x"], ["fit", "x"]):
        for wrong, said_of in (("nowhere", "is not there"), ("notes.txt", "neither a folder nor")):
            with pytest.raises(SystemExit) as ended:
                main([*command, "--models", str(library / wrong)])
            assert ended.value.code == 2
            assert said_of in capsys.readouterr().err


def test_a_model_or_a_file_can_be_looked_at_alone(library, capsys):
    for path, name in ((library / "target", "target"), (library / "foreign.gguf", "Foreign")):
        assert [row["name"] for row in told(capsys, "models", "--models", path)] == [name]


def test_a_name_cannot_pass_for_a_row(library, capsys):
    forged = "good\nfake  model  1 B\u2028\u202egnp\u2066\x1b[31m"
    write_gguf(library / "forged.gguf", {"token_embd.weight": [2, 64]}, general__name=forged)
    (library / "forged").mkdir()
    write_json(library / "forged" / "config.json", {"model_type": forged})
    for command in (["models", "--models", library], ["drafts", library / "target"]):
        table = said(capsys, *command)
        assert not set("\u2028\u202e\u2066\x1b") & set(table)
        assert "good␊fake" in table
        assert not any(line.startswith("fake") for line in table.splitlines())
        rows = told(capsys, *command)
        assert any(row["name"] == forged for row in rows)


def test_names_that_are_no_text_are_printed(library, capsysbinary, monkeypatch):
    path = os.path.join(os.fsencode(library), b"bad\xff.gguf")
    write_gguf(Path(os.fsdecode(path)), {"token_embd.weight": [2, 64]})
    (library / os.fsdecode(b"worse\xff.gguf")).write_bytes(b"GGUF")
    for encoding in ("utf-8", "ascii", "cp1252"):
        for command in (["models", "--models", library], ["drafts", library / "target"]):
            for more in ([], ["--json"]):
                out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
                monkeypatch.setattr(sys, "stdout", out)
                assert main([*map(str, command), *more]) == 0
                out.flush()
                text = out.buffer.getvalue().decode(encoding)
                assert "bad" in text
                if more:
                    assert os.fsdecode(path) in {row["path"] for row in json.loads(text)}


def test_only_a_path_as_target_brings_its_folder(library, capsys, monkeypatch):
    hub = library.parent / "hub"
    snapshots = hub / "models--org--cached" / "snapshots"
    for commit in ("a" * 40, "b" * 40):
        write_bare(snapshots / commit)
    (hub / "models--org--cached" / "refs").mkdir()
    (hub / "models--org--cached" / "refs" / "main").write_text("a" * 40)
    rows = told(capsys, "drafts", "cached", "--models", hub)
    assert [row["path"] for row in rows if row["path"]] == []
    beside = told(capsys, "drafts", snapshots / ("a" * 40), "--models", hub)
    assert [row["path"] for row in beside if row["path"]] == [str(snapshots / ("b" * 40))]


def test_a_target_is_not_its_own_draft_by_whichever_way(library, capsys, monkeypatch):
    (library.parent / "link").symlink_to(library)
    (library / "again.gguf").symlink_to(library / "foreign.gguf")
    monkeypatch.chdir(library)
    for target, hidden in (("target", {"target"}), ("foreign.gguf", {"Foreign", "again"})):
        for given in (target, f"../link/{target}", str(library / target)):
            rows = told(capsys, "drafts", given, "--models", library, "--models", "../link")
            shown = [row["name"] for row in rows if row["path"]]
            assert len(shown) == len(set(shown))
            assert not hidden & set(shown)
            assert "twin" in shown


def test_the_target_itself_is_refused_by_whichever_way(library):
    from engine.guidance import judge_pair
    from engine.library.inspect import inspect

    (library / "again").symlink_to(library / "target")
    judged = judge_pair(inspect(library / "target"), inspect(library / "again"), None, {})
    assert judged.reason.code == "own_draft"


def test_what_was_measured_is_known_by_a_relative_path_too(library, capsys, monkeypatch):
    try_out(library, 9.0, plain=6.0)
    monkeypatch.chdir(library)
    rows = {row["name"]: row for row in told(capsys, "drafts", "target")}
    assert rows["twin"]["measured"]


def test_a_path_as_target_brings_its_folder(library, capsys):
    assert {row["name"] for row in told(capsys, "drafts", library / "target")} >= {"twin", "lora"}


def test_fit_adds_up_and_says_each_part(library, capsys):
    found = told(
        capsys, "fit", library / "target", "--draft", library / "twin",
        "--context", 256, "--precision", "fp32", "--device", "cpu",
    )  # fmt: skip
    assert found.keys() == FIT
    assert found["parts"].keys() == PARTS
    assert found["need"] == sum(found["parts"].values())
    assert found["kv_type"] == "fp32"
    assert found["parts"]["overhead"] == 0
    assert found["verdict"] in ("fits", "tight")
    # 2 layers, 2 key heads of 16, keys and values of 4 bytes
    assert found["parts"]["target_kv"] == 2 * 2 * 2 * 16 * 256 * 4


def test_fit_without_a_draft_has_nothing_of_one(library, capsys):
    found = told(capsys, "fit", library / "target", "--device", "cpu")
    assert found["parts"]["draft_weights"] == found["parts"]["draft_kv"] == 0


def test_a_lower_precision_takes_less(library, capsys):
    needs = [
        told(capsys, "fit", library / "target", "--device", "cpu", "--precision", precision)["need"]
        for precision in ("fp32", "bf16", "int8")
    ]
    assert needs == sorted(needs, reverse=True)
    assert len(set(needs)) == 3


def test_what_does_not_fit_says_what_would_help(library, capsys, monkeypatch):
    from engine import devices

    monkeypatch.setattr(devices, "memory", lambda: (2**30, 100_000))
    printed = said(capsys, "fit", library / "target", "--draft", library / "twin")
    assert "Does not fit" in printed
    for way in ("Draft in", "Repeats from the chat", "Target in"):
        assert way in printed


@pytest.mark.parametrize("command", [["models"], ["drafts", "{}"], ["fit", "{}"]])
def test_looking_loads_neither_torch_nor_qt(library, command):
    command = [part.format(library / "target") for part in command]
    script = (
        "import sys; from app.__main__ import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'PySide6'};"
        "print(sorted({m.split('.')[0] for m in sys.modules} & heavy),"
        " code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[] 0"


@pytest.mark.parametrize("command", ["drafts", "fit"])
def test_a_target_that_is_not_there_is_named(command, capsys):
    assert main([command, "nothing"]) == 1
    assert "“nothing” is neither a path nor in the library" in capsys.readouterr().err
