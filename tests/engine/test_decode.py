"""The token loop: the same ids with any drafter, a cache that is always a prefix."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from engine.api import RoundStats, Usage
from engine.controller import FixedLength
from engine.decode import decode
from engine.drafters import ChainDrafter, NGramDrafter, SuffixDrafter, chain
from engine.drafters.auto import Auto
from engine.drafters.base import NoDrafter
from engine.drafters.careful import CarefulDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Cancelled
from engine.sampling import Distribution, choose
from engine.verify import Draft
from tests.tiny import Adversary, language_model, plain, policy, run
from tests.vocabularies import behind, byte_level_json

# Text that repeats, so that lookup has something to find.
PROMPTS = [
    list(b"the cat sat on the mat, the cat sat on the "),
    list(b"abcabcabcabc"),
    list(b"1, 2, 3, 1, 2, 3, 1, 2, "),
    list(b"for i in range(10): print(i)\nfor i in range("),
    list(b"a"),
]
MORE_PROMPTS = PROMPTS + [list(f"prompt {i}: {'xy' * i} {i}".encode()) for i in range(15)]


def several():
    """A lookup and two models, one of them a copy of the target."""
    weak = SmallModelDrafter(language_model(layers=1))
    weak.name = "weak"
    return Auto([NGramDrafter(), weak, SmallModelDrafter(language_model())])


DRAFTERS = {
    "none": NoDrafter,
    "copy": lambda: SmallModelDrafter(language_model()),
    "weak": lambda: SmallModelDrafter(language_model(layers=1)),
    "other vocabulary": lambda: behind(byte_level_json(), language_model()),
    "ngram": NGramDrafter,
    "suffix": SuffixDrafter,
    "chain": ChainDrafter,
    "rubbish": Adversary,
    "auto": several,
}


@pytest.fixture(scope="module")
def target():
    return language_model()


@pytest.fixture(scope="module", params=DRAFTERS)
def drafter(request):
    made = DRAFTERS[request.param]()
    made.label = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "MATCH", 3)  # or there is nothing to find in texts as short as these
        yield made


@pytest.fixture(scope="module")
def expect(target):
    """Plain decoding of a prompt; each is decoded once for all drafters."""
    known = {}

    def decoded(prompt, tokens, seed, temperature):
        key = (tuple(prompt), tokens, seed, temperature)
        if key not in known:
            choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
            known[key] = plain(target, prompt, tokens=tokens, choose=choose)
        return known[key]

    return decoded


def assert_equal_to_plain(target, drafter, expect, prompts, tokens, length, temperature):
    drafted = accepted = 0
    for seed, prompt in enumerate(prompts):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        expected = expect(prompt, tokens, seed, temperature)
        got, proposed, right = run(
            target, drafter, prompt, tokens=tokens, draft_length=length, choose=choose
        )
        assert got == expected
        drafted, accepted = drafted + proposed, accepted + right
    if drafter.label in ("none", "rubbish"):
        assert accepted <= drafted / 20  # rubbish is right by chance now and then
    else:
        assert accepted > 0


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("length", [1, 7])
def test_ids_equal_plain_decoding(target, drafter, expect, length, temperature):
    """EXA-1 a, and the same at a temperature."""
    assert_equal_to_plain(target, drafter, expect, PROMPTS, 32, length, temperature)


class Erratic:
    """A length by chance each round, plain steps in a row among them; notes what it is told."""

    pause = None

    def __init__(self, seed):
        self.chance, self.told = random.Random(seed), []

    @property
    def length(self):
        return self.chance.choice([0, 0, 0, 1, 2, 5, 9])

    def observe(self, stats):
        self.told.append(stats)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_ids_equal_plain_decoding_whatever_the_lengths(target, drafter, expect, temperature):
    """A draft model that pauses catches up; the controller is told of every round."""
    for seed, prompt in enumerate(PROMPTS):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        erratic = Erratic(seed)
        got, drafted, _ = run(
            target, drafter, prompt, tokens=32, draft_length=erratic, choose=choose
        )
        assert got == expect(prompt, 32, seed, temperature)
        assert sum(stats.emitted for stats in erratic.told) == 32
        assert sum(stats.drafted for stats in erratic.told) == drafted


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_ids_equal_plain_decoding_at_the_automatic_length(target, drafter, expect, temperature):
    """What computes is tried in the first answer at least; on a busy machine perhaps no more."""
    auto, tried = drafter if isinstance(drafter, Auto) else Auto([drafter]), 0
    for seed, prompt in enumerate(PROMPTS):
        auto.begin(None)
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        got, drafted, _ = run(target, auto, prompt, tokens=32, draft_length=auto, choose=choose)
        assert got == expect(prompt, 32, seed, temperature)
        tried += drafted
    assert tried > 0 or drafter.label in ("none", "ngram", "suffix", "chain")


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("length", [1, 3, 7, 16])
def test_ids_equal_plain_decoding_on_the_full_grid(target, drafter, expect, length, temperature):
    assert_equal_to_plain(target, drafter, expect, MORE_PROMPTS, 64, length, temperature)


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_a_copy_of_the_target_is_always_right(target, verification):
    choose = policy(temperature=0.8, verification=verification)
    _, drafted, accepted = run(
        target, DRAFTERS["copy"](), PROMPTS[0], tokens=33, draft_length=4, choose=choose
    )
    assert drafted == accepted > 20


def test_penalties_and_bias_hold_in_every_row(target, drafter):
    prompt = PROMPTS[1]
    choose = policy(
        temperature=0.8,
        frequency_penalty=2.0,
        repetition_penalty=1.3,
        logit_bias={97: -1e9},
        answer_start=len(prompt),
    )
    expected = plain(target, prompt, tokens=32, choose=choose)
    got, _, _ = run(target, drafter, prompt, tokens=32, draft_length=5, choose=choose)
    assert got == expected
    assert 97 not in got


@pytest.mark.parametrize("widths", [(640, 512), (512, 640)])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_models_padded_to_different_widths_work_together(widths, temperature):
    """VOC-1, either way round; ids that one of them lacks are never fed to it."""
    target = language_model(vocab_size=widths[0])
    draft = SmallModelDrafter(language_model(vocab_size=widths[1], layers=1))
    fed = {"target": 0, "draft": 0}
    for name, model in (("target", target), ("draft", draft.model)):
        embed = model.network.get_input_embeddings()
        embed.register_forward_pre_hook(
            lambda _, args, name=name: fed.update({name: max(fed[name], int(args[0].max()))})
        )
    for prompt in PROMPTS[:3]:
        choose = policy(temperature=temperature)
        expected = plain(target, prompt, tokens=32, choose=choose)
        got, drafted, _ = run(target, draft, prompt, tokens=32, draft_length=4, choose=choose)
        assert got == expected
        assert drafted > 0
    assert fed["target"] < widths[0]
    assert fed["draft"] < widths[1]


class Fixed:
    """A target of three tokens with the same distribution everywhere; no network."""

    vocab_size = 3

    def __init__(self, probs):
        self.logits = torch.tensor(probs).log()
        self.cache = self
        self.length = 0

    def crop_to(self, length):
        self.length = min(self.length, length)

    def forward(self, tokens, rows):
        assert all(0 <= t < self.vocab_size for t in tokens)
        self.length += len(tokens)
        return self.logits.repeat(rows, 1)


class Wide(NoDrafter):
    """Draws from a distribution that gives most to an id the target does not have."""

    def propose(self, tokens, limit, choose_):
        q = Distribution(np.array([3, 0, 1, 2]), np.array([0.7, 0.1, 0.1, 0.1]))
        drawn = [choose(q, choose_.noise, len(tokens) + i) for i in range(limit)]
        return Draft(tuple(drawn), (q,) * limit)


class Known(NoDrafter):
    """Draws from another distribution over the target's ids."""

    def propose(self, tokens, limit, choose_):
        q = Distribution(np.array([0, 1, 2]), np.array([0.2, 0.3, 0.5]))
        drawn = [choose(q, choose_.noise, len(tokens) + i) for i in range(limit)]
        return Draft(tuple(drawn), (q,) * limit)


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_drafts_that_the_target_has_no_row_for_do_not_shift_its_distribution(verification):
    """VOC-1: such a draft is rejected, and the ratio rule then draws from the residual."""
    probs = [0.5, 0.3, 0.2]
    counts = np.zeros(3)
    for seed in range(3000):
        tokens = [0]
        chooser = policy(temperature=1.0, top_k=0, seed=seed, verification=verification)
        for _ in decode(Fixed(probs), Wide(), FixedLength(2), tokens, chooser, limit=4):
            pass
        for token in tokens[1:]:
            counts[token] += 1
    assert stats.chisquare(counts, np.array(probs) * counts.sum()).pvalue > 1e-3


