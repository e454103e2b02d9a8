"""How fast a pair will be: by the formula, from what was learnt of its parts."""

import json

import pytest

from engine.prediction import looked_up, said, times_plain
from tests.worlds import Lookups, Model, World

TARGET = {"costs": [[0, 1, 0.1], [0, 8, 0.1]]}
DRAFT = {"costs": [[0, 1, 0.01]]}


@pytest.mark.parametrize(("step", "best"), [(0.01, 1.67), (0.02, 1.40), (0.03, 1.23), (0.05, 1.07)])
def test_a_pair_not_tried_is_predicted_by_the_formula(step, best):
    """The table of the methods at an acceptance of 0.6 and verification that is flat in rows;
    there the draft of 0.1 of a step makes 1.67."""
    alone = {"costs": [[0, 1, step]]}
    assert times_plain(TARGET, {}, alone) == pytest.approx(best, abs=0.01)
    assert times_plain(TARGET, {}, {}, ratio=0.1 / step) == pytest.approx(best, abs=0.01)


def test_a_draft_that_does_not_pay_is_not_used_and_costs_nothing():
    assert times_plain(TARGET, {}, {"costs": [[0, 1, 0.08]]}) == 1.0


def test_what_guesses_all_at_once_spends_one_step_a_round():
    """Seven guesses for a step of half a plain one: 2.46 tokens in 1.5 plain steps."""
    half = {"costs": [[0, 1, 0.05]]}
    assert times_plain(TARGET, {}, half) == pytest.approx(1.07, abs=0.01)
    assert times_plain(TARGET, {}, half, at_once=True) == pytest.approx(1.64, abs=0.01)


def test_dear_rows_make_a_pair_slower():
    dear = {"costs": [[0, 1, 0.1], [0, 8, 0.4]]}
    assert times_plain(dear, {}, DRAFT) < times_plain(TARGET, {}, DRAFT) - 0.1


@pytest.mark.parametrize("damage", [{}, {"costs": 5}, {"costs": [[0, 1, "x"]]}])
def test_nothing_is_said_where_too_little_is_known(damage):
    assert times_plain(damage, {}, DRAFT) is None
    assert times_plain(TARGET, {}, damage) is None
    assert looked_up(damage) is None
    assert looked_up({"alone": [3, 3]}) is None


@pytest.mark.parametrize("right", [0.5, 0.7, 0.9])
def test_a_model_that_was_seen_is_predicted_within_a_tenth(right):
    """From what an "auto" learnt that held it beside a lookup, alone it comes to that."""
    world = World([Lookups(0.3, 0.3), Model(right)])
    auto = world.auto()
    for seed in range(12):
        world.seed = seed
        world.answer(auto, 200)
    learnt = json.loads(json.dumps(auto.automatic.learnt()))
    plain = World([], seed=3).answer(tokens=1024).seconds
    alone = plain / World([Model(right)], seed=3).answer(tokens=1024).seconds
    predicted = times_plain(learnt["verify"], learnt["model"], {})
    assert predicted == pytest.approx(alone, rel=0.1)


@pytest.mark.parametrize(("right", "guesses"), [(0.8, 0.4), (0.5, 0.8), (0.0, 0.5)])
def test_a_lookup_is_predicted_by_what_it_brought(right, guesses):
    world = World([Lookups(right, guesses)])
    auto = world.auto()
    for seed in range(12):
        world.seed = seed
        world.answer(auto, 200)
    plain = sum(World([], seed=s).answer(tokens=200).seconds for s in range(20, 30))
    alone = 0.0
    for seed in range(20, 30):
        world.seed = seed
        alone += world.answer(auto, 200).seconds
    predicted = looked_up(auto.automatic.learnt()["ngram"])
    assert predicted == pytest.approx(plain / alone, rel=0.15)


def test_it_says_that_it_is_a_prediction():
    assert said(1.42).text == "about 1.4 times plain, predicted"
