"""What rounds cost: between and beyond the rows timed, through stalls and growing chats."""

import json

import pytest

from engine.costs import Costs


def timed(times: dict[int, float], count: int = 9) -> Costs:
    costs = Costs()
    for _ in range(count):
        for rows, seconds in times.items():
            costs.verified(rows, seconds)
    return costs


def test_rows_between_those_timed_lie_between_them():
    assert timed({1: 0.1, 5: 0.18}).verify(3) == pytest.approx(0.14)


def test_rows_beyond_those_timed_go_on_along_the_slope():
    """A mixture of experts reads more weights with each row."""
    assert timed({1: 0.1, 3: 0.2}).verify(5) == pytest.approx(0.3)


def test_a_row_more_costs_a_little_where_only_plain_steps_were_timed():
    costs = timed({1: 0.1})
    assert 0.1 < costs.verify(2) < costs.verify(8) < 0.15


def test_a_stall_moves_little():
    costs = timed({1: 0.1, 4: 0.12})
    costs.verified(4, 5.0)
    assert costs.verify(4) < 0.132
    assert costs.verify(4) / costs.verify(1) < 1.25


def test_the_first_of_a_kind_is_slow_and_does_not_count():
    costs = timed({1: 0.1})
    assert not costs.knows("model")
    costs.drafted("model", 3.0)
    assert not costs.knows("model")
    costs.drafted("model", 0.03)
    assert costs.knows("model")
    assert costs.draft("model") == 0.03


def test_what_slows_one_slows_all():
    costs = timed({1: 0.1, 4: 0.12})
    for _ in range(40):
        costs.verified(4, 0.24)
    assert costs.verify(4) == pytest.approx(0.24, rel=0.02)
    assert 0.16 < costs.verify(1) < 0.24


def test_what_was_timed_long_ago_on_a_busy_machine_is_soon_put_right():
    costs = timed({1: 0.1})
    for _ in range(2):
        costs.drafted("model", 3.0)
    for _ in range(5):
        for _ in range(50):
            costs.verified(1, 0.1)
        costs.drafted("model", 0.03)
    assert costs.draft("model") < 0.06
    assert costs.verify(1) == pytest.approx(0.1, rel=0.1)


def test_fewer_rows_are_not_dearer_than_more():
    costs = timed({1: 0.3})
    for _ in range(3):
        costs.verified(4, 0.1)
    assert costs.verify(1) <= 0.111


def test_a_longer_chat_has_times_of_its_own_and_begins_with_the_nearest():
    costs = timed({1: 0.1})
    costs.at(5000)
    assert costs.verify(1) == pytest.approx(0.1)
    for _ in range(40):
        costs.verified(1, 0.3)
    assert costs.verify(1) == pytest.approx(0.3, rel=0.02)
    costs.at(10)
    assert costs.verify(1) == pytest.approx(0.1)


def test_they_go_through_json_and_back():
    costs = timed({1: 0.1, 4: 0.12})
    costs.drafted("model", 0.03)
    costs.drafted("model", 0.03)
    costs.at(3000)
    again = Costs()
    for name in ("verify", "model"):
        again.restore(json.loads(json.dumps(costs.state(name))), name)
        assert again.state(name) == costs.state(name)
    assert again.draft("model") == costs.draft("model")
    assert again.verify(4) == costs.verify(4)


@pytest.mark.parametrize(
    "state",
    [[[0, 1, -1]], [[0, 1]], [[0, "x", 1.0]], [[99, 1, 1.0]], [[0, 1, 1.0], [0, 0, 1.0]], 5],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state):
    costs = Costs()
    with pytest.raises((ValueError, TypeError)):
        costs.restore(state)
    assert costs.state() == []
