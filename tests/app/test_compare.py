"""Drafts compared in the window: what is measured, said, kept, exported and chosen."""

import csv
import io
import json
import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage

from app.viewmodels.compare import ALL, FILE, OWN, Compare, _method
from app.widgets.compare import NARROW
from engine.bench.prompts import PLACEHOLDER
from engine.errors import DraftRefused, EngineError, OutOfMemory
from engine.library.inspect import inspect
from engine.measured import AUTO, CHAIN, LOOKUPS, NGRAM, NONE, SUFFIX
from tests.comparing import SETS, ComparingSession
from tests.fakes import DRAFT, FOREIGN, FakeShelf
from tests.folders import write_bare

KEYS = (NONE, NGRAM, str(DRAFT), str(FOREIGN))
PROMPTS = sum(map(len, SETS.values()))


@pytest.fixture
def session():
    return ComparingSession()


@pytest.fixture
def shelf():
    return FakeShelf()


@pytest.fixture
def program(open_program, session, shelf):
    return open_program(session, shelf)


@pytest.fixture
def few(monkeypatch):
    """Of what needs no model, only one is there to be compared."""
    every = Compare._drafts
    left = (AUTO, SUFFIX, CHAIN)
    monkeypatch.setattr(
        Compare, "_drafts", lambda self: [d for d in every(self) if d.key not in left]
    )


@pytest.fixture
def compare(few, program, qtbot):
    """The view model, ready to run: every draft is judged."""
    model = program.compare
    model.open()
    qtbot.waitUntil(lambda: [line.key for line in model.view.lines] == list(KEYS))
    qtbot.waitUntil(lambda: all(line.ticked for line in model.view.lines))
    model.choose_source("edit")
    return model


@pytest.fixture
def dialog(program, compare, qtbot):
    program.window.show_compare()
    qtbot.waitExposed(program.window.compare)
    return program.window.compare


def finish(qtbot, model):
    qtbot.waitUntil(lambda: not model.running)


def measure(qtbot, model):
    model.run()
    finish(qtbot, model)


def lines(model):
    return {line.key: line for line in model.view.lines}


def heats(session):
    """The drafts in the order in which they answered, each once a heat."""
    drafts = [draft for draft, *_ in session.answered]
    return [draft for i, draft in enumerate(drafts) if i == 0 or drafts[i - 1] != draft]


def test_every_way_to_draft_can_be_compared(qtbot, program, session, monkeypatch):
    monkeypatch.setattr(program.models, "best_draft", lambda: str(DRAFT))
    model = program.compare
    model.open()
    every = {AUTO, NONE, *LOOKUPS, str(DRAFT), str(FOREIGN)}
    qtbot.waitUntil(lambda: {line.key for line in model.view.lines if line.ticked} == every)
    model.choose_source("edit")
    measure(qtbot, model)
    assert {draft for draft, *_ in session.answered} == every
    assert session.held == [DRAFT]


def test_plain_decoding_and_every_ticked_draft_answer_the_chosen_prompts(qtbot, compare, session):
    compare.tick(str(FOREIGN), False)
    compare.set_length(32)
    measure(qtbot, compare)
    asked = [question for question, *_ in SETS["edit"]]
    for key in (NONE, NGRAM, str(DRAFT)):
        own = [(question, most) for draft, question, most in session.answered if draft == key]
        assert own == [(asked[0], 8), *((question, 32) for question in asked)]
    assert str(FOREIGN) not in {draft for draft, *_ in session.answered}
    assert {s.temperature for s in session.sampling} <= {0.0}
    assert session.threads == {"model"}


def test_the_rows_say_what_was_measured(qtbot, compare, session):
    session.odd.add(NGRAM)
    measure(qtbot, compare)
    found = lines(compare)
    rate, times, span, accepted, *_, same = found[NGRAM].cells
    assert (times, accepted, same) == ("2.36", "70 %", "0 of 4")
    assert float(rate) == pytest.approx(48 * 2.36, abs=1)
    assert span == "2.18 to 2.53"
    assert found[str(DRAFT)].cells[-1] == "4 of 4"
    assert found[NONE].cells[1:4] == ("1.00", "–", "–")
    assert [line.fastest for line in compare.view.lines] == [False, True, False, False]
    assert compare.view.headline == "Repeats from the chat is fastest here: 2.36 times plain."


