"""Messages on the desktop about answers that end in the background."""

import pytest
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app import notify
from app.notify import Notifier
from app.settings import Settings


class Clock:
    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(notify, "time", clock)
    return clock


@pytest.fixture
def told(monkeypatch):
    """What was told, on a desktop with a place for messages."""
    told = []
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "supportsMessages", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "show", lambda self: None)
    monkeypatch.setattr(
        QSystemTrayIcon, "showMessage", lambda self, *words, **_: told.append(words)
    )
    monkeypatch.setattr(QApplication, "alert", lambda window, *_: told.append("alert"))
    return told


@pytest.fixture
def window(qtbot):
    shown = QWidget()
    qtbot.addWidget(shown)
    return shown


def answer(notifier, clock, seconds, complete=True):
    notifier.begin()
    clock.now += seconds
    notifier.end("A river", complete)


def test_a_long_answer_is_told_of_by_its_title_alone(window, clock, told):
    answer(Notifier(window, Settings()), clock, 10.0)
    assert told == ["alert", ("A river", "The answer is complete.")]


def test_an_answer_that_failed_or_was_cut_is_not_called_complete(window, clock, told):
    answer(Notifier(window, Settings()), clock, 10.0, complete=False)
    assert told == ["alert", ("A river", "The answer ended early.")]


def test_a_short_answer_is_not_told_of(window, clock, told):
    answer(Notifier(window, Settings()), clock, 9.9)
    assert told == []


def test_who_looks_at_the_window_is_told_nothing(qtbot, window, clock, told):
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    answer(Notifier(window, Settings()), clock, 60)
    assert told == []


def test_it_is_off_by_a_setting_and_on_again_at_once(window, clock, told):
    notifier = Notifier(window, Settings(notifications=False))
    answer(notifier, clock, 60)
    assert told == []
    notifier.follow(Settings())
    answer(notifier, clock, 60)
    assert len(told) == 2


def test_where_there_is_no_place_for_messages_the_window_asks_for_attention(
    window, clock, told, monkeypatch
):
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: False)
    answer(Notifier(window, Settings()), clock, 60)
    assert told == ["alert"]


def test_an_end_without_a_beginning_is_nothing(window, clock, told):
    Notifier(window, Settings()).end("A river", True)
    assert told == []
