"""The graphics card in the window: what the settings and the sidebar say, and what buttons do."""

import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app import gpu_addon, graphics, paths, settings
from app.graphics import Outlook, State
from app.viewmodels.gpu import Deed
from engine.api import Progress
from engine.errors import DownloadError, Reason, heed
from tests.fakes import ScriptedSession

CARD = {"card": "NVIDIA GeForce RTX 4070"}
OFFER = Outlook(
    State.OFFERED, Reason("gpu_offered", "An add-on for {card}.", CARD), "", 2_700_000_000, 0,
    4_600_000_000,
)  # fmt: skip
READY = Outlook(State.READY, Reason("gpu_ready", "From the next start on."), unpacked=4_600_000_000)


class Card:
    """How it stands, and what enabling does."""

    def __init__(self):
        self.outlook = OFFER
        self.stages = []
        self.failure = None
        self.hold = threading.Event()
        self.hold.set()
        self.calls = []
        self.access = None

    def look(self):
        return self.outlook

    def enable(self, progress, stopped, access):
        self.calls.append("enable")
        self.access = access
        for stage in self.stages:
            progress(stage)
        while not self.hold.wait(0.01):
            heed(stopped)
        if self.failure:
            raise self.failure
        self.outlook = READY

    def note_told(self):
        self.calls.append("told")
        self.outlook = replace(self.outlook, fresh=False)

    def disable(self):
        self.calls.append("disable")
        self.outlook = OFFER


@pytest.fixture
def card(monkeypatch):
    made = Card()
    monkeypatch.setattr(graphics, "look", made.look)
    for name in ("enable", "disable"):
        monkeypatch.setattr(gpu_addon, name, getattr(made, name))
    monkeypatch.setattr(gpu_addon, "tidy", lambda: made.calls.append("tidy"))
    monkeypatch.setattr(gpu_addon, "note_told", made.note_told)
    return made


@pytest.fixture
def opened(card, open_program, qtbot):
    def opening():
        program = open_program(ScriptedSession())
        qtbot.waitUntil(lambda: program.gpu.view is not None)
        return program

    return opening


def shown(program):
    """The buttons of the section."""
    program.window.show_gpu()
    return {deed for deed, button in program.window.gpu.buttons.items() if button.isVisible()}


def press(program, deed):
    program.window.show_gpu()
    program.window.gpu.buttons[deed].click()


def test_the_sidebar_points_at_a_card_that_is_not_used(opened, card):
    program = opened()
    hint = program.window.sidebar.gpu
    assert hint.isVisible()
    assert "NVIDIA GeForce RTX 4070" in hint.text.text()
    assert "2.7 GB" in hint.text.text()
    hint.enable.click()
    assert program.window.settings.isVisible()
    assert not program.window.gpu.visibleRegion().isEmpty()
    assert card.calls == ["tidy"]


def test_not_now_is_remembered(opened, open_program, qtbot):
    program = opened()
    program.window.sidebar.gpu.later.click()
    assert not program.window.sidebar.gpu.isVisible()
    assert settings.load(paths.config_folder()).card_declined
    again = opened()
    assert not again.window.sidebar.gpu.isVisible()
    assert shown(again) == {Deed.ENABLE}


def test_what_is_downloaded_and_how_large_is_said_before_the_button_is_pressed(opened, card):
    program = opened()
    assert shown(program) == {Deed.ENABLE}
    said = program.window.gpu.detail.text()
    assert said == "2.7 GB to download, then 4.6 GB on the disk"
    assert "enable" not in card.calls


