"""A hub that is busy: left alone as long as it asks, and asked again quietly when out of order."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest

from engine.errors import Cancelled, DownloadError
from engine.library import download, patience
from engine.library.answers import Busy
from engine.library.download import fetch
from engine.library.hub import search
from engine.library.patience import patiently
from engine.library.plan import plan
from tests.hub import serving


class Clock:
    """A time that goes by only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(patience, "time", clock)
    monkeypatch.setattr(patience, "_free_at", 0.0)
    return clock


@pytest.fixture
def hub(clock, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    files = {
        "config.json": b'{"model_type": "llama"}',
        "tokenizer.json": b"{}",
        "model.safetensors": b"w" * 9000,
    }
    with serving({"org/model": files}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def never() -> bool:
    return False


def told(found):
    return lambda progress: found.append((progress.stage, progress.total - progress.done))


def test_at_most_one_request_until_the_time_that_was_asked_for_is_over(hub, clock):
    """DLD-1 (d)."""
    hub.busy["/api/models/org/model"] = [(429, {"Retry-After": "7"})] * 2
    asked, said = [], []

    def ask():
        asked.append(clock.now)
        return plan("org/model")

    assert patiently(ask, told(said), never).repository == "org/model"
    assert [b - a for a, b in pairwise(asked)] == pytest.approx([7, 7], abs=0.1)
    assert next(left for stage, left in said if stage == "wait") == 7
    assert {left for _, left in said} == {1, 2, 3, 4, 5, 6, 7}
    assert hub.asked("/api/") == 3


def test_a_search_is_one_request_however_busy_the_hub(hub):
    hub.fail["/api/models"] = (429, {"Retry-After": "7"})
    with pytest.raises(Busy):
        search("model")
    assert len(hub.requests) == 1


def test_the_wait_ends_when_it_is_stopped(hub, clock):
    hub.fail["/api/models"] = (429, {"Retry-After": "700"})
    began = clock.now
    with pytest.raises(Cancelled):
        patiently(lambda: search("model"), lambda _: None, lambda: clock.now > began + 3)
    assert clock.now - began < 4
    assert len(hub.requests) == 1


def test_who_asks_something_else_meanwhile_waits_too(hub, clock):
    hub.busy["/api/models"] = [(429, {"Retry-After": "30"})]
    began = clock.now
    with pytest.raises(Cancelled):
        patiently(lambda: search("model"), lambda _: None, lambda: clock.now > began + 3)
    patiently(lambda: plan("org/model"), lambda _: None, never)
    assert clock.now - began == pytest.approx(30, abs=0.2)


def test_a_wait_that_nobody_would_sit_through_is_said_and_holds_for_the_next_try(hub, clock):
    hub.fail["/api/models"] = (429, {"Retry-After": "3600"})
    with pytest.raises(DownloadError, match="wait 3600 seconds"):
        patiently(lambda: search("model"), lambda _: None, never)
    clock.now += 100
    with pytest.raises(DownloadError, match="wait 3500 seconds"):
        patiently(lambda: search("model"), lambda _: None, never)
    assert len(hub.requests) == 1


def test_a_hub_that_never_stops_asking_is_given_up(hub, clock):
    hub.fail["/api/models"] = (429, {"Retry-After": "7"})
    with pytest.raises(DownloadError, match="wait 7 seconds"):
        patiently(lambda: search("model"), lambda _: None, never)
    assert len(hub.requests) == 1 + len(patience.WAITS)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_hub_out_of_order_is_asked_again_quietly(hub, clock, tmp_path, status):
    """DLD-1 (e), of the listing and of a file."""
    hub.busy = {"/api/models": [(status, {})] * 2, "model.safetensors": [(status, {})] * 2}
    said = []
    wanted = patiently(lambda: plan("org/model"), told(said), never)
    fetch(wanted, tmp_path, told(said), never)
    assert (tmp_path / "org" / "model" / "model.safetensors").read_bytes() == b"w" * 9000
    assert "wait" not in {stage for stage, _ in said}
    assert clock.now == pytest.approx(1006, abs=0.2)


def test_a_hub_that_stays_out_of_order_is_given_up(hub, clock):
    hub.fail["/api/models"] = (503, {})
    with pytest.raises(DownloadError, match="answered 503"):
        patiently(lambda: search("model"), lambda _: None, never)
    assert len(hub.requests) == 1 + len(patience.WAITS)


def test_a_file_goes_on_where_the_limit_stopped_it(hub, clock, tmp_path, monkeypatch):
    hub.cut["model.safetensors"] = [4000]
    wanted = plan("org/model")
    answers = [(429, {"Retry-After": "7"})]
    real = download.hub.stream

    def limited(*args, **named):
        yield from real(*args, **named)
        hub.busy["model.safetensors"] = answers

    monkeypatch.setattr(download.hub, "stream", limited)
    fetch(wanted, tmp_path, lambda _: None, never)
    ranges = [asked for path, asked in hub.requests if path.endswith("model.safetensors")]
    assert ranges[0] is None
    assert (tmp_path / "org" / "model" / "model.safetensors").read_bytes() == b"w" * 9000
    assert set(ranges[1:]) == {"bytes=4000-"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "soon"}, 60),
        ({"Retry-After": "9" * 40}, 60),
        ({}, 60),
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1))}, 3600),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 1),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:00"}, 60),
    ],
)
def test_how_long_is_read_from_every_form_in_which_it_is_said(hub, headers, seconds):
    hub.fail["/api/models"] = (429, headers)
    with pytest.raises(Busy) as caught:
        search("model")
    assert caught.value.seconds == pytest.approx(seconds, abs=900 if seconds == 3600 else 0.01)
