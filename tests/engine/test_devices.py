"""Cards as NVML tells them, matched with torch's, and what is said where it tells nothing."""

import sys
from types import SimpleNamespace

import pytest
import torch

from engine import devices
from engine.fit import Room
from engine.nvml import Gauge
from tests.nvml import GIB, Card, Nvml

SMALL = Card("RTX 3060", "GPU-small", total=12 * GIB, used=2 * GIB, others={7: GIB, 8: None})
LARGE = Card("RTX 4090", "GPU-large", total=24 * GIB, used=GIB)


@pytest.fixture
def nvml(monkeypatch):
    played = Nvml(SMALL, LARGE)
    monkeypatch.setitem(sys.modules, "pynvml", played)
    return played


def test_every_card_is_told_with_who_holds_its_memory(nvml):
    (small, large), reason = devices.gpus()
    assert reason is None
    assert (small.name, small.total, small.used) == ("RTX 3060", 12 * GIB, 2 * GIB)
    assert small.free == 12 * GIB - 2 * GIB - small.reserved
    # listed twice by the driver; the second does not say how much it holds
    assert [(p.pid, p.used) for p in small.processes] == [(7, GIB), (8, None)]
    assert large.processes == ()
    assert nvml.open == 0


def test_a_gauge_asks_again_without_starting_anew_and_survives_a_driver_that_goes(nvml):
    """GPU-1 row 7."""
    gauge = Gauge()
    assert len(gauge.read()[0]) == 2
    assert len(gauge.read()[0]) == 2
    assert nvml.open == 1
    nvml.fails = 15
    assert gauge.read()[1].code == "nvml_failed"
    nvml.fails = None
    assert len(gauge.read()[0]) == 2


@pytest.mark.parametrize(
    ("code", "expected"), [(12, "nvml_no_driver"), (18, "nvml_mismatch"), (15, "nvml_failed")]
)
def test_a_library_that_fails_is_a_reason_not_an_error(nvml, code, expected):
    """GPU-1 rows 2 and 3."""
    nvml.fails = code
    cards, reason = devices.gpus()
    assert (cards, reason.code) == ([], expected)


@pytest.mark.parametrize("failure", [{"lost": 15}, {"memory_fails": 15}, {"memory_fails": 999}])
@pytest.mark.parametrize("place", [0, 1])
def test_one_card_that_fails_is_unknown_beside_the_others(nvml, failure, place):
    """GPU-1: code 15 is a card that fell off the bus."""
    nvml.cards.insert(place, Card("RTX 5090", "GPU-lost", **failure))
    cards, reason = devices.gpus()
    assert reason is None
    failing = cards.pop(place)
    assert (failing.total, failing.used, failing.free, failing.processes) == (None, None, None, ())
    assert failing.name == ("Graphics card" if "lost" in failure else "RTX 5090")
    assert [card.name for card in cards] == ["RTX 3060", "RTX 4090"]
    assert all(card.free for card in cards)


def test_cards_that_all_fail_are_a_reason(nvml):
    nvml.cards = [Card(lost=15), Card(memory_fails=15)]
    cards, reason = devices.gpus()
    assert (cards, reason.code) == ([], "nvml_failed")


@pytest.mark.parametrize("code", [1, 2, 3, 4, 13, 25, 999])
def test_memory_is_asked_for_in_the_older_form_where_the_newer_fails(nvml, code):
    nvml.cards = [Card(newer_fails=code)]
    (card,), reason = devices.gpus()
    assert reason is None
    assert card.total == 12 * GIB


def test_a_card_without_a_name_is_still_a_card(nvml):
    nvml.cards = [Card("")]
    assert devices.gpus()[0][0].name == "Graphics card"


