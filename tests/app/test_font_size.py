"""The font size is changed while the program runs: all looks as if it had begun so."""

import html

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics, QTextCursor
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from app import paths, resources
from app.chats.conversation import Attachment
from app.settings import Settings, save
from app.widgets.header import LEAST_TITLE
from app.widgets.transcript import Transcript
from engine.api import Usage
from tests.app.test_transcript import MARKDOWN, answer, filled, question
from tests.composing import ScriptedChat
from tests.fakes import ScriptedSession, chunks_of

SIZES = (80, 130, 200)
USAGE = Usage(
    tokens=97, prompt_tokens=301, cached_tokens=120, seconds=2.4, drafted=80, accepted=49,
    rounds=31, round_tokens=80, time_to_first_token=0.21,
)  # fmt: skip
TURNS = (
    question(0, "Why, and for how long?"),
    answer(0, reasoning="First this, then that. " * 20, thinking=6, usage=USAGE, drafted=True),
    question(1, "A line of many words. " * 12, attachments=(Attachment("notes.txt", "a\nb"),)),
    answer(1, "A formula $x^2$, `code` and\n\n- [x] a task\n- another\n\n# Head\n" + MARKDOWN),
)


@pytest.fixture
def sized(qapp):
    """Sets the font size; at the end it is the usual one."""
    if not qapp.styleSheet():
        resources.apply_theme(qapp, "light")

    def set_size(percent: int) -> None:
        resources.apply_theme(qapp, "light", percent=percent)

    set_size(100)
    yield set_size
    set_size(100)


@pytest.fixture
def show(qtbot, sized):
    """Shows a transcript of some turns."""
    chats = []

    def showing(turns=TURNS) -> Transcript:
        chats.append(ScriptedChat())
        made = Transcript(chats[-1])
        qtbot.addWidget(made)
        made.resize(800, 600)
        made.show()
        qtbot.waitExposed(made)
        chats[-1].show_chat(list(turns))
        filled(qtbot, made)
        return made

    return showing


def drawn(transcript):
    """Where all texts and labels are, and the fonts in the answers."""
    places = []
    for name, shown in transcript._turns.items():
        places.append((name, shown.geometry(), shown.body.geometry()))
        places += [
            (made.text(), made.geometry()) for made in shown.findChildren(QLabel) if made.text()
        ]
        block = shown.body.document().begin()
        while block.isValid():
            places += [
                (found.format.font().pointSizeF(), found.start, found.length)
                for found in block.textFormats()
            ]
            block = block.next()
    return places


@pytest.mark.parametrize("percent", SIZES)
def test_a_chat_looks_as_one_that_was_opened_in_that_size(qtbot, show, sized, percent):
    changed = show()
    sized(percent)
    qtbot.wait(20)
    opened = show()
    assert drawn(changed) == drawn(opened)
    assert changed.verticalScrollBar().maximum() == opened.verticalScrollBar().maximum()


def test_a_size_and_back_leaves_all_as_it_was(qtbot, show, sized):
    transcript = show()
    before = drawn(transcript)
    for percent in (200, 80, 100):
        sized(percent)
        qtbot.wait(20)
    assert drawn(transcript) == before


def line_at_top(transcript, text):
    """The line that is the first to be seen, and how many pixels below the top of the view."""
    top = text.mapFrom(transcript.viewport(), QPoint(0, 0))
    cursor = text.cursorForPosition(top)
    cursor.movePosition(QTextCursor.MoveOperation.StartOfWord)
    return cursor.position(), text.cursorRect(cursor).top() - top.y()


