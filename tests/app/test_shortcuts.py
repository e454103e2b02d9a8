"""The table of actions and the sheet that lists it."""

from itertools import groupby

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app import actions
from app.widgets.shortcuts import ShortcutSheet
from tests.fakes import ScriptedSession, chunks_of

KEYS = {
    "new_chat": "Ctrl+N",
    "search_chats": "Ctrl+K",
    "find": "Ctrl+F",
    "rename": "F2",
    "stop": "Esc",
    "regenerate": "Ctrl+R",
    "copy_answer": "Ctrl+Shift+C",
    "choose_model": "Ctrl+L",
    "get_models": "Ctrl+G",
    "compare": "Ctrl+D",
    "toggle_sidebar": "Ctrl+B",
    "settings": "Ctrl+,",
    "shortcuts": "F1",
    "quit": "Ctrl+Q",
}


@pytest.fixture
def ran():
    return []


@pytest.fixture
def entries(ran):
    return actions.table({key: lambda key=key: ran.append(key) for key in KEYS})


def test_every_key_runs_its_own_action_once_also_while_something_is_written(qtbot, entries, ran):
    window = QWidget()
    qtbot.addWidget(window)
    field = QLineEdit()
    QVBoxLayout(window).addWidget(field)
    actions.install(window, entries)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    field.setFocus()
    for key, keys in KEYS.items():
        (combination,) = QKeySequence(keys)
        qtbot.keyClick(field, combination.key(), combination.keyboardModifiers())
        assert ran == [key], keys
        ran.clear()
    assert field.text() == ""


def test_no_two_actions_share_keys_and_none_is_a_bare_letter(entries):
    assert {entry.key: entry.keys for entry in entries} == KEYS
    assert len({QKeySequence(entry.keys).toString() for entry in entries}) == len(entries)
    for entry in entries:
        assert "+" in entry.keys or entry.keys.startswith("F") or entry.keys == "Esc"


def test_a_handler_too_few_or_too_many_is_refused():
    with pytest.raises(KeyError):
        actions.table({})
    with pytest.raises(KeyError, match="sing"):
        actions.table(dict.fromkeys((*KEYS, "sing"), print))


def test_the_sheet_lists_the_whole_table(qtbot, entries):
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = ShortcutSheet(actions.listed(), parent)
    sheet.show()
    qtbot.waitExposed(sheet)
    shown = {name: keys.text() for name, (_, keys) in sheet.rows.items()}
    for key in actions.listed():
        native = QKeySequence(key.keys).toString(QKeySequence.SequenceFormat.NativeText)
        assert shown.pop(key.name) == native
        assert native
    assert not shown
    assert {entry.name for entry in entries} <= set(sheet.rows)
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_what_the_sheet_groups_stands_together():
    groups = [key.group for key in actions.listed()]
    assert len([group for group, _ in groupby(groups)]) == len(set(groups))


def test_every_key_of_the_window_stands_in_the_sheet(open_program):
    window = open_program(ScriptedSession(chunks_of(["ok"]))).window
    window.show_shortcuts()
    written = {keys.text() for _, keys in window._sheet.rows.values()}
    taken = [action.shortcut() for action in window.findChildren(QAction)]
    taken += [shortcut.key() for shortcut in window.findChildren(QShortcut)]
    keys = {keys.toString(QKeySequence.SequenceFormat.NativeText) for keys in taken}
    assert len(keys) > 10
    assert keys - {""} <= written


def test_the_sheet_opens_over_a_dialog_too(qtbot, open_program):
    window = open_program(ScriptedSession(chunks_of(["ok"]))).window
    for dialog in (window.settings, window.hub):
        dialog.open_up()
        qtbot.waitUntil(dialog.isActiveWindow)
        qtbot.keyClick(dialog, Qt.Key.Key_F1)
        assert window._sheet is not None
        qtbot.waitUntil(window._sheet.isActiveWindow)
        qtbot.keyClick(window._sheet, Qt.Key.Key_Escape)
        assert not window._sheet.isVisible()
        assert dialog.isVisible()
        dialog.close()
