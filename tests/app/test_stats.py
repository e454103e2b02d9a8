"""The acceptance panel's words and values."""

from engine.api import Chunk, Finish, Usage
from tests.fakes import ScriptedSession, chunks_of


def ask(qtbot, program):
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("hi")


def test_nothing_drafted_shows_dashes(qtbot, open_program):
    usage = Usage(tokens=3, plain_steps=3)
    program = open_program(ScriptedSession([Chunk(text="a", usage=usage, finish=Finish.STOP)]))
    for _ in range(2):
        assert program.stats.figures.rate == "–"
        assert program.stats.figures.per_round == "–"
        if not program.chat.turns:
            ask(qtbot, program)
    assert program.window.sidebar.acceptance._rate.text() == "–"
    assert "nothing drafted" in program.stats.figures.counts


def test_rate_counts_and_positions_agree_with_the_answer(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(list("abcd"), drafted=4, accepted=3)))
    ask(qtbot, program)
    figures, charts = program.stats.figures, program.stats.charts
    assert (figures.rate, figures.counts) == ("75 %", "12 of 16 accepted")
    assert figures.per_round == "4.00"
    assert charts.bars == (1.0, 1.0, 1.0, 0.0)
    assert charts.rounds == 4
    assert set(charts.line) == {0.75}
    assert not figures.live


def test_the_line_keeps_the_last_fifty_rounds(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["x"] * 80)))
    ask(qtbot, program)
    assert program.stats.charts.rounds == 50


def test_while_it_answers_the_panel_says_what_is_drafted(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["x"] * 2_000), pause=0.002))
    program.chat.send("hi")
    qtbot.waitUntil(lambda: program.stats.figures.state == "Drafting 4 tokens")
    assert program.stats.figures.live
    assert "4 drafted at a time; 40 ms a round." in program.stats.figures.sentence
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()
    assert program.stats.figures.state == "Last answer"


def test_without_a_draft_the_sentence_says_so(qtbot, open_program):
    program = open_program(ScriptedSession())
    program.models.choose_draft("none")
    qtbot.waitUntil(lambda: program.models.draft == "none")
    qtbot.waitUntil(lambda: "No draft" in program.stats.figures.sentence)


def test_numbers_change_at_most_four_times_a_second(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["x"] * 2_000), pause=0.001))
    changes = []
    program.stats.figures_changed.connect(changes.append)
    program.chat.send("hi")
    qtbot.wait(1_000)
    assert len(changes) <= 6
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()


def test_the_charts_have_a_text_twin(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(list("abcd"))))
    ask(qtbot, program)
    panel = program.window.sidebar.acceptance
    assert panel._bars.accessibleDescription() == "1st 100 %, 2nd 100 %, 3rd 100 %, 4th 0 %"
    assert "4 rounds" in panel._line.accessibleDescription()


def test_another_chat_shows_its_own_last_answer(qtbot, open_program):
    session = ScriptedSession(chunks_of(["one"]), [Chunk(text="x")] * 999)
    program = open_program(session)
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("first")
    first = program.chat.record
    program.chat.new_chat()
    session.pause = 0.002
    program.chat.send("second")
    qtbot.waitUntil(lambda: program.stats.figures.live)
    with qtbot.waitSignal(program.chat.opened):
        program.chat.open(first)
    figures = program.stats.figures
    assert (figures.live, figures.rate, figures.state) == (False, "75 %", "Last answer")
