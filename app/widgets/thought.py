"""The thinking before an answer, folded to one line.

Whether it is open is the user's choice alone, in the settings and then by its button: streaming
never folds or unfolds it.
"""

from PySide6.QtCore import QEasingCurve, QEvent, QPropertyAnimation, Qt
from PySide6.QtWidgets import QHBoxLayout, QStyle, QVBoxLayout, QWidget

from app import resources
from app.viewmodels import words
from app.viewmodels.turns import Turn
from app.widgets.common import Button, label
from app.widgets.text import Text

FOLD_MS = 120
INDENT = 22
ANY_HEIGHT = 16_777_215  # Qt's largest height of a widget


class Thought(QWidget):
    """ "Thought for 6 s  214 tokens", and what was thought below it."""

    def __init__(self, *, unfolded: bool = False) -> None:
        super().__init__()
        self._fold = Button("", icon="chevron-right", kind="bare", role="caption")
        self._fold.setProperty("tone", "text2")
        self._fold.setCheckable(True)
        self._fold.setChecked(unfolded)
        self._tokens = label("", "caption", "text3", tabular=True)
        self._text = Text(self.tr("Thinking"))
        self._text.setFont(resources.font("body"))
        self._room = QWidget()
        self._shown = ""
        self._told = ""
        self._motion = QPropertyAnimation(self._room, b"maximumHeight", self)
        self._motion.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._motion.finished.connect(self._settled)
        self._build()
        self._dress()
        self._fold.toggled.connect(self._toggle)

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self._fold)
        head.addWidget(self._tokens)
        head.addStretch()
        inner = QVBoxLayout(self._room)
        inner.setContentsMargins(INDENT, 0, 0, 6)
        inner.addWidget(self._text)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._room)
        self._room.setVisible(self._fold.isChecked())

    def show_turn(self, turn: Turn) -> None:
        """Show how long it thought; the text when it is unfolded."""
        said = self._words(turn)
        if said != self._told:
            self._told = said
            self._fold.set_words(said)
        count = turn.usage.reasoning_tokens
        self._tokens.setText(words.tokens(count) if count and not turn.running else "")
        self._shown = turn.reasoning
        if self._fold.isChecked():
            self._text.show_plain(self._shown)

    def _words(self, turn: Turn) -> str:
        if turn.thinking is not None:
            spent = words.duration(max(turn.thinking, 1))
            return self.tr("Thought for {time}").format(time=spent)
        return self.tr("Thinking") if turn.running else self.tr("Stopped while thinking")

    def _toggle(self, open_: bool) -> None:
        self._dress()
        if open_:
            self._text.show_plain(self._shown)
            # It was never laid out in this width: its height is not known before.
            self._text.document().setTextWidth(self.width() - INDENT)
        low, high = 0, self._room.sizeHint().height()
        begin = self._room.height() if self._room.isVisible() else (low if open_ else high)
        self._room.show()
        self._motion.stop()
        self._motion.setDuration(self._duration())
        self._motion.setStartValue(begin)
        self._motion.setEndValue(high if open_ else low)
        self._motion.start()

    def _settled(self) -> None:
        if not self._fold.isChecked():
            self._room.hide()
        self._room.setMaximumHeight(ANY_HEIGHT)

    def _duration(self) -> int:
        """None where the system asks for less motion: it then tells its styles to animate not."""
        asked = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration)
        return FOLD_MS if asked > 0 and self.isVisible() else 0

    def _dress(self) -> None:
        mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        closed = "chevron-left" if mirrored else "chevron-right"
        self._fold.set_icon("chevron-down" if self._fold.isChecked() else closed, "text2")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._dress()
