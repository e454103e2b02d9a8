"""Texts of the transcript: streaming, selection, and nothing fetched."""

import itertools
import socket
import threading
import time

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.widgets import code
from app.widgets import text as texts
from app.widgets.markdown import split, visible
from app.widgets.text import Answer, Text

MARKDOWN = """# Heading

Some *words*, `code` and a [link](https://example.org/).

- one
- two
  1. inner

> quoted

```python
def f(x):
    return x + 1
```

| a | b |
|---|---|
| 1 | 2 |

The end.
"""


@pytest.fixture
def answer(qtbot):
    page = QScrollArea()
    page.setWidgetResizable(True)
    page.resize(700, 400)
    made = Answer("Answer")
    inner = QWidget()
    QVBoxLayout(inner).addWidget(made)
    page.setWidget(inner)
    qtbot.addWidget(page)
    page.show()
    yield made
    page.close()


def stream(answer, source, size):
    shown = ""
    for start in range(0, len(source), size):
        shown = source[: start + size]
        answer.grow(shown, finished=False)
        yield shown
    answer.grow(source, finished=True)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_streamed_answer_ends_as_one_shown_at_once(qtbot, answer, size):
    for _ in stream(answer, MARKDOWN, size):
        pass
    whole = Answer("Answer")
    qtbot.addWidget(whole)
    whole.grow(MARKDOWN, finished=True)
    assert answer.toPlainText() == whole.toPlainText()
    assert answer.document().blockCount() == whole.document().blockCount()


def test_a_long_open_block_is_not_parsed_with_every_piece(answer, monkeypatch):
    parsed = []
    monkeypatch.setattr(texts, "split", lambda text: parsed.append(len(text)) or split(text))
    code = "```python\n" + "\n".join(f"x{n} = {n}" for n in range(2_000)) + "\n```\n"
    for _ in stream(answer, code, 60):
        pass
    assert sum(parsed) < 12 * len(code)
    assert "x1999 = 1999" in answer.toPlainText()


def test_finished_blocks_are_left_alone(answer):
    written = "first block\n\nsecond block\n\nthird"
    answer.grow(written, finished=False)
    first = answer.document().begin()
    revision = first.revision()
    for end in range(7):
        answer.grow(written + " piece" * end, finished=False)
    assert first.isValid()
    assert first.revision() == revision
    assert first.text() == "first block"


def test_a_selection_survives_what_comes_after_it(answer):
    answer.grow("one two three\n\nfour", finished=False)
    for place in (4, 15):
        cursor = answer.textCursor()
        cursor.setPosition(place)
        cursor.setPosition(place + 3, QTextCursor.MoveMode.KeepAnchor)
        answer.setTextCursor(cursor)
        chosen = answer.textCursor().selectedText()
        answer.grow(answer._source + " and more", finished=False)
        assert answer.textCursor().selectedText() == chosen
        assert len(chosen) == 3


def test_no_half_character_is_ever_shown(answer):
    family = "👩‍👩‍👧‍👦 龘 नमस्ते"
    for size in (1, 2, 3, 5):
        answer.grow("", finished=False)
        answer.clear()
        answer._source = ""
        answer._restart()
        for _ in stream(answer, family, size):
            assert "\ufffd" not in answer.toPlainText()
        assert answer.toPlainText() == family


@pytest.mark.parametrize(
    "source",
    [
        "#include <stdio.h> and what is <channel> here\n\n<b>next</b> <think",
        "It costs $5 today and $10 tomorrow, and \\(x^2\\)",
        "````markdown\n```text\nx\n```\n## Notes\n````\n",
        "unclosed **bold and `code",
    ],
)
def test_no_character_is_lost(answer, source):
    answer.grow(source, finished=True)
    shown = answer.toPlainText()
    for word in source.replace("*", " ").replace("`", " ").split():
        assert word.strip("#\\()") in shown or word in ("markdown", "#")


@pytest.mark.parametrize(
    "source",
    [
        ">" * 5_000 + " deep",
        "> " * 60 + "deep",
        "deep " + "`" * 20_000,
        "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + "|b" * 2_000 + "|",
        "```\nnever closed\n" + "x\n" * 2_000,
        "what <channel> is <b" * 500,
        "deep" + "\n" * 8_000,
        "deep\n" + " \n" * 10_000,
    ],
    ids=[
        "quotes",
        "spaced quotes",
        "backticks",
        "wide table",
        "open fence",
        "open tags",
        "newlines",
        "blank lines",
    ],
)
def test_awkward_texts_are_shown_in_time(answer, source):
    began = time.monotonic()
    answer.grow(source, finished=True)
    assert time.monotonic() - began < 1.0
    assert len(answer.toPlainText()) > 100 or "deep" in answer.toPlainText()


def test_blocks_join_to_the_text_they_came_from():
    for source in (MARKDOWN, "\n\n\nlate\n\n", "[ref]: https://a.b/\n", "a\n===\n\tx"):
        assert "".join(block.source for block in split(visible(source))) == visible(source) or (
            not split(visible(source))
        )


def test_control_characters_are_seen(answer):
    answer.grow("a\x00b \x1b[31mred", finished=True)
    assert answer.toPlainText() == "a␀b ␛[31mred"


