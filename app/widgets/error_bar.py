"""The one bar above the composer: what went wrong, what can be done, and more on demand."""

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.alerts import Action, Alert, Alerts
from app.viewmodels.binding import bind
from app.widgets.common import Button, Glyph, IconButton, label

BESIDE = 0.5  # of the width; where the buttons take more, they stand below the sentence


_PATH = re.compile(r"\S*[/\\]\S*")
LONGEST_PATH = 80  # characters; a longer one would not fit into a line anyway


def _whole(path: re.Match[str]) -> str:
    """A path that no line is broken in: half of one is read as another."""
    told = path.group()
    return told if len(told) > LONGEST_PATH else re.sub(r"(?<=[/\\-])", "\u2060", told)


class ErrorBar(QFrame):
    """Hidden while all is well."""

    acted = Signal(Action)

    def __init__(self, alerts: Alerts) -> None:
        super().__init__()
        self.setObjectName("errorBar")
        self._alerts = alerts
        self.buttons: dict[Action, Button] = {}
        self._build()
        self.details.toggled.connect(self._unfold)
        self.copy.clicked.connect(self._copy)
        self.close_.clicked.connect(alerts.close)
        bind(alerts, Alerts.current, self.update_alert)

    def _build(self) -> None:
        self.text = label("", "body", wrap=True)
        self.details = Button(self.tr("Details"), kind="flat")
        self.details.setCheckable(True)
        self.close_ = IconButton(self.tr("Dismiss"), "x", size=26)
        self.more = label("", "caption", "text2", wrap=True)
        self.more.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.more.setAccessibleName(self.tr("Details"))
        self.copy = Button(self.tr("Copy report"), kind="small")
        self.copy.setToolTip(self.tr("Versions and the log's last lines, without chats and tokens"))
        self._acts = QWidget()
        acts = QHBoxLayout(self._acts)
        acts.setContentsMargins(0, 0, 0, 0)
        acts.setSpacing(8)
        for action, words in self._words().items():
            self.buttons[action] = Button(words, kind="small")
            self.buttons[action].clicked.connect(lambda _=False, a=action: self.acted.emit(a))
            acts.addWidget(self.buttons[action])
        acts.addWidget(self.details)
        acts.addStretch()
        self._line = QHBoxLayout()
        self._line.setSpacing(10)
        self._line.addWidget(Glyph("circle-x", "bad"))
        self._line.addWidget(self.text, 1)
        self._line.addWidget(self._acts)
        self._line.addWidget(self.close_)
        more = QHBoxLayout()
        more.addWidget(self.more, 1)
        more.addWidget(self.copy, 0, Qt.AlignmentFlag.AlignBottom)
        self._below = QVBoxLayout()
        self._below.setContentsMargins(26, 0, 0, 0)
        self._below.setSpacing(6)
        self._below.addLayout(more)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(4)
        column.addLayout(self._line)
        column.addLayout(self._below)

    def _words(self) -> dict[Action, str]:
        return {
            Action.NEW_CHAT: self.tr("New chat"),
            Action.USE_SHORTER_CONTEXT: self.tr("Use a shorter context"),
            Action.NO_DRAFT: self.tr("Use no draft"),
            Action.CHOOSE_MODEL: self.tr("Choose another model"),
            Action.OPEN_LOG: self.tr("Open the log"),
            Action.LOAD_CHATS_MODEL: self.tr("Load it"),
            Action.ANSWER: self.tr("Answer it"),
            Action.OPEN_REPORT: self.tr("Open report"),
            Action.GRAPHICS_CARD: self.tr("Graphics card"),
        }

    def update_alert(self, alert: Alert | None) -> None:
        self.setVisible(alert is not None)
        if alert is None:
            return
        self.text.setText(_PATH.sub(_whole, alert.text))
        for action, button in self.buttons.items():
            button.setVisible(action in alert.actions)
        self.more.setText("\n".join(alert.details))
        self.details.setVisible(bool(alert.details))
        self.details.setChecked(False)
        self._unfold(False)
        self._place()
        self.setAccessibleName(alert.text)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def _unfold(self, shown: bool) -> None:
        self.more.setVisible(shown)
        self.copy.setVisible(shown)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._alerts.report())

    def _place(self) -> None:
        """The buttons beside the sentence where there is room for both, else below it."""
        if self._acts.sizeHint().width() > BESIDE * self.width():
            self._below.insertWidget(0, self._acts)
        else:
            self._line.insertWidget(2, self._acts)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()
