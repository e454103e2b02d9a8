"""The conversation: what is sent, and what becomes of answers that end early."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from app import paths
from app.viewmodels.alerts import Action
from engine.api import Chunk, Finish, Usage
from engine.errors import OutOfMemory, Reason
from engine.past import Past
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


def test_a_deleted_chat_is_forgotten_by_the_drafts(qtbot, open_program):
    """Once it cannot come back, and only that one."""
    session = ScriptedSession(chunks_of(["one"]))
    program, learned = open_program(session), Past(paths.past_folder())
    ask(qtbot, program, "first")
    chat = program.chat.chat_id
    assert session.chats == [chat]
    for name in (chat, "another"):
        learned.of("v").add(name, [1, 2], 0)
    qtbot.waitUntil(lambda: program.conversations.record(chat) is not None)
    program.conversations.delete(chat)
    program.conversations.dismiss_note()

    def left():
        return [text.chat for text in Past(paths.past_folder()).of("v").all]

    qtbot.waitUntil(lambda: left() == ["another"])


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


def test_a_chat_whose_only_question_comes_back_is_none(qtbot, open_program):
    failing = [OutOfMemory("no_memory", "No memory.")]
    program = open_program(ScriptedSession(failing, chunks_of(["fine"])))
    ask(qtbot, program, "what a long story")
    qtbot.waitUntil(lambda: kept(program, qtbot) == [])
    assert (program.chat.title, program.chat.chat_id) == ("New chat", "")
    assert program.window.composer.edit.toPlainText() == "what a long story"
    ask(qtbot, program, "another")
    (record,) = kept(program, qtbot)
    assert (record.title, program.chat.title) == ("another", "another")


def test_what_is_written_meanwhile_stays_when_the_only_question_comes_back(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk()] * 1_000, pause=0.002))
    edit = program.window.composer.edit
    edit.setPlainText("first")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    edit.setPlainText("second")
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()
    assert edit.toPlainText() == "first\n\nsecond"
    program.chat.new_chat()
    assert edit.toPlainText() == "first\n\nsecond"


def test_a_draft_chosen_in_a_chat_is_remembered_without_a_question(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["one"])))
    ask(qtbot, program, "first")
    (record,) = kept(program, qtbot)
    assert record.choices.draft != "none"
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: kept(program, qtbot)[0].choices.draft == "none")


def test_a_chats_own_target_comes_with_its_own_draft(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]))
    program = open_program(session)
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: program.models.draft == "none")
    ask(qtbot, program, "first")
    (record,) = kept(program, qtbot)
    program.chat.new_chat()
    program.models.choose_draft("ngram")  # what is last used with that target
    qtbot.waitUntil(lambda: program.models.draft == "ngram")
    program.models.choose_target(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.target_key == str(DRAFT) and program.chat.can_send)
    with qtbot.waitSignal(program.chat.opened):
        program.chat.open(record)
    program.window.error_bar.acted.emit(Action.LOAD_CHATS_MODEL)
    qtbot.waitUntil(lambda: program.models.target_key == str(TARGET))
    qtbot.waitUntil(lambda: program.models.draft == "none" and not program.models.choosing)
    assert kept(program, qtbot)[0].choices.draft == "none"


def test_a_question_is_sent_as_it_was_written(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]))
    program = open_program(session)
    ask(qtbot, program, "\n    indented\n\tcode\n")
    assert session.asked[0][0].content == "\n    indented\n\tcode\n"
    assert program.chat.title == "indented"


def test_the_meter_falls_with_an_edit(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"], prompt=900), chunks_of(["two"], prompt=90))
    program = open_program(session)
    ask(qtbot, program, "long")
    assert program.chat.used == 904
    with qtbot.waitSignal(program.chat.answered):
        program.chat.edit(program.chat.turns[0].id, "short")
    assert program.chat.used == 94


@pytest.mark.parametrize("ends", ["stop", "fail"])
def test_an_answer_anew_without_a_word_leaves_the_one_before(qtbot, open_program, ends):
    failing = [OutOfMemory("no_memory", "No memory.")]
    session = ScriptedSession(chunks_of(["one"]), failing if ends == "fail" else [Chunk()] * 999)
    program = open_program(session)
    ask(qtbot, program, "hi")
    session.pause = 0.002
    with qtbot.waitSignal(program.chat.answered):
        program.chat.regenerate(program.chat.turns[-1].id)
        program.chat.stop() if ends == "stop" else None
    assert texts(program) == ["hi", "one"]
    assert len(program.chat.turns[-1].versions) == 1
    assert (program.alerts.current is not None) == (ends == "fail")


def test_closing_before_the_first_token_keeps_the_question(qtbot, open_program):
    program = open_program(ScriptedSession([Chunk()] * 1_000, pause=0.002))
    ask_and_leave = program.chat.send("hi")
    assert ask_and_leave
    program.chat.close()
    qtbot.waitUntil(lambda: not program.chat.answering)
    assert [(turn.role, turn.text) for turn in program.chat.turns] == [("user", "hi")]
    assert [record.title for record in kept(program, qtbot)] == ["hi"]


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
