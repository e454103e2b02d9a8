"""One message: what it shows, what can be done with it, and by which keys."""

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QScrollArea, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.answer_menu import answer_menu
from app.widgets.bubble import Bubble
from app.widgets.footer import LINE, figures
from app.widgets.text import Text
from app.widgets.thought import Thought
from app.widgets.turn import AnswerTurn
from engine.api import Chunk, Finish, Usage
from engine.errors import Reason
from engine.text import Thinking
from tests.fakes import ScriptedSession, chunks_of

USAGE = Usage(
    tokens=185,
    drafted=184,
    accepted=135,
    rounds=50,
    round_tokens=185,
    seconds=2.5,
    prefill_seconds=0.25,
    time_to_first_token=0.21,
    seed=7,
)


@pytest.fixture
def show(qtbot, chat):
    """Shows a turn in a column of 720 pixels."""
    pages = []

    def showing(turn: Turn, width: int = 720, **options: bool) -> Bubble | AnswerTurn:
        page = QWidget()
        made = Bubble(turn, chat) if turn.role == "user" else AnswerTurn(turn, chat, **options)
        chat._turns = [turn]
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(made)
        column.addStretch()
        qtbot.addWidget(page)
        pages.append(page)
        page.resize(width, 500)
        page.show()
        qtbot.waitExposed(page)
        page.activateWindow()
        qtbot.waitUntil(page.isActiveWindow)
        return made

    return showing


def answer(text: str = "An answer.", **values: object) -> Turn:
    known = {"usage": USAGE, "drafted": True, "finish": Finish.STOP, "model": "Qwen"}
    return Turn("a", "assistant", text, **(known | values))


def said(shown: AnswerTurn) -> list[str]:
    return [made.text() for made in shown.footer._labels if made.isVisible()]


def test_the_footer_says_the_numbers(show):
    shown = show(answer(times_plain=1.7))
    assert said(shown) == [
        "185 tokens",
        "82.2 tok/s",
        "first token 0.21 s",
        "73 % accepted",
        "3.70 tokens a round",
        "1.7 times plain",
    ]
    tips = [made.toolTip() for made in shown.footer._labels]
    assert "135 of 184" in tips[3]
    assert "50 rounds" in tips[4]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"finish": Finish.CANCELLED}, "stopped"),
        ({"finish": Finish.LENGTH}, "length limit"),
        ({"finish": Finish.CONTEXT}, "context full"),
        ({"finish": Finish.MEMORY}, "stopped for memory"),
        ({"finish": None, "state": "interrupted"}, "interrupted"),
        ({"finish": None, "state": "failed"}, "failed"),
    ],
)
def test_the_footer_says_how_an_answer_ended(values, words):
    for usage in (USAGE, Usage()):
        assert figures(answer(usage=usage, **values))[-1].text == words
        assert figures(answer("", usage=usage, **values))[-1].text == words
    running = answer(running=True, **values)
    assert words not in [number.text for number in figures(running)]
    assert "no draft" in [number.text for number in figures(answer(drafted=False))]


def test_a_failure_says_why_in_its_tooltip(show):
    why = Reason("memory", "The graphics card ran out of memory.")
    shown = show(answer(finish=None, state="failed", problem=why))
    last = shown.footer._labels[-1]
    assert (last.text(), last.property("tone")) == ("failed", "bad")
    assert "ran out of memory" in last.toolTip()


def test_a_numbers_place_does_not_shrink(show):
    turn = answer(running=True, finish=None)
    shown = show(turn)
    places = [made.geometry() for made in shown.footer._labels]
    turn.usage = replace(USAGE, accepted=9, tokens=9, round_tokens=50)
    shown.footer.numbers.now()
    assert "5 % accepted" in said(shown)
    assert [made.geometry() for made in shown.footer._labels] == places


@pytest.mark.parametrize("width", [720, 420, 330])
def test_the_footer_breaks_where_there_is_no_room(qtbot, show, width):
    shown = show(answer(times_plain=1.7, versions=("z", "a")), width)
    qtbot.wait(10)
    parts = [*(m for m in shown.footer._labels if m.isVisible()), shown.tools]
    places = [part.geometry() for part in parts]
    for place in places:
        assert shown.footer.rect().contains(place)
    for one, place in enumerate(places):
        assert not any(place.intersects(other) for other in places[one + 1 :])
    for made in parts[:-1]:
        assert made.width() >= made.sizeHint().width()
    assert width > 400 or shown.footer.height() > 28


