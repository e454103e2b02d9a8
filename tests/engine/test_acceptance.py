"""How likely a draft is right: learnt from what was judged, inherited where little was."""

import json
import math
import random

import pytest

from engine.acceptance import Acceptance, Calibration


def test_two_of_three_are_believed_before_anything_was_seen():
    assert Acceptance().chance(0, 0) == pytest.approx(2 / 3)
    assert Acceptance().chance(5, 3) == pytest.approx(2 / 3)


def test_long_matches_and_short_ones_are_told_apart():
    found = Acceptance()
    for _ in range(100):
        found.observe(2, 0, 1)
        found.observe(20, 4, 4)
    assert found.chance(2, 0) < 0.1
    assert found.chance(20, 3) > 0.9


def test_positions_are_told_apart_and_only_judged_ones_teach():
    found = Acceptance()
    for _ in range(100):
        found.observe(0, 1, 2)
    assert found.chance(0, 0) > 0.9
    assert found.chance(0, 1) < 0.1
    assert 0.3 < found.chance(0, 2) < 0.7


def test_what_was_seen_of_late_outweighs_what_was_seen_long_ago():
    found = Acceptance()
    for right in [1] * 500 + [0] * 40:
        found.observe(0, right, 1)
    assert found.chance(0, 0) < 0.3
    assert found.rate > 0.7


def test_a_new_start_believes_half_of_what_was_seen():
    found = Acceptance()
    for _ in range(3000):
        found.observe(0, 0, 1)
    found.restart()
    assert found.chance(0, 0) == pytest.approx(1 / 3, abs=0.01)


def surely(sure: float) -> float:
    """What the drafts of the tests are really worth."""
    return 1 / (1 + math.exp(-(0.8 * sure - 1.0)))


def taught(rounds: int) -> Calibration:
    known, chance = Calibration(), random.Random(3)
    for _ in range(rounds):
        sure = [chance.gauss(1.5, 2.0) for _ in range(4)]
        right = [chance.random() < surely(f) for f in sure]
        accepted = next((i for i, yes in enumerate(right) if not yes), 4)
        known.observe(sure[: min(accepted + 1, 4)], accepted)
    return known


@pytest.mark.parametrize("sure", [-1.0, 1.0, 3.0])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_calibration_finds_the_chances(place, sure):
    assert taught(4000).chance(place, sure) == pytest.approx(surely(sure), abs=0.08)


def test_a_calibration_that_has_seen_little_stays_near_where_it_began():
    known = taught(99)
    assert (known.w, known.b) == (Calibration().w, Calibration().b)


def test_a_calibration_never_trusts_the_unsure_more():
    known = Calibration()
    for i in range(1000):
        known.observe([3.0 if i % 2 else -3.0], 0 if i % 2 else 1)
    assert known.w >= 0


@pytest.mark.parametrize("sure", [-1e9, 1e9, 40.0])
def test_a_chance_is_a_chance_whatever_it_is_asked(sure):
    assert 0 <= Calibration().chance(99, sure) <= 1


def test_both_go_through_json_and_back():
    found, known = Acceptance(), taught(300)
    for i in range(50):
        found.observe(i % 7, i % 3, 3)
    again, back = Acceptance(), Calibration()
    again.restore(json.loads(json.dumps(found.state())))
    back.restore(json.loads(json.dumps(known.state())))
    assert again.state() == found.state()
    assert back.state() == known.state()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"ever": [1, 2], "whole": [3, 2], "cells": []},
        {"ever": [1, 2], "whole": [0, 0], "cells": []},
        {"ever": [1, 2], "whole": [1, 2], "cells": [[1]]},
        {"ever": [1, 2], "whole": [1, "x"], "cells": []},
        {"ever": [1, 2], "whole": [1, math.inf], "cells": []},
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state):
    found = Acceptance()
    before = found.state()
    with pytest.raises((ValueError, TypeError, KeyError)):
        found.restore(state)
    assert found.state() == before
