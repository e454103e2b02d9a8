"""What can be done with an answer beyond its buttons, as a menu."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QMimeData
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.common import isolated
from app.widgets.markdown import rich


def answer_menu(
    parent: QWidget, turn: Turn, chat: Chat, edit_question: Callable[[], object]
) -> QMenu:
    """The menu of an answer. Going on is offered for the last one only, and if it ended early."""
    menu = QMenu(parent)
    menu.setAccessibleName(_tr("More for this answer"))

    def add(text: str, action: Callable[[], object], enabled: bool = True) -> QAction:
        made = menu.addAction(isolated(text))
        made.triggered.connect(lambda: action())
        made.setEnabled(enabled)
        return made

    idle = chat.can_send
    add(_tr("Copy as Markdown"), lambda: copy_markdown(turn.text), bool(turn.text))
    add(_tr("Copy as rich text"), lambda: copy_rich(turn.text), bool(turn.text))
    menu.addSeparator()
    add(_tr("Regenerate"), lambda: chat.regenerate(turn.id), idle)
    same = add(_tr("Same again"), lambda: chat.regenerate(turn.id, same=True), idle)
    same.setToolTip(_tr("With the same seed, {seed}").format(seed=turn.usage.seed))
    menu.setToolTipsVisible(True)
    if turn.ended_early and chat.turns and chat.turns[-1].id == turn.id:
        add(_tr("Continue"), lambda: chat.resume(turn.id), idle)
    menu.addSeparator()
    add(_tr("Edit the question"), edit_question)
    return menu


def copy_markdown(text: str) -> None:
    """The source as plain text into the clipboard."""
    QGuiApplication.clipboard().setText(text)


def copy_rich(text: str) -> None:
    """The source with its headings, lists and tables as what programs for text understand."""
    data = QMimeData()
    data.setText(text)
    data.setHtml(rich(text))
    QGuiApplication.clipboard().setMimeData(data)


def _tr(text: str) -> str:
    return QCoreApplication.translate("answer", text)
