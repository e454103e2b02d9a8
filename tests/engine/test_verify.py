"""Both rules keep the target's distribution; the coupled one keeps the text."""

import numpy as np
import pytest
import torch
from scipy import stats

from engine.sampling import Distribution, Noise, Policy, Stream, choose, one_hot
from engine.verify import Draft, accept, residual
from tests.tiny import policy

P = np.array([0.5, 0.3, 0.2])
Q = np.array([0.6, 0.3, 0.1])
SEEDS = 4_000


def distribution(probs) -> Distribution:
    probs = np.asarray(probs, dtype=float)
    ids = np.flatnonzero(probs)
    return Distribution(ids, probs[ids])


def rule(verification: str, seed: int) -> Policy:
    return policy(temperature=1.0, seed=seed, verification=verification)


def first_tokens(verification, draft_of, seeds=SEEDS, p=P):
    """How often each token came first over many seeds."""
    counts = np.zeros(len(p))
    row = distribution(p)
    for seed in range(seeds):
        chooser = rule(verification, seed)
        new = accept([row, row], draft_of(chooser.noise), chooser, position=10)
        counts[new[0]] += 1
    return counts


def drawn_from(q):
    return lambda noise: Draft((choose(distribution(q), noise, 10),), (distribution(q),))


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
@pytest.mark.parametrize(
    "draft_of",
    [
        pytest.param(drawn_from(Q), id="drawn"),
        pytest.param(lambda noise: Draft((0,)), id="argmax"),
        pytest.param(lambda noise: Draft((2,)), id="unlikely"),
        pytest.param(drawn_from([0, 0, 1.0]), id="sure and wrong"),
    ],
)
def test_the_first_token_follows_the_targets_distribution(verification, draft_of):
    counts = first_tokens(verification, draft_of)
    assert stats.chisquare(counts, P * counts.sum()).pvalue > 1e-3


def test_an_argmax_draft_judged_by_its_softmax_would_be_wrong():
    """The example of methods for drafting, section 3: q must be one-hot for an argmax draft."""
    wrong = first_tokens("rejection", lambda noise: Draft((0,), (distribution(Q),)))
    right = first_tokens("rejection", lambda noise: Draft((0,)))
    assert wrong / wrong.sum() == pytest.approx([0.833, 0, 0.167], abs=0.02)
    assert right / right.sum() == pytest.approx(P, abs=0.02)


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_whole_blocks_follow_the_joint_distribution(verification):
    """Two positions with different rows: catches a row taken one place off."""
    rows = [distribution(P), distribution([0.1, 0.2, 0.7]), distribution([0.4, 0.4, 0.2])]
    qs = [distribution(Q), distribution([0.3, 0.3, 0.4])]
    joint = np.zeros((3, 3))
    for seed in range(SEEDS):
        chooser = rule(verification, seed)
        drafted = tuple(choose(q, chooser.noise, 10 + i) for i, q in enumerate(qs))
        new = accept(rows, Draft(drafted, tuple(qs)), chooser, position=10)
        if len(new) == 1:  # the next round's first token, without a draft
            new += accept(rows[1:2], Draft(), chooser, position=11)
        joint[new[0], new[1]] += 1
    expected = np.outer(P, [0.1, 0.2, 0.7]) * joint.sum()
    assert stats.chisquare(joint.ravel(), expected.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_filtered_samples_follow_the_filtered_distribution(verification):
    """top-k, top-p and min-p on both sides, a weaker q; the exact distribution by hand."""
    logits = torch.tensor([[2.0, 1.5, 1.0, 0.5, 0.0, -4.0]])
    shifted = logits + torch.tensor([[0.0, 0.6, -0.5, 0.3, 0.0, 0.0]])
    settings = {"temperature": 0.9, "top_k": 5, "top_p": 0.95, "min_p": 0.1}
    scaled = np.exp(np.array([2.0, 1.5, 1.0, 0.5, 0.0]) / 0.9)
    kept = scaled / scaled.sum()
    kept = kept[: int(np.searchsorted(np.cumsum(kept), 0.95)) + 1]
    kept = kept[kept >= 0.1 * kept[0]]
    exact = kept / kept.sum()
    counts = np.zeros(len(exact))
    for seed in range(SEEDS):
        chooser = policy(seed=seed, verification=verification, **settings)
        (p,) = chooser.distributions(logits, [])
        (q,) = chooser.distributions(shifted, [])
        draft = Draft((choose(q, chooser.noise, 3),), (q,))
        counts[accept([p, p], draft, chooser, position=3)[0]] += 1
    assert stats.chisquare(counts, exact * counts.sum()).pvalue > 1e-3


@pytest.mark.parametrize("draft", [(), (0,), (2, 1), (0, 0, 0), (1, 2, 0, 1)])
def test_coupled_text_does_not_depend_on_the_draft(draft):
    rows = [distribution(np.roll(P, i)) for i in range(6)]
    for seed in range(200):
        chooser = rule("coupled", seed)
        text = []
        while len(text) < 5:
            left = draft[: 5 - len(text) - 1]
            new = accept(
                rows[len(text) : len(text) + len(left) + 1], Draft(left), chooser, len(text)
            )
            text += new
        assert text == [choose(rows[i], chooser.noise, i) for i in range(5)]


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_nothing_is_emitted_behind_the_first_mismatch(verification):
    rows = [distribution([0, 1.0, 0])] * 4
    assert accept(rows, Draft((1, 0, 1)), rule(verification, 1), 0) == [1, 1]


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_a_perfect_draft_is_always_accepted(verification):
    rows = [distribution(np.roll(P, i)) for i in range(4)]
    for seed in range(300):
        chooser = rule(verification, seed)
        drafted = tuple(choose(row, chooser.noise, i) for i, row in enumerate(rows[:3]))
        new = accept(rows, Draft(drafted, tuple(rows[:3])), chooser, 0)
        assert tuple(new[:3]) == drafted
        assert len(new) == 4


def test_the_coupled_rate_is_at_least_its_bound():
    """P(match) >= (1 - TV) / (1 + TV); here TV = 0.1."""
    p, q = distribution(P), distribution(Q)
    same = sum(choose(p, Noise(s), 4) == choose(q, Noise(s), 4) for s in range(5000)) / 5000
    assert same >= 0.9 / 1.1 - 0.02


def test_the_ratio_rule_accepts_one_minus_the_total_variation():
    accepted = 0
    for seed in range(5000):
        chooser = rule("rejection", seed)
        accepted += (
            len(accept([distribution(P)] * 2, drawn_from(Q)(chooser.noise), chooser, 10)) > 1
        )
    assert accepted / 5000 == pytest.approx(0.9, abs=0.02)


def test_the_residual_of_equal_distributions_is_the_distribution():
    p = distribution(P)
    assert residual(p, distribution(P)) is p


def test_the_residual_lies_where_p_exceeds_q():
    left = residual(distribution(P), distribution(Q))
    assert left.dense(3) == pytest.approx([0, 0, 1])


def test_a_one_hot_draft_leaves_p_without_that_token():
    left = residual(distribution(P), one_hot(0))
    assert left.dense(3) == pytest.approx([0, 0.6, 0.4])


def test_the_residual_is_drawn_with_noise_of_its_own():
    p = distribution(P)
    tokens = [choose(p, Noise(s), 1) for s in range(500)]
    residuals = [choose(p, Noise(s), 1, Stream.RESIDUAL) for s in range(500)]
    same = np.mean(np.array(tokens) == np.array(residuals))
    assert same == pytest.approx(float((P**2).sum()), abs=0.08)
