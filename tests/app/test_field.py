"""The fields in which one writes: pastes, cuts, what is kept as it was, input methods."""

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QInputMethodEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QVBoxLayout, QWidget

from app import resources
from app.widgets.chat_search import Search
from app.widgets.chat_title import Title
from app.widgets.field import Field, Room
from app.widgets.find_bar import FindBar
from app.widgets.message_editor import MessageEditor
from app.widgets.text_box import TextBox

KEY, MODIFIER = Qt.Key, Qt.KeyboardModifier


@pytest.fixture(scope="module", autouse=True)
def theme(qapp):
    """Once for all tests here: it dresses every widget anew."""
    resources.apply_theme(qapp, "light")


@pytest.fixture
def show(qtbot):
    """Shows a widget in an active window."""
    pages = []  # else they go with the last reference

    def showing(widget: QWidget) -> QWidget:
        page = QWidget()
        pages.append(page)
        column = QVBoxLayout(page)
        column.addWidget(widget)
        qtbot.addWidget(page)
        page.resize(700, 500)
        page.show()
        qtbot.waitExposed(page)
        page.activateWindow()
        qtbot.waitUntil(page.isActiveWindow)
        widget.setFocus()
        return page

    return showing


# Pastes (TXT-2)

PLACES = [
    lambda: MessageEditor("What is it?"),
    lambda: TextBox("System prompt", 13, most=50_000, grows=True),
]
MEGABYTES = ["a" * 10**6, ("b" * 79 + "\n") * 12_500, "word " * 200_000, "😀" * 250_000]


def field_of(place: QWidget) -> Field:
    return place.findChild(Field)


@pytest.mark.parametrize("make", PLACES, ids=["editor", "system prompt"])
@pytest.mark.parametrize("text", MEGABYTES, ids=["one word", "80 columns", "words", "emoji"])
def test_a_megabyte_pasted_is_cut_with_a_notice_and_blocks_nothing(qtbot, show, make, text):
    place = make()
    show(place)
    field, room = field_of(place), place.findChild(Room)
    field.selectAll()
    assert not room.isVisible()
    QGuiApplication.clipboard().setText(text)
    began = time.thread_time()
    qtbot.keyClick(field, KEY.Key_V, MODIFIER.ControlModifier)
    qtbot.wait(60)
    assert time.thread_time() - began < 0.25
    assert field.count() == field.most
    assert text.startswith(field.text())
    assert room.isVisible()
    assert room.text() == f"The text was cut at {field.most:,} characters."


def test_an_endless_word_in_many_pastes_blocks_nothing(qtbot, show):
    place = MessageEditor("")
    show(place)
    QGuiApplication.clipboard().setText("a" * 4_900)
    for _ in range(15):
        began = time.thread_time()
        place.field.paste()
        qtbot.wait(1)
        assert time.thread_time() - began < 0.25
    assert place.field.text() == "a" * 73_500


def test_the_end_of_the_room_is_told_before_anything_is_cut(qtbot, show):
    place = TextBox("Prompt", 3, most=20, grows=True)
    show(place)
    room = place.findChild(Room)
    qtbot.keyClicks(place.edit, "x" * 17)
    assert not room.isVisible()
    qtbot.keyClicks(place.edit, "xx")
    assert room.isVisible()
    assert room.text() == "19 of 20 characters"
    qtbot.keyClicks(place.edit, "yz")
    assert place.edit.text() == "x" * 19 + "y"
    assert room.text() == "The text was cut at 20 characters."
    for _ in range(8):
        qtbot.keyClick(place.edit, KEY.Key_Backspace)
    assert not room.isVisible()


def test_a_question_longer_than_the_field_is_not_cut_in_silence(show):
    place = MessageEditor("x" * 100_001)
    show(place)
    assert place.findChild(Room).isVisible()


# What was written

WRITTEN = "10\u00a0km\u202f– a\tb\n\u3000c\u200b"


