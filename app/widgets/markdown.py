"""Markdown cut into blocks that can be written one after another, and as safe rich text.

Knows what may still change while an answer streams; knows no document, no widget, no colour.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from markdown_it.token import Token

from app.widgets import code, dialect
from app.widgets.dialect import DEEP
from app.widgets.fence import Levels

LONG = 2_000  # characters; a longer paragraph is written in several parts
MAX_ROWS = 200  # of a table; a taller one is shown as its source
ROWS_AT_ONCE = 50
BOX = re.compile(r"\[([ xX])\](?=\s)\s*")

_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_ROWS = re.compile(r"(?:[ \t]*\|[^\n]*(?:\n|$))+")
_TALL = re.compile(rf"^(?:[ \t]*\|[^\n]*(?:\n|$)){{{MAX_ROWS + 2},}}", re.MULTILINE)
_MARKER = re.compile(r"[ \t]*(?:[*+-]|\d{1,9}[.)])(?:[ \t]{1,4}(?=\S)|[ \t]|$)")

# Control characters would be invisible or act as line ends.
_VISIBLE: dict[int, str | None] = {c: chr(0x2400 + c) for c in range(32) if c not in (9, 10)}
_VISIBLE |= {0x0D: None, 0x7F: "\u2421", 0x85: " ", 0x2028: "\n", 0x2029: "\n"}
_VISIBLE |= {c: "\u2426" for c in range(0x80, 0xA0) if c != 0x85}
_LEGIBLE = {c: code.PICTURES.get(sign or "", sign) for c, sign in _VISIBLE.items()}


class Node:
    """A part of a parsed text, with what it holds; words are parsed when they are asked for."""

    __slots__ = ("_held", "attrs", "content", "info", "map", "markup", "parent", "tag", "type")

    def __init__(self, token: Token, parent: "Node | None") -> None:
        self.type = token.type.removesuffix("_open")
        self.tag, self.info, self.markup = token.tag, token.info, token.markup
        self.content, self.map, self.attrs = token.content, token.map, token.attrs
        self.parent = parent
        self._held: list[Node] | None = None if self.type == "inline" else []
        if parent is not None:
            parent.children.append(self)

    @property
    def children(self) -> "list[Node]":
        if self._held is None:
            words = dialect.words.parseInline(self.content)[0].children or []
            self._held = tree(words).children
        return self._held


def tree(tokens: Iterable[Token]) -> Node:
    """The parser's flat list as a tree."""
    root = holder = Node(Token("root", "", 0), None)
    for token in tokens:
        if token.nesting < 0:
            holder = holder.parent or root
            continue
        node = Node(token, holder)
        if token.nesting > 0:
            holder = node
    return root


@dataclass(frozen=True)
class Block:
    """What is written at once: its source and its tree (None: to be shown as it is).

    `line`: where its source begins in the text that was parsed; `item`: its number in a list
    at the top level, `first` where it begins one; `part`: its place in a long paragraph.
    """

    source: str
    node: Node | None
    line: int = 0
    item: int | None = None
    first: bool = False
    part: int | None = None


@dataclass(frozen=True)
class Fence:
    """A fence that is still open: its marks, how much of each line is its indent, how far a line
    must be indented to be in it, how many characters of its block come before its text, and what
    is open in it.
    """

    markup: str
    indent: int
    floor: int
    begun: int
    levels: Levels

    def closed_by(self, line: str) -> bool:
        """Take the next whole line; whether it is the end."""
        return _indent(line) - self.floor < 4 and self.levels.closed_by(line.lstrip(" \t"))

    def left_by(self, line: str) -> bool:
        """Whether this whole line is outside, because it leaves the list around the fence."""
        return bool(line.strip()) and _indent(line) < self.floor

    def may_end(self, line: str) -> bool:
        """Whether the beginning of a line may become its end."""
        text = line.strip()
        return set(text) <= {self.markup[0]} or _indent(line) < self.floor


def visible(text: str) -> str:
    """`text` with control characters as their visible signs, and lines ended by "\\n" alone."""
    return text.translate(_VISIBLE)


def legible(text: str) -> str:
    """The same with letters for the signs, which are small: for what is no Markdown."""
    return text.translate(_LEGIBLE)


def split(text: str, *, after: Block | None = None, growing: bool = False) -> list[Block]:
    """The blocks of a visible `text`; their sources join to it again.

    `after`: the block before it, which may be of the same list or paragraph. `growing`: more of
    it may come.
    """
    if DEEP.search(text):
        return [Block(text, None)]
    table = _long_table(text, after)
    if table is not None:
        above, rows = text[: table.start()], table.group()
        below = text[table.end() :]
        return [
            *(split(above) if above else []),
            *_rows(rows, after if not above else None),
            *(split(below, growing=growing) if below else []),
        ]
    # Inside a long paragraph, a line that looks like a list does not begin one.
    inner = after is not None and after.part is not None and after.node is not None
    prefix = "x " if inner else ""
    nodes = tree(dialect.blocks.parse(prefix + text, {"growing": growing})).children
    starts = [n.map[0] for n in nodes if n.map is not None]
    if len(starts) != len(nodes) or not nodes:
        return [Block(text, None)] if text else []
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + [lines[-1]]
    starts[0] = 0
    blocks: list[Block] = []
    for node, (a, b) in zip(nodes, pairwise([*starts, len(lines)]), strict=True):
        before = blocks[-1] if blocks else after
        blocks += _blocks_of(node, a, lines[a:b], before, inside=bool(prefix) and a == 0)
    return blocks


