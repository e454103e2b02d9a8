"""The conversation: what is sent, and what becomes of answers that end early."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from app.viewmodels.alerts import Action
from app.viewmodels.overflow import Overflow
from engine.api import Chunk, Finish, Usage
from engine.errors import ContextFull, OutOfMemory, Reason
from tests.fakes import DRAFT, TARGET, ScriptedSession, chunks_of


def ask(qtbot, program, text):
    with qtbot.waitSignal(program.chat.answered):
        assert program.chat.send(text)


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_an_empty_message_is_not_sent(open_program, text):
    session = ScriptedSession()
    program = open_program(session)
    assert not program.chat.send(text)
    assert not session.asked
    assert not program.chat.turns


def test_nothing_is_sent_before_a_model_is_loaded(open_program):
    session = ScriptedSession()
    session.load_hold.clear()
    program = open_program(session, wait=False)
    assert not program.chat.send("hello")
    session.load_hold.set()


def test_nothing_is_sent_while_it_answers(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk(text="x")] * 1_000, pause=0.002))
    program.chat.send("one")
    assert not program.chat.send("two")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()


def test_an_answer_goes_back_as_the_ids_it_was_generated_as(qtbot, open_program):
    session = ScriptedSession(chunks_of(["Hel", "lo"]), chunks_of(["again"]))
    program = open_program(session)
    ask(qtbot, program, "hi")
    ask(qtbot, program, "more")
    user, answer, question = session.asked[1]
    assert (user.role, user.content) == ("user", "hi")
    assert (answer.role, answer.content) == ("assistant", "Hello")
    assert answer.token_ids == tuple(range(8))
    assert answer.vocabulary == f"vocabulary of {TARGET}"
    assert question.content == "more"


def test_ids_that_do_not_spell_the_text_are_not_sent(qtbot, open_program):
    cut = [Chunk(text="a", token_ids=(1, 2)), Chunk(finish=Finish.STOP, token_ids_exact=False)]
    session = ScriptedSession(cut, chunks_of(["again"]))
    program = open_program(session)
    ask(qtbot, program, "hi")
    ask(qtbot, program, "more")
    assert session.asked[1][1].token_ids is None


def test_the_drafting_settings_go_with_the_question(qtbot, open_program):
    session = ScriptedSession(chunks_of(["a"]))
    program = open_program(session)
    program.models.draft_with(length=7, verification="rejection")
    ask(qtbot, program, "hi")
    assert (session.drafting[0].length, session.drafting[0].verification) == (7, "rejection")


def test_a_failure_reaches_the_bar_and_the_next_message_works(qtbot, open_program):
    failing = [OutOfMemory("out_of_memory", "The device's memory ran out.")]
    session = ScriptedSession(failing, chunks_of(["fine"]))
    program = open_program(session)
    with qtbot.waitSignal(program.chat.question_returned) as returned:
        program.chat.send("hi")
    assert returned.args == ["hi", ()]
    assert program.alerts.current.text == "The device's memory ran out."
    assert program.window.error_bar.isVisible()
    assert not program.chat.turns
    ask(qtbot, program, "hi")
    assert program.chat.turns[-1].text == "fine"
    assert program.alerts.current is None
    assert len(session.asked[1]) == 1


def test_memory_that_runs_out_keeps_the_text_so_far(qtbot, open_program):
    said = Reason("no_memory", "Memory ran out. The text is kept.")
    end = Chunk(usage=Usage(tokens=4), finish=Finish.MEMORY, notices=(said,))
    cut = [*chunks_of(["so far"])[:1], end]
    session = ScriptedSession(cut, chunks_of(["fine"]))
    program = open_program(session)
    ask(qtbot, program, "hi")
    assert program.chat.turns[-1].text == "so far"
    assert program.alerts.current.text == said.text
    # Said once: in the bar, not above the answer too.
    assert not program.window.transcript._answers()[0]._notices.isVisible()
    ask(qtbot, program, "shorter")
    assert program.chat.turns[-1].text == "fine"


def test_an_answer_that_fails_midway_stays_and_says_so(qtbot, open_program):
    cut = [*chunks_of(["so far"])[:1], RuntimeError("boom")]
    program = open_program(ScriptedSession(cut))
    ask(qtbot, program, "hi")
    assert program.chat.turns[-1].text == "so far"
    said = [made.text() for made in program.window.transcript._answers()[0].footer._labels]
    assert said[-1].endswith("failed")
    assert "RuntimeError" in program.alerts.current.text


def test_a_text_without_numbers_is_not_called_empty(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk(text="x")] * 1_000, pause=0.002))
    program.chat.send("hi")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()
    footer = program.window.transcript._answers()[0].footer
    assert [made.text() for made in footer._labels if made.text()] == ["stopped"]


def test_an_answer_without_a_token_is_called_empty(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk(finish=Finish.STOP)]))
    ask(qtbot, program, "hi")
    footer = program.window.transcript._answers()[0].footer
    assert [made.text() for made in footer._labels if made.text()] == ["The answer is empty"]


FULL = ContextFull("context_full", "{needed} of {context}", needed=9_000, context=8_192)


def test_a_question_that_does_not_fit_waits_until_the_user_has_chosen(qtbot, open_program):
    program = open_program(ScriptedSession([FULL]))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("long")
    assert program.chat.overflow == Overflow(9_000, 8_192)
    assert program.window.overflow_bar.isVisible()
    assert not program.chat.turns
    program.window.overflow_bar.end.click()
    assert program.window.composer.edit.toPlainText() == "long"
    assert program.chat.overflow is None


def test_the_oldest_turns_are_left_out_and_the_question_is_asked(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), [FULL], chunks_of(["two"]))
    program = open_program(session)
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("second")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.drop.click()
    assert session.rooms == [8_192 // 4]
    assert [message.content for message in session.asked[-1]] == ["second"]
    assert [turn.text for turn in program.chat.turns] == ["first", "one", "second", "two"]
    assert program.chat.turns[-1].left_out == 2
    assert program.chat.overflow is None


def test_a_summary_stands_for_the_oldest_turns(qtbot, open_program):
    summing = chunks_of(["They said one."])
    session = ScriptedSession(chunks_of(["one"]), [FULL], summing, chunks_of(["two"]))
    program = open_program(session)
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("second")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.summarise.click()
    summed = session.asked[-2]
    assert [message.content for message in summed[:-1]] == ["first", "one"]
    assert "Summarise" in summed[-1].content
    told = session.asked[-1]
    assert [message.role for message in told] == ["system", "user"]
    assert "They said one." in told[0].content
    assert [turn.text for turn in program.chat.turns] == ["first", "one", "second", "two"]


@pytest.mark.parametrize("spare", [ContextFull("context_full", "No room."), 0, 9])
def test_where_no_room_can_be_made_the_question_comes_back(qtbot, open_program, spare):
    session = ScriptedSession([FULL])
    session.spare = spare
    program = open_program(session)
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("long")
    program.chat.drop_oldest()
    qtbot.waitUntil(lambda: program.window.composer.edit.toPlainText() == "long")
    assert program.alerts.current is not None
    assert program.chat.can_send


@pytest.fixture
def full_program(qtbot, open_program):
    """A chat of one turn, and a question that does not fit; the next reply takes its time."""
    slow = [Chunk(text="word ")] * 1_000
    session = ScriptedSession(chunks_of(["one"]), [FULL], slow, chunks_of(["two"]))
    program = open_program(session)
    for question in ("first", "second"):
        program.window.composer.edit.setPlainText(question)
        with qtbot.waitSignal(program.chat.answered):
            qtbot.keyClick(program.window.composer.edit, Qt.Key.Key_Return)
    session.pause = 0.002
    return program, session


def test_a_summary_can_be_stopped_and_the_question_comes_back(qtbot, full_program):
    program, session = full_program
    program.window.overflow_bar.summarise.click()
    qtbot.waitUntil(lambda: len(session.asked) == 3)
    program.chat.stop()
    qtbot.waitUntil(lambda: program.chat.can_send)
    assert program.window.composer.edit.toPlainText() == "second"
    assert program.chat.choices.left_out is None
    assert program.alerts.current is None


def test_a_chat_left_while_it_is_summed_up_changes_nothing_in_the_next(qtbot, full_program):
    program, session = full_program
    full = program.chat.chat_id
    program.window.overflow_bar.summarise.click()
    qtbot.waitUntil(lambda: len(session.asked) == 3)
    program.chat.new_chat()
    assert program.window.composer.edit.toPlainText() == ""
    ask(qtbot, program, "something else")
    assert texts(program) == ["something else", "two"]
    assert program.chat.choices.left_out is None
    program.conversations.open(full)
    qtbot.waitUntil(lambda: program.chat.chat_id == full)
    assert program.window.composer.edit.toPlainText() == "second"


def test_a_summary_without_words_is_refused_with_a_reason(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), [FULL], [Chunk(finish=Finish.STOP)])
    program = open_program(session)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    program.window.overflow_bar.summarise.click()
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.alerts.current.text == "The model wrote no summary."
    assert program.window.composer.edit.toPlainText() == "second"


@pytest.mark.parametrize(("way", "asked"), [("drop", 2), ("summarise", 3), ("stop", 1)])
def test_what_the_settings_say_is_done_when_the_context_is_full(qtbot, open_program, way, asked):
    session = ScriptedSession(chunks_of(["one"]), [FULL], chunks_of(["x"]), chunks_of(["two"]))
    program = open_program(session)
    program.window.set("overflow", way)
    ask(qtbot, program, "first")
    program.chat.send("second")
    qtbot.waitUntil(lambda: len(session.asked) == asked + 1 and program.chat.can_send)
    assert program.chat.overflow is None


def test_an_answer_that_fills_the_context_stays_and_asks_what_to_do(qtbot, open_program):
    said = Reason("context_reached", "The chat has reached {context} tokens.", {"context": 8_192})
    end = Chunk(usage=Usage(tokens=4), finish=Finish.CONTEXT, notices=(said,))
    cut = [*chunks_of(["so far"])[:1], end]
    program = open_program(ScriptedSession(cut))
    ask(qtbot, program, "hi")
    assert program.chat.turns[-1].text == "so far"
    assert program.chat.overflow is not None
    program.chat.dismiss_overflow()
    assert program.chat.turns[-1].text == "so far"
    assert program.chat.overflow is None


# Versions


def texts(program):
    return [turn.text for turn in program.chat.turns]


def test_an_edited_question_is_a_version_and_both_can_be_seen(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), chunks_of(["two"]))
    program = open_program(session)
    ask(qtbot, program, "first")
    question = program.chat.turns[0]
    with qtbot.waitSignal(program.chat.answered):
        assert program.chat.edit(question.id, "second")
    assert texts(program) == ["second", "two"]
    assert [message.content for message in session.asked[1]] == ["second"]
    assert program.chat.turns[0].versions[0] == question.id
    program.chat.show_version(question.id)
    assert texts(program) == ["first", "one"]
    program.chat.show_version(program.chat.turns[0].versions[1])
    assert texts(program) == ["second", "two"]


def test_an_edit_that_gets_no_answer_shows_what_was_there_again(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["one"]), [FULL]))
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.edit(program.chat.turns[0].id, "too long")
    program.chat.dismiss_overflow()
    assert texts(program) == ["first", "one"]
    assert len(program.chat.turns[0].versions) == 1
    assert program.window.composer.edit.toPlainText() == "too long"


def test_an_answer_anew_is_a_version_with_another_seed_or_the_same(qtbot, open_program):
    session = ScriptedSession(*(chunks_of([text]) for text in ("one", "two", "three")))
    program = open_program(session)
    ask(qtbot, program, "hi")
    program.chat.turns[-1].usage = replace(program.chat.turns[-1].usage, seed=77)
    for same in (True, False):
        with qtbot.waitSignal(program.chat.answered):
            program.chat.regenerate(program.chat.turns[-1].id, same=same)
    assert [sampling.seed for sampling in session.sampling] == [None, 77, None]
    assert texts(program) == ["hi", "three"]
    assert len(program.chat.turns[-1].versions) == 3
    assert all(len(asked) == 1 for asked in session.asked)


def test_a_stopped_answer_goes_on_with_its_seed_and_its_sums(qtbot, open_program):
    first = [*chunks_of(["so "])[:1], Chunk(usage=Usage(tokens=4, seed=5), finish=Finish.LENGTH)]
    session = ScriptedSession(first, chunks_of(["far"]))
    program = open_program(session)
    ask(qtbot, program, "hi")
    answer = program.chat.turns[-1]
    with qtbot.waitSignal(program.chat.answered):
        program.chat.resume(answer.id)
    assert (answer.text, answer.finish) == ("so far", Finish.STOP)
    assert (session.resumed, session.sampling[1].seed) == ([False, True], 5)
    assert [message.role for message in session.asked[1]] == ["user", "assistant"]
    assert answer.usage.tokens == 8
    assert len(program.chat.turns) == 2


def test_what_ended_as_it_should_does_not_go_on(qtbot, open_program):
    session = ScriptedSession(chunks_of(["done"]))
    program = open_program(session)
    ask(qtbot, program, "hi")
    program.chat.resume(program.chat.turns[-1].id)
    assert session.resumed == [False]


# What is kept


def kept(program, qtbot):
    """The chats as the file has them."""
    listed = []
    program.history.listed.connect(listed.append)
    program.history.look()
    qtbot.waitUntil(lambda: bool(listed))
    return listed[-1]


def test_a_chat_is_kept_and_opens_as_it_was(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), chunks_of(["two"]), chunks_of(["three"]))
    program = open_program(session)
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.regenerate(program.chat.turns[-1].id)
    program.chat.choose(replace(program.chat.choices, system="Be brief."))
    program.chat.new_chat()
    assert program.chat.choices.system == ""
    (record,) = kept(program, qtbot)
    with qtbot.waitSignal(program.chat.opened):
        program.chat.open(record)
    assert texts(program) == ["first", "two"]
    assert program.chat.title == "first"
    assert program.chat.choices.system == "Be brief."
    answer = program.chat.turns[-1]
    assert (answer.usage.tokens, answer.finish, len(answer.versions)) == (4, Finish.STOP, 2)
    program.chat.show_version(answer.versions[0])
    assert texts(program) == ["first", "one"]
    ask(qtbot, program, "more")
    assert [m.content for m in session.asked[-1]] == ["Be brief.", "first", "one", "more"]


def test_a_question_without_an_answer_is_not_kept(qtbot, open_program):
    program = open_program(ScriptedSession([OutOfMemory("no_memory", "No memory.")]))
    ask(qtbot, program, "hi")
    found = []
    program.history.opened.connect(lambda record, entries: found.append(entries))
    (record,) = kept(program, qtbot)
    program.history.open(record)
    qtbot.waitUntil(lambda: bool(found))
    assert found == [[]]


def test_a_chat_remembers_its_draft_and_its_target(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]))
    program = open_program(session)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    ask(qtbot, program, "first")
    (record,) = kept(program, qtbot)
    assert (record.choices.target, record.choices.draft) == (str(TARGET), str(DRAFT))
    program.chat.new_chat()
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: program.models.draft == "none")
    program.chat.open(record)
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    program.chat.new_chat()
    program.models.choose_target(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT))
    qtbot.waitUntil(lambda: program.chat.can_send and not program.models.choosing)
    loads = list(session.loads)
    with qtbot.waitSignal(program.chat.opened):
        program.chat.open(record)
    assert session.loads == loads  # nothing is loaded unasked
    assert program.alerts.current.actions == (Action.LOAD_CHATS_MODEL,)
    program.window.error_bar.acted.emit(Action.LOAD_CHATS_MODEL)
    qtbot.waitUntil(lambda: program.models.target_key == str(TARGET))


def test_another_chat_stops_the_answer_and_keeps_what_came(qtbot, open_program):
    session = ScriptedSession(chunks_of(["old "] * 1_000), pause=0.002)
    program = open_program(session)
    program.chat.send("hi")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    program.chat.new_chat()
    (record,) = kept(program, qtbot)
    qtbot.waitUntil(lambda: program.chat.can_send)
    with qtbot.waitSignal(program.chat.opened):
        program.chat.open(record)
    answer = program.chat.turns[-1]
    assert answer.text.startswith("old ")
    assert (answer.finish, answer.state) == (Finish.CANCELLED, "done")
    assert answer.ended_early


def test_a_question_stopped_before_its_answer_goes_back_to_the_field(qtbot, open_program):
    waiting = [Chunk()] * 1_000
    session = ScriptedSession(waiting, pause=0.002)
    program = open_program(session)
    program.chat.send("first")
    program.window.composer.edit.setPlainText("second")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()
    assert program.window.composer.edit.toPlainText() == "first\n\nsecond"
    assert not program.chat.turns


def test_a_stopped_answer_keeps_what_came(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk(text="x")] * 1_000, pause=0.002))
    program.chat.send("hi")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()
    assert program.chat.turns[-1].finish is Finish.CANCELLED
    assert program.chat.turns[-1].text
    assert program.chat.can_send


def test_pieces_of_a_dropped_answer_do_not_reach_the_new_chat(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["old"] * 1_000), pause=0.002))
    program.chat.send("hi")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    program.chat.new_chat()
    qtbot.waitUntil(lambda: not program.chat.answering)
    assert not program.chat.turns
    assert program.chat.used == 0
    assert program.alerts.current is None


def test_notices_stand_above_the_answer(qtbot, open_program):
    folded = Reason("system_folded", "The system text was put into the first message.")
    session = ScriptedSession([Chunk(text="ok", notices=(folded,)), Chunk(finish=Finish.STOP)])
    program = open_program(session)
    ask(qtbot, program, "hi")
    shown = program.window.transcript._answers()[0]._notices
    assert shown.isVisible()
    assert shown.text() == "The system text was put into the first message."


def test_thinking_is_folded_and_can_be_read(qtbot, open_program):
    session = ScriptedSession([Chunk(reasoning="plan"), *chunks_of(["Answer 42"])])
    program = open_program(session)
    ask(qtbot, program, "hi")
    thought = program.window.transcript._answers()[0]._thought
    assert "Thought for" in thought._fold.text()
    assert not thought._text.isVisible()
    thought._fold.click()
    assert thought._text.toPlainText() == "plan"
    assert program.chat.turns[-1].text == "Answer 42"


def test_the_meter_counts_prompt_and_answer(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["a", "b"], prompt=641)))
    ask(qtbot, program, "hi")
    assert program.chat.used == 649


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Mean of a column\nplease", "Mean of a column"),
        ("word " * 40, "word " * 15 + "word …"),
        ("w" * 200, "w" * 80 + " …"),
    ],
)
def test_the_title_is_the_first_line_of_the_first_question(qtbot, open_program, question, title):
    program = open_program(ScriptedSession(chunks_of(["a"])))
    ask(qtbot, program, question)
    assert program.chat.title == title
