"""Tab goes through a conversation as it is read."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from engine.api import Chunk
from tests.fakes import ScriptedSession, chunks_of

CODE = "```python\nx = 1\n```\n\ntext\n\n```python\ny = 2\n```\n"


@pytest.fixture(params=["LeftToRight", "RightToLeft"])
def direction(request, qapp):
    qapp.setLayoutDirection(Qt.LayoutDirection[request.param])
    yield
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def walk(qtbot, first, key=Qt.Key.Key_Tab):
    """What has the focus one after the other, from `first` once round."""
    first.setFocus()
    seen = []
    while (here := QApplication.focusWidget()) not in seen and len(seen) < 80:
        seen.append(here)
        qtbot.keyClick(here, key)
    return seen


def test_from_message_to_message_and_in_each_as_it_is_read(qtbot, direction, open_program):
    thinking = [Chunk(reasoning="why"), *chunks_of([CODE])]
    program = open_program(ScriptedSession(thinking, thinking))
    for question in ("one", "two"):
        with qtbot.waitSignal(program.chat.answered):
            program.chat.send(question)
    window = program.window
    answers = window.transcript._answers()
    qtbot.waitUntil(lambda: all(len(answer.body._copies) == 2 for answer in answers))
    wanted = [window.header.more]
    for shown in window.transcript.column.turns.values():
        if shown in answers:
            wanted += [shown._thought._fold, shown.body, *shown.body._copies]
            wanted += [shown.footer.copy, shown.footer.again, shown.footer.more]
        else:
            wanted += [shown.body, shown.pencil]
    seen = walk(qtbot, window.header.more)
    assert seen[: len(wanted)] == wanted
    assert window.composer.edit in seen[len(wanted) :]
    back = walk(qtbot, seen[-1], Qt.Key.Key_Backtab)
    assert back == seen[::-1]


def test_what_streams_in_comes_where_it_is_read(qtbot, open_program):
    pieces = [Chunk(text=CODE[:20]), *[Chunk(text=f"\nline {n}") for n in range(4000)]]
    program = open_program(ScriptedSession(pieces, pause=0.002))
    program.chat.send("one")
    answers = program.window.transcript._answers
    qtbot.waitUntil(lambda: bool(answers()) and len(answers()[0].body._copies) == 1)
    (answer,) = answers()
    answer.body.setFocus()
    qtbot.keyClick(answer.body, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is answer.body._copies[0]
    qtbot.keyClick(answer.body._copies[0], Qt.Key.Key_Tab)
    here, window = QApplication.focusWidget(), program.window
    assert here is window.transcript.jump or window.composer.isAncestorOf(here)
    with qtbot.waitSignal(program.chat.answered):
        program.chat.stop()


def test_a_message_that_is_edited_is_left_for_its_own_buttons(qtbot, open_program):
    program = open_program(ScriptedSession(chunks_of(["ok"])))
    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("one")
    bubble = next(iter(program.window.transcript.column.turns.values()))
    bubble.edit()
    seen = walk(qtbot, bubble.editor.field)
    assert seen[:3] == [bubble.editor.field, bubble.editor.cancel, bubble.editor.save]