@pytest.mark.parametrize("language", resources.LANGUAGES)
def test_an_answers_numbers_take_one_line_in_every_language(qapp, show, language):
    resources.speak(qapp, language)
    try:
        turn = answer(times_plain=1.7)
        turn.usage = replace(USAGE, seconds=USAGE.seconds / 2, prompt_tokens=8_000)
        shown = show(turn, 720)
        assert shown.footer.height() <= LINE + 4
    finally:
        resources.speak(qapp, "en")


def test_right_to_left_the_footer_is_mirrored(qtbot, show):
    shown = show(answer(versions=("z", "a")))
    left = shown.footer._labels[0].geometry()
    shown.window().setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    qtbot.wait(10)
    right = shown.footer._labels[0].geometry()
    assert right.right() == shown.footer.width() - 1 - left.left()
    assert shown.tools.x() == 0
    versions = shown.tools.versions
    assert versions.earlier.x() > versions.later.x()


def test_older_footers_step_back_and_come_forward_with_the_focus(qtbot, show):
    shown = show(answer())
    buttons = (shown.footer.copy, shown.footer.again, shown.footer.more)
    shown.set_latest(True)
    assert not any(button.icon().isNull() for button in buttons)
    QApplication.sendEvent(shown, QEvent(QEvent.Type.Leave))
    shown.set_latest(False)
    assert shown.footer._labels[0].property("tone") == "text3"
    assert all(button.icon().isNull() for button in buttons)
    place = shown.footer.copy.geometry()
    shown.footer.copy.setFocus()
    assert not any(button.icon().isNull() for button in buttons)
    assert shown.footer.copy.geometry() == place
    shown.footer.copy.clearFocus()
    assert all(button.icon().isNull() for button in buttons)


def test_buttons_wait_for_the_end_of_the_answer(show):
    turn = answer("An", running=True, finish=None)
    shown = show(turn)
    assert not shown.footer.copy.isEnabled()
    turn.text, turn.running, turn.finish = "An answer.", False, Finish.STOP
    shown.update_turn()
    assert shown.footer.copy.isEnabled()
    shown.footer.copy.click()
    assert QGuiApplication.clipboard().text() == "An answer."
    shown.set_idle(False)
    assert not shown.footer.again.isEnabled()
    assert shown.footer.copy.isEnabled()


def test_versions_are_walked_by_arrows_and_keys(qtbot, chat, show):
    for turn in (answer(versions=("x", "a", "b")), Turn("a", "user", "hi", versions=("x", "a"))):
        shown = show(turn)
        versions = shown.tools.versions
        assert versions._place.text() == f"2 / {len(turn.versions)}"
        assert versions.later.isEnabled() == (len(turn.versions) == 3)
        versions.earlier.setFocus()
        qtbot.keyClick(versions.earlier, Qt.Key.Key_Space)
        assert chat.asked.pop() == ("version", "x")
        shown.set_idle(False)
        assert not versions.earlier.isEnabled()
    assert show(answer(versions=("a",))).tools.versions is None


def entries(chat: Chat, turn: Turn, parent: QWidget) -> dict[str, object]:
    menu = answer_menu(parent, turn, chat, lambda: chat.asked.append(("edit question",)))
    return {action.text(): action for action in menu.actions() if action.text()}


def test_the_menu_of_an_answer_does_what_it_says(chat, show):
    turn = answer("# Head\n\n- **one**\n\n![x](https://example.org/p.png)")
    shown = show(turn)
    found = entries(chat, turn, shown)
    assert list(found) == [
        "Copy as Markdown",
        "Copy as rich text",
        "Regenerate",
        "Same again",
        "Edit the question",
    ]
    for name in ("Regenerate", "Same again", "Edit the question"):
        found[name].trigger()
    assert chat.asked == [("regenerate", "a", False), ("regenerate", "a", True), ("edit question",)]
    found["Copy as Markdown"].trigger()
    assert QGuiApplication.clipboard().text() == turn.text
    found["Copy as rich text"].trigger()
    data = QGuiApplication.clipboard().mimeData()
    assert "<li>" in data.html()
    assert "<strong>one</strong>" in data.html()
    assert "<img" not in data.html()
    assert data.text() == turn.text


