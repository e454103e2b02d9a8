"""A chat that does not fit: what waits, what is left out or summed up, what is never lost."""

import pytest
from PySide6.QtCore import Qt

from app.viewmodels.alerts import Action
from app.viewmodels.overflow import Overflow
from engine.api import Chunk, Finish, Usage
from engine.errors import ContextFull, Reason
from tests.fakes import ScriptedSession, chunks_of


def ask(qtbot, program, text):
    with qtbot.waitSignal(program.chat.answered):
        assert program.chat.send(text)


def texts(program):
    return [turn.text for turn in program.chat.turns]


FULL = ContextFull("context_full", "{needed} of {context}", needed=9_000, context=8_192)


def test_a_question_that_does_not_fit_waits_until_the_user_has_chosen(qtbot, open_program):
    program = open_program(ScriptedSession([FULL]))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("long")
    assert program.chat.overflow == Overflow(9_000, 8_192)
    assert program.window.overflow_bar.isVisible()
    assert texts(program) == ["long"]  # seen while it waits
    program.window.overflow_bar.end.click()
    assert not program.chat.turns
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
    chat = program.chat.chat_id
    assert session.chats == [chat, chat, None, chat]  # a summary is no part of it
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
    assert "sums up" in program.window.overflow_bar._text.text()
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
    assert texts(program) == ["first", "one", "second"]


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


def test_an_edit_that_gets_no_answer_shows_what_was_there_again(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["one"]), [FULL]))
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.edit(program.chat.turns[0].id, "too long")
    program.chat.dismiss_overflow()
    assert texts(program) == ["first", "one"]
    assert len(program.chat.turns[0].versions) == 1
    assert program.window.composer.edit.toPlainText() == "too long"


def test_another_question_gives_the_one_that_waits_back(qtbot, open_program):
    session = ScriptedSession([FULL], chunks_of(["short"]))
    program = open_program(session)
    ask(qtbot, program, "too long")
    edit = program.window.composer.edit
    edit.setPlainText("shorter")
    with qtbot.waitSignal(program.chat.answered):
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert texts(program) == ["shorter", "short"]
    assert edit.toPlainText() == "too long"
    assert program.chat.overflow is None


def test_an_edit_that_does_not_fit_is_an_edit_once_there_is_room(qtbot, open_program):
    session = ScriptedSession(
        *(chunks_of([text]) for text in ("one", "two")), [FULL], chunks_of(["three"])
    )
    session.spare = 1
    program = open_program(session)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    ask_again = program.chat.turns[2]
    with qtbot.waitSignal(program.chat.answered):
        program.chat.edit(ask_again.id, "longer")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.drop.click()
    assert texts(program) == ["first", "one", "longer", "three"]
    assert ask_again.id in program.chat.turns[2].versions


def test_an_answer_anew_that_does_not_fit_waits_too(qtbot, open_program):
    session = ScriptedSession(
        *(chunks_of([text]) for text in ("one", "two")), [FULL], chunks_of(["three"])
    )
    program = open_program(session)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.regenerate(program.chat.turns[-1].id)
    assert texts(program) == ["first", "one", "second", "two"]
    assert program.window.overflow_bar.isVisible()
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.drop.click()
    assert texts(program) == ["first", "one", "second", "three"]
    assert [message.content for message in session.asked[-1]] == ["second"]


def test_an_answer_cut_by_the_context_goes_on_once_there_is_room(qtbot, open_program):
    cut = [*chunks_of(["so "])[:1], Chunk(usage=Usage(tokens=4), finish=Finish.CONTEXT)]
    session = ScriptedSession(chunks_of(["one"]), cut, chunks_of(["far"]))
    program = open_program(session)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.drop.click()
    assert session.resumed == [False, False, True]
    assert texts(program) == ["first", "one", "second", "so far"]


def test_a_question_that_waits_stays_in_the_chat_over_a_restart(qtbot, open_program):
    program = open_program(ScriptedSession([FULL]))
    ask(qtbot, program, "too long")
    program.chat.close()
    found = []
    program.history.opened.connect(lambda record, entries: found.append(entries))
    program.history.open(program.chat.record)
    qtbot.waitUntil(lambda: bool(found))
    assert [(entry.role, entry.text) for entry in found[0]] == [("user", "too long")]


def test_a_question_without_an_answer_can_be_answered_when_its_chat_is_opened(qtbot, open_program):
    session = ScriptedSession([FULL], [Chunk()] * 999, chunks_of(["late"]))
    program = open_program(session)
    ask(qtbot, program, "one")
    for again in (True, False):
        waiting = program.chat.record
        program.chat.new_chat()
        qtbot.waitUntil(lambda: program.chat.can_send)
        with qtbot.waitSignal(program.chat.opened):
            program.chat.open(waiting)
        assert texts(program) == ["one"]
        assert program.window.error_bar.isVisible()
        session.pause = 0.002 if again else 0
        asked = len(session.asked)
        program.window.error_bar.buttons[Action.ANSWER].click()
        assert program.chat.answering  # once it is left again before its first word
        qtbot.waitUntil(lambda asked=asked: len(session.asked) > asked)
    qtbot.waitUntil(lambda: not program.chat.answering)
    assert texts(program) == ["one", "late"]


def test_a_summary_fits_a_small_context(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), [FULL], chunks_of(["s"]), chunks_of(["two"]))
    program = open_program(session)
    program.models.choose_context(1_000)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.summarise.click()
    assert session.sampling[-2].max_tokens == 100
    assert "at most 50 words" in session.asked[-2][-1].content


def test_an_answer_that_cannot_go_on_keeps_why_it_ended(qtbot, open_program):
    cut = [*chunks_of(["so "])[:1], Chunk(usage=Usage(tokens=4), finish=Finish.CONTEXT)]
    program = open_program(ScriptedSession(cut, [FULL]))
    ask(qtbot, program, "first")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.resume(program.chat.turns[-1].id)
    assert (program.chat.turns[-1].finish, program.chat.turns[-1].state) == (
        Finish.CONTEXT,
        "done",
    )
    assert program.chat.overflow is not None


def test_a_summary_is_told_only_while_what_it_stands_for_is_in_the_chat(qtbot, open_program):
    session = ScriptedSession(
        chunks_of(["one"]), [FULL], chunks_of(["In short."]), chunks_of(["two"]), chunks_of(["x"])
    )
    program = open_program(session)
    ask(qtbot, program, "first")
    ask(qtbot, program, "second")
    with qtbot.waitSignal(program.chat.answered):
        program.window.overflow_bar.summarise.click()
    assert "In short." in session.asked[-1][0].content
    with qtbot.waitSignal(program.chat.answered):
        program.chat.edit(program.chat.turns[0].id, "anew")
    assert [message.content for message in session.asked[-1]] == ["anew"]
