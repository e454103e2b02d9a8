"""What holds of every way to draft: no token changed, whatever the target, the settings, the
length, the stop, the edit; no distribution shifted; nothing left behind."""

import functools
import gc
import statistics
from dataclasses import dataclass, replace

import pytest
import torch
from scipy import stats

from engine.api import Drafting, Finish, Message, Sampling
from engine.controller import FixedLength
from engine.decode import decode
from engine.drafters import chain
from engine.session import Session
from tests import assistants
from tests.drafts import ASSISTANTS, EVERY, LOOKUPS, built, lean, write_all
from tests.families import FAMILIES
from tests.tiny import language_model, only_drafter, plain, policy, run

TARGETS = {
    "llama": {},
    # 24 tokens are looked at
    "sliding window": FAMILIES["gemma3"],
    "hybrid": FAMILIES["qwen3_next"],
    "blocks": {"max_position_embeddings": 2048},
}
REPEATING = list(b"abc abd abc abd abc ab")
COMPUTED = tuple(name for name in EVERY if name not in LOOKUPS)
TRIES = 160
GRID = [(0.0, 7), (0.8, 3)]


def kinds_for(name):
    """The targets that it drafts for."""
    return ["gemma 4"] if name in ASSISTANTS else list(TARGETS)


def home(name):
    """The target that it is tried on where one is enough."""
    return kinds_for(name)[0]


@pytest.fixture(autouse=True)
def short_matches(monkeypatch):
    monkeypatch.setattr(chain, "MATCH", 3)  # or there is nothing to find in texts as short as these


@functools.cache
def target_of(kind):
    """Each once."""
    if kind == "gemma 4":
        return assistants.target()
    found = language_model(**TARGETS[kind])
    lean(found.network)
    if kind == "blocks":
        found.compute_in_blocks()
    return found


@functools.cache
def repeating(kind):
    """A prompt that goes on as the target does, which repeats itself."""
    target = target_of(kind)
    target.tell()
    return REPEATING + plain(target, REPEATING, tokens=40, choose=policy())


@functools.cache
def expected(kind, temperature):
    """The plain texts behind two prompts."""
    return [
        plain(target_of(kind), prompt, tokens=18, choose=policy(temperature=temperature))
        for prompt in (REPEATING, repeating(kind))
    ]


@pytest.mark.parametrize(("name", "kind"), [(n, kind) for n in EVERY for kind in kinds_for(n)])
def test_ids_equal_plain_decoding(name, kind, tmp_path):
    """EXA-1 and RBK-1, up to the window and past it."""
    target, prompts = target_of(kind), (REPEATING, repeating(kind))
    wanted = [expected(kind, temperature) for temperature, _ in GRID]
    drafter = built(name, target, tmp_path / "h")
    drafted = accepted = 0
    for (temperature, length), texts in zip(GRID, wanted, strict=True):
        choose = policy(temperature=temperature)
        for prompt, text in zip(prompts, texts, strict=True):
            found, *counts = run(
                target, drafter, prompt, tokens=18, draft_length=length, choose=choose
            )
            assert found == text
            drafted, accepted = drafted + counts[0], accepted + counts[1]
    assert 0 < accepted < drafted


class Paced:
    """A drafter that ends a draft before a token of which it is no surer than `bar`, but drafts at
    `least` so many."""

    def __init__(self, drafter, least=0):
        self.drafter, self.least, self.bar, self.told = drafter, least, -99.0, []

    def __getattr__(self, name):
        return getattr(self.drafter, name)

    def propose(self, tokens, limit, choose):
        self.asked = []
        return self.drafter.propose(tokens, limit, replace(choose, pace=self.pace))

    def pace(self, sure):
        self.asked.append(sure)
        if len(self.asked) <= self.least:
            return 99
        self.told.append(sure)
        return 99 if sure > self.bar else len(self.asked) - 1


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_sure_is_drafted_longer(name, tmp_path):
    target, prompt = target_of(home(name)), repeating(home(name))
    drafter = built(name, target, tmp_path / "h")
    target.cache.empty()
    target.feed(prompt[:-1])
    paced = Paced(drafter)

    def drafted(by=paced, **settings):
        by.settle(len(prompt) - 1)
        return by.propose(prompt, 3, policy(**settings)).tokens

    whole = drafted(drafter)
    assert drafted() == whole
    asked = paced.asked
    assert len(asked) == len(whole)
    for bar in asked:
        paced.bar = bar
        assert drafted() == whole[: next(i for i, sure in enumerate(asked) if sure <= bar)]
    paced.bar = sum(asked) / len(asked)
    cold, hot = (len(drafted(temperature=temperature)) for temperature in (0.05, 20.0))
    target.tell()
    assert cold > hot


