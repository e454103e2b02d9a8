"""The Markdown that is understood: what words and blocks there are, and what they become as HTML.

Parsed by markdown-it with HTML off, so a tag is text like any other; with tables, strikethrough
and formulas. Knows no document, no widget, no colour.
"""

import re
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline, autolink

from app.widgets import fence

MAX_FORMULA = 2_000
OPENED_SCHEMES = ("http://", "https://", "mailto:")
# The parser drops what is nested deeper than its limit; such texts are shown as they are.
DEEP = re.compile(r"^(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){12}", re.MULTILINE)

_DELIMITERS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


# In angle brackets stands more than addresses: what is not opened stays as it is written.
_OTHER = re.compile(r"<(?!https?://|mailto:)[a-z][a-z\d+.-]*:", re.IGNORECASE)


def _autolink(state: StateInline, silent: bool) -> bool:
    return not _OTHER.match(state.src, state.pos) and autolink(state, silent)


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


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """All links look alike, of schemes that are known as bad and others: whether one is
        opened is decided where it is written."""
        return True


def _build() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "maxNesting": 40})
    parser.enable(["table", "strikethrough"])
    # A definition may come when what refers to it is long written. Texts are left apart, so
    # that each still is a piece of the source.
    parser.disable(["reference", "text_join"])
    parser.inline.ruler.at("autolink", _autolink)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "blockquote", "list"]}
    parser.block.ruler.at("fence", fence.rule, interrupts)
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


words = _build()
# Finds the blocks alone: their words are parsed when they are written.
blocks = _build()
blocks.disable("inline")
