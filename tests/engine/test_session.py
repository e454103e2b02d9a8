"""Answers: stops, limits, prefix reuse, statistics, and every way an answer may end."""

import gc
import time
import weakref

import pytest
import torch

from engine.api import Drafting, Finish, Message, Sampling
from engine.drafters.base import NoDrafter
from engine.errors import (
    Cancelled,
    ContextFull,
    DraftRefused,
    EngineError,
    Incomplete,
    LoadError,
)
from engine.measured import LOOKUPS
from engine.session import Session
from engine.verify import Draft
from tests.folders import END_THINK, IM_END, tiny_config, write_json, write_model
from tests.vocabularies import OTHERS, write_other

GREEDY = Sampling(temperature=0.0, max_tokens=40)
USER = [Message("user", "abc abc abc abc")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target, its exact copy, and one layer of it; the random models reach no end token."""
    root = tmp_path_factory.mktemp("models")
    config = tiny_config(eos_token_id=IM_END)
    for name, layers in (("target", None), ("copy", None), ("weak", 1)):
        write_model(root / name, config=dict(config), layers=layers)
        settings = {"eos_token": "<|im_end|>", "bos_token": "<s>"}
        write_json(root / name / "tokenizer_config.json", settings)
    return root


@pytest.fixture(scope="module")
def shared_session(folders, tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("cache"))
    session.load_target(folders / "target")
    yield session
    session.close()


@pytest.fixture
def session(shared_session):
    """The loaded target, drafting off, caches empty, its own end tokens."""
    target = shared_session.target
    before = target.tokenizer.eos_ids
    shared_session.choose_draft("none")
    shared_session.forget()
    yield shared_session
    target.tokenizer.eos_ids = before


@pytest.fixture(scope="module")
def free(shared_session):
    """The plain answer, when nothing ends it."""
    shared_session.choose_draft("none")
    shared_session.forget()
    return answer(shared_session)


def answer(session, messages=USER, sampling=GREEDY, length=None, **options):
    """All chunks of an answer."""
    return list(session.reply(messages, sampling, Drafting(length), **options))


def text_of(chunks):
    return "".join(c.text for c in chunks)


def ids_of(chunks):
    return [i for c in chunks for i in c.token_ids]


def test_an_answer_streams_and_ends_with_its_reason(session):
    chunks = answer(session)
    assert chunks[-1].finish is Finish.LENGTH
    assert all(c.finish is None for c in chunks[:-1])
    assert len(ids_of(chunks)) == 40
    usage = chunks[-1].usage
    assert usage.tokens == usage.plain_steps == 40
    assert usage.acceptance_rate is None
    assert 0 < usage.prefill_seconds < usage.time_to_first_token < usage.seconds
    assert usage.tokens_per_second == pytest.approx(40 / (usage.seconds - usage.prefill_seconds))


@pytest.mark.parametrize("draft", [*LOOKUPS, "copy", "weak"])
@pytest.mark.parametrize(("temperature", "length"), [(0.0, 4), (0.8, 4), (0.8, None)])
def test_two_turns_are_the_same_with_any_draft(session, folders, draft, temperature, length):
    sampling = Sampling(temperature=temperature, seed=3, max_tokens=32)

    def two_turns():
        first = answer(session, USER, sampling, length)
        told = Message("assistant", text_of(first), tuple(ids_of(first)), vocabulary(session))
        second = answer(session, [*USER, told, *USER], sampling, length)
        return ids_of(first), ids_of(second), first

    plain = two_turns()[:2]
    session.choose_draft(draft if draft in LOOKUPS else folders / draft)
    session.forget()
    *drafted, first = two_turns()
    assert tuple(drafted) == plain
    # of a chain there are too few tokens yet: tests/engine/test_learned.py
    assert first[-1].usage.accepted > 0 or length is None or draft == "chain"


def vocabulary(session):
    return session.target.loaded.vocabulary


@pytest.mark.parametrize("position", range(3, 21))
def test_an_end_token_in_the_middle_of_a_block_ends_everything(session, folders, free, position):
    """STP-1: whatever place of two blocks of 8 it falls on, with and without a draft."""
    free = ids_of(free)
    stop = free[position]
    index = free.index(stop)
    session.target.tokenizer.eos_ids = frozenset({stop})
    expected = free[: index + 1]
    assert ids_of(answer(session)) == expected
    session.choose_draft(folders / "copy")
    chunks = answer(session, length=8)
    assert ids_of(chunks) == expected
    assert chunks[-1].finish is Finish.STOP
    usage = chunks[-1].usage
    assert usage.tokens == len(expected)
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted
    assert usage.rejected == 0
    assert text_of(chunks) == session.target.tokenizer.decode(expected[:-1])
    assert session.target.model.cache.length <= len(session._tokens) - 1
    assert session._tokens[-len(expected) :] == expected


def test_each_of_several_end_tokens_ends_the_answer(session, folders):
    free = ids_of(answer(session))
    session.target.tokenizer.eos_ids = frozenset({257, free[9], END_THINK})
    session.choose_draft(folders / "copy")
    assert ids_of(answer(session, length=8)) == free[: free.index(free[9]) + 1]


def test_the_drafts_end_token_does_not_end_the_targets_answer(session, folders, tmp_path):
    """VOC-2 b: the draft's folder names another end token."""
    free = answer(session)
    config = tiny_config(eos_token_id=ids_of(free)[3])
    write_model(tmp_path / "draft", config=config)
    session.choose_draft(tmp_path / "draft")
    drafted = answer(session)
    assert ids_of(drafted) == ids_of(free)
    assert drafted[-1].usage.accepted > 0


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8, 20])
@pytest.mark.parametrize("first", [2, 3, 4, 9, 17])
def test_text_ends_before_a_stop_string_over_several_tokens(session, folders, free, first, length):
    """STP-2: three tokens that end anywhere in a block."""
    whole = session.target.tokenizer.decode(ids_of(free))
    stop = session.target.tokenizer.decode(ids_of(free)[first : first + 3])
    session.choose_draft(folders / "copy")
    chunks = answer(
        session, sampling=Sampling(temperature=0, max_tokens=40, stop=(stop,)), length=length
    )
    shown = ""
    for chunk in chunks:
        shown += chunk.text
        assert whole[: whole.find(stop)].startswith(shown)
    assert shown == whole[: whole.find(stop)]
    assert chunks[-1].finish is Finish.STOP
    usage = chunks[-1].usage
    assert usage.tokens == len(ids_of(chunks))
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted


