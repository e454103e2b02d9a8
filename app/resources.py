"""Colours, fonts, icons and the style sheet, each named once (look.md).

The scheme is read off the application's palette, so nothing is remembered here. Knows no widget
of the program and no view model.
"""

from functools import lru_cache
from string import Template
from typing import Literal

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontInfo,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

import resources

Scheme = Literal["light", "dark"]

# name: (light, dark). Contrast is computed by a test.
COLOURS: dict[str, tuple[str, str]] = {
    "window": ("#F3F5F5", "#16191A"),
    "base": ("#FFFFFF", "#1B1F20"),
    "raised": ("#FFFFFF", "#1F2425"),
    "sunken": ("#F5F7F7", "#15181A"),
    "bubble": ("#EDF0F0", "#272C2E"),
    "hover": ("#E8ECEC", "#252A2C"),
    "selected": ("#DCEFEB", "#1D3733"),
    "line": ("#DDE2E2", "#2D3335"),
    "control": ("#CBD2D3", "#3B4245"),
    "edge": ("#7F8B8F", "#6F7B7F"),
    "groove": ("#DDE2E2", "#343B3D"),
    "text": ("#1A2023", "#E3E7E8"),
    "text2": ("#4E595D", "#A7B1B4"),
    "text3": ("#616C70", "#959FA3"),
    "accent": ("#0B7668", "#3FB9A6"),
    "accent_hover": ("#096558", "#56C8B6"),
    "accent_pressed": ("#07564B", "#33A392"),
    "on_accent": ("#FFFFFF", "#04211C"),
    "accent_text": ("#0A6B5F", "#62CFBE"),
    "caution": ("#855000", "#E4B262"),
    "bad": ("#B3261E", "#FF9087"),
    "bad_fill": ("#FDECEA", "#3B2220"),
    "target": ("#4F648F", "#8CA2D0"),
    "target_cache": ("#A3B1CC", "#4A5B80"),
    "draft": ("#14917F", "#3FB9A6"),
    "draft_cache": ("#8FD3C8", "#23695F"),
    "work": ("#9AA4A8", "#6D777B"),
    "others": ("#C4CBCD", "#454D50"),
    "code_keyword": ("#7A3B94", "#CBA6E4"),
    "code_string": ("#2B6A1E", "#A9D08E"),
    "code_number": ("#8F4300", "#E8B98A"),
    "code_name": ("#1D5A9E", "#8FBEF0"),
    "code_comment": ("#5A666A", "#98A2A6"),
}

# role: (size relative to the system font, weight)
FONTS: dict[str, tuple[float, int]] = {
    "caption": (0.92, 400),
    "caption_strong": (0.92, 500),
    "section": (0.88, 500),
    "small": (0.84, 400),
    "body": (1.0, 400),
    "name": (1.0, 500),
    "heading": (1.0, 600),
    "title": (1.08, 600),
    "reading": (1.15, 400),
    "display": (1.85, 600),
    "figure": (2.6, 500),
}


def scheme_now() -> Scheme:
    """The scheme in force, by how light the application's windows are.

    A widget's own palette would not do: the style sheet makes parts of it transparent.
    """
    return "dark" if QApplication.palette().window().color().lightness() < 128 else "light"


def colour(name: str) -> QColor:
    """The colour `name` in the scheme in force."""
    light, dark = COLOURS[name]
    return QColor(dark if scheme_now() == "dark" else light)


def palette(scheme: Scheme) -> QPalette:
    """Qt's roles filled from the table."""

    def of(name: str) -> QColor:
        return QColor(COLOURS[name][scheme == "dark"])

    roles = QPalette.ColorRole
    filled = QPalette()
    for role, name in (
        (roles.Window, "window"),
        (roles.WindowText, "text"),
        (roles.Base, "base"),
        (roles.AlternateBase, "sunken"),
        (roles.Text, "text"),
        (roles.Button, "base"),
        (roles.ButtonText, "text"),
        (roles.BrightText, "text"),
        (roles.ToolTipBase, "raised"),
        (roles.ToolTipText, "text"),
        (roles.PlaceholderText, "text3"),
        (roles.Highlight, "accent"),
        (roles.HighlightedText, "on_accent"),
        (roles.Link, "accent_text"),
        (roles.LinkVisited, "accent_text"),
        (roles.Accent, "accent"),
        (roles.Mid, "line"),
        (roles.Dark, "control"),
        (roles.Light, "base"),
    ):
        filled.setColor(role, of(name))
    for role in (roles.Text, roles.WindowText, roles.ButtonText):
        filled.setColor(QPalette.ColorGroup.Disabled, role, of("text3"))
    return filled


