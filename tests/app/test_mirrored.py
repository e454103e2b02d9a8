"""From right to left: what stands where lines begin, whatever the direction of its words."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QTextCursor
from PySide6.QtWidgets import (
    QApplication,
    QStyle,
    QStyleOptionComboBox,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.widgets.common import Button, Elided, label
from app.widgets.controls import Select
from app.widgets.text import Answer

LEFT, RIGHT = Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft
LIST = "1. افتح الملف\n2. اجمع القيم\n"
TABLE = "| القارئ | الذاكرة |\n|---|---|\n| csv | ثابتة |\n"
CODE = "```python\nx = 1\n```\n"


@pytest.fixture
def mirrored() -> Iterator[QApplication]:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    app.setLayoutDirection(RIGHT)
    yield app
    app.setLayoutDirection(LEFT)


@pytest.fixture
def show(qtbot):
    kept = []

    def showing(widget):
        window = QWidget()
        kept.append(window)
        qtbot.addWidget(window)
        QVBoxLayout(window).addWidget(widget)
        window.resize(400, 300)
        window.show()
        qtbot.wait(1)

    yield showing
    kept.clear()


def ink(widget, left, width, top=0, height=1_000):
    """Whether anything is drawn in a part of a widget, which else has one colour."""
    shot = widget.grab(widget.rect()).toImage()
    pixels = {
        QColor(shot.pixel(x, y)).name()
        for x in range(left, left + width)
        for y in range(top, min(top + height, shot.height()))
    }
    return len(pixels) > 1


def elided():
    made = Elided()
    made.show_text("Precision")
    return made


@pytest.mark.parametrize("make", [lambda: label("Precision"), elided])
def test_words_stand_where_the_windows_lines_begin(show, mirrored, make):
    said = make()
    show(said)
    assert ink(said, said.width() - 60, 60)
    assert not ink(said, 0, 60)
    mirrored.setLayoutDirection(LEFT)
    assert ink(said, 0, 60)
    assert not ink(said, said.width() - 60, 60)


def test_an_ellipsis_stays_behind_its_words(show, mirrored):
    button = Button("Auto length…", kind="flat")
    show(button)
    there = button.grab().toImage()
    mirrored.setLayoutDirection(LEFT)
    assert button.grab().toImage() == there


def test_the_head_of_code_is_read_as_the_code_is(qtbot, show, mirrored):
    answer = Answer("Answer")
    show(answer)
    answer.grow(CODE, finished=True)
    qtbot.waitUntil(lambda: bool(answer._copies))
    button = answer._copies[0]
    assert button.layoutDirection() is LEFT
    assert button.geometry().left() > answer.width() / 2
    head = answer._rect(0).toRect()
    assert ink(answer, head.left() + 14, 40, head.top() + 8, 16)


def test_the_number_of_an_item_stands_before_its_dot(show):
    answer = Answer("Answer")
    show(answer)
    answer.grow(LIST, finished=True)
    # Qt turns what it puts before and behind the number around.
    block = answer.document().begin()
    assert block.textList().itemText(block) == "1."
    answer.selectAll()
    assert answer.createMimeDataFromSelection().text().startswith("1. ")


@pytest.mark.parametrize(("source", "right"), [(TABLE, True), ("|a|b|\n|-|-|\n|1|2|\n", False)])
def test_a_table_stands_where_its_lines_begin(show, source, right):
    answer = Answer("Answer")
    show(answer)
    answer.grow(source, finished=True)
    table = next(
        found
        for block in iter_blocks(answer.document())
        if (found := QTextCursor(block).currentTable()) is not None
    )
    place = answer.document().documentLayout().frameBoundingRect(table)
    assert (place.right() > answer.width() - 30) is right


def iter_blocks(document):
    block = document.begin()
    while block.isValid():
        yield block
        block = block.next()


def test_the_arrow_of_a_choice_stands_beside_its_text(show, mirrored):
    resources.apply_theme(mirrored, "light")
    choice = Select("Prompts")
    choice.addItem("Built-in set, 20 prompts")
    show(choice)
    for direction in (RIGHT, LEFT, RIGHT):
        mirrored.setLayoutDirection(direction)
        left, right = beside_text(choice)
        assert (left if direction is RIGHT else right) >= 9 + resources.scaled(14)


def beside_text(choice):
    option = QStyleOptionComboBox()
    choice.initStyleOption(option)
    whole, part = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
    text = choice.style().subControlRect(whole, option, part, choice)
    return text.left(), choice.width() - text.right() - 1
