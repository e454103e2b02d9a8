"""Chunks of prompts and rows of answers: how a text's positions are split."""

import pytest

from engine.roles import PREFILL_CHUNK, roles, unchanged


def test_a_prompt_is_split_at_absolute_borders():
    plan = roles(0, PREFILL_CHUNK + 5)
    assert (
        plan
        == [range(PREFILL_CHUNK)] * PREFILL_CHUNK + [range(PREFILL_CHUNK, PREFILL_CHUNK + 5)] * 5
    )
    assert roles(PREFILL_CHUNK - 3, PREFILL_CHUNK + 5) == [
        *[range(PREFILL_CHUNK - 3, PREFILL_CHUNK)] * 3,
        *[range(PREFILL_CHUNK, PREFILL_CHUNK + 5)] * 5,
    ]


def test_a_position_belongs_to_an_answer_if_the_token_after_it_does():
    assert roles(0, 10, [range(4, 7)]) == [range(3)] * 3 + [None] * 3 + [range(6, 10)] * 4


@pytest.mark.parametrize("stop", range(12))
@pytest.mark.parametrize("start", range(12))
def test_roles_do_not_depend_on_where_feeding_begins(start, stop):
    answers = [range(0, 2), range(4, 7), range(7, 7), range(9, 20)]
    whole = roles(0, 12, answers)
    part = roles(start, stop, answers)
    assert len(part) == max(0, stop - start)
    assert [r is None for r in part] == [r is None for r in whole[start:stop]]


def test_all_is_kept_of_a_text_that_goes_on():
    held = roles(0, 300, [range(200, 250)])
    assert unchanged(held, roles(0, 400, [range(200, 250)])) == 256
    assert unchanged(held, roles(0, 300, [range(200, 250)])) == 300


def test_answer_rows_are_kept_one_by_one():
    assert unchanged([range(5)] * 5 + [None] * 9, roles(0, 40, [range(6, 40)])) == 14


def test_a_chunk_is_kept_as_a_whole_or_not_at_all():
    assert unchanged(roles(0, 200), roles(0, 190)) == PREFILL_CHUNK
    assert unchanged(roles(0, 200)[:150], roles(0, 200)) == PREFILL_CHUNK


def test_a_row_that_has_another_role_now_is_not_kept():
    answered = [*[range(10)] * 10, *[None] * 6]
    assert unchanged(answered, roles(0, 30)) == 0
    assert unchanged(answered, roles(0, 30, [range(11, 16)])) == 15