def test_another_that_is_faster_for_a_kind_is_named(qtbot, compare):
    compare.choose_source(ALL)
    measure(qtbot, compare)
    assert compare.view.headline.startswith("Qwen2.5-Coder 0.5B Instruct is fastest here: 1.6")
    assert compare.view.rest == "For “Edit”, Repeats from the chat was faster still."
    code, edit, *_, creative = compare.view.charts
    assert (code.name, code.count) == ("Code", "4 prompts")
    assert [bar.best for bar in code.bars] == [False, True, False]
    assert [bar.best for bar in edit.bars] == [True, False, False]
    assert creative.bars[0].said == "0.98 slower"
    assert "Creative, 4 prompts: Repeats from the chat 0.98 slower" in compare.view.twin


def test_without_a_faster_draft_none_is_the_fastest(qtbot, compare, session):
    session.times = {"none": (1,) * 5} | dict.fromkeys(KEYS[1:], (0.9,) * 5)
    measure(qtbot, compare)
    assert compare.view.headline == "No draft is faster here than none."
    assert compare.view.fastest == NONE


def test_the_drafts_take_turns_over_the_runs(qtbot, compare, session):
    compare.tick(str(FOREIGN), False)
    compare.set_repeat(2)
    measure(qtbot, compare)
    a, b, c = NONE, NGRAM, str(DRAFT)
    assert heats(session) == [a, b, c, b, c, a]
    assert "Medians of 2 runs" in compare.view.detail


def test_the_draft_of_before_is_loaded_again_and_no_two_at_a_time(qtbot, compare, session, program):
    before = program.models.draft
    measure(qtbot, compare)
    qtbot.waitUntil(lambda: session.choices[-1] == before and not program.models.choosing)
    assert program.models.draft == before
    assert session.choices[-5:] == [NONE, NGRAM, DRAFT, FOREIGN, before]
    assert session.loads == [session.loads[0]]  # the target was never loaded anew


def test_what_is_measured_is_known_to_the_list_of_drafts(qtbot, compare, shelf):
    measure(qtbot, compare)
    qtbot.waitUntil(lambda: len(shelf.trials) == 4)
    assert [trial.key for trial in shelf.trials] == list(KEYS)
    assert {trial.by for trial in shelf.trials} == {"bench"}
    plain, ngram, *_ = shelf.trials
    assert plain.acceptance_rate is None
    assert ngram.tokens_per_second == pytest.approx(48 * 2.36, abs=1)
    assert ngram.tokens == 4 * 64


def test_progress_is_a_share_with_the_time_left(qtbot, compare, session):
    session.limit = 5 + 3  # plain decoding with its warm-up, then one of the next and two answers
    compare.run()
    qtbot.waitUntil(lambda: compare.view.share == 6 / 16)
    assert compare.view.headline == "Measuring Repeats from the chat"
    assert compare.view.rest.endswith(" left")
    assert lines(compare)[NONE].cells[0] == "48.0"
    assert lines(compare)[NGRAM].note == "Running"
    session.limit = 10**9
    finish(qtbot, compare)
    assert compare.view.share is None


def test_cancel_keeps_what_is_finished(qtbot, compare, session, program):
    session.limit = 12  # two whole heats of a warm-up and four, and a part of the third
    compare.run()
    qtbot.waitUntil(lambda: len(session.answered) == 12)
    compare.cancel()
    finish(qtbot, compare)
    found = lines(compare)
    assert found[NGRAM].cells[1] == "2.36"
    assert found[str(DRAFT)].cells[0] == "–"
    assert compare.view.detail.startswith("Stopped after")
    assert compare.view.fastest == NGRAM
    assert [row.drafter for row in compare.report().rows] == [NONE, NGRAM]
    qtbot.waitUntil(lambda: session.choices[-1] == program.models.draft)