@pytest.mark.parametrize("role", ["question", "answer", "thought"])
def test_what_is_read_and_selected_stays_so(qtbot, show, sized, role):
    long = "\n\n".join(f"Part {n} of a long text, with some words to it." for n in range(200))
    turns = {
        "question": [question(0, long), answer(0)],
        "answer": [question(0), answer(0, long), question(1), answer(1)],
        "thought": [question(0), answer(0, reasoning=long, thinking=3)],
    }
    transcript = show(turns[role])
    shown = transcript._turns["q0" if role == "question" else "a0"]
    if role == "thought":
        shown._thought._fold.click()
        unfolding = shown._thought._motion
        qtbot.waitUntil(lambda: unfolding.state() is unfolding.State.Stopped)
        assert transcript.verticalScrollBar().maximum() > 2_000
    text = shown._thought._text if role == "thought" else shown.body
    selection = text.textCursor()
    selection.setPosition(2_000)
    selection.setPosition(2_050, QTextCursor.MoveMode.KeepAnchor)
    text.setTextCursor(selection)
    selected = text.textCursor().selectedText()
    transcript.verticalScrollBar().setValue(transcript.verticalScrollBar().maximum() // 2)
    position, offset = line_at_top(transcript, text)
    assert position > 1_000
    for percent in (200, 80, 130):
        sized(percent)
        qtbot.wait(20)
        cursor = text.textCursor()
        cursor.setPosition(position)
        top = text.mapTo(transcript.viewport(), text.cursorRect(cursor).topLeft()).y()
        assert abs(top - offset) <= 2
        assert text.textCursor().selectedText() == selected
        if role == "thought":
            assert shown._thought._fold.isChecked()


def test_the_end_is_followed_on(qtbot, show, sized):
    transcript = show()
    sized(200)
    qtbot.wait(20)
    bar = transcript.verticalScrollBar()
    assert transcript.following
    assert bar.value() == bar.maximum()


def test_a_message_that_is_edited_goes_on_being_edited(qtbot, show, sized):
    transcript = show()
    editor = transcript._turns["q1"]
    editor.edit()
    editor.editor.field.setPlainText("Something\nelse")
    sized(200)
    qtbot.wait(20)
    field = editor.editor.field
    assert field.toPlainText() == "Something\nelse"
    assert field.height() >= 2 * field.fontMetrics().lineSpacing()


def test_places_that_were_found_stay_marked(qtbot, show, sized):
    transcript = show()
    transcript.open_find()
    transcript.search.bar.field.setText("radiators")
    qtbot.waitUntil(lambda: bool(transcript._turns["a1"].body.extraSelections()))
    sized(130)
    qtbot.wait(20)
    (marked,) = transcript._turns["a1"].body.extraSelections()
    assert marked.cursor.selectedText() == "radiators"
    assert transcript.search.bar.height() >= transcript.search.bar.minimumSizeHint().height()


@pytest.mark.parametrize("percent", SIZES)
def test_no_button_of_the_window_cuts_its_words(qtbot, open_program, sized, percent):
    program = open_program(ScriptedSession(chunks_of(["Yes. "] * 9), chunks_of(["No. "] * 9)))
    window = program.window
    window.resize(1600, 1000)
    program.chat.send("First?")
    qtbot.waitUntil(lambda: not program.chat.answering)
    sized(percent)
    program.chat.send("Second?")
    qtbot.waitUntil(lambda: not program.chat.answering)
    qtbot.wait(50)
    send = window.composer._button
    assert send.font().pointSizeF() == pytest.approx(resources.font("heading").pointSizeF())
    for button in window.findChildren(QPushButton):
        if button.isVisible() and button.text().strip():
            metrics = QFontMetrics(button.font())
            assert button.height() >= metrics.height(), button.text()
            assert button.width() >= metrics.horizontalAdvance(button.text()), button.text()
    for word in window.findChildren(QLabel):
        if word.isVisible() and word.text() and not word.wordWrap():
            assert word.height() >= word.sizeHint().height(), word.text()
            assert word.toolTip() or word.width() >= word.sizeHint().width(), word.text()


def test_an_open_dialog_and_what_opens_later_are_fitted(qtbot, open_program, sized):
    window = open_program(ScriptedSession()).window
    window.resize(1440, 900)
    window.settings.open_up()
    before = {name: control.height() for name, control in window.settings.controls.items()}
    sized(200)
    qtbot.wait(50)
    font = QApplication.font().pointSizeF()
    assert all(c.font().pointSizeF() >= font for c in window.settings.controls.values())
    assert window.settings.controls["theme"].height() > before["theme"]
    window.composer.sampling.click()
    stops = window.composer.sampling.popover.stop
    assert stops.height() >= 2 * QFontMetrics(stops.font()).lineSpacing()


@pytest.mark.parametrize("percent", [100, 200])
def test_a_long_message_is_edited_with_the_caret_in_sight(qtbot, open_program, sized, percent):
    program = open_program(ScriptedSession(*(chunks_of(["Yes. "] * 40) for _ in range(2))))
    program.window.resize(900, 600)
    sized(percent)
    for said in ("\n".join(f"line {n} of a long message" for n in range(300)), "Again?"):
        program.chat.send(said)
        qtbot.waitUntil(lambda: not program.chat.answering)
    transcript = program.window.transcript
    filled(qtbot, transcript)
    name = program.chat.turns[0].id
    transcript.show_turn(name)
    bubble = transcript._turns[name]
    bubble.pencil.setFocus()
    bubble.pencil.click()
    qtbot.wait(50)
    field, view = bubble.editor.field, transcript.viewport()

    def caret_is_seen():
        caret = field.cursorRect()
        inside = field.viewport().rect().contains(caret.center())
        return inside and view.rect().contains(field.viewport().mapTo(view, caret.center()))

    assert field.hasFocus()
    assert caret_is_seen()
    bar = transcript.verticalScrollBar()
    at = bar.value()
    qtbot.keyClicks(field, "and this")
    assert caret_is_seen()
    assert bar.value() == at
    qtbot.keyClick(field, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert caret_is_seen()
    for _ in range(20):
        qtbot.keyClick(field, Qt.Key.Key_Down)
        assert caret_is_seen()


@pytest.mark.parametrize("language", resources.LANGUAGES)
@pytest.mark.parametrize("percent", [80, 100, 150, 200])
def test_the_least_window_has_room_for_every_size(qtbot, open_program, sized, language, percent):
    save(Settings(language=language, font_size=percent), paths.ensure(paths.config_folder()))
    try:
        program = open_program(ScriptedSession(chunks_of(["Yes. "] * 9)))
        window, header = program.window, program.window.header
        sized(percent)
        program.chat.send("What is the mean of one column of a file of 40 GB?")
        qtbot.waitUntil(lambda: not program.chat.answering)
        window.resize(900, 600)
        qtbot.wait(50)
        least = window.minimumSizeHint()
        assert least.width() <= 900
        assert least.height() <= 600
        assert window.width() == 900
        assert window.height() == 600
        qtbot.waitUntil(lambda: header.rect().contains(header.summary.geometry()))
        assert header.summary.height() >= header.summary.sizeHint().height()
        shown = [part for part in header.summary.findChildren(QLabel) if part.isVisible()]
        assert all(part.width() >= part.sizeHint().width() for part in shown)
        assert header.summary.accessibleName() in html.unescape(header.summary.toolTip())
        assert header.title.width() >= resources.scaled(LEAST_TITLE) - 1
        window.toggle_sidebar()
        qtbot.wait(20)
        sidebar = window.sidebar
        assert window.rect().contains(sidebar.geometry())
        assert sidebar.acceptance.minimumSizeHint().width() <= sidebar.acceptance.width()
        bar, seen = sidebar._scroll.verticalScrollBar(), sidebar._scroll.viewport()
        assert sidebar._body.width() == seen.width()
        bar.setValue(bar.maximum())
        end = sidebar.memory.mapTo(seen, sidebar.memory.rect().bottomLeft()).y()
        assert end <= seen.height()
    finally:
        resources.speak(QApplication.instance(), "en")