def test_a_missing_library_is_a_reason_not_an_error(monkeypatch):
    """GPU-1 row 1."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert devices.gpus()[1].code == "nvml_missing"


def as_torch_sees(monkeypatch, *cards, free=(GIB, 2 * GIB)):
    facts = [SimpleNamespace(name=c.name, uuid=c.uuid.removeprefix("GPU-")) for c in cards]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(facts))
    monkeypatch.setattr(torch.cuda, "get_device_properties", facts.__getitem__)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: free)


def test_torchs_order_decides_which_card_is_the_first(nvml, monkeypatch):
    as_torch_sees(monkeypatch, LARGE, SMALL)
    assert [room.name for room in devices.rooms("cuda")] == ["RTX 4090", "RTX 3060"]


def test_a_card_that_shares_the_systems_memory_is_asked_through_torch(nvml, monkeypatch):
    """GPU-1 row 4: as GB10 and Jetson."""
    shared = Card("GB10", "GPU-shared", memory_fails=3)
    nvml.cards = [shared]
    assert devices.gpus()[0][0].total is None
    as_torch_sees(monkeypatch, shared, free=(100 * GIB, 119 * GIB))
    (room,) = devices.rooms("cuda")
    assert (room.free, room.total) == (100 * GIB, 119 * GIB)


def test_a_card_of_another_maker_is_asked_through_torch(nvml, monkeypatch):
    """GPU-1 row 6: ROCm."""
    nvml.fails = 12
    as_torch_sees(monkeypatch, Card("Radeon", ""), free=(10 * GIB, 16 * GIB))
    (room,) = devices.rooms("cuda")
    assert (room.name, room.free) == ("Radeon", 10 * GIB)


@pytest.fixture
def terminal(monkeypatch):
    """A process that has not loaded torch."""
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(devices, "built_for", lambda: "cuda")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("0,1", ["RTX 3060", "RTX 4090"]),
        ("1", ["RTX 4090"]),
        ("1, 0", ["RTX 4090", "RTX 3060"]),
        ("GPU-large", ["RTX 4090"]),
        ("GPU-l,GPU-s", ["RTX 4090", "RTX 3060"]),
        ("1,GPU-small", ["RTX 4090", "RTX 3060"]),
        ("0,7,1", ["RTX 3060"]),
        ("1,-1,0", ["RTX 4090"]),
        ("0,none", ["RTX 3060"]),
        ("GPU-", []),
        ("0,GPU-small", []),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("9" * 5000, []),
        ("٣", []),
    ],
)
def test_the_environment_chooses_cards_and_their_order(
    nvml, terminal, monkeypatch, stated, expected
):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", stated)
    unknown = [Room("cuda", "Graphics card", None, None)]
    rooms = devices.rooms("cuda")
    assert [room.name for room in rooms] == expected if expected else rooms == unknown
    assert devices.likely() == ("cuda" if expected else "cpu")


def test_a_part_of_a_card_is_unknown(nvml, terminal, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-4a5b")
    assert devices.rooms("cuda") == [Room("cuda", "Graphics card", None, None)]
    assert devices.likely() == "cuda"


def test_an_amd_card_is_unknown_without_torch_whatever_nvidia_says(nvml, terminal, monkeypatch):
    monkeypatch.setattr(devices, "built_for", lambda: "hip")
    (room,) = devices.rooms("cuda")
    assert room == Room("cuda", "AMD graphics card", None, None)
    assert "torch" not in sys.modules


def test_an_intel_card_is_unknown_without_torch_and_told_by_it(nvml, terminal, monkeypatch):
    assert devices.rooms("xpu") == [Room("xpu", "Intel graphics card", None, None)]
    assert "torch" not in sys.modules
    told = SimpleNamespace(mem_get_info=lambda: (GIB, 16 * GIB), get_device_name=lambda: "Arc")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(xpu=told))
    assert devices.rooms("xpu") == [Room("xpu", "Arc", 16 * GIB, GIB)]


def test_without_torch_the_cards_are_as_nvml_lists_them(nvml, terminal):
    rooms = devices.rooms("cuda")
    assert [room.name for room in rooms] == ["RTX 3060", "RTX 4090"]
    # 16 lanes of the fourth generation
    assert rooms[0].link == pytest.approx(31.5e9, rel=0.01)


def test_a_device_that_nobody_can_ask_is_unknown(nvml, monkeypatch):
    nvml.cards = []
    as_torch_sees(monkeypatch)
    assert devices.rooms("cuda") == [Room("cuda", "Graphics card", None, None)]


@pytest.mark.parametrize(
    ("built", "cards", "expected"),
    [
        ("cuda", 2, "cuda"),
        ("cuda", 0, "cpu"),
        ("", 2, "cpu"),
        ("hip", 0, "cuda"),
        ("xpu", 2, "xpu"),
    ],
)
def test_a_card_counts_only_for_a_torch_that_was_built_for_it(
    nvml, monkeypatch, built, cards, expected
):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(devices, "built_for", lambda: built)
    nvml.cards = nvml.cards[:cards]
    assert devices.likely() == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None", "cuda"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '7.0'", "hip"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\nxpu: Optional[str] = None", ""),
        ("cuda: Optional[str] = None\nxpu: Optional[str] = '2025.3'", "xpu"),
    ],
)
def test_torchs_own_files_say_what_it_was_built_for(tmp_path, monkeypatch, line, expected):
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\n")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(devices, "find_spec", lambda name: spec)
    assert devices.built_for() == expected
