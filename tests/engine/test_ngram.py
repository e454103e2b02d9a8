"""Prompt lookup: the longest match wins, the index grows and shrinks with the text."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.ngram import LONGEST, SHORTEST, NGramDrafter
from tests.tiny import policy

CHOOSE = policy()


def propose(tokens, limit=4, drafter=None):
    return (drafter or NGramDrafter()).propose(tokens, limit, CHOOSE).tokens


def searched(tokens, limit):
    """What lookup means, by search: the longest end that occurred before, most recently."""
    for n in range(min(LONGEST, len(tokens) - 1), SHORTEST - 1, -1):
        for start in range(len(tokens) - n - 1, -1, -1):
            if tokens[start : start + n] == tokens[-n:]:
                rest = tokens[start + n :]
                return tuple(rest[i % len(rest)] for i in range(limit))
    return ()


def test_it_drafts_what_followed_last_time():
    assert propose([1, 2, 3, 4, 5, 9, 2, 3]) == (4, 5, 9, 2)


def test_the_longest_match_wins_over_a_more_recent_short_one():
    assert propose([1, 2, 3, 40, 2, 3, 50, 1, 2, 3])[0] == 40


def test_of_equal_matches_the_most_recent_wins():
    assert propose([2, 3, 40, 2, 3, 50, 2, 3])[0] == 50


@pytest.mark.parametrize("tokens", [[], [1], [1, 2], [1, 2, 3], [1, 1]])
def test_nothing_repeats_so_nothing_is_drafted(tokens):
    """RBK-2 b: text shorter than an n-gram too."""
    assert propose(tokens) == ()


def test_no_more_than_the_limit_is_drafted():
    for limit in range(4):
        assert len(propose([1, 2, 3, 1, 2], limit)) == limit


def test_a_short_repetition_goes_round():
    assert propose([7, 8, 7, 8, 7, 8], 5) == (7, 8, 7, 8, 7)


@given(tokens=st.lists(st.integers(0, 2), max_size=40), limit=st.integers(1, 6))
def test_the_index_finds_what_a_search_finds(tokens, limit):
    assert propose(tokens, limit) == searched(tokens, limit)


@given(
    tokens=st.lists(st.integers(0, 2), max_size=30),
    keep=st.integers(0, 30),
    more=st.lists(st.integers(0, 2), max_size=10),
)
def test_after_a_rewind_it_knows_what_a_new_one_would(tokens, keep, more):
    used = NGramDrafter()
    used.prefill(tokens)
    for _ in range(2):
        used.settle(keep)
    text = tokens[:keep] + more
    assert propose(text, 5, used) == propose(text, 5)
    used.settle(0)
    assert used._next == {}


def test_a_rewind_brings_the_older_occurrence_back():
    used = NGramDrafter()
    used.prefill([1, 2, 3, 9, 1, 2, 4])
    used.settle(4)
    assert propose([1, 2, 3, 9, 1, 2], 1, used) == (3,)


def test_reset_leaves_nothing_of_the_old_chat():
    used = NGramDrafter()
    used.prefill([1, 2, 3, 1, 2])
    used.reset()
    assert propose([1, 2], drafter=used) == ()


def test_a_round_costs_the_same_at_any_length():
    """The fastest of many rounds, so that a busy machine does not decide."""

    def cost(length):
        drafter = NGramDrafter()
        tokens = [i % 500 for i in range(length)]
        drafter.prefill(tokens)
        times = []
        for _ in range(200):
            began = time.perf_counter()
            drafter.propose(tokens, 8, CHOOSE)
            times.append(time.perf_counter() - began)
        return min(times)

    assert cost(100_000) < 3 * cost(1_500)


def test_nothing_is_drafted_behind_an_end():
    choose = replace(CHOOSE, ends=frozenset({4}))
    drafter = NGramDrafter()
    assert drafter.propose([1, 2, 3, 4, 5, 2, 3], 4, choose).tokens == (4,)


def test_a_long_chat_is_indexed_in_moderate_time():
    began = time.monotonic()
    NGramDrafter().prefill([i * 7919 % 5000 for i in range(30_000)])
    assert time.monotonic() - began < 2