class Moody:
    """Drafts after a round with an acceptance, and only every other round otherwise."""

    pause = None

    def __init__(self):
        self.length = 2

    def observe(self, stats):
        self.length = 2 if stats.accepted or not stats.drafted else 0


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_lengths_that_follow_acceptance_do_not_shift_the_distribution(verification):
    """Of every position by itself: only rounds that are over decide."""
    probs = [0.5, 0.3, 0.2]
    counts = np.zeros((4, 3))
    for seed in range(2000):
        tokens = [0]
        chooser = policy(temperature=1.0, top_k=0, seed=seed, verification=verification)
        for _ in decode(Fixed(probs), Known(), Moody(), tokens, chooser, limit=5):
            pass
        for position, token in enumerate(tokens[1:]):
            counts[position, token] += 1
    for row in counts:
        assert stats.chisquare(row, np.array(probs) * row.sum()).pvalue > 1e-3


class Sure:
    """A draft model whose certainty follows the last token: sure behind 0, unsure behind 2."""

    vocab_size, context = 3, 64

    def __init__(self):
        self.cache = self
        self.length = 0

    def crop_to(self, length):
        self.length = min(self.length, length)

    def forward(self, tokens):
        self.length += len(tokens)
        return torch.tensor([[2.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.1, 0.0, 0.2]])[[tokens[-1]]]


