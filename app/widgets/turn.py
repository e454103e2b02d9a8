"""One message of the transcript: a bubble for the user, bare text for an answer.

An answer has, from top to bottom: the model's name where it changed, notices, the folded
thinking, the text, and a footer with its numbers. Shows a Turn and computes nothing.
"""

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.binding import Throttle
from app.viewmodels.chat import Turn
from app.widgets.common import Button, IconButton, label
from app.widgets.text import Answer, Text
from engine.api import Finish

NUMBERS_MS = 250
BUBBLE_SHARE = 0.86


class Bubble(QWidget):
    """What the user wrote, as it is."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self.turn = turn
        self.text = Text(self.tr("Your message"))
        self._frame = QFrame()
        self._frame.setObjectName("bubble")
        self._frame.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Minimum)
        inner = QHBoxLayout(self._frame)
        inner.setContentsMargins(14, 8, 14, 9)
        inner.addWidget(self.text)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch()
        row.addWidget(self._frame)
        self.text.show_plain(turn.text)
        document = self.text.document()
        document.setTextWidth(-1)
        self._ideal = document.idealWidth() if document.characterCount() < 2_000 else 9_999.0

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() * BUBBLE_SHARE - 28
        self.text.setFixedWidth(round(min(self._ideal + 2, room)))


class AnswerTurn(QWidget):
    """An answer and what is known of it."""

    def __init__(self, turn: Turn, *, named: bool) -> None:
        super().__init__()
        self.turn = turn
        self._name = label(turn.model, "caption", "text3")
        self._notices = label("", "caption", "text2", wrap=True)
        self._notices.hide()
        self._thought = Thought()
        self.body = Answer(self.tr("Answer"))
        self.footer = Footer(turn)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for widget in (self._name, self._notices, self._thought, self.body, self.footer):
            column.addWidget(widget)
        # Only now: a widget shown before it has a parent would be a window of its own.
        self._name.setVisible(named and bool(turn.model))
        self.body.hide()

    def update_turn(self) -> None:
        """Show what the turn holds by now."""
        turn = self.turn
        if turn.notices:
            self._notices.setText("\n".join(reason.text for reason in turn.notices))
            self._notices.show()
        self._thought.show_turn(turn)
        if turn.text:
            self.body.show()
            self.body.grow(turn.text, finished=not turn.running)
        self.footer.numbers.soon()

    def set_latest(self, latest: bool) -> None:
        """The last answer's footer stands out."""
        self.footer.set_latest(latest)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.turn.text:
            self.body.redraw()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.body.ringed:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)


class Thought(QWidget):
    """The thinking before an answer, folded to one line."""

    def __init__(self) -> None:
        super().__init__()
        self._fold = Button("", icon="chevron-right", kind="bare", role="caption")
        self._fold.setProperty("tone", "text2")
        self._fold.setCheckable(True)
        self._text = Text(self.tr("Thinking"))
        self._text.setFont(resources.font("body"))
        self._text.hide()
        self._shown = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._text)
        self._fold.toggled.connect(self._toggle)
        self.hide()

    def show_turn(self, turn: Turn) -> None:
        """Show how long it thought; the text when it is unfolded."""
        if not turn.reasoning:
            return
        if turn.thinking is not None:
            spent = words.duration(max(turn.thinking, 1))
            said = self.tr("Thought for {time}").format(time=spent)
        else:
            said = self.tr("Thinking") if turn.running else self.tr("Stopped while thinking")
        self._fold.set_words(said)
        self._shown = turn.reasoning
        if self._text.isVisible():
            self._text.show_plain(self._shown)
        self.show()

    def _toggle(self, open_: bool) -> None:
        self._fold.set_icon("chevron-down" if open_ else "chevron-right", "text2")
        if open_:
            self._text.show_plain(self._shown)
        self._text.setVisible(open_)


