"""Where the window was is kept, and mended where nobody would find it."""

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QSplitter, QWidget

from app import geometry
from app.geometry import Geometry


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


def test_place_size_and_splitters_come_back(qtbot, window, room, tmp_path):
    splitter = QSplitter(window)
    splitter.resize(400, 100)
    for _ in range(2):
        splitter.addWidget(QWidget())
    window.setGeometry(QRect(room.topLeft() + QPoint(30, 40), window.size()))
    splitter.setSizes([100, 300])
    sizes = splitter.sizes()
    Geometry(tmp_path).save(window, chats=splitter)
    place = window.geometry()
    window.setGeometry(room.x() + 200, room.y() + 100, 500, 350)
    splitter.setSizes([250, 150])
    Geometry(tmp_path).restore(window, chats=splitter)
    assert window.geometry() == place
    assert splitter.sizes() == sizes


@pytest.mark.parametrize("written", [None, b"", b"\xff\x00no", b"[General]\nwindow=@ByteArray(ab)"])
def test_without_a_sound_file_the_window_stays_where_it_is(window, tmp_path, written):
    if written is not None:
        (tmp_path / geometry.FILE_NAME).write_bytes(written)
    place = window.geometry()
    Geometry(tmp_path).restore(window)
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
