"""Colours for code: Pygments' tokens as the few tones of look.md. Knows no document."""

from collections.abc import Iterator
from typing import Any

# Highlighting is bounded: longer code is shown in one colour.
MAX_CHARACTERS = 50_000


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

    if not language or len(text) > MAX_CHARACTERS:
        yield text, "text"
        return
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        yield text, "text"
        return
    for kind, piece in lexer.get_tokens(text):
        yield piece, _tone(kind)


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
