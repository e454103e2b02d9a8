"""The line over the transcript: title, tint, menu, and how it shrinks."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QVBoxLayout, QWidget

from app.viewmodels.turns import Turn
from app.widgets.header import Header
from tests.chats import FakeModels, FakeStats, drawn, made

KEYS = Qt.Key


@pytest.fixture
def show(qtbot, light):
    """Shows the header over a chat that is kept."""

    def showing(*, width=840, summary=False, opened="Letter to the landlord"):
        part = made(drawn())
        window = QWidget()
        qtbot.addWidget(window)
        part.models, part.stats = FakeModels(), FakeStats()
        part.header = Header(part.chat, part.models, part.stats, part.conversations)
        part.header.summary.setVisible(summary)
        part.other = QLineEdit()
        column = QVBoxLayout(window)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(part.header)
        column.addWidget(part.other)
        part.window = window
        part.conversations.open(opened)
        part.lane.run()
        window.resize(width, 200)
        window.show()
        qtbot.waitExposed(window)
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        part.other.setFocus()
        return part

    return showing


def menu(part):
    """The menu's entries by their words; the menu is closed again."""
    part.header.more.click()
    popup = QApplication.activePopupWidget()
    popup.close()
    return {action.text(): action for action in popup.actions() if action.text()}


def test_a_double_click_changes_the_title(qtbot, show):
    part = show()
    qtbot.mouseDClick(part.header.title, Qt.MouseButton.LeftButton)
    field = part.header.title.field
    assert field.hasFocus()
    assert field.selectedText() == "Letter to the landlord"
    QTest.keyClicks(field, "Letter, sent")
    QTest.keyClick(field, KEYS.Key_Return)
    part.lane.run()
    assert part.chat.title == "Letter, sent"
    assert part.store.records["Letter to the landlord"].title == "Letter, sent"
    assert not field.isVisible()
    assert part.other.hasFocus()


def test_escape_keeps_the_title_and_stops_nothing(show):
    part = show()
    stopped = []
    action = QAction(part.window)
    action.setShortcut(QKeySequence("Esc"))
    action.triggered.connect(lambda: stopped.append(1))
    part.window.addAction(action)
    part.header.rename()
    QTest.keyClicks(part.header.title.field, "x")
    QTest.keyClick(part.header.title.field, KEYS.Key_Escape)
    assert part.chat.title == "Letter to the landlord"
    assert part.store.calls == []
    assert stopped == []


def test_leaving_the_field_keeps_what_was_typed(show):
    part = show()
    part.header.rename()
    QTest.keyClicks(part.header.title.field, "x")
    part.other.setFocus()
    assert part.chat.title == "x"
    assert part.other.hasFocus()
    part.header.rename()
    part.header.title.field.clear()
    part.other.setFocus()
    assert part.chat.title == "x"


def test_a_title_that_comes_meanwhile_leaves_the_field_alone(show):
    part = show()
    part.header.rename()
    QTest.keyClicks(part.header.title.field, "mine")
    part.chat.title = "theirs"
    assert part.header.title.field.text() == "mine"


def test_a_chat_that_is_not_begun_has_no_title_to_change(show):
    part = show()
    part.conversations.new()
    part.header.rename()
    assert not part.header.title.field.isVisible()
    able = {words for words, action in menu(part).items() if action.isEnabled()}
    assert able == {"Find in this chat", "Copy as Markdown"}


def test_the_tint_is_told_and_shown(qtbot, show):
    part = show()
    with qtbot.waitSignal(part.header.tint_toggled) as caught:
        qtbot.mouseClick(part.header.tint, Qt.MouseButton.LeftButton)
    assert caught.args == [True]
    with qtbot.waitSignal(part.header.tint_toggled):
        QTest.keyClick(part.header.tint, KEYS.Key_Space)
    part.header.set_tint(True)
    assert part.header.tint.isChecked()


def test_the_menu_does_all_that_can_be_done_with_a_chat(qtbot, show):
    part = show()
    words = menu(part)
    assert list(words) == [
        "Rename", "Pin", "Find in this chat", "Copy as Markdown", "Export as Markdown…",
        "Export as JSON…", "Delete",
    ]  # fmt: skip
    part.chat.turns = [Turn("1", "user", "Hello")]
    words["Copy as Markdown"].trigger()
    copied = QGuiApplication.clipboard().text()
    assert copied == "# Letter to the landlord\n\n## User\n\nHello\n"
    with qtbot.waitSignal(part.header.find_asked):
        words["Find in this chat"].trigger()
    words["Pin"].trigger()
    part.lane.run()
    assert part.store.records["Letter to the landlord"].pinned
    assert "Unpin" in menu(part)
    words["Rename"].trigger()
    assert part.header.title.field.isVisible()
    words["Delete"].trigger()
    part.lane.run()
    assert part.chat.chat_id != "Letter to the landlord"


def test_find_is_asked_for(qtbot, show):
    part = show()
    with qtbot.waitSignal(part.header.find_asked):
        part.header.seek.click()


def test_tools_become_icons_where_the_title_has_no_room(qtbot, show):
    part = show(width=848, summary=True)
    qtbot.waitUntil(lambda: part.header.tint.width() == 30)
    assert part.header.seek.isVisible()
    part.window.resize(part.header.summary.width() + 240, 200)
    qtbot.waitUntil(lambda: not part.header.seek.isVisible())
    assert part.header.tint.width() == 30
    assert part.header.tint.accessibleName() == "Draft tint"
    assert part.header.tint.toolTip() == "Draft tint"
    part.header.summary.hide()
    qtbot.waitUntil(lambda: part.header.seek.isVisible())
    assert part.header.tint.width() > 60


def test_the_summary_opens_the_sidebar(qtbot, show):
    part = show(summary=True)
    with qtbot.waitSignal(part.header.opened):
        part.header.summary.click()
    assert "Llama 3.1 8B" in part.header.summary.accessibleName()


def test_every_control_has_a_name(show):
    part = show(summary=True)
    for widget in part.header.findChildren(QWidget):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            assert widget.accessibleName(), widget
