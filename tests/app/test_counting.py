"""The count of what is being written: after a pause, of the last text, for the model that runs."""

import threading

import pytest
from PySide6.QtCore import QObject, Signal

from app.viewmodels.binding import Property
from app.viewmodels.counting import Counting, counter_for
from app.worker import Worker
from engine.api import Loaded, Sampling
from engine.counting import Count
from tests.fakes import TARGET, ScriptedSession, info
from tests.folders import write_tokenizer


class Models(QObject):
    loaded_changed = Signal(object)
    loaded = Property(None)


class Letters:
    """Counts letters; remembers what it was asked, and in which thread."""

    def __init__(self):
        self.asked = []
        self.threads = set()
        self.closed = False

    def count(self, text, stopped):
        self.asked.append(text)
        self.threads.add(threading.current_thread().name)
        return Count(len(text), about=len(text) > 9)

    def close(self):
        self.closed = True


def model(path=TARGET, vocabulary="v"):
    return Loaded(info(path), "cpu", "int8", 512, vocabulary, Sampling(), 1, 0.1)


@pytest.fixture
def opened():
    return []


@pytest.fixture
def counting(qtbot, opened):
    worker, models = Worker(ScriptedSession), Models()

    def opening(loaded):
        opened.append(Letters())
        return opened[-1]

    models.loaded = model()
    counting = Counting(worker, models, opening)
    counting.models, counting.held = models, worker
    yield counting
    worker.close()


def test_only_the_last_of_quick_changes_is_counted_and_not_in_the_windows_thread(
    qtbot, counting, opened
):
    for end in range(1, 6):
        counting.count("abcde"[:end])
        assert counting.tokens is None
    qtbot.waitUntil(lambda: counting.tokens == 5)
    assert opened[0].asked == ["abcde"]
    assert opened[0].threads == {"counting"}
    assert not counting.about


def test_a_text_that_came_meanwhile_makes_an_older_count_worthless(qtbot, counting, opened):
    counting.count("abc")
    qtbot.waitUntil(lambda: opened[0].asked == ["abc"])
    counting.count("other")
    assert counting.tokens is None
    told = []
    counting.tokens_changed.connect(told.append)
    qtbot.waitUntil(lambda: counting.tokens is not None)
    assert told == [5]


def test_nothing_has_no_tokens_at_once(counting):
    counting.count("")
    assert counting.tokens == 0


def test_of_a_long_text_it_is_said_that_it_is_about(qtbot, counting):
    counting.count("x" * 10)
    qtbot.waitUntil(lambda: counting.tokens == 10)
    assert counting.about
    counting.count("x")
    qtbot.waitUntil(lambda: counting.tokens == 1)
    assert not counting.about


def test_another_model_counts_the_same_text_again(qtbot, counting, opened):
    counting.count("abc")
    qtbot.waitUntil(lambda: counting.tokens == 3)
    counting.models.loaded = model(vocabulary="other")
    assert counting.tokens is None
    qtbot.waitUntil(lambda: counting.tokens == 3)
    qtbot.waitUntil(lambda: opened[0].closed)
    assert opened[1].asked == ["abc"]


def test_without_a_model_nothing_is_counted(qtbot, counting, opened):
    counting.models.loaded = None
    counting.count("abc")
    qtbot.wait(250)
    assert counting.tokens is None
    assert opened[0].asked == []


def test_the_tokenizer_is_that_of_the_models_folder(tmp_path):
    assert counter_for(model(tmp_path / "gone")) is None
    folder = write_tokenizer(tmp_path)
    counter = counter_for(model(folder))
    assert counter.count("abc") == Count(3)
    counter.close()
