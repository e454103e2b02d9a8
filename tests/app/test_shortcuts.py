"""The table of actions and the sheet that lists it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app import actions
from app.widgets.shortcuts import ShortcutSheet

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


def test_the_sheet_lists_the_table_and_the_keys_of_the_composer(qtbot, entries):
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = ShortcutSheet((*entries, *actions.writing_keys()), parent)
    sheet.show()
    qtbot.waitExposed(sheet)
    listed = {name: keys.text() for name, (_, keys) in sheet.rows.items()}
    for entry in (*entries, *actions.writing_keys()):
        native = QKeySequence(entry.keys).toString(QKeySequence.SequenceFormat.NativeText)
        assert listed.pop(entry.name) == native
        assert native
    assert not listed
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()