def test_ids_of_an_answer_cut_by_a_stop_string_are_not_passed_off_as_its_text(session):
    free = answer(session)
    stop = session.target.tokenizer.decode(ids_of(free)[5:7])
    chunks = answer(session, sampling=Sampling(temperature=0, max_tokens=40, stop=(stop,)))
    assert not chunks[-1].token_ids_exact
    assert free[-1].token_ids_exact


def test_nothing_is_drafted_behind_an_end_token(session, folders):
    free = ids_of(answer(session))
    session.target.tokenizer.eos_ids = frozenset({free[2]})
    session.choose_draft(folders / "copy")
    usage = answer(session, length=8)[-1].usage
    assert (usage.drafted, usage.accepted, usage.ignored, usage.rejected) == (3, 3, 0, 0)


def test_drafts_behind_a_stop_string_are_ignored_not_rejected(session, folders):
    free = ids_of(answer(session))
    stop = session.target.tokenizer.decode(free[2:4])
    session.choose_draft(folders / "copy")
    sampling = Sampling(temperature=0, max_tokens=40, stop=(stop,))
    chunks = answer(session, sampling=sampling, length=8)
    usage = chunks[-1].usage
    assert usage.rejected == 0
    assert usage.accepted == usage.tokens == len(ids_of(chunks)) < 8
    assert usage.ignored == 8 - usage.accepted


def test_an_answer_given_up_halfway_does_not_disturb_the_next(session):
    """Its generator may be closed much later, by the garbage collector even."""
    expected = ids_of(answer(session))
    other = [Message("user", "quite another chat")]
    session.forget()
    given_up = session.reply(USER, GREEDY)
    for _ in range(5):
        next(given_up)
    answer(session, other)
    given_up.close()
    assert ids_of(answer(session)) == expected