@pytest.mark.parametrize("name", COMPUTED)
def test_ids_are_the_same_at_any_pace(name, tmp_path):
    target, prompt = target_of(home(name)), repeating(home(name))
    text, choose = expected(home(name), 0.8)[1], policy(temperature=0.8)
    paced = Paced(built(name, target, tmp_path / "h"))
    drafted = []
    for _ in range(2):
        found, *counts = run(target, paced, prompt, tokens=18, draft_length=3, choose=choose)
        assert found == text
        drafted.append(counts[0])
        paced.bar = statistics.median(paced.told)
    target.tell()
    assert drafted[0] > drafted[1] > 0


@pytest.mark.parametrize("name", EVERY)
def test_the_ratio_rule_does_not_shift_the_distribution(name, tmp_path):
    """Chi-square through the loop, of two tokens in a row; how long is drafted follows from how
    sure it is behind the first, too."""
    target, prompt = target_of(home(name)), repeating(home(name))
    warm = policy(temperature=3.0, top_k=4)
    (first,) = warm.distributions(target_logits(target, prompt), prompt)
    exact = [dict(zip(first.ids.tolist(), first.probs, strict=True)), {}]
    for token, chance in exact[0].items():
        (row,) = warm.distributions(target_logits(target, [*prompt, token]), [*prompt, token])
        for then, p in zip(row.ids.tolist(), row.probs, strict=True):
            exact[1][then] = exact[1].get(then, 0.0) + chance * p
    paced = Paced(built(name, target, tmp_path / "h"), least=1)
    target.cache.empty()
    counts, drafted, accepted = [dict.fromkeys(each, 0) for each in exact], 0, 0
    for seed in range(TRIES):
        target.cache.crop_to(len(prompt) - 1)
        paced.settle(len(prompt) - 1)
        tokens = list(prompt)
        choose = policy(temperature=3.0, top_k=4, seed=seed, verification="rejection")
        for _, one in decode(target, paced, FixedLength(2), tokens, choose, limit=len(prompt) + 3):
            drafted, accepted = drafted + one.drafted, accepted + one.accepted
            if len(tokens) > len(prompt) + 1:
                break
        for place in range(2):
            counts[place][tokens[len(prompt) + place]] += 1
        if seed == 20 and paced.told:
            paced.bar = statistics.median(paced.told)
    target.tell()
    assert 0 < accepted < drafted
    for found, wanted in zip(counts, exact, strict=True):
        often = [token for token, p in wanted.items() if p * TRIES >= 5]
        seen, right = [found[t] for t in often], [TRIES * wanted[t] for t in often]
        seen, right = [*seen, TRIES - sum(seen)], [*right, max(TRIES - sum(right), 1e-9)]
        assert stats.chisquare(seen, right).pvalue > 1e-3


def target_logits(target, tokens):
    target.tell()
    target.cache.empty()
    return target.forward(tokens)


# --- in a session


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("drafts")
    write_all(root)
    return root


USER = [Message("user", "abc abd abc abd abc ab")]
FULL, ALL = [Message("user", "abc abd " * 57)], {"temperature": 0.0, "max_tokens": None}


def answer(session, messages=USER, length=4, **settings):
    sampling = Sampling(**{"temperature": 0.8, "seed": 3, "max_tokens": 24, **settings})
    return list(session.reply(messages, sampling, Drafting(length)))


def ids_of(chunks):
    return [token for chunk in chunks for token in chunk.token_ids]


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks)


def again(session, chunks):
    """The same question once more, behind its answer."""
    vocabulary = session.target.loaded.vocabulary
    return [*USER, Message("assistant", text_of(chunks), tuple(ids_of(chunks)), vocabulary), *USER]


def chat(session, length=4):
    """Two turns, an edit, the first again at other settings."""
    first = answer(session, length=length)
    return [
        first,
        answer(session, again(session, first), length),
        answer(session, [Message("user", "abc abX äöü 😀 abc abX")], length),
        answer(session, length=length, temperature=0.0),
        answer(session, length=length, seed=8, repetition_penalty=1.2, logit_bias={97: -1e9}),
    ]


