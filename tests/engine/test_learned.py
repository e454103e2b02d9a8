"""What drafting has learnt: kept by setup, and never trusted."""

import json

import pytest

from engine.api import RoundStats
from engine.controller import Automatic, Offer
from engine.learned import MOST, Learned
from engine.measured import Setup
from tests.worlds import Lookups, Model, World

PAIR = Setup("target", "draft", "int8", "int8", "cpu")


def taught() -> Automatic:
    world = World([Lookups(0.8, 0.4), Model(0.7, told=True, spread=1.0)])
    auto = world.auto()
    world.answer(auto, 512)
    return auto.automatic


def test_it_is_there_for_another_that_reads_the_file(tmp_path):
    file = tmp_path / "folder" / "learned.json"
    Learned(file).keep({PAIR: {"x": 1}, PAIR.plain: {"y": 2}})
    again = Learned(file)
    assert again.of(PAIR) == {"x": 1}
    assert again.of(PAIR.plain) == {"y": 2}
    assert again.of(Setup("target", "draft", "int4", "int8", "cpu")) == {}
    Learned(file).keep({PAIR: {"x": 3}})
    assert again.of(PAIR) == {"x": 3}
    assert again.of(PAIR.plain) == {"y": 2}


def test_those_that_were_used_longest_ago_are_dropped(tmp_path):
    table = Learned(tmp_path / "learned.json")
    setups = [Setup(f"t{i}", "none", "int8", None, "cpu") for i in range(MOST + 1)]
    table.keep({setup: {"i": 1} for setup in setups})
    assert table.of(setups[0]) == {}
    assert table.of(setups[1]) == {"i": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "learned": [7]}'])
def test_a_damaged_file_was_never_learnt(tmp_path, text):
    file = tmp_path / "learned.json"
    file.write_text(text)
    assert Learned(file).of(PAIR) == {}


def test_without_a_file_nothing_is_kept():
    table = Learned(None)
    table.keep({PAIR: {"x": 1}})
    assert table.of(PAIR) == {"x": 1}


def test_a_controller_goes_on_where_another_ended():
    before = taught()
    after = Automatic({"ngram": 8, "model": 7})
    after.recall(json.loads(json.dumps(before.learnt())))
    assert after.learnt() == before.learnt()
    after.begin()
    offers = [Offer("ngram", 8, found=True, match=12), Offer("model", 7)]
    assert after.choose(offers, 100) is not None


@pytest.mark.parametrize("name", ["verify", "ngram", "model"])
@pytest.mark.parametrize("damage", [{}, {"costs": 5}, {"costs": [], "acceptance": [], "x": 1}])
def test_a_damaged_part_is_left_out_and_the_rest_taken(name, damage):
    states = taught().learnt()
    after = Automatic({"ngram": 8, "model": 7})
    after.recall({**states, name: damage})
    fresh, kept = Automatic({"ngram": 8, "model": 7}).learnt(), after.learnt()
    for other in states:
        assert kept[other] == (fresh if other == name else states)[other]
    after.begin()
    after.choose([Offer("model", 7)], 100)
    after.observe(RoundStats(0, 0, verify_seconds=0.1))