def test_ids_that_the_model_does_not_have_are_refused(session):
    foreign = Message("assistant", "x", token_ids=(5, 9999), vocabulary=vocabulary(session))
    with pytest.raises(EngineError) as refused:
        answer(session, [*USER, foreign, *USER])
    assert refused.value.code == "foreign_token"


@pytest.mark.parametrize(
    "setting", [{"temperature": float("nan")}, {"min_p": 2.0}, {"top_k": -1}, {"top_p": 0.0}]
)
def test_senseless_settings_are_refused_in_words(session, setting):
    with pytest.raises(EngineError) as refused:
        answer(session, sampling=Sampling(**({"temperature": 1.0} | setting)))
    assert refused.value.code == "bad_setting"


def test_each_answer_leaves_a_line_in_the_log(session, folders, caplog):
    """The rate, accepted, drafted and mean length, as llama.cpp's users know them."""
    session.choose_draft(folders / "weak")
    with caplog.at_level("INFO", logger="engine.session"):
        usage = answer(session)[-1].usage
    line = caplog.messages[-1]
    assert f"draft acceptance = {usage.acceptance_rate:.5f}" in line
    assert f"({usage.accepted} accepted / {usage.drafted} drafted)" in line
    assert f"mean len = {usage.tokens_per_round:.2f}" in line


def test_each_answer_leaves_its_memory_in_the_log_as_estimated_and_as_held(
    session, folders, caplog
):
    session.choose_draft(folders / "weak")
    with caplog.at_level("INFO", logger="engine.session"):
        caplog.clear()  # loading has told of it too
        answer(session)
    lines = [line for line in caplog.messages if "MiB estimated" in line]
    assert len(lines) == 2
    held = session.target.model.cache.nbytes / 2**20
    assert f"{session.target.model.cache.length} tokens: " in lines[0]
    assert f"{held:.1f} held" in lines[0]
    assert f"{session.target.loaded.memory_bytes / 2**20:.1f} held" in lines[0]


def test_a_second_turn_feeds_only_what_is_new(session):
    first = answer(session)
    told = Message("assistant", text_of(first), tuple(ids_of(first)), vocabulary(session))
    fed = count_fed(session)
    second = answer(session, [*USER, told, Message("user", "more")])
    usage = second[-1].usage
    before = first[-1].usage
    assert usage.cached_tokens == before.prompt_tokens + 39
    assert fed[0] == usage.prompt_tokens - usage.cached_tokens + 39


def count_fed(session):
    """Counts the ids that the target is fed from now on."""
    fed = [0]
    network = session.target.model.network
    network.get_input_embeddings().register_forward_pre_hook(
        lambda _, args: fed.__setitem__(0, fed[0] + args[0].numel())
    )
    return fed


@pytest.mark.parametrize("draft", ["none", *LOOKUPS, "weak"])
def test_editing_regenerating_and_switching_chats_equal_a_fresh_session(session, folders, draft):
    session.choose_draft(folders / draft if draft == "weak" else draft)
    chats = [
        USER,
        [Message("user", "abc abc abX abc")],  # an edit
        [Message("user", "quite another chat")],
        USER,  # back again
        USER,  # regenerated
    ]
    used = [ids_of(answer(session, chat)) for chat in chats]
    fresh = []
    for chat in chats:
        session.forget()
        fresh.append(ids_of(answer(session, chat)))
    assert used == fresh


def test_the_same_seed_gives_the_same_text_and_none_a_new_one(session):
    warm = Sampling(temperature=1.0, max_tokens=30)
    seeded = Sampling(temperature=1.0, max_tokens=30, seed=11)
    assert ids_of(answer(session, sampling=seeded)) == ids_of(answer(session, sampling=seeded))
    one, two = answer(session, sampling=warm), answer(session, sampling=warm)
    assert ids_of(one) != ids_of(two)
    again = Sampling(temperature=1.0, max_tokens=30, seed=one[-1].usage.seed)
    assert ids_of(answer(session, sampling=again)) == ids_of(one)


