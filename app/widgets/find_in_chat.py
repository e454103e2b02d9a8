"""Find in this chat: the bar, the search, and the transcript that is scrolled to what it finds."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.viewmodels.chat import Chat
from app.widgets.find_bar import FindBar
from app.widgets.finding import Finding

if TYPE_CHECKING:
    from app.widgets.transcript import Transcript


class FindInChat(QObject):
    """One search in a transcript; it ends with the bar."""

    def __init__(self, chat: Chat, transcript: "Transcript") -> None:
        super().__init__(transcript)
        self._transcript = transcript
        self.finding = Finding(chat, transcript.column)
        self.bar = FindBar(transcript)
        self.bar.closed.connect(self.close)
        self.bar.asked.connect(self._asked)
        self.finding.counted.connect(self._show_count)
        transcript.column.built.connect(self.finding.mark)

    def open(self) -> None:
        """Ask for a text, above the transcript."""
        self.bar.open()
        self._place()

    def close(self) -> None:
        """Take the bar and all marks away."""
        had = self.bar.isAncestorOf(QApplication.focusWidget() or self.bar)
        self.bar.hide()
        self.finding.clear()
        self._place()
        if had:
            self._transcript.focus_last_question()

    def go(self, text: str, *, backwards: bool = False) -> bool:
        """Show the next place where `text` stands in this chat; whether there is one."""
        transcript = self._transcript
        names, top = list(transcript.column.turns), transcript.topmost()
        seen = transcript.column.first + (names.index(top.id) if top else 0)
        hit = self.finding.step(text, backwards, seen)
        if hit is None:
            return False
        transcript.build(hit.turn)
        cursor = self.finding.mark()
        if cursor is not None:
            body = transcript.column.turns[hit.id].body
            transcript.reveal_line(body, body.cursorRect(cursor).top())
        return True

    def fit_font(self) -> None:
        """The bar has another height, and texts that were written anew have no marks."""
        self.bar.adjustSize()
        self._place()
        self.finding.mark()

    def _asked(self, text: str, backwards: bool) -> None:
        if text:
            self.go(text, backwards=backwards)
        else:
            self.finding.clear()
        self._show_count()

    def _show_count(self) -> None:
        self.bar.show_count(*self.finding.place())

    def _place(self) -> None:
        """The bar takes its room from the view, so that it hides nothing."""
        high = 0 if self.bar.isHidden() else self.bar.height()
        self._transcript.leave_above(high)
        self.bar.setGeometry(0, 0, self._transcript.width(), self.bar.height())
        self.bar.raise_()
