"""The window's actions and their keys, as one table.

Knows what an action is called and by which keys; what it does is handed in. The sheet on F1 lists
this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

Handler = Callable[[], object]


@dataclass(frozen=True)
class Key:
    """What `keys` do: a name for people, and the heading it stands under."""

    group: str
    name: str
    keys: str


@dataclass(frozen=True)
class Entry(Key):
    """One action: what it is called in code, and what it does."""

    key: str
    run: Handler


def table(handlers: Mapping[str, Handler]) -> tuple[Entry, ...]:
    """All actions of the window; `handlers` has one for each key. Raises KeyError where one
    lacks or is of no action."""
    rows = _rows()
    unknown = set(handlers).difference(key for key, *_ in rows)
    if unknown:
        raise KeyError(*sorted(unknown))
    return tuple(Entry(group, name, keys, key, handlers[key]) for key, group, name, keys in rows)


def _rows() -> tuple[tuple[str, str, str, str], ...]:
    chats, answer, window = _tr("Chats"), _tr("Answer"), _tr("Window")
    # Keys are named one by one: offscreen, StandardKey has none for some of them.
    return (
        ("new_chat", chats, _tr("New chat"), "Ctrl+N"),
        ("search_chats", chats, _tr("Search chats"), "Ctrl+K"),
        ("find", chats, _tr("Find in this chat"), "Ctrl+F"),
        ("rename", chats, _tr("Rename this chat"), "F2"),
        ("stop", answer, _tr("Stop"), "Esc"),
        ("regenerate", answer, _tr("Answer anew"), "Ctrl+R"),
        ("copy_answer", answer, _tr("Copy the last answer"), "Ctrl+Shift+C"),
        ("choose_model", window, _tr("Choose a model"), "Ctrl+L"),
        ("get_models", window, _tr("Get models"), "Ctrl+G"),
        ("toggle_sidebar", window, _tr("Show or hide the sidebar"), "Ctrl+B"),
        ("settings", window, _tr("Settings"), "Ctrl+,"),
        ("shortcuts", window, _tr("Keyboard shortcuts"), "F1"),
        ("quit", window, _tr("Quit"), "Ctrl+Q"),
    )


def writing_keys() -> tuple[Key, ...]:
    """The keys of the composer, which are no shortcuts of the window."""
    writing = _tr("Writing")
    return (
        Key(writing, _tr("Send"), "Return"),
        Key(writing, _tr("New line"), "Shift+Return"),
        Key(writing, _tr("Last question again, where nothing is written"), "Up"),
    )


def install(window: QWidget, entries: tuple[Entry, ...]) -> None:
    """Give the window its shortcuts."""
    for entry in entries:
        action = QAction(entry.name, window)
        action.setShortcut(QKeySequence(entry.keys))
        action.triggered.connect(lambda _=False, run=entry.run: run())
        window.addAction(action)


def _tr(text: str) -> str:
    return QCoreApplication.translate("actions", text)