def test_what_was_written_is_kept(qtbot, show):
    place = TextBox("Text", 3, most=100)
    show(place)
    field = place.edit
    QGuiApplication.clipboard().setText(WRITTEN)
    field.paste()
    qtbot.keyClick(field, KEY.Key_Return, MODIFIER.ShiftModifier)
    assert field.text() == f"{WRITTEN}\n"
    field.selectAll()
    field.cut()
    assert QGuiApplication.clipboard().text() == f"{WRITTEN}\n"


@pytest.mark.parametrize("text", ["latin", "漢字", "ไทยที่", "😀"])
def test_where_a_field_scrolls_it_shows_whole_lines(qtbot, show, text):
    field = Field(resources.font("reading"), lines=8)
    show(field)
    field.setPlainText("\n".join([text] * 20))
    field.verticalScrollBar().setValue(0)
    qtbot.wait(1)
    block = field.document().findBlockByNumber(7)
    bottom = field.blockBoundingGeometry(block).translated(field.contentOffset()).bottom()
    assert 0 <= field.viewport().height() - bottom < 2


# Input methods (INP-1)


def compose(field: QWidget, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(field, event)


def test_an_input_method_keeps_its_keys_in_the_editor(qtbot, show):
    place = MessageEditor("予定は")
    page = show(place)
    saved, left, stopped = [], [], []
    place.saved.connect(lambda text, _: saved.append(text))
    place.left.connect(lambda: left.append(1))
    action = QAction(page)
    action.setShortcut(QKeySequence("Esc"))
    action.triggered.connect(lambda: stopped.append(1))
    page.addAction(action)
    compose(place.field, "きょう")
    qtbot.keyClick(place.field, KEY.Key_Return, MODIFIER.ControlModifier)
    qtbot.keyClick(place.field, KEY.Key_Return)
    qtbot.keyClick(place.field, KEY.Key_Escape)
    assert (saved, left, stopped) == ([], [], [])
    layout = place.field.textCursor().block().layout()
    assert layout.preeditAreaText() == "きょう"
    compose(place.field, "", "今日")
    assert place.field.text() == "予定は今日"
    qtbot.keyClick(place.field, KEY.Key_Return, MODIFIER.ControlModifier)
    assert saved == ["予定は今日"]
    qtbot.keyClick(place.field, KEY.Key_Escape)
    assert left == [1]


def test_an_input_method_keeps_its_keys_in_the_title(qtbot, show):
    page = QWidget()
    title = Title()
    column = QVBoxLayout(page)
    column.addWidget(title)
    show(page)
    changed = []
    title.changed.connect(changed.append)
    title.show_text("予定")
    title.edit()
    title.field.end(False)
    compose(title.field, "きょう")
    for key in (KEY.Key_Return, KEY.Key_Enter, KEY.Key_Escape):
        qtbot.keyClick(title.field, key)
        assert title.field.isVisible()
    assert changed == []
    compose(title.field, "", "今日")
    qtbot.keyClick(title.field, KEY.Key_Return)
    assert changed == ["予定今日"]


def test_an_input_method_keeps_its_keys_where_one_searches(qtbot, show):
    page = QWidget()
    search, find = Search(), FindBar(page)
    column = QVBoxLayout(page)
    column.addWidget(search)
    column.addWidget(find)
    show(page)
    find.open()
    acted = []
    search.entered.connect(lambda: acted.append("entered"))
    find.closed.connect(lambda: acted.append("closed"))
    for field in (search, find.field):
        assert isinstance(field, QLineEdit)
        field.setFocus()
        field.setText("予定")
        field.end(False)
        compose(field, "きょう")
        find.asked.connect(lambda *_: acted.append("asked"))
        for key in (KEY.Key_Return, KEY.Key_Escape):
            qtbot.keyClick(field, key)
        find.asked.disconnect()
        compose(field, "", "今日")
        assert field.text() == "予定今日"
    assert acted == []
    qtbot.keyClick(search, KEY.Key_Return)
    qtbot.keyClick(find.field, KEY.Key_Escape)
    assert acted == ["entered", "closed"]
