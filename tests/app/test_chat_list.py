"""The chat list: keys, pointer, search field, undo, rail, foot."""

from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QFont,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QWidget,
)

from app import resources
from app.widgets.chat_list import ChatList
from app.widgets.chat_row import more_place, row_place
from app.widgets.chat_search import hint
from tests.chats import FakeHub, drawn, made, record, took

KEYS = Qt.Key


@pytest.fixture
def show(qtbot, light):
    """Shows the list over chats in memory, beside something else that takes the focus."""

    def showing(records=(), texts=None, width=900, height=700):
        part = made(records, texts)
        window = QWidget()
        qtbot.addWidget(window)
        part.hub = FakeHub()
        part.list = ChatList(part.conversations, part.hub)
        part.column, part.chats = part.list.column, part.list.column.chats
        part.centre = QLineEdit()
        row = QHBoxLayout(window)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(part.list)
        row.addWidget(part.centre, 1)
        part.window = window
        window.resize(width, height)
        window.show()
        qtbot.waitExposed(window)
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        part.centre.setFocus()
        return part

    return showing


def titles(part):
    model = part.chats.model()
    return [model.index(i).data() for i in range(model.rowCount())]


def place(part, title):
    """The middle of the row with this title."""
    return part.chats.visualRect(index(part, title)).center()


def index(part, title):
    return part.chats.model().index(titles(part).index(title))


def press(part, key, modifier=Qt.KeyboardModifier.NoModifier):
    QTest.keyClick(part.chats, key, modifier)
    part.lane.run()


def at_key(part):
    """The title of the row with the focus."""
    return part.chats.line().title


def menu(part):
    """The words of the menu that is open, by which its entries can be chosen."""
    popup = QApplication.activePopupWidget()
    return {action.text(): action for action in popup.actions() if action.text()}


def test_the_list_shows_groups_and_chats(show):
    part = show(drawn())
    assert titles(part)[:5] == [
        "Pinned", "Prompts that work", "Today", "Mean of one CSV column", "Letter to the landlord",
    ]  # fmt: skip


def test_a_click_opens_a_chat(qtbot, show):
    part = show(drawn())
    with qtbot.waitSignal(part.list.opened):
        qtbot.mouseClick(
            part.chats.viewport(),
            Qt.MouseButton.LeftButton,
            pos=place(part, "Letter to the landlord"),
        )
    part.lane.run()
    assert part.chat.chat_id == "Letter to the landlord"
    qtbot.mouseClick(part.chats.viewport(), Qt.MouseButton.LeftButton, pos=place(part, "Today"))
    assert part.chat.chat_id == "Letter to the landlord"


def test_arrow_keys_pass_over_groups_and_enter_opens(qtbot, show):
    part = show(drawn())
    part.list.focus_chats()
    assert at_key(part) == "Prompts that work"
    press(part, KEYS.Key_Down)
    assert at_key(part) == "Mean of one CSV column"
    press(part, KEYS.Key_Return)
    assert part.chat.chat_id == "Mean of one CSV column"
    press(part, KEYS.Key_Up)
    press(part, KEYS.Key_Up)  # from the first row into the search field
    assert part.column.search.hasFocus()


def test_typing_goes_to_a_title(qapp, show):
    part = show(drawn())
    qapp.setKeyboardInputInterval(10_000)  # however slow the machine is
    part.list.focus_chats()
    QTest.keyClicks(part.chats, "sour")
    qapp.setKeyboardInputInterval(400)
    assert at_key(part) == "Sourdough at 78 % hydration"


def test_delete_takes_away_and_goes_on_to_the_next(show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_Down)
    press(part, KEYS.Key_Down)
    press(part, KEYS.Key_Delete)
    assert "Letter to the landlord" not in titles(part)
    assert at_key(part).startswith("Rust")
    assert part.column.note.isVisible()
    assert "Letter to the landlord" in part.column.note.said.toolTip() or (
        "Letter to the landlord" in part.column.note.said.text()
    )
    part.column.note.undo.click()
    part.lane.run()
    assert "Letter to the landlord" in titles(part)
    assert not part.column.note.isVisible()


