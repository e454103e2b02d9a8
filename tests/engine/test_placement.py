"""Layers over several cards, and in main memory."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fit import GIB, Pair, Room, judge, layer_weights, parts_of
from engine.placement import Placement, judge_over, place, shares, spread, tightest
from engine.ways import ways_out
from tests.engine.test_fit import PAIR, card, model

RAM = Room("cpu", "Main memory", 64 * GIB, 48 * GIB)
LARGE = Pair(model(14), "bf16", 4096)


def test_what_one_card_holds_stays_on_it():
    assert spread(LARGE, [card(48), card(48)]) == Placement((32, 0))


def test_what_needs_two_cards_fills_the_first_and_fits_on_both():
    rooms = [card(24), card(24)]
    assert judge(LARGE, rooms[0]).word == "no"
    found = spread(LARGE, rooms)
    assert sum(found.on_cards) == 32
    assert found.on_cards[0] >= found.on_cards[1] > 0
    assert tightest(shares(LARGE, found, rooms)).word == "fits"


def test_over_several_cards_the_sums_are_said_with_the_verdict_of_the_tightest():
    rooms = [card(16), card(24)]
    alone, both = judge(LARGE, rooms[0]), judge_over(LARGE, rooms)
    assert (alone.word, both.word) == ("no", "fits")
    assert both.room.free == sum(room.free for room in rooms)
    again = alone.parts.work + alone.parts.overhead  # on the second card
    assert both.need == pytest.approx(alone.need + again, rel=1e-6)
    assert both.reason == tightest(shares(LARGE, spread(LARGE, rooms), rooms)).reason
    assert judge_over(LARGE, [card(48), card(8)]) == judge(LARGE, card(48))
    assert judge_over(LARGE, [card(4), card(4)]).word == "no"


def test_what_is_on_the_cards_is_all_there_is():
    rooms = [card(16), card(24)]
    found = spread(LARGE, rooms)
    parts = [fit.parts for fit in shares(LARGE, found, rooms)]
    whole = parts_of(LARGE, "cuda")
    assert sum(p.target_weights for p in parts) == pytest.approx(whole.target_weights, rel=1e-6)
    assert sum(p.target_kv for p in parts) == pytest.approx(whole.target_kv, rel=1e-6)


@given(first=st.integers(0, 40), second=st.integers(0, 40), context=st.integers(128, 60_000))
def test_whatever_is_placed_fits(first, second, context):
    pair, rooms = replace(LARGE, context=context), [card(first), card(second)]
    found = spread(pair, rooms)
    if found is not None:
        assert sum(found.on_cards) == 32
        assert tightest(shares(pair, found, rooms)).word == "fits"


@pytest.mark.parametrize(
    "pair", [replace(LARGE, precision="int8"), replace(LARGE, target=model(14, layers=None))]
)
def test_what_must_stay_together_is_not_spread(pair):
    assert spread(pair, [card(24), card(24)]) is None
    assert "layers" not in [way.code for way in ways_out(pair, [card(8)], RAM)]


def test_a_card_that_does_not_tell_is_not_relied_on():
    assert spread(LARGE, [card(24), Room("cuda", "c", None, None)]) is None


def test_the_last_way_out_leaves_as_few_layers_as_possible_in_main_memory():
    room = replace(card(16), link=16e9)
    way = ways_out(LARGE, [room], RAM)[-1]
    outside = way.pair.layers_in_ram
    assert (way.code, way.fit.word) == ("layers", "fits")
    assert judge(replace(way.pair, layers_in_ram=outside - 1), room).word != "fits"
    # half of 16 GB/s, through what lies outside
    rate = 8e9 / (outside * layer_weights(LARGE))
    assert way.text.text == (
        f"{outside} layers in main memory: at most about {round(rate, 1)} passes a second"
    )


def test_main_memory_that_is_too_small_is_said():
    way = ways_out(LARGE, [card(8)], Room("cpu", "Main memory", 16 * GIB, 10 * GIB))[-1]
    assert way.fit.word == "no"
    assert "short in main memory" in way.fit.reason.text


def test_layers_in_main_memory_leave_their_keys_and_values_on_the_card():
    apart = replace(LARGE, layers_in_ram=10)
    whole, parts = parts_of(LARGE, "cuda"), parts_of(apart, "cuda")
    assert parts.target_kv == whole.target_kv
    assert parts.target_weights == whole.target_weights - 10 * layer_weights(LARGE)
    # and room for the one that is copied
    assert parts.work == whole.work + layer_weights(LARGE)


def test_without_another_memory_there_are_four_ways():
    assert [way.code for way in ways_out(PAIR, [card(16)])] == [
        "draft_precision",
        "ngram",
        "precision",
        "context",
    ]


def test_a_device_map_names_every_module():
    found = Placement((2, 1), in_ram=1).device_map(
        ["model.embed_tokens", "lm_head"], "model.layers"
    )
    assert found == {
        "model.embed_tokens": 0,
        "lm_head": 0,
        "model.layers.0": 0,
        "model.layers.1": 0,
        "model.layers.2": 1,
        "model.layers.3": "cpu",
    }


def test_layers_go_where_the_user_wants_them_else_where_they_must():
    one, two = card(48), card(24)
    assert place(LARGE, [one, one]) is None
    assert place(LARGE, [two]) is None
    assert place(LARGE, [two, two]) == spread(LARGE, [two, two])
    assert place(replace(LARGE, layers_in_ram=5), [two, two]) == Placement((27,), 5)


def test_a_model_whose_layers_lie_apart_says_the_same(tmp_path):
    import torch

    from engine import stock
    from engine.checkpoint import skeleton
    from engine.model import LanguageModel, beside_layers, layers_name
    from tests.folders import tiny_config, write_model

    folder = write_model(tmp_path / "m", config=tiny_config(num_hidden_layers=4))
    whole = stock.of_folder(folder, "cpu", torch.float32)
    names, blocks = beside_layers(skeleton(whole.config)), layers_name(whole)
    on_card = Placement((2,), in_ram=2).device_map(names, blocks)
    # a processor stands for the card, the disk for main memory
    places = {name: "disk" if place == "cpu" else "cpu" for name, place in on_card.items()}
    apart = stock.of_folder(folder, places, torch.float32)
    layers = LanguageModel(apart, 128).network.get_submodule(blocks)
    assert [next(layer.parameters()).device.type for layer in layers] == ["cpu"] * 2 + ["meta"] * 2
    tokens = [3, 14, 15, 9, 2, 6]
    found, expected = (LanguageModel(n, 128).forward(tokens, 6) for n in (apart, whole))
    assert torch.equal(found, expected)
