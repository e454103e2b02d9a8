"""The frames of the composer: sampling with its numbers, the system prompt, presets of both."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.chats.conversation import Choices
from app.widgets.field import Room
from app.widgets.sampling_panel import SamplingPanel
from app.widgets.system_prompt import SystemPrompt
from engine.api import Sampling, Usage
from tests.composing import Said

KEY = Qt.Key


@pytest.fixture
def buttons(qtbot, desk):
    window = QWidget()
    qtbot.addWidget(window)
    row = QHBoxLayout(window)
    prompt = SystemPrompt(desk.chat, desk.presets)
    panel = SamplingPanel(desk.chat, desk.models, desk.presets)
    row.addWidget(prompt)
    row.addWidget(panel)
    window.show()
    qtbot.waitExposed(window)
    yield prompt, panel
    prompt.popover.hide()
    panel.popover.hide()


@pytest.fixture
def prompt(buttons):
    return buttons[0]


@pytest.fixture
def panel(buttons):
    return buttons[1]


def knob(panel, name):
    return next(one for one in panel.popover.knobs if one.setting.field == name)


def type_in(qtbot, panel, name, text):
    field = knob(panel, name).field
    field.selectAll()
    qtbot.keyClicks(field, text) if text else qtbot.keyClick(field, KEY.Key_Delete)


# Sampling


def test_the_button_names_the_preset(desk, panel):
    assert panel.accessibleName() == "Sampling: Balanced"
    desk.chat.choose(Choices(sampling=Sampling(temperature=0.0, seed=4)))
    assert panel.text().strip() == "Precise"
    desk.chat.choose(Choices(sampling=Sampling(temperature=0.33)))
    assert panel.text().strip() == "Own"
    desk.presets.samplings.save("Mild", Sampling(temperature=0.33))
    assert panel.text().strip() == "Mild"


def test_defaults_of_the_models_files_are_shown_where_nothing_is_set(panel):
    panel.click()
    shown = {
        one.setting.field: (one.field.text(), one.field.placeholderText())
        for one in panel.popover.knobs
    }
    assert shown["temperature"] == ("", "0.7")
    assert shown["top_p"] == ("", "0.95")
    assert shown["top_k"] == ("", "64")
    assert shown["max_tokens"] == ("", "up to the context's end")
    assert not any(one.reset.isVisible() for one in panel.popover.knobs)


def test_what_is_typed_holds_for_this_chat_and_can_be_reset(qtbot, desk, panel):
    panel.click()
    type_in(qtbot, panel, "temperature", "0,4")
    type_in(qtbot, panel, "max_tokens", "200")
    type_in(qtbot, panel, "presence_penalty", "0.5")
    panel.popover.stop.setPlainText("END\n\\n\\nUser:")
    wanted = Sampling(
        temperature=0.4, max_tokens=200, presence_penalty=0.5, stop=("END", "\n\nUser:")
    )
    qtbot.waitUntil(lambda: desk.chat.choices.sampling == wanted)
    assert desk.chat.choices.system == ""
    reset = knob(panel, "temperature").reset
    assert reset.isVisible()
    reset.click()
    qtbot.waitUntil(lambda: desk.chat.choices.sampling.temperature is None)
    assert not reset.isVisible()


def test_closing_the_frame_keeps_what_was_typed_last(qtbot, desk, panel):
    panel.click()
    type_in(qtbot, panel, "top_k", "7")
    panel.popover.hide()
    assert desk.chat.choices.sampling.top_k == 7


def test_what_cannot_be_is_said_and_not_taken(qtbot, desk, panel):
    desk.chat.choose(Choices(sampling=Sampling(top_p=0.5)))
    panel.click()
    place = panel.popover.knobs[-1].geometry()
    type_in(qtbot, panel, "top_p", "7")
    assert panel.popover._told.text() == "Top-p must lie between 0.000001 and 1; it is 7."
    assert panel.popover.knobs[-1].geometry() == place
    type_in(qtbot, panel, "top_k", "9")
    qtbot.waitUntil(lambda: desk.chat.choices.sampling == Sampling(top_p=0.5, top_k=9))
    panel.popover.hide()
    panel.click()
    assert knob(panel, "top_p").field.text() == "0.5"


def test_presets_change_how_tokens_are_chosen_and_nothing_else(qtbot, desk, panel):
    held = Sampling(temperature=0.33, top_k=3, seed=5, max_tokens=9)
    desk.chat.choose(Choices(system="Be brief.", sampling=held))
    panel.click()
    panel.popover.chooser.choices.chosen.emit("Precise")
    assert desk.chat.choices == Choices(
        system="Be brief.", sampling=Sampling(temperature=0.0, seed=5, max_tokens=9)
    )
    assert knob(panel, "top_k").field.text() == ""
    assert "always takes the likeliest token" in panel.popover._told.text()


def test_own_presets_are_saved_renamed_and_deleted_by_keyboard(qtbot, desk, panel):
    panel.click()
    chooser = panel.popover.chooser
    type_in(qtbot, panel, "temperature", "0.33")
    qtbot.keyClicks(chooser.field, "Mild")
    qtbot.keyClick(chooser.field, KEY.Key_Return)
    assert desk.presets.samplings.find("Mild").value == Sampling(temperature=0.33)
    qtbot.waitUntil(lambda: panel.text().strip() == "Mild")
    assert not chooser._rename_button.isEnabled()
    qtbot.keyClicks(chooser.field, "er")
    qtbot.keyClick(chooser._rename_button, KEY.Key_Space)
    assert desk.presets.samplings.find("Milder")
    qtbot.keyClick(chooser._delete_button, KEY.Key_Space)
    assert desk.presets.samplings.own() == []
    assert desk.chat.choices.sampling.temperature == 0.33


def test_a_name_that_is_taken_is_refused_in_the_frame(qtbot, desk, panel):
    panel.click()
    chooser = panel.popover.chooser
    chooser.field.setText("Precise")
    qtbot.keyClick(chooser.field, KEY.Key_Return)
    assert chooser._problem.text() == "“Precise” comes with the program. Another name is needed."
    assert not chooser._delete_button.isEnabled()


def test_the_last_answers_seed_can_be_used_again(qtbot, desk, panel):
    panel.click()
    assert not panel.popover.again.isEnabled()
    panel.popover.hide()
    desk.chat.turns = [Said("user", "q"), Said("assistant", "a", Usage(seed=4_294_967_295))]
    panel.click()
    panel.popover.again.click()
    qtbot.waitUntil(lambda: desk.chat.choices.sampling.seed == 4_294_967_295)


def test_arrow_keys_step_from_the_default(qtbot, panel):
    panel.click()
    field = knob(panel, "temperature").field
    qtbot.keyClick(field, KEY.Key_Up)
    assert field.text() == "0.8"
    qtbot.keyClick(field, KEY.Key_PageDown)
    assert field.text() == "0"


# System prompt


def test_a_preset_becomes_the_chats_system_prompt(qtbot, desk, prompt):
    assert prompt.accessibleName() == "System prompt: No system prompt"
    prompt.click()
    prompt.popover.chooser.choices.chosen.emit("Code reviewer")
    assert desk.chat.choices.system.startswith("You review code.")
    assert prompt.text().strip() == "Code reviewer"
    prompt.popover.chooser.choices.chosen.emit("No system prompt")
    assert desk.chat.choices.system == ""


def test_an_own_text_is_written_and_saved_as_a_preset(qtbot, desk, prompt):
    prompt.click()
    flyout = prompt.popover
    qtbot.keyClicks(flyout.edit, "Talk like a pirate.")
    qtbot.waitUntil(lambda: desk.chat.choices.system == "Talk like a pirate.")
    assert prompt.text().strip() == "Own"
    qtbot.keyClicks(flyout.chooser.field, "Pirate")
    qtbot.keyClick(flyout.chooser.field, KEY.Key_Return)
    assert prompt.text().strip() == "Pirate"
    qtbot.keyClicks(flyout.edit, " Arr.")
    flyout.hide()
    assert desk.chat.choices.system == "Talk like a pirate. Arr."
    assert prompt.text().strip() == "Own"


def test_no_prompt_is_cut_in_silence(qtbot, desk, prompt):
    prompt.click()
    flyout = prompt.popover
    QGuiApplication.clipboard().setText("10\u00a0km " * 10_000)
    flyout.edit.paste()
    (room,) = flyout.findChildren(Room)
    assert room.isVisible()
    assert room.text() == "The text was cut at 50,000 characters."
    qtbot.waitUntil(lambda: desk.chat.choices.system != "")
    assert desk.chat.choices.system == flyout.edit.text().strip()
    assert desk.chat.choices.system.startswith("10\u00a0km 10")


def test_another_chat_shows_its_own_prompt(qtbot, desk, prompt):
    prompt.click()
    qtbot.keyClicks(prompt.popover.edit, "One.")
    prompt.popover.hide()
    desk.chat.choose(Choices(system="Two."))
    prompt.click()
    assert prompt.popover.edit.toPlainText() == "Two."


def test_opening_and_closing_changes_nothing(qtbot, desk, prompt, panel):
    told = []
    held = Choices(
        system="Own  ", sampling=Sampling(temperature=0.3, stop=("a\nb",), presence_penalty=0.0)
    )
    desk.chat.choose(held)
    desk.chat.choices_changed.connect(told.append)
    for button in (prompt, panel):
        button.click()
        button.popover.hide()
    assert told == []


def test_every_control_in_the_frames_has_a_name_and_is_reached_by_tab(qtbot, prompt, panel):
    for button, least in ((prompt, 3), (panel, 13)):
        button.click()
        qtbot.waitUntil(button.popover.isVisible)
        controls = [
            widget
            for widget in button.popover.findChildren(QWidget)
            if widget.isVisible() and widget.focusPolicy() is not Qt.FocusPolicy.NoFocus
        ]
        for widget in controls:
            face = QAccessible.queryAccessibleInterface(widget)
            assert face.text(QAccessible.Text.Name), widget
        visited, here = [], button.popover.focusWidget()
        while here not in visited and len(visited) < 60:
            visited.append(here)
            here = here.nextInFocusChain()
        assert len({w for w in controls if w in visited}) >= least
        button.popover.hide()


def test_a_long_name_is_shortened_and_told_in_the_tooltip(desk, prompt):
    desk.presets.prompts.save("n" * 60, "text")
    desk.chat.choose(Choices(system="text"))
    assert "…" in prompt.text()
    assert "n" * 60 in prompt.toolTip()
    assert prompt.accessibleName().endswith("n" * 60)
