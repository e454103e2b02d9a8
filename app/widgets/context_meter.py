"""How much of the context the chat has used."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.chat import Chat
from app.viewmodels.models import Models
from app.widgets.common import Meter, label


class ContextMeter(QWidget):
    """ "649 of 8,192 tokens used" and a bar."""

    def __init__(self, chat: Chat, models: Models) -> None:
        super().__init__()
        self._chat, self._models = chat, models
        self._meter = Meter(self.tr("Context used"))
        self._meter.setFixedWidth(96)
        self._text = label("", "caption", "text2", tabular=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(10)
        row.addWidget(self._meter)
        row.addWidget(self._text)
        row.addStretch()
        self.setFixedHeight(20)
        bind(chat, Chat.used, self.update_meter)
        bind(models, Models.loaded, self.update_meter)
        bind(models, Models.context, self.update_meter)

    def update_meter(self, *_: object) -> None:
        loaded = self._models.loaded
        self._meter.setVisible(loaded is not None)
        if loaded is None:
            self._text.setText("")
            return
        used, context = self._chat.used, self._models.context
        self._meter.set_share(used / context if context else 0.0)
        said = self.tr("{used} of {context} tokens used")
        self._text.setText(said.format(used=words.grouped(used), context=words.grouped(context)))