def test_greedy_takes_none_of_the_folders_sampling(folders, tmp_path):
    """EXA-1 c."""
    model = write_model(tmp_path / "model", config=tiny_config(eos_token_id=IM_END))
    defaults = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "repetition_penalty": 1.3}
    write_json(model / "generation_config.json", defaults)
    session = Session(tmp_path)
    loaded = session.load_target(model)
    assert (loaded.defaults.temperature, loaded.defaults.top_p) == (0.6, 0.9)
    greedy = ids_of(answer(session))
    session.load_target(folders / "target")
    assert greedy == ids_of(answer(session))
    session.close()


def test_a_full_context_is_said_and_the_next_short_chat_works(session, folders):
    """RBK-2 c: 511 tokens of 512, then more than fit."""
    session.choose_draft(folders / "copy")
    room = 511 - answer(session, [Message("user", "")])[-1].usage.prompt_tokens
    chunks = answer(session, [Message("user", "x" * room)], Sampling(temperature=0))
    assert len(ids_of(chunks)) == 1
    assert chunks[-1].finish is Finish.CONTEXT
    assert chunks[-1].notices[0].code == "context_reached"
    with pytest.raises(ContextFull) as full:
        answer(session, [Message("user", "x" * 600)])
    assert full.value.reason.values["context"] == 512
    assert answer(session)[-1].finish is Finish.LENGTH


def test_a_chat_runs_into_the_end_of_the_context(session, folders):
    session.choose_draft(folders / "copy")
    chunks = answer(session, [Message("user", "y" * 440)], Sampling(temperature=0), length=7)
    assert chunks[-1].finish is Finish.CONTEXT
    usage = chunks[-1].usage
    assert usage.prompt_tokens + usage.tokens == 512


@pytest.mark.parametrize("moment", ["prefill", "answer"])
def test_stop_ends_an_answer_within_a_pass(session, folders, moment):
    session.choose_draft(folders / "copy")
    asked = {"passes": 0}
    embed = session.target.model.network.get_input_embeddings()
    embed.register_forward_pre_hook(lambda *_: asked.__setitem__("passes", asked["passes"] + 1))
    limit = 1 if moment == "prefill" else 4
    messages = [Message("user", "z" * 400)] if moment == "prefill" else USER
    chunks = answer(session, messages, stopped=lambda: asked["passes"] >= limit)
    assert chunks[-1].finish is Finish.CANCELLED
    assert asked["passes"] <= limit + 1
    assert (ids_of(chunks) == []) == (moment == "prefill")
    # what is in the caches is still right
    session.target.model.stopped = lambda: False
    after = ids_of(answer(session, messages))
    session.forget()
    assert ids_of(answer(session, messages)) == after


def test_closing_the_generator_leaves_caches_that_go_on_right(session, folders):
    session.choose_draft(folders / "copy")
    expected = ids_of(answer(session))
    session.forget()
    chunks = session.reply(USER, GREEDY)
    for _ in range(5):
        next(chunks)
    chunks.close()
    assert ids_of(answer(session)) == expected


def test_running_out_of_memory_keeps_the_text_and_frees_the_memory(session, folders):
    """OOM-1: a tensor that lives in the failing frame must not outlive it."""
    session.choose_draft(folders / "copy")
    expected = ids_of(answer(session))
    session.forget()
    held = []

    def run_out(*_):
        if session.target.model.cache.length > 55:
            big = torch.empty(2**28, dtype=torch.float32)
            held.append(weakref.ref(big))
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    hook = session.target.model.network.register_forward_pre_hook(run_out)
    chunks = answer(session)
    hook.remove()
    assert chunks[-1].finish is Finish.MEMORY
    assert chunks[-1].notices[0].code == "no_memory"
    kept = ids_of(chunks)
    assert 5 < len(kept) < 40
    assert kept == expected[: len(kept)]
    gc.collect()
    assert [ref() for ref in held] == [None]
    assert session.target.model.cache.nbytes == 0
    assert ids_of(answer(session)) == expected


