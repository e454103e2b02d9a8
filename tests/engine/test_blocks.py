"""Answers in blocks of one shape: as the ordinary way within rounding, and to the bit the same
however they are split. Run on the CPU, where nothing is captured; on CUDA the same code is.
"""

import itertools

import pytest
import torch

from engine import exactness
from engine.api import Drafting, Message, Sampling
from engine.cache import BlockCache
from engine.drafters import NGramDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Cancelled
from engine.kernels import graphs
from engine.kernels.graphs import BLOCK, SHORTEST, Graphs, bucket_of
from engine.runner import Stateful
from engine.session import Session
from tests.folders import IM_END, tiny_config, write_model
from tests.tiny import Adversary, language_model, plain, policy, run

TEXT = [(i * i + 7 * i) % 250 for i in range(1400)]

MODELS = {
    "full": {},
    "sliding": {
        "model_type": "gemma3_text",
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 24,
        "head_dim": 16,
    },
    "window below a block": {"model_type": "mistral", "sliding_window": 3},
    "bounded scores": {
        "model_type": "gemma2",
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 24,
        "head_dim": 16,
        "attn_logit_softcapping": 0.02,
    },
    "sinks and experts": {
        "model_type": "gpt_oss",
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 24,
        "head_dim": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "one head a group": {"num_key_value_heads": 4},
}


def model(kind="full", *, blocks=True, dtype=None):
    found = language_model(max_position_embeddings=2048, **MODELS[kind])
    if dtype is not None:
        found.network.to(dtype)
    if blocks:
        found.compute_in_blocks()
    return found


def uneven():
    """A model whose rows' bits plainly depend on how many are computed at once."""
    found = model()
    found.network.get_input_embeddings().register_forward_hook(
        lambda _module, _args, rows: rows * (1 + rows.shape[1] / 64)
    )
    return found


def off(found, expected):
    """The difference, as a part of what was expected."""
    return float((found - expected).norm() / expected.norm())


def kept(language):
    """Copies of all keys and values held."""
    return [t[:, : language.cache.length].clone() for t in language.cache._tensors()]


@pytest.fixture(scope="module", params=MODELS)
def kind(request):
    return request.param


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def target(request):
    return model(dtype=request.param)


@pytest.fixture(scope="module", params=["ngram", "copy", "weak", "rubbish"])
def drafter(request):
    if request.param in ("copy", "weak"):
        layers = 1 if request.param == "weak" else None
        draft = language_model(max_position_embeddings=2048, layers=layers)
        draft.compute_in_blocks()
        return SmallModelDrafter(draft)
    return NGramDrafter() if request.param == "ngram" else Adversary()


def test_blocks_say_what_ordinary_passes_say(kind):
    usual, ours = model(kind, blocks=False), model(kind)
    for start, rows in ((500, 1), (501, 30), (531, 8)):
        feed = TEXT[usual.cache.length : start]
        usual.feed(feed)
        ours.feed(feed)
        new = TEXT[start : start + rows]
        assert off(ours.forward(new, rows), usual.forward(new, rows)) < 1e-5


def test_the_way_prompts_attend_is_left_as_it_was(kind):
    ours = model(kind)
    before = ours.network.config._attn_implementation
    ours.forward(TEXT[:20])
    assert ours.network.config._attn_implementation == before != graphs.NAME


@pytest.mark.parametrize(
    ("temperature", "length"),
    [
        (0.0, 4),
        pytest.param(0.0, 20, marks=pytest.mark.slow),
        pytest.param(0.8, 7, marks=pytest.mark.slow),
    ],
)
def test_with_a_draft_the_ids_are_those_without(target, drafter, length, temperature):
    prompt = list(b"the cat sat on the mat, the cat sat on the ")
    choose = policy(temperature=temperature)
    expected = plain(target, prompt, tokens=40, choose=choose)
    found, *_ = run(target, drafter, prompt, tokens=40, draft_length=length, choose=choose)
    assert found == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_a_block_is_split_at_a_buckets_border(monkeypatch, dtype):
    ours = model(dtype=dtype)
    start = SHORTEST - 3
    ours.feed(TEXT[:start])
    alone = torch.cat([ours.forward([t]) for t in TEXT[start : start + 8]])
    ours.cache.crop_to(start)
    played, compute = [], ours.runner._run
    monkeypatch.setattr(ours.runner, "_run", lambda b: played.append(b) or compute(b))
    together = ours.forward(TEXT[start : start + 8], rows=8)
    assert played == [SHORTEST, bucket_of(SHORTEST, 2048)]
    assert torch.equal(together, alone)


def test_the_room_grows_by_buckets_and_changes_no_bit():
    grown, roomy = model(), model()
    roomy.runner._make_room(2048)
    rooms = []
    for start, stop in ((500, 520), (760, 775), (1020, 1030)):
        rows = []
        for language in (grown, roomy):
            language.feed(TEXT[language.cache.length : start])
            rows.append(language.forward(TEXT[start:stop], rows=stop - start))
            rooms.append(language.cache.room - BLOCK)
        assert torch.equal(*rows)
    assert rooms == [768, 2048, 1024, 2048, 1536, 2048]


def test_growing_drops_what_was_captured_over_the_old_room():
    ours = model()
    ours.forward(TEXT[:3])
    before = ours.cache.allotment
    ours.forward(TEXT[3:9])
    assert ours.cache.allotment == before
    ours.feed(TEXT[9:700])
    assert ours.cache.allotment > before


def test_what_a_block_says_outlives_the_next(monkeypatch):
    """A graph writes its result to the same place each time."""
    ours = model()
    expected = ours.forward(TEXT[:30], rows=30)
    ours.cache.crop_to(0)
    place, compute = torch.empty(BLOCK, ours.vocab_size), ours.runner._run
    monkeypatch.setattr(ours.runner, "_run", lambda bucket: place.copy_(compute(bucket)))
    assert torch.equal(ours.forward(TEXT[:30], rows=30), expected)


def test_going_back_leaves_no_trace(kind):
    ours = model(kind)
    ours.feed(TEXT[:100])
    expected = ours.forward(TEXT[100:130], rows=30)
    ours.forward(TEXT[700:740])
    ours.cache.crop_to(100)
    assert torch.equal(ours.forward(TEXT[100:130], rows=30), expected)
    ours.cache.crop_to(115)
    ours.cache.crop_to(120)
    assert ours.cache.length == 115
    assert torch.equal(ours.forward(TEXT[115:130], rows=15), expected[15:])


def test_what_lies_behind_the_text_is_never_seen(kind):
    """Padding, and what was taken back: whatever it is, it is written anew or masked."""
    ours = model(kind)
    ours.feed(TEXT[:60])
    expected = ours.forward(TEXT[60:75], rows=15)
    ours.cache.crop_to(60)
    with torch.inference_mode():
        for tensor in ours.cache._tensors():
            tensor[:, 60:] = 1e4
    assert torch.equal(ours.forward(TEXT[60:75], rows=15), expected)


def test_padding_writes_numbers_only():
    """Near a border padding may see no key at all."""
    ours = model("window below a block")
    ours.feed(TEXT[: SHORTEST - 1])
    ours.forward(TEXT[SHORTEST - 1 : SHORTEST])
    assert all(bool(t.isfinite().all()) for t in ours.cache._tensors())


def test_a_stop_comes_between_blocks():
    ours = model()
    expected = model().forward(TEXT[:40], rows=40)
    answers = iter([False] * 6 + [True])
    # asked before every block, and before each of its two layers
    ours.stopped = lambda: next(answers)
    with pytest.raises(Cancelled):
        ours.forward(TEXT[:40])
    assert ours.cache.length == 2 * BLOCK
    ours.stopped = lambda: False
    assert torch.equal(ours.forward(TEXT[16:40], rows=24), expected[16:])


def test_a_pass_broken_off_leaves_the_text_as_it_was():
    ours = model()
    ours.feed(TEXT[:50])
    expected = ours.forward(TEXT[50:60], rows=10)
    ours.cache.crop_to(50)
    asked = itertools.count()
    ours.stopped = lambda: next(asked) == 2
    with pytest.raises(Cancelled):
        ours.forward(TEXT[300:310])
    ours.stopped = lambda: False
    assert torch.equal(ours.forward(TEXT[50:60], rows=10), expected)


@pytest.mark.parametrize("cut", [1, 130, 199, 200, 220, 249, 250, 260, 290])
def test_a_text_kept_in_part_is_as_one_fed_anew(cut):
    answers = [range(200, 250)]
    anew, reused = uneven(), uneven()
    anew.feed(TEXT[:299], answers)
    reused.feed(TEXT[:cut] + TEXT[1000:1030], answers)
    reused.rewind(cut, 299, answers)
    assert reused.cache.length <= cut
    reused.feed(TEXT[reused.cache.length : 299], answers)
    assert all(itertools.starmap(torch.equal, zip(kept(anew), kept(reused), strict=True)))


def test_an_answer_fed_again_is_as_it_was_made():
    made, fed = uneven(), uneven()
    made.feed(TEXT[:99])
    for start, stop in itertools.pairwise([99, 100, 104, 112, 125, 139]):
        made.forward(TEXT[start:stop])
    fed.feed(TEXT[:139], [range(100, 140)])
    assert all(itertools.starmap(torch.equal, zip(kept(made), kept(fed), strict=True)))


def test_emptied_it_keeps_its_room_and_freed_it_does_not():
    ours = model()
    ours.forward(TEXT[:20])
    held, allotment = ours.cache.nbytes, ours.cache.allotment
    ours.cache.empty()
    assert (ours.cache.length, ours.cache.nbytes, ours.cache.allotment) == (0, held, allotment)
    ours.cache.free()
    assert (ours.cache.length, ours.cache.nbytes, ours.cache.room) == (0, 0, 0)
    assert ours.cache.allotment > allotment


def test_the_check_finds_blocks_exact(kind):
    ours = model(kind, blocks=False)
    assert exactness.take_blocks(ours)
    assert ours.runner.by_role
    assert exactness.check(ours)
    assert ours.notes == []


def test_the_check_finds_what_a_row_sees_of_its_neighbours(monkeypatch):
    ours = model()
    compute = ours.runner._graphs._compute
    monkeypatch.setattr(
        ours.runner._graphs, "_compute", lambda b: compute(b) + ours.runner._fed[1] * 1e-6
    )
    assert not exactness.check(ours)


def test_blocks_that_say_something_else_are_not_taken(monkeypatch):
    ours = model(blocks=False)
    expected = ours.forward(TEXT[:9])
    ours.cache.empty()
    monkeypatch.setattr(graphs, "seen", lambda **_: torch.ones(1, 1, dtype=torch.bool))
    assert not exactness.take_blocks(ours)
    assert torch.equal(ours.forward(TEXT[:9]), expected)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "mamba2", "head_dim": 16, "num_heads": 8, "n_groups": 1, "state_size": 16},
        {"model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
    ],
    ids=["mamba2", "lfm2"],
)
def test_a_model_with_a_running_state_is_left_alone(config):
    ours = language_model(**config)
    assert not BlockCache.suits(ours.network.config)
    assert not exactness.take_blocks(ours)
    assert isinstance(ours.runner, Stateful)


