"""PARD: a draft model's guesses in one pass behind masks, and no token changed."""

from types import SimpleNamespace

import pytest
import torch

from engine.drafters.parallel import ParallelDrafter
from engine.errors import DraftRefused
from engine.session import drafter_of
from tests.tiny import language_model, plain, policy, run

MASK = 260
PROMPT = [(7 * j) % 250 for j in range(40)]


def drafter(mask=MASK, **changes):
    return ParallelDrafter(language_model(pard_token=mask, **changes))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("layers", [1, None])
def test_ids_equal_plain_decoding(temperature, layers):
    target, draft = language_model(), drafter(layers=layers)
    accepted = 0
    for seed in range(3):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(PROMPT))
        expected = plain(target, PROMPT, tokens=20, choose=choose)
        for length in (1, 3, 7):
            found, drafted, right = run(
                target, draft, PROMPT, tokens=20, draft_length=length, choose=choose
            )
            assert found == expected
            assert drafted > 0
            accepted += right
    assert accepted > 0 or layers == 1


def test_the_guesses_are_what_the_masks_say_and_no_mask_stays():
    draft = drafter()
    choose = policy()
    with torch.no_grad():
        ids = torch.tensor([PROMPT + [MASK] * 3])
        said = draft.model.network(ids).logits[0, -4:].argmax(-1).tolist()
    draft.prefill(PROMPT[:-1])
    for _ in range(2):
        assert list(draft.propose(PROMPT, 4, choose).tokens) == said
        assert draft.model.cache.length == len(PROMPT)
        draft.settle(len(PROMPT) - 1)


def test_the_masks_stay_within_the_draft_s_context():
    draft = drafter()
    text = [5] * (draft.model.context - 2)
    assert 0 < len(draft.propose(text, 7, policy()).tokens) <= 2
    assert not draft.propose([5] * draft.model.context, 7, policy()).tokens
    assert draft.pause.code == "draft_context_full"


@pytest.mark.parametrize("mask", [-1, 100_000, "x"])
def test_a_mask_that_is_no_token_is_refused_by_its_number(mask):
    with pytest.raises(DraftRefused) as refused:
        drafter(mask)
    assert str(mask) in refused.value.reason.values.values()


@pytest.mark.parametrize(("settings", "kind"), [({}, "model"), ({"pard_token": MASK}, "parallel")])
def test_a_draft_with_a_mask_drafts_by_its_own_format(settings, kind, monkeypatch):
    monkeypatch.setattr("engine.session.difference", lambda ours, theirs: None)
    draft = SimpleNamespace(model=language_model(**settings))
    assert drafter_of(None, draft, None, None).name == kind
