"""Layers over several cards, and in main memory."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit import GIB, Pair, Room, judge, layer_weights, margin, parts_of
from engine.placement import Placement, judge_each, judge_over, place, settle, tightest
from engine.ways import ways_out
from tests.engine.test_fit import PAIR, card, model

RAM = Room("cpu", "Main memory", 64 * GIB, 48 * GIB)
LARGE = Pair(model(14), "bf16", 4096)
BOTH = replace(LARGE, draft=model(0.5), draft_precision="bf16")


def on_cards(pair, counts, rooms):
    """What each card would hold if so many layers lay there."""
    return judge_each(replace(pair, on_cards=counts), rooms)


def splits(layers, cards):
    """All ways to put the layers onto the cards."""
    if cards == 1:
        yield (layers,)
        return
    for count in range(layers + 1):
        yield from ((count, *rest) for rest in splits(layers - count, cards - 1))


def test_what_one_card_holds_stays_on_it():
    assert place(LARGE, [card(48), card(48)]) == Placement((32,))
    assert place(LARGE, [card(48), card(48)]).whole


def test_what_needs_two_cards_leaves_as_much_free_on_both():
    rooms = [card(24), card(24)]
    assert judge(LARGE, rooms[0]).word == "no"
    found = place(LARGE, rooms)
    assert sum(found.on_cards) == 32
    fits = judge_each(LARGE, rooms)
    assert [fit.word for fit in fits] == ["fits", "fits"]
    layer = layer_weights(LARGE) + parts_of(LARGE, "cuda").target_kv // 32
    assert abs(fits[0].need - fits[1].need) <= layer


def test_a_draft_finds_room_beside_a_target_that_is_spread():
    """It is chosen after the target has been loaded."""
    rooms = [card(24), card(24)]
    lies = settle(LARGE, rooms)
    beside = replace(lies, draft=model(1.5), draft_precision="bf16", context=8192)
    assert judge_over(beside, rooms).word == "fits"


def test_no_more_cards_than_are_needed():
    assert len(place(LARGE, [card(24)] * 4).on_cards) == 2


def test_over_several_cards_the_sums_are_said_with_the_verdict_of_the_tightest():
    rooms = [card(16), card(24)]
    alone, both = judge(LARGE, rooms[0]), judge_over(LARGE, rooms)
    assert (alone.word, both.word) == ("no", "fits")
    assert both.room.free == sum(room.free for room in rooms)
    # on the second card again
    assert both.need == alone.need + alone.parts.work + alone.parts.overhead
    assert both.reason == tightest(judge_each(LARGE, rooms)).reason
    assert judge_over(LARGE, [card(48), card(8)]) == judge(LARGE, card(48))
    assert judge_over(LARGE, [card(4), card(4)]).word == "no"


@given(
    cards=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    context=st.integers(128, 60_000),
    outside=st.integers(0, 32),
    pair=st.sampled_from([LARGE, BOTH]),
)
def test_what_is_on_the_cards_is_all_there_is(cards, context, outside, pair):
    pair = replace(pair, context=context, layers_in_ram=outside)
    rooms = [card(gib) for gib in cards]
    placement = place(pair, rooms)
    assert sum(placement.on_cards) + placement.in_ram == 32
    parts = [fit.parts for fit in judge_each(pair, rooms)]
    whole = parts_of(pair, "cuda")
    assert sum(p.target_weights for p in parts) == whole.target_weights
    assert sum(p.target_kv for p in parts) == whole.target_kv
    assert [p.draft_weights for p in parts] == [whole.draft_weights, *[0] * (len(rooms) - 1)]


@settings(max_examples=60)
@given(
    cards=st.lists(st.integers(4, 40), min_size=2, max_size=2),
    context=st.integers(128, 60_000),
    outside=st.integers(0, 12),
    pair=st.sampled_from([LARGE, BOTH]),
)
def test_the_verdict_is_the_best_that_any_placement_has(cards, context, outside, pair):
    pair = replace(pair, context=context, layers_in_ram=outside)
    rooms = [card(gib) for gib in cards]
    words = {tightest(on_cards(pair, counts, rooms)).word for counts in splits(32 - outside, 2)}
    best = next(word for word in ("fits", "tight", "no") if word in words)
    assert judge_over(pair, rooms).word == best


def test_what_fits_without_its_margins_is_tight():
    rooms = [card(14.5), card(14.5)]
    found = judge_over(LARGE, rooms)
    assert place(LARGE, rooms) == Placement((16, 16))
    assert (found.word, found.reason.text) == ("tight", "Tight, 0.7 GiB to spare")
    spare = [fit.room.free - fit.need for fit in judge_each(LARGE, rooms)]
    assert all(0 < left < margin(14.5 * GIB) for left in spare)


def test_what_the_cards_cannot_hold_is_shown_where_it_would_be_loaded():
    rooms = [card(16), card(8)]
    first, second = judge_each(LARGE, rooms)
    assert (first.word, second.word) == ("tight", "no")
    assert judge_over(LARGE, rooms).reason == second.reason
    placement = place(LARGE, rooms)
    assert placement.on_cards[1] > 0
    assert on_cards(LARGE, placement.on_cards, rooms) == [first, second]


def test_where_layers_lie_already_is_where_they_are_judged():
    rooms = [card(24), card(24)]
    lies = settle(replace(BOTH, context=32_768), rooms)
    now = [card(24, free=6), card(24)]
    assert place(lies, now) == place(lies, rooms) == Placement(lies.on_cards)
    assert place(replace(lies, draft=model(3)), rooms).on_cards == lies.on_cards
    other = replace(lies, target=replace(lies.target, layers=40))
    assert sum(place(other, rooms).on_cards) == 40


@pytest.mark.parametrize(
    "pair", [replace(LARGE, precision="int8"), replace(LARGE, target=model(14, layers=None))]
)
def test_what_must_stay_together_is_not_spread(pair):
    assert place(pair, [card(24), card(24)]) == Placement()
    assert "layers" not in [way.code for way in ways_out(pair, [card(8)], RAM)]


def test_a_card_that_does_not_tell_is_not_relied_on():
    assert place(LARGE, [card(24), Room("cuda", "c", None, None)]).whole
    assert place(LARGE, [Room("cuda", "c", None, None), card(24)]).whole


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


@pytest.mark.parametrize("pair", [LARGE, replace(BOTH, context=16_384)])
@pytest.mark.parametrize("cards", [(16, 14), (12, 8), (8, 24), (4, 4)])
def test_main_memory_is_used_beside_all_cards(pair, cards):
    rooms = [card(gib) for gib in cards]
    way = ways_out(pair, rooms, RAM)[-1]
    assert way.code == "layers"
    words = [judge_over(replace(pair, layers_in_ram=n), rooms).word for n in range(1, 33)]
    expected = words.index("fits") + 1 if "fits" in words else 32
    assert way.pair.layers_in_ram == expected
    assert way.fit.word == words[expected - 1]
    placement = place(way.pair, rooms)
    assert placement.in_ram == expected
    assert sum(placement.on_cards) == 32 - expected


def test_layers_in_main_memory_are_copied_to_the_first_card():
    rooms, pair = [card(16), card(14)], replace(LARGE, layers_in_ram=8)
    first, second = judge_each(replace(pair, on_cards=(12, 12)), rooms)
    layer, whole = layer_weights(pair), parts_of(LARGE, "cuda")
    assert (first.parts.work, second.parts.work) == (whole.work + layer, whole.work)
    assert second.parts.target_weights == 12 * layer
    assert second.parts.target_kv == whole.target_kv // 32 * 12


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
    assert place(LARGE, [one]) == place(LARGE, [one, one]) == Placement((32,))
    assert place(LARGE, [two]) == Placement((32,))
    assert place(replace(LARGE, layers_in_ram=5), [one, two]) == Placement((27,), 5)
    assert not place(replace(LARGE, layers_in_ram=5), [one, two]).whole
    assert place(replace(LARGE, layers_in_ram=32), [two, two]).in_ram == 32


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
