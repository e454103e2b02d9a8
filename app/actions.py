"""The window's actions and their keys, as one table.

Knows which method of a view model an action calls; knows no widget's inside.
"""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget


@dataclass(frozen=True)
class Entry:
    """One action: a name for people, its keys, what it does."""

    name: str
    keys: str
    run: Callable[[], object]


def table(
    *,
    new_chat: Callable[[], object],
    stop: Callable[[], object],
    toggle_sidebar: Callable[[], object],
    get_models: Callable[[], object],
    copy_answer: Callable[[], object],
    quit_: Callable[[], object],
) -> tuple[Entry, ...]:
    """All actions of the window."""
    # Keys are named one by one: offscreen, StandardKey has none for some of them.
    return (
        Entry(_tr("New chat"), "Ctrl+N", new_chat),
        Entry(_tr("Stop"), "Esc", stop),
        Entry(_tr("Show or hide the sidebar"), "Ctrl+B", toggle_sidebar),
        Entry(_tr("Get models"), "Ctrl+G", get_models),
        Entry(_tr("Copy the last answer"), "Ctrl+Shift+C", copy_answer),
        Entry(_tr("Quit"), "Ctrl+Q", quit_),
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
