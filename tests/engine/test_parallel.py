"""PARD: a draft model's guesses in one pass behind masks. What holds of every draft is tested in
test_drafters.py."""

from types import SimpleNamespace

import pytest
import torch

from engine.drafters.parallel import ParallelDrafter
from engine.errors import DraftRefused
from engine.session import Session, drafter_of
from tests.folders import tiny_config, write_model
from tests.tiny import language_model, only_drafter, policy

MASK = 260
PROMPT = [(7 * j) % 250 for j in range(40)]


def drafter():
    return ParallelDrafter(language_model(), MASK)


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


@pytest.mark.parametrize(("mask", "kind"), [(None, "model"), (MASK, "parallel")])
def test_a_draft_with_a_mask_drafts_by_its_own_format(mask, kind, monkeypatch):
    monkeypatch.setattr("engine.session.difference", lambda ours, theirs: None)
    loaded = SimpleNamespace(info=SimpleNamespace(mask=mask))
    draft = SimpleNamespace(model=language_model(), loaded=loaded)
    assert drafter_of(None, draft, None, None).name == kind


def test_a_mask_that_is_no_token_is_refused_before_a_weight_is_read(tmp_path, monkeypatch):
    session = Session(tmp_path / "cache")
    session.load_target(write_model(tmp_path / "target"))
    session.choose_draft(write_model(tmp_path / "pard", config=tiny_config(pard_token=MASK)))
    assert only_drafter(session).name == "parallel"
    monkeypatch.setattr("engine.session.load", None)
    with pytest.raises(DraftRefused) as refused:
        session.choose_draft(write_model(tmp_path / "bad", config=tiny_config(pard_token=262)))
    assert refused.value.reason.values["value"] == 262
    session.close()
