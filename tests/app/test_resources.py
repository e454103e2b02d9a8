"""Colours, icons and the style sheet."""

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QLineEdit, QTextBrowser, QVBoxLayout, QWidget

import resources as files
from app import resources
from app.appearance import Appearance
from app.settings import Settings
from app.widgets.common import Button, label

ROOT = Path(__file__).parents[2]
SURFACES = ("window", "base", "raised", "sunken", "bubble", "hover", "selected", "tint")
TEXTS = ("text", "text2", "text3", "accent_text", "caution", "bad")


def luminance(colour: QColor) -> float:
    parts = (colour.redF(), colour.greenF(), colour.blueF())
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str, scheme: resources.Scheme, strong: bool = False) -> float:
    a, b = (luminance(QColor(resources.shade(n, scheme, strong=strong))) for n in (one, other))
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@pytest.mark.parametrize("strong", [False, True], ids=["", "strong"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_readable_on_every_surface(scheme, strong):
    """The lowest of the pairs that look.md states, 4.5, is itself rounded."""
    pairs = [(text, surface) for text in TEXTS for surface in SURFACES]
    pairs += [("on_accent", "accent"), ("on_accent", "accent_hover"), ("text", "bad_fill")]
    pairs += [("bad", "bad_fill"), ("text2", "bad_fill"), ("on_accent", "accent_pressed")]
    codes = [name for name in resources.COLOURS if name.startswith("code_")]
    pairs += [(name, surface) for name in codes for surface in ("sunken", "tint")]
    found = {pair: contrast(*pair, scheme, strong) for pair in pairs}
    assert not {pair: ratio for pair, ratio in found.items() if ratio < 4.45}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rings_and_edges_stand_out(scheme):
    for surface in ("base", "window", "selected"):
        assert contrast("accent", surface, scheme) >= 3
    assert contrast("edge", "base", scheme) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_high_contrast_makes_lines_and_lesser_texts_stronger(scheme):
    for line in ("control", "line"):
        for surface in ("base", "window", "raised"):
            assert contrast(line, surface, scheme, strong=True) >= 3
    for text in ("text2", "text3"):
        for surface in SURFACES:
            assert contrast(text, surface, scheme, strong=True) >= 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_filled_and_read_back(qapp: QApplication, scheme):
    resources.apply_theme(qapp, scheme)
    assert "$" not in resources.style_sheet(scheme)
    assert resources.scheme_now() == scheme
    assert resources.colour("base") == QColor(resources.COLOURS["base"][scheme == "dark"])
    resources.apply_theme(qapp, "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_high_contrast_is_read_back_and_goes_again(qapp: QApplication, scheme):
    resources.apply_theme(qapp, scheme, strong=True)
    assert resources.scheme_now() == scheme
    assert resources.colour("line").name() == resources.shade("edge", scheme).lower()
    assert resources.colour("text2").name() == resources.shade("text", scheme).lower()
    resources.apply_theme(qapp, scheme)
    assert resources.colour("line").name() == resources.shade("line", scheme).lower()
    resources.apply_theme(qapp, "light")


def test_the_font_size_scales_what_is_there_and_what_comes(qtbot, qapp: QApplication):
    window = QWidget()
    qtbot.addWidget(window)
    resources.apply_theme(qapp, "light", percent=100)
    column = QVBoxLayout(window)
    shown = [label("a", "title"), label("b"), Button("c"), QLineEdit("d"), QTextBrowser()]
    for widget in shown:
        column.addWidget(widget)
    window.show()
    qtbot.waitExposed(window)
    before = [widget.font().pointSizeF() for widget in shown]
    for percent in (200, 80, 150):
        resources.apply_theme(qapp, "dark", percent=percent)
        resources.apply_theme(qapp, "light")  # another scheme changes no size
        wanted = [pytest.approx(size * percent / 100) for size in before]
        assert [widget.font().pointSizeF() for widget in shown] == wanted
        assert shown[4].document().defaultFont().pointSizeF() == wanted[4]
        assert resources.font("title").pointSizeF() == wanted[0]
        assert shown[2].sizeHint().height() == pytest.approx(2.3 * resources.pixels(), abs=2)
    resources.apply_theme(qapp, "light", percent=100)
    assert [widget.font().pointSizeF() for widget in shown] == [pytest.approx(s) for s in before]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_program_looks_as_the_settings_say_and_again_when_they_change(qapp, theme):
    look = Appearance(qapp, Settings(theme=theme, font_size=120))
    try:
        size = qapp.font().pointSizeF()
        assert resources.scheme_now() == theme
        look.follow(Settings(theme="light", font_size=100))
        assert resources.scheme_now() == "light"
        assert qapp.font().pointSizeF() == pytest.approx(size / 1.2)
        look.follow(Settings(theme="system"))
        hints = qapp.styleHints()
        hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
        dark = hints.colorScheme() is Qt.ColorScheme.Dark
        assert resources.scheme_now() == ("dark" if dark else "light")
    finally:
        look.setParent(None)
        resources.apply_theme(qapp, "light", percent=100)


def test_every_icon_asked_for_is_there_and_no_other():
    sources = "\n".join(path.read_text() for path in (ROOT / "app").rglob("*.py"))
    stored = {path.stem for path in (ROOT / "resources/icons").glob("*.svg")}
    assert {name for name in stored if f'"{name}"' in sources} == stored
    assert "ISC License" in files.read_text("icons/LICENSE")


def test_an_icon_is_drawn_in_its_colour(qapp: QApplication):
    drawn = resources.pixmap("square", QColor("#ff0000"), 16, 2.0)
    assert drawn.devicePixelRatio() == 2.0
    assert drawn.size().width() == 32
    image = drawn.toImage()
    reds = [
        image.pixelColor(x, y)
        for x in range(32)
        for y in range(32)
        if image.pixelColor(x, y).alpha() > 200
    ]
    assert reds
    assert all(c.red() > 200 and c.green() < 60 for c in reds)


def test_colours_are_named_once():
    for path in (ROOT / "app").rglob("*.py"):
        if path.name != "resources.py":
            assert not re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text()), path
    assert not re.search(r"#[0-9A-Fa-f]{6}\b", files.read_text("qss/slipstream.qss"))
