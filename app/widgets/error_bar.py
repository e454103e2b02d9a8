"""The one bar above the composer: what went wrong and what can be done."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout

from app.viewmodels.alerts import Action, Alert, Alerts
from app.viewmodels.binding import bind
from app.widgets.common import Button, Glyph, IconButton, label


class ErrorBar(QFrame):
    """Hidden while all is well."""

    acted = Signal(Action)

    def __init__(self, alerts: Alerts) -> None:
        super().__init__()
        self.setObjectName("errorBar")
        self._text = label("", "body", wrap=True)
        self._act = Button(self.tr("New chat"))
        self._close = IconButton(self.tr("Dismiss"), "x", size=26)
        self._action = Action.NONE
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(10)
        row.addWidget(Glyph("circle-x", "bad"))
        row.addWidget(self._text, 1)
        row.addWidget(self._act)
        row.addWidget(self._close)
        self._act.clicked.connect(lambda: self.acted.emit(self._action))
        self._close.clicked.connect(alerts.dismiss)
        bind(alerts, Alerts.current, self.update_alert)

    def update_alert(self, alert: Alert | None) -> None:
        self.setVisible(alert is not None)
        if alert is not None:
            self._text.setText(alert.text)
            self._action = alert.action
            self._act.setVisible(alert.action is not Action.NONE)
