"""Markdown written into a QTextDocument, block after block, without HTML and without fetching.

Parsed by markdown-it with HTML off, so a tag is text like any other; an image is a label with
its address. Blocks already written are never touched again, except those behind a mark. Knows
nothing of streaming or widgets.
"""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTableFormat,
)

from app import resources
from app.widgets import code
from app.widgets.common import tooltip

CODE_TITLE = QTextFrameFormat.Property.UserProperty + 1
CODE_SOURCE = QTextFrameFormat.Property.UserProperty + 2
INDENT = 22
GAP = 9
CARD_GAP = 10
MAX_LINE = 5_000  # characters; Qt lays out longer lines in quadratic time
MAX_ROWS, MAX_COLUMNS = 500, 50
LINE_BREAK = "\u2028"
OPENED_SCHEMES = ("http://", "https://", "mailto:")

_parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
_parser.enable(["table", "strikethrough"])
# The parser drops what is nested deeper than its limit; such blocks are shown as they are.
_DEEP = re.compile(r"^(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){12}", re.MULTILINE)
# Control characters would be invisible or act as line ends.
_VISIBLE: dict[int, int | str | None] = {c: 0x2400 + c for c in range(32) if c not in (9, 10)}
_VISIBLE |= {0x0D: None, 0x7F: 0x2421, 0x85: " ", 0x2028: "\n", 0x2029: "\n"}


@dataclass(frozen=True)
class Block:
    """One top-level block: its source and its tree (None: to be shown as it is)."""

    source: str
    node: SyntaxTreeNode | None


@dataclass(frozen=True)
class Mark:
    """A place between two blocks; `fresh`: an empty paragraph is waiting there."""

    position: int
    fresh: bool


def visible(text: str) -> str:
    """`text` with control characters as their visible signs, and lines ended by "\\n" alone."""
    return text.translate(_VISIBLE)


def split(text: str) -> list[Block]:
    """The top-level blocks of a visible `text`; their sources join to it again."""
    if _DEEP.search(text):
        return [Block(text, None)]
    lines = text.splitlines(keepends=True)
    nodes = SyntaxTreeNode(_parser.parse(text)).children
    starts = [n.map[0] for n in nodes if n.map is not None]
    if len(starts) != len(nodes) or not nodes:
        return [Block(text, None)] if text else []
    ends = [*starts[1:], len(lines)]
    starts[0] = 0
    return [
        Block("".join(lines[a:b]), node) for a, b, node in zip(starts, ends, nodes, strict=True)
    ]


def card_head() -> int:
    """Pixels over the code in its card, for the language and the button."""
    return round(1.5 * resources.pixels())