def test_control_z_has_it_back(show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_Delete)
    assert "Prompts that work" not in titles(part)
    press(part, KEYS.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert "Prompts that work" in titles(part)


def test_backspace_and_a_held_delete_key_are_harmless(show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_Backspace)
    held = QKeyEvent(
        QEvent.Type.KeyPress, KEYS.Key_Delete, Qt.KeyboardModifier.NoModifier, "\x7f", True
    )
    for _ in range(5):
        QApplication.sendEvent(part.chats, held)
    part.lane.run()
    assert part.store.calls == []


def editor(part):
    return part.chats.viewport().findChild(QLineEdit)


def test_a_title_is_changed_in_its_place(qtbot, show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_F2)
    assert editor(part).text() == "Prompts that work"
    QTest.keyClicks(editor(part), "Prompts")
    QTest.keyClick(editor(part), KEYS.Key_Return)
    qtbot.waitUntil(lambda: titles(part)[1] == "Prompts")
    part.lane.run()
    assert titles(part)[1] == "Prompts"
    assert part.store.records["Prompts that work"].title == "Prompts"


def test_an_input_method_keeps_its_keys_in_a_title(qtbot, show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_F2)
    editor(part).end(False)
    QApplication.sendEvent(editor(part), QInputMethodEvent("きょう", []))
    for key in (KEYS.Key_Return, KEYS.Key_Escape):
        QTest.keyClick(editor(part), key)
        qtbot.wait(1)
        assert editor(part) is not None
    commit = QInputMethodEvent("", [])
    commit.setCommitString("今日")
    QApplication.sendEvent(editor(part), commit)
    QTest.keyClick(editor(part), KEYS.Key_Return)
    qtbot.waitUntil(lambda: titles(part)[1] == "Prompts that work今日")


def test_escape_leaves_the_title_and_stops_nothing(qtbot, show):
    part = show(drawn())
    stopped = []
    action = QAction(part.window)
    action.setShortcut(QKeySequence("Esc"))
    action.triggered.connect(lambda: stopped.append(1))
    part.window.addAction(action)
    part.list.focus_chats()
    press(part, KEYS.Key_F2)
    QTest.keyClicks(editor(part), "x")
    QTest.keyClick(editor(part), KEYS.Key_Escape)
    assert titles(part)[1] == "Prompts that work"
    part.list.focus_search()
    QTest.keyClicks(part.column.search, "x")
    QTest.keyClick(part.column.search, KEYS.Key_Escape)
    assert part.column.search.text() == ""
    assert stopped == []
    QTest.keyClick(part.column.search, KEYS.Key_Escape)
    assert stopped == [1]


def test_a_list_that_changes_leaves_a_title_alone_that_is_typed(qtbot, show):
    part = show(drawn())
    part.list.focus_chats()
    press(part, KEYS.Key_F2)
    QTest.keyClicks(editor(part), "Half a ti")
    part.store.records = {"new": record("new"), **part.store.records}
    part.history.look()
    part.lane.run()
    QTest.keyClicks(editor(part), "tle")
    assert "new" not in titles(part)
    QTest.keyClick(editor(part), KEYS.Key_Return)
    qtbot.waitUntil(lambda: "Half a title" in titles(part))
    part.lane.run()
    assert "Half a title" in titles(part)
    assert "new" in titles(part)


def test_the_window_has_no_say_in_keys_of_the_list(show):
    part = show(drawn())
    taken = []
    for keys in ("F2", "Del", "Return"):
        action = QAction(part.window)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda: taken.append(1))
        part.window.addAction(action)
    part.list.focus_chats()
    press(part, KEYS.Key_Delete)
    press(part, KEYS.Key_Return)
    press(part, KEYS.Key_F2)
    assert editor(part) is not None
    assert taken == []


def test_the_row_with_the_focus_keeps_it_when_the_order_changes(show):
    part = show(drawn())
    part.list.focus_chats()
    QTest.keyClicks(part.chats, "letter")
    part.store.records = {"new": record("new"), **part.store.records}
    part.history.look()
    part.lane.run()
    assert at_key(part) == "Letter to the landlord"


def test_the_button_in_a_row_opens_its_menu(qtbot, show):
    part = show(drawn())
    rect = part.chats.visualRect(index(part, "Letter to the landlord"))
    spot = more_place(part.chats, row_place(part.chats, rect)).center()
    qtbot.mouseClick(part.chats.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert list(menu(part)) == [
        "Rename", "Pin", "Export as Markdown…", "Export as JSON…", "Delete",
    ]  # fmt: skip
    menu(part)["Pin"].trigger()
    QApplication.activePopupWidget().close()
    part.lane.run()
    assert titles(part)[:3] == ["Pinned", "Prompts that work", "Letter to the landlord"]
    assert part.chat.chat_id == ""  # the button opens no chat


def test_the_menu_key_opens_the_menu_of_the_row_with_the_focus(show):
    part = show(drawn())
    part.list.focus_chats()
    ask = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0))
    QApplication.sendEvent(part.chats.viewport(), ask)
    menu(part)["Delete"].trigger()
    QApplication.activePopupWidget().close()
    part.lane.run()
    assert "Prompts that work" not in titles(part)


