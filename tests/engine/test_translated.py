"""A draft of another vocabulary: the same ids as plain decoding, in any language, and kept short
of its own limits."""

import pytest
import torch

from engine.controller import FixedLength
from engine.decode import decode
from tests.folders import EOS, IM_END, IM_START
from tests.tiny import language_model, plain, policy, run
from tests.vocabularies import OTHERS, behind, byte_level_json, target_words

PROMPTS = [
    list(b"the cat sat on the mat, the cat sat on the "),
    [IM_START, *"user\nwie heißt 中文? 😀😀".encode(), IM_END, *b"\n"],
    list("abc 😀".encode()[:-2]),
    [EOS],
]


@pytest.fixture(scope="module")
def target():
    return language_model()


@pytest.fixture(scope="module", params=OTHERS)
def drafter(request, target):
    return behind(OTHERS[request.param](), target)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("length", [1, 2, 4, 7])
def test_ids_equal_plain_decoding(target, drafter, temperature, length):
    right = 0
    for seed, prompt in enumerate(PROMPTS):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        expected = plain(target, prompt, tokens=32, choose=choose)
        got, drafted, accepted = run(
            target, drafter, prompt, tokens=32, draft_length=length, choose=choose
        )
        assert got == expected
        assert 0 <= accepted <= drafted
        right += accepted
    assert right > 0


@pytest.mark.parametrize("verification", ["coupled", "rejection"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_same_network_behind_other_ids_of_the_same_bytes_is_right(
    target, verification, temperature
):
    """Under the ratio rule what is likeliest is drafted, and not all of it drawn."""
    draft = behind(byte_level_json(()), target)
    choose = policy(temperature=temperature, verification=verification)
    prompt = list(b"abc abc")
    target.cache.empty()
    _, drafted, accepted = run(target, draft, prompt, tokens=33, draft_length=4, choose=choose)
    least = 0.9 if verification == "coupled" or temperature == 0 else 0.3
    assert accepted >= least * drafted > 0


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_penalties_and_bias_are_those_of_the_targets_ids(target, drafter, temperature):
    prompt = PROMPTS[0]
    choose = policy(
        temperature=temperature,
        frequency_penalty=2.0,
        repetition_penalty=1.3,
        logit_bias={97: -1e9},
        answer_start=len(prompt),
    )
    expected = plain(target, prompt, tokens=24, choose=choose)
    got, _, _ = run(target, drafter, prompt, tokens=24, draft_length=5, choose=choose)
    assert got == expected


def test_a_text_that_grows_is_fed_once(target):
    """Re-tokenised ends and rejected drafts are fed again, and no more."""
    draft = behind(byte_level_json(), target)
    fed = []
    embed = draft.model.network.get_input_embeddings()
    embed.register_forward_pre_hook(lambda _, args: fed.append(args[0].numel()))
    prompt = list(b"the cat sat on the mat. " * 12)
    _, drafted, _ = run(target, draft, prompt, tokens=40, draft_length=4, choose=policy())
    assert sum(fed) < len(prompt) + 2 * (drafted + 40)


def test_a_character_cut_over_tokens_is_drafted(target):
    """Of an emoji's bytes: the second half, whatever half was there."""
    draft = behind(byte_level_json(()), target)
    emoji = "😀".encode()
    for there in range(1, 4):
        tokens = list(b"so " + emoji[:there])
        target.cache.empty()
        draft.reset()
        expected = plain(target, tokens, tokens=3, choose=policy())
        draft.reset()
        assert list(draft.propose(tokens, 1, policy()).tokens) == expected[:1]


def test_an_end_of_the_draft_is_the_targets_end_and_the_last_of_a_draft(target):
    draft = behind(byte_level_json(()), target)
    theirs = draft._theirs
    end = theirs.tokenizer.backend.token_to_id("</s>")
    with torch.no_grad():
        draft.model.network.lm_head.weight[end] += 100 * draft.model.network.lm_head.weight.sum(0)
    bias = policy(logit_bias={EOS: 1e9})
    assert draft.propose(list(b"abc"), 5, bias).tokens == (EOS,)


def test_ids_without_text_in_the_target_are_never_drafted(target):
    json = byte_level_json((), special=("</s>", "<only here>"))
    draft = behind(json, target)
    only = draft._theirs.tokenizer.backend.token_to_id("<only here>")
    assert draft._first[only] == len(target_words().vocabulary.tokens)
    prompt = PROMPTS[0]
    got = run(target, draft, prompt, tokens=12, draft_length=3, choose=policy())[0]
    assert got == plain(target, prompt, tokens=12, choose=policy())


def test_drafting_pauses_beyond_the_drafts_context_and_goes_on_below_it(target):
    draft = behind(byte_level_json(()), target)
    draft.model.limit(32)
    prompt = list(range(97, 117))
    expected = plain(target, prompt, tokens=30, choose=policy())
    got, drafted, accepted = run(target, draft, prompt, tokens=30, draft_length=4, choose=policy())
    assert got == expected
    assert drafted >= accepted > 0
    assert draft.pause.code == "draft_context_full"
    draft.settle(10)
    assert draft.propose(prompt[:12], 2, policy()).tokens
    assert draft.pause is None


def test_a_draft_without_rows_for_its_tokens_pauses(target):
    draft = behind(byte_level_json(), target)
    draft.model.vocab_size = 3
    assert draft.propose(list(b"the cat"), 4, policy()).tokens == ()
    assert draft.pause.code == "draft_lacks_token"


def test_every_round_leaves_a_prefix_of_what_was_committed(target, drafter):
    target.cache.empty()
    drafter.reset()
    tokens = list(PROMPTS[0])
    for _ in decode(target, drafter, FixedLength(3), tokens, policy(), limit=len(tokens) + 20):
        held = drafter._text
        assert len(held._tokens) <= len(tokens) - 1
        known = b"".join(drafter._ours.bytes_of(t) for t in tokens[: len(held._tokens)])
        assert bytes(held._text) == known
        assert drafter.model.cache.length <= len(held.ids)
