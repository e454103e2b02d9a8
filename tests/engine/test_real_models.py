"""Real models, in the folder that SLIPSTREAM_TEST_MODELS names: the same answers with a draft.

CI has the starter model only; the true pair of 1.5B and 0.5B is for a developer's machine.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.api import Drafting, Finish, Message, Sampling
from engine.loading import load
from engine.session import Session
from tests.measure.memory import fit, hold

pytestmark = pytest.mark.real_model

FOLDER = Path(os.environ.get("SLIPSTREAM_TEST_MODELS", "no models"))
STARTER = "smollm2-135m-instruct.q4_1.gguf"
TARGET = "qwen2.5-coder-1.5b-instruct.q4_k_m.gguf"
DRAFT = "qwen2.5-coder-0.5b-instruct.q4_k_m.gguf"
PROMPTS = [
    "Write a Python function that reverses a string.",
    "List the days of the week, then list them again.",
    "Explain what a hash table is in two sentences.",
    "Translate to French: the cat sleeps on the warm roof.",
    "Write a SQL query that counts the orders of each customer.",
    "What is 17 times 23? Show the steps.",
    "Name three uses of a paper clip.",
    "Write a haiku about rain.",
    "Fix this code: for i in range(10) print(i)",
    "Summarise: bees gather nectar, make honey and pollinate flowers.",
]


def model(name):
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"{name} is not in SLIPSTREAM_TEST_MODELS")
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def answers(session, prompts, tokens):
    """The ids and the last chunk of each answer, each from empty caches."""
    sampling = Sampling(temperature=0.0, max_tokens=tokens)
    for prompt in prompts:
        session.forget()
        chunks = list(session.reply([Message("user", prompt)], sampling, Drafting()))
        yield [i for c in chunks for i in c.token_ids], chunks


def assert_equal(session, draft, prompts, tokens, held=None):
    """`held`: the model that "auto" holds."""
    session.choose_draft("none")
    plain = [ids for ids, _ in answers(session, prompts, tokens)]
    session.choose_draft(draft, model=held)
    accepted = 0
    for expected, (ids, chunks) in zip(plain, answers(session, prompts, tokens), strict=True):
        assert ids == expected
        accepted += chunks[-1].usage.accepted
    assert accepted > 0


@pytest.fixture(scope="module")
def starter(cache):
    session = Session(cache)
    session.load_target(model(STARTER), precision="fp32")
    yield session
    session.close()


def test_the_starter_answers_and_stops_by_itself(starter):
    ((ids, chunks),) = answers(starter, ["What is the capital of France?"], 64)
    text = "".join(c.text for c in chunks)
    assert "Paris" in text
    assert chunks[-1].finish is Finish.STOP
    assert "<|im_end|>" not in text
    assert starter.target.tokenizer.decode(ids) == text


@pytest.mark.parametrize("draft", ["ngram", "suffix", "auto"])
def test_the_starter_answers_the_same_with_lookup(starter, draft):
    assert_equal(starter, draft, PROMPTS[:3], 40)


def test_a_second_turn_of_the_starter_is_prefilled_only_where_it_is_new(starter):
    starter.choose_draft("none")
    ((ids, chunks),) = answers(starter, PROMPTS[:1], 24)
    text = "".join(c.text for c in chunks)
    told = Message("assistant", text, tuple(ids), starter.target.loaded.vocabulary)
    turns = [Message("user", PROMPTS[0]), told, Message("user", "Thanks.")]
    second = list(starter.reply(turns, Sampling(temperature=0.0, max_tokens=4)))
    usage = second[-1].usage
    assert usage.cached_tokens >= chunks[-1].usage.prompt_tokens + len(ids) - 1


def test_the_terminal_prints_one_object(tmp_path):
    """Must show 2 of the first issue, as a user types it."""
    home = tmp_path / "home"
    (home / "models").mkdir(parents=True)
    (home / "models" / STARTER).symlink_to(model(STARTER))
    command = "chat --model starter --draft ngram --prompt".split()
    command += ["Count from 1 to 9, twice.", "--json", "--draft-length", "8"]
    command += "--max-tokens 64 --seed 1 --temperature 0".split()
    done = subprocess.run(
        [sys.executable, "-m", "app", *command],
        env=os.environ | {"SLIPSTREAM_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = json.loads(done.stdout)
    assert set(printed) >= {"text", "token_ids", "finish_reason", "stats"}
    stats = printed["stats"]
    assert stats["accepted"] + stats["rejected"] + stats["ignored"] == stats["drafted"] > 0
    assert stats["acceptance_rate"] == stats["accepted"] / stats["drafted"]
    assert len(stats["accepted_by_position"]) <= 8
    assert 1 <= len(printed["token_ids"]) <= 64
    assert stats["tokens_per_second"] > 0
    assert stats["time_to_first_token"] > 0


def test_the_true_pair_answers_as_the_target_alone(cache):
    """Must show 4 of the first issue: greedy, float32, 10 prompts of 48 tokens."""
    session = Session(cache)
    session.load_target(model(TARGET), precision="fp32")
    assert_equal(session, model(DRAFT), PROMPTS, 48)
    session.close()


def test_auto_answers_the_true_target_as_it_does_alone(cache):
    """With the 0.5B beside the lookups, int8."""
    session = Session(cache)
    session.load_target(model(TARGET), precision="int8")
    assert_equal(session, "auto", PROMPTS[:3], 32, model(DRAFT))
    session.close()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_starter_drafts_for_the_true_target_in_its_own_vocabulary(cache, temperature):
    """Greedy and drawn, int8; how many were right is printed."""
    session = Session(cache)
    session.load_target(model(TARGET), precision="int8")
    sampling = Sampling(temperature=temperature, seed=1, max_tokens=24)

    def answered(prompt):
        session.forget()
        chunks = list(session.reply([Message("user", prompt)], sampling, Drafting(4)))
        return [i for c in chunks for i in c.token_ids], chunks[-1].usage

    plain = [answered(prompt)[0] for prompt in PROMPTS[:3]]
    session.choose_draft(model(STARTER))
    drafted, accepted = 0, 0
    for expected, prompt in zip(plain, PROMPTS[:3], strict=True):
        ids, usage = answered(prompt)
        assert ids == expected
        drafted, accepted = drafted + usage.drafted, accepted + usage.accepted
    session.close()
    print(f"translated, temperature {temperature}: {accepted} of {drafted} accepted")
    assert accepted > 0.2 * drafted > 0


SMALLEST = "gemma-3-270m.q4_k_m.gguf"
ALL = (STARTER, SMALLEST, DRAFT, TARGET)


def within(expected, found):
    return abs(found / expected - 1) <= 0.03


@pytest.mark.parametrize("precision", ["int8", "bf16", "fp32"])
@pytest.mark.parametrize("name", ALL)
def test_what_a_model_takes_is_what_was_said(cache, name, precision):
    """Must show 1 of the issue on fit."""
    with contextlib.closing(load(model(name), cache_folder=cache, precision=precision)) as one:
        for context in (2048, 8192):
            said = fit(model(name), "--precision", precision, "--context", context)["parts"]
            assert within(one.model.memory_bytes, said["target_weights"])
            assert within(hold(one.model, context), said["target_kv"])


@pytest.mark.parametrize("precision", ["int8", "bf16", "fp32"])
def test_a_pair_takes_what_its_models_take(precision):
    for context in (2048, 8192):
        options = ("--precision", precision, "--context", context)
        alone, draft = (fit(model(name), *options)["parts"] for name in (TARGET, DRAFT))
        both = fit(model(TARGET), "--draft", model(DRAFT), *options)
        assert both["parts"]["target_weights"] == alone["target_weights"]
        assert both["parts"]["target_kv"] == alone["target_kv"]
        assert both["parts"]["draft_weights"] == draft["target_weights"]
        assert both["parts"]["draft_kv"] == draft["target_kv"]
        assert both["need"] == sum(both["parts"].values())


def test_of_four_models_only_the_twin_drafts_untranslated_for_the_true_target(
    tmp_path, monkeypatch
):
    """Must show 2 of the issue on fit, from a cold cache and without torch."""
    for name in ALL:
        model(name)
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    command = [sys.executable, "-X", "importtime", "-m", "app", "drafts", "--json"]
    done = subprocess.run([*command, str(model(TARGET))], capture_output=True, text=True)
    assert done.returncode == 0
    assert "torch" not in {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    here = {row["path"]: row for row in json.loads(done.stdout) if row["path"] is not None}
    twin = here.pop(str(model(DRAFT)))
    assert (twin["compatible"], twin["advice"]) == (True, "warn")
    assert round(twin["ratio"], 1) == 3.1
    for name in (STARTER, SMALLEST):
        assert here[str(model(name))]["compatible"] is False
        assert here[str(model(name))]["translated"] is True
        assert "Other vocabulary" in here[str(model(name))]["reason"]