def test_a_draft_that_runs_out_of_memory_does_not_end_the_answer(session, folders):
    expected = ids_of(answer(session))
    session.choose_draft(folders / "copy")
    session.forget()

    def run_out(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    hook = session.draft.model.network.register_forward_pre_hook(run_out)
    chunks = answer(session)
    assert ids_of(chunks) == expected
    assert [n.code for c in chunks for n in c.notices] == ["draft_failed"]
    hook.remove()
    assert answer(session)[-1].usage.accepted > 0


def test_a_pause_of_the_draft_is_told_once(session, folders, tmp_path):
    """RBK-2 a."""
    config = tiny_config(eos_token_id=IM_END, max_position_embeddings=64)
    write_model(tmp_path / "short", config=config)
    expected = ids_of(answer(session))
    session.choose_draft(tmp_path / "short")
    chunks = answer(session, length=4)
    assert ids_of(chunks) == expected
    assert [n.code for c in chunks for n in c.notices] == ["draft_context_full"]


class Hopeless(NoDrafter):
    """Takes its time, and is never right."""

    name, default_length = "hopeless", 4

    def propose(self, tokens, limit, policy):
        time.sleep(0.05 * limit)
        return Draft((257,) * limit)


def test_drafting_that_does_not_pay_pauses_and_says_so_once_an_answer(session):
    expected = ids_of(answer(session))
    session.use(Hopeless())
    session.forget()
    first, second = answer(session), answer(session)
    for chunks in (first, second):
        assert ids_of(chunks) == expected
        (notice,) = [n for c in chunks for n in c.notices]
        assert notice.code == "drafting_does_not_pay"
        assert f"0 of the last {notice.values['drafted']} drafted" in notice.text
    # what a plain step takes is known by then, whether this text can be drafted is not
    assert [c.round.drafted for c in first if c.round][:3] == [0, 0, 1]
    assert next(c.round.drafted for c in second if c.round) == 1
    session.forget()
    assert next(c.round.drafted for c in answer(session) if c.round) == 1


@pytest.mark.parametrize("length", [None, 4])
def test_auto_answers_as_plain_decoding_and_counts_each_drafter(session, folders, length):
    expected = ids_of(answer(session))
    session.choose_draft("auto", model=folders / "copy")
    assert session.draft is not None
    chunks = [*answer(session, length=length), *answer(session, length=length)]
    assert ids_of(chunks) == expected * 2
    rounds = [c.round for c in chunks if c.round and c.round.drafted]
    assert {r.drafter for r in rounds} <= {"model", *LOOKUPS}
    usage = chunks[-1].usage
    assert sum(row[1] for row in usage.by_drafter) == usage.rounds
    assert sum(row[2] for row in usage.by_drafter) == usage.drafted > 0
    assert sum(row[3] for row in usage.by_drafter) == usage.accepted


def test_what_an_answer_teaches_is_there_at_the_next_start(folders, tmp_path):
    """The first rounds of a new session are drafted: what steps take is known already."""
    file = tmp_path / "learned.json"

    def opened():
        session = Session(tmp_path / "cache", learned=file)
        session.load_target(folders / "target")
        session.choose_draft("auto", model=folders / "copy")
        return session

    first, again = opened(), None
    chunks = answer(first)
    assert [c.round.drafted for c in chunks if c.round][:2] == [0, 0]
    first.close()
    again = opened()
    chunks = answer(again)
    assert next(c.round.drafted for c in chunks if c.round) > 0
    again.close()
    file.write_text(file.read_text()[:-5])
    damaged = opened()
    assert [c.round.drafted for c in answer(damaged) if c.round][:2] == [0, 0]
    damaged.close()


def test_the_log_has_what_was_predicted_and_what_was_measured(session, folders, caplog):
    session.choose_draft("auto", model=folders / "copy")
    with caplog.at_level("INFO", "engine.session"):
        answer(session, length=2)
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("model: ")]
    assert "tok/s predicted" in line
    assert line.endswith("measured")


def test_auto_without_a_model_only_looks_up(session):
    session.choose_draft("auto")
    assert session.draft is None
    chunks = answer(session, length=4)
    assert {c.round.drafter for c in chunks if c.round and c.round.drafted} <= {*LOOKUPS}


def test_auto_goes_on_without_a_drafter_that_breaks(session, folders):
    expected = ids_of(answer(session))
    session.choose_draft("auto", model=folders / "copy")

    def break_down(*_):
        raise RuntimeError("broken")

    hook = session.draft.model.network.register_forward_pre_hook(break_down)
    chunks = answer(session, length=2)
    hook.remove()
    assert ids_of(chunks) == expected
    assert [n.code for c in chunks for n in c.notices] == ["draft_failed"]


