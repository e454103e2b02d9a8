"""What is drawn where: rings, lines that wrap, a sidebar that keeps its width."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QVBoxLayout, QWidget

from app import paths, resources
from app.settings import Settings, save
from app.viewmodels.downloads import Download, Downloads, Phase
from app.viewmodels.fit import Fitting, Part
from app.viewmodels.rows import Row
from app.widgets.choice_row import LEFT, _lines, button_place
from app.widgets.choices import ChoiceList
from app.widgets.common import Button, Elided, Glyph, IconButton, device_name, label, unbroken
from app.widgets.controls import Tick
from app.widgets.downloads import DownloadList
from app.widgets.fit_bar import FitBar, Legend
from app.widgets.memory_panel import MemoryPanel
from app.widgets.sidebar import ABOVE, WIDTH
from app.worker import Worker
from engine.fit import GIB, Pair, Room
from tests.fakes import DRAFT, ScriptedSession, info
from tests.model_screens import SAME, SMALL, Library, Machine, model, path_of
from tests.model_screens import TARGET as TARGET_NAME

ROWS = (
    Row("a", "First", "Good:", "15 times smaller"),
    Row("b", "Second", "", "model-00007-of-00014.safetensors.incomplete", action="resume"),
)
TARGET = info(Path("target"), layers=28, hidden_size=3584, intermediate_size=18_944)
PAIR = Pair(TARGET, "bf16", 8192, replace(TARGET, path=Path("draft")), "bf16")
SHORT = Room("cuda", "NVIDIA GeForce RTX 4070", 12 * GIB, 11 * GIB)
RAM = Room("cpu", "Main memory", 32 * GIB, 2 * GIB)


@pytest.fixture
def shown(qtbot):
    """Shows a widget as wide as the sidebar's sections are."""

    kept = []

    def show(widget):
        window = QWidget()
        kept.append(window)
        qtbot.addWidget(window)
        area = QScrollArea(window)
        area.setWidgetResizable(True)
        area.setWidget(widget)
        window.setLayout(QVBoxLayout())
        window.layout().addWidget(area)
        window.setFixedSize(WIDTH, 700)
        window.show()
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        return area

    yield show
    kept.clear()


def inks(widget, place):
    """The colours in a part of a widget."""
    shot = widget.grab(place).toImage()
    return {
        QColor(shot.pixel(x, y)).name() for x in range(shot.width()) for y in range(shot.height())
    }


def test_the_row_that_has_the_focus_by_keyboard_has_a_ring(shown, qtbot):
    choices = ChoiceList("Rows")
    choices.show_rows(ROWS)
    shown(choices)
    ring = resources.colour("accent").name()
    rows = [choices.visualRect(choices._rows.index(place)) for place in (0, 1)]
    # the ring's left edge; further to the right a row has a radio or a button
    edges = [row.adjusted(0, 8, LEFT - 2 - row.width(), -8) for row in rows]
    choices.setFocus(Qt.FocusReason.TabFocusReason)
    assert [ring in inks(choices.viewport(), edge) for edge in edges] == [True, False]
    qtbot.keyClick(choices, Qt.Key.Key_Down)
    assert [ring in inks(choices.viewport(), edge) for edge in edges] == [False, True]
    qtbot.mouseClick(choices.viewport(), Qt.MouseButton.LeftButton, pos=rows[0].center())
    assert not any(ring in inks(choices.viewport(), edge) for edge in edges)


def test_a_word_longer_than_its_line_is_broken_before_the_button(shown):
    choices = ChoiceList("Rows")
    choices.show_rows(ROWS)
    shown(choices)
    row = choices.visualRect(choices._rows.index(1))
    button = button_place(row, ROWS[1])
    beside = QRect(button.left() - LEFT + 1, row.top(), LEFT - 2, row.height())
    assert len(inks(choices.viewport(), beside)) == 1


@pytest.mark.parametrize("room", [SHORT, Room("cuda", "card", None, None)])
@pytest.mark.parametrize("asked", [PAIR, replace(PAIR, draft=None)])
def test_no_verdict_makes_the_section_wider_and_no_line_is_cut_off(shown, qtbot, room, asked):
    fitting = Fitting()
    panel = MemoryPanel(fitting)
    area = shown(panel)
    fitting.show(None, asked)
    fitting.show_rooms([room, RAM])
    qtbot.wait(20)
    assert panel.width() == area.viewport().width()
    labels = [held for held in panel.findChildren(QLabel) if held.isVisible() and held.text()]
    assert panel.verdict in labels
    for held in labels:
        low = held.heightForWidth(held.width()) if held.wordWrap() else held.sizeHint().height()
        assert held.height() >= low, held.text()
        assert held.width() >= held.minimumSizeHint().width() or held.toolTip(), held.text()


