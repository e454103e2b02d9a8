"""Drafters that copy from other chats, in a session: what is learned of whom, and that no answer
is another for it."""

import pytest

from engine.api import Drafting, Finish, Message, Sampling
from engine.drafters import LEARNED
from engine.past import Past
from engine.session import Session
from tests.folders import IM_END, tiny_config, write_json, write_model
from tests.tiny import only_drafter
from tests.vocabularies import OTHERS, write_other

GREEDY = Sampling(temperature=0.0, max_tokens=40)
USER = [Message("user", "abc abc abc abc")]
OTHER = [Message("user", "quite another chat")]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write_model(root / "target", config=tiny_config(eos_token_id=IM_END))
    settings = {"eos_token": "<|im_end|>", "bos_token": "<s>"}
    write_json(root / "target" / "tokenizer_config.json", settings)
    write_other(root / "other", OTHERS["byte level"](), root / "target")
    return root


@pytest.fixture(scope="module")
def loaded(root):
    session = Session(root / "cache")
    session.load_target(root / "target")
    yield session
    session.close()


@pytest.fixture
def session(loaded, tmp_path):
    """One that has learned nothing yet."""
    loaded._past = Past(tmp_path)
    ends = loaded.target.tokenizer.eos_ids
    loaded.choose_draft("none")
    loaded.forget()
    yield loaded
    loaded.target.tokenizer.eos_ids = ends


@pytest.fixture(params=LEARNED)
def draft(request):
    return request.param


def answer(session, messages=USER, sampling=GREEDY, length=None, **options):
    return list(session.reply(messages, sampling, Drafting(length), **options))


def ids_of(chunks):
    return [i for c in chunks for i in c.token_ids]


def text_of(chunks):
    return "".join(c.text for c in chunks)


def learned(session):
    return session._past.of(session.target.loaded.vocabulary).all


def accepted_of(session, messages=USER, **options):
    return answer(session, messages, length=8, **options)[-1].usage.accepted


def test_what_one_chat_was_answered_is_drafted_in_another(session, draft):
    session.choose_draft(draft)
    session.forget()
    alone = accepted_of(session, chat="a")
    session.forget()
    assert accepted_of(session, chat="b") > 30 > alone


def test_of_a_chat_that_is_not_kept_nothing_is_learned(session, draft):
    """A chat of the terminal, a summary: the local table is all there is, and goes with it."""
    session.choose_draft(draft)
    alone = accepted_of(session)
    answer(session, OTHER)
    session.forget()
    assert learned(session) == ()
    assert accepted_of(session) == alone


def test_it_is_learned_whatever_drafts(session, draft):
    answer(session, chat="a")
    session.choose_draft(draft)
    session.forget()
    assert accepted_of(session) > 30


def test_a_new_start_knows_it(session, draft, tmp_path):
    answer(session, chat="a")
    session._past = Past(tmp_path)
    session.choose_draft(draft)
    session.forget()
    assert accepted_of(session) > 30


def test_once_its_chat_is_forgotten_nothing_of_it_is_drafted(session, draft):
    session.choose_draft(draft)
    session.forget()
    alone = accepted_of(session, chat="a")
    session._past.forget("a")
    session.forget()
    assert accepted_of(session, chat="b") == alone


def test_a_stopped_answer_is_learned_when_it_has_gone_on_to_its_end(session):
    seen = []
    session_ = session.reply(USER, GREEDY, chat="a", stopped=lambda: len(seen) > 6)
    for chunk in session_:
        seen += chunk.token_ids
    assert chunk.finish is Finish.CANCELLED
    assert learned(session) == ()
    told = Message("assistant", "", tuple(seen), session.target.loaded.vocabulary)
    rest = answer(session, [*USER, told], resume=True, chat="a")
    (text,) = learned(session)
    assert text.answer.tolist() == seen + ids_of(rest)


