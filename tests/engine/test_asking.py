"""Heats on a session that is in use: real answers of tiny models, and what they leave behind."""

import pytest

from engine.api import Drafting, Message, Sampling
from engine.bench import asking
from engine.bench.asking import Heat, Manner
from engine.bench.report import rows_of
from engine.bench.runs import Way
from engine.errors import Cancelled, DraftRefused
from engine.loading import load
from engine.session import Session
from tests.folders import IM_END, tiny_config, write_json, write_model

PROMPTS = (("abc abc abc", "more"), ("one two one two",))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    config = tiny_config(eos_token_id=IM_END)
    write_model(root / "target", config=dict(config), template=None)
    write_model(root / "draft", config=dict(config), layers=1, template=None)
    return root


@pytest.fixture
def session(folders):
    made = Session(folders / "cache")
    made.load_target(folders / "target", precision="fp32")
    yield made
    made.close()


def heat(session, choice="none", again=0, tokens=12):
    kind = choice if isinstance(choice, str) else "model"
    draft = None if isinstance(choice, str) else "draft"
    way = Way("slipstream", kind, draft, "fp32", "fp32" if draft else None, None)
    sampling = Sampling(temperature=0.0, seed=0, max_tokens=tokens)
    manner = Manner(way, sampling, Drafting(4), session.target.loaded.vocabulary)
    return Heat(manner, choice, None, PROMPTS, again)


def measured(session, choice="none", **changes):
    return asking.run(session, heat(session, choice, **changes), lambda _: None, lambda: False)


def test_heats_on_one_target_sum_up_to_rows_with_equal_ids(session, folders):
    runs = [run for c in ("none", "ngram", folders / "draft") for run in measured(session, c)]
    plain, ngram, model = rows_of(runs, ["a", "b"])
    assert [row.same for row in (plain, ngram, model)] == [2, 2, 2]
    assert model.acceptance_rate > 0
    assert model.memory_bytes > plain.memory_bytes > 0
    assert set(model.by_category) == {"a", "b"}


def test_progress_counts_prompts(session):
    heard = []
    asking.run(session, heat(session), heard.append, lambda: False)
    assert [(p.done, p.total) for p in heard] == [(1, 2), (2, 2)]


def test_every_prompt_starts_with_empty_caches(session):
    first, second = measured(session), measured(session)
    assert [run.answers[0].usage.cached_tokens for run in first + second] == [0] * 4
    assert [[a.ids for a in run.answers] for run in first] == [
        [a.ids for a in run.answers] for run in second
    ]


def test_one_draft_at_a_time_is_loaded_beside_the_target(session, folders, monkeypatch):
    """Two at once may not fit where each does."""
    alive = []

    def counted(*args, load=load, **options):
        made = load(*args, **options)
        alive.append(made)
        close = made.close
        made.close = lambda: (alive.remove(made), close())[1]
        return made

    monkeypatch.setattr("engine.session.load", counted)
    target = session.target
    for choice in (folders / "draft", "ngram", folders / "draft"):
        measured(session, choice)
        assert len(alive) == (choice != "ngram")
    assert session.target is target


def test_a_stop_ends_a_heat_in_an_answer(session):
    calls = iter(range(1_000))
    with pytest.raises(Cancelled):
        asking.run(session, heat(session, tokens=64), lambda _: None, lambda: next(calls) > 40)
    assert measured(session)  # and the next one runs


def test_a_draft_that_cannot_serve_is_refused_and_the_chat_goes_on(session, tmp_path):
    (tmp_path / "lora").mkdir()
    write_json(tmp_path / "lora" / "adapter_config.json", {})
    with pytest.raises(DraftRefused):
        measured(session, tmp_path / "lora")
    session.choose_draft("ngram")
    chunks = list(session.reply([Message("user", "abc")], Sampling(max_tokens=4, temperature=0.0)))
    assert sum(len(chunk.token_ids) for chunk in chunks) == 4
