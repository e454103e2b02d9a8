"""Targets that cannot simply be cut back: running states, windows, and mixtures of experts.

Their matrices are scaled up, so that a state that was not put back shows in the text.
"""

import functools
import itertools
import weakref
from functools import partial

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicSlidingWindowLayer

from engine import running as module
from engine.api import Drafting, Finish, Message, Sampling
from engine.drafters import NGramDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.families import FORGETTING, REWINDABLE
from engine.model import LanguageModel
from engine.roles import PREFILL_CHUNK
from engine.running import KEPT_STATES, States
from engine.session import Session
from engine.verify import Draft
from tests.families import FAMILIES, tiny
from tests.folders import IM_END, tiny_config, write_model
from tests.tiny import Adversary, language_model, plain, policy, run

SCALE = 8.0
PROMPT = list(b"the cat sat on the mat, the cat sat on the ")
TOKENS = 24
RUNNING = ("qwen3_5_text", "mamba2", "lfm2", "falcon_h1", "mamba")
WINDOWED = ("gemma3_text",)
MIXTURES = ("mixtral", "olmoe", "qwen3_moe")


def scaled(model_type: str) -> LanguageModel:
    settings = tiny(model_type)
    settings.tie_word_embeddings = False  # tied and scaled, it would repeat its last token
    if model_type in WINDOWED:
        settings.sliding_window = 16
        settings.layer_types = ["sliding_attention"] * 3 + ["full_attention"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = AutoModelForCausalLM.from_config(settings, dtype=torch.float32).eval()
    for name, parameter in network.requires_grad_(False).named_parameters():
        if parameter.dim() > 1:
            parameter *= 4.0 if model_type in FORGETTING and "layers" in name else SCALE
    return LanguageModel(network, 320)


@pytest.fixture(scope="module")
def target():
    """Each model once."""
    return functools.cache(scaled)


class Known(Adversary):
    """Proposes the answer that it was told; every `wrong`-th token of the text is another one."""

    def __init__(self, text: list[int], wrong: int = 10**9) -> None:
        self.text, self.wrong = text, wrong

    def propose(self, tokens, limit, policy):
        places = range(len(tokens), min(len(tokens) + limit, len(self.text)))
        guess = (self.text[i] if i % self.wrong else (self.text[i] + 1) % 250 for i in places)
        return Draft(tuple(guess))


class Turns:
    """These lengths, one after the other."""

    pause = None

    def __init__(self, *lengths):
        self._lengths = itertools.cycle(lengths)

    @property
    def length(self):
        return next(self._lengths)

    def observe(self, stats):
        pass


def guesses(text):
    return {
        "ngram": NGramDrafter(),
        "model": SmallModelDrafter(language_model(layers=1)),
        "wrong": Adversary(),
        "right": Known(text),
        "half": Known(text, wrong=5),
    }


def differences(model, grid, *, seeds=(7,), prompt=PROMPT):
    """Which of `grid`, (temperature, drafter, length), is not the plain text."""
    found = []
    for seed, temperature in itertools.product(seeds, sorted({t for t, *_ in grid})):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        expected = plain(model, prompt, tokens=TOKENS, choose=choose)
        assert len(set(expected)) > 2
        drafters = guesses([*prompt, *expected])
        for _, name, length in (x for x in grid if x[0] == temperature):
            got, drafted, accepted = run(
                model, drafters[name], prompt, tokens=TOKENS, draft_length=length, choose=choose
            )
            if got != expected:
                found.append((seed, temperature, name, length))
            assert name != "right" or accepted == drafted > 0
            assert name != "half" or accepted > 0
    return found


FEW = [(0.0, "ngram", 3), (0.0, "half", 7), (1.0, "half", 2), (1.0, "model", 3),
       (1.0, "wrong", 4), (1.0, "right", 7)]  # fmt: skip


@pytest.mark.parametrize("kind", [*RUNNING, *WINDOWED, *MIXTURES])
def test_a_drafted_text_is_the_plain_one(target, kind):
    assert differences(target(kind), FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*RUNNING, *WINDOWED, *MIXTURES])
def test_it_is_with_drafts_of_every_length(target, kind):
    drafters = itertools.cycle(("ngram", "half", "model", "right", "wrong"))
    lengths = (1, 4, 7, 2, 5, 3, 6)
    grid = [(t, name, n) for t, name, n in zip((0.0, 1.0) * 7, drafters, lengths * 2, strict=False)]
    assert differences(target(kind), grid, seeds=(3,)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(REWINDABLE - set(RUNNING)))
