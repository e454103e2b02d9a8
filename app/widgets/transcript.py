"""The conversation as a column of turns that is followed at its end, and only there.

Decides which stretch of a chat is built and what stays in its place while that grows; what the
turns say is the view model's.
"""

import threading
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.turns import Turn
from app.widgets.bubble import Bubble
from app.widgets.column import WIDTH, Column, Shown
from app.widgets.common import IconButton
from app.widgets.find_bar import FindBar
from app.widgets.finding import Finding
from app.widgets.turn import AnswerTurn
from engine.api import Finish

COLUMN = WIDTH
MARGIN = 40
BAR = 10  # width of the scroll bar in the style sheet
NEAR = 8  # pixels from the end that still count as the end
BUILT = 50  # messages that are built without being asked for
MOST = 120  # built at once; beyond them those far away are dropped again
BATCH = 2  # messages built in one go, between two looks at what the user does
AHEAD = 2  # pages on either side of what is seen that are to be built


@dataclass(frozen=True)
class _Anchor:
    """What stays in its place: an edge of a turn, so many pixels below the top of the view."""

    id: str
    offset: int
    bottom: bool = False


class Transcript(QScrollArea):
    """Turns from top to bottom."""

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self._chat = chat
        self._shown_chat = chat.chat_id
        self._following = True
        self._anchor: _Anchor | None = None
        self._holding = False  # the bar is moved to keep something in its place
        self._refocus = False
        self._column = Column(chat)
        self._turns = self._column.turns
        self._empty = self._column.empty
        self._filling = QTimer(self)
        self._filling.setSingleShot(True)
        self._filling.timeout.connect(self._fill)
        self.finding = Finding(chat, self._column)
        self.find_bar = FindBar(self)
        self._build()
        self._connect()
        self.rebuild()

    def _build(self) -> None:
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Conversation"))
        page = QWidget()
        page.setObjectName("page")
        self._row = QHBoxLayout(page)
        self._row.addStretch(1)
        self._row.addWidget(self._column, 1000)
        self._row.addStretch(1)
        self.setWidget(page)
        self.jump = IconButton(self.tr("Jump to the end"), "arrow-down", size=34)
        self.jump.setObjectName("jump")
        self.jump.setParent(self)
        self.jump.hide()
        self._leave_room(0)

    def _connect(self) -> None:
        chat = self._chat
        chat.turn_added.connect(self.add_turn)
        chat.turn_grew.connect(self.update_turn)
        chat.turn_ended.connect(self.end_turn)
        chat.turn_removed.connect(self.remove_turn)
        chat.cleared.connect(self.rebuild)
        chat.opened.connect(self.rebuild)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._moved)
        bar.rangeChanged.connect(self._ranged)
        bind(chat, Chat.answering, self._show_jump)
        self.jump.clicked.connect(self.to_end)
        self._column.edit_asked.connect(self.edit_question)
        self._column.grown.connect(self._reveal)
        self._column.built.connect(self.finding.mark)
        self.find_bar.closed.connect(self.close_find)
        self.find_bar.asked.connect(self._find_asked)
        self.finding.counted.connect(self._show_count)

    # What the chat tells

    def add_turn(self, turn: Turn) -> None:
        """A new turn at the end, which is then followed."""
        _in_gui_thread()
        self._shown_chat = self._chat.chat_id
        count = len(self._chat.turns)
        near = self._column.last >= count - 1
        first = self._column.first if near else count - BATCH
        if count - first > BUILT + 2 * BATCH:
            first = count - BUILT
        self._following = True
        self._column.show_turns(max(first, 0), count)
        self._filling.start(0)
        if self._refocus:
            self._refocus = False
            self._focus_last_question()

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
            whole = turn.finish is Finish.STOP
            complete, early = self.tr("The answer is complete."), self.tr("The answer ended early.")
            said = complete if whole else early
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(shown.body, said))
        self.finding.forget(turn.id)

    def remove_turn(self, turn: Turn) -> None:
        """A turn that is there no more, or is now another version's place."""
        _in_gui_thread()
        shown = self._turns.get(turn.id)
        if shown is None:
            return
        self._refocus |= shown.isAncestorOf(QApplication.focusWidget() or self)
        count = len(self._chat.turns)
        first = self._column.first
        self._column.show_turns(first if first < count else max(count - BATCH, 0), count)

    def rebuild(self) -> None:
        """Another chat is shown from its end; another branch of this one from where it was."""
        _in_gui_thread()
        turns = self._chat.turns
        same = bool(turns) and self._chat.chat_id == self._shown_chat and bool(self._turns)
        self._shown_chat = self._chat.chat_id
        self.finding.forget()
        if same:
            self._branch()
        else:
            self._following = True
            self._column.show_turns(max(len(turns) - 2 * BATCH, 0), len(turns))
            self._cover()
        self._filling.start(0)

    def _branch(self) -> None:
        """Show another version of a message in the place of the one that was shown."""
        old, first = list(self._turns), self._column.first
        new = [turn.id for turn in self._chat.turns[first:]]
        at = next(
            (i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None
        )
        if at is None:
            self._column.show_turns(first, first + len(new))
            return
        gone = self._turns[old[at]]
        focused = _arrow_with_focus(gone)
        bottom = self._y(gone) + gone.height() - self.verticalScrollBar().value()
        self._following = False
        self._column.show_turns(first, first + at + 2 * BATCH)
        self._anchor = _Anchor(new[at], bottom, bottom=True)
        self._settle()
        if focused is not None:
            tools = self._turns[new[at]].tools
            if tools.versions is not None:
                tools.versions.focus(later=focused)

    def _answers(self) -> list[AnswerTurn]:
        return self._column.answers

    # What is built

    def _fill(self) -> None:
        """Build more where what is seen comes near the edge of it, or where little is built."""
        column, count = self._column, len(self._chat.turns)
        first, last = column.first, column.last
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
        column.show_turns(first, last)
        self._settle()
        self._filling.start(0)

    def _rooms(self) -> tuple[bool, bool]:
        """Whether what is seen is near the first and the last turn that are built."""
        if not self.isVisible():
            return False, False
        bar, page = self.verticalScrollBar(), self.viewport().height()
        above = bar.value() < AHEAD * page
        return above, bar.maximum() - bar.value() < AHEAD * page

    def _cover(self) -> None:
        """Build at once what is to be seen at once."""
        self._settle()
        while self.isVisible() and self._column.first > 0:
            if self.verticalScrollBar().maximum() > 0:
                break
            self._column.show_turns(max(self._column.first - BATCH, 0), self._column.last)
            self._settle()

    def _settle(self) -> None:
        """Lay out what was built now, so that nobody sees it jump."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        self._hold()

    # What is seen

    def to_end(self) -> None:
        """Show the end, and follow it."""
        count = len(self._chat.turns)
        self._following = True
        if self._column.last < count:
            self._column.show_turns(max(count - 2 * BATCH, 0), count)
            self._cover()
        self._settle()
        self._filling.start(0)
        self._show_jump()

    def to_start(self) -> None:
        """Show the first message."""
        if self._column.first > 0:
            self._column.show_turns(0, 4 * BATCH)
            self._settle()
        self.verticalScrollBar().setValue(0)
        self._filling.start(0)

    def show_turn(self, name: str) -> None:
        """Scroll to a message, where it is in this chat."""
        at = next((i for i, turn in enumerate(self._chat.turns) if turn.id == name), None)
        if at is None:
            return
        self._following = False
        if name not in self._turns:
            self._column.show_turns(max(at - 2 * BATCH, 0), at + 3 * BATCH)
        self._anchor = _Anchor(name, NEAR)
        self._settle()
        self._filling.start(0)

    def set_tinted(self, tinted: bool) -> None:
        """Whether drafted text is tinted."""
        self._column.set_tinted(tinted)

    def edit_question(self, answer: str) -> None:
        """Let the question of an answer be written anew."""
        question = self._column.question_of(answer)
        if question is None and self._column.first > 0:
            self._column.show_turns(self._column.first - 1, self._column.last)
            self._settle()
            question = self._column.question_of(answer)
        if question is not None:
            question.edit()

    def _moved(self, value: int) -> None:
        if self._holding:
            return
        at_end = value >= self.verticalScrollBar().maximum() - NEAR
        self._following = at_end and self._column.last == len(self._chat.turns)
        self._anchor = self._topmost()
        self._show_jump()
        if not self._filling.isActive() and any(self._rooms()):
            self._filling.start(0)

    def _ranged(self, low: int, high: int) -> None:
        self._leave_room(high)
        self._hold()
        self._show_jump()

    def _leave_room(self, high: int) -> None:
        # The bar's room is kept while there is none: the column stands still, centred.
        left, right = MARGIN + BAR, MARGIN + (0 if high > 0 else BAR)
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            left, right = right, left
        self._row.setContentsMargins(left, 0, right, 0)

    def _hold(self) -> None:
        """Keep the end, or what was seen, in its place."""
        bar, anchor = self.verticalScrollBar(), self._anchor
        self._holding = True
        if self._following:
            bar.setValue(bar.maximum())
        elif anchor is not None and anchor.id in self._turns:
            shown = self._turns[anchor.id]
            edge = self._y(shown) + (shown.height() if anchor.bottom else 0)
            bar.setValue(edge - anchor.offset)
        self._holding = False

    def _topmost(self) -> _Anchor | None:
        """The first turn that is seen, and where."""
        value = self.verticalScrollBar().value()
        for name, shown in self._turns.items():
            top = self._y(shown)
            if top + shown.height() > value:
                return _Anchor(name, top - value)
        return None

    def _y(self, shown: Shown) -> int:
        return shown.y() + self._column.y()

    def _reveal(self, part: QWidget) -> None:
        """Scroll no more than it takes to see `part`, its end first."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        top = part.mapTo(self.widget(), part.rect().topLeft()).y()
        bar, page = self.verticalScrollBar(), self.viewport().height()
        low = top + part.height() + NEAR - page
        bar.setValue(max(min(bar.value(), max(top - NEAR, 0)), min(low, top)))

    def _show_jump(self, *_: object) -> None:
        bar = self.verticalScrollBar()
        far = bar.maximum() - bar.value() > self.viewport().height()
        far |= self._column.last < len(self._chat.turns)
        away = not self._following and (self._chat.answering or far)
        if self.jump.isVisible() and not away and self.jump.hasFocus():
            self._focus_last_question()
        self.jump.setVisible(away)
        place = self.viewport().geometry()
        size = self.jump.size()
        self.jump.move(place.center().x() - size.width() // 2, place.bottom() - size.height() - 10)
        self.jump.raise_()

    def _focus_last_question(self) -> None:
        questions = [shown for shown in self._turns.values() if isinstance(shown, Bubble)]
        if questions:
            questions[-1].body.setFocus()

    # Finding

    def open_find(self) -> None:
        """Ask for a text to find, above the transcript."""
        self.find_bar.open()
        self._place_find()

    def close_find(self) -> None:
        """Take the bar and all marks away."""
        had = self.find_bar.isAncestorOf(QApplication.focusWidget() or self)
        self.find_bar.hide()
        self.finding.clear()
        self._place_find()
        if had:
            self._focus_last_question()

    def find(self, text: str, backwards: bool = False) -> bool:
        """Go to the next place where `text` stands in this chat; whether there is one."""
        hit = self.finding.step(text, backwards, self._topmost_index())
        if hit is None:
            return False
        if hit.id not in self._turns:
            self._following = False
            self._column.show_turns(max(hit.turn - 2 * BATCH, 0), hit.turn + 3 * BATCH)
            self._anchor = _Anchor(hit.id, 0)
            self._settle()
            self._filling.start(0)
        cursor = self.finding.mark()
        if cursor is not None:
            self._show_cursor(self._turns[hit.id], cursor)
        return True

    def _topmost_index(self) -> int:
        top = self._topmost()
        return self._column.first + (list(self._turns).index(top.id) if top else 0)

    def _show_cursor(self, shown: Shown, cursor: QTextCursor) -> None:
        spot = shown.body.cursorRect(cursor)
        y = shown.body.mapTo(self.widget(), spot.topLeft()).y()
        bar, page = self.verticalScrollBar(), self.viewport().height()
        if not bar.value() + page // 8 <= y <= bar.value() + page - page // 4:
            bar.setValue(y - page // 3)

    def _find_asked(self, text: str, backwards: bool) -> None:
        if text:
            self.find(text, backwards)
        else:
            self.finding.clear()
        self._show_count()

    def _show_count(self) -> None:
        self.find_bar.show_count(*self.finding.place())

    def _place_find(self) -> None:
        """The bar takes its room from the view, so that it hides nothing."""
        high = self.find_bar.height() if not self.find_bar.isHidden() else 0
        self.setViewportMargins(0, high, 0, 0)
        self.find_bar.setGeometry(0, 0, self.width(), self.find_bar.height())
        self.find_bar.raise_()

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_find()
        self._hold()
        self._show_jump()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Home:
            self.to_start()
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
