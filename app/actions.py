"""The window's actions and their keys, as one table.

Knows what an action is called and by which keys; what it does is handed in. The sheet on F1 lists
this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt
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
    rows = [row for row in _rows() if row[0]]
    unknown = set(handlers).difference(key for key, *_ in rows)
    if unknown:
        raise KeyError(*sorted(unknown))
    return tuple(Entry(group, name, keys, key, handlers[key]) for key, group, name, keys in rows)


def listed() -> tuple[Key, ...]:
    """All that keys do, also those that only a part of the window takes, in the sheet's order."""
    return tuple(Key(group, name, keys) for _, group, name, keys in _rows())


def _rows() -> tuple[tuple[str, str, str, str], ...]:
    """Those without a key of their own are taken by the part that has the focus."""
    chats, of_list, find = _tr("Chats"), _tr("In the list of chats"), _tr("Find in this chat")
    reading, writing, editing = _tr("Reading"), _tr("Writing"), _tr("Editing")
    answer, sampling, window = _tr("Answer"), _tr("Sampling"), _tr("Window")
    # Keys are named one by one: offscreen, StandardKey has none for some of them.
    return (
        ("new_chat", chats, _tr("New chat"), "Ctrl+N"),
        ("search_chats", chats, _tr("Search chats"), "Ctrl+K"),
        ("rename", chats, _tr("Rename this chat"), "F2"),
        ("", of_list, _tr("Go through the list"), "Up, Down"),
        ("", of_list, _tr("Open the chat"), "Return"),
        ("", of_list, _tr("Rename the chat"), "F2"),
        ("", of_list, _tr("Delete the chat"), "Del"),
        ("", of_list, _tr("Have a deleted chat back"), "Ctrl+Z"),
        ("find", find, _tr("Find in this chat"), "Ctrl+F"),
        ("", find, _tr("Next place"), "Return"),
        ("", find, _tr("Previous place"), "Shift+Return"),
        ("", find, _tr("Close the search"), "Esc"),
        ("", reading, _tr("Scroll"), "Up, Down"),
        ("", reading, _tr("Scroll by a page"), "PgUp, PgDown"),
        ("", reading, _tr("To the beginning or the end"), "Home, End"),
        ("", writing, _tr("Send"), "Return"),
        ("", writing, _tr("New line"), "Shift+Return"),
        ("", writing, _tr("Last question again, where nothing is written"), "Up"),
        ("", writing, _tr("Paste as text, not as an attachment"), "Ctrl+Shift+V"),
        ("", editing, _tr("Save a message"), "Ctrl+Return"),
        ("", editing, _tr("Save a title"), "Return"),
        ("", editing, _tr("Leave it as it was"), "Esc"),
        ("stop", answer, _tr("Stop"), "Esc"),
        ("regenerate", answer, _tr("Answer anew"), "Ctrl+R"),
        ("copy_answer", answer, _tr("Copy the last answer"), "Ctrl+Shift+C"),
        ("", sampling, _tr("A number one step up or down"), "Up, Down"),
        ("", sampling, _tr("Ten steps up or down"), "PgUp, PgDown"),
        ("choose_model", window, _tr("Choose a model"), "Ctrl+L"),
        ("get_models", window, _tr("Get models"), "Ctrl+G"),
        ("compare", window, _tr("Compare drafts"), "Ctrl+D"),
        ("toggle_sidebar", window, _tr("Show or hide the sidebar"), "Ctrl+B"),
        ("settings", window, _tr("Settings"), "Ctrl+,"),
        ("shortcuts", window, _tr("Keyboard shortcuts"), "F1"),
        ("quit", window, _tr("Quit"), "Ctrl+Q"),
    )


def install(window: QWidget, entries: tuple[Entry, ...]) -> None:
    """Give the window its shortcuts."""
    for entry in entries:
        action = QAction(entry.name, window)
        action.setShortcut(QKeySequence(entry.keys))
        if entry.key == "shortcuts":
            # in dialogs, too
            action.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
        action.triggered.connect(lambda _=False, run=entry.run: run())
        window.addAction(action)


def _tr(text: str) -> str:
    return QCoreApplication.translate("actions", text)
