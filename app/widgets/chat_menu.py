"""Menus of one chat and of all, and the dialogs for their files."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QDir, QPoint, QStandardPaths, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.viewmodels.conversations import Conversations
from app.viewmodels.history import Form
from app.widgets.common import isolated

FORMS: tuple[Form, ...] = ("markdown", "json")


def chat_menu(
    parent: QWidget,
    conversations: Conversations,
    chat: str,
    rename: Callable[[], object],
    more: Sequence[tuple[str, Callable[[], object]]] = (),
) -> QMenu:
    """What can be done with a chat, and `more`; one that is not kept yet has only that."""
    record = conversations.record(chat)
    pinned = record is not None and record.pinned
    menu = _menu(parent)
    words = _tr("Unpin") if pinned else _tr("Pin")
    entries = [
        _add(menu, _tr("Rename"), rename),
        _add(menu, words, lambda: conversations.pin(chat, not pinned)),
    ]
    menu.addSeparator()
    for words, run in more:
        _add(menu, words, run)
    ways = (_tr("Export as Markdown…"), _tr("Export as JSON…"))
    for form, words in zip(FORMS, ways, strict=True):
        entries.append(_add(menu, words, partial(export, parent, conversations, chat, form)))
    menu.addSeparator()
    entries.append(_add(menu, _tr("Delete"), lambda: conversations.delete(chat)))
    for entry in entries:
        entry.setEnabled(record is not None)
    return menu


def list_menu(parent: QWidget, conversations: Conversations) -> QMenu:
    """What can be done with all chats."""
    menu = _menu(parent)
    _add(menu, _tr("Import chats…"), lambda: take_in(parent, conversations))
    ways = (_tr("Export all as Markdown…"), _tr("Export all as JSON…"))
    for form, words in zip(FORMS, ways, strict=True):
        entry = _add(menu, words, partial(export, parent, conversations, None, form))
        entry.setEnabled(not conversations.is_empty)
    return menu


def pop_up(menu: QMenu, corner: QPoint) -> None:
    """Show a menu at a place on the screen."""
    if menu.isRightToLeft():
        corner = QPoint(corner.x() - menu.sizeHint().width(), corner.y())
    menu.popup(corner)


def below(widget: QWidget, menu: QMenu) -> QPoint:
    """Where a menu opens under a button, its far edge in line with the button's."""
    width = menu.sizeHint().width()
    left = 0 if widget.isRightToLeft() else widget.width() - width
    if menu.isRightToLeft():
        left += width
    return widget.mapToGlobal(QPoint(left, widget.height() + 2))


def export(parent: QWidget, conversations: Conversations, chat: str | None, form: Form) -> None:
    """Ask where to, and write the chat, or all, there."""
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    name = conversations.file_name(chat, form)
    kinds = {"markdown": _tr("Markdown (*.md)"), "json": _tr("JSON (*.json)")}
    chosen, _ = QFileDialog.getSaveFileName(
        parent, _tr("Export"), QDir(folder).filePath(name), kinds[form]
    )
    if chosen:
        path = Path(chosen)
        path = path if path.suffix else path.with_suffix(Path(name).suffix)
        conversations.export(None if chat is None else [chat], path, form)


def take_in(parent: QWidget, conversations: Conversations) -> None:
    """Ask for a file and add its chats."""
    kinds = _tr("Chats (*.json *.md)")
    chosen, _ = QFileDialog.getOpenFileName(parent, _tr("Import chats"), "", kinds)
    if chosen:
        conversations.take_in(Path(chosen))


def _menu(parent: QWidget) -> QMenu:
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return menu


def _add(menu: QMenu, words: str, run: Callable[[], object]) -> QAction:
    entry = menu.addAction(isolated(words))
    entry.triggered.connect(lambda _=False: run())
    return entry


def _tr(text: str) -> str:
    return QCoreApplication.translate("chats", text)