def test_a_cancel_that_comes_as_a_draft_ends_is_one(qtbot, compare, session):
    """The window hears of an end up to 33 ms late."""
    compare.run()
    deadline = time.monotonic() + 10
    while len(session.answered) < 5 and time.monotonic() < deadline:
        time.sleep(0.001)  # and the window hears nothing
    compare.cancel()
    finish(qtbot, compare)
    assert len(session.answered) == 5
    assert compare.view.headline == "Nothing was measured to the end."
    assert lines(compare)[NONE].cells[0] == "48.0"
    assert compare.view.detail.startswith("Stopped after")


def test_cancelled_before_anything_was_finished_there_is_no_verdict(qtbot, compare, session):
    session.limit = 2
    compare.run()
    qtbot.waitUntil(lambda: len(session.answered) == 2)
    compare.cancel()
    finish(qtbot, compare)
    assert compare.view.headline == "Nothing was measured to the end."
    assert (compare.view.fastest, compare.view.charts) == ("", ())


def test_a_draft_that_fails_has_its_reason_and_the_others_go_on(qtbot, compare, session):
    session.broken[str(DRAFT)] = OutOfMemory("no_memory", "Not enough memory.")
    compare.set_repeat(2)
    measure(qtbot, compare)
    found = lines(compare)
    assert (found[str(DRAFT)].note, found[str(DRAFT)].bad) == ("Not enough memory.", True)
    assert found[str(FOREIGN)].cells[1] == "1.10"
    assert session.choices.count(DRAFT) == 0
    assert compare.view.detail.startswith("Finished in")


def test_without_plain_decoding_there_is_nothing_to_compare_with(qtbot, compare, session):
    session.broken[NONE] = DraftRefused("broken", "It broke.")
    measure(qtbot, compare)
    assert compare.view.headline == "Plain decoding could not be measured."
    assert compare.view.rest == "It broke."
    assert session.answered == []


def test_use_the_fastest_changes_the_draft(qtbot, dialog, compare, program):
    compare.choose_source("code")
    measure(qtbot, compare)
    assert compare.view.fastest == str(DRAFT) != program.models.draft
    qtbot.mouseClick(dialog.use, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    assert not dialog.isVisible()


def test_another_target_forgets_what_came_out(qtbot, compare, program):
    measure(qtbot, compare)
    qtbot.waitUntil(lambda: not program.models.choosing)
    program.models.choose_target(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT))
    assert compare.view.fastest == ""
    assert compare.view.headline == "Which draft is fastest here?"


def test_a_target_that_changes_meanwhile_ends_it_and_teaches_nothing(
    qtbot, compare, program, session, shelf
):
    session.limit = 3
    compare.run()
    qtbot.waitUntil(lambda: len(session.answered) == 3)
    program.models.choose_target(str(DRAFT))
    session.limit = 10**9
    finish(qtbot, compare)
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT))
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert shelf.trials == []
    assert compare.view.fastest == ""


# prompts


def test_the_prompts_are_built_in_ones_the_users_own_or_a_files(qtbot, compare):
    names = {source.key: source.name for source in compare.view.sources}
    assert names[ALL] == f"Built-in set, {PROMPTS} prompts"
    assert names["edit"] == "Edit, 4 prompts"
    assert OWN not in names
    compare._history.questions.emit(["What is dew?", "Why?", "x" * 9_000])
    names = {source.key: source.name for source in compare.view.sources}
    assert names[OWN] == "My last questions, 2 prompts"
    compare.choose_source(OWN)
    assert compare.prompts.asked == (("What is dew?",), ("Why?",))
    measure(qtbot, compare)
    assert [chart.name for chart in compare.view.charts] == ["All prompts"]


