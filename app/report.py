"""What goes into a bug report: versions, the system, what failed, the last lines of the log.

Knows what must not go into it: chat text, tokens, the name of the user. Knows no Qt.
"""

import os
import platform
import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from app import paths

PACKAGES = ("slipstream", "PySide6-Essentials", "torch", "transformers", "tokenizers")
LOG = "slipstream.log"
LINES = 40
TAIL = 64_000  # bytes of the log that are looked at
LONGEST = 300  # characters of a line
# So many characters in a row that also stand in a chat are taken from it; of shorter texts, all.
RUN = 16
SHORTEST = 4
# Behind "token" alone, prose is told from one by its short words; app.hub_token is a module.
TOKEN = re.compile(
    r"hf_\w+|(?i:bearer|basic)[ =:]+\S+|//[^/@\s]*@"
    r"|(?<!app\.hub_)(?i:token)(?: *[=:][ =:]*\S+| +\S{8,})"
)
LEFT_OUT = "[left out]"
BEGINNING = re.compile(r"\d{4}-\d\d-\d\d \d\d:")  # of a record in the log
PLACE = re.compile(r'  File "[^"]+", line \d+')


def report(failed: Iterable[str], private: Iterable[str]) -> str:
    """The report on what has `failed`. What holds something of the texts in `private` is left
    out, in a traceback all but the places."""
    told, records = list(failed), _log()
    runs = _shared([*told, *records], private)
    said = [_clean(part, runs) for part in told]
    log = [_clean(record, runs) for record in records]
    parts = [_versions(), "Failed:", *said, "", "Log:", *(log or ["empty"])]
    return "\n".join(parts) + "\n"


def of_crash(trace: str) -> str:
    """The report on a crash, of which `trace` has places in the code and no texts."""
    lines = map(_without_secrets, trace.splitlines())
    return "\n".join([_versions(), "Ended by:", *lines]) + "\n"


def _versions() -> str:
    lines = [f"{platform.platform()}, Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name}: not installed")
    return "\n".join(lines) + "\n"


def _log() -> list[str]:
    """The last records of the log file; none where it cannot be read."""
    try:
        with (paths.log_folder() / LOG).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()[-LINES:]
    except OSError:
        return []
    records: list[str] = []
    for line in lines:
        if records and not BEGINNING.match(line):
            records[-1] += f"\n{line}"
        else:
            records.append(line)
    return records


def _clean(text: str, runs: set[str]) -> str:
    """A text of one line or several without what is nobody else's business."""
    lines = text.splitlines()
    if _is_private(text, runs):
        lines = [LEFT_OUT, *(line for line in lines if PLACE.match(line))]
    return "\n".join(map(_without_secrets, lines))


def _is_private(text: str, runs: set[str]) -> bool:
    plain = _squeezed(text)
    shorts = (run for run in runs if len(run) < RUN)
    return any(run in runs for run in _runs(plain)) or any(run in plain for run in shorts)


def _without_secrets(line: str) -> str:
    secret = os.environ.get("HF_TOKEN")
    if secret:
        line = line.replace(secret, LEFT_OUT)
    line = TOKEN.sub(LEFT_OUT, line)
    home = Path.home()
    for spelled in (str, _escaped):
        line = line.replace(spelled(str(home)), "~")
        if home.name:  # other folders bear it too, such as those of removable media
            name = rf"(?<=[/\\]){re.escape(spelled(home.name))}(?![^/\\\s\"':])"
            line = re.sub(name, LEFT_OUT, line)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"


def _escaped(text: str) -> str:
    """As faulthandler writes it: in ASCII."""
    return text.encode("ascii", "backslashreplace").decode()


def _shared(told: Iterable[str], private: Iterable[str]) -> set[str]:
    """The runs of RUN characters of `told` that also stand in a private text, and the private
    texts that are shorter than that. What is told is short; all that was ever written is not."""
    wanted = {run for text in map(_squeezed, told) for run in _runs(text)}
    runs: set[str] = set()
    for text in map(_squeezed, private):
        runs.update(run for run in _runs(text) if run in wanted)
        if SHORTEST <= len(text) < RUN:
            runs.add(text)
    return runs


def _runs(text: str) -> Iterator[str]:
    return (text[i : i + RUN] for i in range(len(text) - RUN + 1))


def _squeezed(text: str) -> str:
    """As it may stand in a log: written with escapes or not, in one line or several."""
    return re.sub(r"(\\[nrt]|[\s\W])+", " ", text).strip().casefold()
