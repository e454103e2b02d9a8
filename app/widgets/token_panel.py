"""The hub's access token: typed in, kept, removed. What was kept is never shown."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout

from app.hub_token import Source
from app.viewmodels.binding import bind
from app.viewmodels.hub import Hub
from app.widgets.common import Button, label


class TokenPanel(QFrame):
    """A field, and a line on where the token is."""

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.setObjectName("card")
        self._hub = hub
        self.state = label("", "caption", "text2", wrap=True)
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setPlaceholderText("hf_…")
        self.field.setAccessibleName(self.tr("Access token of the hub"))
        self.keep, self.remove = Button(self.tr("Use")), Button(self.tr("Remove"))
        self.keep.clicked.connect(self._keep)
        self.field.returnPressed.connect(self._keep)
        self.remove.clicked.connect(hub.remove_token)
        name = label(self.tr("Access token"), "section", "text2")
        name.setBuddy(self.field)
        row = QHBoxLayout()
        row.setSpacing(8)
        for widget in (self.field, self.keep, self.remove):
            row.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(name)
        column.addLayout(row)
        column.addWidget(self.state)
        bind(hub, Hub.token, self.update_source)

    def _keep(self) -> None:
        text = self.field.text()
        self.field.clear()
        if text.strip():
            self._hub.set_token(text)

    def update_source(self, source: Source) -> None:
        said = {
            Source.NONE: self.tr(
                "None is set. One is made on the hub's page, under Settings, Access tokens; "
                "reading is all it needs to allow."
            ),
            Source.ENVIRONMENT: self.tr("The one in HF_TOKEN is used."),
            Source.KEYRING: self.tr("One is kept in the system's keyring."),
            Source.MEMORY: self.tr(
                "One is set. This system has no keyring, so it is forgotten when the program ends."
            ),
            Source.FILE: self.tr("The one that the hub's own tools keep is used."),
        }
        self.state.setText(said[source])
        self.remove.setVisible(source in (Source.KEYRING, Source.MEMORY))
