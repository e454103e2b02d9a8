"""Fences: where a block of code ends, also one that holds others.

Markdown ends a fence at the next line of marks alone. Models show Markdown in Markdown with the
same marks for both: there, marks with a language open a level, and each line of marks alone
closes one. What is marked otherwise ends as everywhere. Knows no document and no tree.
"""

import re

from markdown_it.rules_block import StateBlock

# A list's marker may stand before marks that open a level; a line that closes one has none.
_MARKS = re.compile(r"((?:[*+-]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$")


class Levels:
    """What is open in one fence, whose lines are taken one after another."""

    def __init__(self, markup: str, info: str) -> None:
        self._sign = markup[0]
        self._open = [len(markup)]
        self._nesting = _is_markdown(info)

    def closed_by(self, line: str) -> bool:
        """Take the next whole line, without its indent; whether it is the end."""
        found = _MARKS.match(line) if 3 * self._sign in line else None
        if found is None or not found[2].startswith(self._open[-1] * self._sign):
            return False
        if not found[1] and not found[3].strip():
            self._open.pop()
        elif self._nesting or _is_markdown(found[3]):
            self._nesting = True
            self._open.append(len(found[2]))
        return not self._open


def rule(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    """A fence for the parser; without an end it goes as far as what is around it."""
    found = _MARKS.match(_text(state, line)) if not state.is_code_block(line) else None
    if found is None or found[1]:
        return False
    if silent:
        return True
    levels = Levels(found[2], found[3])
    end, closed = line + 1, False
    while end < last and not closed:
        text = _text(state, end)
        if text and state.sCount[end] < state.blkIndent:
            break
        closed = not state.is_code_block(end) and levels.closed_by(text)
        end += 1
    token = state.push("fence", "code", 0)
    token.info, token.markup, token.map = found[3], found[2], [line, end]
    inner = end - 1 if closed else end
    token.content = state.getLines(line + 1, inner, state.sCount[line], True)
    state.line = end
    return True


def _text(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _is_markdown(info: str) -> bool:
    return info.lower().split(maxsplit=1)[:1] in (["markdown"], ["md"])