def test_where_nothing_can_be_captured_the_steps_run_one_by_one():
    """The CPU stands for a card that refuses."""
    found = Graphs(lambda bucket: torch.tensor([float(bucket)]), torch.device("cpu"))
    found.captures = True
    assert found.run(512, allotment=1).item() == 512
    assert not found.captures
    assert [note.code for note in found.notes] == ["no_graphs"]
    assert found.run(768, allotment=1).item() == 768
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("position", "keys"),
    [(0, 512), (511, 512), (512, 768), (767, 768), (768, 1024), (1024, 1536), (1536, 2048)],
)
def test_buckets(position, keys):
    assert bucket_of(position, 10**6) == keys


@pytest.mark.parametrize("context", [5, 300, 2048, 40_960])
def test_every_position_lies_in_a_bucket_not_much_longer_than_the_context(context):
    for position in {0, context // 2, context - 1}:
        assert position < bucket_of(position, context) < context + 256


def test_a_chat_that_goes_on_is_to_the_bit_one_that_was_opened_anew(tmp_path):
    """Turn by turn in one session, and turn two in another: the same keys, the same text."""
    write_model(tmp_path / "m", config=tiny_config(eos_token_id=IM_END))
    greedy = Sampling(temperature=0.0, max_tokens=60)

    def opened():
        session = Session(tmp_path / "cache")
        session.load_target(tmp_path / "m")
        # on a processor it would have been loaded with our own kernels
        session.target.model = uneven()
        return session

    def answer(session, messages):
        chunks = list(session.reply(messages, greedy, Drafting(0)))
        return [i for c in chunks for i in c.token_ids], chunks[-1].usage

    first = [Message("user", "abc abc abc abc " * 8)]
    here, there = opened(), opened()
    ids, usage = answer(here, first)
    said = Message(
        "assistant",
        here.target.tokenizer.decode(ids),
        token_ids=tuple(ids),
        vocabulary=here.target.tokenizer.fingerprint,
    )
    second = [*first, said, Message("user", "and then?")]
    went_on, going_on = answer(here, second)
    anew, _ = answer(there, second)
    assert went_on == anew
    # of what was held only the answer's last token was another's role
    assert going_on.cached_tokens == usage.prompt_tokens + len(ids) - 1
    pairs = zip(kept(here.target.model), kept(there.target.model), strict=True)
    assert all(itertools.starmap(torch.equal, pairs))
    here.close()
    there.close()


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_an_answer_that_goes_on_elsewhere_is_to_the_bit_the_whole_one(tmp_path, cut):
    """What there is of it is fed as answers are, not as a prompt."""
    write_model(tmp_path / "m", config=tiny_config(eos_token_id=IM_END))
    first = [Message("user", "abc abc abc abc " * 8)]

    def answer(messages, tokens, resume=False):
        session = Session(tmp_path / "cache")
        session.load_target(tmp_path / "m")
        session.target.model = uneven()
        greedy = Sampling(temperature=0.0, max_tokens=tokens)
        chunks = list(session.reply(messages, greedy, Drafting(0), resume=resume))
        keys = kept(session.target.model)
        vocabulary = session.target.tokenizer.fingerprint
        session.close()
        return tuple(i for c in chunks for i in c.token_ids), keys, vocabulary

    whole, keys, vocabulary = answer(first, 40)
    begun = Message("assistant", "", token_ids=whole[:cut], vocabulary=vocabulary)
    rest, others, _ = answer([*first, begun], 40 - cut, resume=True)
    assert whole[:cut] + rest == whole
    assert all(map(torch.equal, keys, others))