def test_it_is_enabled_and_used_from_the_next_start_on(opened, card, qtbot):
    program = opened()
    press(program, Deed.ENABLE)
    qtbot.waitUntil(lambda: program.gpu.view.deeds == (Deed.RESTART, Deed.UNDO))
    assert program.window.gpu.text.text() == "From the next start on."
    assert not program.window.sidebar.gpu.isVisible()
    press(program, Deed.UNDO)
    qtbot.waitUntil(lambda: program.gpu.view.deeds == (Deed.ENABLE,))
    assert card.calls == ["tidy", "enable", "disable"]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Progress("download", 900_000_000, 2_700_000_000), "0.9 of 2.7 GB"),
        (Progress("check", 1, 4), "Checking what is here, 25 %"),
        (Progress("unpack", 1, 2), "Unpacking, 50 %"),
        (Progress("try", 0, 1), "Trying it"),
    ],
)
def test_how_far_it_is_is_shown_and_it_can_be_stopped(opened, card, qtbot, stage, text):
    card.stages, card.outlook = [stage], OFFER
    card.hold.clear()
    program = opened()
    press(program, Deed.ENABLE)
    qtbot.waitUntil(lambda: program.window.gpu.text.text() == text)
    assert program.window.gpu.meter.isVisible()
    assert shown(program) == {Deed.CANCEL}
    card.outlook = Outlook(State.OFFERED, OFFER.said, "", OFFER.size, 900_000_000, OFFER.unpacked)
    press(program, Deed.CANCEL)
    qtbot.waitUntil(lambda: Deed.GO_ON in program.gpu.view.deeds)
    assert shown(program) == {Deed.GO_ON, Deed.REMOVE}
    assert "0.9 of 2.7 GB are here" in program.window.gpu.detail.text()


def test_a_failure_is_said_until_it_is_tried_again(opened, card, qtbot):
    card.failure = DownloadError("no_index", "The package index cannot be reached.")
    program = opened()
    press(program, Deed.ENABLE)
    qtbot.waitUntil(lambda: program.gpu.view.bad)
    program.gpu.look()
    qtbot.wait(80)
    assert program.window.gpu.text.text() == "The package index cannot be reached."
    assert program.window.gpu.text.property("tone") == "bad"
    card.failure = None
    press(program, Deed.ENABLE)
    qtbot.waitUntil(lambda: program.gpu.view.text == "From the next start on.")
    assert not program.gpu.view.bad


def test_the_offline_switch_is_handed_on(opened, card, qtbot):
    program = opened()
    program.window.set("offline", True)
    press(program, Deed.ENABLE)
    qtbot.waitUntil(lambda: card.access is not None)
    assert card.access.offline


def test_why_an_addon_is_not_used_is_said_once_in_the_bar(opened, card, qtbot):
    reason = Reason("addon_failed", "It cannot be loaded.")
    card.outlook = Outlook(State.REFUSED, reason, fresh=True)
    program = opened()
    bar = program.window.error_bar
    qtbot.waitUntil(bar.isVisible)
    assert bar.text.text() == "It cannot be loaded."
    assert card.calls.count("told") == 1
    bar.close_.click()
    program.gpu.look()
    qtbot.wait(80)
    assert not bar.isVisible()
    assert shown(program) == {Deed.RETRY, Deed.REMOVE}


def test_the_bar_leads_to_the_section(opened, card, qtbot):
    card.outlook = Outlook(State.REFUSED, Reason("addon_failed", "No."), fresh=True)
    program = opened()
    qtbot.waitUntil(program.window.error_bar.isVisible)
    from app.viewmodels.alerts import Action

    program.window.error_bar.buttons[Action.GRAPHICS_CARD].click()
    assert program.window.gpu.isVisible()


def test_a_command_can_be_copied(opened, card):
    card.outlook = Outlook(State.TOLD, Reason("gpu_rocm", "With pip:"), "pip install torch")
    program = opened()
    assert shown(program) == {Deed.LOOK}
    program.window.gpu.copy.click()
    assert QGuiApplication.clipboard().text() == "pip install torch"


def test_why_the_processor_computes_is_said_in_the_settings_alone(opened, card):
    card.outlook = Outlook(State.TOLD, Reason("gpu_none", "No card is seen."))
    program = opened()
    assert shown(program) == {Deed.LOOK}
    assert program.window.gpu.text.text() == "No card is seen."
    assert not program.window.sidebar.gpu.isVisible()


def test_restart_closes_the_window(opened, card, qtbot):
    card.outlook = READY
    program = opened()
    with qtbot.waitSignal(program.gpu.restart_asked):
        press(program, Deed.RESTART)


def test_every_button_is_reached_by_tab_and_named(opened, card, qtbot):
    card.outlook = READY
    program = opened()
    program.window.show_gpu()
    for deed in (Deed.RESTART, Deed.UNDO):
        button = program.window.gpu.buttons[deed]
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert button.accessibleName()
