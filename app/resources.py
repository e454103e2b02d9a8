"""Colours, fonts, icons and the style sheet, each named once (look.md), and the languages.

The scheme, and whether contrast is high, are read off the application's palette, the language off
its translators, so nothing is remembered here. Knows no widget of the program and no view model.
"""

import json
import re
from functools import lru_cache
from string import Template
from typing import Any, Literal

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QLibraryInfo,
    QLocale,
    QRectF,
    QSize,
    Qt,
    QTranslator,
)
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
from PySide6.QtWidgets import QApplication, QWidget

import resources
from engine.errors import Reason

Scheme = Literal["light", "dark"]
SYSTEM_POINTS = "systemPoints"  # the application's property with its font's size before scaling
# Qt notes the font that a widget has when a style sheet first meets it, and gives it back whenever
# the widget is styled anew.
STYLED_FONT = "_q_styleSheetWidgetFont"

LANGUAGES = ("en", "de")  # the first is what the sources are written in

# name: (light, dark). Contrast is computed by a test.
COLOURS: dict[str, tuple[str, str]] = {
    "window": ("#F3F5F5", "#16191A"),
    "base": ("#FFFFFF", "#1B1F20"),
    "raised": ("#FFFFFF", "#1F2425"),
    "sunken": ("#F5F7F7", "#15181A"),
    "bubble": ("#EDF0F0", "#272C2E"),
    "hover": ("#E8ECEC", "#252A2C"),
    "selected": ("#DCEFEB", "#1D3733"),
    "tint": ("#E2F3EF", "#1B332F"),
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

# Where the system asks for high contrast: these as those.
STRONG = {"control": "edge", "line": "edge", "text2": "text", "text3": "text"}

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
    "verdict": (1.15, 600),
    "display": (1.85, 600),
    "figure": (2.6, 500),
}


def scheme_now() -> Scheme:
    """The scheme in force, by how light the application's windows are.

    A widget's own palette would not do: the style sheet makes parts of it transparent.
    """
    return "dark" if QApplication.palette().window().color().lightness() < 128 else "light"


def shade(name: str, scheme: Scheme, *, strong: bool = False) -> str:
    """The colour `name` in a scheme, of high contrast where it is `strong`."""
    return COLOURS[STRONG.get(name, name) if strong else name][scheme == "dark"]


def colour(name: str) -> QColor:
    """The colour `name` in the scheme and contrast in force."""
    scheme = scheme_now()
    lines = QApplication.palette().color(QPalette.ColorRole.Mid)
    return QColor(shade(name, scheme, strong=lines == QColor(shade("edge", scheme))))


def palette(scheme: Scheme, *, strong: bool = False) -> QPalette:
    """Qt's roles filled from the table."""

    def of(name: str) -> QColor:
        return QColor(shade(name, scheme, strong=strong))

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


def _points(font: QFont | None = None) -> float:
    """A font's size in points (default: the system font's), also where it is stated in pixels."""
    asked = font or QApplication.font()
    size = asked.pointSizeF()
    return size if size > 0 else QFontInfo(asked).pointSizeF()


def pixels(role: str = "body") -> int:
    """Height of a font's em in pixels; lengths that follow the font are multiples of it."""
    return QFontInfo(font(role)).pixelSize()


def style_sheet(scheme: Scheme, *, strong: bool = False) -> str:
    """The one style sheet, filled with the scheme's colours and lengths that follow the font."""
    em = pixels()
    values: dict[str, object] = {n: shade(n, scheme, strong=strong) for n in COLOURS}
    # A border twice as thick takes its second pixel from the height, so that nothing moves.
    button, small = round(2.3 * em) - 2, round(1.85 * em) - 2
    large = round(2.8 * em) - 2
    values |= {"large_button": large, "large_button_focus": large - 2}
    values |= {"button": button, "button_focus": button - 2}
    values |= {"bare": max(round(1.4 * em), 18)}
    values |= {"small_button": small, "small_button_focus": small - 2}
    return Template(resources.read_text("qss/slipstream.qss")).substitute(values)


def apply_theme(
    app: QApplication, scheme: Scheme, *, strong: bool = False, percent: int | None = None
) -> None:
    """Palette, style sheet and font for the whole program; `percent` of the system's font size,
    None: as before. Fonts that widgets were given grow with it; a widget with texts or lengths
    that follow the font, and that no layout sees to, has a method `fit_font`; one that keeps a
    place in a text has `note_place`, which comes before all changes."""
    before = _points()
    system = app.property(SYSTEM_POINTS) or before
    app.setProperty(SYSTEM_POINTS, system)
    factor = 1.0 if percent is None else system * percent / 100 / before
    colours, sheet = palette(scheme, strong=strong), style_sheet(scheme, strong=strong)
    if factor == 1 and app.styleSheet() == sheet and app.palette() == colours:
        return  # every widget would be polished anew
    if factor != 1:
        _call(app, "note_place")
    for widget in app.allWidgets():
        if factor != 1 and widget.testAttribute(Qt.WidgetAttribute.WA_SetFont):
            font = _scaled(widget.font(), factor)
            widget.setProperty(STYLED_FONT, font)
            widget.setFont(font)
    app.setFont(_scaled(app.font(), factor))
    app.setPalette(colours)
    # Made anew: its lengths follow the font.
    app.setStyleSheet(style_sheet(scheme, strong=strong))
    if factor != 1:
        _call(app, "fit_font")


