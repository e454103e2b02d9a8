"""The bench command: its lists, its table, its exit codes, and the file it goes on from."""

import csv
import json
import re
from pathlib import Path

import pytest

import resources
from app import bench, cli, paths
from app.__main__ import main
from engine.bench import contenders
from engine.bench.prompts import PLACEHOLDER, built_in
from engine.bench.report import Report, Row
from engine.library.candidates import setup
from engine.measured import Measured
from tests.folders import IM_END, tiny_config, write_model


@pytest.fixture
def library():
    """A library with a tiny target and a weak draft of it."""
    folder = paths.ensure(paths.model_folder())
    for name, layers in (("tiny", None), ("weak", 1)):
        config = tiny_config(eos_token_id=IM_END)
        write_model(folder / name, config=config, layers=layers, template=None)
    return folder


@pytest.fixture
def measure(library, tmp_path, capsys):
    """Runs bench with the weak draft; the exit code and what was printed."""
    prompts = tmp_path / "prompts.jsonl"
    lines = [{"prompt": "abc abc abc"}, {"turns": ["one two", "more"], "category": "x"}]
    prompts.write_text("\n".join(map(json.dumps, lines)))

    def measuring(*options):
        settings = ["--model", "tiny", "--draft", "weak", "--max-tokens", "12"]
        code = main(["bench", *settings, "--prompts", str(prompts), *options])
        return code, capsys.readouterr()

    return measuring


def parsed(*options):
    return cli.parser().parse_args(["bench", "--model", "m", "--prompts", "p", *options])


def test_precisions_may_be_named_one_by_one_or_together():
    for words in (["--precision", "auto,int8"], ["--precision", "auto", "--precision", "int8"]):
        assert parsed(*words).precision == [None, "int8"]


