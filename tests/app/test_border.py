"""The lines between chat list, chat and sidebar are dragged, within bounds, and stay so."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

from app.widgets import chat_column, sidebar
from app.window import LEAST, LIST, SIDE
from tests.fakes import ScriptedSession, chunks_of

RIGHT_TO_LEFT = [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft]


@pytest.fixture(params=RIGHT_TO_LEFT, ids=["ltr", "rtl"])
def window(request, qapp, open_program):
    qapp.setLayoutDirection(request.param)
    program = open_program(ScriptedSession(chunks_of(["ok"])))
    program.window.resize(1440, 900)
    yield program.window
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def widths(window):
    QApplication.sendPostedEvents()
    return window.chats.width(), window._stack.width(), window.sidebar.width()


def drag(qtbot, border, wider):
    """Take hold of the line itself and drag it so that its part gets `wider`, step by step."""
    outward = wider if border._ending == border._is_mirrored() else -wider
    hold = border.rect().center()
    qtbot.mousePress(border, Qt.MouseButton.LeftButton, pos=hold)
    start = border.mapToGlobal(hold)
    for step in (outward // 2, outward):
        here = border.mapFromGlobal(start + QPoint(step, 0))
        move(border, here)
    qtbot.mouseRelease(border, Qt.MouseButton.LeftButton, pos=border.mapFromGlobal(start))


def move(border, here):
    """qtbot's own move has no button pressed."""
    left = Qt.MouseButton.LeftButton
    where = QPointF(border.mapToGlobal(here))
    no = Qt.KeyboardModifier.NoModifier
    kind = QEvent.Type.MouseMove
    event = QMouseEvent(kind, QPointF(here), where, Qt.MouseButton.NoButton, left, no)
    QApplication.sendEvent(border, event)


def test_the_drawn_widths_are_the_first_ones_and_a_double_click_brings_them_back(qtbot, window):
    first = (chat_column.WIDTH, 1440 - chat_column.WIDTH - sidebar.WIDTH, sidebar.WIDTH)
    assert widths(window) == first
    drag(qtbot, window.list_border, 60)
    drag(qtbot, window.side_border, -40)
    assert widths(window) == (first[0] + 60, first[1] - 20, first[2] - 40)
    for border in (window.list_border, window.side_border):
        qtbot.mouseDClick(border, Qt.MouseButton.LeftButton)
    assert widths(window) == first


@pytest.mark.parametrize("wider", [-1000, 1000])
def test_they_stop_where_a_part_would_be_too_narrow_or_too_wide(qtbot, window, wider):
    drag(qtbot, window.list_border, wider)
    drag(qtbot, window.side_border, wider)
    list_width, chat, side_width = widths(window)
    borders = window.list_border, window.side_border
    far = [border.least if wider < 0 else border.most for border in borders]
    assert [list_width, side_width] == far
    if wider > 0:
        assert far == [LIST.grown(LIST.most), SIDE.grown(SIDE.most)]
    assert chat >= LEAST


def test_the_chat_keeps_its_least_width_and_the_others_come_back_with_room(qtbot, window):
    drag(qtbot, window.list_border, 1000)
    drag(qtbot, window.side_border, 1000)
    wide = widths(window)
    window.resize(1200, 800)
    list_width, chat, side_width = widths(window)
    assert chat >= LEAST
    assert list_width >= LIST.least
    assert side_width >= SIDE.least
    drag(qtbot, window.side_border, 300)
    assert widths(window)[1] >= LEAST
    window.resize(1440, 900)
    assert widths(window)[0] == wide[0]


def test_what_is_taken_hold_of_lies_on_the_line_and_shows_a_pointer(qtbot, window):
    for border, part in ((window.list_border, window.chats), (window.side_border, window.sidebar)):
        line = part.rect().right() if border._ending == border._is_mirrored() else 0
        at = part.mapTo(window, QPoint(line, 300))
        assert window.childAt(at) is border
        assert border.cursor().shape() is Qt.CursorShape.SplitHCursor
        assert border.focusPolicy() is Qt.FocusPolicy.NoFocus


def test_the_scroll_bar_beside_a_line_can_still_be_taken_hold_of(qtbot, window):
    bar = window.transcript.verticalScrollBar()
    for x in (0, bar.width() - 1):
        spot = bar.mapTo(window, QPoint(x, 100))
        assert window.childAt(spot) is not window.side_border


def test_where_the_rail_stands_there_is_no_line_to_drag(qtbot, window):
    window.resize(900, 600)
    assert window.chats.is_narrow
    assert window.chats.width() == 52
    assert not window.list_border.isVisible()
    assert not window.side_border.isVisible()
    window.toggle_sidebar()
    assert window.side_border.isVisible()
    drag(qtbot, window.side_border, 60)
    assert window.sidebar.width() == sidebar.WIDTH + 60
    assert window.rect().contains(window.sidebar.geometry())
    qtbot.keyClick(window.sidebar, Qt.Key.Key_Escape)
    assert not window.side_border.isVisible()


def test_the_column_over_the_window_is_as_wide_as_it_was_dragged(qtbot, window):
    drag(qtbot, window.list_border, 60)
    window.resize(900, 600)
    window.chats.focus_search()
    column = window.chats.column
    assert column.width() == chat_column.WIDTH + 60
    assert window.rect().contains(column.mapTo(window, column.rect().topLeft()))


def test_widths_and_sizes_of_dialogs_come_back_with_the_next_start(
    qtbot, open_program, monkeypatch, tmp_path
):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    program = open_program(ScriptedSession(chunks_of(["ok"])))
    window = program.window
    window.resize(1440, 900)
    first = window.hub.size()
    drag(qtbot, window.list_border, 50)
    drag(qtbot, window.side_border, -30)
    window.settings.open_up()
    window.settings.resize(600, 740)
    window.close()
    following = open_program(ScriptedSession(chunks_of(["ok"]))).window
    following.resize(1440, 900)  # the screen of tests is smaller
    assert widths(following)[0] == chat_column.WIDTH + 50
    assert widths(following)[2] == sidebar.WIDTH - 30
    assert following.settings.size().toTuple() == (600, 740)
    assert following.hub.size() == first