class Writer:
    """Writes blocks at the end of a document."""

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._cursor = QTextCursor(document)
        self._fresh = True
        self._coloured = True
        self._plain = self._format("reading")
        document.setIndentWidth(INDENT)
        self._line = round(1.6 * resources.pixels("reading"))

    def mark(self) -> Mark:
        """The end of what is written."""
        return Mark(self._document.characterCount() - 1, self._fresh)

    def rewind(self, mark: Mark) -> None:
        """Drop everything behind `mark`."""
        cursor = self._cursor
        cursor.setPosition(mark.position)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._fresh = mark.fresh

    def write(self, block: Block, *, finished: bool = True) -> None:
        """Write one block; code gets its colours when it is finished."""
        self._coloured = finished
        self._cursor.beginEditBlock()
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if block.node is None:
            self._paragraph(0)
            self._text(block.source.strip("\n"), self._plain)
        else:
            self._node(block.node, 0)
        self._cursor.endEditBlock()

    def append(self, text: str) -> None:
        """Add text at the end of the last block as it is, until that is parsed again."""
        self._text(text, self._cursor.charFormat())

    def finish(self) -> None:
        """Take away the height of the empty line that Qt keeps behind a frame or table."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if self._fresh and self._document.blockCount() > 1:
            self._collapse()

    # One method for each kind of block.

    def _node(self, node: SyntaxTreeNode, depth: int) -> None:
        match node.type:
            case "paragraph" | "heading":
                self._paragraph(depth, heading=node.type == "heading")
                self._inline(node, self._heading_format(node))
            case "fence" | "code_block":
                self._code(node.content, (node.info or "").split(" ")[0].strip(), depth)
            case "bullet_list" | "ordered_list":
                self._list(node, depth)
            case "blockquote":
                for child in node.children:
                    self._node(child, depth + 1)
            case "table":
                self._table(node, depth)
            case "hr":
                self._rule(depth)
            case _:
                self._paragraph(depth)
                self._text(node.content, self._plain)

    def _paragraph(self, depth: int, *, heading: bool = False, tight: bool = False) -> None:
        shape = QTextBlockFormat()
        shape.setLineHeight(self._line, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        shape.setLeftMargin(INDENT * depth)
        shape.setBottomMargin(2 if tight else 4 if heading else GAP)
        shape.setTopMargin(6 if heading and self._cursor.position() > 0 else 0)
        if self._fresh:
            listed = self._cursor.currentList()
            if listed is not None:
                listed.remove(self._cursor.block())
            self._cursor.setBlockFormat(shape)
            self._cursor.setBlockCharFormat(self._plain)
        else:
            self._cursor.insertBlock(shape, self._plain)
        self._fresh = False

    def _code(self, source: str, language: str, depth: int) -> None:
        source = source.removesuffix("\n")
        title = code.title_of(language)
        if self._fresh:
            self._collapse()
        frame = QTextFrameFormat()
        frame.setPadding(14)
        frame.setLeftMargin(INDENT * depth)
        frame.setTopMargin(CARD_GAP + card_head())
        frame.setBottomMargin(GAP + 4)
        frame.setProperty(CODE_TITLE, title)
        frame.setProperty(CODE_SOURCE, source)
        self._cursor.insertFrame(frame)
        shape = QTextBlockFormat()
        shape.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        height = round(1.5 * resources.pixels())
        shape.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        self._cursor.setBlockFormat(shape)
        for index, line in enumerate(_lines_of_tones(source, language if self._coloured else "")):
            if index:
                self._cursor.insertBlock(shape)
            for piece, tone in line:
                self._text(piece, self._code_format(tone))
        self._cursor.setCharFormat(self._code_format("text"))
        self._cursor.setBlockCharFormat(self._code_format("text"))
        self._fresh = True

    def _list(self, node: SyntaxTreeNode, depth: int) -> None:
        shape = QTextListFormat()
        ordered = node.type == "ordered_list"
        styles = QTextListFormat.Style
        shape.setStyle(styles.ListDecimal if ordered else styles.ListDisc)
        if ordered:
            shape.setStart(int(node.attrs.get("start", 1)))
        shape.setIndent(1)
        made = None
        for number, item in enumerate(node.children):
            last = number == len(node.children) - 1
            self._open_item(item, depth, tight=not last)
            if made is None:
                made = self._cursor.createList(shape)
            else:
                made.add(self._cursor.block())
            for index, child in enumerate(item.children):
                if index == 0 and child.type == "paragraph":
                    self._inline(child, self._plain)
                else:
                    self._node(child, depth + 1)

    def _open_item(self, item: SyntaxTreeNode, depth: int, *, tight: bool) -> None:
        self._paragraph(depth, tight=tight and len(item.children) <= 1)

    def _table(self, node: SyntaxTreeNode, depth: int) -> None:
        rows = [row for part in node.children for row in part.children]
        columns = max((len(row.children) for row in rows), default=0)
        if not rows or len(rows) > MAX_ROWS or columns > MAX_COLUMNS:
            self._table_as_text(rows, depth)
            return
        if self._fresh:
            self._collapse()
        shape = QTextTableFormat()
        shape.setBorderCollapse(True)
        shape.setBorder(1)
        shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        shape.setBorderBrush(resources.colour("line"))
        shape.setCellPadding(6)
        shape.setLeftMargin(INDENT * depth)
        shape.setTopMargin(CARD_GAP)
        shape.setBottomMargin(GAP + 4)
        shape.setColumnWidthConstraints([QTextLength()] * columns)
        table = self._cursor.insertTable(len(rows), columns, shape)
        for r, row in enumerate(rows):
            for c, cell in enumerate(row.children):
                self._cursor = table.cellAt(r, c).firstCursorPosition()
                self._inline(cell, self._heading_format(None) if r == 0 else self._plain)
        self._fresh = True

    def _table_as_text(self, rows: list[SyntaxTreeNode], depth: int) -> None:
        self._paragraph(depth)
        lines = (" | ".join(_plain_text(cell) for cell in row.children) for row in rows)
        self._text("\n".join(lines), self._plain)

    def _rule(self, depth: int) -> None:
        self._paragraph(depth)
        shape = self._cursor.blockFormat()
        width = QTextLength(QTextLength.Type.PercentageLength, 100)
        shape.setProperty(QTextBlockFormat.Property.BlockTrailingHorizontalRulerWidth, width)
        self._cursor.setBlockFormat(shape)

    def _collapse(self) -> None:
        """An empty line before or behind a frame takes no height."""
        shape = QTextBlockFormat()
        shape.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        tiny = QTextCharFormat()
        tiny.setFontPointSize(1)
        self._cursor.setBlockFormat(shape)
        self._cursor.setBlockCharFormat(tiny)

    # Text within a block.

    def _inline(self, node: SyntaxTreeNode, shape: QTextCharFormat) -> None:
        for child in node.children:
            self._span(child, QTextCharFormat(shape))

    def _span(self, node: SyntaxTreeNode, shape: QTextCharFormat) -> None:
        match node.type:
            case "text":
                self._text(node.content, shape)
            case "softbreak" | "hardbreak":
                self._text(LINE_BREAK, shape)
            case "code_inline":
                self._text(node.content, self._inline_code(shape))
            case "image":
                self._image(node, shape)
            case _:
                _mark_up(node, shape)
                if node.type == "link":
                    self._link(str(node.attrs.get("href", "")), shape)
                if node.children:
                    self._inline(node, shape)
                elif node.content:
                    self._text(node.content, shape)

    def _link(self, address: str, shape: QTextCharFormat) -> None:
        shape.setToolTip(tooltip(address))
        if address.lower().startswith(OPENED_SCHEMES):
            shape.setAnchor(True)
            shape.setAnchorHref(address)
            shape.setForeground(resources.colour("accent_text"))
            shape.setFontUnderline(True)

    def _image(self, node: SyntaxTreeNode, shape: QTextCharFormat) -> None:
        said = QCoreApplication.translate("markdown", "[image: {words} {address}]")
        address = str(node.attrs.get("src", ""))
        shape.setForeground(resources.colour("text2"))
        self._text(said.format(words=node.content, address=address), shape)

    def _text(self, text: str, shape: QTextCharFormat) -> None:
        for start in range(0, len(text), MAX_LINE):
            if start and "\n" not in text[start - MAX_LINE : start]:
                self._cursor.insertText(LINE_BREAK, shape)
            self._cursor.insertText(text[start : start + MAX_LINE], shape)

    def _format(self, role: str) -> QTextCharFormat:
        shape = QTextCharFormat()
        shape.setFont(resources.font(role))
        shape.setForeground(resources.colour("text"))
        return shape

    def _heading_format(self, node: SyntaxTreeNode | None) -> QTextCharFormat:
        """Paragraphs plain; headings heavier, the first two levels larger."""
        shape = QTextCharFormat(self._plain)
        if node is None or node.type == "heading":
            shape.setFontWeight(QFont.Weight.DemiBold)
        if node is not None and node.tag in ("h1", "h2"):
            factor = 1.25 if node.tag == "h1" else 1.12
            shape.setFontPointSize(resources.font("reading").pointSizeF() * factor)
        return shape

    def _code_format(self, tone: str) -> QTextCharFormat:
        shape = QTextCharFormat()
        shape.setFont(resources.code_font())
        shape.setForeground(resources.colour(tone))
        return shape

    def _inline_code(self, around: QTextCharFormat) -> QTextCharFormat:
        shape = self._code_format("text")
        shape.setFont(resources.code_font(1.04))
        shape.setFontWeight(around.fontWeight())
        shape.setBackground(resources.colour("hover"))
        if around.isAnchor():
            shape.setAnchor(True)
            shape.setAnchorHref(around.anchorHref())
        return shape


def _mark_up(node: SyntaxTreeNode, shape: QTextCharFormat) -> None:
    if node.type == "strong":
        shape.setFontWeight(QFont.Weight.DemiBold)
    elif node.type == "em":
        shape.setFontItalic(True)
    elif node.type == "s":
        shape.setFontStrikeOut(True)


def _plain_text(node: SyntaxTreeNode) -> str:
    return "".join(_plain_text(c) for c in node.children) if node.children else node.content


def _lines_of_tones(source: str, language: str) -> list[list[tuple[str, str]]]:
    """Pieces with their tones, line by line: a newline is a new block of the document."""
    lines: list[list[tuple[str, str]]] = [[]]
    for piece, tone in code.tones(source, language):
        first, *rest = piece.split("\n")
        lines[-1].append((first, tone))
        lines += [[(part, tone)] for part in rest]
    return lines
