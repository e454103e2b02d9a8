"""The conversation as a column of turns that is followed at its end, and only there.

Decides which stretch of a chat is built; what the turns say is the view model's.
"""

import threading

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets import tab_order
from app.widgets.bubble import Bubble
from app.widgets.column import WIDTH, Column, Shown
from app.widgets.common import IconButton
from app.widgets.find_in_chat import FindInChat
from app.widgets.kept_scroll import MARGIN as SIDE
from app.widgets.kept_scroll import NEAR, Anchor, KeptScroll
from app.widgets.turn import AnswerTurn
from engine.api import Finish

COLUMN = WIDTH
MARGIN = SIDE
BUILT = 50  # messages that are built without being asked for
MOST = 120  # built at once; beyond them those far away are dropped again
BATCH = 2  # messages built in one go, between two looks at what the user does
AHEAD = 2  # pages on either side of what is seen that are to be built


class Transcript(KeptScroll):
    """Turns from top to bottom."""

    def __init__(self, chat: Chat) -> None:
        super().__init__(Column(chat))
        self._chat = chat
        self._shown_chat = chat.chat_id
        self._refocus = False  # the focus was in what was taken away
        self._turns = self.column.turns
        self._empty = self.column.empty
        self._filling = QTimer(self)
        self._filling.setSingleShot(True)
        self._filling.timeout.connect(self._fill)
        self.search = FindInChat(chat, self)
        self.jump = IconButton(self.tr("Jump to the end"), "arrow-down", size=34)
        self.jump.setObjectName("jump")
        self.jump.setParent(self)
        self.jump.hide()
        self.setAccessibleName(self.tr("Conversation"))
        self._connect()
        self.rebuild()

    def _connect(self) -> None:
        chat = self._chat
        chat.turn_added.connect(self.add_turn)
        chat.turn_grew.connect(self.update_turn)
        chat.turn_ended.connect(self.end_turn)
        chat.turn_removed.connect(self.remove_turn)
        chat.cleared.connect(self.rebuild)
        chat.opened.connect(self.rebuild)
        bind(chat, Chat.answering, self._show_jump)
        self.moved.connect(self._look_ahead)
        self.resettled.connect(self._show_jump)
        self.jump.clicked.connect(self.to_end)
        self.column.edit_asked.connect(self.edit_question)
        self.column.grown.connect(self.reveal)
        self.column.written.connect(self.reveal_caret)

    # What the chat tells

    def add_turn(self, turn: Turn) -> None:
        """A new turn at the end, which is then followed."""
        _in_gui_thread()
        self._shown_chat = self._chat.chat_id
        count, first = len(self._chat.turns), self.column.first
        if self.column.last < count - 1:
            first = count - BATCH
        elif count - first > BUILT + 2 * BATCH:
            first = count - BUILT
        self.following = True
        self.column.show_turns(max(first, 0), count)
        self._filling.start(0)
        if self._refocus:
            self._refocus = False
            self.focus_last_question()

    def update_turn(self, turn: Turn) -> None:
        """More of an answer."""
        _in_gui_thread()
        shown = self._turns.get(turn.id)
        if isinstance(shown, AnswerTurn):
            shown.update_turn()

    def end_turn(self, turn: Turn) -> None:
        """The end of an answer, said to those who do not see it."""
        _in_gui_thread()
        shown = self._turns.get(turn.id)
        if isinstance(shown, AnswerTurn):
            shown.update_turn()
            complete, early = self.tr("The answer is complete."), self.tr("The answer ended early.")
            said = complete if turn.finish is Finish.STOP else early
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(shown.body, said))
        self.search.finding.forget(turn.id)

    def remove_turn(self, turn: Turn) -> None:
        """A turn that is there no more, or whose place another version takes."""
        _in_gui_thread()
        shown = self._turns.get(turn.id)
        if shown is None:
            return
        self._refocus |= shown.isAncestorOf(QApplication.focusWidget() or self)
        count, first = len(self._chat.turns), self.column.first
        self.column.show_turns(first if first < count else max(count - BATCH, 0), count)

    def rebuild(self) -> None:
        """Another chat is shown from its end; another branch of this one from where it was."""
        _in_gui_thread()
        turns = self._chat.turns
        same = bool(turns and self._turns) and self._chat.chat_id == self._shown_chat
        self._shown_chat = self._chat.chat_id
        self.search.finding.forget()
        if same:
            self._branch()
        else:
            self.following = True
            self.column.show_turns(max(len(turns) - 2 * BATCH, 0), len(turns))
            self._cover()
        self._filling.start(0)

    def _branch(self) -> None:
        """Show another version of a message in the place of the one that was shown."""
        old, first = list(self._turns), self.column.first
        new = [turn.id for turn in self._chat.turns[first:]]
        pairs = enumerate(zip(old, new, strict=False))
        at = next((index for index, (before, now) in pairs if before != now), None)
        if at is None:
            self.column.show_turns(first, first + len(new))
            return
        gone = self._turns[old[at]]
        focused = _arrow_with_focus(gone)
        bottom = self.top_of(gone) + gone.height() - self.verticalScrollBar().value()
        self.column.show_turns(first, first + at + 2 * BATCH)
        self.keep(Anchor(new[at], bottom, bottom=True))
        versions = self._turns[new[at]].tools.versions
        if focused is not None and versions is not None:
            versions.focus(later=focused)

    # What is built

    def _fill(self) -> None:
        """Build more where what is seen comes near the edge of it, or where little is built."""
        count, first, last = len(self._chat.turns), self.column.first, self.column.last
        few = last - first < BUILT
        above, below = self._rooms()
        if first > 0 and (few or above):
            first = max(first - BATCH, 0)
            last = min(last, first + MOST)
        elif last < count and (few or below):
            last = min(last + BATCH, count)
            first = max(first, last - MOST)
        else:
            return
        self.column.show_turns(first, last)
        self.settle()
        self._filling.start(0)

    def _rooms(self) -> tuple[bool, bool]:
        """Whether what is seen is near the first and the last turn that are built."""
        ahead = AHEAD * self.viewport().height() if self.isVisible() else 0
        return self.verticalScrollBar().value() < ahead, self.away() < ahead

    def _look_ahead(self) -> None:
        self._show_jump()
        if not self._filling.isActive() and any(self._rooms()):
            self._filling.start(0)

    def _cover(self) -> None:
        """Build at once what is to be seen at once."""
        self.settle()
        while self.isVisible() and self.column.first > 0:
            if self.verticalScrollBar().maximum() > 0:
                break
            self.column.show_turns(max(self.column.first - BATCH, 0), self.column.last)
            self.settle()

    def build(self, at: int) -> None:
        """Have the turn `at` of the chat built, with the first of those around it."""
        if not self.column.first <= at < self.column.last:
            self.column.show_turns(max(at - 2 * BATCH, 0), at + 3 * BATCH)
            self.keep(Anchor(self._chat.turns[at].id, NEAR))
        self._filling.start(0)

    # What is seen

    def to_end(self) -> None:
        """Show the end, and follow it."""
        count = len(self._chat.turns)
        self.following = True
        if self.column.last < count:
            self.column.show_turns(max(count - 2 * BATCH, 0), count)
            self._cover()
        self.settle()
        self._filling.start(0)
        self._show_jump()

    def show_turn(self, name: str) -> None:
        """Show the message with the id `name`, from its beginning."""
        names = [turn.id for turn in self._chat.turns]
        if name in names:
            self.build(names.index(name))
            self.keep(Anchor(name, NEAR))
            self._show_jump()

    def set_tinted(self, tinted: bool) -> None:
        """Whether drafted text is tinted."""
        self.column.set_tinted(tinted)

    def set_unfolded(self, on: bool) -> None:
        """Whether thinking is unfolded at first."""
        self.column.set_unfolded(on)

    def edit_question(self, answer: str) -> None:
        """Let the question of an answer be written anew."""
        if self.column.question_of(answer) is None and self.column.first > 0:
            self.column.show_turns(self.column.first - 1, self.column.last)
            self.settle()
        question = self.column.question_of(answer)
        if question is not None:
            question.edit()

    def order_tabs(self, first: QWidget) -> None:
        """Have Tab go on from `first` as the conversation is read, with what came since."""
        turns = (part for shown in self._turns.values() for part in shown.parts)
        tab_order.chain(first, (self.search.bar, *turns, self.jump))

    def open_find(self) -> None:
        """Ask for a text to find in this chat."""
        self.search.open()

    def _answers(self) -> list[AnswerTurn]:
        return self.column.answers

    def _is_at_end(self) -> bool:
        return super()._is_at_end() and self.column.last == len(self._chat.turns)

    def _show_jump(self, *_: object) -> None:
        """The button is there while it answers out of sight, or the end is far."""
        far = self.away() > self.viewport().height() or self.column.last < len(self._chat.turns)
        away = not self.following and (self._chat.answering or far)
        if self.jump.hasFocus() and not away:
            self.focus_last_question()
        self.jump.setVisible(away)
        place, size = self.viewport().geometry(), self.jump.size()
        x = place.center().x() - size.width() // 2
        self.jump.move(x, place.bottom() - size.height() - 10)
        self.jump.raise_()

    def focus_last_question(self) -> None:
        """Put the focus into the chat, where it is surely built."""
        questions = [shown for shown in self._turns.values() if isinstance(shown, Bubble)]
        if questions:
            questions[-1].body.setFocus()

    def fit_font(self) -> None:
        super().fit_font()
        self.search.fit_font()

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.search.bar.resize(self.width(), self.search.bar.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Home and self._chat.turns:
            self.show_turn(self._chat.turns[0].id)
        elif event.key() == Qt.Key.Key_End:
            self.to_end()
        else:
            super().keyPressEvent(event)


def _arrow_with_focus(shown: Shown) -> bool | None:
    """Whether the later of a message's arrows has the focus; None where neither has."""
    versions = shown.tools.versions
    if versions is None:
        return None
    if versions.later.hasFocus():
        return True
    return False if versions.earlier.hasFocus() else None


def _in_gui_thread() -> None:
    """Widgets are touched by the GUI thread alone; another one would corrupt them silently."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the transcript was touched off the GUI thread")