class Paced(SmallModelDrafter):
    """Goes on where it is sure, draws one token more where it is not, none where it guesses."""

    def propose(self, tokens, limit, policy):
        self.places = iter(range(limit))
        return super().propose(tokens, limit, replace(policy, pace=self.pace))

    def pace(self, sure):
        return next(self.places) + (sure > -0.5) + 9 * (sure > 0.5)


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_ending_drafts_by_how_sure_they_are_does_not_shift_the_distribution(verification):
    """A token is left undrawn, or is the last, by what is known before it is drawn."""
    probs = [0.5, 0.3, 0.2]
    counts = np.zeros((4, 3))
    lengths = set()
    for seed in range(1500):
        tokens = [0]
        chooser = policy(temperature=1.0, top_k=0, seed=seed, verification=verification)
        drafter = Paced(Sure())
        rounds = decode(Fixed(probs), drafter, FixedLength(3), tokens, chooser, limit=5)
        lengths |= {each.drafted for _, each in rounds}
        for position, token in enumerate(tokens[1:]):
            counts[position, token] += 1
    assert lengths == {0, 1, 2, 3}
    for row in counts:
        assert stats.chisquare(row, np.array(probs) * row.sum()).pvalue > 1e-3


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
def test_a_weak_draft_does_not_shift_the_distribution_of_a_real_model(target, verification):
    """Chi-square through the whole loop, against the model's own probabilities."""
    weak = DRAFTERS["weak"]()
    prompt = PROMPTS[1]
    chooser = policy(temperature=1.5, top_k=4)
    target.cache.empty()
    (exact,) = chooser.distributions(target.forward(prompt), prompt)
    counts = dict.fromkeys(exact.ids.tolist(), 0)
    for seed in range(400):
        target.cache.crop_to(len(prompt) - 1)
        weak.settle(len(prompt) - 1)
        tokens = list(prompt)
        chooser = policy(temperature=1.5, top_k=4, seed=seed, verification=verification)
        rounds = decode(target, weak, FixedLength(1), tokens, chooser, limit=len(prompt) + 3)
        next(rounds)
        rounds.close()
        counts[tokens[len(prompt)]] += 1
    assert stats.chisquare(list(counts.values()), exact.probs * 400).pvalue > 1e-3


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("length", [2, 7])
def test_models_with_sliding_windows_draft_past_the_window(length, temperature):
    """Gemma 3 shapes, window 16, target and draft; and the draft is not fed anew each round."""
    from tests.engine.test_cache import sliding_model

    target, draft = sliding_model(), SmallModelDrafter(sliding_model())
    fed = []
    embed = draft.model.network.get_input_embeddings()
    embed.register_forward_pre_hook(lambda _, args: fed.append(args[0].numel()))
    prompt = list(range(1, 80))
    choose_ = policy(temperature=temperature)
    expected = plain(target, prompt, tokens=40, choose=choose_)
    rubbish = run(target, Adversary(), prompt, tokens=40, draft_length=length, choose=choose_)
    got, drafted, accepted = run(
        target, draft, prompt, tokens=40, draft_length=length, choose=choose_
    )
    assert got == rubbish[0] == expected
    assert accepted > 0
    assert sum(fed) < len(prompt) + 2 * (drafted + 40)


