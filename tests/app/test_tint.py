"""The draft made visible: where the tint is, that it is only paint, and the hovered round."""

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QToolTip

from app import resources
from app.chats.conversation import Round
from app.widgets.text import Answer

SOURCE = """Some *words* and `code` 👩‍👩‍👧‍👦 here.

```python
def f(x):
    return x + 1
```

1. one
2. two &amp; \\(x^2\\) three
"""


@pytest.fixture
def answer(qtbot):
    resources.apply_theme(QApplication.instance(), "light")
    made = Answer("Answer")
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    qtbot.waitExposed(made)
    return made


def rounds_of(source, drafted=4, kept=2):
    """Rounds of four drafted characters and two others."""
    size = drafted + kept
    return [
        Round(
            4,
            3,
            0.045,
            tuple(
                (n, d)
                for n, d in ((min(drafted, left), True), (min(kept, max(left - drafted, 0)), False))
                if n
            ),
        )
        for left in range(len(source), 0, -size)
    ]


def tinted(answer):
    """The tinted text, span by span."""
    cursor, found = QTextCursor(answer.document()), []
    last = answer.document().characterCount()
    for a, b in answer._tint._drafted(answer._writer.places, 0, last):
        cursor.setPosition(a)
        cursor.setPosition(b, QTextCursor.MoveMode.KeepAnchor)
        found.append(cursor.selectedText())
    return found


@pytest.mark.parametrize("word", ["words", "code", "here", "return x", "two", "three", "def f(x):"])
@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_the_tint_is_behind_what_was_drafted(answer, word, size):
    at = SOURCE.index(word)
    told = [Round(1, 0, 0.1, ((at, False),)), Round(2, 2, 0.1, ((len(word), True),))]
    for end in range(size, len(SOURCE) + size, size):
        answer.grow(SOURCE[:end], finished=False)
        answer.show_rounds(told[: 1 + (end > at)], True)
    answer.grow(SOURCE, finished=True)
    assert "".join(tinted(answer)) == word


@pytest.mark.parametrize("word", ["👩‍👩‍👧‍👦", "\\(x^2\\)", "&amp;", "*words*"])
def test_what_is_shown_otherwise_than_it_is_written_is_tinted_too(answer, word):
    at = SOURCE.index(word)
    answer.grow(SOURCE, finished=True)
    answer.show_rounds([Round(2, 2, 0.1, ((at, False), (len(word), True)))], True)
    shown = {"\\(x^2\\)": "￼", "&amp;": "&", "*words*": "words"}.get(word, word)
    assert "".join(tinted(answer)) == shown


def test_carriage_returns_do_not_shift_the_tint(answer):
    source = "one\r\n\r\ntwo\r\n\r\nthree"
    answer.grow(source, finished=True)
    at = source.index("three")
    answer.show_rounds([Round(1, 1, 0.1, ((at, False), (5, True)))], True)
    assert tinted(answer) == ["three"]


def pixels(answer):
    shot = answer.grab().toImage()
    tint = resources.colour("tint").name()
    return {
        (x, y)
        for x in range(shot.width())
        for y in range(shot.height())
        if shot.pixelColor(x, y).name() == tint
    }


def test_the_tint_is_painted_only_while_it_is_on_and_leaves_the_text_alone(answer):
    answer.grow("some words and more", finished=True)
    revision, height = answer.document().revision(), answer.height()
    rounds = [Round(2, 2, 0.1, ((5, False), (5, True)))]
    answer.show_rounds(rounds, False)
    assert not pixels(answer)
    answer.show_rounds(rounds, True)
    painted = pixels(answer)
    assert painted
    line = answer.document().begin().layout().lineAt(0)
    left, right = line.cursorToX(5), line.cursorToX(10)
    left, right = (v[0] if isinstance(v, tuple) else v for v in (left, right))
    assert left - 1 <= min(x for x, _ in painted)
    assert max(x for x, _ in painted) <= right + 1
    answer.show_rounds(rounds, False)
    assert not pixels(answer)
    assert (answer.document().revision(), answer.height()) == (revision, height)


def test_blanks_where_a_run_or_a_line_begins_are_bare(answer):
    source = "```\nif x:\n        return\n```\n"
    answer.grow(source, finished=True)
    answer.show_rounds([Round(2, 2, 0.1, ((len(source), True),))], True)
    indent = answer.document().find("return").selectionStart()
    corner = answer.cursorRect(answer.document().find("return")).left()
    assert indent > 0
    second = answer.cursorRect(answer.document().find("return")).center().y()
    card = answer._rect(0)
    row = {x for x, y in pixels(answer) if abs(y - second) < 4}
    assert row
    start = corner - answer.fontMetrics().horizontalAdvance("return") * 2
    assert min(row) >= start > card.left()


def hover(answer, word):
    cursor = answer.document().find(word)
    cursor.setPosition(cursor.selectionStart() + 1)
    point = answer.cursorRect(cursor).center()
    answer.mouseMoveEvent(
        QMouseEvent(
            QEvent.Type.MouseMove,
            QPointF(point),
            QPointF(answer.mapToGlobal(point)),
            Qt.MouseButton.NoButton,
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
        )
    )
    QApplication.sendEvent(
        answer.viewport(), QHelpEvent(QEvent.Type.ToolTip, point, answer.mapToGlobal(point))
    )
    return point


def test_the_round_under_the_pointer_is_underlined_and_told(answer):
    answer.grow("some words and more", finished=True)
    rounds = [Round(3, 1, 0.02, ((5, False),)), Round(4, 3, 0.0451, ((5, True), (9, False)))]
    answer.show_rounds(rounds, True)
    hover(answer, "words")
    assert QToolTip.text() == "Round 2: drafted 4, accepted 3, 45 ms"
    accent = resources.colour("accent").name()
    shot = answer.grab().toImage()
    line = {
        x
        for x in range(shot.width())
        for y in range(shot.height())
        if shot.pixelColor(x, y).name() == accent
    }
    assert line
    answer.leaveEvent(QEvent(QEvent.Type.Leave))
    assert answer._tint.words() == ""
    answer.show_rounds(rounds, False)
    hover(answer, "words")
    assert answer._tint.words() == ""
    QToolTip.hideText()


def test_rounds_are_taken_over_as_they_come(answer):
    source = "many words that come one after another " * 20
    rounds = rounds_of(source)
    for index, end in enumerate(range(6, len(source), 6), 1):
        answer.grow(source[:end], finished=False)
        answer.show_rounds(rounds[:index], True)
    answer.grow(source, finished=True)
    answer.show_rounds(rounds, True)
    grown = tinted(answer)
    answer.show_rounds([], True)
    answer.show_rounds(rounds, True)
    assert tinted(answer) == grown
    assert len(grown) == len(rounds)