def _call(app: QApplication, method: str) -> None:
    """Call it of every widget that has it, of what is within a widget first."""
    for top in app.topLevelWidgets():
        if top.parentWidget() is None:
            for widget in (*reversed(top.findChildren(QWidget)), top):
                if found := getattr(widget, method, None):
                    found()


def _scaled(font: QFont, factor: float) -> QFont:
    scaled = QFont(font)
    if factor != 1:
        scaled.setPointSizeF(_points(font) * factor)
    return scaled


def scaled(length: int) -> int:
    """Pixels of an icon, or of what holds one, in the font size that is set."""
    app = QApplication.instance()
    system = app.property(SYSTEM_POINTS) if app is not None else None
    return round(length * _points() / system) if system else length


def pixmap(name: str, ink: QColor, size: int, ratio: float = 1.0) -> QPixmap:
    """The icon `name` in `ink`, `size` logical pixels wide at the usual font size, for a device
    pixel `ratio`."""
    # A thin stroke would vanish in the small sizes beside a status word.
    stroke = 2.25 if size <= 12 else 1.75
    return _drawn(name, ink.name(), scaled(size), ratio, stroke)


@lru_cache(maxsize=512)
def _drawn(name: str, ink: str, size: int, ratio: float, stroke: float) -> QPixmap:
    drawn = QPixmap(QSize(round(size * ratio), round(size * ratio)))
    drawn.fill(Qt.GlobalColor.transparent)
    svg = _svg(name, ink, stroke)
    painter = QPainter(drawn)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(drawn.rect()))
    painter.end()
    drawn.setDevicePixelRatio(ratio)
    return drawn


def icon(name: str, ink: str, size: int = 16) -> QIcon:
    """An icon in the colour named `ink`, dimmed where its button is disabled; "" is none."""
    if not name:
        return QIcon()
    return _icon(name, colour(ink).name(), colour("text3").name(), size, scaled(size))


@lru_cache(maxsize=512)
def _icon(name: str, ink: str, dimmed: str, size: int, _scaled: int) -> QIcon:
    made = QIcon()
    for mode, shade in ((QIcon.Mode.Normal, ink), (QIcon.Mode.Disabled, dimmed)):
        for ratio in (1.0, 2.0):
            made.addPixmap(pixmap(name, QColor(shade), size, ratio), mode)
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


def speak(app: QCoreApplication, language: str) -> None:
    """Everything that is made from now on in `language`, one of LANGUAGES; "system": in the first
    of the user's that there is."""
    for before in app.findChildren(QTranslator):
        app.removeTranslator(before)
        before.deleteLater()
    asked = QLocale.system().uiLanguages() if language == "system" else [language]
    known = (tag[:2] for tag in asked if tag[:2] in LANGUAGES)
    chosen = next(known, LANGUAGES[0])
    QLocale.setDefault(QLocale(chosen))
    if chosen == LANGUAGES[0]:
        return
    ours = str(resources.path(f"i18n/slipstream_{chosen}.qm"))
    theirs = f"{QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)}/qtbase_{chosen}.qm"
    for file in (theirs, ours):
        translator = QTranslator(app)
        if translator.load(file):
            app.installTranslator(translator)


def language_now() -> str:
    """The language in force, one of LANGUAGES: every translation says of which it is."""
    return QCoreApplication.translate("resources", "en")


def translate(reason: Reason) -> str:
    """What the engine says, in the language in force; in English where that has no words for it,
    such as for a reason that an earlier version kept."""
    language = language_now()
    own = _reasons(language).get(reason.code, {}).get(reason.template)
    if own is None:
        language = LANGUAGES[0]
    values = {name: _said(name, value, language) for name, value in reason.values.items()}
    return (own or reason.template).format_map(values)


def figures(written: str) -> str:
    """A number as English writes it ("8,192", "3.1 GB"), with the signs of the language in
    force."""
    return _figures(written, language_now())


@lru_cache(maxsize=len(LANGUAGES))
def _reasons(language: str) -> dict[str, dict[str, str]]:
    """By code, then by the English template, since some codes have several."""
    if language == LANGUAGES[0]:
        return {}
    found: dict[str, dict[str, str]] = json.loads(
        resources.read_text(f"i18n/reasons_{language}.json")
    )
    return found


def _said(name: str, value: Any, language: str) -> Any:
    """A value as a sentence in `language` has it: words of ours translated, numbers written."""
    if isinstance(value, float) or (isinstance(value, int) and name in COUNTS):
        return _Figures(value, language)
    if not isinstance(value, str):
        return value
    words = _reasons(language).get("values", {})
    return words.get(value) or (_figures(value, language) if AMOUNT.fullmatch(value) else value)


AMOUNT = re.compile(r"\d+\.\d+ [GM]i?B")
# Whole numbers that are counts; the others are ids and versions, which are not grouped.
COUNTS = (
    *("tokens", "context", "needed", "size", "limit", "free", "characters", "drafted"),
    *("head", "target"),
)


class _Figures:
    """A number that is written with the signs of a language."""

    def __init__(self, number: float, language: str) -> None:
        self._number, self._language = number, language

    def __format__(self, spec: str) -> str:
        spec = spec or ("," if isinstance(self._number, int) else "")
        return _figures(format(self._number, spec), self._language)


def _figures(written: str, language: str) -> str:
    locale = QLocale(language)
    signs: dict[str, str | int | None] = {",": locale.groupSeparator(), ".": locale.decimalPoint()}
    return written.translate(str.maketrans(signs))