def test_another_reading_leaves_the_focus_where_it_is(shown, qtbot):
    fitting = Fitting()
    panel = MemoryPanel(fitting)
    shown(panel)
    fitting.show(None, PAIR)
    fitting.show_rooms([SHORT, RAM])
    use = panel.ways.findChildren(Button)[1]
    use.setFocus(Qt.FocusReason.TabFocusReason)
    held = panel.findChildren(QWidget)
    fitting.show_rooms([replace(SHORT, free=SHORT.free - GIB), RAM])
    assert use.hasFocus()
    assert panel.findChildren(QWidget) == held
    texts = [unbroken(said.text()) for said in panel.findChildren(QLabel)]
    assert unbroken(fitting.view.reason) in texts
    assert unbroken(fitting.view.ways[1].reason) in texts


def test_what_waits_for_a_word_of_the_user_is_in_sight(qtbot, open_program):
    entries = [model(name, SAME[name]) for name in (TARGET_NAME, SMALL, "Qwen2.5 14B Instruct")]
    program = open_program(Machine(entries, "cuda"), Library(entries))
    program.worker.sampled.disconnect(program.models._sampled)
    program.models._sampled([Room("cuda", "RTX 4000", 20 * GIB, 19 * GIB)])
    program.window.resize(1440, 600)
    sidebar = program.window.sidebar
    assert sidebar._scroll.verticalScrollBar().value() == 0
    program.models.choose_target(path_of("Qwen2.5 14B Instruct"))
    assert program.models.memory.view.waits
    bar, seen = sidebar._scroll.verticalScrollBar(), sidebar._scroll.viewport()
    # as far up as it goes: how long it is depends on what the ways out have to say
    qtbot.waitUntil(lambda: 0 < bar.value() == min(sidebar.memory.y() - ABOVE, bar.maximum()))
    assert sidebar.memory.verdict.mapTo(sidebar, QPoint()).y() < seen.height()


@pytest.mark.parametrize(
    ("language", "percent", "mirrored"),
    [("de", 80, False), ("en", 150, False), ("de", 200, False), ("de", 100, True)],
)
def test_nothing_in_the_sidebar_is_wider_than_it(qtbot, open_program, language, percent, mirrored):
    app = QApplication.instance()
    if mirrored:
        app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    save(replace(Settings(), language=language), paths.ensure(paths.config_folder()))
    try:
        program = open_program(ScriptedSession())
        resources.apply_theme(app, "light", percent=percent)
        program.window.resize(1440, 900)
        program.models.choose_draft(str(DRAFT))
        qtbot.waitUntil(lambda: not program.models.choosing)
        qtbot.wait(50)
        sidebar = program.window.sidebar
        seen = sidebar._scroll.viewport().width()
        assert sidebar._body.width() == seen
        for part in (sidebar._body, *sidebar._body.findChildren(QWidget)):
            if part.isVisibleTo(sidebar):
                at = part.mapTo(sidebar._body, QPoint()).x()
                assert 0 <= at <= at + part.width() <= seen, part
        assert sidebar._body.minimumSizeHint().width() <= seen
        acceptance = sidebar.acceptance
        assert acceptance.minimumSizeHint().width() <= acceptance.width() < sidebar.width()
    finally:
        app.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        resources.speak(app, "en")
        resources.apply_theme(app, "light", percent=100)


@pytest.mark.parametrize(("language", "percent"), [("de", 100), ("en", 80)])
def test_in_a_high_window_the_sections_stay_close_together(qtbot, open_program, language, percent):
    app = QApplication.instance()
    save(replace(Settings(), language=language), paths.ensure(paths.config_folder()))
    try:
        window = open_program(ScriptedSession()).window
        resources.apply_theme(app, "light", percent=percent)
        window.resize(1920, 2160)
        qtbot.wait(50)
        memory = window.sidebar.memory
        qtbot.waitUntil(memory.isVisible)
        parts = [window.sidebar.target, window.sidebar.drafts, memory]
        for above, below in pairwise(parts):
            assert below.y() - above.geometry().bottom() <= 20
        assert window.sidebar.drafts.height() <= window.sidebar.drafts.sizeHint().height()
        held = [shown for shown in memory.findChildren(QLabel) if shown.isVisible()]
        tops = sorted(shown.mapTo(memory, QPoint()).y() for shown in held)
        assert all(below - above < 80 for above, below in pairwise(tops))
    finally:
        resources.speak(app, "en")
        resources.apply_theme(app, "light", percent=100)


@pytest.mark.parametrize("percent", [100, 150])
def test_words_over_and_under_the_field_are_not_cut_off(qtbot, open_program, percent):
    app = QApplication.instance()
    save(replace(Settings(), language="de"), paths.ensure(paths.config_folder()))
    try:
        window = open_program(ScriptedSession()).window
        resources.apply_theme(app, "light", percent=percent)
        window.resize(1440, 900)
        for opener in (window.composer.prompt, window.composer.sampling):
            opener.click()
            qtbot.waitUntil(opener.popover.isVisible)
            for button in opener.popover.chooser.findChildren(Button):
                assert button.width() >= button.sizeHint().width()
                assert button.geometry().right() < opener.popover.chooser.width()
            opener.popover.hide()
        for meter in (window.meter, window.meter.when_full):
            for words in meter.findChildren(QLabel):
                assert words.height() >= words.sizeHint().height()
    finally:
        resources.speak(app, "en")
        resources.apply_theme(app, "light", percent=100)


