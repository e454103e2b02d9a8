"""Markdown cut into blocks that can be written one after another, and as safe rich text.

Parsed by markdown-it with HTML off, so a tag is text like any other. Knows what may still change
while an answer streams; knows no document, no widget, no colour.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

LONG = 4_000  # characters; a longer paragraph is written in several parts
MAX_FORMULA = 2_000
OPENED_SCHEMES = ("http://", "https://", "mailto:")
BOX = re.compile(r"\[([ xX])\](?=\s)\s*")

# The parser drops what is nested deeper than its limit; such blocks are shown as they are.
_DEEP = re.compile(r"^(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){12}", re.MULTILINE)
_MARKER = re.compile(r"[ \t]*(?:[*+-]|\d{1,9}[.)])(?:[ \t]{1,4}(?=\S)|[ \t]|$)")
# Control characters would be invisible or act as line ends.
_VISIBLE: dict[int, int | str | None] = {c: 0x2400 + c for c in range(32) if c not in (9, 10)}
_VISIBLE |= {0x0D: None, 0x7F: 0x2421, 0x85: " ", 0x2028: "\n", 0x2029: "\n"}
_VISIBLE |= {c: "\ufffd" for c in range(0x80, 0xA0) if c != 0x85}
_DELIMITERS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


class Node:
    """A part of a parsed text, with what it holds."""

    __slots__ = ("attrs", "children", "content", "info", "map", "markup", "parent", "tag", "type")

    def __init__(self, token: Token, parent: "Node | None") -> None:
        self.type = token.type.removesuffix("_open")
        self.tag, self.info, self.markup = token.tag, token.info, token.markup
        self.content, self.map, self.attrs = token.content, token.map, token.attrs
        self.parent = parent
        self.children: list[Node] = []
        if parent is not None:
            parent.children.append(self)


def tree(tokens: Iterable[Token]) -> Node:
    """The parser's flat list as a tree."""
    root = holder = Node(Token("root", "", 0), None)
    for token in tokens:
        if token.nesting < 0:
            holder = holder.parent or root
            continue
        node = Node(token, holder)
        if token.children:
            node.children = tree(token.children).children
        elif token.nesting > 0:
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
    """A fence that is still open: what closes it, how much of each line is its indent, how far a
    line must be indented to be in it, and how many characters of its block come before its text.
    """

    markup: str
    indent: int
    floor: int
    begun: int

    def closed_by(self, line: str) -> bool:
        """Whether this whole line is its end."""
        text = line.strip()
        closing = len(text) >= len(self.markup) and set(text) == {self.markup[0]}
        return closing and _indent(line) - self.floor < 4

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


def split(text: str, *, after: Block | None = None, growing: bool = False) -> list[Block]:
    """The blocks of a visible `text`; their sources join to it again.

    `after`: the block before it, which may be of the same list or paragraph. `growing`: more of
    it may come.
    """
    if _DEEP.search(text):
        return [Block(text, None)]
    # Inside a long paragraph, a line that looks like a list does not begin one.
    prefix = "x " if after is not None and after.part is not None else ""
    nodes = tree(_parser.parse(prefix + text, {"growing": growing})).children
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
            root = tree(_parser.parseInline(piece.strip()))
            yield Block(piece, root, first, part=number)
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
    fence = Fence(node.markup, _indent(_bare(opening, node.markup)), floor, begun)
    return None if any(fence.closed_by(line) for line in rest) else fence


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
    return str(_parser.render(visible(text)))


# Formulas: \( \), \[ \], $$ $$ and $ $, where it is no price.


def _inline_formula(state: StateInline, silent: bool) -> bool:
    text, at = state.src, state.pos
    found = next((d for d in _DELIMITERS if text.startswith(d[0], at)), None)
    if found is None:
        return False
    opening, closing = found
    start = at + len(opening)
    end = text.find(closing, start, min(start + MAX_FORMULA, state.posMax))
    body = text[start:end] if end > start else ""
    if not body.strip() or (opening == "\\[" and body.strip().isdigit()):
        return False
    if opening == "$" and not _is_formula(text, start, end):
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = body.strip(), opening
    state.pos = end + len(closing)
    return True


def _is_formula(text: str, start: int, end: int) -> bool:
    """Whether what stands between two dollar signs is one, and not prose between two prices."""
    before, behind = text[: start - 1][-1:], text[end + 1 : end + 2]
    body = text[start:end]
    if before.isalnum() or behind.isalnum() or "$" in (before, behind):
        return False
    if body != body.strip() or body.endswith("\\"):
        return False
    if re.search(r"[\\^_=]", body):
        return True
    return not re.search(r"^\d\S*\s|[^\W\d_]{2,}\s+[^\W\d_]{2,}", body)


def _block_formula(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    if state.is_code_block(line):
        return False
    text = _line(state, line)
    found = next((d for d in _DELIMITERS[1:3] if text.startswith(d[0])), None)
    if found is None:
        return False
    body, closing, end = [text[2:]], found[1], line
    while closing not in body[-1]:
        end += 1
        if end >= last:
            return _unfinished_formula(state, line, end, silent)
        if state.isEmpty(end) or state.sCount[end] < state.blkIndent:
            return False
        body.append(_line(state, end))
    if not body[-1].rstrip().endswith(closing) or body == [closing]:
        return False
    content = "\n".join(body).rstrip().removesuffix(closing).strip()
    if not content or closing in content or content.isdigit():
        return False
    if not silent:
        _push_formula(state, "formula", content, line, end + 1).markup = found[0]
    return True


def _unfinished_formula(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """While its end may come, a formula's lines are not taken for lists or headings."""
    if not state.env.get("growing"):
        return False
    if not silent:
        source = "\n".join(_line(state, n) for n in range(line, end))
        _push_formula(state, "unfinished", source, line, end)
    return True


def _push_formula(state: StateBlock, kind: str, content: str, line: int, end: int) -> Any:
    token = state.push(kind, "math", 0)
    token.block, token.content, token.map = True, content, [line, end]
    state.line = end
    return token


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _build() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
    parser.enable(["table", "strikethrough"])
    # A definition may come when what refers to it is long written. Texts are left apart, so
    # that each still is a piece of the source.
    parser.disable(["reference", "text_join"])
    interrupts: RuleOptionsType = {"alt": ["paragraph", "blockquote", "list"]}
    parser.block.ruler.before("fence", "formula", _block_formula, interrupts)
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    for name, rule in (
        ("formula", _rich_formula),
        ("unfinished", _rich_formula),
        ("image", _rich_image),
        ("link_open", _rich_link),
    ):
        parser.add_render_rule(name, rule)
    return parser


def _rich_formula(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    closing = dict(_DELIMITERS).get(token.markup, "")
    code = f"<code>{escape(token.markup + token.content + closing)}</code>"
    return f"<p>{code}</p>\n" if token.block else code


def _rich_image(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    return f"[{escape(token.content)} {escape(str(token.attrs.get('src', '')))}]"


def _rich_link(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    if not str(token.attrs.get("href", "")).lower().startswith(OPENED_SCHEMES):
        token.attrs = {}
    return str(renderer.renderToken(tokens, index, options, env))


_parser = _build()
