"""The draft picker: what its rows say and do, and that they follow memory, answers and folders."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt

from app import paths
from app.viewmodels.shelf import Shelf, guidance_table
from app.widgets.choice_row import button_place
from app.widgets.common import unbroken
from engine.api import Usage
from engine.errors import Reason
from engine.fit import GIB, Room
from engine.guidance import Level, Verdict
from engine.library import own_head
from engine.library.index import Index
from engine.library.scan import Entry
from tests.app.test_rows import measurement, offer
from tests.fakes import DRAFT, FOREIGN, TARGET, FakeShelf, ScriptedSession, chunks_of, entries, info
from tests.folders import write_bare

UNFINISHED = Path("/models/half")
SIZES = {"hidden_size": 896, "intermediate_size": 4_864}


class Sized(ScriptedSession):
    """A session whose targets say how much memory they take, of 8 bits at first."""

    def __init__(self, *script):
        super().__init__(*script)
        self.auto = "int8"

    def load_target(self, path, **options):
        loaded = super().load_target(path, **options)
        return replace(loaded, info=replace(loaded.info, **SIZES))


def shelf_of(*more: Entry) -> FakeShelf:
    """Models whose memory is known."""
    known = [
        replace(e, info=replace(e.info, **SIZES)) if e.info is not None else e for e in entries()
    ]
    return FakeShelf([*known, *more])


def row(program, key):
    return next(row for row in program.models.drafts if row.key == str(key))


def free(program, gib):
    """As if the sampler had told it; the real one is still."""
    program.models._sampled([Room("cpu", "Main memory", 64 * GIB, round(gib * GIB))])


@pytest.fixture
def judged(qtbot, open_program):
    """Opens the program and waits until the draft is judged."""

    def opening(session=None, shelf=None):
        program = open_program(session or Sized(), shelf or shelf_of())
        program.worker.sampled.disconnect(program.models._sampled)
        qtbot.waitUntil(lambda: row(program, DRAFT).tone == "good")
        return program

    return opening


def press(qtbot, program, key):
    """Click the button of a row."""
    choices = program.window.sidebar.drafts.choices
    index = choices.model().index(choices._rows.place(key))
    choices.scrollTo(index)
    place = button_place(choices.visualRect(index), row(program, key))
    qtbot.mouseClick(choices.viewport(), Qt.MouseButton.LeftButton, pos=place.center())


def test_an_answer_with_a_draft_is_kept_and_shown(qtbot, judged):
    answer = chunks_of(["some words "] * 20)
    shelf = shelf_of()
    shelf.measured["none"] = measurement(48.0, None, None)
    program = judged(Sized(answer), shelf)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    program.chat.send("question")
    qtbot.waitUntil(lambda: row(program, DRAFT).aside != "–")
    (trial,) = shelf.trials
    usage = answer[-1].usage
    assert (trial.key, trial.tokens) == (str(DRAFT), usage.tokens)
    assert trial.acceptance_rate == usage.acceptance_rate == 0.75
    assert row(program, DRAFT).word == "Good:"
    assert row(program, DRAFT).detail == "1.5 times plain, 75 % accepted"
    assert row(program, "none").aside == "48 tok/s"


def test_auto_brings_the_best_model_that_fits(qtbot, judged):
    session = Sized()
    program = judged(session)
    free(program, 30)
    program.models.choose_draft("auto")
    qtbot.waitUntil(lambda: program.models.draft == "auto")
    assert (session.choices[-1], session.held_by_auto) == ("auto", DRAFT)
    assert row(program, "auto").checked
    assert program.models.draft_name == "the fastest"
    assert program.models.settings.drafts[program.models.target_key] == "auto"
    program.models.choose_draft("ngram")
    qtbot.waitUntil(lambda: program.models.draft == "ngram")
    assert session.held_by_auto is None


def test_the_targets_own_head_is_chosen_and_kept(qtbot, judged):
    session, shelf = Sized(), shelf_of()
    shelf.own_head = Verdict(Level.GOOD, own_head.GOOD)
    program = judged(session, shelf)
    assert row(program, "mtp").name == "Own head (MTP)"
    assert row(program, "mtp").usable
    program.models.choose_draft("mtp")
    qtbot.waitUntil(lambda: program.models.draft == "mtp")
    assert session.choices[-1] == "mtp"
    assert row(program, "mtp").checked
    assert program.models.draft_name == "own head"
    assert program.models.settings.drafts[program.models.target_key] == "mtp"


def test_auto_goes_without_a_model_where_none_fits(qtbot, judged):
    session = Sized()
    program = judged(session)
    free(program, 1)
    program.models.choose_draft("auto")
    qtbot.waitUntil(lambda: program.models.draft == "auto")
    assert session.held_by_auto is None


def test_an_answer_without_a_draft_is_the_plain_rate(qtbot, judged):
    shelf = shelf_of()
    program = judged(shelf=shelf)
    program.models.measured(Usage(tokens=64, seconds=4.0))
    qtbot.waitUntil(lambda: row(program, "none").aside == "16 tok/s")
    assert shelf.trials[0].acceptance_rate is None
    program.models.measured(Usage(tokens=4, seconds=4.0))
    program.models.measured(Usage(tokens=64, seconds=4.0, drafted=40, accepted=30, rounds=10))
    qtbot.waitUntil(lambda: row(program, "ngram").aside == "16 tok/s")
    assert [trial.key for trial in shelf.trials] == ["none", "ngram"]


def test_rows_follow_the_memory_that_is_free(qtbot, judged):
    program = judged()
    free(program, 12)
    assert row(program, DRAFT).fit.startswith("Fits, ")
    free(program, -8)
    assert row(program, DRAFT).fit.startswith("Does not fit, ")
    assert row(program, DRAFT).fit_tone == "bad"
    assert row(program, TARGET).fit == ""


def test_two_cards_hold_what_one_does_not(qtbot, judged):
    class Large(Sized):
        def load_target(self, path, **options):
            loaded = super().load_target(path, **options)
            return replace(loaded, info=replace(loaded.info, layers=28), precision="bf16")

    program = judged(Large())
    card = Room("cuda", "Card", 12 * GIB, 1 * GIB)
    ram = Room("cpu", "Main memory", 64 * GIB, 60 * GIB)
    program.models._sampled([card, ram])
    assert row(program, DRAFT).fit.startswith("Does not fit, ")
    program.models._sampled([card, replace(card, free=11 * GIB), ram])
    assert not row(program, DRAFT).fit.startswith("Does not fit, ")


def test_rows_that_say_the_same_are_not_shown_again(qtbot, judged):
    program = judged()
    free(program, 12)
    shown, drawn = [], []
    program.models.drafts_changed.connect(shown.append)
    program.window.sidebar.drafts.choices.model().dataChanged.connect(
        lambda first, last: drawn.append((first.row(), last.row()))
    )
    for gib in (12, 12.0001, 12.0002):
        free(program, gib)
    assert (shown, drawn) == ([], [])
    free(program, 11)
    assert len(shown) == 1
    rows = program.window.sidebar.drafts.choices._rows
    places = [rows.place(str(draft)) for draft in (DRAFT, FOREIGN)]
    assert drawn == [(place, place) for place in places]


def test_the_verdict_is_for_the_chosen_context_and_precision(qtbot, judged):
    program = judged()
    free(program, 40)
    first = row(program, DRAFT).fit
    program.models.choose_context(512)
    shorter = row(program, DRAFT).fit
    assert shorter != first
    program.models.choose_precision("bf16")
    qtbot.waitUntil(lambda: program.models.loaded.precision == "bf16")
    qtbot.waitUntil(lambda: bool(row(program, DRAFT).fit))
    assert row(program, DRAFT).fit != shorter
    assert row(program, DRAFT).fit.startswith("Fits, ")


def test_what_is_read_out_of_a_row_is_all_that_it_shows(judged):
    program = judged()
    free(program, 12)
    choices = program.window.sidebar.drafts.choices
    index = choices.model().index(choices._rows.place(str(DRAFT)))
    told = index.data(Qt.ItemDataRole.AccessibleTextRole)
    shown = row(program, DRAFT)
    for part in (shown.name, shown.detail, shown.fit):
        assert part in told
    assert unbroken(shown.fit) in index.data(Qt.ItemDataRole.ToolTipRole)


def test_get_asks_for_the_repository(qtbot, judged):
    shelf = shelf_of()
    shelf.gettable = [offer("Qwen/Small"), offer("o/Head", Level.REFUSED)]
    program = judged(shelf=shelf)
    with qtbot.waitSignal(program.models.get_asked) as asked:
        press(qtbot, program, "Qwen/Small")
    assert asked.args == ["Qwen/Small"]
    assert program.models.draft == "ngram"


def test_a_click_beside_the_button_asks_for_nothing_and_enter_does(qtbot, judged):
    shelf = shelf_of()
    shelf.gettable = [offer("Qwen/Small")]
    program = judged(shelf=shelf)
    asked = []
    program.models.get_asked.connect(asked.append)
    choices = program.window.sidebar.drafts.choices
    index = choices.model().index(choices._rows.place("Qwen/Small"))
    beside = choices.visualRect(index).topLeft() + QPoint(20, 8)
    qtbot.mouseClick(choices.viewport(), Qt.MouseButton.LeftButton, pos=beside)
    assert asked == []
    choices.setCurrentIndex(index)
    qtbot.keyClick(choices, Qt.Key.Key_Return)
    assert asked == ["Qwen/Small"]


def test_an_unfinished_download_offers_to_go_on(qtbot, judged):
    problem = Reason(
        "download_unfinished", "The download of {file} has not finished.", {"file": "a"}
    )
    program = judged(shelf=shelf_of(Entry("Half", UNFINISHED, None, problem)))
    with qtbot.waitSignal(program.models.resume_asked) as asked:
        press(qtbot, program, str(UNFINISHED))
    assert asked.args == [UNFINISHED]


def test_what_another_program_began_is_got_anew(qtbot, judged):
    path = Path("/cache/models--org--half/snapshots/rev")
    problem = Reason("download_unfinished", "The download of {file} has not finished.", {"file": 1})
    program = judged(shelf=shelf_of(Entry("Half", path, None, problem)))
    with qtbot.waitSignal(program.models.get_asked) as asked:
        press(qtbot, program, str(path))
    assert asked.args == ["org/half"]


def test_the_list_of_targets_offers_it_too(qtbot, judged):
    problem = Reason(
        "download_unfinished", "The download of {file} has not finished.", {"file": "a"}
    )
    program = judged(shelf=shelf_of(Entry("Half", UNFINISHED, None, problem)))
    picker = program.window.sidebar.target
    qtbot.mouseClick(picker.head, Qt.MouseButton.LeftButton)
    choices = picker.choices
    with qtbot.waitSignal(program.models.resume_asked) as asked:
        choices.setCurrentIndex(choices.model().index(choices._rows.place(str(UNFINISHED))))
        qtbot.keyClick(choices, Qt.Key.Key_Return)
    assert asked.args == [UNFINISHED]
    assert not choices.isVisible()


def test_a_model_that_comes_or_goes_changes_the_lists(qtbot, judged):
    shelf = shelf_of()
    program = judged(shelf=shelf)
    new = Path("/models/new")
    kept = list(shelf.found)
    entry = Entry("New", new, info(new, 10**9), Reason("x", "Broken: yes"))
    shelf.found.append(entry)
    program.models.look_again()
    qtbot.waitUntil(lambda: any(r.key == str(new) for r in program.models.drafts))
    assert any(r.key == str(new) for r in program.models.targets)
    shelf.found = kept
    program.models.look_again()
    qtbot.waitUntil(lambda: not any(r.key == str(new) for r in program.models.drafts))
    assert program.models.target_key == str(TARGET)


def test_what_runs_stays_listed_when_its_files_go(qtbot, judged):
    shelf = shelf_of()
    session = ScriptedSession()
    program = judged(session, shelf)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    shelf.found = [entry for entry in shelf.found if entry.path == FOREIGN]
    program.models.look_again()
    qtbot.waitUntil(lambda: len(program.models.targets) == 3)
    assert row(program, DRAFT).checked
    assert program.models.target_name == "Qwen2.5-Coder 7B Instruct"
    assert not program.models.first_run
    assert session.loads == [TARGET]


def test_a_model_whose_files_changed_is_judged_again(qtbot, judged):
    shelf = shelf_of()
    program = judged(shelf=shelf)
    judgements = []
    judge = shelf.judge
    shelf.judge = lambda t, d, stopped: judgements.append(d.path) or judge(t, d, stopped)
    place = next(i for i, entry in enumerate(shelf.found) if entry.path == DRAFT)
    changed = replace(shelf.found[place].info, file_bytes=5)
    shelf.found[place] = replace(shelf.found[place], info=changed)
    program.models.look_again()
    qtbot.waitUntil(lambda: judgements == [DRAFT])


def test_folders_are_not_looked_at_while_a_model_is_loaded(qtbot, judged):
    session, shelf = ScriptedSession(), shelf_of()
    program = judged(session, shelf)
    program.models._looks.stop()
    qtbot.waitUntil(lambda: not program.models._looking)
    session.load_hold.clear()
    program.models.choose_target(str(DRAFT))
    looks = shelf.looks
    program.models.look_again()
    session.load_hold.set()
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT))
    assert shelf.looks == looks


def test_a_model_laid_into_a_folder_ends_the_first_start(qtbot, open_program):
    shelf, session = FakeShelf([]), ScriptedSession()
    program = open_program(session, shelf, wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    shelf.found = entries()[:1]
    program.models.look_again()
    qtbot.waitUntil(lambda: program.models.loaded is not None)
    assert not program.models.first_run


def test_a_target_that_failed_is_not_loaded_again_with_every_change(qtbot, open_program):
    from engine.errors import LoadError

    shelf, session = FakeShelf(entries()[:1]), ScriptedSession()
    session.load_error = LoadError("cut_off", "The file is cut off.")
    program = open_program(session, shelf, wait=False)
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    session.load_error = None
    shelf.found = entries()
    program.models.look_again()
    qtbot.waitUntil(lambda: len(program.models.targets) > 2)
    assert not program.models.busy
    assert session.loads == []


def test_a_shelf_lists_anew_once_a_change_has_come_to_rest(tmp_path):
    folder = tmp_path / "library"
    write_bare(folder / "one")
    shelf = Shelf([folder], tmp_path, guidance_table(), Index(None))
    assert len(shelf.scan()) == 1
    assert shelf.look_again() is None
    write_bare(folder / "two")
    assert shelf.look_again() is None
    assert len(shelf.look_again()) == 2
    assert shelf.look_again() is None
    file = folder / "two" / "model.safetensors"
    for time in (1, 2, 3):
        os.utime(file, ns=(time, time))
        assert shelf.look_again() is None
    assert len(shelf.look_again()) == 2
    assert shelf.look_again() is None


def test_a_shelf_knows_what_was_measured_of_its_models(tmp_path):
    from app.viewmodels.shelf import Running, Trial

    target, draft = write_bare(tmp_path / "one"), write_bare(tmp_path / "two")
    running = Running(target, "int8", "cpu", {"none": None, "ngram": None, str(draft): "int4"})
    shelf = Shelf([tmp_path], tmp_path, guidance_table(), Index(None))
    assert shelf.known(running, None).found == {}
    shelf.known(running, Trial("none", 8.0, 100, None))
    found = shelf.known(running, Trial(str(draft), 12.0, 100, 0.7)).found
    assert found.keys() == {"none", str(draft)}
    assert found[str(draft)].times_plain == 1.5
    assert paths.measured_file().exists()
    other = replace(running, drafts={**running.drafts, str(draft): "int8"})
    assert shelf.known(other, None).found.keys() == {"none"}


def test_a_shelf_offers_what_is_not_here(tmp_path):
    shelf = Shelf([], tmp_path, guidance_table(), Index(None))
    target = replace(info(Path("Qwen2.5-7B-Instruct")), name="Qwen2.5-7B-Instruct")
    repositories = [g.offer.repository for g in shelf.offers(target, [])]
    assert "Qwen/Qwen2.5-0.5B-Instruct" in repositories
    here = Entry("Qwen2.5 0.5B Instruct", DRAFT, info(DRAFT, 494_000_000), None)
    fewer = [g.offer.repository for g in shelf.offers(target, [here])]
    assert fewer == [r for r in repositories if r != "Qwen/Qwen2.5-0.5B-Instruct"]
