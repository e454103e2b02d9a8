"""Markdown blocks written into a QTextDocument, one behind another, without fetching.

Blocks already written are never touched again, except those behind a mark. Notes where in the
document each piece of the source stands. Knows nothing of streaming or widgets.
"""

import re
from dataclasses import dataclass, field

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTable,
    QTextTableFormat,
)

from app import resources
from app.widgets import code
from app.widgets.markdown import BOX, Block, Node, first_number
from app.widgets.words import MAX_LINE, Words

INDENT = 22
GAP = 9
END_GAP = 2  # pixels below a card that ends an answer
CARD_GAP = 10
CARD_PADDING = 14
MAX_COLUMNS, MAX_CELLS = 50, 600  # of a table; a larger one is shown as text
TASK = QTextBlockFormat.Property.UserProperty.value + 21  # the box of a task as it is written

_ALIGNED = {
    "text-align:left": Qt.AlignmentFlag.AlignLeft,
    "text-align:right": Qt.AlignmentFlag.AlignRight,
    "text-align:center": Qt.AlignmentFlag.AlignHCenter,
}
_BULLETS = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)


@dataclass(eq=False)
class Card:
    """A code block: its first and last position in the document, pixels that it is indented, and
    what is in it."""

    position: int
    last: int
    left: int
    title: str
    language: str
    source: str
    unseen: int
    seen: bool = False  # what nobody sees needs no colours
    coloured: int = 0  # characters that the last colouring knew of
    lines: list[list[tuple[int, int, str]]] = field(default_factory=list)  # colours laid


@dataclass(frozen=True)
class Mark:
    """A place between two blocks; `fresh`: an empty paragraph is waiting there."""

    position: int
    fresh: bool
    listed: bool  # the line before is that of an item
    shape: QTextBlockFormat  # of the last line


def card_head() -> int:
    """Pixels over the code in its card, for the language and the button."""
    return round(1.5 * resources.pixels())


