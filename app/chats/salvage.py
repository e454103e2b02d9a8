"""What can still be read of a damaged SQLite file, page by page, without SQLite's help.

The tables' names and roots may be what is lost, so every page that holds rows of a table is read
as it lies; what the rows mean is for the store to recognise. Written after "Database File Format"
(sqlite.org/fileformat2.html): leaf pages of tables (section 1.6), records (2.1), the log (4).
Assumes what the store writes: pages of 4096 bytes, none of them reserved, text in UTF-8.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PAGE = 4096
LEAF = 0x0D
LOG_HEADER, FRAME_HEADER = 32, 24
LOG_MAGIC = 0x377F0682  # its last bit says that the sums are big-endian
MOST_COLUMNS = 40
LONGEST = 2**28  # bytes of one row

Value = int | float | str | bytes | None


@dataclass(frozen=True)
class Row:
    """A row of some table; `values` as far as they could be read."""

    rowid: int
    values: list[Value]


def rows(path: Path) -> Iterator[Row]:
    """Every row found in the file at `path` and its log. Raises OSError if it cannot be opened."""
    with path.open("rb") as file:
        pages = _Pages(file, Path(f"{path}-wal"))
        for number in range(1, pages.count + 1):
            yield from _leaf(pages, number)


class _Pages:
    """The pages of a file, those that its log holds anew among them; a bad sector is blank."""

    def __init__(self, file: IO[bytes], log: Path) -> None:
        self._file = file
        self._newer = _committed(log)
        file.seek(0, 2)
        self.count = max(-(-file.tell() // PAGE), *self._newer, 0)

    def page(self, number: int) -> bytes:
        """Page `number`, counted from 1."""
        if number in self._newer:
            return self._newer[number]
        try:
            self._file.seek((number - 1) * PAGE)
            return self._file.read(PAGE).ljust(PAGE, b"\0")
        except OSError:
            return bytes(PAGE)


def _committed(log: Path) -> dict[int, bytes]:
    """The newest committed version of each page that the log holds."""
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    try:
        with log.open("rb") as file:
            header = file.read(LOG_HEADER)
            if len(header) < LOG_HEADER or header[:4][:3] != LOG_MAGIC.to_bytes(4, "big")[:3]:
                return {}
            order = ">" if header[3] & 1 else "<"
            sums = _sums(header[:24], (0, 0), order)
            while len(frame := file.read(FRAME_HEADER + PAGE)) == FRAME_HEADER + PAGE:
                number, size, *_ = struct.unpack(">6I", frame[:FRAME_HEADER])
                sums = _sums(frame[FRAME_HEADER:], _sums(frame[:8], sums, order), order)
                if frame[8:16] != header[16:24] or struct.pack(">2I", *sums) != frame[16:24]:
                    break
                pending[number] = frame[FRAME_HEADER:]
                if size:  # the last frame of a transaction
                    committed |= pending
                    pending = {}
    except OSError:
        pass
    return committed


def _sums(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _leaf(pages: _Pages, number: int) -> Iterator[Row]:
    """The rows of a page, where it is a leaf of a table."""
    page = pages.page(number)
    start = 100 if number == 1 else 0
    if page[start] != LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for index in range(min(count, PAGE // 4)):
        place = start + 8 + 2 * index
        cell = int.from_bytes(page[place : place + 2], "big")
        row = _cell(pages, page, cell) if place < cell < PAGE else None
        if row is not None:
            yield row


def _cell(pages: _Pages, page: bytes, start: int) -> Row | None:
    try:
        length, start = _varint(page, start)
        rowid, start = _varint(page, start)
    except IndexError:
        return None
    if not 0 < length < LONGEST:
        return None
    here = _local(length)
    payload = bytearray(page[start : start + here])
    if here < length:
        _follow(
            pages, int.from_bytes(page[start + here : start + here + 4], "big"), length, payload
        )
    values = _record(bytes(payload[:length]))
    return None if values is None else Row(rowid, values)


def _local(length: int) -> int:
    """How many bytes of a payload lie on the leaf itself (section 1.6)."""
    if length <= PAGE - 35:
        return length
    least = (PAGE - 12) * 32 // 255 - 23
    wanted = least + (length - least) % (PAGE - 4)
    return wanted if wanted <= PAGE - 35 else least


def _follow(pages: _Pages, number: int, length: int, payload: bytearray) -> None:
    """Add the pages that a long payload goes on in, as far as the chain is whole."""
    seen: set[int] = set()
    while len(payload) < length and 1 < number <= pages.count and number not in seen:
        seen.add(number)
        page = pages.page(number)
        number = int.from_bytes(page[:4], "big")
        payload += page[4:]


def _record(payload: bytes) -> list[Value] | None:
    """The columns of a record (section 2.1); those that are cut off are short or left out."""
    try:
        end, place = _varint(payload, 0)
        kinds: list[int] = []
        while place < end and len(kinds) <= MOST_COLUMNS:
            kind, place = _varint(payload, place)
            kinds.append(kind)
    except IndexError:
        return None
    if place != end:
        return None
    values: list[Value] = []
    for kind in kinds:
        size = _size(kind)
        values.append(_value(kind, payload[place : place + size]))
        place += size
    return values


def _size(kind: int) -> int:
    return (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind] if kind < 12 else (kind - 12) // 2


def _value(kind: int, data: bytes) -> Value:
    if kind >= 12:
        return data.decode("utf-8", "replace") if kind % 2 else data
    if kind in (8, 9):
        return kind - 8
    if kind == 0 or len(data) < _size(kind) or kind > 9:
        return None
    if kind == 7:
        number: float = struct.unpack(">d", data)[0]
        return number
    return int.from_bytes(data, "big", signed=True)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of up to nine bytes, seven bits in each, and where it ends. Raises IndexError."""
    number = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, place
    return number << 8 | data[place], place + 1
