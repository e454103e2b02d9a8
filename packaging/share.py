"""What a desktop wants to know of an installed program, laid out as below `/usr/share`: desktop
entry, icons, AppStream metadata, the type of GGUF files, man page."""

import datetime
import gzip
import os
import subprocess
from pathlib import Path

import icons

TOP = Path(__file__).parents[1]
LINUX = Path(__file__).parent / "linux"
ID = "local.slipstream.slipstream"  # AppStream's; no public domain is known
APP = "slipstream"  # the desktop entry's, which the window names as its own


def spread(share: Path, version: str) -> None:
    """Fill the folder `share` for that version."""
    values = {"@VERSION@": version, "@DATE@": date().isoformat()}
    places = {
        f"{APP}.desktop": share / "applications" / f"{APP}.desktop",
        f"{APP}.metainfo.xml": share / "metainfo" / f"{ID}.metainfo.xml",
        f"{APP}.xml": share / "mime" / "packages" / f"{APP}.xml",
    }
    for name, path in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_filled(name, values), encoding="utf-8")
    pack(_filled(f"{APP}.1", values), share / "man" / "man1" / f"{APP}.1.gz")
    icons.spread(share / "icons" / "hicolor")


def pack(text: str, path: Path) -> None:
    """Leave `text` at `path` as `gzip -9n` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def epoch() -> int:
    """The time that everything in the packages bears: SOURCE_DATE_EPOCH, else the commit's."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return int(told)
    asked = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(asked, cwd=TOP, capture_output=True, text=True, check=True).stdout)


def date() -> datetime.date:
    """The day of that time."""
    return datetime.datetime.fromtimestamp(epoch(), datetime.UTC).date()


def _filled(name: str, values: dict[str, str]) -> str:
    text = (LINUX / name).read_text(encoding="utf-8")
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
