"""The conversation: what is sent, and what becomes of answers that end early."""

import pytest

from app.viewmodels.alerts import Action
from engine.api import Chunk, Finish, Usage
from engine.errors import ContextFull, OutOfMemory, Reason
from tests.fakes import TARGET, ScriptedSession, chunks_of


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
    assert returned.args == ["hi"]
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


def test_a_question_that_does_not_fit_offers_a_new_chat(qtbot, open_program):
    full = ContextFull("context_full", "The chat has {count} tokens.", count=9_000)
    program = open_program(ScriptedSession([full]))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("long")
    assert program.alerts.current.text == "The chat has 9000 tokens."
    assert program.alerts.current.action is Action.NEW_CHAT


def test_an_answer_that_fills_the_context_says_so_and_stays(qtbot, open_program):
    said = Reason("context_reached", "The chat has reached {context} tokens.", {"context": 8_192})
    end = Chunk(usage=Usage(tokens=4), finish=Finish.CONTEXT, notices=(said,))
    cut = [*chunks_of(["so far"])[:1], end]
    program = open_program(ScriptedSession(cut))
    ask(qtbot, program, "hi")
    assert program.chat.turns[-1].text == "so far"
    assert program.alerts.current.text == "The chat has reached 8192 tokens."
    program.window.error_bar.acted.emit(program.alerts.current.action)
    assert not program.chat.turns
    assert program.alerts.current is None


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
