"""What does not fit is not loaded: it is shown with its ways out, and the user decides."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.library.scan import Entry
from tests.app.test_drafts import SIZES, Sized, free, row, shelf_of
from tests.fakes import DRAFT, TARGET, info

LARGE = Path("/models/large")
LITTLE = 0.3  # GiB beside the target: too little for the draft and its cache


@pytest.fixture
def session():
    return Sized()


@pytest.fixture
def program(qtbot, open_program, session):
    """A target that runs, with little memory left."""
    large = Entry("Large", LARGE, replace(info(LARGE, 70_000_000_000), **SIZES), None)
    program = open_program(session, shelf_of(large))
    program.worker.sampled.disconnect(program.models._sampled)
    qtbot.waitUntil(lambda: row(program, DRAFT).tone == "good")
    free(program, LITTLE)
    return program


def settled(qtbot, program):
    qtbot.waitUntil(lambda: not program.models.choosing and not program.models.busy)


def test_a_draft_that_does_not_fit_waits_for_the_user(qtbot, program, session):
    before = list(session.choices)
    program.models.choose_draft(str(DRAFT))
    panel, view = program.window.sidebar.memory, program.models.memory.view
    assert (view.word, view.waits) == ("no", True)
    assert row(program, DRAFT).checked
    assert program.models.draft == "ngram"
    assert panel.load_anyway.text() == "Load anyway"
    assert session.choices == before
    panel.load_anyway.click()
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    assert session.choices == [*before, DRAFT]
    assert not program.models.memory.view.waits
    assert not panel.load_anyway.isVisibleTo(panel)


def test_a_draft_that_fits_is_loaded_at_once(qtbot, program):
    free(program, 8)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))


@pytest.mark.parametrize("other", ["none", "ngram"])
def test_another_choice_takes_its_place(qtbot, program, session, other):
    program.models.choose_draft("none")
    settled(qtbot, program)
    program.models.choose_draft(str(DRAFT))
    program.models.choose_draft(other)
    settled(qtbot, program)
    assert program.models.draft == other
    assert not row(program, DRAFT).checked
    assert not program.models.memory.view.waits
    assert DRAFT not in session.choices


def test_repeats_instead_is_a_way_out(qtbot, program, session):
    program.models.choose_draft("none")
    settled(qtbot, program)
    program.models.choose_draft(str(DRAFT))
    program.models.memory.take("ngram")
    qtbot.waitUntil(lambda: program.models.draft == "ngram")
    assert DRAFT not in session.choices


def test_a_lower_precision_of_the_draft_is_a_way_out(qtbot, program, session):
    free(program, 2.15)
    program.models.settings = program.models.settings.with_draft_precision(str(DRAFT), "fp32")
    program.models.choose_draft(str(DRAFT))
    assert program.models.memory.view.word == "no"
    program.models.memory.take("draft_precision")
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    assert session.draft_precisions[-1] in ("bf16", "int8", "int4")
    assert len(session.loads) == 1


def test_a_lower_precision_of_the_target_brings_the_draft_with_it(qtbot, program, session):
    program.models.choose_draft(str(DRAFT))
    program.models.memory.take("precision")
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    assert program.models.loaded.precision == "int4"
    assert session.loads == [TARGET, TARGET]
    assert session.draft_precisions[-1] is None


def test_a_shorter_context_is_a_way_out_by_button_and_by_slider(qtbot, program, session):
    free(program, 1.5)
    program.models.choose_draft(str(DRAFT))
    assert program.models.memory.view.word == "no"
    full = program.models.context
    program.models.memory.take("context")
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    assert program.models.context < full
    program.models.choose_draft("none")
    settled(qtbot, program)
    program.models.choose_context(full)
    program.models.choose_draft(str(DRAFT))
    panel = program.window.sidebar.memory
    assert panel.load_anyway.text() == "Load anyway"
    program.models.choose_context(1024)
    assert program.models.memory.view.word != "no"
    assert panel.load_anyway.text() == "Load"
    panel.load_anyway.click()
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))


def test_a_target_that_does_not_fit_leaves_the_running_one(qtbot, program, session):
    program.models.choose_target(str(LARGE))
    assert program.models.memory.view.word == "no"
    assert program.models.target_key == str(TARGET)
    assert session.loads == [TARGET]
    program.models.choose_context(2048)
    assert program.models.context != 2048
    program.models.load_anyway()
    qtbot.waitUntil(lambda: program.models.target_key == str(LARGE))
    assert program.models.context == 2048


def test_what_runs_and_no_longer_fits_has_nothing_to_load(qtbot, program):
    free(program, 0.1)
    program.models.choose_context(32_768)
    panel = program.window.sidebar.memory
    assert program.models.memory.view.word == "no"
    assert not panel.load_anyway.isVisibleTo(panel)