def test_a_chat_is_exported_to_the_file_that_was_chosen(show, monkeypatch, tmp_path):
    part = show(drawn())
    asked = []

    def choose(parent, title, name, kinds):
        asked.append(name)
        return str(tmp_path / "out"), kinds

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    part.column._show_chat_menu(
        SimpleNamespace(id="Letter to the landlord"), part.chats.mapToGlobal(QPoint(0, 0))
    )
    menu(part)["Export as Markdown…"].trigger()
    QApplication.activePopupWidget().close()
    part.lane.run()
    assert asked[0].endswith("Letter to the landlord.md")
    assert part.store.calls == ["export 1 out.md markdown"]


def test_all_chats_are_exported_and_imported(show, monkeypatch, tmp_path):
    part = show(drawn())
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(tmp_path / "all.json"), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: (str(tmp_path / "in.json"), ""))
    part.column.more.click()
    words = menu(part)
    words["Export all as JSON…"].trigger()
    words["Import chats…"].trigger()
    QApplication.activePopupWidget().close()
    part.lane.run()
    assert part.store.calls == [f"export {len(drawn())} all.json json"]
    assert part.chat.chat_id == "imported"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: ("", ""))
    part.column.more.click()
    menu(part)["Import chats…"].trigger()  # and cancelled
    QApplication.activePopupWidget().close()
    assert part.lane.tasks == []


def test_searching_from_the_keyboard(qtbot, show):
    part = show(drawn(), {"Letter to the landlord": "the heating in flat 4B"})
    part.list.focus_search()
    QTest.keyClicks(part.column.search, "heating")
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    part.lane.run()
    assert titles(part) == ["Letter to the landlord"]
    with qtbot.waitSignal(part.conversations.sought) as caught:
        QTest.keyClick(part.column.search, KEYS.Key_Return)
        part.lane.run()
    assert caught.args == ["in Letter to the landlord"]
    QTest.keyClick(part.column.search, KEYS.Key_Down)
    assert part.chats.hasFocus()
    part.column.search.setText("walrus")
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    part.lane.run()
    assert part.column.said.isVisible()
    assert part.column.said.text() == "No chat has “walrus” in it."


def test_an_empty_list_has_a_sentence(show):
    part = show()
    assert part.column.said.isVisible()
    assert part.column.said.text().startswith("No chats yet.")


def test_new_chat_and_the_foot(qtbot, show):
    part = show(drawn())
    part.conversations.open("Letter to the landlord")
    part.lane.run()
    with qtbot.waitSignal(part.list.opened):
        part.column.new.click()
    assert part.chat.chat_id == ""
    with qtbot.waitSignals([part.list.models_asked, part.list.settings_asked]):
        part.column.foot.models.click()
        part.column.foot.settings.click()
    part.column.foot.offline.click()
    assert part.hub.offline
    assert part.column.foot.offline.isChecked()
    part.hub.set_offline(False)
    assert not part.column.foot.offline.isChecked()


def test_an_offline_switch_that_is_fixed_stays(show):
    part = show()
    part.hub.set_offline(True)
    part.hub.set_offline = lambda wanted: None
    part.column.foot.offline.click()
    assert part.column.foot.offline.isChecked()


def test_words_that_are_too_long_for_the_foot_lose_their_icons(show):
    part = show()
    foot = part.column.foot
    buttons = (foot.models, foot.settings, foot.offline)
    assert not any(button.icon().isNull() or not button.text() for button in buttons)
    whole = sum(button.sizeHint().width() for button in buttons)
    foot.resize(whole - 1 + 2 * 5, foot.height())
    foot._fit()
    assert all(button.icon().isNull() for button in buttons)
    assert [button.text().strip() for button in buttons] == ["Models", "Settings", "Offline"]
    assert foot.models.toolTip() == ""


def test_words_without_any_room_leave_icons_with_tooltips(show):
    part = show()
    foot = part.column.foot
    buttons = (foot.models, foot.settings, foot.offline)
    for button in buttons:
        button.set_words("Einstellungen")
    foot._fit()
    part.window.grab()
    assert not any(button.icon().isNull() or button.text() for button in buttons)
    assert foot.models.toolTip() == "Einstellungen"
    assert foot.offline.toolTip().startswith("Einstellungen\n")
    assert all(button.accessibleName() == "Einstellungen" for button in buttons)
    assert foot.offline.geometry().right() <= foot.width()
    part.hub.set_offline(True)
    assert not foot.offline.icon().isNull()


@pytest.mark.parametrize(("language", "keys"), [("en", "Ctrl+K"), ("de", "Strg+K")])
def test_the_search_fields_keys_are_those_of_the_language(qapp, language, keys):
    resources.speak(qapp, language)
    try:
        assert hint() == keys
    finally:
        resources.speak(qapp, "en")


