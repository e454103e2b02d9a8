"""The terminal commands: what they print, what they refuse, what they never load."""

import hashlib
import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from app import cli, paths, report
from app.__main__ import main
from engine.measured import LOOKUPS
from engine.past import Past
from tests.folders import IM_END, tiny_config, tokenizer_config, write_json, write_model


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture
def library(home, monkeypatch):
    """A library with a tiny target and a weak draft of it, written once."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(home))
    folder = paths.model_folder()
    if folder.exists():
        return folder
    config = tiny_config(eos_token_id=IM_END)
    for name, layers in (("tiny", None), ("weak", 1)):
        write_model(folder / name, config=dict(config), layers=layers)
        settings = tokenizer_config(eos_token="<|im_end|>")
        write_json(folder / name / "tokenizer_config.json", settings)
    return folder


CHAT = "chat --model tiny --max-tokens 24 --seed 1 --temperature 0".split()


def answer(capsys, *options):
    assert main([*CHAT, "--prompt", "abc abc abc", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("length", ["auto", "3"])
def test_auto_answers_as_plain_decoding(library, capsys, length):
    plain = answer(capsys)
    found = answer(capsys, "--draft", "auto", "--draft-length", length)
    assert found["token_ids"] == plain["token_ids"]
    assert set(found["stats"]["by_drafter"]) <= {"model", *LOOKUPS}


def test_chat_prints_one_json_object(library, capsys):
    printed = answer(capsys, "--draft", "weak", "--draft-length", "4")
    assert set(printed) >= {"text", "token_ids", "finish_reason", "stats"}
    assert printed["finish_reason"] == "length"
    assert len(printed["token_ids"]) == 24
    stats = printed["stats"]
    assert set(stats) >= {
        "drafted",
        "accepted",
        "rejected",
        "ignored",
        "acceptance_rate",
        "tokens_per_round",
        "accepted_by_position",
        "tokens_per_second",
        "time_to_first_token",
    }
    assert stats["drafted"] == stats["accepted"] + stats["rejected"] + stats["ignored"] > 0
    assert len(stats["accepted_by_position"]) == 4


def test_a_draft_changes_the_numbers_not_the_ids(library, capsys):
    plain = answer(capsys)
    lookups = (["--draft", name] for name in LOOKUPS)
    for options in (*lookups, ["--draft", "weak", "--draft-length", "7"]):
        assert answer(capsys, *options)["token_ids"] == plain["token_ids"]
    assert plain["stats"]["acceptance_rate"] is None
    assert plain["stats"]["tokens_per_round"] is None
    assert plain["stats"]["accepted_by_position"] == []


@pytest.mark.parametrize("draft", ["suffix", "chain"])
def test_drafts_copy_from_the_windows_chats_and_learn_nothing_here(library, capsys, draft):
    options = ("--draft", draft, "--draft-length", "8")
    alone = answer(capsys, *options)
    tokenizer = (library / "tiny" / "tokenizer.json").read_bytes()
    learned = Past(paths.past_folder())
    vocabulary = hashlib.sha256(tokenizer).hexdigest()[:32]
    learned.of(vocabulary).add("a chat", alone["token_ids"], 0)
    try:
        told = answer(capsys, *options)
        assert len(Past(paths.past_folder()).of(vocabulary).all) == 1
    finally:
        learned.clear()
    assert told["token_ids"] == alone["token_ids"]
    assert told["stats"]["accepted"] > alone["stats"]["accepted"]


def test_a_draft_length_of_0_drafts_nothing(library, capsys):
    assert answer(capsys, "--draft", "weak", "--draft-length", "0")["stats"]["drafted"] == 0


def test_models_may_be_given_as_paths(library, capsys):
    by_name = answer(capsys, "--draft", "weak")
    paths_ = ["--model", str(library / "tiny"), "--draft", str(library / "weak")]
    assert answer(capsys, *paths_)["token_ids"] == by_name["token_ids"]


def test_a_stop_string_ends_the_text(library, capsys):
    text = answer(capsys)["text"]
    stop = text[3:5]
    stopped = answer(capsys, "--stop", stop)
    assert stopped["text"] == text[: text.index(stop)]
    assert stopped["finish_reason"] == "stop"


def test_an_answer_is_printed_with_a_line_of_figures(library, capsys):
    assert main([*CHAT, "--draft", "weak", "--prompt", "abc"]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert re.search(r"draft acceptance = [01]\.\d{5} \(\d+ accepted / \d+ drafted\)", printed.err)
    assert "accepted /" in printed.err
    assert "mean len = " in printed.err


def loaded_lines(capsys, *options):
    """What is told of the models after loading."""
    assert main([*CHAT, "--prompt", "abc", "--json", *options]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if " on cpu, " in line]


def test_how_the_models_run_is_told_after_loading(library, capsys):
    options = ["--draft", "weak", "--precision", "bf16", "--draft-precision", "fp32"]
    target, draft = loaded_lines(capsys, *options)
    assert target in ("tiny: bf16 on cpu, bit-exact", "tiny: bf16 on cpu, same up to rounding")
    assert draft == "weak: fp32 on cpu, draft"


def test_a_draft_has_the_targets_precision_unless_told_otherwise(library, capsys):
    options = ["--draft", "weak", "--precision", "fp32"]
    assert loaded_lines(capsys, *options)[1] == "weak: fp32 on cpu, draft"


def test_rejection_is_never_called_bit_exact(library, capsys):
    options = ["--precision", "fp32", "--verification", "rejection"]
    assert loaded_lines(capsys, *options) == ["tiny: fp32 on cpu, same odds"]


@pytest.mark.parametrize(("exact", "word"), [(True, "bit-exact"), (False, "same up to rounding")])
def test_bit_exact_is_said_only_where_the_engine_says_so(library, capsys, monkeypatch, exact, word):
    from engine import session
    from engine.errors import Reason

    real = session.load

    def load(*args, **kwargs):
        made = real(*args, **kwargs)
        notes = (Reason("chosen", "Chosen for {why}\x1b.", {"why": "speed"}),)
        made.loaded = replace(made.loaded, bit_exact=exact, notes=notes)
        return made

    monkeypatch.setattr(session, "load", load)
    assert main([*CHAT, "--prompt", "abc", "--precision", "fp32"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == [f"tiny: fp32 on cpu, {word}", "Chosen for speed␛."]


def test_questions_come_from_standard_input_turn_by_turn(library, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("abc\n\n  \nmore\n"))
    assert main([*CHAT, "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert second["stats"]["prompt_tokens"] > first["stats"]["prompt_tokens"] + 24
    assert second["stats"]["cached_tokens"] >= first["stats"]["prompt_tokens"] + 23


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "nobody"], "nobody"),
        (["--model", "starter"], "slipstream get starter"),
        (["--draft", "nobody"], "nobody"),
        (["--device", "tpu"], "tpu"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(library, capsys, options, said):
    assert main([*CHAT, "--prompt", "Hi", *options]) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    "options",
    [
        ["--draft-length", "17"],
        ["--draft-length", "-1"],
        ["--draft-length", "many"],
        ["--temperature", "-1"],
        ["--temperature", "nan"],
        ["--max-tokens", "0"],
        ["--precision", "fp8"],
        ["--precision", "fp32,bf16"],
        ["--draft-precision", "fp8"],
        ["--verification", "none"],
    ],
)
def test_senseless_options_are_refused(options, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*CHAT, *options])
    assert ended.value.code == 2


def test_control_characters_of_a_model_do_not_reach_the_terminal():
    """INP-2: shown as marks; only line breaks and tabs act."""
    text = "a\x00b\x1b[31mred\x1b]52;c;QUJD\x07\x9b1m\x7f\tc\n"
    assert cli.visible(text) == "a␀b␛[31mred␛]52;c;QUJD␇\ufffd1m␡\tc\n"


@pytest.mark.parametrize("asked", [["--prompt", "hé 🌟"], ["--json"]])
def test_a_terminal_that_knows_no_unicode_is_answered_too(library, monkeypatch, asked):
    """As Python opens the streams for PYTHONIOENCODING=ascii: the first wrong byte raises."""
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff hi\n"), "ascii"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "ascii"))
    assert main([*CHAT, *asked]) == 0
    sys.stdout.flush()
    assert printed.getvalue()
    if asked == ["--json"]:
        assert json.loads(printed.getvalue())["token_ids"]


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setenv("SLIPSTREAM_HOME", "/dev/null/x")
    assert main(["get", "starter"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert main(["settings", "theme", "dark"]) == 1
    assert capsys.readouterr().err == "/dev/null/x/config cannot be used: Not a directory.\n"


def test_a_word_that_is_not_known_stands_in_the_log_too(capsys):
    assert main(["teletype"]) == 2
    said = capsys.readouterr().err
    assert "“teletype” is no command" in said
    assert said in (paths.log_folder() / report.LOG).read_text(encoding="utf-8")
    (record,) = report._log()
    assert record.endswith(said.strip())


def test_doctor_says_what_is_here(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"versions", "torch", "nvml", "memory", "folders", "exact"} <= set(facts)
    assert "cpu" in facts["torch"]["devices"]
    assert facts["folders"]["models"] == str(paths.model_folder())
    assert facts["folders"]["data"] == str(paths.data_folder())
    assert "self-check" in facts["exact"]["cpu"]
    assert set(facts["exact"]) == {"rule", *facts["torch"]["devices"]}
    assert main(["doctor"]) == 0
    assert "versions" in capsys.readouterr().out


def loaded_by(code):
    """The modules in a fresh process after `code`."""
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


HEAVY = {"torch", "transformers", "PySide6"}
RUN = "from app.__main__ import main\ntry: main([{!r}])\nexcept SystemExit: pass"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_neither_torch_nor_qt(option):
    assert not HEAVY & loaded_by(RUN.format(option))


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_answer_at_once(option):
    def once():
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "app", option], capture_output=True, check=True)
        return time.monotonic() - began

    assert any(once() < 0.3 for _ in range(5))


def test_terminal_commands_never_load_qt():
    assert "PySide6" not in loaded_by(RUN.format("doctor"))


def test_the_window_loads_no_torch():
    assert "torch" not in loaded_by("import app.start, app.window")


def test_light_modules_load_no_torch():
    light = "api errors guidance memory tokenizer template text vocabulary library.scan"
    light += " library.inspect library.starter devices"
    imports = "\n".join(f"import engine.{module}" for module in light.split())
    assert not HEAVY & loaded_by(imports)
