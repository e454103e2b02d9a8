"""The line below an answer: its numbers, each with a place that does not shrink, and its buttons.

Where they do not fit in one line, they break into two. Shows a Turn and computes nothing.
"""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QPointF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.binding import Throttle
from app.viewmodels.turns import Turn
from app.widgets.common import label, set_tone, tooltip
from app.widgets.tools import Tools
from engine.api import Finish

NUMBERS_MS = 250
GAP = 18  # pixels between two numbers; a dot stands in the middle
DOT = 1.5
LINE = 28  # pixels; more where the font is larger


@dataclass(frozen=True)
class Number:
    """A number or a word of a footer, and what the tooltip adds."""

    text: str
    more: str = ""
    bad: bool = False


class Footer(QWidget):
    """Numbers on the left, versions and buttons on the right."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn
        self._labels: list[QLabel] = []
        self._dots: list[QPointF] = []
        self._bad: list[bool] = []
        self._tone = "text2"
        self.tools = Tools()
        self.tools.setParent(self)
        self.copy = self.tools.add(self.tr("Copy the answer"), "copy")
        self.again = self.tools.add(self.tr("Regenerate"), "refresh-cw")
        self.more = self.tools.add(self.tr("More"), "ellipsis")
        self.numbers = Throttle(NUMBERS_MS, self.update_numbers, self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.update_numbers()

    def show_turn(self, turn: Turn) -> None:
        """Show the numbers of `turn`."""
        self._turn = turn
        self.update_numbers()

    def set_latest(self, latest: bool) -> None:
        """Older footers step back."""
        self._tone = "text2" if latest else "text3"
        self.tools.set_tone(self._tone)
        self._paint_labels()

    def update_numbers(self) -> None:
        """Write the numbers."""
        numbers = figures(self._turn)
        while len(self._labels) < len(numbers):
            made = label("", "caption", self._tone, tabular=True)
            made.setParent(self)
            self._labels.append(made)
        for index, made in enumerate(self._labels):
            number = numbers[index] if index < len(numbers) else Number("")
            self._write(made, number, alone=len(numbers) == 1)
        self._bad = [number.bad for number in numbers]
        self._paint_labels()
        self.place()

    def _write(self, made: QLabel, number: Number, *, alone: bool) -> None:
        if made.text() != number.text:
            made.setText(number.text)
            # Numbers keep the room they once took, since a label asks for no less than its
            # least; a sentence gives it back.
            made.setMinimumWidth(0 if alone else made.sizeHint().width())
        made.setToolTip(tooltip(number.more))
        made.setVisible(bool(number.text))

    def _paint_labels(self) -> None:
        for made, bad in zip(self._labels, self._bad, strict=False):
            set_tone(made, "bad" if bad else self._tone)

    def place(self) -> None:
        """Put everything in its place: line after line, the buttons at the end of the last."""
        width, x, line = self.width(), 0, 0
        self._line = max(LINE, QFontMetrics(resources.font("caption")).height() + 8)
        self._dots = []
        for made in self._labels:
            if made.isHidden():
                continue
            wide = max(made.minimumWidth(), made.sizeHint().width())
            if x and x + GAP + wide > width:
                x, line = 0, line + 1
            elif x:
                self._dots.append(QPointF(self._mirrored(x + GAP / 2), (line + 0.5) * self._line))
                x += GAP
            self._move(made, x, line, min(wide, width))
            x += wide
        tools = self.tools.sizeHint().width()
        if x and x + GAP + tools > width:
            line += 1
        self._move(self.tools, width - tools, line, tools)
        self.setFixedHeight((line + 1) * self._line)
        self.update()

    def _move(self, widget: QWidget, x: int, line: int, width: int) -> None:
        spot = QRect(x, line * self._line, width, self._line)
        widget.setGeometry(QStyle.visualRect(self.layoutDirection(), self.rect(), spot))

    def _mirrored(self, x: float) -> float:
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        return self.width() - x if mirrored else x

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self.place()

    def fit_font(self) -> None:
        """The room that numbers once took was of another size."""
        for made in self._labels:
            made.setMinimumWidth(0)
            made.setText("")
        self.update_numbers()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(resources.colour("edge"))
        for dot in self._dots:
            painter.drawEllipse(dot, DOT, DOT)


def figures(turn: Turn) -> list[Number]:
    """What the footer says, in order."""
    usage = turn.usage
    if usage.tokens == 0:
        said = turn.text or turn.reasoning
        return _ending(turn) or ([] if said else [Number(_waiting(turn))])
    prompt = _tr("{count} tokens read, {cached} of them kept from before")
    prompt = prompt.format(
        count=words.grouped(usage.prompt_tokens), cached=words.grouped(usage.cached_tokens)
    )
    numbers = [Number(words.tokens(usage.tokens), prompt)]
    if usage.tokens_per_second is not None:
        rate = words.decimals(usage.tokens_per_second)
        numbers.append(Number(_tr("{rate} tok/s").format(rate=rate)))
    if usage.time_to_first_token is not None:
        first = words.decimals(usage.time_to_first_token, 2)
        numbers.append(Number(_tr("first token {time} s").format(time=first)))
    return numbers + _drafting(turn) + _ending(turn)


def _drafting(turn: Turn) -> list[Number]:
    usage = turn.usage
    if not turn.drafted:
        return [Number(_tr("no draft"))]
    if not usage.drafted:
        return [Number(_tr("nothing drafted"))]
    counts = _tr("{accepted} of {drafted} drafted tokens accepted").format(
        accepted=words.grouped(usage.accepted), drafted=words.grouped(usage.drafted)
    )
    per_round = words.decimals(usage.tokens_per_round, 2)
    rounds = words.counted(usage.rounds, _tr("{count} round"), _tr("{count} rounds"))
    numbers = [
        Number(_tr("{rate} accepted").format(rate=words.percent(usage.acceptance_rate)), counts),
        Number(_tr("{count} tokens a round").format(count=per_round), rounds),
    ]
    if turn.times_plain is not None:
        times = words.decimals(turn.times_plain)
        against = _tr("Compared with the speed without a draft on this machine")
        numbers.append(Number(_tr("{times} times plain").format(times=times), against))
    return numbers


def _waiting(turn: Turn) -> str:
    if not turn.running:
        return _tr("The answer is empty")
    if turn.prefilled is not None and turn.prefilled.total > 0:
        return _tr("Reading the chat, {amount}").format(amount=words.amount(turn.prefilled))
    return _tr("Reading the chat")


def _ending(turn: Turn) -> list[Number]:
    """Why there is no more of it, where that is not that it was said."""
    if turn.running:
        return []
    if turn.failed:
        why = resources.translate(turn.problem) if turn.problem is not None else ""
        return [Number(_tr("failed"), why, bad=True)]
    if turn.state == "interrupted":
        return [Number(_tr("interrupted"), _tr("The program ended before the answer did"))]
    match turn.finish:
        case Finish.CANCELLED:
            return [Number(_tr("stopped"))]
        case Finish.LENGTH:
            return [Number(_tr("length limit"))]
        case Finish.CONTEXT:
            return [Number(_tr("context full"))]
        case Finish.MEMORY:
            return [Number(_tr("stopped for memory"))]
    return []


def _tr(text: str) -> str:
    return QCoreApplication.translate("footer", text)
