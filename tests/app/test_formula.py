"""Formulas: set by another process, bounded, kept, drawn in the colours of the window."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from PySide6.QtGui import QColor

from app import latex, resources
from app.latex import Formula, Picture
from app.widgets import formula
from app.widgets.formula import Setter
from app.widgets.text import Answer


class Answering:
    """A process that answers at once, or never."""

    def __init__(self, silent=False):
        self.sent, self.silent, self.closed, self.ready = [], silent, False, False

    def send(self, message):
        self.sent.append(message)

    def receive(self, seconds):
        if not self.ready:
            self.ready = True
            return None
        if self.silent:
            raise TimeoutError
        return Picture("<svg/>", 10, 10, 2)

    def close(self):
        self.closed = True


@pytest.fixture
def children(monkeypatch):
    """The processes that are started, and whether the next ones answer."""
    made = []

    def start():
        made.append(Answering(silent=bool(getattr(start, "silent", False))))
        return made[-1]

    monkeypatch.setattr(latex, "start", start)
    return SimpleNamespace(made=made, start=start)


def test_a_formula_is_set_once_and_kept(qtbot, children):
    setter = Setter()
    asked = Formula("x^2", False)
    assert setter.picture(asked) is None
    with qtbot.waitSignal(setter.done) as done:
        setter.picture(asked)
    assert done.args == [asked]
    assert setter.picture(asked).width == 10
    assert [child.sent for child in children.made] == [[asked]]


def test_a_formula_that_takes_too_long_is_given_up_and_the_next_is_set(
    qtbot, children, monkeypatch
):
    monkeypatch.setattr(latex, "SECONDS", 0.1)
    children.start.silent = True
    setter = Setter()
    slow, quick = Formula("slow", False), Formula("quick", False)
    setter.picture(slow)
    setter.picture(quick)
    with qtbot.waitSignal(setter.done) as done:
        children.start.silent = True
    assert done.args == [slow]
    assert children.made[0].closed
    children.start.silent = False
    with qtbot.waitSignal(setter.done) as done:
        pass
    assert done.args == [quick]
    assert setter.picture(slow) is None
    assert setter.picture(quick) is not None
    assert len(children.made) == 2


def test_nothing_is_started_before_there_is_a_formula(qtbot, children):
    answer = Answer("Answer")
    qtbot.addWidget(answer)
    answer.grow("It costs $5 today and $10 tomorrow", finished=True)
    answer.grab()
    qtbot.wait(60)
    assert children.made == []


@pytest.mark.parametrize(
    "source",
    [
        "x^2",
        "a<b",
        r"\frac{1}{2}",
        r"\begin{pmatrix}a&b\\c&d\end{pmatrix}",
        r"\href{http://a.b}{x}",
    ],
)
def test_a_picture_has_only_shapes(source):
    picture = latex.draw(Formula(source, False))
    assert picture is not None
    assert "href" not in picture.svg
    assert 0 < picture.depth < picture.height


@pytest.mark.parametrize("source", ["\\frac{", "{" * 300, "", "\\text{a<b}"])
def test_what_cannot_be_read_has_no_picture(source):
    assert latex.draw(Formula(source, True)) is None


def test_a_long_formula_is_text_and_so_is_one_too_many(qtbot, children, monkeypatch):
    monkeypatch.setattr(formula, "MAX_FORMULAS", 2)
    answer = Answer("Answer")
    qtbot.addWidget(answer)
    answer.grow(f"$a_1$ $b_1$ $c_1$\n\n\\({'x+' * 300}\\)", finished=True)
    assert answer.toPlainText() == f"￼ ￼ $c_1$\n\\({'x+' * 300}\\)"


def test_screen_readers_are_told_the_source(qtbot, children):
    answer = Answer("Answer")
    qtbot.addWidget(answer)
    answer.grow("so \\(x^2\\) and $y_1$", finished=True)
    assert answer.accessibleDescription() == "x^2; y_1"


def test_a_formula_takes_the_colour_of_the_text_and_a_place_on_its_line(qtbot):
    """With the real process."""
    answer = Answer("Answer")
    qtbot.addWidget(answer)
    answer.resize(400, 100)
    answer.show()
    answer.grow("\\[ \\sum_{n=1}^\\infty \\frac{1}{n^2} \\]", finished=True)
    low = answer.height()
    asked = Formula("\\sum_{n=1}^\\infty \\frac{1}{n^2}", True)
    began = time.monotonic()
    qtbot.waitUntil(lambda: formula.setter().picture(asked) is not None, timeout=60_000)
    assert time.monotonic() - began < 60
    qtbot.waitUntil(lambda: answer.height() > low)
    ink = resources.colour("text")
    shot = answer.grab().toImage()
    darkest = min(
        (shot.pixelColor(x, y) for x in range(shot.width()) for y in range(shot.height())),
        key=lambda c: abs(c.lightness() - ink.lightness()) + c.hslSaturation() / 100,
    )
    assert abs(darkest.lightness() - QColor(ink).lightness()) < 20
    formula.setter().close()


def test_showing_an_answer_imports_no_library_for_formulas_or_colours():
    heavy = "{'ziamath', 'latex2mathml', 'pygments'}"
    asked = f"import app.widgets.text, sys; print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_copy_of_a_formula_in_a_selection_is_its_source(qtbot, children):
    answer = Answer("Answer")
    qtbot.addWidget(answer)
    answer.grow("👩 \\(x^2\\) and $$y$$ z", finished=True)
    answer.selectAll()
    assert answer.createMimeDataFromSelection().text() == "👩 \\(x^2\\) and $$y$$ z"


@pytest.mark.parametrize(
    "inside",
    [
        '<image href="file:///etc/hostname"/>',
        '<path fill="url(http://a.b/c)"/>',
        "<script>x</script>",
        '<g><a xmlns:x="y" x:href="z"/></g>',
    ],
)
def test_a_picture_that_points_elsewhere_is_not_drawn(monkeypatch, inside):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -5 10 8"><path/>{inside}</svg>'
    made = SimpleNamespace(svg=lambda: svg)
    monkeypatch.setattr("ziamath.zmath.Latex", lambda *_, **__: made)
    assert latex.draw(Formula("x", False)) is None
