"""Suffix decoding: counts decide, the trees grow and shrink with the text, chats stay apart."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.suffix import DEPTH, PLACES, SuffixDrafter, Tree
from engine.past import Past
from tests.tiny import policy

CHOOSE = policy()
texts = st.lists(st.integers(0, 2), max_size=30)


def drafter(*answers):
    """One that knows these answers of other chats."""
    past = Past().of("v")
    for n, answer in enumerate(answers):
        past.add(f"chat {n}", answer, 0)
    return SuffixDrafter(past)


def propose(tokens, limit=8, used=None):
    return (used or drafter()).propose(tokens, limit, CHOOSE).tokens


def grown(tokens):
    tree = Tree()
    for token in tokens:
        tree.append(token)
    return tree


def counted(texts, ending, limit):
    """What suffix decoding means, by counting: the highest sum of probabilities."""

    def places(gram):
        for number, text in enumerate(texts):
            for at in range(len(text) - len(gram) + 1):
                if tuple(text[at : at + len(gram)]) == gram:
                    yield number, at

    known = {token for text in texts for token in text}
    best = 0.0, 0, ()
    for n in range(1, min(DEPTH - 1, len(ending)) + 1):
        match = tuple(ending[-n:])
        whole, right, drafted = len(list(places(match))), 0, ()
        for _ in range(min(limit, n, DEPTH - n) if whole else 0):
            found = {t: list(places((*match, *drafted, t))) for t in known}
            token = max(found, key=lambda t: (len(found[t]), max(found[t], default=(0, 0))))
            if 10 * len(found[token]) < whole:
                break
            right += len(found[token])
            drafted += (token,)
        if whole and (right / whole, n) > best[:2]:
            best = right / whole, n, drafted
    return best[0], best[2]


@given(tokens=texts, twice=st.booleans(), limit=st.integers(1, 9))
def test_the_draft_is_the_one_with_the_highest_sum_of_probabilities(tokens, twice, limit):
    tokens = tokens * (1 + twice)
    assert grown(tokens).guess(tokens[-DEPTH:], limit)[:2] == counted([tokens], tokens, limit)


@given(answers=st.lists(texts, max_size=4), tokens=texts, limit=st.integers(1, 9))
def test_so_is_that_of_several_texts_however_they_came(answers, tokens, limit):
    """No draft goes from one text into the next."""
    one, whole = Tree(), Tree(answers)
    for answer in answers:
        one.add(answer)
    assert one._places == whole._places
    assert one.guess(tokens[-DEPTH:], limit)[:2] == counted(answers, tokens, limit)


def test_the_more_frequent_continuation_wins_over_the_more_recent():
    assert propose([1, 2, 1, 2, 1, 3, 1])[0] == 2


def test_of_equal_continuations_the_most_recent_wins():
    assert propose([1, 2, 1, 3, 1])[0] == 3


def test_a_longer_match_drafts_more():
    text = [*range(40), 50]
    for n in range(1, 12):
        assert propose([*text, *range(5, 5 + n)]) == tuple(range(5 + n, 5 + n + min(n, 8)))


def test_match_and_draft_are_no_longer_than_the_depth():
    text = list(range(60))
    assert len(propose([*text, *range(20)], 16)) == 12
    assert len(drafter(text)._shared.table.guess(range(DEPTH), 16)[1]) == 12


def test_what_followed_in_less_than_one_of_ten_is_not_drafted():
    text = [token for other in range(10) for token in (7, 100 + other)]
    assert propose([*text, 7]) == ()
    assert propose([*text[2:], 7]) == (109,)


def test_a_better_guess_of_past_answers_is_taken_an_equal_one_is_not():
    assert propose([1, 2], used=drafter([1, 2, 3, 4])) == (3, 4)
    # two places of this chat, of which one is its end: 1/2; the other chat is certain
    assert propose([1, 2, 5, 1, 2], used=drafter([1, 2, 3, 4])) == (3, 4)
    here = [1, 2, 5, 6, 1, 2]
    assert propose(here, used=drafter([1, 2, 3, 4], [1, 2, 8, 9])) == propose(here) == (5, 6)


@pytest.mark.parametrize("tokens", [[], [1], [1, 2], [1, 2, 3]])
def test_nothing_repeats_so_nothing_is_drafted(tokens):
    """RBK-2 b."""
    assert propose(tokens) == ()


def test_no_more_than_the_limit_is_drafted():
    for limit in range(4):
        assert len(propose([1, 2, 3, 4] * 4, limit)) == limit


def test_nothing_is_drafted_behind_an_end():
    choose = replace(CHOOSE, ends=frozenset({4}))
    assert drafter().propose([1, 2, 3, 4, 5, 1, 2, 3], 8, choose).tokens == (4,)


@given(tokens=texts, keep=st.integers(0, 30), more=texts)
def test_after_a_rewind_it_is_as_if_built_anew(tokens, keep, more):
    used = grown(tokens)
    for _ in range(2):
        used.cut(keep)
    new = grown(tokens[:keep])
    assert (used._text, used._places) == (new._text, new._places)
    for token in more:
        used.append(token)
    assert used._places == grown([*tokens[:keep], *more])._places


def test_one_chat_leaves_nothing_in_the_next():
    """Also where they begin alike."""
    used, head = drafter(), [9, 8, 7]
    used.prefill([*head, 1, 2, 3, 4, 1, 2, 3, 4])
    used.settle(len(head))
    assert propose([*head, 1, 2], used=used) == ()
    used.reset()
    assert len(used._chat) == 0


def test_an_answer_is_known_from_the_next_round_on_and_its_question_is_not():
    past = Past().of("v")
    used = SuffixDrafter(past)
    past.add("a", [50, 51, 52, 1, 2, 3], 3)
    assert propose([7, 1, 2], used=used) == (3,)
    assert propose([7, 50, 51], used=used) == ()
    past.add("b", [2, 4, 2, 4], 0)
    assert propose([7, 2], used=used) == (4,)


def test_a_chat_that_is_forgotten_is_drafted_from_no_more():
    past = Past()
    used = SuffixDrafter(past.of("v"))
    for chat, answer in (("a", [1, 2, 3]), ("b", [1, 2, 4]), ("c", [5, 6, 7])):
        past.of("v").add(chat, answer, 0)
    assert propose([1, 2], used=used) == (4,)
    past.forget("b")
    assert propose([1, 2], used=used) == (3,)
    assert propose([5, 6], used=used) == (7,)
    assert 4 not in used._shared.table._text
    past.clear()
    assert propose([1, 2], used=used) == propose([5, 6], used=used) == ()


def test_many_places_are_judged_by_some_of_them():
    """Three of four are followed by 1."""
    text = [token for i in range(4 * PLACES) for token in (0, 2 if i % 4 == 0 else 1)]
    score, drafted, _ = grown([*text, 0]).guess([0], 1)
    assert drafted == (1,)
    assert score == pytest.approx(0.75, abs=0.05)


def fastest(work, times=30):
    """Of many, so that a busy machine does not decide."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


@pytest.mark.parametrize("text", [[7], [1, 2, 3], [i * i % 997 for i in range(4000)]])
def test_a_round_in_a_long_chat_takes_less_than_a_millisecond(text):
    """At worst, all places are behind the same tokens."""
    tokens = (text * 8000)[:8000]
    used = drafter((text * 8000)[:20_000])
    used.prefill(tokens)
    assert fastest(lambda: propose(tokens, used=used)) < 1e-3
    assert fastest(lambda: (used.settle(7990), used.prefill(tokens))) < 10 * 1e-3


def test_a_long_chat_is_taken_in_within_moderate_time():
    began = time.monotonic()
    drafter().prefill([i * 7919 % 5000 for i in range(30_000)])
    assert time.monotonic() - began < 2