def test_a_file_is_read_in_part_and_its_placeholders_are_counted(qtbot, compare, tmp_path):
    file = tmp_path / "speed.jsonl"
    rows = [{"category": c, "turns": [f"{c} {i}"]} for c in "ab" for i in range(20)]
    rows.append({"category": "a", "turns": [f"{PLACEHOLDER} USING SPECDEC_BENCH"]})
    file.write_text("\n".join(map(json.dumps, rows)))
    compare.read(file)
    qtbot.waitUntil(lambda: compare.view.source == FILE)
    name = {source.key: source.name for source in compare.view.sources}[FILE]
    assert name == "speed.jsonl, 24 of 40 prompts, placeholders left out: 1"
    assert compare.prompts.kinds.count("a") == compare.prompts.kinds.count("b") == 12


def test_a_file_without_prompts_is_said_and_changes_nothing(qtbot, compare, tmp_path):
    compare.read(tmp_path / "absent.jsonl")
    qtbot.waitUntil(lambda: compare.view.bad)
    assert "cannot be read" in compare.view.said
    assert compare.view.source == "edit"


# exports


def export(qtbot, model, file, picture=b""):
    model.export(file, picture)
    qtbot.waitUntil(lambda: bool(model.view.said))


def test_what_came_out_is_exported_whole(qtbot, compare, tmp_path):
    compare.choose_source(ALL)
    measure(qtbot, compare)
    report = compare.report()
    export(qtbot, compare, tmp_path / "out.json")
    assert compare.view.said == "Saved as out.json"
    kept = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(report.as_json()))
    assert kept["rows"][1]["by_category"]["edit"]["speedup"] == pytest.approx(2.36, abs=0.01)
    export(qtbot, compare, tmp_path / "out.csv")
    qtbot.waitUntil((tmp_path / "out.csv").exists)
    text = (tmp_path / "out.csv").read_text(encoding="utf-8")
    overall = [r for r in csv.DictReader(io.StringIO(text)) if r["category"] == "overall"]
    assert [float(r["tokens_per_second"]) for r in overall] == [
        row.tokens_per_second for row in report.rows
    ]


def test_the_picture_shows_what_came_out(qtbot, dialog, compare, tmp_path):
    measure(qtbot, compare)
    export(qtbot, compare, tmp_path / "out.png", dialog.picture())
    qtbot.waitUntil((tmp_path / "out.png").exists)
    image = QImage(str(tmp_path / "out.png"))
    assert image.width() >= dialog.table.width()
    assert image.height() >= dialog.table.height() + dialog.charts.height()
    assert list(tmp_path.glob("*.partial")) == []


def test_a_file_that_cannot_be_written_is_said(qtbot, compare, tmp_path):
    measure(qtbot, compare)
    export(qtbot, compare, tmp_path / "absent" / "out.json")
    assert compare.view.bad
    assert "cannot be written" in compare.view.said


# the dialog