def test_nothing_is_fetched_by_showing_an_answer(qtbot, answer, monkeypatch):
    loads = []
    original = Answer.loadResource
    monkeypatch.setattr(
        Answer,
        "loadResource",
        lambda self, kind, name: loads.append(original(self, kind, name)),
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        at = f"http://127.0.0.1:{listener.getsockname()[1]}"
        source = (
            f'![x]({at}/p.png?leak=SECRET)\n\n<img src="{at}/q.png">\n\n'
            f"<img src='file:///etc/hostname'> ![f](file:///etc/hostname)\n\n"
            f"![d](data:image/png;base64,AAAA) <script>fetch('{at}/s')</script>"
        )
        for _ in stream(answer, source, 7):
            pass
        answer.grab()
        qtbot.wait(50)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert all(load is None for load in loads)
    assert "/p.png?leak=SECRET" in answer.toPlainText()
    assert "￼" not in answer.toPlainText()


def test_only_web_and_mail_addresses_are_opened_and_only_on_click(qtbot, answer, monkeypatch):
    opened = []
    monkeypatch.setattr(texts.QDesktopServices, "openUrl", lambda url: opened.append(url))
    wanted = ["https://example.org/", "http://a.b/c", "mailto:a@b.org"]
    unwanted = [
        "file:///C:/Windows/System32/calc.exe",
        "javascript:alert(1)",
        "ms-msdt:/id",
        "smb://host/share",
        "//host/share/x",
        "./update.js",
        "data:text/html,x",
        "https:x",
    ]
    for address in unwanted + wanted:
        answer.anchorClicked.emit(QUrl(address))
    assert [url.toString() for url in opened] == wanted
    assert answer.source().isEmpty()


def test_a_dangerous_link_is_text(answer):
    answer.grow("[a](file:///etc/passwd) [b](ms-msdt:/id) [c](https://example.org)", finished=True)
    block = answer.document().begin()
    hrefs = [
        fragment.fragment().charFormat().anchorHref()
        for fragment in block
        if fragment.fragment().charFormat().isAnchor()
    ]
    assert hrefs == ["https://example.org"]


def test_no_widget_is_touched_off_the_gui_thread(answer):
    caught = []

    def touch():
        for call in (lambda: answer.grow("x", finished=False), lambda: answer.show_plain("x")):
            try:
                call()
            except RuntimeError as error:
                caught.append(error)

    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
    assert len(caught) == 2
    assert answer.toPlainText() == ""


def test_code_is_copied_as_it_was_written(qtbot, answer):
    answer.grow("```python\nif x:\n\treturn\u00a01\n```\n\n```\nplain\n```", finished=True)
    qtbot.waitUntil(lambda: len(answer._copies) == 2)
    from PySide6.QtGui import QGuiApplication

    answer._copies[0].click()
    assert QGuiApplication.clipboard().text() == "if x:\n\treturn\u00a01"


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("java", "a " * 20_000),
        ("java", "a " * 6_000),
        ("java", ("a " * 999 + "\n") * 10),
        ("csharp", "a\n" * 9_000),
        ("make", "a" * 4_000),
        ("make", " " * 19_999),
        ("c", "\n" * 15_000),
        ("python", "x = 1 # a\n" * 1_900),
    ],
)
def test_colouring_code_takes_a_bounded_time(language, source):
    next(code.tones("x", language))  # the first use imports the lexer
    began = time.monotonic()
    pieces = list(code.tones(source, language))
    assert time.monotonic() - began < 0.5
    assert "".join(piece for piece, _ in pieces) == source


def test_colouring_ends_in_one_tone_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(code, "MAX_SECONDS", -1)
    assert list(code.tones("if x: pass", "python")) == [
        ("if", "code_keyword"),
        (" x: pass", "text"),
    ]


@pytest.mark.parametrize("source", ["x = 1; " * 300, "x = 1\n" * 4_000], ids=["line", "text"])
def test_code_too_long_to_colour_is_in_one_tone(source):
    assert list(code.tones(source, "python")) == [(source, "text")]


def test_an_open_fence_is_plain_until_it_is_finished(answer):
    inks = []
    for finished in (False, True):
        answer.grow("```python\nif x: pass\n```", finished=finished)
        shapes = [piece.fragment().charFormat() for piece in _code_block(answer)]
        inks.append({shape.foreground().color().name() for shape in shapes})
    assert len(inks[0]) == 1
    assert len(inks[1]) > 1


def _code_block(answer):
    blocks = itertools.takewhile(lambda b: b.isValid(), _blocks(answer.document().begin()))
    return next(block for block in blocks if "if x" in block.text())


def test_the_address_of_a_link_is_no_markup_in_its_tooltip(answer):
    answer.grow("[a](https://a.b/?x&lt=1)", finished=True)
    shapes = [piece.fragment().charFormat() for piece in answer.document().begin()]
    assert shapes[0].toolTip() == "<qt>https://a.b/?x&amp;lt=1</qt>"


def test_code_reads_from_left_to_right(answer):
    answer.grow("مرحبا\n\n```\nשלום = 1\n```\n\nhello", finished=True)
    directions = {
        block.text(): block.textDirection()
        for block in itertools.takewhile(lambda b: b.isValid(), _blocks(answer.document().begin()))
    }
    assert directions["مرحبا"] is Qt.LayoutDirection.RightToLeft
    assert directions["שלום = 1"] is Qt.LayoutDirection.LeftToRight
    assert directions["hello"] is Qt.LayoutDirection.LeftToRight


def _blocks(block):
    while True:
        yield block
        block = block.next()


def test_what_the_user_wrote_is_plain(qtbot):
    shown = Text("Message")
    qtbot.addWidget(shown)
    shown.show_plain("<b>bold</b> **x**\n<channel>")
    assert shown.toPlainText() == "<b>bold</b> **x**\n<channel>"


def test_a_new_scheme_repaints_the_same_text(answer):
    answer.grow(MARKDOWN, finished=True)
    before = answer.toPlainText()
    answer.redraw()
    assert answer.toPlainText() == before
