"""What drafters learned of chats: a section of the settings, to forget it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout

from app.viewmodels.conversations import Conversations
from app.widgets.common import Button, label


class LearnedSection(QFrame):
    """Says what is kept, for how long, and takes it away."""

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self.setObjectName("card")
        said = self.tr(
            "What was asked and answered is kept a second time, so that drafts can copy from other "
            "chats. It stays on this computer, and goes with its chat."
        )
        self.forget = Button(self.tr("Forget what was learned"), kind="small")
        self.forget.setAutoDefault(False)
        self.forget.clicked.connect(conversations.forget_learned)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(6)
        column.addWidget(label(self.tr("Learned from chats"), "section", "text3"))
        column.addWidget(label(said, wrap=True))
        column.addSpacing(2)
        column.addWidget(self.forget, alignment=Qt.AlignmentFlag.AlignLeading)