def _blocks_of(
    node: Node, first: int, lines: list[str], before: Block | None, *, inside: bool
) -> Iterator[Block]:
    source = "".join(lines)
    if node.type == "paragraph" and (inside or len(source) > LONG):
        part = (before.part or 0) + 1 if inside and before is not None else 0
        for number, piece in enumerate(_pieces(source), part):
            words = Token("inline", "", 0, content=piece.strip())
            yield Block(piece, tree([words]), first, part=number)
    elif node.type in ("bullet_list", "ordered_list") and len(node.children) > 0:
        item, first_item = first_number(node), True
        if before is not None and before.item is not None and _goes_on(before, node):
            item, first_item = before.item + 1, False
        starts = [child.map[0] - first if child.map else 0 for child in node.children]
        starts[0] = 0
        ends = [*starts[1:], len(lines)]
        for child, a, b in zip(node.children, starts, ends, strict=True):
            yield Block("".join(lines[a:b]), child, first + a, item, first_item)
            item, first_item = item + 1, False
    else:
        yield Block(source, node, first)


def _long_table(text: str, after: Block | None) -> re.Match[str] | None:
    """More rows than are laid out as a table, or what follows them."""
    if after is not None and after.part is not None and after.node is None:
        return _ROWS.match(text)
    found = _TALL.search(text)
    return found if found and not _FENCE.search(text, 0, found.start()) else None


def _rows(rows: str, after: Block | None) -> Iterator[Block]:
    lines = rows.splitlines(keepends=True)
    part = after.part + 1 if after is not None and after.part is not None else 0
    for number, start in enumerate(range(0, len(lines), ROWS_AT_ONCE), part):
        yield Block("".join(lines[start : start + ROWS_AT_ONCE]), None, part=number)


def _goes_on(before: Block, node: Node) -> bool:
    """Whether a list is that of the item before it."""
    if before.node is None or before.node.parent is None:
        return False
    own, other = node, before.node.parent
    return own.type == other.type and own.markup == other.markup


def first_number(node: Node) -> int:
    """The number of a list's first item; 1 where it has bullets."""
    return int(node.attrs.get("start", 1))


def _pieces(source: str) -> Iterator[str]:
    """Parts of a long paragraph, cut behind blanks where there are any.

    Where it is cut depends on no more than the part itself, so it is the same while it streams.
    """
    start = 0
    while len(source) - start > LONG:
        end = max(source.rfind(blank, start, start + LONG) for blank in ("\n", " ")) + 1
        end = end if end > start + LONG // 2 else start + LONG
        yield source[start:end]
        start = end
    yield source[start:]


def whole(blocks: list[Block]) -> int:
    """How many of the first blocks will not change, whatever comes behind them.

    What a line makes of the line before it is known when it has ended.
    """
    count = 0
    for block, following in pairwise(blocks):
        apart = block.item is None and block.source.endswith("\n\n")
        if not (apart or "\n" in following.source or following.part):
            break
        count += 1
    return count


def open_fence(block: Block) -> Fence | None:
    """The fence at the end of a block that goes on, if there is one."""
    node, floor = block.node, 0
    lines = block.source.split("\n")
    while node is not None and node.type != "fence":
        if node.type == "list_item" and node.map:
            floor = _content_offset(lines[node.map[0] - block.line], floor)
        if not node.children or node.type == "blockquote":
            return None
        node = node.children[-1]
    if node is None or node.map is None:
        return None
    place = node.map[0] - block.line
    opening, *rest = lines[place:]
    if not rest:
        return None
    begun = sum(len(line) + 1 for line in lines[: place + 1])
    indent = _indent(_bare(opening, node.markup))
    fence, read = (
        Fence(node.markup, indent, floor, begun, Levels(node.markup, node.info)) for _ in range(2)
    )
    return None if any(map(read.closed_by, rest[:-1])) else fence


def _bare(line: str, markup: str) -> str:
    """An opening line with blanks where a list's marker stands."""
    at = line.find(markup)
    return " " * at + line[at:] if at > 0 else line


def _content_offset(line: str, floor: int) -> int:
    found = _MARKER.match(line, min(floor, len(line)))
    return found.end() if found else floor


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def plain_text(node: Node) -> str:
    """The words of a node without their marks."""
    return "".join(map(plain_text, node.children)) if node.children else node.content


def rich(text: str) -> str:
    """HTML of a Markdown text for the clipboard: no picture, no address but web and mail."""
    text = visible(text)
    return f"<pre>{escape(text)}</pre>" if DEEP.search(text) else str(dialect.words.render(text))
