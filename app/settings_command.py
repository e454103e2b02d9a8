"""The terminal command `slipstream settings`: what the settings are, one of them, or another value.

Made from the table of `app.settings`. Knows no Qt.
"""

import argparse

from app.setting import Entry
from app.settings import NAMED, TABLE, Settings, changed, load, save


def add_arguments(command: argparse.ArgumentParser) -> None:
    """NAME and VALUE."""
    command.add_argument("name", nargs="?", metavar="NAME", help="show this one alone")
    command.add_argument("value", nargs="?", metavar="VALUE", help="and give it another value")
    command.epilog = (
        "A window that is open keeps its own settings and writes them; close it before a change."
    )


def carry_out(arguments: argparse.Namespace) -> int:
    """Print or change; the exit code. Raises EngineError for a name or value that is none, and
    OSError where the file cannot be written."""
    from app import paths

    folder = paths.config_folder()
    kept = load(folder)
    if arguments.name is None:
        print("\n".join(_line(entry, kept) for entry in TABLE))
        return 0
    entry = _named(arguments.name)
    if arguments.value is None:
        print(entry.word(getattr(kept, entry.name)))
        return 0
    save(_with(kept, entry, arguments.value), paths.ensure(folder))
    return 0


def _line(entry: Entry, kept: Settings) -> str:
    value = entry.word(getattr(kept, entry.name))
    default = entry.word(entry.default)
    about = f"{entry.label}: {entry.help}" if entry.help else entry.label
    return f"{entry.name} = {value}\n    {about}. One of {entry.allowed}; at first {default}."


def _named(name: str) -> Entry:
    from engine.errors import EngineError

    entry = NAMED.get(name.replace("-", "_"))
    if entry is None:
        raise EngineError(
            "no_setting",
            "There is no setting “{name}”. There are: {names}.",
            name=name,
            names=", ".join(NAMED),
        )
    return entry


def _with(kept: Settings, entry: Entry, word: str) -> Settings:
    from engine.errors import EngineError

    try:
        return changed(kept, entry.name, entry.parse(word))
    except ValueError:
        raise EngineError(
            "bad_setting_value",
            "“{value}” is no value of {name}, which takes {allowed}.",
            value=word,
            name=entry.name,
            allowed=entry.allowed,
        ) from None
