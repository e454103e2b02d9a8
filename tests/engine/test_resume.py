"""An answer that ended early goes on as if it had never stopped; and what a chat's length is."""

from dataclasses import replace

import pytest

from engine.api import Drafting, Finish, Message, Sampling
from engine.errors import ContextFull
from engine.session import Session
from engine.turns import without
from tests.folders import CHATML, END_THINK, IM_END, tiny_config, write_json, write_model

USER = [Message("user", "abc abc abc abc")]
WARM = Sampling(temperature=0.9, seed=3, max_tokens=40)
PENALISED = replace(WARM, repetition_penalty=1.2, presence_penalty=0.5, frequency_penalty=0.3)
# about every twentieth token ends the thinking, of a model that is nearly as good as random
THOUGHTFUL = Sampling(
    temperature=4.0, top_k=0, seed=5, max_tokens=40, logit_bias={END_THINK: 20.0, IM_END: -99.0}
)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A model whose template opens the thinking where the chat says so."""
    root = tmp_path_factory.mktemp("models")
    template = CHATML + "{% if messages[-1].content == 'think' %}<think>\n{% endif %}"
    for name, layers in (("target", None), ("weak", 1)):
        config = tiny_config(eos_token_id=IM_END)
        write_model(root / name, config=config, layers=layers, template=template)
        settings = {"eos_token": "<|im_end|>", "bos_token": "<s>"}
        write_json(root / name / "tokenizer_config.json", settings)
    session = Session(root / "cache")
    session.load_target(root / "target")
    session.weak = root / "weak"
    yield session
    session.close()


def answer(session, messages, sampling, length=0, **options):
    return list(session.reply(messages, sampling, Drafting(length), **options))


def joined(chunks):
    """Text, thinking and ids of an answer."""
    ids = tuple(i for c in chunks for i in c.token_ids)
    return "".join(c.text for c in chunks), "".join(c.reasoning for c in chunks), ids


def told(session, chunks):
    """An answer as the app hands it in again."""
    text, reasoning, ids = joined(chunks)
    return Message("assistant", text, ids, session.target.loaded.vocabulary, reasoning)


def in_two(session, messages, sampling, cut, *, fresh=False, length=0):
    """The answer in two parts, the first of them `cut` tokens."""
    first = answer(session, messages, replace(sampling, max_tokens=cut), length)
    if fresh:
        session.forget()
    rest = replace(sampling, max_tokens=sampling.max_tokens - cut)
    second = answer(session, [*messages, told(session, first)], rest, length, resume=True)
    return first, second


def is_whole(session, whole, first, second):
    return [a + b for a, b in zip(joined(first), joined(second), strict=True)] == list(
        joined(whole)
    )


@pytest.fixture(scope="module", params=[WARM, PENALISED])
def uncut(session, request):
    """How it is sampled, and the answer in one part."""
    return request.param, answer(session, USER, request.param)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("cut", [1, 7, 8, 26])
def test_an_answer_in_two_parts_is_the_whole_one(session, uncut, cut, fresh):
    """The cut falls into characters too: they are bytes here."""
    sampling, whole = uncut
    first, second = in_two(session, USER, sampling, cut, fresh=fresh)
    assert is_whole(session, whole, first, second)
    assert second[-1].finish is Finish.LENGTH
    assert second[-1].usage.tokens == 40 - cut
    assert second[-1].token_ids_exact


def test_half_a_character_at_the_cut_is_shown_once_it_is_whole(session):
    """Each cut of an answer in bytes, of which some lie in a character."""
    whole = answer(session, USER, WARM)
    text, _, ids = joined(whole)
    assert session.target.tokenizer.decode(ids) == text
    short = 0
    for cut in range(1, 24):
        shown = joined(answer(session, USER, replace(WARM, max_tokens=cut)))[0]
        assert text.startswith(shown)
        short += shown != session.target.tokenizer.decode(ids[:cut])
    assert short > 0


def test_drafts_make_the_same_answer_in_two_parts(session):
    whole = answer(session, USER, WARM)
    session.choose_draft(session.weak)
    first, second = in_two(session, USER, WARM, 9, length=4)
    assert second[-1].usage.drafted > 0
    session.choose_draft("none")
    assert is_whole(session, whole, first, second)


@pytest.mark.parametrize("cut", [11, 12, 13])
def test_a_stop_string_may_lie_across_the_cut(session, cut):
    tokenizer = session.target.tokenizer
    ids = joined(answer(session, USER, replace(WARM, temperature=0.0)))[2]
    stop = tokenizer.decode(ids[10:14])
    sampling = replace(WARM, temperature=0.0, stop=(stop,))
    whole = answer(session, USER, sampling)
    assert whole[-1].finish is Finish.STOP
    first, second = in_two(session, USER, sampling, cut)
    assert second[-1].finish is Finish.STOP
    assert is_whole(session, whole, first, second)
    assert not second[-1].token_ids_exact


@pytest.mark.parametrize("cut", [2, 12, 30])
def test_thinking_goes_on_where_it_was(session, cut):
    messages = [Message("user", "think")]
    whole = answer(session, messages, THOUGHTFUL)
    text, reasoning, ids = joined(whole)
    assert text
    assert reasoning
    first, second = in_two(session, messages, THOUGHTFUL, cut)
    assert is_whole(session, whole, first, second)
    thought = ids.index(END_THINK) + 1
    assert whole[-1].usage.reasoning_tokens == thought
    parts = [part[-1].usage.reasoning_tokens for part in (first, second)]
    assert parts == [min(cut, thought), max(0, thought - cut)]


def test_an_answer_of_text_alone_is_encoded_and_goes_on(session):
    """Nothing is shown twice, and its ids are not passed off as the answer's."""
    first = Message("assistant", "abcabc")
    rest = answer(session, [*USER, first], WARM, resume=True)
    prompt = session.target.tokenizer.prompt(USER).ids
    assert session._tokens[: len(prompt) + 6] == [*prompt, *b"abcabc"]
    assert rest[-1].usage.prompt_tokens == len(prompt) + 6
    assert joined(rest)[2] == tuple(session._tokens[len(prompt) + 6 :])
    assert not rest[-1].token_ids_exact


