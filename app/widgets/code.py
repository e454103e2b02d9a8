"""Colours for code: Pygments' tokens as the few tones of look.md. Knows no document."""

import time
from collections.abc import Iterator
from typing import Any

# Highlighting is bounded: what is beyond these is shown in one colour. The clock is looked at
# between two tokens only, and some lexers take long for one token of an endless line.
MAX_CHARACTERS = 20_000
MAX_LINE = 2_000
MAX_SECONDS = 0.05


def title_of(language: str) -> str:
    """What stands over a code card: "Python" for "py"; the word itself where it is unknown."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return str(get_lexer_by_name(language).name) if language else ""
    except ClassNotFound:
        return language[:40]


def tones(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Pieces of `text` in order, each with the name of its colour."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if not language or not _fit_for_lexing(text):
        yield text, "text"
        return
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        yield text, "text"
        return
    done, end = 0, time.monotonic() + MAX_SECONDS
    for kind, piece in lexer.get_tokens(text):
        yield piece, _tone(kind)
        done += len(piece)
        if time.monotonic() > end:
            yield text[done:], "text"
            return


def _fit_for_lexing(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and max(map(len, text.split("\n"))) <= MAX_LINE


def _tone(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, String

    for family, tone in (
        (Comment, "code_comment"),
        (String.Doc, "code_comment"),
        (Keyword.Type, "code_name"),
        (Keyword, "code_keyword"),
        (String, "code_string"),
        (Number, "code_number"),
        (Name.Function, "code_name"),
        (Name.Class, "code_name"),
        (Name.Builtin, "code_name"),
        (Name.Exception, "code_name"),
        (Name.Tag, "code_keyword"),
    ):
        if kind in family:
            return tone
    return "text"
