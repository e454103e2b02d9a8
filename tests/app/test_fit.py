"""The section "Memory": what it says of a pair, and that it answers while the slider moves."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.viewmodels.fit import Fitting
from app.widgets.common import Button
from app.widgets.fit_bar import FitBar
from app.widgets.memory_panel import STEP, MemoryPanel
from engine.fit import GIB, Pair, Room, judge
from engine.placement import judge_each
from tests.engine.test_fit import model

PAIR = Pair(model(8, "big", context=32_768), "int8", 8192, model(0.5, "small"), "int8")
ROOMY = Room("cuda", "RTX 4070", 24 * GIB, 22 * GIB)
SMALL = Room("cuda", "RTX 3050", 8 * GIB, 7 * GIB)


@pytest.fixture
def fitting(qtbot):
    return Fitting()


@pytest.fixture
def window(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(320, 600)
    made.setLayout(QVBoxLayout())
    return made


@pytest.fixture
def panel(window, fitting):
    made = MemoryPanel(fitting)
    window.layout().addWidget(made)
    window.show()
    return made


def bars(panel):
    # what a layout was given is shown with the next event
    QCoreApplication.processEvents()
    return [bar for bar in panel.findChildren(FitBar) if bar.isVisibleTo(panel)]


def texts(widget):
    QCoreApplication.processEvents()
    return [child.text() for child in widget.findChildren(QLabel) if child.isVisibleTo(widget)]


def test_nothing_is_shown_before_both_are_known(fitting, panel):
    assert panel.isHidden()
    fitting.show(None, PAIR)
    assert panel.isHidden()
    fitting.show_rooms([ROOMY])
    assert panel.isVisible()


def test_the_bars_parts_are_those_of_the_estimate(fitting):
    fitting.show(None, PAIR)
    fitting.show_rooms([ROOMY])
    view, fit = fitting.view, judge(PAIR, ROOMY)
    assert (view.word, view.reason) == ("fits", fit.reason.text)
    (bar,) = view.bars
    assert sum(p.size for p in bar.parts) == fit.need + fit.others
    assert bar.scale == bar.total == 24 * GIB
    assert not bar.over
    assert [p.name for p in view.legend] == [
        "target_weights", "target_kv", "draft_weights", "draft_kv", "work", "others",
    ]  # fmt: skip


def test_what_is_too_much_lies_behind_the_capacity(fitting):
    fitting.show(None, PAIR)
    fitting.show_rooms([SMALL])
    view, fit = fitting.view, judge(PAIR, SMALL)
    (bar,) = view.bars
    assert view.word == "no"
    assert bar.over
    assert bar.parts[-1].name == "over"
    assert bar.parts[-1].size == fit.need - SMALL.free
    assert sum(p.size for p in bar.parts[:-1]) == SMALL.total
    (others,) = (p.size for p in bar.parts if p.name == "others")
    assert others == fit.others
    assert view.legend[-1].name == "over"


def test_the_parts_have_one_order_whether_they_fit_or_not(fitting):
    fitting.show(None, PAIR)
    orders = []
    for room in (ROOMY, SMALL):
        fitting.show_rooms([room])
        orders.append([p.name for p in fitting.view.bars[0].parts if p.name != "over"])
        assert orders[-1] == [p.name for p in fitting.view.legend if p.name != "over"]
    assert orders[0] == orders[1]
    assert orders[0][-2:] == ["work", "others"]


def test_what_runs_already_is_free_for_what_comes(fitting):
    running = Pair(model(6, "old"), "int8", 1024)
    fitting.show(running, PAIR)
    fitting.show_rooms([replace(ROOMY, free=4 * GIB)])
    held = judge(running, ROOMY).parts
    freed = held.target_weights + held.overhead
    assert freed > 5 * GIB
    expected = judge(PAIR, replace(ROOMY, free=4 * GIB + freed))
    assert (fitting.view.word, fitting.view.reason) == (expected.word, expected.reason.text)
    assert fitting.fit(PAIR).reason == expected.reason


def test_the_slider_moves_the_verdict(fitting, panel, qtbot):
    fitting.show(None, PAIR)
    fitting.show_rooms([replace(ROOMY, free=12 * GIB)])
    seen = []
    fitting.view_changed.connect(lambda view: seen.append(view.word))
    panel.slider.setValue(32_768 // STEP)
    assert fitting.pair.context == 32_768
    assert "32,768 tokens" in texts(panel)
    assert seen
    longest = fitting.view.longest
    panel.slider.setValue(longest // STEP)
    assert fitting.view.word != "no"


def test_a_verdict_has_a_word_and_a_number(fitting, panel):
    fitting.show(None, PAIR)
    fitting.show_rooms([SMALL])
    assert any("Does not fit" in text and "GiB short" in text for text in texts(panel))
    assert any(text.startswith("Fits up to") for text in texts(panel)) or (
        "Fits at no length" in texts(panel)
    )


def test_ways_out_are_rows_with_a_button_each_and_nothing_changes_before(fitting, panel, qtbot):
    fitting.show(None, PAIR)
    fitting.show_rooms([SMALL])
    assert "Ways to make it fit" in texts(panel)
    buttons = [b for b in panel.ways.findChildren(Button) if b.text() == "Use"]
    assert len(buttons) == len(fitting.view.ways) >= 3
    assert fitting.pair == PAIR
    with qtbot.waitSignal(fitting.taken) as taken:
        buttons[1].click()
    assert taken.args[0].draft is None
    assert panel.load_anyway.isVisibleTo(panel)
    with qtbot.waitSignal(panel.anyway):
        panel.load_anyway.click()


def test_where_it_fits_no_ways_are_shown(fitting, panel):
    fitting.show(PAIR)
    fitting.show_rooms([ROOMY])
    assert "Ways to make it fit" not in texts(panel)
    assert not panel.load_anyway.isVisibleTo(panel)


def test_a_device_that_does_not_tell_is_unknown_and_blocks_nothing(fitting, panel):
    fitting.show(None, PAIR)
    fitting.show_rooms([Room("cuda", "card", None, None)])
    assert fitting.view.word == "unknown"
    assert fitting.view.ways == ()


def test_the_bar_has_a_twin_in_words(fitting, panel):
    fitting.show(None, PAIR)
    fitting.show_rooms([ROOMY])
    (bar,) = bars(panel)
    assert "Target weights" in bar.accessibleName()
    assert "RTX 4070" in bar.accessibleName()


def test_readings_a_second_apart_redraw_only_what_changed(fitting, panel):
    fitting.show(None, PAIR)
    fitting.show_rooms([SMALL])
    rows = panel.ways.findChildren(Button)
    seen = []
    fitting.view_changed.connect(seen.append)
    fitting.show_rooms([replace(SMALL)])
    assert seen == []
    assert panel.ways.findChildren(Button) == rows


def test_each_card_has_a_bar_and_a_target_for_one_is_on_the_first(fitting, panel):
    fitting.show(None, PAIR)
    fitting.show_rooms([ROOMY, SMALL])
    assert len(bars(panel)) == 2
    first, second = fitting.view.bars
    assert "target_weights" in [part.name for part in first.parts]
    assert [part.name for part in second.parts] == ["others"]
    assert {"RTX 4070", "RTX 3050"} <= set(texts(panel))


def test_a_target_for_two_cards_lies_on_both(fitting):
    pair = replace(PAIR, target=model(14, "large"), precision="bf16", draft=None)
    pair = replace(pair, target=replace(pair.target, layers=32))
    fitting.show(None, pair)
    fitting.show_rooms([ROOMY, ROOMY])
    assert judge(pair, ROOMY).word == "no"
    assert (fitting.view.word, fitting.view.ways) == ("fits", ())
    weights = [p.size for bar in fitting.view.bars for p in bar.parts if p.name == "target_weights"]
    assert len(weights) == 2
    assert sum(weights) == pytest.approx(28e9)
    (part,) = (p for p in fitting.view.legend if p.name == "target_weights")
    assert part.size == sum(weights)


def test_what_runs_on_two_cards_is_free_on_both(fitting):
    """Once it is loaded, each card has less free by what lies on it."""
    pair = replace(PAIR, target=model(14, "large"), precision="bf16")
    empty = [replace(room, free=room.total) for room in (ROOMY, ROOMY)]
    used = [fit.parts for fit in judge_each(pair, empty)]
    assert all(parts.target_weights for parts in used)
    fitting.show(pair)
    fitting.show_rooms(
        [
            replace(room, free=room.total - p.target_weights - (p.draft_weights or 0) - p.overhead)
            for room, p in zip(empty, used, strict=True)
        ]
    )
    assert fitting.view.word == "fits"
    assert [bar.over for bar in fitting.view.bars] == [False, False]


def test_what_two_cards_cannot_hold_fills_both_and_is_too_much_on_the_last(fitting):
    pair = replace(PAIR, target=model(30, "huge"), precision="bf16")
    fitting.show(None, pair)
    fitting.show_rooms([ROOMY, ROOMY])
    first, second = fitting.view.bars
    assert (first.over, second.over) == (False, True)
    assert [way.code for way in fitting.view.ways][:3] == ["draft_precision", "ngram", "precision"]


def test_main_memory_is_the_last_way_out(fitting):
    pair = replace(PAIR, target=model(14, "large"), precision="bf16")
    fitting.show(None, pair)
    fitting.show_rooms([ROOMY, Room("cpu", "Main memory", 64 * GIB, 60 * GIB)])
    assert len(fitting.view.bars) == 1
    assert fitting.view.ways[-1].code == "layers"
    taken = []
    fitting.taken.connect(taken.append)
    fitting.take("layers")
    assert taken[0].layers_in_ram > 0


def test_what_runs_is_judged_where_it_lies(fitting):
    """A draft is loaded beside it; the target is not moved."""
    pair = replace(PAIR, target=model(9, "large"), precision="bf16", draft=None)
    empty = [replace(room, free=room.total) for room in (ROOMY, ROOMY)]
    fitting.show_rooms(empty)
    runs = fitting.settle(pair)
    assert runs.on_cards == (32,)
    fitting.show(runs)
    beside = {"draft": model(3, "middle"), "draft_precision": "bf16"}
    assert fitting.fit(replace(pair, **beside)).word == "fits"
    assert fitting.fit(replace(runs, **beside)).word == "no"


def test_nothing_is_settled_where_nothing_is_known(fitting):
    assert fitting.settle(PAIR) is PAIR
    fitting.show_rooms([Room("cuda", "card", None, None)])
    assert fitting.settle(PAIR) is PAIR
