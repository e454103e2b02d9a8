"""Where the window was is kept, and mended where nobody would find it."""

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QWidget

from app import geometry
from app.geometry import Geometry
from app.widgets.border import Border, Span


@pytest.fixture
def window(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def room(window):
    return window.screen().availableGeometry()


def test_place_and_sizes_come_back(window, room, tmp_path):
    dialog, border = QWidget(), Border(window, Span(100, 50, 200))
    window.setGeometry(QRect(room.topLeft() + QPoint(30, 40), window.size()))
    first = dialog.size()
    kept = Geometry(tmp_path)
    kept.follow_window(window)
    kept.follow_dialog("one", dialog)
    kept.follow_border("list", border)
    dialog.resize(333, 222)
    border.want(120)
    place = window.geometry()
    kept.save()
    window.setGeometry(room.x() + 200, room.y() + 100, 500, 350)
    dialog.resize(first)
    border.want(0)
    following = Geometry(tmp_path)
    following.follow_window(window)
    following.follow_dialog("one", dialog)
    following.follow_border("list", border)
    assert window.geometry() == place
    assert (dialog.width(), dialog.height()) == (333, 222)
    assert border.wish() == 120


def test_it_is_written_soon_after_the_last_change_and_not_with_each(
    qtbot, window, tmp_path, monkeypatch
):
    monkeypatch.setattr(geometry, "REST_MS", 50)
    kept = Geometry(tmp_path)
    kept.follow_window(window)
    file = tmp_path / geometry.FILE_NAME
    for width in (410, 420, 430):
        window.resize(width, 300)
        assert not file.exists()
    qtbot.waitUntil(file.exists)
    window.resize(700, 500)
    Geometry(tmp_path).follow_window(window)
    assert window.width() == 430


def test_what_stands_in_the_file_cannot_break_a_border(window, tmp_path):
    for written in ("border/list=12x", "border/list=-5", "border/list=99999999999", "dialog/one=3"):
        (tmp_path / geometry.FILE_NAME).write_text(f"[General]\n[border]\n{written[7:]}\n")
        border = Border(window, Span(100, 50, 200))
        kept = Geometry(tmp_path)
        kept.follow_border("list", border)
        kept.follow_dialog("one", QWidget())
        assert 50 <= border.wish() <= 200


@pytest.mark.parametrize("written", [None, b"", b"\xff\x00no", b"[General]\nwindow=@ByteArray(ab)"])
def test_without_a_sound_file_the_window_stays_where_it_is(window, tmp_path, written):
    if written is not None:
        (tmp_path / geometry.FILE_NAME).write_bytes(written)
    place = window.geometry()
    Geometry(tmp_path).follow_window(window)
    assert window.geometry() == place


@pytest.mark.parametrize(
    "corner", [(5000, 100), (-5000, 100), (100, -400), (100, 5000), (-380, 50), (100, -40)]
)
def test_a_window_off_every_screen_comes_back_onto_one(window, room, corner):
    window.setGeometry(QRect(room.topLeft() + QPoint(*corner), window.size()))
    geometry.mend(window)
    assert room.contains(window.geometry())
    assert window.width() == 400


def test_a_window_whose_upper_edge_is_below_the_screen_comes_back(window, room):
    window.setGeometry(room.x(), room.bottom() - 20, 400, 300)
    geometry.mend(window)
    assert room.contains(window.geometry())


def test_a_window_partly_in_sight_stays(window, room):
    window.setGeometry(room.right() - 100, room.bottom() - 100, 400, 300)
    place = window.geometry()
    geometry.mend(window)
    assert window.geometry() == place


def test_one_larger_than_the_screen_is_made_to_fit(window, room):
    window.setGeometry(9000, 0, room.width() * 3, room.height() * 3)
    geometry.mend(window)
    assert room.contains(window.geometry())