class Writer(Words):
    """Writes blocks at the end of a document."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.cards: list[Card] = []
        self.tasks: list[tuple[int, bool]] = []  # positions, and whether they are done
        self.quotes: list[tuple[int, int, int]] = []  # first and last position, depth
        self._fresh = True
        self._listed = False
        self._last = False
        document.setIndentWidth(INDENT)
        self._line = round(1.6 * resources.pixels("reading"))

    def mark(self) -> Mark:
        """The end of what is written."""
        shape = self._document.lastBlock().blockFormat()
        return Mark(self._document.characterCount() - 1, self._fresh, self._listed, shape)

    def rewind(self, mark: Mark) -> None:
        """Drop everything behind `mark`."""
        cursor = self._cursor
        cursor.setPosition(mark.position)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._fresh, self._listed = mark.fresh, mark.listed
        if not cursor.block().text():
            # An empty line takes the format of the one that is removed behind it.
            self._shape(mark.shape)
        self.places.drop(mark.position)
        while self.cards and self.cards[-1].position >= mark.position:
            self.cards.pop()
        self.quotes = [quote for quote in self.quotes if quote[0] < mark.position]
        self.tasks = [task for task in self.tasks if task[0] < mark.position]
        while self.formulas and self.formulas[-1][0] >= mark.position:
            self.formulas.pop()

    def write(self, block: Block, source: int, *, last: bool = False) -> None:
        """Write one block, which begins at the character `source` of the whole; `last`: nothing
        will follow it."""
        self._begin(block.source, source)
        self._last = last
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        node = block.node
        if node is None:
            if block.part:
                self._close_gap()
            self._paragraph(0)
            self._text(block.source.strip("\n"), self._plain)
        elif block.item is not None:
            self._item(node, 0, block.item, first=block.first)
        elif block.part is not None:
            self._part(node, block.part)
        else:
            self._node(node, 0)

    def append(self, text: str, source: int) -> None:
        """Add text at the end of the last block as it is, until that is parsed again."""
        self._begin(text, source)
        self._text(text, self._cursor.charFormat())

    def append_code(self, text: str, source: int, *, indent: int = 0) -> None:
        """Add to the last code block, in which the writer still is; `indent`: blanks that are
        no part of its lines."""
        card = self.cards[-1]
        self._begin(text, source)
        if indent:
            begin = "(?:^|(?<=\n))" if not card.source else "(?<=\n)"
            text = re.sub(rf"{begin} {{1,{indent}}}", "", text)
        card.source += text
        card.unseen += code.count_unseen(text)
        self._code_text(text)
        card.last = self._cursor.position()

    def leave_code(self) -> None:
        """The last code block has ended."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)

    @property
    def end(self) -> int:
        """The position at which words go on."""
        return self._cursor.position()

    def finish(self) -> None:
        """Take away the room that would keep apart what does not follow."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        before = self._cursor.block().previous()
        if not before.isValid():
            return
        if self._fresh:
            self._collapse()
            table = QTextCursor(before).currentTable()
            # It would be laid out anew.
            if table is not None and table.format().bottomMargin() != END_GAP:
                shape = table.format()
                shape.setBottomMargin(END_GAP)
                table.setFormat(shape)
        elif self.cards and before.contains(self.cards[-1].last):
            self._cursor.setBlockFormat(_spacer(CARD_PADDING + END_GAP))

    # One method for each kind of block.

    def _node(self, node: Node, depth: int) -> None:
        match node.type:
            case "paragraph" | "heading":
                self._paragraph(depth, heading=node.type == "heading")
                self._inline(node, self._heading_format(node))
                self._turn()
            case "fence" | "code_block":
                self._code(node, depth)
            case "bullet_list" | "ordered_list":
                for number, item in enumerate(node.children, first_number(node)):
                    self._item(item, depth, number, first=depth == 0 and item is node.children[0])
            case "blockquote":
                begun = self.mark()
                for child in node.children:
                    self._node(child, depth + 1)
                first = begun.position + (0 if begun.fresh else 1)
                self.quotes.append((first, self.mark().position, depth))
            case "table":
                self._table(node, depth)
            case "hr":
                self._rule(depth)
            case "formula":
                self._paragraph(depth)
                self._formula(node, self._plain)
            case _:
                self._paragraph(depth)
                self._text(node.content, self._plain)

    def _paragraph(
        self, depth: int, *, heading: bool = False, tight: bool = False, apart: bool = True
    ) -> None:
        """Open one. An item is `tight`, so what follows the list keeps itself `apart`."""
        shape = QTextBlockFormat()
        shape.setLineHeight(self._line, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        shape.setLeftMargin(INDENT * depth)
        shape.setBottomMargin(2 if tight else 4 if heading else GAP)
        above = 6 if heading and self._cursor.position() > 0 else 0
        shape.setTopMargin(above + (GAP - 2 if self._listed and apart else 0))
        self._listed = tight
        self._open(shape)

    def _open(self, shape: QTextBlockFormat) -> None:
        # The last thing written may have been in a frame.
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if self._fresh:
            self._shape(shape)
            self._cursor.setBlockCharFormat(self._plain)
        else:
            self._cursor.insertBlock(shape, self._plain)
        self._fresh = False

    def _shape(self, shape: QTextBlockFormat) -> None:
        listed = self._cursor.currentList()
        if listed is not None:
            listed.remove(self._cursor.block())
        self._cursor.setBlockFormat(shape)

    def _part(self, node: Node, part: int) -> None:
        """A part of a long paragraph follows the one before without a gap."""
        if part:
            self._close_gap()
        self._paragraph(0)
        self._inline(node, self._plain)

    def _close_gap(self) -> None:
        shape = self._cursor.blockFormat()
        shape.setBottomMargin(0)
        self._cursor.setBlockFormat(shape)

    def _code(self, node: Node, depth: int) -> None:
        source = node.content.removesuffix("\n")
        language = (node.info or "").split(" ")[0].strip()
        above = GAP - 2 if self._listed else 0
        self._listed = False
        # Plain blocks between two of a fixed height: in a frame, Qt would go through all lines of
        # it whenever one comes or is painted.
        self._open(_spacer(4 + above + card_head() + CARD_PADDING))
        shape = QTextBlockFormat()
        shape.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        shape.setLeftMargin(INDENT * depth + CARD_PADDING)
        shape.setRightMargin(CARD_PADDING)
        height = round(1.5 * resources.pixels())
        shape.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        self._cursor.insertBlock(shape, self._code_format("text"))
        first = self._cursor.position()
        self._cursor.insertBlock(_spacer(CARD_PADDING + GAP + 4))
        self._cursor.setPosition(first)
        unseen = code.count_unseen(source)
        title = code.title_of(language)
        self.cards.append(Card(first, first, INDENT * depth, title, language, source, unseen))
        if node.type == "fence":
            self._at = max(self._source.find("\n", self._source.find(node.markup, self._at)), 0)
        self._code_text(source)
        self.cards[-1].last = self._cursor.position()

    def _code_text(self, text: str) -> None:
        """Text in a code block. Its lines become blocks of the document by themselves."""
        shape = self._code_format("text")
        begun = self._cursor.positionInBlock()
        if begun + len(text) <= MAX_LINE and text in self._source:
            self._sought(text, shape)
            return
        for line in text.splitlines(keepends=True):
            while begun + len(line) > MAX_LINE:
                self._sought(line[: MAX_LINE - begun], shape)
                line = line[MAX_LINE - begun :]
                self._cursor.insertBlock()
                begun = 0
            self._sought(line, shape)
            begun = self._cursor.positionInBlock()

    def _item(self, item: Node, depth: int, number: int, *, first: bool) -> None:
        above = item.parent
        ordered = above is not None and above.type == "ordered_list"
        inner = item.children
        box = _box(item)
        lists = ("bullet_list", "ordered_list")
        tight = len(inner) < 2 or inner[1].type in lists
        self._paragraph(depth, tight=tight, apart=first)
        shape = QTextListFormat()
        styles = QTextListFormat.Style
        bullet = styles.ListStyleUndefined if box else _BULLETS[min(depth, len(_BULLETS) - 1)]
        shape.setStyle(styles.ListDecimal if ordered and not box else bullet)
        shape.setStart(number if ordered else 1)
        shape.setIndent(1)
        # A list of its own for each item: it knows its number though others come later.
        self._cursor.createList(shape)
        if not ordered:
            # Qt keeps a blank between a bullet and the words, and those of this font are wide.
            self._cursor.setBlockCharFormat(self._code_format("text"))
        if box:
            marked = self._cursor.blockFormat()
            marked.setProperty(TASK, box.group())
            self._cursor.setBlockFormat(marked)
            self.tasks.append((self._cursor.position(), box.group(1) != " "))
        for place, child in enumerate(inner):
            if place == 0 and child.type == "paragraph":
                self._inline(child, self._plain, skip=box.end() if box else 0)
                self._turn()
            else:
                self._node(child, depth + 1)

    def _turn(self) -> None:
        """What is read from the right is indented there."""
        block = self._cursor.block()
        if block.textDirection() != Qt.LayoutDirection.RightToLeft:
            return
        shape = block.blockFormat()
        shape.setRightMargin(shape.leftMargin())
        shape.setLeftMargin(0)
        self._cursor.setBlockFormat(shape)
        held = block.textList()
        if held is not None:
            # Qt puts a number the wrong way round twice, so its dot comes first.
            numbers = held.format()
            numbers.setNumberPrefix(".")
            numbers.setNumberSuffix("")
            held.setFormat(numbers)

    def _table(self, node: Node, depth: int) -> None:
        rows = [row for part in node.children for row in part.children]
        columns = max((len(row.children) for row in rows), default=0)
        if not 0 < columns <= MAX_COLUMNS or len(rows) * columns > MAX_CELLS:
            self._table_as_text(rows, depth)
            return
        self._listed = False
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if self._fresh:
            self._collapse()
        elif not self._cursor.block().text():
            self._cursor.insertBlock(_spacer(1))
        shape = QTextTableFormat()
        shape.setBorderCollapse(True)
        shape.setBorder(1)
        shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        shape.setBorderBrush(resources.colour("line"))
        shape.setCellPadding(6)
        shape.setLeftMargin(INDENT * depth)
        shape.setTopMargin(CARD_GAP)
        shape.setBottomMargin(END_GAP if self._last else GAP + 4)
        shape.setColumnWidthConstraints([QTextLength()] * columns)
        table = self._cursor.insertTable(len(rows), columns, shape)
        for r, row in enumerate(rows):
            for c, cell in enumerate(row.children):
                self._cell(table, r, c, cell)
        if rows[0].children and _reads_from_right(table):
            shape.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute)
            table.setFormat(shape)
        self._fresh = True

    def _cell(self, table: QTextTable, row: int, column: int, cell: Node) -> None:
        self._cursor = table.cellAt(row, column).firstCursorPosition()
        side = _ALIGNED.get(str(cell.attrs.get("style", "")))
        if side is not None:
            shape = QTextBlockFormat()
            shape.setAlignment(side | Qt.AlignmentFlag.AlignAbsolute)
            self._cursor.setBlockFormat(shape)
        self._inline(cell, self._heading_format(None) if row == 0 else self._plain)

    def _table_as_text(self, rows: list[Node], depth: int) -> None:
        """As it is written: to parse the words of thousands of cells would take its time."""
        self._paragraph(depth)
        if depth == 0:
            self._text(self._source.strip("\n"), self._plain)
            return
        cells = ([c.children[0].content for c in row.children if c.children] for row in rows)
        self._text("\n".join(" | ".join(row) for row in cells), self._plain)

    def _rule(self, depth: int) -> None:
        self._paragraph(depth)
        shape = self._cursor.blockFormat()
        width = QTextLength(QTextLength.Type.PercentageLength, 100)
        shape.setProperty(QTextBlockFormat.Property.BlockTrailingHorizontalRulerWidth, width)
        self._cursor.setBlockFormat(shape)

    def _collapse(self) -> None:
        """An empty line before or behind a frame takes no height."""
        tiny = QTextCharFormat()
        tiny.setFontPointSize(1)
        self._cursor.setBlockFormat(_spacer(1))
        self._cursor.setBlockCharFormat(tiny)


def _reads_from_right(table: QTextTable) -> bool:
    first = table.cellAt(0, 0).firstCursorPosition().block()
    return first.textDirection() == Qt.LayoutDirection.RightToLeft


def _spacer(height: int) -> QTextBlockFormat:
    """An empty line of so many pixels."""
    shape = QTextBlockFormat()
    shape.setLineHeight(height, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return shape


def _box(item: Node) -> re.Match[str] | None:
    """The box at the beginning of a task."""
    first = item.children[0] if item.children else None
    if first is None or first.type != "paragraph" or not first.children:
        return None
    words = first.children[0]
    text = words.children[0] if words.children else None
    return BOX.match(text.content) if text is not None and text.type == "text" else None
