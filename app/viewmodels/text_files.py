"""Files from outside as text that can go with a question, or why one cannot.

Knows bytes and encodings; no chat, no widget and no thread.
"""

import codecs
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication

from app.chats.conversation import Attachment
from app.viewmodels import words

MAX_BYTES = 2_000_000
MAX_NAME = 120  # characters
MOST_HIGH = 0.3  # of the bytes beyond ASCII in text of the older one-byte encodings

FEW = 8  # of them, in a text too short for a share

# What begins so is no text, though little in it may say so.
_HEADS = (
    b"%PDF-",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"PK\3\4",
    b"\x1f\x8b",
    b"Rar!\x1a",
    b"\x7fELF",
)

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))

Why = Literal["folder", "special", "large", "empty", "binary", "forbidden", "missing", "failed"]


@dataclass(frozen=True)
class Refusal:
    """A file that cannot be attached; `size` in bytes, `detail` what the system says."""

    name: str
    why: Why
    size: int = 0
    detail: str = ""


def read(path: Path) -> Attachment | Refusal:
    """The text of the file at `path`; at most 2 MB are read."""
    name = plain_name(path.name or str(path))
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            return Refusal(name, "folder")
        if not stat.S_ISREG(about.st_mode):  # reading a pipe or device might never end
            return Refusal(name, "special")
        if about.st_size > MAX_BYTES:
            return Refusal(name, "large", about.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Refusal(name, "missing")
    except PermissionError:
        return Refusal(name, "forbidden")
    except (OSError, ValueError) as error:
        return Refusal(name, "failed", detail=getattr(error, "strerror", None) or str(error))
    if len(data) > MAX_BYTES:  # it grew meanwhile, or says nothing of its size
        return Refusal(name, "large", len(data))
    text = decoded(data)
    if text is None:
        return Refusal(name, "binary", len(data))
    return Attachment(name, text) if text.strip() else Refusal(name, "empty")


def decoded(data: bytes) -> str | None:
    """`data` as text with \\n at the line ends; None where it is none."""
    if data.startswith(_HEADS):
        return None
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8" or not _looks_like_text(data):
            return None
        try:
            text = data.decode("cp1252")  # latin-1, with the quotes and dashes that Windows added
        except UnicodeDecodeError:
            return None
    if "\0" in text:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _looks_like_text(data: bytes) -> bool:
    high = len(data) - len(data.decode("ascii", "ignore"))
    return data.translate(None, _CONTROLS) == data and high <= max(MOST_HIGH * len(data), FEW)


def plain_name(name: str) -> str:
    """A file's name without what would break a line or turn its direction, and not endless."""
    kept = "".join("\ufffd" if unicodedata.category(c)[0] == "C" else c for c in name)
    if len(kept) <= MAX_NAME:
        return kept
    half = MAX_NAME // 2
    return f"{kept[:half]}…{kept[-half:]}"


def size_of(text: str) -> int:
    """Bytes that `text` takes in a file."""
    return len(text.encode("utf-8", "surrogatepass"))


def size(count: int) -> str:
    """Bytes of a small file: "812 bytes", "12 kB", "1.4 MB", "3.4 GB" (powers of ten)."""
    if count < 1000:
        return words.counted(count, _tr("{count} byte"), _tr("{count} bytes"))
    if count < 999_500:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def sentence(refusal: Refusal) -> str:
    """Why a file was not attached."""
    said = {
        "folder": _tr("“{name}” is a folder. Only text files can be attached."),
        "special": _tr("“{name}” is not an ordinary file."),
        "large": _tr("“{name}” has {size}; {most} is the most that can be attached."),
        "empty": _tr("“{name}” has no text in it."),
        "binary": _tr("“{name}” is not a text file. Only text can be attached."),
        "forbidden": _tr("“{name}” may not be read by this user."),
        "missing": _tr("“{name}” is no longer there."),
        "failed": _tr("“{name}” could not be read: {detail}"),
    }[refusal.why]
    return said.format(
        name=refusal.name,
        size=size(refusal.size),
        most=size(MAX_BYTES),
        detail=refusal.detail,
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("text_files", text)
