"""The section "Memory" of the sidebar: verdict, bars, legend, context, and the ways out."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.fit import Bar, Fitting, View
from app.widgets.common import Button, Glyph, label, set_tone
from app.widgets.context_slider import ContextSlider
from app.widgets.fit_bar import DeviceBar, Legend
from app.widgets.ways import LOOKS, Ways

STEP = 512  # tokens of the slider
STATUS = 14  # pixels of the verdict's icon


class MemoryPanel(QWidget):
    """Shown once something is loaded or about to be."""

    anyway = Signal()

    def __init__(
        self, fitting: Fitting, choose_context: Callable[[int], object] | None = None
    ) -> None:
        super().__init__()
        self._fitting = fitting
        choose = choose_context or fitting.choose_context
        self._build()
        self.ways.taken.connect(fitting.take)
        self.slider.valueChanged.connect(lambda value: choose(value * STEP))
        bind(fitting, Fitting.view, self.update_view)

    def _build(self) -> None:
        self._bars = QVBoxLayout()
        self._drawn: list[DeviceBar] = []
        self._legend = Legend()
        self.slider = ContextSlider()
        self.slider.setAccessibleName(self.tr("Context in tokens"))
        self._tokens = label("", "caption", tabular=True)
        self._tokens.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._longest = label("", "caption", "text2", tabular=True)
        self._longest.setAlignment(Qt.AlignmentFlag.AlignRight)
        context = QHBoxLayout()
        context.addWidget(label(self.tr("Context"), "caption", "text2"))
        context.addWidget(self.slider, 1)
        context.addWidget(self._tokens)
        self.ways = Ways()
        self._ways_heading = label(self.tr("Ways to make it fit"), "heading")
        self._foot = QWidget()
        foot = QHBoxLayout(self._foot)
        foot.setContentsMargins(0, 4, 0, 0)
        foot.addWidget(
            label(self.tr("Nothing is changed until you choose."), "caption", "text2", wrap=True), 1
        )
        self.load_anyway = Button(self.tr("Load anyway"), kind="small")
        self.load_anyway.clicked.connect(self.anyway)
        foot.addWidget(self.load_anyway)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self._asked = label("", "caption", "text2", wrap=True)
        column.addLayout(self._headed())
        column.addWidget(self._asked)
        column.addLayout(self._bars)
        column.addWidget(self._legend)
        column.addLayout(context)
        column.addWidget(self._longest)
        column.addSpacing(6)
        column.addWidget(self._ways_heading)
        column.addWidget(self.ways)
        column.addWidget(self._foot)

    def _headed(self) -> QBoxLayout:
        """The section's name and the verdict, which stands below where both are too long."""
        self._total = label("", "caption", "text3", tabular=True)
        self._icon = Glyph("circle-check", size=STATUS)
        self.verdict = label("", "caption", tabular=True)
        # A label that does not wrap would keep the sidebar as wide as its text.
        self.verdict.setMinimumWidth(1)
        named, said = QHBoxLayout(), QHBoxLayout()
        named.addWidget(label(self.tr("Memory"), "heading"))
        named.addWidget(self._total)
        named.addStretch()
        said.setSpacing(5)
        said.addWidget(self._icon)
        said.addWidget(self.verdict, 1)
        self._named, self._said = named, said
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._head.setSpacing(3)
        self._head.addLayout(named)
        self._head.addLayout(said)
        return self._head

    def _turn_head(self) -> None:
        """Both side by side, or below one another."""
        text = QFontMetrics(self.verdict.font()).horizontalAdvance(self.verdict.text())
        taken = self._named.sizeHint().width() + self._icon.width() + self._said.spacing() + text
        below = taken + self._head.spacing() > self.width()
        way = QBoxLayout.Direction
        self._head.setDirection(way.TopToBottom if below else way.LeftToRight)
        self._head.setStretch(0, 0 if below else 1)
        self.verdict.setWordWrap(below)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn_head()

    def fit_font(self) -> None:
        self.update_view(self._fitting.view)

    def update_view(self, view: View | None) -> None:
        """Draw what is known now."""
        self.setVisible(view is not None)
        if view is None:
            return
        icon, ink = LOOKS[view.word]
        self._icon.set_icon(icon, ink)
        self.verdict.setText(view.reason)
        set_tone(self.verdict, ink if view.word == "no" else "text")
        one = len(view.bars) == 1
        self._total.setText(words.gibibytes(view.bars[0].total) if one else "")
        self._turn_head()
        self._show_bars(view.bars)
        self._legend.show_parts(view.legend)
        self._show_context(view)
        self.ways.show_ways(view.ways)
        for widget in (self._ways_heading, self.ways):
            widget.setVisible(bool(view.ways))
        self._asked.setVisible(view.waits)
        self._asked.setText(self._asked_for())
        self._foot.setVisible(view.waits)
        anyway = view.word == "no"
        self.load_anyway.set_words(self.tr("Load anyway") if anyway else self.tr("Load"))

    def _asked_for(self) -> str:
        """What is judged, in words; what runs stands in the sections above."""
        pair = self._fitting.pair
        if pair is None:
            return ""
        if pair.draft is None:
            return self.tr("For {target}").format(target=pair.target.name)
        said = self.tr("For {target} with {draft}")
        return said.format(target=pair.target.name, draft=pair.draft.name)

    def _show_bars(self, bars: tuple[Bar, ...]) -> None:
        """All to one scale."""
        while len(self._drawn) > len(bars):
            last = self._drawn.pop()
            last.hide()
            last.deleteLater()
        while len(self._drawn) < len(bars):
            self._drawn.append(DeviceBar())
            self._bars.addWidget(self._drawn[-1])
        scale = max(bar.scale for bar in bars)
        for drawn, bar in zip(self._drawn, bars, strict=True):
            drawn.show_bar(bar, scale, named=len(bars) > 1)

    def _show_context(self, view: View) -> None:
        self.slider.blockSignals(True)
        self.slider.setRange(1, max(view.limit // STEP, 1))
        self.slider.setValue(view.context // STEP)
        self.slider.blockSignals(False)
        self.slider.show_longest(None if view.longest is None else view.longest // STEP)
        # as wide as its longest value, so that the slider stays under the pointer
        self._tokens.setMinimumWidth(0)
        self._tokens.setText(words.tokens(view.limit))
        self._tokens.setMinimumWidth(self._tokens.sizeHint().width())
        self._tokens.setText(words.tokens(view.context))
        if view.longest:
            said = self.tr("Fits up to {tokens}").format(tokens=words.tokens(view.longest))
        elif view.longest == 0:
            said = self.tr("Fits at no length")
        else:
            said = ""
        self._longest.setText(said)
        self._longest.setVisible(bool(said))