@pytest.mark.parametrize("scale", [1, 1.5])
@pytest.mark.parametrize(("language", "last"), [("en", "”."), ("de", "“ gelöscht.")])
def test_a_note_shortens_a_title_not_its_own_words(qtbot, qapp, show, language, last, scale):
    title = "A title that is far too long for a column of this width"
    held = QFont(qapp.font())
    larger = QFont(held)
    larger.setPointSizeF(held.pointSizeF() * scale)
    resources.speak(qapp, language)
    try:
        qapp.setFont(larger)
        part = show([record(title)])
        part.conversations.delete(title)
        said = part.column.note.said
        qtbot.waitUntil(lambda: said.text().endswith(f"…{last}") and "A title" in said.text())
        assert said.fontMetrics().horizontalAdvance(said.text()) <= said.width()
        assert said.accessibleName().count(title) == 1
        assert not said.geometry().intersects(part.column.note.undo.geometry())
    finally:
        qapp.setFont(held)
        resources.speak(qapp, "en")


def test_the_rail_opens_the_list_over_the_window(qtbot, show):
    part = show(drawn())
    part.list.set_narrow(True)
    assert part.list.width() == 52
    assert part.list.rail.isVisible()
    assert not part.column.isVisible()
    part.list.rail.chats.click()
    assert part.column.isVisible()
    assert part.chats.hasFocus()
    part.window.resize(900, 620)
    assert part.column.height() == 620
    press(part, KEYS.Key_Down)
    press(part, KEYS.Key_Return)
    assert part.chat.chat_id == "Mean of one CSV column"
    assert not part.column.isVisible()
    assert part.list.width() == 52


def test_escape_or_a_click_beside_it_closes_the_opened_list(qtbot, show):
    part = show(drawn())
    part.list.set_narrow(True)
    part.list.rail.search.click()
    assert part.column.search.hasFocus()
    QTest.keyClick(part.column.search, KEYS.Key_Escape)
    assert not part.column.isVisible()
    part.list.focus_chats()
    QTest.keyClick(part.chats, KEYS.Key_Escape)
    assert not part.column.isVisible()
    part.list.focus_chats()
    over = part.list._over
    qtbot.mouseClick(over, Qt.MouseButton.LeftButton, pos=QPoint(600, 300))
    assert not part.column.isVisible()
    part.list.set_narrow(False)
    assert part.column.isVisible()
    assert part.list.width() == 248


def test_the_rail_offers_undo(show):
    part = show(drawn())
    part.list.set_narrow(True)
    assert not part.list.rail.undo.isVisible()
    part.conversations.delete("Letter to the landlord")
    assert part.list.rail.undo.isVisible()
    assert "Letter to the landlord" in part.list.rail.undo.accessibleName()
    part.list.rail.undo.click()
    assert not part.list.rail.undo.isVisible()


def test_every_control_has_a_name_and_can_be_reached(show):
    part = show(drawn())
    part.list.set_narrow(True)
    part.list.focus_chats()
    for widget in part.window.findChildren(QWidget):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget is not part.centre:
            assert widget.accessibleName(), widget
    for button in part.list.findChildren(QAbstractButton):
        assert button.accessibleName() or button.toolTip(), button


def test_a_long_title_is_shortened_and_told_in_full(qtbot, show, monkeypatch):
    from PySide6.QtGui import QHelpEvent
    from PySide6.QtWidgets import QToolTip

    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda at, text, view: told.append(text))
    part = show([record("A title that is far too long for a column <b>of this width</b>")])
    spot = place(part, titles(part)[1])
    event = QHelpEvent(QEvent.Type.ToolTip, spot, part.chats.viewport().mapToGlobal(spot))
    QApplication.sendEvent(part.chats.viewport(), event)
    assert "&lt;b&gt;of this width&lt;/b&gt;" in told[0]
    part = show([record("short")])
    spot = place(part, "short")
    event = QHelpEvent(QEvent.Type.ToolTip, spot, part.chats.viewport().mapToGlobal(spot))
    QApplication.sendEvent(part.chats.viewport(), event)
    assert told[1] == ""


def test_right_to_left_mirrors_rows(qapp, show):
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        part = show(drawn())
        rect = part.chats.visualRect(index(part, "Letter to the landlord"))
        inner = row_place(part.chats, rect)
        assert rect.right() - inner.right() == 8
        assert more_place(part.chats, inner).left() == inner.left()
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def test_five_hundred_chats_scroll_smoothly(qtbot, show):
    records = [record(f"Chat number {n} about something or other", n / 3) for n in range(500)]
    part = show(records)
    bar = part.chats.verticalScrollBar()
    assert bar.maximum() > 10_000
    steps = []
    for step in range(30):
        bar.setValue(step * bar.maximum() // 30)
        steps.append(took(part.chats.viewport().repaint))
    assert sorted(steps)[-3] < 0.05, sorted(steps)[-5:]
    part.store.records = {"new": record("new"), **part.store.records}
    part.history.look()
    value = bar.value()
    assert took(part.lane.run) < 0.1
    assert bar.value() == pytest.approx(value, abs=64)