def test_ids_that_nobody_knows_count_as_rejected(target):
    rounds = list(decode(target, Adversary(), FixedLength(4), [0, 1, 2], policy(), limit=10))
    assert all(s.drafted == s.rejected for _, s in rounds)
    assert sum(s.drafted for _, s in rounds) > 0


def test_the_draft_is_cut_to_the_room_left(target):
    """Never more tokens than asked for, and never a position beyond the limit."""
    for limit in range(4, 12):
        target.cache.empty()
        tokens = [1, 2, 3]
        copy = DRAFTERS["copy"]()
        for _ in decode(target, copy, FixedLength(7), tokens, policy(), limit=limit):
            pass
        assert len(tokens) == limit


class Watched:
    """Checks at each round that every cache holds a prefix of tokens[:-1]."""

    def __init__(self, drafter, target):
        self.inner, self.target, self.rounds = drafter, target, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def propose(self, tokens, limit, choose):
        self.check(tokens)
        self.rounds += 1
        return self.inner.propose(tokens, limit, choose)

    def check(self, tokens):
        caches = [self.target.cache]
        if isinstance(self.inner, SmallModelDrafter):
            caches.append(self.inner.model.cache)
        for cache in caches:
            assert cache.length <= len(tokens) - 1
        if isinstance(self.inner, NGramDrafter):
            assert self.inner._tokens == tokens[: len(self.inner._tokens)]
            assert len(self.inner._tokens) <= len(tokens) - 1
        if isinstance(self.inner, SuffixDrafter | ChainDrafter):
            assert self.inner._chat.tokens == tokens[: len(self.inner._chat)]
            assert len(self.inner._chat) <= len(tokens) - 1


@pytest.mark.parametrize("ending", ["close", "exception", "limit"])
def test_caches_hold_a_prefix_at_every_round_and_at_the_end(target, drafter, ending):
    target.cache.empty()
    drafter.reset()
    watched = Watched(drafter, target)
    tokens = list(PROMPTS[0])
    rounds = decode(target, watched, FixedLength(3), tokens, policy(), limit=len(tokens) + 20)
    try:
        for n, _ in enumerate(rounds):
            if ending == "close" and n == 2:
                rounds.close()
            if ending == "exception" and n == 2:
                with pytest.raises(ZeroDivisionError):
                    rounds.throw(ZeroDivisionError())
    finally:
        watched.check(tokens)
    assert watched.rounds >= 3


def test_an_exception_in_the_middle_of_a_pass_leaves_a_state_that_goes_on_right(target):
    prompt = PROMPTS[0]
    expected = plain(target, prompt, tokens=12, choose=policy())
    copy = DRAFTERS["copy"]()
    for broken in (target, copy.model):
        target.cache.empty()
        copy.reset()
        tokens = list(prompt)
        rounds = decode(target, copy, FixedLength(3), tokens, policy(), limit=len(prompt) + 12)
        next(rounds)
        calls = iter([False])  # the second layer asked breaks off
        broken.stopped = lambda calls=calls: next(calls, True)
        try:
            with pytest.raises(Cancelled):
                next(rounds)
        finally:
            broken.stopped = lambda: False
        for _ in decode(target, copy, FixedLength(3), tokens, policy(), limit=len(prompt) + 12):
            pass
        assert tokens[len(prompt) :] == expected