def test_a_length_that_was_asked_for_is_kept_however_little_it_brings(session):
    session.use(Hopeless())
    chunks = answer(session, sampling=Sampling(temperature=0, max_tokens=12), length=1)
    assert [c.round.drafted for c in chunks if c.round] == [1] * 11 + [0]
    assert not [n for c in chunks for n in c.notices]


def test_a_failed_load_leaves_the_old_model_running(session, tmp_path):
    expected = ids_of(answer(session))
    (tmp_path / "broken").mkdir()
    with pytest.raises(LoadError):
        session.load_target(tmp_path / "broken")
    assert ids_of(answer(session)) == expected


def test_a_failed_draft_leaves_the_target_running_without_one(session, folders, tmp_path):
    session.choose_draft(folders / "copy")
    (tmp_path / "broken").mkdir()
    with pytest.raises(LoadError):
        session.choose_draft(tmp_path / "broken")
    assert session.draft is None
    assert answer(session)[-1].usage.drafted == 0


def test_another_draft_keeps_the_target_loaded(session, folders):
    network = session.target.model.network
    for draft in ("copy", "weak"):
        session.choose_draft(folders / draft)
        assert answer(session)[-1].usage.drafted > 0
    assert session.target.model.network is network


@pytest.fixture(scope="module", params=OTHERS)
def other(request, folders):
    """The target's network behind another tokenizer."""
    return write_other(folders / request.param, OTHERS[request.param](), folders / "target")


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_draft_of_another_vocabulary_is_translated_over_turns_and_edits(
    session, other, temperature
):
    """The same ids as without it, and it keeps up with a chat that is rewound."""
    sampling = Sampling(temperature=temperature, seed=3, max_tokens=24)

    def chat():
        first = answer(session, USER, sampling, 4)
        told = Message("assistant", text_of(first), tuple(ids_of(first)), vocabulary(session))
        edited = [Message("user", "abc äöü 😀")]
        later = [answer(session, turns, sampling, 4) for turns in ([*USER, told, *USER], edited)]
        return [ids_of(one) for one in (first, *later)], first[-1].usage

    plain = chat()[0]
    session.choose_draft(other)
    session.forget()
    drafted, usage = chat()
    assert drafted == plain
    assert usage.accepted > 0
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted


def test_a_draft_without_a_vocabulary_is_refused_before_it_is_loaded(session, tmp_path):
    draft = write_model(tmp_path / "other", tokenizer=False)
    with pytest.raises(Incomplete):
        session.choose_draft(draft)
    assert session.draft is None
    assert answer(session)[-1].usage.drafted == 0


def test_loading_can_be_stopped(session, folders):
    with pytest.raises(Cancelled):
        session.load_target(folders / "copy", stopped=lambda: True)
    assert answer(session)[-1].finish is Finish.LENGTH


def test_loading_reports_progress(folders, tmp_path):
    heard = []
    session = Session(tmp_path)
    session.load_target(folders / "target", progress=heard.append)
    session.close()
    assert heard[-1].done == heard[-1].total > 0


def test_a_model_whose_state_cannot_be_put_back_chats_but_is_not_drafted_for(tmp_path):
    """RBK-1: refused with the reason; an edit works without a draft."""
    write_model(tmp_path / "model", config=RECURRENT, sharpen=1.0)
    write_model(tmp_path / "draft", config=tiny_config(eos_token_id=IM_END))
    session = Session(tmp_path)
    session.load_target(tmp_path / "model")
    for draft in ("ngram", tmp_path / "draft"):
        with pytest.raises(DraftRefused) as refused:
            session.choose_draft(draft)
        assert refused.value.code == "recurrent_target"
    used = [ids_of(answer(session, chat, GREEDY)) for chat in (USER, [Message("user", "x")], USER)]
    assert used[0] == used[2]
    assert used[0] != used[1]
    assert answer(session)[-1].usage.drafted == 0
    session.close()


RECURRENT = tiny_config(
    model_type="recurrent_gemma",
    architectures=["RecurrentGemmaForCausalLM"],
    block_types=["recurrent", "attention"],
    attention_window_size=64,
    eos_token_id=IM_END,
    pad_token_id=0,
    lru_width=64,
)