def font(role: str = "body", *, tabular: bool = False) -> QFont:
    """The system font in the size and weight of `role`; tabular figures for changing numbers."""
    factor, weight = FONTS[role]
    made = QFont(QApplication.font())
    made.setPointSizeF(_points() * factor)
    made.setWeight(QFont.Weight(weight))
    if role in ("figure", "display"):
        made.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 97)
    if tabular:
        made.setFeature(QFont.Tag("tnum"), 1)
    return made


def code_font(factor: float = 1.0) -> QFont:
    """The system's fixed font, ligatures off, `factor` times the system font's size."""
    made = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    made.setPointSizeF(_points() * factor)
    for feature in ("liga", "calt"):
        made.setFeature(QFont.Tag(feature), 0)
    return made


def _points() -> float:
    """The system font's size in points, also where the system states it in pixels."""
    size = QApplication.font().pointSizeF()
    return size if size > 0 else QFontInfo(QApplication.font()).pointSizeF()


def pixels(role: str = "body") -> int:
    """Height of a font's em in pixels; lengths that follow the font are multiples of it."""
    return QFontInfo(font(role)).pixelSize()


def style_sheet(scheme: Scheme) -> str:
    """The one style sheet, filled with the scheme's colours and lengths that follow the font."""
    em = pixels()
    values: dict[str, object] = {n: pair[scheme == "dark"] for n, pair in COLOURS.items()}
    # A border twice as thick takes its second pixel from the height, so that nothing moves.
    button, small = round(2.3 * em) - 2, round(1.85 * em) - 2
    large = round(2.8 * em) - 2
    values |= {"large_button": large, "large_button_focus": large - 2}
    values |= {"button": button, "button_focus": button - 2}
    values |= {"small_button": small, "small_button_focus": small - 2}
    return Template(resources.read_text("qss/slipstream.qss")).substitute(values)


def apply_theme(app: QApplication, scheme: Scheme) -> None:
    """Palette and style sheet for the whole program."""
    app.setPalette(palette(scheme))
    app.setStyleSheet(style_sheet(scheme))


def pixmap(name: str, ink: QColor, size: int, ratio: float = 1.0) -> QPixmap:
    """The icon `name` in `ink`, `size` logical pixels wide, for a device pixel `ratio`."""
    return _drawn(name, ink.name(), size, ratio)


@lru_cache(maxsize=512)
def _drawn(name: str, ink: str, size: int, ratio: float) -> QPixmap:
    drawn = QPixmap(QSize(round(size * ratio), round(size * ratio)))
    drawn.fill(Qt.GlobalColor.transparent)
    # A thin stroke would vanish in the small sizes beside a status word.
    svg = _svg(name, ink, 2.25 if size <= 12 else 1.75)
    painter = QPainter(drawn)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(drawn.rect()))
    painter.end()
    drawn.setDevicePixelRatio(ratio)
    return drawn


def icon(name: str, ink: str, size: int = 16) -> QIcon:
    """An icon in the colour named `ink`, dimmed where its button is disabled; "" is none."""
    made = QIcon()
    if not name:
        return made
    for mode, shade in ((QIcon.Mode.Normal, ink), (QIcon.Mode.Disabled, "text3")):
        for ratio in (1.0, 2.0):
            made.addPixmap(pixmap(name, colour(shade), size, ratio), mode)
    return made


def _svg(name: str, ink: str, stroke: float) -> bytes:
    # The mark's bars lie on its own fill: light on a dark ink, dark on a light one.
    bars = COLOURS["on_accent"][QColor(ink).lightness() > 110]
    text = resources.read_text(f"icons/{name}.svg")
    text = text.replace("currentColor", ink).replace("onColor", bars)
    return text.replace('stroke-width="2"', f'stroke-width="{stroke}"').encode()


def sample_text() -> str:
    """The text on which it is measured what quantising costs a model."""
    return resources.read_text("sample.txt")