@pytest.mark.parametrize("finish", [None, Finish.CANCELLED, Finish.LENGTH, Finish.MEMORY])
def test_an_answer_that_ended_early_can_go_on(chat, show, finish):
    turn = answer(finish=finish)
    shown = show(turn)
    entries(chat, turn, shown)["Continue"].trigger()
    assert chat.asked == [("resume", "a")]
    chat.can_send = False
    assert not entries(chat, turn, shown)["Continue"].isEnabled()
    chat._turns.append(Turn("q2", "user", "next"))
    assert "Continue" not in entries(chat, turn, shown)


def test_the_menu_opens_by_key_and_leaves_nothing(qtbot, chat, show):
    shown = show(answer())
    shown.footer.more.setFocus()
    qtbot.keyClick(shown.footer.more, Qt.Key.Key_Space)
    menu = shown.findChild(QMenu)
    assert menu.isVisible()
    qtbot.keyClick(menu, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: shown.findChild(QMenu) is None)


def test_a_continued_answer_reads_as_one(show):
    turn = answer("The end of a para", finish=Finish.CANCELLED)
    shown = show(turn)
    turn.running, turn.finish = True, None
    turn.text += "graph, and"
    shown.update_turn()
    turn.text += " **more**."
    turn.running, turn.finish = False, Finish.STOP
    shown.update_turn()
    assert shown.body.toPlainText() == "The end of a paragraph, and more."
    assert shown.body.document().blockCount() == 1


def test_a_question_is_edited_in_its_place(qtbot, chat, show):
    shown = show(Turn("q", "user", "What is it?"))
    shown.pencil.setFocus()
    qtbot.keyClick(shown.pencil, Qt.Key.Key_Space)
    field = shown.editor.field
    assert field.hasFocus()
    assert not shown.body.isVisible()
    qtbot.keyClicks(field, " Now")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.toPlainText() == "What is it? Now\n"
    assert chat.asked == []
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert chat.asked == [("edit", "q", "What is it? Now\n", ())]


def test_an_edit_that_is_left_for_another_chat_goes_on(qtbot, open_program):
    program = open_program(ScriptedSession(*[chunks_of(["ok"])] * 2))
    column = program.window.transcript

    def bubble():
        return column.findChildren(Bubble)[0]

    def leave_and_return():
        name = program.chat.chat_id
        program.window.new_chat()
        qtbot.waitUntil(lambda: not column.findChildren(Bubble))
        program.conversations.open(name)
        qtbot.waitUntil(lambda: bool(column.findChildren(Bubble)))

    with qtbot.waitSignal(program.chat.answered):
        program.chat.send("What is it", [Attachment("one.txt", "1"), Attachment("two.txt", "2")])
    bubble().edit()
    qtbot.keyClicks(bubble().editor.field, " now?")
    bubble().editor.chips._chips[0].remove.click()
    leave_and_return()
    assert bubble().editor.field.text() == "What is it now?"
    assert "What is it now?" in program.chat.texts  # which no bug report holds
    assert program.window.composer.edit.hasFocus()
    bubble().editor.cancel.click()
    leave_and_return()
    assert bubble().editor is None
    bubble().edit()
    bubble().editor.field.setPlainText("And this?")
    leave_and_return()
    with qtbot.waitSignal(program.chat.answered):
        bubble().editor.save.click()
    leave_and_return()
    assert bubble().editor is None
    assert bubble().turn.text == "And this?"
    assert program.chat.rewritten == {}


def test_files_of_a_question_can_be_taken_away_and_sent_alone(qtbot, chat, show):
    one, two = Attachment("one.txt", "1"), Attachment("two.txt", "2")
    shown = show(Turn("q", "user", "Look.", attachments=(one, two)))
    shown.edit()
    editor = shown.editor
    assert not any(chip.isVisible() for chip in shown.chips)
    qtbot.keyClick(editor.chips._chips[0].remove, Qt.Key.Key_Delete)
    editor.field.clear()
    editor.save.click()
    assert chat.asked == [("edit", "q", "", (two,))]
    editor.chips._chips[0].remove.click()
    assert not editor.save.isEnabled()
    editor.cancel.click()
    assert all(chip.isVisible() for chip in shown.chips)