@dataclass
class Plain:
    """What a target answers without a draft: a chat; the chat that fills the context; one that asks
    `twice`, so that what it is going to say stands there already."""

    chat: list
    full: list
    twice: list
    said: list


@pytest.fixture(scope="module")
def sessions(root):
    """One for each target, and what it answers without a draft."""
    made = {}

    def of(kind):
        if kind not in made:
            session = Session(root / f"{kind} cache")
            session.load_target(root / kind)
            twice = again(session, answer(session, temperature=0.0))
            said = answer(session, twice, temperature=0.0)
            made[kind] = session, Plain(chat(session), answer(session, FULL, **ALL), twice, said)
        return made[kind]

    yield of
    for session, _ in made.values():
        session.close()


@pytest.fixture(params=EVERY)
def pair(request, sessions, root):
    name = request.param
    session, without = sessions(home(name))
    session.choose_draft(name if name in (*LOOKUPS, "mtp") else root / name)
    return session, without


@pytest.fixture
def session(pair):
    return pair[0]


@pytest.fixture
def without(pair):
    return pair[1]


def counted(chunks):
    """Every drafted token was accepted, rejected or ignored."""
    usage = chunks[-1].usage
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted
    return usage


def test_turns_edits_and_settings_give_the_same_ids(session, without):
    plain_chat = [ids_of(one) for one in without.chat]
    accepted = 0
    for length in (7, None):
        found = chat(session, length)
        assert [ids_of(one) for one in found] == plain_chat
        accepted += sum(counted(one).accepted for one in found)
    assert accepted > 0


def ended_in_a_draft(chunks):
    """Whether the last token was a guess."""
    return [chunk for chunk in chunks if chunk.token_ids][-1].drafted[-1]


def test_an_end_token_anywhere_in_a_block_ends_everything(session, without):
    """STP-1: over two blocks and more."""
    free, ends = ids_of(without.said), session.target.tokenizer.eos_ids
    within = 0
    try:
        for end in dict.fromkeys(free[9:17]):
            session.target.tokenizer.eos_ids = frozenset({259, end, 261})
            chunks = answer(session, without.twice, temperature=0.0)
            assert ids_of(chunks) == free[: free.index(end) + 1]
            assert chunks[-1].finish is Finish.STOP
            assert counted(chunks).tokens == free.index(end) + 1
            within += ended_in_a_draft(chunks)
    finally:
        session.target.tokenizer.eos_ids = ends
    assert within > 0
    assert ids_of(answer(session, without.twice, temperature=0.0)) == free


def test_text_ends_before_a_stop_string_anywhere_in_a_block(session, without):
    """STP-2."""
    text, within = text_of(without.said), 0
    for first in range(1, 20, 3):
        stop = text[first : first + 3]
        chunks = answer(session, without.twice, 20, temperature=0.0, stop=(stop,))
        assert text_of(chunks) == text.partition(stop)[0]
        counted(chunks)
        within += ended_in_a_draft(chunks)
    assert within > 0
    assert ids_of(answer(session, without.twice, temperature=0.0)) == ids_of(without.said)


def test_a_chat_runs_into_the_end_of_the_context(session, without):
    """RBK-2 c."""
    chunks = answer(session, FULL, length=7, **ALL)
    assert chunks[-1].finish is Finish.CONTEXT
    usage = counted(chunks)
    assert usage.prompt_tokens + usage.tokens == 512
    assert usage.drafted > 0
    assert ids_of(chunks) == ids_of(without.full)
    assert ids_of(answer(session)) == ids_of(without.chat[0])


def test_nothing_is_left_behind_after_fifty_answers(session):
    def held():
        gc.collect()
        tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
        return len(tensors), sum(t.numel() for t in tensors), sizes(only_drafter(session))

    for i in range(50):
        answer(session, [Message("user", f"abc ab{i % 5}")], max_tokens=2)
        if i == 4:
            first = held()
    assert held() == first


def sizes(drafter):
    """How much of a chat it holds, in lists and tables."""
    parts = [vars(part) for part in (drafter, *vars(drafter).values()) if hasattr(part, "__dict__")]
    held = (value for part in parts for value in part.values())
    return sum(len(value) for value in held if isinstance(value, list | dict | bytearray))
