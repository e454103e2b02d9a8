"""Refreshes the German texts: python -m tests.i18n

Finds all texts of the app that people read, adds new ones to resources/i18n/slipstream_de.ts as
unfinished, drops those that are gone, and compiles the file that the program reads. What the
engine says stands in reasons_de.json and is written by hand. Knows where texts are written, not
what they mean; `tests/app/test_language.py` tells what is missing.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import PySide6

from app import settings

TOP = Path(__file__).parents[1]
FOLDER = TOP / "resources/i18n"
TS, QM = FOLDER / "slipstream_de.ts", FOLDER / "slipstream_de.qm"
HELPER = re.compile(r'def _tr\(.*?translate\("(\w+)", text\)', re.DOTALL)


def tool(name: str) -> Path | None:
    """A program of Qt's, None where it is not installed."""
    found = Path(PySide6.__file__).with_name(name)
    return found if found.is_file() else None


def update(ts: Path) -> None:
    """Bring `ts` up to the sources, keeping what is translated. Needs `lupdate`."""
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder, "table.py")]
        copies[0].write_text(listed(settings.texts()), encoding="utf-8")
        for path in sorted((TOP / "app").rglob("*.py")):
            copies.append(Path(folder, path.relative_to(TOP)))
            copies[-1].parent.mkdir(parents=True, exist_ok=True)
            copies[-1].write_text(plain(path.read_text(encoding="utf-8")), encoding="utf-8")
        _run("lupdate", *map(str, copies), "-locations", "none", "-no-obsolete",
             "-disable-heuristic", "similartext", "-disable-heuristic", "sametext",
             "-source-language", "en", "-target-language", "de", "-ts", str(ts))  # fmt: skip


def plain(source: str) -> str:
    """A module's source with its `_tr("…")` written out, which lupdate knows no context of."""
    helper = HELPER.search(source)
    if helper is None:
        return source
    calls = source[: helper.start()], source[helper.end() :]
    written = f'QCoreApplication.translate("{helper[1]}", '
    return "".join(re.sub(r"\b_tr\(", written, part) for part in calls)


def listed(texts: Iterable[str]) -> str:
    """Texts that stand in no call, as lupdate finds them."""
    return "\n".join(f'QCoreApplication.translate("settings", {text!r})' for text in texts)


def compile_into(ts: Path, qm: Path) -> None:
    """The file that the program reads. Needs `lrelease`."""
    _run("lrelease", "-silent", str(ts), "-qm", str(qm))


def _run(name: str, *arguments: str) -> None:
    program = tool(name)
    if program is None:
        raise FileNotFoundError(name)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def main() -> int:
    """Update and compile; how much is to be translated yet."""
    update(TS)
    compile_into(TS, QM)
    unfinished = TS.read_text(encoding="utf-8").count('type="unfinished"')
    print(f"{unfinished} texts are unfinished in {TS}")
    return 1 if unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
