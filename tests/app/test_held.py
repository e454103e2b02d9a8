"""What does not fit is not loaded: it is shown with its ways out, and the user decides."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.viewmodels.pairs import Asked
from engine.fit import GIB, Room
from engine.guidance import Level, Verdict
from engine.library import own_head
from engine.library.scan import Entry
from tests.app.test_drafts import SIZES, Sized, free, row, shelf_of
from tests.fakes import DRAFT, TARGET, FakeShelf, info

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


def test_a_first_target_that_does_not_fit_is_shown_with_what_can_be_done(qtbot, open_program):
    session, shelf = Sized(), FakeShelf([])
    program = open_program(session, shelf, wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    program.worker.sampled.disconnect(program.models._sampled)
    free(program, LITTLE)
    shelf.found.append(Entry("Large", LARGE, replace(info(LARGE, 70_000_000_000), **SIZES), None))
    program.models.start()
    qtbot.waitUntil(lambda: program.models.memory.view is not None)
    assert (program.models.memory.view.word, program.models.memory.view.waits) == ("no", True)
    assert session.loads == []
    program.models.load_anyway()
    qtbot.waitUntil(lambda: session.loads == [LARGE])
    settled(qtbot, program)


def test_a_draft_that_fits_is_loaded_at_once(qtbot, program):
    free(program, 8)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))


def test_a_targets_own_head_that_does_not_fit_waits_too(qtbot, open_program, session):
    """It lies in the target's files, so it has no precision of its own."""
    shelf = shelf_of()
    shelf.own_head, shelf.own_info = Verdict(Level.GOOD, own_head.GOOD), info(TARGET, **SIZES)
    program = open_program(session, shelf)
    program.worker.sampled.disconnect(program.models._sampled)
    free(program, LITTLE)
    qtbot.waitUntil(lambda: row(program, "mtp").fit.startswith("Does not fit"))
    program.models.choose_draft("mtp")
    assert program.models.memory.view.waits
    assert "mtp" not in session.choices
    assert "draft_precision" not in {way.code for way in program.models.memory.view.ways}
    program.models.load_anyway()
    qtbot.waitUntil(lambda: program.models.draft == "mtp")
    assert program.models.draft_precisions == ()
    assert "Draft weights" in {part.words for part in program.models.memory.view.legend}


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


class OnCards(Sized):
    """A session on graphics cards, whose target has layers to spread."""

    def load_target(self, path, **options):
        loaded = super().load_target(path, **options)
        known = replace(info(path, SPREAD if path == WIDE else 10**8), **SIZES, layers=28)
        return replace(
            loaded, info=known, device="cuda", precision="bf16", layers_in_ram=self.layers_in_ram
        )


SPREAD = 7_000_000_000  # parameters, of 2 bytes each
WIDE = Path("/models/wide")


@pytest.fixture
def cards(qtbot, open_program):
    """Opens the program, with two cards that have so much free."""

    def opening(first, second):
        wide = Entry("Wide", WIDE, replace(info(WIDE, SPREAD), **SIZES, layers=28), None)
        session = OnCards()
        program = open_program(session, shelf_of(wide))
        program.worker.sampled.disconnect(program.models._sampled)
        qtbot.waitUntil(lambda: row(program, DRAFT).tone == "good")
        rooms = [
            Room("cuda", name, 24 * GIB, round(free * GIB))
            for name, free in (("a", first), ("b", second))
        ]
        program.models._sampled([*rooms, Room("cpu", "Main memory", 64 * GIB, 60 * GIB)])
        return program, session

    return opening


@pytest.mark.parametrize(("free_now", "word"), [(11, "fits"), (8.2, "tight"), (2, "no")])
def test_what_is_loaded_over_two_cards_is_what_is_judged(qtbot, cards, free_now, word):
    program, session = cards(free_now, free_now)
    models = program.models
    models._remember(models.settings.with_draft(str(WIDE), str(DRAFT)))
    judged = models.memory.settle(models._pairs.of_target(Asked(str(WIDE), None), models.settings))
    assert models.memory.fit(judged).word == word
    models.choose_target(str(WIDE))
    if word == "no":
        assert models.memory.settle(models.memory.pair) == judged
        models.load_anyway()
    qtbot.waitUntil(lambda: models.target_key == str(WIDE))
    settled(qtbot, program)
    assert session.pair == judged
    assert sum(judged.on_cards) == 28
    assert judged.on_cards[1] > 0
    assert models.memory.pair.on_cards == judged.on_cards


def test_a_target_leaves_room_for_the_draft_that_comes_after_it(qtbot, cards):
    program, session = cards(11, 11)
    models = program.models
    models._remember(models.settings.with_draft(str(WIDE), str(DRAFT)))
    models.choose_target(str(WIDE))
    qtbot.waitUntil(lambda: models.target_key == str(WIDE) and models.draft == str(DRAFT))
    assert session.pair.draft.path == DRAFT
    assert session.pair.context == models.context


def test_a_draft_is_judged_beside_the_target_where_it_lies(qtbot, cards):
    program, session = cards(20, 20)
    models = program.models
    models.choose_target(str(WIDE))
    qtbot.waitUntil(lambda: models.target_key == str(WIDE))
    settled(qtbot, program)
    assert session.pair.on_cards == (28,)
    # the first card is full of it and of others, and the second is empty
    ram = Room("cpu", "Main memory", 64 * GIB, 60 * GIB)
    full = Room("cuda", "a", 24 * GIB, GIB // 8)
    models._sampled([full, replace(full, free=24 * GIB), ram])
    assert row(program, DRAFT).fit.startswith("Does not fit, ")


def test_layers_in_main_memory_are_loaded_as_they_were_judged(qtbot, cards):
    program, session = cards(4, 4)
    models = program.models
    models.choose_target(str(WIDE))
    assert models.memory.view.word == "no"
    (way,) = (way for way in models.memory._ways.values() if way.code == "layers")
    expected = models.memory.settle(way.pair)
    models.memory.take("layers")
    qtbot.waitUntil(lambda: models.target_key == str(WIDE))
    settled(qtbot, program)
    assert session.pair == expected
    assert models.memory.pair.layers_in_ram == expected.layers_in_ram > 0
    assert models.memory.pair.on_cards == expected.on_cards