def test_draft_lengths_may_be_named_one_by_one_or_together():
    for words in (["4,auto"], ["4", "--draft-length", "auto"]):
        assert parsed("--draft-length", *words).draft_length == [4, None]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--draft-length", "4,17"], "auto or 1 to 16"),
        (["--draft-length", "0,4"], "auto or 1 to 16"),
        (["--draft-length", "4,"], "auto or 1 to 16"),
        (["--precision", "int8,fp8"], "fp32, bf16, fp16, int8, int4"),
        (["--draft-precision", "auto"], "invalid choice"),
        (["--turns", "0"], "at least 1"),
    ],
)
def test_senseless_options_are_refused(options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(*options)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_bench_writes_its_table_and_its_json(measure, tmp_path):
    out = tmp_path / "out.json"
    code, printed = measure("--draft-length", "4,2", "--repeat", "2", "--json", str(out))
    assert code == 0
    written = json.loads(out.read_text())
    rows = [(row["drafter"], row["draft_length"]) for row in written["rows"]]
    assert rows == [("none", None), ("model", 4), ("model", 2)]
    assert written["differing_ids"] == 0
    heads, plain, four, two, last = printed.out.splitlines()
    column = heads.index("draft length")
    assert [line[column] for line in (plain, four, two)] == ["-", "4", "2"]
    assert "times plain" in heads
    assert "differing" not in heads
    assert last == "differing ids: 0"


def known(library, draft):
    """What was kept of the draft, whatever the precision that the engine took."""
    target = library / "tiny"
    draft = library / draft if draft == "weak" else draft
    table = Measured(paths.measured_file())
    setups = (setup(target, draft, p, p, "cpu") for p in ("fp32", "bf16", "int8", "int4"))
    return next((found for found in map(table.of, setups) if found is not None), None)


def test_what_was_measured_is_known_to_the_lists_of_drafts(library, measure, tmp_path):
    out = tmp_path / "out.json"
    measure("--draft", "ngram", "--draft-length", "4,auto", "--device", "cpu", "--json", str(out))
    rows = {(r["drafter"], r["draft_length"]): r for r in json.loads(out.read_text())["rows"]}
    plain, pair, ngram = (known(library, draft) for draft in ("none", "weak", "ngram"))
    automatic = rows["model", "auto"]
    assert pair.tokens_per_second == automatic["tokens_per_second"]
    assert pair.acceptance_rate == automatic["acceptance_rate"]
    assert pair.tokens == automatic["tokens"]
    assert pair.times_plain == pytest.approx(automatic["speedup"])
    assert plain.tokens_per_second == rows["none", None]["tokens_per_second"]
    assert {found.by for found in (plain, pair, ngram)} == {"bench"}
    before = paths.measured_file().read_bytes()
    measure("--draft", "ngram", "--draft-length", "4,auto", "--device", "cpu", "--json", str(out))
    assert paths.measured_file().read_bytes() == before


def test_a_comparison_with_another_engine_is_not_kept(library, measure):
    code, _ = measure("--draft-length", "4", "--device", "cpu", "--against", "transformers")
    assert code == 0
    assert not paths.measured_file().exists()


def test_a_draft_that_never_drafted_is_not_kept(library, measure):
    measure("--max-tokens", "1", "--device", "cpu")
    assert known(library, "none") is not None
    assert known(library, "weak") is None


def test_the_rows_are_written_for_a_spreadsheet(measure, tmp_path):
    out = tmp_path / "out.csv"
    code, _ = measure("--draft-length", "4", "--csv", str(out))
    assert code == 0
    lines = list(csv.DictReader(out.open()))
    assert [(line["draft"], line["category"]) for line in lines] == [
        *(("", "overall"), ("", "x")),
        *(("weak", "overall"), ("weak", "x")),
    ]
    code, printed = measure("--csv", str(tmp_path / "absent" / "out.csv"))
    assert code == 1
    assert "cannot be written" in printed.err
    assert "loading" not in printed.err


def test_built_in_prompts_are_named_by_kind_and_shown_by_kind(library, capsys):
    assert parsed("--prompts", "edit,code").prompts == ("edit", "code")
    assert parsed("--prompts", "edit.jsonl").prompts == Path("edit.jsonl")
    asked = ["--model", "tiny", "--draft", "ngram", "--max-tokens", "4", "--prompts", "edit,code"]
    assert main(["bench", *asked, "--limit", "2"]) == 0
    *_, head, plain, drafted = capsys.readouterr().out.splitlines()
    assert head.split() == ["times", "plain", "edit", "code"]
    assert plain.split()[-2:] == ["1.00", "1.00"]
    assert drafted.startswith("slipstream ngram auto")


def test_every_kind_has_built_in_prompts():
    sets = json.loads(resources.read_text("prompts.json"))
    assert tuple(sets) == bench.KINDS
    for kind, asked in sets.items():
        assert built_in(sets, [kind]).kinds == (kind,) * len(asked)
        assert len(asked) >= 4


def test_placeholders_are_counted(library, tmp_path, capsys):
    file = tmp_path / "speed.jsonl"
    held = f"{PLACEHOLDER} USING SPECDEC_BENCH"
    file.write_text("\n".join(json.dumps({"turns": [text]}) for text in ("Hello", held)))
    assert main(["bench", "--model", "tiny", "--max-tokens", "4", "--prompts", str(file)]) == 0
    assert "since they hold a placeholder: 1" in capsys.readouterr().err


def test_equal_ids_and_accepted_drafts_end_with_0(measure):
    code, printed = measure("--verify-equal", "--draft-length", "4")
    assert code == 0
    assert printed.out.splitlines()[0].endswith("differing")


def test_a_draft_that_was_never_accepted_ends_with_1(measure):
    code, printed = measure("--verify-equal", "--max-tokens", "1")
    assert code == 1
    assert printed.err.splitlines()[-1].endswith("no draft was accepted.")
    assert measure("--max-tokens", "1")[0] == 0


def test_a_differing_id_ends_with_1(measure, monkeypatch):
    answer = contenders._Slipstream.answer

    def wrong(self, *rest):
        first, *others = answer(self, *rest)
        ids = (*first.ids[:-1], -1) if self.way.drafts else first.ids
        return (contenders.replace(first, ids=ids), *others)

    monkeypatch.setattr(contenders._Slipstream, "answer", wrong)
    code, printed = measure("--verify-equal", "--draft-length", "4")
    assert code == 1
    assert "2 ids differ from plain decoding" in printed.err
    assert printed.out.splitlines()[-1] == "differing ids: 2"
    assert measure("--draft-length", "4")[0] == 0


def test_sampled_text_is_the_same_in_both_turns(measure, tmp_path):
    out = tmp_path / "out.json"
    options = "--turns 2 --temperature 0.8 --seed 5 --draft-length 4 --verify-equal".split()
    code, _ = measure(*options, "--json", str(out))
    assert code == 0
    kept = json.loads(out.read_text())
    assert kept["plan"]["sampling"]["temperature"] == 0.8
    assert [len(run["answers"]) for run in kept["runs"]] == [2, 2]


def test_rejection_at_a_temperature_is_not_verified_to_be_equal(measure):
    options = ["--verify-equal", "--verification", "rejection"]
    code, printed = measure(*options, "--temperature", "0.8")
    assert code == 1
    assert "--verification coupled" in printed.err
    assert "loading" not in printed.err


def test_a_complete_result_is_printed_again_and_another_plan_refused(measure, tmp_path):
    out = ["--json", str(tmp_path / "out.json"), "--draft-length", "4"]
    _, first = measure(*out)
    code, again = measure(*out)
    assert (code, again.out) == (0, first.out)
    assert "loading" not in again.err
    code, other = measure(*out, "--max-tokens", "8")
    assert (code, other.out) == (1, "")
    assert "max_tokens is not the same. Name another file." in other.err


def test_a_result_that_cannot_be_written_is_said_before_measuring(measure, tmp_path):
    code, printed = measure("--json", str(tmp_path / "absent" / "out.json"))
    assert code == 1
    assert "cannot be written" in printed.err
    assert "loading" not in printed.err


def test_a_draft_of_another_precision_and_strange_name_is_shown_as_it_is():
    row = Row(
        engine="slipstream",
        drafter="model",
        draft="\x1b[31mred",
        precision="int8",
        draft_precision="int4",
        draft_length="auto",
        tokens_per_second=12.5,
        spread=(10.0, 14.0),
        speedup=None,
        acceptance_rate=0.5,
        tokens_per_round=None,
        time_to_first_token=0.25,
        memory_bytes=3 << 29,
        differing_ids=0,
        tokens=96,
    )
    report = Report("m", "cpu", 1, 8, 1, [row], 0)
    line = bench.visible(bench.table(report, True)).splitlines()[1]
    assert re.split(" {2,}", line) == [
        *("slipstream", "␛[31mred", "auto", "int8, draft int4", "12.50", "10.00 to 14.00"),
        *("-", "50 %", "-", "0.25 s", "1.50 GiB", "0"),
    ]