def test_text_that_may_begin_a_stop_string_is_not_shown_twice(session):
    follows = joined(answer(session, [*USER, Message("assistant", "ab")], WARM, resume=True))
    sampling = replace(WARM, stop=("b\x00\x00never",))
    again = joined(answer(session, [*USER, Message("assistant", "ab")], sampling, resume=True))
    assert again == follows


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("content", ["", "so"])
def test_thinking_of_text_alone_is_put_in_its_tags(session, opened, content):
    messages = [Message("user", "think")] if opened else USER
    begun = Message("assistant", content, reasoning="<|im_end|> plan")
    rest = answer(session, [*messages, begun], WARM, resume=True)
    tokenizer = session.target.tokenizer
    before = len(tokenizer.prompt(messages).ids)
    text = tokenizer.backend.decode(session._tokens[before:], skip_special_tokens=False)
    expected = ("" if opened else "<think>\n") + "<|im_end|> plan"
    assert text.startswith(expected + ("\n</think>\n\nso" if content else ""))
    assert session._tokens[before] != IM_END
    assert bool(joined(rest)[1]) == (not content)


def test_only_an_answer_goes_on(session):
    with pytest.raises(ValueError, match="answer"):
        answer(session, [*USER, *USER], WARM, resume=True)


def test_lengths_say_which_token_brought_which_characters(session):
    """Whatever is held back or cut off, they add up to the text of each chunk."""
    ids = joined(answer(session, USER, WARM))[2]
    stop = session.target.tokenizer.decode(ids[20:23])
    session.choose_draft("ngram")
    chunks = answer(session, USER, replace(WARM, stop=(stop,)), length=4)
    session.choose_draft("none")
    assert chunks[-1].finish is Finish.STOP
    for chunk in chunks:
        assert len(chunk.lengths) == len(chunk.token_ids) == len(chunk.drafted)
        assert sum(chunk.lengths) == len(chunk.text)
    assert any(sum(c.lengths) for c in chunks)


def test_what_was_held_back_comes_with_the_end_token(session):
    free = answer(session, USER, replace(WARM, temperature=0.0))
    ids = joined(free)[2]
    tokenizer = session.target.tokenizer
    before, tokenizer.eos_ids = tokenizer.eos_ids, frozenset({ids[6]})
    at = ids.index(ids[6])
    stop = tokenizer.decode(ids[at - 1 : at]) + "never"
    chunks = answer(session, USER, replace(WARM, temperature=0.0, stop=(stop,)))
    tokenizer.eos_ids = before
    assert chunks[-2].lengths[-1] == len(tokenizer.decode(ids[at - 1 : at])) > 0
    assert joined(chunks)[0] == tokenizer.decode(ids[:at])


CHAT = [
    Message("system", "Be brief."),
    *(
        Message(role, f"{role} {number} " + "x" * 20)
        for number in range(5)
        for role in ("user", "assistant")
    ),
    Message("user", "and now?"),
]


def test_a_chat_is_measured_as_its_answer_will_find_it(session):
    assert session.measure(CHAT) == answer(session, CHAT, WARM)[-1].usage.prompt_tokens


@pytest.mark.parametrize("room", [1, 60, 200, 400])
def test_as_many_of_the_oldest_turns_go_as_must(session, room):
    session.limit_context(520)
    count = session.oldest(CHAT, room)
    assert count % 2 == 0
    assert session.measure(without(CHAT, count)) + room <= 512
    assert count == 0 or session.measure(without(CHAT, count - 2)) + room > 512
    assert without(CHAT, count)[0] == CHAT[0]


def test_a_last_turn_that_is_too_long_alone_is_said_in_numbers(session):
    session.limit_context(64)
    with pytest.raises(ContextFull) as full:
        session.oldest(CHAT, 50)
    session.limit_context(None)
    alone = session.measure([CHAT[0], CHAT[-1]])
    assert full.value.reason.values == {"needed": alone + 50, "context": 64}


def test_a_chat_that_does_not_fit_is_refused_in_numbers(session):
    long = [Message("user", "x" * 600)]
    with pytest.raises(ContextFull) as full:
        answer(session, long, WARM)
    assert full.value.reason.values == {"needed": session.measure(long), "context": 512}
    assert str(session.measure(long)) in str(full.value)