class Footer(QWidget):
    """The numbers of an answer, each with a place that does not shrink, and its buttons."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn
        self._row = QHBoxLayout()
        self._row.setSpacing(0)
        self._labels: list[QLabel] = []
        self.copy = IconButton(self.tr("Copy the answer"), "copy", size=26)
        self.copy.clicked.connect(self._copy)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addLayout(self._row)
        row.addStretch()
        row.addWidget(self.copy)
        self._tone = "text2"
        self._latest = True
        self.numbers = Throttle(NUMBERS_MS, self.update_numbers, self)
        self.setFixedHeight(28)
        self.update_numbers()

    def set_latest(self, latest: bool) -> None:
        """Older footers step back; their buttons show under the pointer or with the focus."""
        self._latest = latest
        self._tone = "text2" if latest else "text3"
        for made in self._labels:
            _set_tone(made, self._tone)
        self._show_buttons()

    def update_numbers(self) -> None:
        """Write the numbers."""
        texts = _numbers(self._turn)
        while len(self._labels) < len(texts):
            made = label("", "caption", self._tone, tabular=True)
            self._labels.append(made)
            self._row.addWidget(made)
        for index, made in enumerate(self._labels):
            text = texts[index] if index < len(texts) else ""
            dot = "  ·  " if index and text else ""
            made.setText(dot + text)
            # Numbers keep the room they once took; a sentence gives it back.
            kept = made.minimumWidth() if len(texts) > 1 else 0
            made.setMinimumWidth(max(kept, made.sizeHint().width()) if len(texts) > 1 else 0)
        self._show_buttons()

    def _show_buttons(self) -> None:
        ready = not self._turn.running and bool(self._turn.text)
        near = self._latest or self.underMouse() or self.copy.hasFocus()
        self.copy.setEnabled(ready)
        self.copy.set_icon("copy" if ready and near else "")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._turn.text)
        self.copy.set_icon("check")

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), 28)

    def enterEvent(self, event: QEvent) -> None:
        self._show_buttons()

    def leaveEvent(self, event: QEvent) -> None:
        self._show_buttons()


def _numbers(turn: Turn) -> list[str]:
    """What the footer says, in order."""
    usage, tr = turn.usage, _translate
    if usage.tokens == 0:
        return _ending(turn) if turn.text or turn.reasoning else [_waiting(turn)]
    texts = [words.tokens(usage.tokens)]
    if usage.tokens_per_second is not None:
        texts.append(tr("{rate} tok/s").format(rate=words.decimals(usage.tokens_per_second)))
    if usage.time_to_first_token is not None:
        first = words.decimals(usage.time_to_first_token, 2)
        texts.append(tr("first token {time} s").format(time=first))
    if not turn.drafted:
        texts.append(tr("no draft"))
    elif usage.drafted:
        texts.append(tr("{rate} accepted").format(rate=words.percent(usage.acceptance_rate)))
        per_round = words.decimals(usage.tokens_per_round, 2)
        texts.append(tr("{count} tokens a round").format(count=per_round))
    else:
        texts.append(tr("nothing drafted"))
    return texts + _ending(turn)


def _waiting(turn: Turn) -> str:
    if not turn.running:
        return _translate("The answer is empty")
    if turn.prefilled is not None and turn.prefilled.total > 0:
        return _translate("Reading the chat, {amount}").format(amount=words.amount(turn.prefilled))
    return _translate("Reading the chat")


def _ending(turn: Turn) -> list[str]:
    if turn.failed:
        return [_translate("failed")]
    match turn.finish:
        case Finish.CANCELLED:
            return [_translate("stopped")]
        case Finish.LENGTH:
            return [_translate("length limit")]
        case Finish.CONTEXT:
            return [_translate("context full")]
        case Finish.MEMORY:
            return [_translate("stopped for memory")]
    return []


def _translate(text: str) -> str:
    return QCoreApplication.translate("footer", text)


def _set_tone(made: QLabel, tone: str) -> None:
    if made.property("tone") != tone:
        made.setProperty("tone", tone)
        made.style().unpolish(made)
        made.style().polish(made)