def drawn_size(widget):
    """Pixels that the ink of a widget is wide, which stands on one colour."""
    widget.clearFocus()
    shot = widget.grab().toImage()
    ground = shot.pixel(0, 0)
    columns = [
        x
        for x in range(shot.width())
        if any(shot.pixel(x, y) != ground for y in range(shot.height()))
    ]
    return max(columns) - min(columns) + 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Glyph("circle-x"),
        lambda: Button("", icon="circle-x", kind="flat"),
        lambda: IconButton("Close", "circle-x"),
        lambda: Tick("Tint"),
    ],
)
def test_icons_grow_with_the_font_that_is_set(qtbot, make):
    app = QApplication.instance()
    resources.apply_theme(app, "light", percent=100)
    before, held = make(), QWidget()
    qtbot.addWidget(held)
    QVBoxLayout(held).addWidget(before)
    held.show()
    try:
        size = drawn_size(before)
        resources.apply_theme(app, "light", percent=150)
        qtbot.wait(1)
        assert abs(drawn_size(before) - 1.5 * size) <= 2
        after = make()
        held.layout().addWidget(after)
        qtbot.wait(1)
        assert drawn_size(after) == drawn_size(before)
    finally:
        resources.apply_theme(app, "light", percent=100)
    assert drawn_size(before) == size


@pytest.mark.parametrize(("room", "columns"), [(500, 2), (200, 1)])
def test_the_legend_has_two_columns_where_their_words_fit(shown, qtbot, room, columns):
    legend = Legend()
    area = shown(legend)
    area.window().setFixedSize(room, 300)
    parts = ("target_weights", "target_kv", "draft_weights", "draft_kv")
    legend.show_parts(tuple(Part(name, name, 7 * GIB) for name in parts))
    qtbot.wait(10)
    names = [child for child in legend.findChildren(Elided) if child.isVisibleTo(legend)]
    assert len({name.x() for name in names}) == columns
    assert [name.text() for name in names] == list(parts)


def test_a_row_is_mirrored_with_its_button(shown, qtbot):
    QApplication.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        choices = ChoiceList("choices")
        shown(choices)
        choices.show_rows(ROWS)
        place = choices.visualRect(choices.model().index(1))
        button = button_place(place, ROWS[1])
        assert button.left() == place.left() + LEFT
        acted = []
        choices.acted.connect(acted.append)
        qtbot.mouseClick(choices.viewport(), Qt.MouseButton.LeftButton, pos=button.center())
        assert acted == ["b"]
    finally:
        QApplication.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def test_all_bars_have_one_scale(shown):
    fitting = Fitting()
    panel = MemoryPanel(fitting)
    shown(panel)
    fitting.show(None, PAIR)
    fitting.show_rooms([SHORT, replace(SHORT, total=6 * GIB, free=5 * GIB)])
    scales = {bar._scale for bar in panel.findChildren(FitBar)}
    assert scales == {max(bar.scale for bar in fitting.view.bars)}
    assert len(fitting.view.bars) == 2


def test_a_download_that_failed_says_why_in_full(shown, qtbot):
    downloads = Downloads(Worker(lambda: None), Path("models"), lambda: None, None)
    held = QWidget()
    drawn = DownloadList(downloads)
    QVBoxLayout(held).addWidget(drawn)
    shown(held)
    downloads.items = (Download("a", "org/model", Phase.RUNNING, "1 of 2 MB", 0.5),)
    qtbot.wait(20)
    downloads.items = (Download("a", "org/model", Phase.FAILED, "Why it failed. " * 8),)
    qtbot.wait(20)
    high = drawn._scroll.height()
    downloads.items = (*downloads.items, Download("b", "org/other", Phase.WAITING, "Waiting"))
    assert drawn._scroll.height() >= high + drawn.lines["b"].sizeHint().height()
    said = drawn.lines["a"].text
    assert said.height() >= said.heightForWidth(said.width())
    assert said.visibleRegion().boundingRect().height() == said.height()


def test_a_card_is_called_by_what_sets_it_apart():
    assert device_name("NVIDIA GeForce RTX 4070") == "RTX 4070"
    assert device_name("NVIDIA H200") == "H200"
    assert device_name("AMD Radeon RX 7900 XTX") == "AMD Radeon RX 7900 XTX"


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ("15 times smaller, same vocabulary; 78 % accepted", "78 %"),
        ("only 5 times smaller; 3.1 GB", "3.1 GB"),
        ("Nothing is left of the 0.4 GiB", "0.4 GiB"),
    ],
)
def test_a_number_stays_beside_its_unit(shown, said, whole):
    held = label(said, wrap=True)
    shown(held)
    narrowest = QFontMetrics(held.font()).horizontalAdvance(whole)
    assert held.minimumSizeHint().width() >= narrowest
    layout = _lines(Row("a", "Name", detail=said), 90)[0]
    lines = [layout.lineAt(number) for number in range(layout.lineCount())]
    text = layout.text()
    parts = [text[line.textStart() : line.textStart() + line.textLength()] for line in lines]
    assert any(whole in part.replace("\u00a0", " ") for part in parts)
