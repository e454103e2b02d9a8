"""The graphics card: a section of the settings, and a pointer to it in the sidebar."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.gpu import Deed, Gpu, View
from app.widgets.common import Button, label, set_tone
from app.widgets.meter import Meter


class GpuSection(QFrame):
    """Hidden until the card was looked at."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self.setObjectName("card")
        self.buttons: dict[Deed, Button] = {}
        self.text = label("", wrap=True, tabular=True)
        self.detail = label("", "caption", "text2", wrap=True, tabular=True)
        self.meter = Meter(self.tr("Download"))
        self.command = label("", "caption", "text2", wrap=True)
        self.command.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.command.setAccessibleName(self.tr("Command"))
        self.copy = Button(self.tr("Copy"), icon="copy", kind="small")
        self.copy.clicked.connect(self._copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(6)
        column.addWidget(label(self.tr("Graphics card"), "section", "text3"))
        for widget in (self.text, self.meter, self.detail, self.command):
            column.addWidget(widget)
        column.addSpacing(2)
        column.addLayout(self._acts(gpu))
        bind(gpu, Gpu.view, self.update_view)

    def _acts(self, gpu: Gpu) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for deed, words in self._words().items():
            button = Button(words, kind="small")
            button.setAutoDefault(False)
            button.clicked.connect(lambda _=False, d=deed: gpu.act(d))
            button.hide()  # or the dialog is made as wide as all of them
            self.buttons[deed] = button
            row.addWidget(button)
        self.copy.setAutoDefault(False)
        row.addWidget(self.copy)
        row.addStretch()
        return row

    def _words(self) -> dict[Deed, str]:
        return {
            Deed.ENABLE: self.tr("Enable GPU"),
            Deed.GO_ON: self.tr("Go on"),
            Deed.RETRY: self.tr("Try again"),
            Deed.RESTART: self.tr("Restart"),
            Deed.CANCEL: self.tr("Cancel"),
            Deed.UNDO: self.tr("Use the CPU build again"),
            Deed.REMOVE: self.tr("Remove"),
            Deed.LOOK: self.tr("Look again"),
        }

    def update_view(self, view: View | None) -> None:
        """Show how it stands."""
        self.setVisible(view is not None)
        if view is None:
            return
        self.text.setText(view.text)
        set_tone(self.text, "bad" if view.bad else "text")
        self.detail.setText(view.detail)
        self.detail.setVisible(bool(view.detail))
        self.command.setText(view.command)
        self.command.setVisible(bool(view.command))
        self.copy.setVisible(bool(view.command))
        self.meter.setVisible(view.share is not None)
        self.meter.set_share(view.share or 0.0)
        for deed, button in self.buttons.items():
            button.setVisible(deed in view.deeds)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())


class GpuHint(QWidget):
    """That the card is not used, below what is; hidden where it is used, cannot be, or the user
    said not now."""

    asked = Signal()

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        card = QFrame()
        card.setObjectName("card")
        self.text = label("", "caption", "text2", wrap=True)
        self.enable = Button(self.tr("Enable GPU"), kind="small")
        self.later = Button(self.tr("Not now"), kind="flat")
        self.enable.clicked.connect(self.asked)
        self.later.clicked.connect(gpu.decline)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.enable)
        row.addWidget(self.later)
        row.addStretch()
        column = QVBoxLayout(card)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addWidget(self.text)
        column.addLayout(row)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 8, 0, 0)
        outer.addWidget(card)
        bind(gpu, Gpu.hint, self.update_hint)

    def update_hint(self, hint: str) -> None:
        """Say it, or nothing."""
        self.text.setText(hint)
        self.setVisible(bool(hint))
