"""Does a pair fit: verdicts, their order, and what would help."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api import ModelInfo
from engine.fit import GIB, LEAST_MARGIN, Pair, Room, judge, margin
from engine.ways import longest_context, ways_out


def model(billions, name="m", **changes):
    """About an 8B's shape, scaled: every layer keeps 2 x 8 x 128 numbers of a token."""
    count = int(billions * 1e9)
    info = ModelInfo(
        name,
        Path(name),
        "safetensors",
        "llama",
        parameters=count,
        layers=32,
        hidden_size=4096,
        intermediate_size=14_336,
        context=131_072,
        vocab_size=128_256,
        linear=count,
        linear_rows=0,
        embedding=0,
        head=0,
        other=0,
        cache_widths=(2048,) * 32,
        cache_windows=(0,) * 32,
        cache_fixed=(0, 0),
    )
    return replace(info, **changes)


def card(gib, free=None):
    return Room("cuda", "card", int(gib * GIB), int((gib if free is None else free) * GIB))


PAIR = Pair(model(8), "bf16", 8192, model(1, "d"), "bf16")


@pytest.mark.parametrize(
    ("gib", "expected"), [(8, "no"), (12, "no"), (16, "no"), (20, "tight"), (24, "fits")]
)
def test_a_verdict_follows_the_card(gib, expected):
    found = judge(PAIR, card(gib))
    assert found.word == expected
    # 9e9 numbers of 2 bytes, two caches of 8192 x 65536 x 2 bytes
    assert found.parts.target_weights + found.parts.draft_weights == 18_000_000_000
    assert found.parts.target_kv == found.parts.draft_kv == 8192 * 65_536 * 2


def test_a_reason_carries_the_number():
    need = judge(PAIR, card(64)).need
    assert judge(PAIR, Room("cuda", "c", 64 * GIB, need + 5 * GIB)).reason.text == (
        "Fits, 5.0 GiB to spare"
    )
    assert judge(PAIR, Room("cuda", "c", 8 * GIB, need + GIB // 4)).reason.text == (
        "Tight, 0.2 GiB to spare"
    )
    assert judge(PAIR, Room("cuda", "c", 8 * GIB, need - GIB)).reason.text == (
        "Does not fit, 1.0 GiB short"
    )


def test_what_is_used_by_others_counts_and_is_told():
    found = judge(PAIR, card(24, free=4))
    assert (found.word, found.others) == ("no", 20 * GIB)


@pytest.mark.parametrize("missing", ["linear", "cache_widths", "hidden_size", "vocab_size"])
def test_what_the_file_does_not_say_is_unknown_and_never_blocks(missing):
    found = judge(replace(PAIR, target=replace(PAIR.target, **{missing: None})), card(24))
    assert found.word == "unknown"
    assert found.need is None
    assert "Unknown" in found.reason.text


def test_a_device_that_does_not_tell_is_unknown():
    found = judge(PAIR, Room("cuda", "card", None, None))
    assert (found.word, found.others) == ("unknown", None)


@given(
    context=st.integers(128, 60_000),
    more=st.integers(0, 60_000),
    free=st.integers(0, 80 * GIB),
)
def test_a_longer_context_never_fits_better(context, more, free):
    order = ["fits", "tight", "no"]
    room = Room("cuda", "card", 80 * GIB, free)
    short = judge(replace(PAIR, context=context), room)
    longer = judge(replace(PAIR, context=context + more), room)
    assert order.index(short.word) <= order.index(longer.word)
    assert short.need <= longer.need


@given(total=st.integers(GIB, 200 * GIB))
def test_the_margin_is_a_share_and_no_less_than_half_a_gib(total):
    assert margin(total) >= LEAST_MARGIN
    assert margin(total) >= int(0.05 * total)


def test_the_longest_context_is_the_last_that_is_no_worse_than_tight():
    room = card(20)
    longest = longest_context(PAIR, [room], 131_072)
    assert 0 < longest < 131_072
    assert judge(replace(PAIR, context=longest), room).word != "no"
    assert judge(replace(PAIR, context=longest + 128), room).word == "no"
    assert longest_context(PAIR, [card(8)], 131_072) == 0
    assert longest_context(PAIR, [card(200)], 4096) == 4096


def test_no_more_is_held_or_offered_than_a_models_own_context():
    short = replace(PAIR, target=replace(PAIR.target, context=4096), context=10**7)
    room = card(200)
    held = judge(short, room).parts
    assert held.target_kv == judge(replace(short, context=4096), room).parts.target_kv
    assert held.draft_kv == judge(replace(short, context=131_072), room).parts.draft_kv
    assert longest_context(short, [room], 10**7) == 4096
    alone = replace(short, draft=None)
    offered = [w.pair.context for w in ways_out(alone, [card(8)]) if w.code == "context"]
    assert offered
    assert max(offered) <= 4096


def test_ways_out_come_in_a_fixed_order_each_with_its_verdict():
    room = card(16)
    found = ways_out(PAIR, [room])
    assert [way.code for way in found] == ["draft_precision", "ngram", "precision", "context"]
    for way in found:
        assert way.fit == judge(way.pair, room)
    assert found[1].pair.draft is None
    assert found[2].pair.precision == "int8"
    assert found[2].fit.word == "fits"
    assert found[3].pair.context < PAIR.context


def test_a_shorter_context_is_said_as_the_slider_says_it():
    way = ways_out(replace(PAIR, context=65_536), [card(24)])[-1]
    assert way.code == "context"
    assert way.pair.context >= 1024
    assert way.text.text == f"Context of {way.pair.context:,} tokens"


def test_without_a_draft_there_is_nothing_to_change_about_it():
    found = ways_out(replace(PAIR, draft=None), [card(8)])
    assert [way.code for way in found] == ["precision", "context"]


def test_the_lowest_precision_has_no_lower_one():
    found = ways_out(replace(PAIR, precision="int4", draft=None, context=512), [card(2)])
    assert found == []


def test_only_cuda_takes_memory_for_itself():
    assert judge(PAIR, card(24)).parts.overhead > 0
    assert judge(PAIR, Room("cpu", "m", 64 * GIB, 64 * GIB)).parts.overhead == 0


def test_on_a_cpu_keys_and_values_are_wider():
    found = judge(PAIR, Room("cpu", "m", 64 * GIB, 64 * GIB))
    assert found.kv_type == "fp32"
    assert found.parts.target_kv == 2 * judge(PAIR, card(24)).parts.target_kv
