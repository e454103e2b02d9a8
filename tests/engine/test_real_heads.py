"""A published head beside its target, in the folders that SLIPSTREAM_TEST_HEAD and
SLIPSTREAM_TEST_TARGET name: the same answers, and guesses that are right.

Nobody has run it on a published head yet (README, "Models").
"""

import os
from pathlib import Path

import pytest

from engine.api import Drafting, Message, Sampling
from engine.session import Session
from tests.engine.test_real_models import PROMPTS

pytestmark = pytest.mark.real_head

# Of the first guesses; a head that is read a little wrongly has next to none.
LEAST = 0.4


def folder(variable):
    path = Path(os.environ.get(variable, "none"))
    if not path.exists():
        pytest.skip(f"{variable} names no folder")
    return path


def answers(session):
    for prompt in PROMPTS:
        session.forget()
        sampling = Sampling(temperature=0.0, max_tokens=64)
        chunks = list(session.reply([Message("user", prompt)], sampling, Drafting(3)))
        yield [token for chunk in chunks for token in chunk.token_ids], chunks[-1].usage


def test_a_published_head_is_exact_and_often_right(tmp_path):
    session = Session(tmp_path)
    try:
        session.load_target(folder("SLIPSTREAM_TEST_TARGET"))
        expected = [ids for ids, _ in answers(session)]
        session.choose_draft(folder("SLIPSTREAM_TEST_HEAD"))
        found = list(answers(session))
        assert [ids for ids, _ in found] == expected
        drafted, accepted = (
            sum(getattr(usage, name)[0] for _, usage in found)
            for name in ("drafted_at", "accepted_at")
        )
        assert accepted > LEAST * drafted > 0
    finally:
        session.close()