def test_escape_leaves_the_question_as_it_was(qtbot, chat, show):
    shown = show(Turn("q", "user", "What is it?"))
    shown.edit()
    shown.editor.field.setPlainText("Something else")
    qtbot.keyClick(shown.editor.field, Qt.Key.Key_Escape)
    assert shown.editor is None
    assert shown.body.isVisible()
    assert shown.body.toPlainText() == "What is it?"
    assert shown.pencil.hasFocus()
    shown.edit()
    shown.editor.cancel.click()
    assert shown.editor is None
    assert chat.asked == []


def test_what_is_refused_stays_written(chat, show):
    chat.refuses = True
    shown = show(Turn("q", "user", "What is it?"))
    shown.edit()
    shown.editor.field.setPlainText("  ")
    assert not shown.editor.save.isEnabled()
    shown.editor.field.setPlainText("Something else")
    shown.editor.save.click()
    assert shown.editor.field.toPlainText() == "Something else"
    assert shown.editor._hint.isVisible()


def test_the_field_grows_to_a_limit(qtbot, show):
    shown = show(Turn("q", "user", "One line"))
    shown.edit()
    low = shown.editor.field.height()
    shown.editor.field.setPlainText("a\n" * 5)
    high = shown.editor.field.height()
    shown.editor.field.setPlainText("a\n" * 500)
    assert low < high < shown.editor.field.height() < 500


def test_a_file_is_a_chip_that_unfolds(qtbot, show):
    text = "secret\x00line\n" + "x" * 50_000
    shown = show(Turn("q", "user", "Look.", attachments=(Attachment("a & b.txt", text),)))
    chip = shown.chips[0]
    assert "a & b.txt" in chip.head.accessibleName()
    assert "50 kB" in chip.head.accessibleName()
    assert chip._viewer is None
    width = shown._frame.width()
    chip.head.setFocus()
    qtbot.keyClick(chip.head, Qt.Key.Key_Space)
    assert chip._viewer.isVisible()
    assert chip._viewer.isReadOnly()
    assert "secret⟨NUL⟩line" in chip._viewer.toPlainText()
    assert max(map(len, chip._viewer.toPlainText().split("\n"))) <= 2_000
    qtbot.waitUntil(lambda: shown._frame.width() > width)
    chip.head.click()
    assert not chip._viewer.isVisible()


def test_typed_control_tokens_are_shown_unchanged(show):
    text = "hi<|im_end|>\n<|im_start|>system\nwhat is enclosed in <>\n<channel> &amp; **x**"
    assert show(Turn("q", "user", text)).body.toPlainText() == text


@pytest.fixture
def thought(qtbot, chat):
    page = QWidget()
    qtbot.page = page  # else it goes with the last reference
    column = QVBoxLayout(page)
    made = Thought()
    column.addWidget(made)
    column.addStretch()
    qtbot.addWidget(page)
    page.resize(700, 400)
    page.show()
    qtbot.waitExposed(page)
    return made


def test_thinking_says_how_long_and_how_much(thought):
    turn = answer("", reasoning="hm", running=True, usage=Usage(tokens=3))
    thought.show_turn(turn)
    assert thought._fold.accessibleName() == "Thinking"
    turn.running, turn.thinking = False, 6.2
    turn.usage = Usage(tokens=214, reasoning_tokens=214)
    thought.show_turn(turn)
    assert thought._fold.accessibleName() == "Thought for 6 s"
    assert thought._tokens.text() == "214 tokens"
    turn.thinking = None
    thought.show_turn(turn)
    assert thought._fold.accessibleName() == "Stopped while thinking"


def test_the_users_toggle_survives_streaming(qtbot, thought):
    turn = answer("", reasoning="a plan\n", running=True)
    thought.show_turn(turn)
    assert not thought._room.isVisible()
    thought._fold.click()
    qtbot.waitUntil(lambda: thought._room.maximumHeight() > 1_000)
    hidden = []
    for n in range(20):
        turn.reasoning += f"step {n}\n"
        thought.show_turn(turn)
        hidden.append(thought._room.isHidden())
    turn.text, turn.thinking, turn.running = "Done.", 2.0, False
    thought.show_turn(turn)
    assert not any(hidden)
    assert thought._fold.isChecked()
    assert thought._text.toPlainText() == turn.reasoning
    thought._fold.click()
    qtbot.waitUntil(lambda: thought._room.isHidden())
    turn.reasoning += "more"
    thought.show_turn(turn)
    assert thought._room.isHidden()


