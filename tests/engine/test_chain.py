"""The hashed chain: long matches of any chat, checked, undone and forgotten."""

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters import chain
from engine.drafters.chain import MATCH, ChainDrafter, Grams, Places
from engine.past import Past
from tests.tiny import policy

CHOOSE = policy()
LONG = list(range(100, 160))  # a passage in which nothing repeats
# as far as a few hundred tokens can, so that there is something to find
texts = st.lists(st.integers(0, 1), max_size=60)


def drafter(*told):
    """One that knows these texts of other chats."""
    past = Past().of("v")
    for n, text in enumerate(told):
        past.add(f"chat {n}", text, 0)
    return ChainDrafter(past)


def propose(tokens, limit=8, used=None):
    return (used or drafter()).propose(tokens, limit, CHOOSE).tokens


def searched(texts, gram):
    """What followed the last time, by search."""
    found = [
        text[at + MATCH]
        for text in texts
        for at in range(len(text) - MATCH)
        if tuple(text[at : at + MATCH]) == gram
    ]
    return found[-1] if found else None


def grown(tokens):
    grams = Grams()
    for token in tokens:
        grams.append(token)
    return grams


def test_it_goes_on_where_so_many_tokens_stand_as_before():
    assert propose([*LONG, 7, *LONG[: MATCH - 1]]) == ()
    assert propose([*LONG, 7, *LONG[:MATCH]]) == tuple(LONG[MATCH : MATCH + 8])


def test_it_goes_on_from_another_chat_too_and_no_further_than_its_end():
    assert propose([7, *LONG[20:40]], used=drafter(LONG)) == tuple(LONG[40:48])
    assert propose([7, *LONG[20:55]], used=drafter(LONG, LONG[:20])) == tuple(LONG[55:])
    assert propose([*LONG], used=drafter(LONG, LONG)) == ()


def test_the_question_is_known_as_well_as_the_answer():
    past = Past().of("v")
    past.add("a", LONG, 50)
    assert propose(LONG[:20], used=ChainDrafter(past)) == tuple(LONG[20:28])


def test_this_chat_comes_before_others_and_what_is_newer_before_what_is_older():
    head = LONG[:MATCH]
    assert propose([*head, 1, *head, 2, *head], 1) == (2,)
    assert propose(head, 1, drafter([*head, 3], [*head, 4])) == (4,)
    assert propose([*head, 1, *head], 1, drafter([*head, 3])) == (1,)


def test_the_chain_leads_from_one_text_into_another():
    other = [*LONG[9:30], *range(20)]
    assert propose(LONG[:20], 16, drafter(LONG[:25], other)) == (*LONG[20:30], *range(6))


@pytest.mark.parametrize("tokens", [[], [1], [1, 2], LONG, [5] * MATCH])
def test_nothing_repeats_so_nothing_is_drafted(tokens):
    """RBK-2 b: text shorter than a match too."""
    assert propose(tokens) == ()


def test_no_more_than_the_limit_is_drafted():
    for limit in range(4):
        assert len(propose([5] * 40, limit)) == limit


def test_nothing_is_drafted_behind_an_end():
    choose = replace(CHOOSE, ends=frozenset({LONG[18]}))
    assert drafter(LONG).propose(LONG[:MATCH], 8, choose).tokens == tuple(LONG[16:19])


@given(told=st.lists(texts, max_size=3), tokens=st.lists(st.integers(0, 1), min_size=MATCH))
def test_the_tables_find_what_a_search_finds(told, tokens):
    """However the texts came, with slots that are taken twice and more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "BITS", 16)
        whole, one = Places(told), Places()
        for text in told:
            one.add(text)
        assert one._slots == whole._slots
        gram = tuple(tokens[-MATCH:])
        assert whole.after(gram) in (searched(told, gram), None)
        if whole._slots[chain._slot(gram)] == 0:
            assert searched(told, gram) is None
    assert grown(tokens).after(gram) == searched([tokens], gram)


def test_what_the_hash_confuses_is_not_drafted(monkeypatch):
    monkeypatch.setattr(chain, "BITS", 1)
    told = [random.Random(n).choices(range(1000), k=40) for n in range(20)]
    table, found = Places(told), []
    for text in told:
        for at in range(MATCH, len(text)):
            token = table.after(tuple(text[at - MATCH : at]))
            found.append(token)
            assert token in (None, text[at])
    assert 0 < len(found) - found.count(None) <= 2


def test_in_a_full_table_most_is_found():
    """A quarter of the slots is taken: of what came first about four of five are left."""
    told = [random.Random(n).choices(range(50_000), k=4_096) for n in range(256)]
    table = Places(told)
    some = [(told[0], at) for at in range(MATCH, 4_096)]
    found = sum(table.after(tuple(text[at - MATCH : at])) == text[at] for text, at in some)
    assert found / len(some) > 0.7


@given(
    tokens=st.lists(st.integers(0, 1), max_size=60),
    keep=st.integers(0, 60),
    more=st.lists(st.integers(0, 1), max_size=30),
)
def test_after_a_rewind_it_is_as_if_built_anew(tokens, keep, more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "MATCH", 3)
        used = grown(tokens)
        for _ in range(2):
            used.cut(keep)
        assert vars(used) == vars(grown(tokens[:keep]))
        for token in more:
            used.append(token)
        assert vars(used) == vars(grown([*tokens[:keep], *more]))


def test_one_chat_leaves_nothing_in_the_next():
    used = drafter()
    used.prefill([9, 8, *LONG, *LONG])
    used.settle(2)
    assert propose([9, 8, *LONG[:30]], used=used) == ()
    used.prefill(LONG)
    used.reset()
    assert len(used._chat) == 0


def test_a_chat_that_is_forgotten_is_drafted_from_no_more():
    past = Past()
    used = ChainDrafter(past.of("v"))
    for chat, last in (("a", 1), ("b", 2)):
        past.of("v").add(chat, [*LONG[:MATCH], last], 0)
    assert propose(LONG[:MATCH], used=used) == (2,)
    past.forget("b")
    assert propose(LONG[:MATCH], used=used) == (1,)
    assert 2 not in used._shared.table._text
    past.clear()
    assert propose(LONG[:MATCH], used=used) == ()


def test_a_round_in_a_long_chat_takes_much_less_than_a_millisecond():
    tokens = [i * i % 997 for i in range(8000)]
    used, took = drafter(tokens[:4000]), []
    used.prefill(tokens)
    for _ in range(30):
        began = time.perf_counter()
        propose(tokens, used=used)
        took.append(time.perf_counter() - began)
    assert min(took) < 2e-4
