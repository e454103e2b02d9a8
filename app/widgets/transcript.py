"""The conversation as a column of turns that is followed at its end, and only there.

Knows which widget shows which turn; what they say is the view model's.
"""

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.viewmodels.chat import Chat, Turn
from app.widgets.common import label
from app.widgets.turn import AnswerTurn, Bubble

COLUMN = 720
MARGIN = 40
BAR = 10  # width of the scroll bar in the style sheet
NEAR = 8  # pixels from the end that still count as the end


class Transcript(QScrollArea):
    """Turns from top to bottom."""

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self._chat = chat
        self._turns: dict[int, Bubble | AnswerTurn] = {}
        self._following = True
        self._build()
        chat.turn_added.connect(self.add_turn)
        chat.turn_grew.connect(self.update_turn)
        chat.turn_ended.connect(self.end_turn)
        chat.turn_removed.connect(self.remove_turn)
        chat.cleared.connect(self.clear)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._moved)
        bar.rangeChanged.connect(self._ranged)
        self._ranged(0, 0)
        self._show_empty()

    def _build(self) -> None:
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Conversation"))
        self._empty = label(
            self.tr("Ask something. What you write stays on this computer."), "reading", "text2"
        )
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = QVBoxLayout()
        self._column.setSpacing(20)
        self._column.setContentsMargins(0, 20, 0, 24)
        self._column.addWidget(self._empty, 1)
        self._column.addStretch()
        inner = QWidget()
        inner.setLayout(self._column)
        inner.setMaximumWidth(COLUMN)
        inner.setObjectName("column")
        page = QWidget()
        page.setObjectName("page")
        row = QHBoxLayout(page)
        self._row = row
        row.addStretch(1)
        row.addWidget(inner, 1000)
        row.addStretch(1)
        self.setWidget(page)

    def add_turn(self, turn: Turn) -> None:
        made: Bubble | AnswerTurn
        if turn.role == "user":
            made = Bubble(turn)
        else:
            for older in self._answers():
                older.set_latest(False)
            made = AnswerTurn(turn, named=turn.model != self._last_model())
        self._turns[turn.id] = made
        self._column.insertWidget(self._column.count() - 1, made)
        self._following = True
        self._show_empty()

    def update_turn(self, turn: Turn) -> None:
        shown = self._turns.get(turn.id)
        if isinstance(shown, AnswerTurn):
            shown.update_turn()

    def end_turn(self, turn: Turn) -> None:
        shown = self._turns.get(turn.id)
        if isinstance(shown, AnswerTurn):
            shown.update_turn()
            shown.footer.numbers.now()
            said = QAccessibleAnnouncementEvent(shown.body, self.tr("The answer is complete."))
            QAccessible.updateAccessibility(said)

    def remove_turn(self, turn: Turn) -> None:
        shown = self._turns.pop(turn.id, None)
        if shown is not None:
            _drop(shown)
        answers = self._answers()
        if answers:
            answers[-1].set_latest(True)
        self._show_empty()

    def clear(self) -> None:
        """A new chat."""
        for shown in self._turns.values():
            _drop(shown)
        self._turns.clear()
        self._following = True
        self._show_empty()

    def _answers(self) -> list[AnswerTurn]:
        return [shown for shown in self._turns.values() if isinstance(shown, AnswerTurn)]

    def _last_model(self) -> str:
        answers = self._answers()
        return answers[-1].turn.model if answers else ""

    def _show_empty(self) -> None:
        self._empty.setVisible(not self._turns)

    def _moved(self, value: int) -> None:
        self._following = value >= self.verticalScrollBar().maximum() - NEAR

    def _ranged(self, low: int, high: int) -> None:
        # The bar's room is kept while there is none: the column stands still, centred.
        self._row.setContentsMargins(MARGIN + BAR, 0, MARGIN + (0 if high > low else BAR), 0)
        if self._following:
            self.verticalScrollBar().setValue(high)

    def resizeEvent(self, event: QResizeEvent) -> None:
        following = self._following
        super().resizeEvent(event)
        if following:
            # The turns take their new heights after this event.
            QTimer.singleShot(0, self._to_end)

    def _to_end(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())


def _drop(shown: QWidget) -> None:
    shown.hide()
    shown.deleteLater()
