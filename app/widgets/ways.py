"""What would make a pair fit: a card with a row and a button for each way out.

Rows stay the same widgets while their verdicts change: who has the focus keeps it. Knows ways by
their words; takes none itself.
"""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.viewmodels.fit import Way
from app.widgets.common import Button, Glyph, label, rule

# By the word of a verdict: its icon, and the icon's colour.
LOOKS = {
    "fits": ("circle-check", "accent_text"),
    "tight": ("triangle-alert", "caution"),
    "no": ("circle-x", "bad"),
    "unknown": ("triangle-alert", "caution"),
}


class Ways(QFrame):
    """Empty until there is something to show; `taken` has the code of a way."""

    taken = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self._rows: dict[str, _Row] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(1, 1, 1, 1)
        self._column.setSpacing(0)

    def show_ways(self, ways: tuple[Way, ...]) -> None:
        """Show these, in their order."""
        if list(self._rows) != [way.code for way in ways]:
            self._build([way.code for way in ways])
        for way in ways:
            self._rows[way.code].show_way(way)

    def _build(self, codes: list[str]) -> None:
        while (item := self._column.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self._rows = {code: _Row() for code in codes}
        for code, row in self._rows.items():
            if self._column.count():
                self._column.addWidget(rule())
            self._column.addWidget(row)
            row.use.clicked.connect(lambda _=False, code=code: self.taken.emit(code))


class _Row(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.use = Button(self.tr("Use"), kind="small")
        self._icon = Glyph("circle-check", size=12)
        self._title = label("", "name", wrap=True)
        self._reason = label("", "caption", "text2", wrap=True, tabular=True)
        verdict = QHBoxLayout()
        verdict.setSpacing(5)
        verdict.addWidget(self._icon)
        verdict.addWidget(self._reason, 1)
        about = QVBoxLayout()
        about.setSpacing(2)
        about.addWidget(self._title)
        about.addLayout(verdict)
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 8, 8, 8)
        line.addLayout(about, 1)
        line.addWidget(self.use)

    def show_way(self, way: Way) -> None:
        self._icon.set_icon(*LOOKS[way.word])
        self._title.setText(way.title)
        self._reason.setText(way.reason)
        self.use.setAccessibleName(self.tr("Use: {way}").format(way=way.title))
