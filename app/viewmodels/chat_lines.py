"""Lines of the chat list: chats grouped by day, or the places where something was found.

Knows records and hits; not where they come from, nor how a line is drawn.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QLocale

from app.chats import exchange
from app.chats.conversation import ChatRecord, Hit

BEFORE = 16  # characters shown before what was found, so that it is not cut off
LONGEST_TITLE = exchange.TITLE_LENGTH  # characters
LONGEST = 300  # characters of a line with what was found
NAME_LENGTH = 60  # characters of a file's name
WEEK = 7  # days
WORD = re.compile(r"\w+")
# Not allowed in a file's name somewhere, or of a special meaning to a shell or a web page.
UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+')
JOINERS = "\u200c\u200d"  # unseen, but words and emoji are spelt with them
UNSEEN = ("Cc", "Cf", "Cs", "Co")
Span = tuple[int, int]  # from, to; in characters


@dataclass(frozen=True)
class Line:
    """A chat in the list; without an id, the name of a group.

    In results `around` is a line of text with what was searched for, in the message `entry`;
    the marks say where the words are.
    """

    id: str
    title: str
    current: bool = False
    pinned: bool = False
    around: str = ""
    entry: str = ""
    title_marks: tuple[Span, ...] = ()
    marks: tuple[Span, ...] = ()


def day_of(seconds: float) -> date:
    """The local day of a time in seconds since 1970; 1970-01-01 for what no calendar has."""
    try:
        return date.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):
        return date(1970, 1, 1)


def grouped(records: Iterable[ChatRecord], now: float, current: str) -> tuple[Line, ...]:
    """Pinned, Today, Yesterday, Last 7 days, then months; inside a group in the order of
    `records`. A time that is still to come, as after a clock was set back, is today."""
    today = day_of(now)
    groups: dict[tuple[int, int], list[ChatRecord]] = {}
    for record in records:
        key = (-1, 0) if record.pinned else _group(day_of(record.changed), today)
        groups.setdefault(key, []).append(record)
    lines: list[Line] = []
    for key in sorted(groups):
        lines.append(Line("", _name(key, today)))
        lines += (
            Line(record.id, record.title, record.id == current, record.pinned)
            for record in groups[key]
        )
    return tuple(lines)


def found(
    hits: Iterable[Hit], text: str, records: Mapping[str, ChatRecord], current: str
) -> tuple[Line, ...]:
    """One line for each chat among `hits` that is in `records`, the best first."""
    lines: dict[str, Line] = {}
    for hit in hits:
        record = records.get(hit.chat)
        if record is None or (hit.chat in lines and (lines[hit.chat].around or not hit.around)):
            continue
        around, spans = _excerpt(hit.around, text) if hit.entry else ("", ())
        lines[hit.chat] = Line(
            record.id,
            record.title,
            record.id == current,
            record.pinned,
            around,
            (hit.entry or "") if around else "",
            marks(record.title, text),
            spans,
        )
    return tuple(lines.values())


def marks(text: str, wanted: str) -> tuple[Span, ...]:
    """Where the words of `wanted` stand in `text`: at the beginning of a word where they do,
    else anywhere; neither case nor accents matter."""
    plain, places = _plain(text)
    spans: list[Span] = []
    for word in {_plain(word)[0] for word in WORD.findall(wanted)} - {""}:
        quoted = re.escape(word)
        found = list(re.finditer(rf"\b{quoted}", plain)) or list(re.finditer(quoted, plain))
        spans += ((places[at.start()], places[at.end() - 1] + 1) for at in found)
    return tuple(_merged(sorted(spans)))


def clean(title: str) -> str:
    """A title as one line of a bounded length, without what cannot be seen."""
    seen = (" " if c.isspace() else c for c in title)
    kept = (c for c in seen if c in JOINERS or unicodedata.category(c) not in UNSEEN)
    return " ".join("".join(kept).split())[:LONGEST_TITLE].strip()


def file_name(title: str, ending: str) -> str:
    """A name for a file with the chat `title`, fit for every system."""
    stem = " ".join(UNFIT.sub(" ", title).split()).strip(" .")[:NAME_LENGTH].strip(" .")
    return f"{stem or _tr('Chat')}.{ending}"


def _group(day: date, today: date) -> tuple[int, int]:
    """A key that sorts groups as they are shown."""
    age = (today - day).days
    if age <= 0:
        return 0, 0
    if age == 1:
        return 1, 0
    if age <= WEEK:
        return 2, 0
    return 3, -(12 * day.year + day.month - 1)


def _name(key: tuple[int, int], today: date) -> str:
    kind, months = key
    names = {-1: _tr("Pinned"), 0: _tr("Today"), 1: _tr("Yesterday"), 2: _tr("Last 7 days")}
    if kind in names:
        return names[kind]
    year, month = divmod(-months, 12)
    name = QLocale().standaloneMonthName(month + 1)
    return name if year == today.year else _tr("{month} {year}").format(month=name, year=year)


def _excerpt(around: str, wanted: str) -> tuple[str, tuple[Span, ...]]:
    """A line that begins shortly before the first word that was found, and its marks."""
    line = " ".join(around[:LONGEST].split())
    spans = marks(line, wanted)
    first = spans[0][0] if spans else 0
    if first <= BEFORE:
        return line, spans
    space = line.rfind(" ", 0, first - BEFORE // 2)
    start = max(space + 1, first - BEFORE)
    lead = "… "
    moved = len(lead) - start
    return lead + line[start:], tuple((left + moved, right + moved) for left, right in spans)


def _plain(text: str) -> tuple[str, list[int]]:
    """`text` without case and accents, and of each of its characters the place in `text`."""
    if text.isascii():
        return text.lower(), list(range(len(text)))
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for part in _bare(character):
            characters.append(part)
            places.append(place)
    return "".join(characters), places


@lru_cache(maxsize=4096)
def _bare(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


def _merged(spans: Sequence[Span]) -> Iterable[Span]:
    """Spans in order, those that overlap as one."""
    last: Span | None = None
    for span in spans:
        if last is None:
            last = span
        elif span[0] <= last[1]:
            last = last[0], max(last[1], span[1])
        else:
            yield last
            last = span
    if last is not None:
        yield last


def _tr(text: str) -> str:
    return QCoreApplication.translate("chats", text)
