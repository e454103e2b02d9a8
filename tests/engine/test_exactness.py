"""The same text whatever drafts and however it was fed; and where it is not so, it is found out."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine import exactness
from engine.api import Drafting, Message, Sampling
from engine.drafters import BUILT_IN
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Cancelled
from engine.exactness import attend, check, stamp
from engine.kernels import attention, decoder, linear
from engine.kernels.attention import BUCKET, NAME
from engine.loading import load
from engine.model import LanguageModel
from engine.runner import AnyRows
from engine.session import Session
from engine.states import Tap
from engine.verify import Draft
from tests.families import FAMILIES
from tests.folders import write_model
from tests.tiny import Adversary, language_model, plain, policy, run

REPOSITORY = Path(__file__).parents[2]
PRECISIONS = ("fp32", "bf16", "fp16", "int8", "int4")
RECURRENT = ("mamba2", "lfm2", "qwen3_next")
# Not these: experts of a layout that ours do not know, and what has tests of its own.
EXACT = [family for family in FAMILIES if family not in ("gpt_oss", *RECURRENT)]
# Nearly every precision, and families that differ in more than their names.
FEW = [
    ("llama", "int4"),
    *((family, "int8") for family in ("gemma3", "phi3")),
    ("qwen2_moe", "bf16"),
]
LOOKUPS = [name for name in BUILT_IN if name != "none"]
# Over a bucket's border, and over phi3's change of factors at 140.
PROMPT = [*range(60, 84)] * 5
TOKENS = 40
assert len(PROMPT) < BUCKET < 140 < len(PROMPT) + TOKENS


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def loaded(root):
    """Loads each family at each precision once."""
    made = {}

    def open_(family, precision):
        if (family, precision) not in made:
            folder = root / family
            if not folder.exists():
                config = dict(FAMILIES[family])
                write_model(folder, config=config, sharpen=1.0 if family in RECURRENT else 50.0)
            made[family, precision] = load(folder, cache_folder=root / "cache", precision=precision)
        return made[family, precision]

    yield open_
    for model in made.values():
        model.close()


class Faulty(SmallModelDrafter):
    """A model that is wrong at every third place."""

    def propose(self, tokens, limit, policy):
        draft = super().propose(tokens, limit, policy)
        wrong = ((t + 1) % 200 if i % 3 == 2 else t for i, t in enumerate(draft.tokens))
        return Draft(tuple(wrong), draft.rows)


def drafters(model):
    """The target itself is the draft that is always right."""
    copy = LanguageModel(model.network, model.context)
    return {
        **{name: BUILT_IN[name]() for name in LOOKUPS},
        "model": SmallModelDrafter(copy),
        "faulty": Faulty(LanguageModel(model.network, model.context)),
        "rubbish": Adversary(),
    }


def same_with_every_draft(model, grid):
    """Compares each of `grid`, (temperature, drafter, length), with plain; how many accepted."""
    accepted = dict.fromkeys(drafters(model), 0)
    guess = drafters(model)
    expected = {}
    for temperature, name, length in grid:
        choose = policy(temperature=temperature, answer_start=len(PROMPT))
        if temperature not in expected:
            expected[temperature] = plain(model, PROMPT, tokens=TOKENS, choose=choose)
        found, _, right = run(
            model, guess[name], PROMPT, tokens=TOKENS, draft_length=length, choose=choose
        )
        assert found == expected[temperature], (temperature, name, length)
        accepted[name] += right
    return accepted


@pytest.mark.parametrize(("family", "precision"), FEW)
def test_a_drafted_text_is_the_plain_one_to_the_bit(loaded, family, precision):
    opened = loaded(family, precision)
    assert opened.loaded.notes == ()
    assert opened.loaded.bit_exact
    assert opened.model.attends
    grid = [(0.0, "faulty", 16), (0.8, "model", 7), (0.8, "rubbish", 3)]
    grid += [(0.0, name, 3) for name in LOOKUPS]
    accepted = same_with_every_draft(opened.model, grid)
    assert accepted["model"] == 7 * TOKENS // 8
    assert accepted["faulty"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", EXACT)
def test_with_any_draft_of_any_length(loaded, family, precision):
    opened = loaded(family, precision)
    assert opened.loaded.bit_exact
    names = (*LOOKUPS, "model", "faulty", "rubbish")
    grid = list(itertools.product((0.0, 0.8), names, (1, 3, 7, 16)))
    accepted = same_with_every_draft(opened.model, grid)
    assert accepted["model"] > accepted["faulty"] > 0


@pytest.mark.parametrize("family", RECURRENT)
def test_a_running_state_is_exact_too(loaded, family):
    opened = loaded(family, "int8")
    assert opened.loaded.bit_exact
    assert opened.loaded.notes == ()
    same_with_every_draft(
        opened.model, [(0.0, "ngram", 3), (0.8, "faulty", 5), (0.8, "rubbish", 3)]
    )


def test_a_state_that_cannot_be_put_back_is_never_called_exact(loaded):
    """By luck a check of a few rows may pass."""
    opened = loaded("mamba2", "fp32")
    opened.model.runner = AnyRows(
        opened.model.network, opened.model.context, Tap(opened.model.network)
    )
    assert not check(opened.model)


def test_experts_of_another_layout_run_and_are_not_called_exact(loaded):
    opened = loaded("gpt_oss", "int8")
    assert not opened.loaded.bit_exact
    assert opened.model.attends
    assert opened.model.forward([1, 2, 3]).isfinite().all()


# --- what was fed before does not show

CHAT = [Message("user", "abc abc abc abd, and " + "so on " * 14)]
OTHER = [Message("user", "quite another chat")]
SAMPLING = Sampling(temperature=0.8, seed=5, max_tokens=16)


def answer(session, messages, length=None):
    chunks = list(session.reply(messages, SAMPLING, Drafting(length)))
    return [token for chunk in chunks for token in chunk.token_ids]


def two_turns(session, length=None, between=()):
    """The ids of two answers of one chat, with other chats in between."""
    first = answer(session, CHAT, length)
    for messages in between:
        answer(session, messages, length)
    text = session.target.tokenizer.decode(first)
    told = Message("assistant", text, tuple(first), session.target.loaded.vocabulary)
    return first, answer(session, [*CHAT, told, Message("user", "more")], length)


def ways(session, copy):
    """The same two turns, by every draft and with every history."""
    yield "again", two_turns(session)
    yield "after another chat", two_turns(session, between=[OTHER])
    edited = [Message("user", CHAT[0].content.replace("abd", "abX"))]
    yield "after an edit and back", two_turns(session, between=[edited, CHAT, edited])
    for draft in (*LOOKUPS, copy):
        session.choose_draft(draft)
        for length in (7, None):
            yield f"{draft} {length}", two_turns(session, length, between=[OTHER])
    session.choose_draft("none")


@pytest.mark.parametrize(
    ("family", "precision"),
    [("llama", "int8"), pytest.param("gemma3", "bf16", marks=pytest.mark.slow)],
)
def test_two_turns_are_a_function_of_their_ids_alone(loaded, root, family, precision):
    loaded(family, precision)
    session = Session(root / "cache")
    assert session.load_target(root / family, precision=precision).bit_exact
    expected = two_turns(session)
    assert len(expected[0]) == len(expected[1]) == 16
    for way, found in ways(session, root / family):
        assert found == expected, way
    session.close()
    session = Session(root / "cache")
    session.load_target(root / family, precision=precision)
    # the second turn first: all of it is prompt now
    told = Message(
        "assistant",
        session.target.tokenizer.decode(expected[0]),
        tuple(expected[0]),
        session.target.loaded.vocabulary,
    )
    assert answer(session, [*CHAT, told, Message("user", "more")]) == expected[1]
    session.close()


def test_a_restart_gives_the_same_text(loaded, root):
    """In a new process, with the weights from the store."""
    loaded("llama", "int8")
    session = Session(root / "cache")
    session.load_target(root / "llama", precision="int8")
    expected = two_turns(session)
    session.close()
    program = (
        "import json, sys; from pathlib import Path; from engine.session import Session\n"
        "from tests.engine.test_exactness import two_turns\n"
        "session = Session(Path(sys.argv[1]) / 'cache')\n"
        "session.load_target(Path(sys.argv[1]) / 'llama', precision='int8')\n"
        "session.choose_draft('ngram')\n"
        "print(json.dumps(two_turns(session, 7)))\n"
        "session.close()\n"
    )
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(root)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == [list(ids) for ids in expected]


def test_a_stop_in_the_middle_of_a_pass_changes_nothing(loaded):
    model = loaded("llama", "int8").model
    choose = policy(answer_start=len(PROMPT))
    expected = plain(model, PROMPT, tokens=TOKENS, choose=choose)
    model.cache.empty()
    for layer in (0, 1):
        asked = iter([False] * layer + [True] * 100)
        model.stopped = lambda asked=asked: next(asked)
        with pytest.raises(Cancelled):
            model.forward(PROMPT[:40])
        model.stopped = lambda: False
        model.forward(PROMPT[model.cache.length : 30])
        model.cache.crop_to(20)
    assert model.cache.length == 20
    text = list(PROMPT)
    while len(text) < len(PROMPT) + TOKENS:
        row = model.forward(text[model.cache.length :])
        text.append(int(row.argmax()))
    assert text[len(PROMPT) :] == expected


# --- our attention is taken where it says the same, and only there


def test_our_attention_is_taken_where_it_says_the_same():
    model = packed_like(language_model())
    assert attend(model)
    assert model.network.config._attn_implementation == NAME


def packed_like(model):
    """An in-memory model on packed weights, which attends as transformers does."""
    from engine.kernels.network import settle
    from engine.kernels.packing import pack
    from tests.families import Counting

    pack(model.network, Counting(model.network), "bf16")
    settle(model.network)
    return model


def raising(*_, **__):
    raise RuntimeError("no such shape")


def differing(real):
    def attend_differently(*args, **more):
        found, weights = real(*args, **more)
        return found * 1.5, weights

    return attend_differently


@pytest.mark.parametrize("broken", ["raises", "differs", "gives no number"])
def test_attention_that_fails_or_differs_is_given_back(broken, monkeypatch):
    from transformers import AttentionInterface

    model = packed_like(language_model())
    before = model.network.config._attn_implementation
    expected = exactness._forward(model, [1, 2, 3])
    real = attention.attend
    ours = {
        "raises": raising,
        "differs": differing(real),
        "gives no number": lambda *a, **k: (real(*a, **k)[0] * float("nan"), None),
    }
    monkeypatch.setattr(attention, "attend", ours[broken])
    try:
        assert not attend(model)
        assert model.network.config._attn_implementation == before
        assert torch.equal(exactness._forward(model, [1, 2, 3]), expected)
    finally:
        AttentionInterface.register(NAME, real)


@pytest.mark.parametrize("broken", ["raises", "differs"])
def test_shortened_layers_that_fail_or_differ_are_taken_out_again(broken, monkeypatch):
    model = packed_like(language_model())
    real = decoder.Layer._attend
    wrong = raising if broken == "raises" else lambda *a: 1.5 * real(*a)
    monkeypatch.setattr(decoder.Layer, "_attend", wrong)
    assert attend(model)
    assert not [m for m in model.network.modules() if isinstance(m, decoder.Layer)]
    assert exactness._forward(model, [1, 2, 3]).isfinite().all()


@pytest.mark.parametrize(("family", "precision"), [("llama", "fp32"), ("qwen3", "int8")])
def test_shortened_layers_say_the_same_far_into_a_text_too(loaded, family, precision):
    model = loaded(family, precision).model
    short = [m for m in model.network.modules() if isinstance(m, decoder.Layer)]
    assert len(short) == 2
    tokens = [(7 * i) % 250 for i in range(150)]
    model.cache.empty()
    found = model.forward(tokens, rows=150)
    decoder.restore(model.network)
    model.cache.empty()
    expected = model.forward(tokens, rows=150)
    model.cache.empty()
    assert decoder.shorten(model.network) == len(short)
    assert (found - expected).norm() < 1e-3 * expected.norm()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("smollm3", {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]}),
        (
            "ministral3",
            {
                "head_dim": 16,
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 10_000.0,
                    "llama_4_scaling_beta": 0.1,
                    "original_max_position_embeddings": 100,
                },
            },
        ),
    ],
)
def test_layers_of_the_same_parts_that_do_more_are_not_shortened(kind, changes):
    """What they do more is small, or shows only far into a text."""
    known = FAMILIES["llama"] | changes | {"model_type": kind, "architectures": []}
    model = packed_like(language_model(**known))
    assert attend(model)
    assert not [m for m in model.network.modules() if isinstance(m, decoder.Layer)]


# --- the check finds what depends on the rows beside it


@pytest.fixture
def exact_model(loaded):
    return loaded("llama", "int8").model


@pytest.fixture
def spoil(exact_model, monkeypatch):
    """Lets a function have the result of one packed matrix, and its number of rows."""

    def change(function, where):
        shared = exact_model.network.get_submodule(where).shared
        kernel = shared.kernel
        monkeypatch.setattr(shared, "kernel", lambda x: function(kernel(x), len(x)))

    return change


def test_the_check_passes_and_leaves_the_cache_empty(exact_model):
    assert check(exact_model)
    assert exact_model.cache.length == 0


ULP = 1 + 2.0**-23


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 17])
@pytest.mark.parametrize("where", ["lm_head", "model.layers.0.was.self_attn.o_proj"])
def test_the_check_finds_a_last_bit_that_follows_the_number_of_rows(
    exact_model, spoil, where, count
):
    spoil(lambda out, rows: out * ULP if rows == count else out, where)
    # the output matrix sees the rows that were asked for, the others those that are fed
    assert not check(exact_model)
    assert exact_model.cache.length == 0


def test_the_check_finds_a_last_bit_that_follows_a_rows_place(exact_model, spoil):
    def by_place(out, rows):
        out[rows - 1 :] *= ULP
        return out

    spoil(by_place, "model.layers.1.was.mlp.down_proj")
    assert not check(exact_model)


def test_the_check_finds_a_prompt_that_is_computed_otherwise(exact_model, spoil):
    spoil(lambda out, rows: out * ULP if rows > 17 else out, "model.layers.0.was.mlp.down_proj")
    assert not check(exact_model)


def test_the_check_can_be_stopped(exact_model):
    asked = []
    exact_model.stopped = lambda: asked.append(1) or len(asked) > 9
    with pytest.raises(Cancelled):
        check(exact_model)
    exact_model.stopped = lambda: False
    assert exact_model.cache.length == 0
    assert check(exact_model)


def test_a_model_with_no_room_for_the_check_is_not_called_exact():
    assert not check(language_model(max_position_embeddings=16))


@pytest.mark.parametrize(
    ("lacking", "precision"),
    [("grid", "int8"), ("grid", "int4"), ("half_counts", "bf16"), ("int4_agrees", "int4")],
)
def test_without_a_kernel_a_text_is_the_same_or_it_is_said(root, monkeypatch, lacking, precision):
    monkeypatch.setattr(linear, lacking, lambda: False if lacking == "int4_agrees" else None)
    folder = root / "without"
    if not folder.exists():
        write_model(folder)
    opened = load(folder, cache_folder=root / f"cache {lacking}", precision=precision)
    assert opened.loaded.precision == precision
    assert opened.loaded.notes == ()
    if opened.loaded.bit_exact:
        same_with_every_draft(opened.model, [(0.0, "ngram", 3), (0.8, "faulty", 16)])
    opened.close()


def test_a_result_holds_for_one_kind_of_machine(loaded, monkeypatch):
    model = loaded("llama", "int8").model
    here = stamp(model)
    assert stamp(model) == here
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    assert stamp(model) != here
