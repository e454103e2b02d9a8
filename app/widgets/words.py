"""Words written into a QTextDocument: marked up, linked, with formulas and code among them.

Notes where in the document each piece of the source stands: it is sought from where the last was
found. Knows nothing of blocks.
"""

import re
from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor, QTextDocument

from app import resources
from app.latex import Formula
from app.widgets import code, formula
from app.widgets.common import tooltip
from app.widgets.dialect import OPENED_SCHEMES
from app.widgets.markdown import Node, plain_text
from app.widgets.places import Places, units

MAX_LINE = 5_000  # characters; Qt lays out longer lines in quadratic time
MAX_ADDRESS = 60
LINE_BREAK = "\u2028"
ISOLATE, ISOLATED = "\u2066", "\u2069"

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\]*[^\s<>\"'`\\.,;:!?)\]}*_]")


class Words:
    """Writes words at a cursor."""

    def __init__(self, document: QTextDocument) -> None:
        self.formulas: list[tuple[int, Formula]] = []
        self.places = Places()
        self._document = document
        self._cursor = QTextCursor(document)
        self._source, self._start, self._at = "", 0, 0
        self._mirrored = False
        self._plain = self._format("reading")
        self._formats: dict[str, QTextCharFormat] = {}

    def _begin(self, source: str, start: int) -> None:
        """What is written from now on comes from `source`, which begins at the character
        `start` of the whole."""
        self._source, self._start, self._at = source, start, 0

    def _inline(self, node: Node, shape: QTextCharFormat, *, skip: int = 0) -> None:
        """The words of a block; `skip`: characters at its beginning that are not shown."""
        self._mirrored = _RIGHT_TO_LEFT.search(plain_text(node)) is not None
        self._spans(node, shape, skip)

    def _spans(self, node: Node, shape: QTextCharFormat, skip: int = 0) -> None:
        for child in node.children:
            if skip and child.type == "inline":
                self._spans(child, shape, skip)
            elif skip and child.type == "text":
                self._words(child.content[skip:], QTextCharFormat(shape))
            else:
                self._span(child, QTextCharFormat(shape))
            skip = 0

    def _span(self, node: Node, shape: QTextCharFormat) -> None:
        match node.type:
            case "text":
                self._words(node.content, shape)
            case "text_special":
                self._escaped(node, shape)
            case "softbreak" | "hardbreak":
                self._cursor.insertText(LINE_BREAK, shape)
            case "code_inline":
                self._inline_code(node.content, shape)
            case "image":
                self._image(node, shape)
            case "formula":
                self._formula(node, shape)
            case "link":
                self._link(node, shape)
            case _:
                _mark_up(node, shape)
                self._spans(node, shape)
                if not node.children and node.content:
                    self._words(node.content, shape)

    def _words(self, text: str, shape: QTextCharFormat) -> None:
        """Text in which a bare address is a link."""
        done = 0
        if "://" in text and not shape.isAnchor():
            for found in _ADDRESS.finditer(text):
                self._text(text[done : found.start()], shape)
                linked = QTextCharFormat(shape)
                self._anchor(found.group(), linked)
                self._text(found.group(), linked)
                done = found.end()
        self._text(text[done:], shape)

    def _link(self, node: Node, shape: QTextCharFormat) -> None:
        """The words of a link, and its address unless the words are it."""
        around = QTextCharFormat(shape)
        address = str(node.attrs.get("href", ""))
        self._anchor(address, shape)
        self._spans(node, shape)
        begun = self._at
        if self._source.startswith("](", self._at):
            self._at = _behind_address(self._source, self._at + 2)
        short = _short(address)
        if short not in (_short(plain_text(node)), ""):
            around.setForeground(resources.colour("text2"))
            around.setToolTip(tooltip(address))
            text = f" ({short})"
            self._note(self._start + begun, self._at - begun, text)
            self._cursor.insertText(text, around)

    def _anchor(self, address: str, shape: QTextCharFormat) -> None:
        shape.setToolTip(tooltip(address))
        if address.lower().startswith(OPENED_SCHEMES):
            shape.setAnchor(True)
            shape.setAnchorHref(address)
            shape.setForeground(resources.colour("accent_text"))
            shape.setFontUnderline(True)

    def _image(self, node: Node, shape: QTextCharFormat) -> None:
        said = QCoreApplication.translate("markdown", "[image: {words} {address}]")
        address = str(node.attrs.get("src", ""))
        shape.setForeground(resources.colour("text2"))
        self._cursor.insertText(said.format(words=node.content, address=address), shape)
        opening = self._source.find("![", self._at)
        if opening >= 0:
            self._at = _behind_address(self._source, self._source.find("](", opening) + 2)

    def _escaped(self, node: Node, shape: QTextCharFormat) -> None:
        """A character that is written as several, like an entity."""
        found = self._source.find(node.markup, self._at)
        if found >= 0 and node.markup:
            self._note(self._start + found, len(node.markup), node.content)
            self._at = found + len(node.markup)
        self._cursor.insertText(node.content, shape)

    def _inline_code(self, text: str, around: QTextCharFormat) -> None:
        shape = QTextCharFormat(self._code_format("text"))
        shape.setFont(resources.code_font(1.04))
        shape.setFontWeight(around.fontWeight())
        shape.setBackground(resources.colour("hover"))
        if around.isAnchor():
            shape.setAnchor(True)
            shape.setAnchorHref(around.anchorHref())
        if self._mirrored:
            self._cursor.insertText(ISOLATE, shape)
        self._sought(text, shape)
        if self._mirrored:
            self._cursor.insertText(ISOLATED, shape)

    def _formula(self, node: Node, around: QTextCharFormat) -> None:
        closing = {"\\(": "\\)", "\\[": "\\]"}.get(node.markup, node.markup)
        source = node.markup + node.content + closing
        if len(source) > formula.MAX_CHARACTERS or len(self.formulas) >= formula.MAX_FORMULAS:
            self._sought(source, self._code_format("text"))
            return
        display = node.markup in ("$$", "\\[")
        shape = formula.character(source, node.content, display=display, base=around)
        opening = self._source.find(node.markup, self._at)
        if opening >= 0:
            end = self._source.find(closing, opening + len(node.markup)) + len(closing)
            self._note(self._start + opening, end - opening, formula.OBJECT)
            self._at = end
        self.formulas.append((self._cursor.position(), formula.of(shape)))
        self._cursor.insertText(formula.OBJECT, shape)

    def _sought(self, text: str, shape: QTextCharFormat) -> None:
        """Code, in which all that cannot be seen has a sign."""
        self._signed(code.unseen(text), shape)

    def _text(self, text: str, shape: QTextCharFormat) -> None:
        self._signed(code.pictures(text), shape)

    def _signed(self, pieces: Iterable[tuple[str, str]], shape: QTextCharFormat) -> None:
        for piece, sign in pieces:
            if sign:
                self._sign(piece, sign, self._sign_format(piece))
                self._cursor.setCharFormat(shape)  # of what is written behind it
            else:
                self._piece(piece, shape)

    def _piece(self, text: str, shape: QTextCharFormat) -> None:
        """Text as it is, and where in the source it comes from."""
        found = self._source.find(text, self._at)
        if found >= 0:
            self._at = found + len(text)
        for start in range(0, len(text), MAX_LINE):
            piece = text[start : start + MAX_LINE]
            if start and "\n" not in text[start - MAX_LINE : start]:
                self._cursor.insertText(LINE_BREAK, shape)
            if found >= 0:
                self.places.add(piece, self._start + found + start, self._cursor.position())
            self._cursor.insertText(piece, shape)

    def _sign(self, text: str, sign: str, shape: QTextCharFormat) -> None:
        """A sign in place of a character that cannot be seen."""
        found = self._source.find(text, self._at)
        if found >= 0:
            self._note(self._start + found, len(text), sign)
            self._at = found + len(text)
        self._cursor.insertText(sign, shape)

    def _note(self, source: int, length: int, shown: str) -> None:
        self.places.add_sign(source, length, self._cursor.position(), units(shown))

    def _format(self, role: str) -> QTextCharFormat:
        shape = QTextCharFormat()
        shape.setFont(resources.font(role))
        shape.setForeground(resources.colour("text"))
        return shape

    def _heading_format(self, node: Node | None) -> QTextCharFormat:
        """Paragraphs plain; headings heavier, the first two levels larger."""
        shape = QTextCharFormat(self._plain)
        if node is None or node.type == "heading":
            shape.setFontWeight(QFont.Weight.DemiBold)
        if node is not None and node.tag in ("h1", "h2"):
            factor = 1.25 if node.tag == "h1" else 1.12
            shape.setFontPointSize(resources.font("reading").pointSizeF() * factor)
        return shape

    def _code_format(self, tone: str) -> QTextCharFormat:
        if tone not in self._formats:
            shape = QTextCharFormat()
            shape.setFont(resources.code_font())
            shape.setForeground(resources.colour(tone))
            self._formats[tone] = shape
        return self._formats[tone]

    def _sign_format(self, character: str) -> QTextCharFormat:
        """Quiet, but for what may hide something."""
        tone = "text2" if character in code.PICTURES else "caution"
        shape = QTextCharFormat(self._code_format(tone))
        shape.setToolTip(tooltip(code.name_of(character)))
        return shape


def _mark_up(node: Node, shape: QTextCharFormat) -> None:
    if node.type == "strong":
        shape.setFontWeight(QFont.Weight.DemiBold)
    elif node.type == "em":
        shape.setFontItalic(True)
    elif node.type == "s":
        shape.setFontStrikeOut(True)


def _behind_address(source: str, start: int) -> int:
    """The end of a link's address, which may hold brackets itself."""
    depth = 1
    for found in re.compile(r"[()\n]").finditer(source, start, start + 4_000):
        depth += {"(": 1, ")": -1, "\n": 0}[found.group()]
        if depth == 0:
            return found.end()
    return start


def _short(address: str) -> str:
    """An address as it is shown, without what all have in common; backslashes, as paths of
    Windows have them, are coded for browsers only."""
    bare = address.replace("%5C", "\\")
    for common in OPENED_SCHEMES:
        bare = bare.removeprefix(common)
    bare = bare.rstrip("/")
    if len(bare) > MAX_ADDRESS:
        bare = f"{bare[: MAX_ADDRESS // 2]}…{bare[-MAX_ADDRESS // 2 :]}"
    return bare
