"""Precisions of target and draft: chosen, kept, told; and what holds of the answers."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from app import paths, settings
from engine.api import Usage
from engine.errors import DraftRefused, OutOfMemory, Reason
from engine.library.scan import Entry
from tests.fakes import DRAFT, TARGET, FakeShelf, ScriptedSession, chunks_of, info

NAMES = ["fp32", "bf16", "fp16", "int8", "int4"]


def card(program):
    return program.window.sidebar.target


def row(rows, key):
    return next(r for r in rows if r.key == key)


def checked(rows):
    return [r.key for r in rows if r.checked]


def in_int8(*script):
    session = ScriptedSession(*script)
    session.auto = "int8"
    return session


def choose(qtbot, program, key):
    program.models.choose_precision(key)
    qtbot.waitUntil(lambda: not program.models.busy and not program.models.choosing)


def draft(qtbot, program):
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))


# The target


def test_every_precision_says_its_memory_and_auto_what_it_chose(open_program):
    program = open_program(in_int8())
    rows = program.models.target_precisions
    assert [r.key for r in rows] == ["auto", *NAMES]
    assert checked(rows) == ["auto"]
    assert card(program).precision._value.text() == "auto: int8"
    assert row(rows, "bf16").detail == "14.2 GiB, 15.0 GiB with a full context"
    assert row(rows, "int8").detail == "7.6 GiB, 8.5 GiB with a full context"
    assert row(rows, "auto").detail == "int8: 7.6 GiB, 8.5 GiB with a full context"
    tip = row(rows, "int8").tooltip
    assert tip.startswith("Weights 7.6 GiB; keys and values of 8,192 tokens 0.88 GiB, in fp32.")
    assert "bit-exact" in tip.splitlines()[1]
    assert "\n" not in row(rows, "fp32").tooltip


def test_a_precision_is_chosen_in_the_window_and_the_model_loaded_anew(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    cell = card(program).precision
    qtbot.mouseClick(cell, Qt.MouseButton.LeftButton)
    assert cell.popover.isVisible()
    place = cell.choices.visualRect(cell.choices.model().index(2)).center()
    qtbot.mouseClick(cell.choices.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert not cell.popover.isVisible()
    qtbot.waitUntil(lambda: program.models.loaded.precision == "bf16")
    assert (session.loads, session.precisions) == ([TARGET, TARGET], [None, "bf16"])
    assert cell._value.text() == "bf16"
    assert checked(program.models.target_precisions) == ["bf16"]
    qtbot.waitUntil(lambda: session.choices == ["ngram", "ngram"])


def test_choosing_what_is_chosen_loads_nothing(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    program.models.choose_precision("auto")
    assert not program.models.busy
    choose(qtbot, program, "int8")
    program.models.choose_precision("int8")
    assert not program.models.busy
    assert session.precisions == [None, "int8"]


def test_a_precision_that_cannot_be_loaded_leaves_the_target_as_it_was(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    before = program.models.loaded
    session.load_error = OutOfMemory("no_memory_loading", "There is not enough memory.")
    program.models.choose_precision("fp32")
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.alerts.current.text == "There is not enough memory."
    assert program.models.loaded is before
    assert checked(program.models.target_precisions) == ["auto"]
    assert program.models.settings.precisions == {}
    assert program.chat.can_send


def test_stopping_the_change_leaves_the_target_as_it_was(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    session.load_hold.clear()
    program.models.choose_precision("fp32")
    qtbot.waitUntil(lambda: "46 %" in program.models.loading)
    program.window.escape()
    qtbot.waitUntil(lambda: not program.models.busy)
    session.load_hold.set()
    assert program.models.precision == "auto: int8"
    assert program.models.settings.precisions == {}
    assert program.alerts.current is None


def test_a_precision_is_kept_for_its_model_and_taken_back(qtbot, open_program):
    program = open_program(in_int8())
    choose(qtbot, program, "bf16")
    program.models.choose_target(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT))
    assert program.models.precision == "auto: int8"
    program.models.choose_target(str(TARGET))
    qtbot.waitUntil(lambda: program.models.target_key == str(TARGET))
    assert program.models.precision == "bf16"
    program.models.keep()
    assert settings.load(paths.config_folder()).precisions == {str(TARGET): "bf16"}
    choose(qtbot, program, "auto")
    assert program.models.settings.precisions == {}


def test_the_next_start_takes_what_was_chosen(open_program):
    kept = settings.Settings(
        target=str(TARGET),
        drafts={str(TARGET): str(DRAFT)},
        precisions={str(TARGET): "bf16"},
        draft_precisions={str(DRAFT): "int4"},
    )
    settings.save(kept, paths.ensure(paths.config_folder()))
    session = in_int8()
    program = open_program(session)
    assert (session.precisions, session.draft_precisions) == (["bf16"], ["int4"])
    assert checked(program.models.target_precisions) == ["bf16"]
    assert checked(program.models.draft_precisions) == ["int4"]


def test_a_kept_precision_that_fails_does_not_lock_the_model_out(qtbot, open_program):
    kept = settings.Settings(target=str(TARGET), precisions={str(TARGET): "fp32"})
    settings.save(kept, paths.ensure(paths.config_folder()))
    session = in_int8()
    session.load_error = OutOfMemory("no_memory_loading", "There is not enough memory.")
    program = open_program(session, wait=False)
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    session.load_error = None
    program.models.choose_target(str(TARGET))
    qtbot.waitUntil(lambda: program.models.loaded is not None)
    assert session.precisions == [None]


def test_unknown_memory_is_said(open_program):
    bare = info(TARGET, linear=None, cache_widths=None)
    session = in_int8()
    load = session.load_target

    def bare_load(*args, **kwargs):
        return replace(load(*args, **kwargs), info=bare)

    session.load_target = bare_load
    program = open_program(session, FakeShelf([Entry("Bare", TARGET, bare, None)]))
    assert row(program.models.target_precisions, "bf16").detail == (
        "memory unknown: the files do not say enough"
    )


def test_a_screen_reader_hears_memory_and_speed(open_program):
    kept = settings.Settings(target=str(TARGET), speeds={str(TARGET): {"bf16": 6.53}})
    settings.save(kept, paths.ensure(paths.config_folder()))
    program = open_program(in_int8())
    said = card(program).precision.choices.model().index(2, 0).data()
    assert said == "bf16. 6.5 tok/s. 14.2 GiB, 15.0 GiB with a full context"
    assert card(program).precision.accessibleName() == "Precision: auto: int8"


# Speed


def test_an_answer_without_a_draft_measures_the_precision(qtbot, open_program):
    answer = chunks_of(["x"] * 40, drafted=0, accepted=0)
    session = in_int8(answer, answer)
    program = open_program(session)
    assert row(program.models.target_precisions, "int8").aside == "–"
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("hi")
    speed = row(program.models.target_precisions, "int8").aside
    assert speed == row(program.models.target_precisions, "auto").aside == "20 tok/s"
    assert row(program.models.target_precisions, "bf16").aside == "–"
    program.models.keep()
    kept = settings.load(paths.config_folder()).speeds
    assert kept == {str(TARGET): {"int8": pytest.approx(40 / 2.01, abs=0.1)}}


@pytest.mark.parametrize(
    "usage",
    [
        Usage(tokens=31, seconds=1.0),
        Usage(tokens=64, seconds=1.0, drafted=4, accepted=4),
        Usage(tokens=0, seconds=1.0),
        Usage(tokens=64),
    ],
)
def test_short_and_drafted_answers_measure_nothing(open_program, usage):
    program = open_program(in_int8())
    program.models.measured(usage)
    assert program.models.settings.speeds == {}


# The draft


def test_only_a_model_that_drafts_has_a_precision(qtbot, open_program):
    program = open_program(in_int8())
    popover = program.window.sidebar.drafts.popover
    popover.open_under(program.window.sidebar.drafts.options)
    assert not popover.precisions.isVisible()
    draft(qtbot, program)
    rows = program.models.draft_precisions
    assert [r.key for r in rows] == ["same", *NAMES]
    assert checked(rows) == ["same"]
    assert row(rows, "same").detail.startswith("int8: 0.5")
    assert popover.precisions.isVisible()
    popover.hide()
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: program.models.draft_precisions == ())


def test_a_drafts_precision_is_chosen_and_kept_apart_from_the_targets(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    draft(qtbot, program)
    program.window.sidebar.drafts.popover.precisions.chosen.emit("int4")
    qtbot.waitUntil(lambda: session.draft_precisions == [None, None, "int4"])
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert checked(program.models.draft_precisions) == ["int4"]
    assert program.models.settings.draft_precisions == {str(DRAFT): "int4"}
    assert program.models.settings.precisions == {}
    program.models.choose_draft_precision("same")
    qtbot.waitUntil(lambda: session.draft_precisions[3:] == [None])
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert program.models.settings.draft_precisions == {}


def test_a_draft_that_fails_in_a_precision_is_off_and_keeps_the_one_it_had(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    draft(qtbot, program)
    session.draft_error = DraftRefused("refused", "There is not enough memory.")
    program.models.choose_draft_precision("fp32")
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.models.draft == "none"
    session.draft_error = None
    draft(qtbot, program)
    assert session.draft_precisions[-1] is None


def test_a_kept_precision_of_a_draft_that_fails_is_not_tried_for_ever(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    draft(qtbot, program)
    program.models.choose_draft_precision("fp32")
    qtbot.waitUntil(lambda: checked(program.models.draft_precisions) == ["fp32"])
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: program.models.draft == "none")
    session.draft_error = DraftRefused("refused", "There is not enough memory.")
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    session.draft_error = None
    draft(qtbot, program)
    assert session.draft_precisions[-1] is None


def test_on_a_low_screen_the_list_of_draft_precisions_scrolls(qtbot, open_program):
    program = open_program(in_int8())
    draft(qtbot, program)
    popover = program.window.sidebar.drafts.popover
    popover.fit(10_000)
    whole = popover.sizeHint().height()
    popover.fit(whole - 60)
    assert popover.sizeHint().height() <= whole - 60
    popover.fit(0)
    assert popover.precisions.height() == 120


# What holds of the answers


def test_bit_exact_is_said_only_where_it_was_checked(qtbot, open_program):
    session = in_int8()
    program = open_program(session)
    target = card(program)
    assert target.badge.text() == "Same up to rounding"
    assert not target._exact.isVisible()
    assert "almost equally likely" in target.badge.toolTip()
    session.bit_exact = True
    choose(qtbot, program, "bf16")
    assert target.badge.text() == "Bit-exact"
    assert target._exact.isVisible()
    assert target.badge.toolTip() == (
        "<qt>Checked on this device: with one seed, a draft does not change the answer.</qt>"
    )


def test_the_rule_of_equal_odds_is_never_called_exact(open_program):
    session = in_int8()
    session.bit_exact = True
    program = open_program(session)
    assert card(program).badge.text() == "Bit-exact"
    program.models.draft_with(length=None, verification="rejection")
    assert card(program).badge.text() == "Same odds"
    assert not card(program)._exact.isVisible()
    program.models.draft_with(length=None, verification="coupled")
    assert card(program).badge.text() == "Bit-exact"


def test_what_was_chosen_for_the_user_is_told_in_plain_words(qtbot, open_program):
    session = in_int8()
    session.notes = (
        Reason("int8_worse", "8 bits would cost {percent} %.", {"percent": 3.2}),
        Reason("eager", "<b>No graph</b> was captured."),
    )
    program = open_program(session)
    notes = card(program).notes
    assert notes.isVisible()
    assert notes.text() == "8 bits would cost 3.2 %.\n<b>No graph</b> was captured."
    assert notes.textFormat() is Qt.TextFormat.PlainText
    session.notes = ()
    choose(qtbot, program, "bf16")
    assert not notes.isVisible()


def test_the_files_own_quantisation_stands_with_its_facts(open_program):
    packed = info(TARGET, quantisation="Q4_K_M")
    program = open_program(in_int8(), FakeShelf([Entry("Packed", TARGET, packed, None)]))
    assert program.models.targets[0].detail == (
        "7.6 billion parameters, Q4_K_M, 32k context, Apache-2.0"
    )


# Settings


def test_precisions_and_speeds_survive(tmp_path):
    kept = settings.Settings(
        precisions={"/m/ü ö.gguf": "int8"},
        draft_precisions={"/m/d": "int4"},
        speeds={"/m/ü ö.gguf": {"int8": 14.25, "bf16": 6.5}},
    )
    settings.save(kept, tmp_path)
    assert settings.load(tmp_path) == kept


def test_damaged_precisions_and_speeds_fall_back(tmp_path):
    (tmp_path / settings.FILE_NAME).write_text(
        'sidebar = false\ndraft_precisions = "int8"\n'
        '[precisions]\n"/a" = "int9"\n"/b" = 8\n"/c" = "bf16"\n'
        '[speeds]\n"/a" = 3\n[speeds."/b"]\nint8 = nan\nbf16 = -1.0\nfp32 = inf\nint9 = 2.0\n'
        'fp16 = "x"\nint4 = 3.5\n'
    )
    assert settings.load(tmp_path) == settings.Settings(
        sidebar=False, precisions={"/c": "bf16"}, speeds={"/b": {"int4": 3.5}}
    )