def test_it_is_in_every_family_that_is_said_to_be_rewindable(kind):
    assert differences(scaled(kind), FEW) == []


@pytest.mark.parametrize("kind", RUNNING)
def test_without_the_restore_the_text_is_another_one(target, kind, monkeypatch):
    """The negative control of all these tests."""
    monkeypatch.setattr(States, "restore", lambda *_: None)
    assert differences(target(kind), [(0.0, "half", 7), (1.0, "wrong", 4)])
    target(kind).cache.empty()


@pytest.mark.parametrize("kind", WINDOWED)
def test_without_the_cut_a_window_gives_another_text(target, kind, monkeypatch):
    monkeypatch.setattr(DynamicSlidingWindowLayer, "crop", lambda *_: None)
    assert differences(target(kind), [(0.0, "half", 7), (1.0, "wrong", 4)])
    target(kind).cache.empty()


@pytest.mark.parametrize("kind", [*RUNNING, *WINDOWED])
def test_a_round_with_drafts_and_then_one_without(target, kind):
    """vllm#39273: accept two, then draft nothing."""
    lengths = Turns(2, 0)
    assert differences(target(kind), [(0.0, "right", lengths), (1.0, "half", lengths)]) == []


@pytest.mark.parametrize("kind", [*RUNNING, *WINDOWED])
def test_a_long_prompt_is_fed_in_chunks_that_go_on_from_each_other(target, kind):
    """Also in families whose chunks do not, and past a window."""
    model = target(kind)
    tokens = [(7 * i * i + i) % 250 for i in range(PREFILL_CHUNK + 30)]
    model.cache.empty()
    model.feed(tokens[:-1])
    found = model.forward(tokens[-1:])
    with torch.inference_mode():
        whole = model.network(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1:]
    assert float((found - whole).norm() / whole.norm()) < 1e-2


@pytest.mark.parametrize("kind", RUNNING)
def test_within_a_pass_any_row_can_be_gone_back_to_and_again_further(target, kind):
    model = target(kind)
    expected = {}
    for length in range(len(PROMPT) - 8, len(PROMPT)):
        model.cache.empty()
        model.feed(PROMPT[: len(PROMPT) - 8])
        expected[length] = model.forward([*PROMPT[len(PROMPT) - 8 : length], 9])
    for first, then in itertools.combinations(reversed(expected), 2):
        model.cache.empty()
        model.feed(PROMPT[: len(PROMPT) - 8])
        model.forward(PROMPT[len(PROMPT) - 8 :], rows=8)
        for length in (first, then, then):
            model.cache.crop_to(length)
            assert model.cache.length == length
        assert torch.allclose(model.forward([9]), expected[then], atol=1e-3)


def test_as_many_copies_are_held_as_a_pass_has_rows_and_a_few(target):
    """However long the text is."""
    model = target("mamba2")
    model.cache.empty()
    model.feed(PROMPT[:1])
    one = model.cache.nbytes
    for _ in range(KEPT_STATES + 3):
        model.feed([5] * PREFILL_CHUNK)
        model.forward([7] * 5, rows=5)
        assert model.cache.nbytes <= one * (1 + KEPT_STATES + 5)
    held = [weakref.ref(tensor) for tensor in model.cache._tensors()]
    model.cache.empty()
    assert model.cache.nbytes == 0
    assert {tensor() for tensor in held} == {None}


@pytest.mark.parametrize("kind", RUNNING)
def test_states_that_are_kept_lie_apart_and_the_last_stays(target, kind, monkeypatch):
    """An edit near the end costs little, one at the front at most what lies before a kept one."""
    monkeypatch.setattr(module, "KEPT_STATES", 2)
    model = target(kind)
    model.cache.empty()
    tokens = [(7 * i * i + i) % 250 for i in range(300)]
    for start in range(0, 300, 50):
        model.feed(tokens[start : start + 50])
    for length, held in ((290, 256), (255, 128), (127, 0)):
        model.cache.crop_to(length)
        assert model.cache.length in (held, *range(held, length + 1))
        assert length - model.cache.length < PREFILL_CHUNK + 50


# Chats

