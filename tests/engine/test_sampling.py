"""Probabilities: order of the filters, penalties per row, greedy, the noise."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.api import NEUTRAL, Sampling
from engine.errors import EngineError
from engine.sampling import Noise, choose, one_hot, resolve
from tests.tiny import policy

LOGITS = torch.tensor([[2.0, 1.0, 0.5, -1.0, -3.0]])


def softmax(x):
    x = np.asarray(x, dtype=float)
    e = np.exp(x - x.max())
    return e / e.sum()


def dense(logits, **settings):
    settings = {"temperature": 1.0, "top_k": 0, **settings}
    (row,) = policy(**settings).distributions(torch.as_tensor(logits), [])
    return row.dense(torch.as_tensor(logits).shape[-1])


def test_without_filters_it_is_the_softmax_of_the_scaled_logits():
    assert dense(LOGITS, temperature=0.7) == pytest.approx(softmax(LOGITS[0] / 0.7))


def test_top_k_keeps_the_k_largest():
    expected = [*softmax([2.0, 1.0, 0.5]), 0, 0]
    assert dense(LOGITS, top_k=3) == pytest.approx(expected)


def test_top_k_keeps_all_that_equal_the_last_one():
    kept = dense(torch.tensor([[1.0, 3.0, 1.0, 0.0]]), top_k=2)
    assert (kept > 0).tolist() == [True, True, True, False]


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    p = softmax(LOGITS[0])
    for top_p in (0.1, p[0] - 1e-9, p[0] + 1e-9, 0.9, 0.999):
        kept = int((dense(LOGITS, top_p=top_p) > 0).sum())
        assert p[:kept].sum() >= top_p > p[: kept - 1].sum()


def test_min_p_keeps_what_is_near_the_best():
    p = softmax(LOGITS[0])
    kept = dense(LOGITS, min_p=0.2) > 0
    assert kept.tolist() == (p >= 0.2 * p[0]).tolist()


def test_temperature_comes_before_min_p():
    # at a high temperature the second logit is within min_p of the first, at 1 it is not
    logits = torch.tensor([[2.0, 0.0]])
    assert (dense(logits, min_p=0.3, temperature=4.0) > 0).all()
    assert (dense(logits, min_p=0.3, temperature=1.0) > 0).tolist() == [True, False]


@pytest.mark.parametrize("temperature", [0.0, 1e-6])
def test_greedy_is_one_hot_and_the_lowest_of_equals_wins(temperature):
    p = dense(torch.tensor([[1.0, 2.0, 2.0]]), temperature=temperature)
    assert p.tolist() == [0, 1, 0]


def test_a_very_small_temperature_does_not_overflow():
    p = dense(torch.tensor([[1000.0, 999.0, -1000.0]]), temperature=1e-3)
    assert p.sum() == pytest.approx(1)
    assert np.isfinite(p).all()


def test_logit_bias_bans_and_forces():
    assert dense(LOGITS, logit_bias={0: -1e9})[0] == 0
    assert dense(LOGITS, logit_bias={4: 100.0})[4] == pytest.approx(1)


def test_a_bias_for_an_id_the_model_lacks_is_ignored():
    assert dense(LOGITS, logit_bias={9999: 5.0, -1: 5.0}) == pytest.approx(softmax(LOGITS[0]))


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_an_error_not_a_token(broken):
    with pytest.raises(EngineError, match="not a number"):
        dense(torch.tensor([[1.0, broken, 0.0]]))


def test_penalties_see_the_draft_before_their_row_and_nothing_behind_it():
    logits = torch.zeros(3, 4)
    rows = policy(
        temperature=1.0, top_k=0, presence_penalty=1.0, frequency_penalty=0.5, answer_start=2
    ).distributions(logits, [3, 3, 0], [1, 1])
    # history of row 0: 0; of row 1: 0 1; of row 2: 0 1 1. The prompt's 3 counts in none.
    expected = [[-1.5, 0, 0, 0], [-1.5, -1.5, 0, 0], [-1.5, -2.0, 0, 0]]
    for row, adjusted in zip(rows, expected, strict=True):
        assert row.dense(4) == pytest.approx(softmax(adjusted))


def test_repetition_penalty_counts_the_prompt_and_pushes_both_signs_down():
    (row,) = policy(temperature=1.0, top_k=0, repetition_penalty=2.0, answer_start=2).distributions(
        torch.tensor([[1.0, -1.0, 0.5]]), [0, 1]
    )
    assert row.dense(3) == pytest.approx(softmax([0.5, -2.0, 0.5]))


def test_a_block_of_rows_is_processed_as_each_row_alone():
    torch.manual_seed(0)
    logits = torch.randn(4, 50)
    chooser = policy(
        temperature=0.8, top_k=10, top_p=0.9, min_p=0.05, frequency_penalty=0.7, answer_start=1
    )
    draft = [7, 7, 9]
    together = chooser.distributions(logits, [1, 2, 3], draft)
    for i, row in enumerate(together):
        (alone,) = chooser.distributions(logits[i : i + 1], [1, 2, 3, *draft[:i]])
        assert row.ids.tolist() == alone.ids.tolist()
        assert row.probs.tolist() == alone.probs.tolist()


def test_the_input_is_not_changed():
    logits = LOGITS.clone()
    dense(logits, presence_penalty=1.0, logit_bias={0: 3.0})
    assert torch.equal(logits, LOGITS)


def test_the_users_zero_temperature_takes_none_of_the_folders_sampling():
    folder = Sampling(temperature=0.6, top_p=0.9, top_k=20, repetition_penalty=1.1)
    assert resolve(Sampling(temperature=0.0), folder) == Sampling(temperature=0.0).over(NEUTRAL)


def test_the_folders_settings_fill_what_the_user_left_open():
    settings = resolve(Sampling(top_p=0.5), Sampling(temperature=0.6, top_p=0.9))
    assert (settings.temperature, settings.top_p, settings.top_k) == (0.6, 0.5, 64)


@given(seed=st.integers(0, 2**64 - 1), position=st.integers(0, 10**6))
def test_noise_depends_on_the_id_not_on_which_ids_are_asked_for(seed, position):
    noise = Noise(seed)
    many = noise.gumbel(position, np.arange(100))
    assert noise.gumbel(position, np.array([17, 63])).tolist() == many[[17, 63]].tolist()


@pytest.mark.parametrize("stream", [0, 2])
def test_noise_is_gumbel_over_ids_over_positions_and_over_seeds(stream):
    ids = np.arange(20_000)
    over_ids = Noise(1).gumbel(5, ids, stream)
    over_positions = np.array([Noise(1).gumbel(t, np.array([3]), stream)[0] for t in range(3000)])
    over_seeds = np.array([Noise(s).gumbel(5, np.array([3]), stream)[0] for s in range(3000)])
    for sample in (over_ids, over_positions, over_seeds):
        assert stats.kstest(sample, stats.gumbel_r.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(over_ids[:-1], over_ids[1:])[0, 1]) < 0.03


def test_streams_seeds_and_positions_are_independent():
    ids = np.arange(5000)
    base = Noise(1).gumbel(5, ids)
    for other in (Noise(1).gumbel(5, ids, 2), Noise(2).gumbel(5, ids), Noise(1).gumbel(6, ids)):
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.05


def test_uniform_numbers_are_uniform():
    sample = [Noise(3).uniform(t) for t in range(3000)]
    assert stats.kstest(sample, "uniform").pvalue > 1e-3


def test_a_one_hot_choice_ignores_the_noise():
    assert {choose(one_hot(42), Noise(s), 1) for s in range(50)} == {42}
