"""Colours, icons and the style sheet."""

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

import resources as files
from app import resources

ROOT = Path(__file__).parents[2]
SURFACES = ("window", "base", "raised", "sunken", "bubble", "hover", "selected")
TEXTS = ("text", "text2", "text3", "accent_text", "caution", "bad")


def luminance(colour: QColor) -> float:
    parts = (colour.redF(), colour.greenF(), colour.blueF())
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str, dark: bool) -> float:
    a, b = (luminance(QColor(resources.COLOURS[name][dark])) for name in (one, other))
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_readable_on_every_surface(dark):
    pairs = [(text, surface) for text in TEXTS for surface in SURFACES]
    pairs += [("on_accent", "accent"), ("on_accent", "accent_hover"), ("text", "bad_fill")]
    pairs += [("bad", "bad_fill"), ("text2", "bad_fill")]
    pairs += [(name, "sunken") for name in resources.COLOURS if name.startswith("code_")]
    weak = {pair: contrast(*pair, dark) for pair in pairs if contrast(*pair, dark) < 4.45}
    assert not weak


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_rings_and_edges_stand_out(dark):
    for surface in ("base", "window", "selected"):
        assert contrast("accent", surface, dark) >= 3
    assert contrast("edge", "base", dark) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_filled_and_read_back(qapp: QApplication, scheme):
    resources.apply_theme(qapp, scheme)
    assert "$" not in resources.style_sheet(scheme)
    assert resources.scheme_now() == scheme
    assert resources.colour("base") == QColor(resources.COLOURS["base"][scheme == "dark"])
    resources.apply_theme(qapp, "light")


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
