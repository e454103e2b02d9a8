"""The draft length in pretended worlds: what the rule gains, what it may lose, when it returns."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

import pytest

from engine.api import RoundStats
from engine.controller import Automatic, Controller, FixedLength

SEEDS = range(8)


@dataclass
class World:
    """A target and a draft of known costs, in seconds; text that is right with a known chance.

    `right` is the chance that a judged draft is right, by the answer's token number. `step` is a
    plain step, `row` what another row adds to it, `feed` what a token that the draft missed
    costs. `guesses` is how often the drafter has anything to propose.
    """

    right: float | Callable[[int], float]
    step: float | Callable[[int], float] = 0.1
    draft: float = 0.03
    row: float = 0.002
    feed: float = 0.0015
    guesses: float = 1.0
    noise: float = 0.05
    stalls: float = 0.0
    seed: int = 0

    def answer(self, controller: Controller, tokens: int = 512) -> list[tuple[int, RoundStats]]:
        """The rounds of an answer, each with the number of its first token."""
        self.random = random.Random(self.seed)
        rounds, at, missed = [], 0, 0
        while at < tokens:
            length = min(controller.length, tokens - at - 1)
            if self.random.random() >= self.guesses:
                length = 0
            accepted = self._accepted(at, length)
            feeding = self.feed * missed if length else 0.0
            step = self.step(at) if callable(self.step) else self.step
            stats = RoundStats(
                length,
                accepted,
                emitted=accepted + 1,
                draft_seconds=self._noisy(self.draft * length + feeding),
                verify_seconds=self._noisy(step + self.row * length),
            )
            controller.observe(stats)
            rounds.append((at, stats))
            missed = 0 if length else missed + 1
            at += stats.emitted
        return rounds

    def _accepted(self, at: int, length: int) -> int:
        right = self.right(at) if callable(self.right) else self.right
        return next((i for i in range(length) if self.random.random() >= right), length)

    def _noisy(self, seconds: float) -> float:
        stall = 5 if self.random.random() < self.stalls else 1
        return seconds * stall * max(0.5, self.random.gauss(1, self.noise))


def lookup(right: float, guesses: float, **costs: float) -> Callable[..., World]:
    """A drafter that costs nothing but the rows to verify."""
    return lambda **more: World(
        right, draft=2e-5, feed=0.0, row=0.005, guesses=guesses, **costs, **more
    )


def seconds(rounds: list[tuple[int, RoundStats]]) -> float:
    return sum(s.draft_seconds + s.verify_seconds for _, s in rounds)


def times_as_fast(
    make: Callable[..., World], fixed: int, longest: int = 4, tokens: int = 512
) -> list[float]:
    """The automatic rate over the rate of a fixed length, per seed."""
    automatic = [seconds(make(seed=s).answer(Automatic(longest), tokens)) for s in SEEDS]
    other = mean(seconds(make(seed=s).answer(FixedLength(fixed), tokens)) for s in SEEDS)
    return [other / each for each in automatic]


def drafted(rounds: list[tuple[int, RoundStats]]) -> list[int]:
    return [stats.drafted for _, stats in rounds]


@pytest.mark.parametrize("right", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("draft", [0.03, 0.04, 0.12])
def test_a_hopeless_draft_costs_three_percent_at_most(right, draft):
    ratios = times_as_fast(lambda **more: World(right, draft=draft, **more), fixed=0)
    assert mean(ratios) >= 0.97
    assert min(ratios) >= 0.95


@pytest.mark.parametrize("right", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_good_draft_is_within_five_percent_of_the_best_fixed_length(right):
    for fixed in range(8):
        assert mean(times_as_fast(lambda **more: World(right, **more), fixed)) >= 0.95


def test_costs_of_a_busy_machine_do_not_lose_a_good_draft():
    """Times off by 20 %, one round in twenty stalled."""
    ratios = times_as_fast(
        lambda **more: World(0.8, noise=0.2, stalls=0.05, **more), fixed=4, tokens=1024
    )
    assert mean(ratios) >= 0.9


@pytest.mark.parametrize("slow", ["draft_seconds", "verify_seconds"])
@pytest.mark.parametrize("at", range(6))
def test_one_slow_round_does_not_stop_a_draft_that_is_always_right(slow, at):
    """Neither the first of its kind nor a later one."""
    controller = Automatic(4)
    for i in range(20):
        length = controller.length
        times = {"draft_seconds": 0.03 * length, "verify_seconds": 0.1}
        if i == at:
            times[slow] = 2.0
        controller.observe(RoundStats(length, length, emitted=length + 1, **times))
        assert controller.pause is None
    assert controller.length == 4


def test_drafting_comes_back_when_the_text_turns_good():
    for seed in SEEDS:
        turns = 200
        world = World(lambda at, turns=turns: 0.9 if at >= turns else 0.0, seed=seed)
        rounds = world.answer(Automatic(4), 800)
        first = next(at for at, stats in rounds if stats.accepted > 1)
        assert first - turns <= 160
        after = [stats for at, stats in rounds if at >= first]
        assert sum(s.emitted for s in after) / len(after) > 2.5


def test_drafting_stops_soon_after_the_text_turns_bad():
    for seed in SEEDS:
        world = World(lambda at: 0.8 if at < 300 else 0.0, seed=seed)
        wasted = [s.drafted for at, s in world.answer(Automatic(4), 400) if at >= 300]
        assert sum(wasted) <= 60
        assert wasted[-50:].count(0) >= 40


def test_text_that_turns_to_and_fro_is_faster_than_plain():
    ratios = times_as_fast(
        lambda **more: World(lambda at: 0.85 if at // 300 % 2 else 0.05, **more),
        fixed=0,
        tokens=1800,
    )
    assert mean(ratios) >= 1.1


def test_trials_become_rare():
    """Over 2048 hopeless tokens each pause is longer than the one before, up to a limit."""
    rounds = World(0.0, feed=0.0, noise=0.0).answer(Automatic(4), 2048)
    starts = [at for at, s in rounds if s.drafted]
    gaps = [b - a for a, b in pairwise(starts) if b - a > 4]
    assert gaps == sorted(gaps)
    assert gaps[-1] <= 130
    assert len(gaps) <= 20


def test_a_trial_is_not_judged_by_the_feeding_of_what_the_draft_missed():
    """Feeding 1.5 % of a plain step for each token missed: dear in the trial, nothing later."""
    controller = Automatic(4)
    World(0.0, noise=0.0).answer(controller, 100)
    while not controller.length:
        controller.observe(RoundStats(0, 0, verify_seconds=0.1))
    feeding = 0.15  # the round takes 2.8 plain steps
    controller.observe(
        RoundStats(1, 1, emitted=2, draft_seconds=0.03 + feeding, verify_seconds=0.102)
    )
    assert controller.pause is None
    assert controller.length > 1


@pytest.mark.parametrize("feed", [0.002, 0.006, 0.02])
def test_feeding_what_the_draft_missed_is_kept_in_bounds(feed):
    """2 %, 6 % and 20 % of a plain step a token; where that is too dear, trials end."""
    ratios = times_as_fast(
        lambda **more: World(0.0, draft=0.04, feed=feed, **more), fixed=0, tokens=1024
    )
    assert mean(ratios) >= 0.965


def test_a_new_answer_tries_at_once_even_where_trials_had_ended():
    controller = Automatic(4)
    World(0.0, feed=0.03).answer(controller, 1024)
    assert controller.length == 0
    assert controller.pause is not None
    controller.begin()
    assert controller.length == 1
    assert controller.pause is None
    rounds = World(0.9).answer(controller, 300)
    assert sum(s.emitted for _, s in rounds) / len(rounds) > 2


def test_short_hopeless_answers_cost_little_after_the_first():
    controller = Automatic(4)
    World(0.0).answer(controller, 100)
    spent = plain = 0.0
    for seed in range(1, 9):
        controller.begin()
        spent += seconds(World(0.0, seed=seed).answer(controller, 100))
        plain += seconds(World(0.0, seed=seed).answer(FixedLength(0), 100))
    assert plain / spent >= 0.96


def test_a_new_answer_goes_on_with_a_draft_that_pays():
    controller = Automatic(4)
    World(0.95).answer(controller, 100)
    before = controller.length
    controller.begin()
    assert controller.length == before > 1


def test_lookup_that_finds_nothing_is_not_a_failed_trial():
    controller = Automatic(8)
    rounds = lookup(0.0, guesses=0.0)().answer(controller, 300)
    assert set(drafted(rounds)) == {0}
    assert controller.pause is None
    assert controller.length > 0


@pytest.mark.parametrize("guesses", [0.1, 0.5, 1.0])
def test_lookup_that_is_always_wrong_costs_three_percent_at_most(guesses):
    assert mean(times_as_fast(lookup(0.0, guesses), fixed=0, longest=8)) >= 0.97


@pytest.mark.parametrize(("right", "guesses"), [(0.9, 0.3), (0.6, 0.5), (0.9, 1.0)])
def test_lookup_that_copies_is_within_five_percent_of_the_best_fixed_length(right, guesses):
    for fixed in (0, 2, 4, 8):
        assert mean(times_as_fast(lookup(right, guesses), fixed, longest=8)) >= 0.95


def test_rows_that_are_dear_to_verify_shorten_the_draft():
    """As in llama.cpp's quantised kernels: each row as dear as half a step."""
    rounds = World(0.9, draft=0.001, row=0.05).answer(Automatic(8), 512)
    best = max(range(9), key=lambda k: sum(0.9**i for i in range(k + 1)) / (0.1 + 0.051 * k))
    assert 0 < best < 8
    late = drafted(rounds)[len(rounds) // 2 :]
    assert mean(late) <= best + 2


def test_a_step_that_slows_down_as_the_chat_grows_is_timed_again():
    """From 100 to 300 ms; by the first plain step alone, drafting would seem not to pay."""
    world = lambda **more: World(0.7, step=lambda at: 0.1 + at / 10_000, **more)  # noqa: E731
    for fixed in range(5):
        assert mean(times_as_fast(world, fixed, tokens=2000)) >= 0.95


def test_a_plain_step_timed_on_a_busy_machine_does_not_keep_a_hopeless_draft():
    controller = Automatic(4)
    for _ in range(2):
        controller.observe(RoundStats(0, 0, verify_seconds=0.2))
    for _ in range(24):
        length = controller.length
        times = {"draft_seconds": 0.03 * length, "verify_seconds": 0.1}
        controller.observe(RoundStats(length, 0, **times))
    assert controller.pause is not None


def test_a_plain_step_is_timed_now_and_then_however_good_the_draft():
    lengths = drafted(World(1.0).answer(Automatic(4), 1000))
    plain = [i for i, length in enumerate(lengths) if length == 0]
    assert max(b - a for a, b in pairwise(plain)) <= 33
    assert len(plain) < len(lengths) / 20


def test_a_draft_that_has_paid_is_tried_soon_again():
    """Bad, good, and bad again: the last pauses are not the long ones of the beginning."""
    text = [0.0] * 600 + [1.0] * 600 + [0.0] * 400
    rounds = World(text.__getitem__, noise=0.0).answer(Automatic(4), len(text))
    after = [at for at, stats in rounds if at >= 1200 and stats.drafted]
    pauses = [b - a for a, b in pairwise(after) if b - a > 1]
    assert pauses[0] < 30


def test_the_first_rounds_are_plain_and_the_first_draft_short():
    rounds = World(1.0, noise=0.0).answer(Automatic(4), 40)
    assert drafted(rounds)[:3] == [0, 0, 1]
    assert max(drafted(rounds)) == 4


def test_nothing_is_drafted_where_the_longest_draft_is_none():
    rounds = World(0.9).answer(Automatic(0), 60)
    assert set(drafted(rounds)) == {0}


def test_a_pause_says_what_was_seen():
    controller = Automatic(4)
    rounds = World(0.0, noise=0.0).answer(controller, 12)
    assert controller.pause is not None
    assert controller.pause.code == "drafting_does_not_pay"
    assert controller.pause.values == {"accepted": 0, "drafted": sum(drafted(rounds)), "cost": 32}
    assert "0 of the last" in controller.pause.text
    assert "32 %" in controller.pause.text


def test_a_fixed_length_stays_whatever_comes_of_it():
    assert set(drafted(World(0.0).answer(FixedLength(3), 50))) == {3, 2, 1, 0}
    assert drafted(World(0.0).answer(FixedLength(3), 50))[:40] == [3] * 40


@pytest.mark.parametrize("right", [0.4, 0.5, 0.6])
def test_what_was_never_judged_decides_nothing(right):
    """Rounds that end alike for the judge, but with rejected rests of different lengths.

    Under the rejection rule such a rest comes of noise that the next round uses again.
    """
    decided = []
    for rest in (0, 1, 2):
        chance = random.Random(5)
        controller = Automatic(4)
        lengths = []
        for _ in range(400):
            lengths.append(controller.length)
            accepted = next((i for i in range(lengths[-1]) if chance.random() > right), lengths[-1])
            drafted_ = min(lengths[-1], accepted + 1 + rest)
            times = {"draft_seconds": 0.04 * drafted_, "verify_seconds": 0.1}
            controller.observe(RoundStats(drafted_, accepted, emitted=accepted + 1, **times))
        decided.append(lengths)
    assert decided[0] == decided[1] == decided[2]
    assert {0, 1, 2} <= set(decided[0])


def test_rows_that_were_never_timed_are_not_taken_to_be_free():
    """A mixture of experts reads more weights with each row: long drafts are hardly tried."""
    lengths = []
    for seed in SEEDS:
        world = World(right=0.6, row=0.03, draft=0.002, seed=seed)
        lengths += [stats.drafted for _, stats in world.answer(Automatic(8), tokens=400)[12:]]
    assert sum(length > 5 for length in lengths) < len(lengths) / 50
