"""A draft that is hardly ever right is told of: after enough rounds, once an answer, no lookup."""

import pytest

from engine.api import Drafting, Message, RoundStats, Sampling
from engine.drafters.auto import Auto
from engine.loading import load
from engine.mismatch import ROUNDS, Mismatch
from engine.session import Session
from engine.verify import Draft
from tests.folders import write_model


def after(rounds, right, drafted=4, name="model"):
    """What is said when one round in so many was right in its first token."""
    found = Mismatch(["model"])
    for number in range(rounds):
        found.observe(RoundStats(drafted, int(right and number % right == 0), drafter=name))
    return found.reason


def test_fifty_rounds_below_five_percent_are_told():
    said = after(ROUNDS, right=0)
    assert said.code == "mismatched_pair"
    assert said.values == {"accepted": 0, "judged": 50, "rounds": 50}
    assert "0 of 50 tokens" in said.text


@pytest.mark.parametrize(
    ("rounds", "right", "name"),
    [(ROUNDS - 1, 0, "model"), (ROUNDS, 10, "model"), (90, 0, "suffix")],
)
def test_fewer_rounds_better_ones_and_lookups_are_not(rounds, right, name):
    assert after(rounds, right, name=name) is None


def test_a_long_draft_is_judged_up_to_its_first_wrong_token():
    """One of sixteen each time: far below 5 % of all, half of what was judged."""
    assert after(ROUNDS, right=1, drafted=16) is None


def test_what_was_long_ago_does_not_count():
    found = Mismatch(["model"])
    for accepted in (0,) * ROUNDS + (4,) * 5:
        found.observe(RoundStats(4, accepted, drafter="model"))
    assert found.reason is None
    found.forget()
    for _ in range(ROUNDS - 1):
        found.observe(RoundStats(4, 0, drafter="model"))
    assert found.reason is None


class Wrong:
    """Guesses a token that never comes."""

    name, default_length, pause = "model", 4, None

    def __init__(self, token):
        self.token = token

    def prefill(self, tokens):
        pass

    def propose(self, tokens, limit, policy):
        return Draft((self.token,) * limit)

    def settle(self, length):
        pass

    def reset(self):
        pass


def test_a_chat_tells_of_it_once_an_answer(tmp_path):
    session = Session(tmp_path, load(write_model(tmp_path / "m"), cache_folder=tmp_path / "c"))
    plain = ids(list(session.reply([Message("user", "abc")], Sampling(0, max_tokens=60))))
    never = next(token for token in range(250) if token not in plain)
    session.use(Auto([Wrong(never)]))
    told = []
    for _ in range(2):
        chunks = list(
            session.reply([Message("user", "abc")], Sampling(0, max_tokens=60), Drafting(2))
        )
        assert ids(chunks) == plain
        told.append([n.code for c in chunks for n in c.notices].count("mismatched_pair"))
    assert told == [1, 1]
    session.close()


def ids(chunks):
    return [token for chunk in chunks for token in chunk.token_ids]