FOLDERS = {
    "mamba2": FAMILIES["mamba2"],
    "lfm2": FAMILIES["lfm2"],
    "qwen3_next": FAMILIES["qwen3_next"],
    "gemma3": FAMILIES["gemma3"],
}
CHAT = [Message("user", "abc abc abc abd, and " + "so on " * 22)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Folders of models whose matrices are scaled up, and of a draft for them."""
    from safetensors.torch import load_file, save_file

    root = tmp_path_factory.mktemp("models")
    for name, config in FOLDERS.items():
        file = write_model(root / name, config=dict(config), sharpen=1.0) / "model.safetensors"
        state = {n: t * SCALE if t.dim() == 2 else t for n, t in load_file(file).items()}
        save_file(state, file, metadata={"format": "pt"})
    write_model(root / "draft", config=tiny_config(eos_token_id=IM_END), layers=1)
    return root


@pytest.fixture(scope="module", params=FOLDERS)
def session(request, root):
    session = Session(root / "cache")
    assert session.load_target(root / request.param, precision="fp32").bit_exact
    yield session
    session.close()


def reply(session, messages, length=None, stopped=lambda: False, **sampling):
    wanted = Sampling(**{"temperature": 0.8, "seed": 5, "max_tokens": 20, **sampling})
    return list(session.reply(messages, wanted, Drafting(length), stopped=stopped))


def ids(chunks):
    return [token for chunk in chunks for token in chunk.token_ids]


def told(session, found):
    text = session.target.tokenizer.decode(found)
    return Message("assistant", text, tuple(found), session.target.loaded.vocabulary)


def way_of_a_chat(session, length=None):
    """Two turns, an edit of the first message, the first turn once more, stops."""
    first = ids(reply(session, CHAT, length))
    more = [*CHAT, told(session, first), Message("user", "abc abc abd")]
    yield first
    yield ids(reply(session, more, length))
    yield ids(reply(session, more, length))
    yield ids(reply(session, [Message("user", CHAT[0].content.replace("abd", "abX"))], length))
    yield ids(reply(session, CHAT, length, temperature=0.0))
    for end in (4, 7, 11):
        stop = session.target.tokenizer.decode(first[end - 1 : end + 1])
        if stop and "\ufffd" not in stop:
            chunks = reply(session, CHAT, length, stop=(stop,))
            assert chunks[-1].finish is Finish.STOP
            yield ids(chunks)
            yield ids(reply(session, CHAT, length))
    yield ids(reply(session, more, length))


def test_a_chat_is_the_same_with_every_draft(session, root):
    """RBK-1, STP-2: turns, edits and stops within a block, with fixed and chosen lengths."""
    session.choose_draft("none")
    expected = list(way_of_a_chat(session))
    assert expected[1] == expected[2] == expected[-1] != expected[0]
    for draft, length in (("ngram", 7), ("ngram", None), (root / "draft", 4)):
        session.choose_draft(draft)
        assert list(way_of_a_chat(session, length)) == expected, (draft, length)


def test_the_answer_once_more_feeds_a_chunk_at_most(session):
    session.choose_draft("ngram")
    reply(session, CHAT, 4)
    again = reply(session, CHAT, 4)[-1].usage
    assert again.prompt_tokens - again.cached_tokens <= PREFILL_CHUNK
    assert again.cached_tokens > 0


def test_an_answer_cancelled_within_a_pass_does_not_show(session):
    session.choose_draft("ngram")

    def stops_after(asked, count):
        return next(asked) > count

    expected = ids(reply(session, CHAT, 4))
    for count in (1, 3, 20, 45):
        cut = reply(session, CHAT, 4, stopped=partial(stops_after, itertools.count(), count))
        assert cut[-1].finish is Finish.CANCELLED
        assert ids(cut) == expected[: len(ids(cut))]
        assert ids(reply(session, CHAT, 4)) == expected


def test_a_full_context_and_a_short_prompt(session):
    """RBK-2 b and c: one token, and no room for a draft."""
    session.choose_draft("ngram")
    short = reply(session, [Message("user", "H")], 7, max_tokens=1)
    assert (len(ids(short)), short[-1].usage.drafted) == (1, 0)
    context = session.measure(CHAT) + 6
    try:
        session.limit_context(context)
        full = reply(session, CHAT, 7, max_tokens=None)
        assert (full[-1].finish, len(ids(full))) == (Finish.CONTEXT, 6)
    finally:
        session.limit_context(None)
    session.choose_draft("none")
    assert ids(full) == ids(reply(session, CHAT))[:6]