def test_a_draft_with_a_smaller_context_pauses_and_the_answer_goes_on():
    """RBK-2 a, with learned positions, which have no row beyond the last."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from engine.model import LanguageModel

    config = AutoConfig.for_model(
        "gpt2", n_embd=64, n_layer=2, n_head=4, vocab_size=262, n_positions=64
    )
    draft = SmallModelDrafter(LanguageModel(AutoModelForCausalLM.from_config(config).eval(), 64))
    target = language_model()
    prompt = list(b"a" * 50)
    expected = plain(target, prompt, tokens=100, choose=policy())
    got, drafted, _ = run(target, draft, prompt, tokens=100, draft_length=4, choose=policy())
    assert got == expected
    assert 0 < drafted < 64
    assert draft.pause is not None
    assert draft.pause.values["context"] == 64
    long = list(b"a" * 200)
    assert run(target, draft, long, tokens=10, draft_length=4, choose=policy())[1] == 0


class Broken(NoDrafter):
    name, default_length = "broken", 4

    def propose(self, tokens, limit, choose):
        if len(tokens) > 20:
            raise RuntimeError("draft is gone")
        return Draft((1,) * limit)


def test_a_drafter_that_breaks_does_not_end_the_answer(target):
    prompt = list(range(10))
    expected = plain(target, prompt, tokens=20, choose=policy())
    careful = CarefulDrafter(Broken())
    assert careful.pause is None
    got, drafted, _ = run(target, careful, prompt, tokens=20, draft_length=2, choose=policy())
    assert got == expected
    assert drafted > 0
    assert careful.pause is not None
    assert "draft is gone" in careful.pause.text


def usage_of(*rounds: tuple[int, int]) -> Usage:
    usage = Usage()
    for drafted, accepted in rounds:
        usage = usage.plus(RoundStats(drafted=drafted, accepted=accepted, emitted=accepted + 1))
    return usage


def test_what_follows_the_first_mismatch_is_rejected():
    """SPC-1 a: match mask T F T T."""
    from engine.verify import accept
    from tests.engine.test_verify import distribution

    rows = [distribution([0, 0, 1.0])] * 5
    new = accept(rows, Draft((2, 0, 2, 2)), policy(), 0)
    usage = usage_of((4, len(new) - 1))
    assert (usage.accepted, usage.drafted, usage.rejected) == (1, 4, 3)


def test_nothing_drafted_has_no_rate():
    """SPC-1 b."""
    usage = usage_of((0, 0), (0, 0))
    assert usage.acceptance_rate is None
    assert usage.tokens_per_round is None
    assert usage.accepted_by_position == ()
    assert usage.plain_steps == 2


def test_rates_are_sums_over_the_rounds():
    """SPC-1 c."""
    usage = usage_of((4, 4), (4, 0), (2, 1))
    assert (usage.accepted, usage.drafted) == (5, 10)
    assert usage.acceptance_rate == 0.5
    assert usage.tokens == 8
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted


def test_rates_by_position_divide_by_the_rounds_that_drafted_so_far():
    usage = usage_of((4, 4), (4, 0), (2, 1))
    assert usage.accepted_by_position == (2 / 3, 1 / 3, 1 / 2, 1 / 2)
    assert usage_of((4, 2), (4, 3)).accepted_by_position == (1, 1, 0.5, 0)


def test_bf16_differs_only_where_the_best_two_are_close():
    """EXA-1 b: a first difference needs a near-tie of about one bf16 step."""
    target = language_model()
    target.network.to(torch.bfloat16)
    draft = SmallModelDrafter(language_model(layers=1))
    draft.model.network.to(torch.bfloat16)
    for prompt in PROMPTS:
        expected = plain(target, prompt, tokens=32, choose=policy())
        got, _, _ = run(target, draft, prompt, tokens=32, draft_length=4, choose=policy())
        first = next(
            (i for i, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b), None
        )
        if first is None:
            continue
        target.cache.empty()
        best = target.forward(prompt + expected[:first])[0].float().topk(2).values
        step = 2.0 ** (torch.floor(torch.log2(best[0].abs())) - 7)
        assert best[0] - best[1] <= 2 * step