def test_compare_is_opened_from_the_list_of_drafts_and_by_a_key(qtbot, program):
    qtbot.mouseClick(program.window.sidebar.drafts.compare, Qt.MouseButton.LeftButton)
    assert program.window.compare.isVisible()
    program.window.compare.close()
    qtbot.keyClick(program.window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert program.window.compare.isVisible()


def test_the_dialog_runs_cancels_and_ticks(qtbot, dialog, compare, session):
    dialog.table.rows[str(FOREIGN)].tick.click()
    assert not lines(compare)[str(FOREIGN)].ticked
    session.limit = 7
    dialog.start.click()
    assert compare.running
    qtbot.waitUntil(lambda: len(session.answered) == 7)
    assert dialog.start.text().endswith("Cancel")
    assert not dialog.prompts.isEnabled()
    assert not dialog.use.isEnabled()
    dialog.start.click()
    finish(qtbot, compare)
    qtbot.waitUntil(lambda: dialog.start.text().endswith("Run"))


def test_closing_the_dialog_ends_what_it_measures(qtbot, dialog, compare, session):
    session.limit = 7
    dialog.start.click()
    qtbot.waitUntil(lambda: len(session.answered) == 7)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    finish(qtbot, compare)
    assert not dialog.isVisible()


def test_the_chat_answers_after_a_comparison(qtbot, compare, program, session):
    measure(qtbot, compare)
    qtbot.waitUntil(lambda: not program.models.choosing)
    program.chat.send("Hello")
    qtbot.waitUntil(lambda: not program.chat.answering)
    assert program.chat.turns[-1].text == "x"


def test_a_narrow_dialog_leaves_columns_out_and_shows_every_chart(qtbot, dialog, compare):
    compare.choose_source(ALL)
    measure(qtbot, compare)
    dialog.resize(NARROW + 100, 600)
    qtbot.wait(1)
    row, one_band = dialog.table.rows[NGRAM], dialog.charts.height()
    assert row.cells[4].isVisible()
    dialog.resize(dialog.minimumSize().width(), 500)
    qtbot.waitUntil(lambda: dialog.charts.height() > one_band)
    assert not row.cells[4].isVisible()
    assert row.cells[1].isVisible()


@pytest.mark.parametrize("count", [1, 2])
def test_a_prompt_longer_than_the_context_is_left_out_and_counted(qtbot, compare, session, count):
    compare.set_repeat(2)
    asked = [question for question, *_ in SETS["edit"]]
    session.long = set(asked[:count])
    measure(qtbot, compare)
    said = "1 prompt is" if count == 1 else "2 prompts are"
    assert f"{said} longer than the context." in compare.view.detail
    assert compare.view.charts[0].count == f"{len(asked) - count} prompts"
    report = compare.report()
    assert report.prompts == len(asked) - count
    assert {row.prompts for row in report.rows} == {len(asked) - count}
    assert {question for _, question, _ in session.answered} == {*asked[count:]}
    session.long = set(asked)
    measure(qtbot, compare)
    assert compare.view.headline == "Plain decoding could not be measured."


def test_a_kind_whose_prompts_are_all_too_long_has_no_chart(qtbot, compare, session):
    compare.choose_source(ALL)
    session.long = {question for question, *_ in SETS["code"]}
    measure(qtbot, compare)
    assert [chart.name for chart in compare.view.charts] == [
        "Edit", "Summarise", "Question", "Creative",
    ]  # fmt: skip


def test_commands_of_the_fastest_pair_are_copied(qtbot, dialog, compare):
    compare.choose_source("code")
    measure(qtbot, compare)
    qtbot.waitUntil(dialog.commands.isVisible)
    dialog.commands.buttons["llama-server"].click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("llama-server -m target.gguf -md draft.gguf")
    dialog.commands.buttons["vLLM"].click()
    copied = QGuiApplication.clipboard().text()
    assert '"method":"draft_model"' in copied
    assert dialog.commands.text.text() == copied


def test_a_pair_that_a_peer_cannot_run_has_a_reason_in_place_of_a_command(
    qtbot, dialog, compare, session
):
    session.times = {"none": (1,) * 5, str(FOREIGN): (3,) * 5}
    measure(qtbot, compare)
    qtbot.waitUntil(dialog.commands.isVisible)
    assert not dialog.commands.buttons["llama-server"].isEnabled()
    assert dialog.commands.note.text() == "llama.cpp has no drafts of another vocabulary."
    assert dialog.commands.buttons["vLLM"].isEnabled()


@pytest.mark.parametrize(
    ("config", "method"),
    [
        ({}, "model"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "eagle3"),
        ({"speculators_model_type": "peagle"}, "p-eagle"),
    ],
)
def test_a_command_has_the_method_that_a_draft_states(tmp_path, config, method):
    """Whatever its folder is called."""
    assert _method(inspect(write_bare(tmp_path / "dflash", **config))) == method


def test_without_a_known_method_there_is_no_command(tmp_path):
    head = inspect(write_bare(tmp_path / "eagle3", architectures=["MedusaModel"]))
    with pytest.raises(EngineError) as unknown:
        _method(head)
    assert unknown.value.code == "head_unknown"