@pytest.mark.parametrize(
    ("temperature", "verification"), [(0.0, "coupled"), (0.8, "coupled"), (0.0, "rejection")]
)
def test_the_past_changes_no_answer(session, draft, temperature, verification):
    """Two turns, an edit, an answer anew with another seed; chats that know each other, one of
    them forgotten in between."""
    edited = [Message("user", "abc abc abX abc")]
    chats = [(USER, 3, "a"), (edited, 3, "a"), (OTHER, 3, "b"), (USER, 4, "a"), (USER, 3, "c")]

    def said(messages, seed, **options):
        sampling = Sampling(temperature=temperature, seed=seed, max_tokens=32)
        first = ids_of(session.reply(messages, sampling, Drafting(5, verification), **options))
        text = session.target.tokenizer.decode(first)
        told = Message("assistant", text, tuple(first), session.target.loaded.vocabulary)
        asked = [*messages, told, *USER]
        return first, ids_of(session.reply(asked, sampling, Drafting(5, verification), **options))

    plain = [said(messages, seed) for messages, seed, _ in chats]
    session.choose_draft(draft)
    session.forget()
    found = []
    for n, (messages, seed, chat) in enumerate(chats):
        if n == 4:
            session._past.forget("a")
        found.append(said(messages, seed, chat=chat))
    assert found == plain


@pytest.mark.parametrize("position", range(3, 21))
def test_an_end_token_inside_a_copied_block_ends_everything(session, draft, position):
    """STP-1, with the answer known from another chat."""
    free = ids_of(answer(session, chat="a"))
    stop = free[position]
    expected = free[: free.index(stop) + 1]
    session.target.tokenizer.eos_ids = frozenset({257, stop})
    session.choose_draft(draft)
    session.forget()
    chunks = answer(session, length=8, chat="b")
    usage = chunks[-1].usage
    assert ids_of(chunks) == expected
    assert chunks[-1].finish is Finish.STOP
    assert usage.tokens == len(expected)
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted
    assert usage.accepted > 0 or position < 6
    assert text_of(chunks) == session.target.tokenizer.decode(expected[:-1])
    assert session._tokens[-len(expected) :] == expected
    assert learned(session)[-1].answer.tolist() == expected


@pytest.mark.parametrize("length", [1, 5, 8, 20])
@pytest.mark.parametrize("first", [4, 9, 17])
def test_text_ends_before_a_stop_string_inside_a_copied_block(session, draft, first, length):
    """STP-2."""
    free = ids_of(answer(session, chat="a"))
    decode = session.target.tokenizer.decode
    stop, whole = decode(free[first : first + 3]), decode(free)
    session.choose_draft(draft)
    session.forget()
    sampling = Sampling(temperature=0, max_tokens=40, stop=(stop,))
    chunks = answer(session, sampling=sampling, length=length, chat="b")
    shown = ""
    for chunk in chunks:
        shown += chunk.text
        assert whole[: whole.find(stop)].startswith(shown)
    assert shown == whole[: whole.find(stop)]
    assert chunks[-1].finish is Finish.STOP
    usage = chunks[-1].usage
    assert usage.tokens == len(ids_of(chunks))
    assert usage.accepted + usage.rejected + usage.ignored == usage.drafted


def test_the_counts_of_the_rounds_add_up(session, draft):
    """SPC-1: each round gives the accepted and one token of the target's own."""
    answer(session, chat="a")
    session.choose_draft(draft)
    session.forget()
    chunks = answer(session, length=4, chat="b")
    usage, rounds = chunks[-1].usage, [c.round for c in chunks if c.round is not None]
    assert usage.tokens == sum(r.emitted for r in rounds) == 40
    assert all(r.emitted == r.accepted + 1 for r in rounds)
    assert sum(r.drafted for r in rounds) == usage.drafted >= usage.accepted > 0
    assert usage.acceptance_rate == usage.accepted / usage.drafted


def test_another_vocabulary_learns_apart(session, root, draft, tmp_path):
    answer(session, chat="a")
    other = Session(root / "cache", past=Past(tmp_path))
    other.load_target(root / "other")
    other.choose_draft(draft)
    assert learned(other) == ()
    answer(other, chat="b")
    assert [text.chat for text in learned(other)] == ["b"]
    assert [text.chat for text in learned(session)] == ["a"]
    other.close()


def test_fifty_answers_leave_no_more_than_their_texts(session, draft):
    """One chat's table does not grow into the next; the common one by what was learned."""
    session.choose_draft(draft)
    tables, sizes = only_drafter(session), []
    for n in range(50):
        sampling = Sampling(temperature=0.9, seed=n, max_tokens=8)
        answer(session, [Message("user", f"question {n}")], sampling, length=4, chat=f"{n}")
        sizes.append(len(tables._chat))
    assert max(sizes) < sizes[0] + 4
    assert len(learned(session)) == 50
    assert 0 < len(tables._shared.table) <= 60 * max(sizes)
    for n in range(50):
        session._past.forget(f"{n}")
    answer(session, length=4)
    assert learned(session) == ()
    assert len(tables._shared.table) == 0
