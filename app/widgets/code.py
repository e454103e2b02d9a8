"""Code: its colours as the few tones of look.md, its title, and what in it cannot be seen.

Knows Pygments; no document and no widget.
"""

import re
import time
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

# Highlighting is bounded: what is beyond these is shown in one colour. The clock is looked at
# between two tokens only, and some lexers take long for one token of an endless line.
MAX_CHARACTERS = 20_000
MAX_LINE = 2_000
MAX_SECONDS = 0.25  # of lexing, pauses not counted

# Blanks without width, marks of direction, tags. What joins two letters or chooses the shape of
# one is let pass where it does: behind, and the joiners also before, what is not ASCII.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f])[\u200c\u200d\ufe0e\ufe0f]|[\u200c\u200d](?![^\x00-\x7f])"
)
# What stands in a text for its control characters: most fonts draw three letters in a speck.
_LETTERS = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB"
    " CAN EM SUB ESC FS GS RS US SP DEL"
)
PICTURES = {chr(0x2400 + n): f"⟨{letters}⟩" for n, letters in enumerate(_LETTERS.split())}
_PICTURE = re.compile("[\u2400-\u2421]")
_SIGNED = re.compile(f"{_UNSEEN.pattern}|{_PICTURE.pattern}")


# In which answers are mostly written. A language takes up to 65 ms to be loaded.
USUAL = ("python", "javascript", "typescript", "bash", "json", "html", "css", "sql", "c++", "java")


def warm() -> None:
    """Load the usual languages; called off the GUI thread, so that no answer waits for one."""
    for language in USUAL:
        _lexer(language)


@lru_cache(maxsize=500)
def title_of(language: str) -> str:
    """What stands over a code card: "Python" for "py"; the word itself where it is unknown."""
    lexer = _lexer(language)
    return str(lexer.name) if lexer is not None else language[:40]


def tones(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Pieces of `text` in order, each with the name of its colour."""
    lexer = _lexer(language) if _fit_for_lexing(text) else None
    if lexer is None:
        yield text, "text"
        return
    done, left = 0, MAX_SECONDS
    resumed = time.monotonic()
    for kind, piece in lexer.get_tokens(text):
        left -= time.monotonic() - resumed
        yield piece, _tone(kind)
        resumed = time.monotonic()
        done += len(piece)
        if left < 0:
            yield text[done:], "text"
            return


def lines_of_tones(text: str, language: str) -> Iterator[list[tuple[int, int, str]]]:
    """Line by line where a colour begins, how long it is (in UTF-16 units), and which."""
    line: list[tuple[int, int, str]] = []
    at = 0
    for piece, tone in tones(text, language):
        for number, part in enumerate(piece.split("\n")):
            if number:
                yield line
                line, at = [], 0
            room = len(part.encode("utf-16-le", "surrogatepass")) // 2
            if part and tone != "text":
                line.append((at, room, tone))
            at += room
    yield line


def unseen(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of `text`, each with the sign to show for it: "" where it can be seen as it is."""
    return _signs(text, _SIGNED)


def pictures(text: str) -> Iterator[tuple[str, str]]:
    """The same where characters without a look of their own have a meaning: in prose."""
    return _signs(text, _PICTURE)


def _signs(text: str, signed: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    done = 0
    for found in () if text.isascii() else signed.finditer(text):
        if found.start() > done:
            yield text[done : found.start()], ""
        sign = found.group()
        yield sign, PICTURES.get(sign) or f"⟨U+{ord(sign):04X}⟩"
        done = found.end()
    if done < len(text):
        yield text[done:], ""


def count_unseen(text: str) -> int:
    """How many characters of `text` cannot be seen or turn its direction."""
    return len(_UNSEEN.findall(text)) if not text.isascii() else 0


def name_of(character: str) -> str:
    """What Unicode calls a character."""
    return unicodedata.name(character, f"U+{ord(character):04X}").capitalize()


@lru_cache(maxsize=500)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def _fit_for_lexing(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and max(map(len, text.split("\n"))) <= MAX_LINE


@lru_cache(maxsize=1_000)
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