@pytest.mark.parametrize("kind", ["a", "word ", "a\u00a0b "])
def test_a_long_line_of_thinking_blocks_nothing_and_leaves_the_selection(qtbot, kind):
    area, shown = QScrollArea(), Thought(unfolded=True)
    area.setWidgetResizable(True)
    area.setWidget(shown)
    qtbot.addWidget(area)
    area.resize(700, 400)
    area.show()
    turn = answer("", reasoning=(kind * 190_000)[:190_000], running=True)
    shown.show_turn(turn)
    chosen = shown._text.textCursor()
    chosen.setPosition(40)
    chosen.movePosition(chosen.MoveOperation.End, chosen.MoveMode.KeepAnchor)
    shown._text.setTextCursor(chosen)
    selected = chosen.selectedText()
    qtbot.waitExposed(area)
    qtbot.wait(50)  # laid out beside the scroll bar
    for at in range(100):
        began = time.thread_time()
        turn.reasoning += (kind * 100)[:100]
        shown.show_turn(turn)
        qtbot.wait(1)
        assert time.thread_time() - began < 0.1, at
    assert shown._text.textCursor().selectedText() == selected
    told = shown._text.document().toRawText().replace("\u2029", "")
    assert told == turn.reasoning
    whole = Text("")
    qtbot.addWidget(whole)
    whole.show_plain(turn.reasoning)
    assert whole.toPlainText() == shown._text.toPlainText()


def test_thinking_is_unfolded_at_first_where_that_is_set(qtbot, chat, show):
    shown = show(answer("", reasoning="a plan", running=True), unfolded=True)
    thought = shown._thought
    assert thought._room.isVisible()
    assert thought._text.toPlainText() == "a plan"
    assert thought._text.height() > 0
    thought._fold.click()
    qtbot.waitUntil(lambda: thought._room.isHidden())
    shown.turn.reasoning += " and more"
    shown.set_unfolded(True)
    shown.update_turn()
    assert thought._room.isHidden()
    shown = show(answer("", running=True))
    shown.set_unfolded(True)
    shown.turn.reasoning = "late"
    shown.update_turn()
    assert shown._thought._room.isVisible()


def test_built_right_to_left_the_arrow_points_left(qapp):
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        assert Thought()._fold._icon == "chevron-left"
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    assert Thought()._fold._icon == "chevron-right"
    assert Thought(unfolded=True)._fold._icon == "chevron-down"


def test_folding_does_not_move_where_the_system_asks_for_less(thought, monkeypatch):
    thought.show_turn(answer("", reasoning="a plan"))
    assert thought._duration() == 120
    monkeypatch.setattr(thought.style().__class__, "styleHint", lambda *_: 0)
    assert thought._duration() == 0
    thought._fold.click()
    assert thought._room.isVisible()
    thought._fold.click()
    assert thought._room.isHidden()


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize(
    "pieces",
    [
        ["<th", "ink>plan", " more</thi", "nk>\n\nAnswer 42"],
        ["<think>plan more</think>Answer 42"],
        list("<think>plan more</think>\n\nAnswer 42"),
    ],
)
def test_no_piece_of_a_tag_is_ever_seen(show, pieces, open_):
    turn = answer("", running=True, finish=None, usage=Usage())
    shown = show(turn)
    thinking = Thinking()
    seen = []

    def take(piece):
        turn.add(Chunk(text=piece.text, reasoning=piece.reasoning, usage=USAGE))
        shown.update_turn()
        if open_ and shown._thought is not None and not shown._thought._fold.isChecked():
            shown._thought._fold.click()
        seen.append(shown.body.toPlainText())
        if shown._thought is not None:
            seen.append(shown._thought._text.toPlainText())

    for piece in pieces:
        take(thinking.push(piece))
    take(thinking.flush())
    turn.running = False
    shown.update_turn()
    assert not any(mark in text for text in seen for mark in "<>/")
    assert shown.body.toPlainText().strip() == "Answer 42"
    assert turn.reasoning.strip() == "plan more"
    assert turn.text.strip() == "Answer 42"


def test_a_larger_font_makes_everything_larger(qapp, show):
    before = show(answer()).sizeHint().height()
    held = QFont(qapp.font())
    larger = QFont(held)
    larger.setPointSizeF(held.pointSizeF() * 1.6)
    try:
        qapp.setFont(larger)
        shown = show(answer())
        assert shown.sizeHint().height() > before
        for made in shown.footer._labels:
            assert made.height() >= made.sizeHint().height() or not made.isVisible()
    finally:
        qapp.setFont(held)
