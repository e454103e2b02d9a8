"""The dialog that is made from the table of settings."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QWidget

from app import paths, resources
from app.settings import TABLE, Settings, changed
from app.widgets.controls import Select, Tick
from app.widgets.settings_dialog import SettingsDialog
from engine.past import Past
from tests.fakes import ScriptedSession


@pytest.fixture
def dialog(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    made = SettingsDialog(Settings(), window)
    made.window_ = window
    made.told = []
    made.changed.connect(lambda name, value: made.told.append((name, value)))
    made.open_up()
    qtbot.waitExposed(made)
    return made


def shown(dialog, name):
    control = dialog.controls[name]
    return control.isChecked() if isinstance(control, Tick) else control.currentData()


def test_it_has_a_control_for_every_entry_and_shows_the_defaults(dialog):
    assert list(dialog.controls) == [entry.name for entry in TABLE]
    assert {name: shown(dialog, name) for name in dialog.controls} == {
        entry.name: entry.default for entry in TABLE
    }


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_a_choice_is_told_at_once_and_once(dialog, qtbot, entry):
    control = dialog.controls[entry.name]
    control.setFocus(Qt.FocusReason.TabFocusReason)
    if isinstance(control, Tick):
        qtbot.keyClick(control, Qt.Key.Key_Space)
        assert dialog.told == [(entry.name, not entry.default)]
        return
    qtbot.keyClick(control, Qt.Key.Key_End)
    last = control.itemData(control.count() - 1)
    assert last != entry.default
    assert dialog.told == [(entry.name, last)]
    assert changed(Settings(), *dialog.told[0]) != Settings()


def test_what_drafts_learned_is_forgotten_by_a_button(qtbot, open_program):
    """In memory and on the disk, whatever chat it is of."""
    program = open_program(ScriptedSession())
    folder = paths.past_folder()
    Past(folder).of("v").add("a chat", [1, 2], 0)
    program.window.settings.open_up()
    program.window.learned.forget.click()
    qtbot.waitUntil(lambda: program.conversations.note is not None)
    assert Past(folder).of("v").all == ()


def test_what_is_set_elsewhere_is_shown_and_not_told(dialog):
    dialog.show_settings(
        Settings(theme="dark", font_size=125, tint=True, sidebar=False, draft_length=3)
    )
    assert dialog.controls["theme"].currentText() == "Dark"
    assert dialog.controls["font_size"].currentText() == "125 %"
    assert dialog.controls["draft_length"].currentText() == "3 tokens"
    assert shown(dialog, "tint") is True
    assert shown(dialog, "sidebar") is False
    assert dialog.told == []


@pytest.mark.parametrize("percent", [100, 150])
def test_choices_stand_in_one_column_that_is_in_sight(dialog, qtbot, percent):
    app = QApplication.instance()
    try:
        resources.apply_theme(app, "light", percent=percent)
        qtbot.wait(50)
        selects = [c for c in dialog.controls.values() if isinstance(c, Select)]
        places = {(c.mapTo(dialog, QPoint()).x(), c.width()) for c in selects}
        assert len(places) == 1
        (scroll,) = dialog.findChildren(QScrollArea)
        assert scroll.widget().width() == scroll.viewport().width()
        assert scroll.widget().minimumSizeHint().width() <= scroll.viewport().width()
    finally:
        resources.apply_theme(app, "light", percent=100)


def test_the_wheel_changes_nothing(dialog):
    control = dialog.controls["theme"]
    turn = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), QPoint(0, -120), QPoint(0, -120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(control, turn)
    assert shown(dialog, "theme") == "system"
    assert dialog.told == []


def test_everything_is_reached_by_tab_and_has_a_name(dialog, qtbot):
    first = dialog.controls["theme"]
    first.setFocus(Qt.FocusReason.TabFocusReason)
    reached = []
    while QApplication.focusWidget() not in reached:
        reached.append(QApplication.focusWidget())
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert set(dialog.controls.values()) <= set(reached)
    assert all(widget.accessibleName() for widget in reached)
    labels = {held.text(): held.buddy() for held in dialog.findChildren(QLabel)}
    for entry in TABLE:
        assert labels[entry.label] is dialog.controls[entry.name]


def test_a_control_out_of_sight_is_scrolled_to_when_it_gets_the_focus(dialog, qtbot):
    dialog.resize(dialog.minimumSize())
    *_, before, last = dialog.controls.values()
    before.setFocus(Qt.FocusReason.TabFocusReason)
    assert last.visibleRegion().isEmpty()
    qtbot.keyClick(before, Qt.Key.Key_Tab)
    assert last.hasFocus()
    qtbot.waitUntil(lambda: not last.visibleRegion().isEmpty())


def test_esc_closes_it(dialog, qtbot):
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
