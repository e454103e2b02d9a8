"""The dialog that compares drafts: what to ask, the verdict, a table, charts, commands, exports."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import resources
from app.viewmodels import words
from app.viewmodels.binding import bind
from app.viewmodels.compare import LENGTHS, REPEATS, Compare
from app.viewmodels.compare_words import View
from app.widgets.common import Button, Elided, isolated, label, rule, set_tone
from app.widgets.compare_chart import KindCharts
from app.widgets.compare_table import CompareTable
from app.widgets.controls import Select
from app.widgets.meter import Meter
from engine.commands import Peer

MARGIN = 24
NARROW = 940  # pixels at the usual font size; below, the table has fewer columns
PEERS: tuple[Peer, ...] = ("llama-server", "vLLM")


class CompareDialog(QDialog):
    """Before the window, whose chat waits while it measures. Closing it stops that."""

    def __init__(self, compare: Compare, parent: QWidget) -> None:
        super().__init__(parent)
        self._compare = compare
        self.setWindowTitle(self.tr("Compare drafts"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMinimumSize(800, 420)
        self.resize(1060, 720)
        self._build()
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self._connect()
        bind(compare, Compare.view, self.update_view)

    def _build(self) -> None:
        self.table = CompareTable()
        self.charts = KindCharts()
        self.commands = CommandCard(self._compare)
        held = QWidget()
        held.setObjectName("column")
        self._results = QWidget()
        self._results.setObjectName("column")
        results = QVBoxLayout(self._results)
        results.setContentsMargins(0, 0, 0, 0)
        results.setSpacing(14)
        results.addLayout(self._verdict())
        results.addWidget(self.table)
        results.addWidget(self.charts)
        column = QVBoxLayout(held)
        column.setContentsMargins(MARGIN, 12, MARGIN, 16)
        column.setSpacing(16)
        column.addLayout(self._options())
        column.addWidget(self._results)
        column.addWidget(self.commands)
        column.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(held)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self._scroll, 1)
        whole.addWidget(rule())
        whole.addLayout(self._foot())

    def _options(self) -> QHBoxLayout:
        self.target = Elided("name")
        self.prompts = Select(self.tr("Prompts"))
        # names of files may be long
        self.prompts.setSizeAdjustPolicy(
            Select.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.prompts.setMinimumContentsLength(16)
        self.length = Select(self.tr("Answer length"))
        for tokens in LENGTHS:
            self.length.addItem(isolated(words.tokens(tokens)), tokens)
        self.repeat = Select(self.tr("Runs"))
        for times in REPEATS:
            self.repeat.addItem(isolated(self.tr("{count} of each").format(count=times)), times)
        self.target.setMinimumHeight(self.repeat.sizeHint().height())
        self.target.setMinimumWidth(resources.scaled(140))
        self.start = Button(self.tr("Run"), icon="refresh-cw")
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addLayout(_field(self.tr("Target"), self.target), 3)
        row.addLayout(_field(self.tr("Prompts"), self.prompts), 3)
        row.addLayout(_field(self.tr("Answer length"), self.length))
        row.addLayout(_field(self.tr("Runs"), self.repeat))
        row.addStretch(1)
        row.addWidget(self.start, 0, Qt.AlignmentFlag.AlignBottom)
        return row

    def _verdict(self) -> QVBoxLayout:
        self.headline = label("", "verdict", wrap=True, tabular=True)
        self.rest = label("", "body", wrap=True, tabular=True)
        self.meter = Meter(self.tr("Done"))
        self.detail = label("", "body", "text2", wrap=True, tabular=True)
        column = QVBoxLayout()
        column.setSpacing(6)
        for widget in (self.headline, self.rest, self.meter, self.detail):
            column.addWidget(widget)
        return column

    def _foot(self) -> QHBoxLayout:
        self.export = Button(self.tr("Export…"))
        self.said = label("", "caption", "text2", wrap=True)
        self.leave = Button(self.tr("Close"))
        self.use = Button(self.tr("Use the fastest"), kind="primary")
        row = QHBoxLayout()
        row.setContentsMargins(MARGIN, 12, MARGIN, 14)
        row.setSpacing(8)
        row.addWidget(self.export)
        row.addWidget(self.said, 1)
        row.addWidget(self.leave)
        row.addWidget(self.use)
        return row

    def _connect(self) -> None:
        compare = self._compare
        self.prompts.activated.connect(self._choose)
        self.length.activated.connect(lambda at: compare.set_length(self.length.itemData(at)))
        self.repeat.activated.connect(lambda at: compare.set_repeat(self.repeat.itemData(at)))
        self.start.clicked.connect(self._start)
        self.table.ticked.connect(compare.tick)
        self.export.clicked.connect(self._export)
        self.leave.clicked.connect(self.close)
        self.use.clicked.connect(self._use)

    def open_up(self) -> None:
        """Show it, or bring it to the front."""
        self._compare.open()
        self.show()
        self.raise_()
        self.activateWindow()
        self.setFocus(Qt.FocusReason.OtherFocusReason)  # no ring before a key is used

    def done(self, result: int) -> None:
        """Closing it ends what it measures; what is finished is kept."""
        self._compare.cancel()
        super().done(result)

    def update_view(self, view: View) -> None:
        """Show how it stands."""
        running = view.share is not None
        self.target.show_text(view.target)
        self._show_options(view, running)
        self.headline.setText(view.headline)
        self.rest.setText(view.rest)
        self.rest.setVisible(bool(view.rest) or running)  # the line moves nothing when it comes
        self.detail.setText(view.detail)
        self.meter.setVisible(running)
        self.meter.set_share(view.share or 0.0)
        self.table.show_lines(view.lines, locked=running)
        self.charts.show_charts(view.names, view.charts, view.twin)
        self.commands.setVisible(bool(view.charts) and not running)
        self.commands.show_commands()
        self.export.setEnabled(bool(view.charts))
        self.use.setEnabled(bool(view.fastest))
        self.said.setText(view.said)
        set_tone(self.said, "bad" if view.bad else "text2")

    def _show_options(self, view: View, running: bool) -> None:
        items = [(source.name, source.key) for source in view.sources]
        items.append((self.tr("A file…"), ""))
        kept = [self.prompts.itemText(i) for i in range(self.prompts.count())]
        if kept != [isolated(name) for name, _ in items]:
            self.prompts.clear()
            for name, key in items:
                self.prompts.addItem(isolated(name), key)
        self.prompts.setCurrentIndex(self.prompts.findData(view.source))
        self.prompts.setToolTip(self.prompts.currentText())
        self.length.setCurrentIndex(self.length.findData(view.length))
        self.repeat.setCurrentIndex(self.repeat.findData(view.repeat))
        for widget in (self.prompts, self.length, self.repeat):
            widget.setEnabled(not running)
        self.start.setEnabled(running or view.ready)
        again = self.tr("Run again") if view.charts else self.tr("Run")
        self.start.set_words(self.tr("Cancel") if running else again)
        self.start.set_icon("x" if running else "refresh-cw", "text2")

    def _choose(self, at: int) -> None:
        key = self.prompts.itemData(at)
        if key:
            self._compare.choose_source(key)
            return
        self.prompts.setCurrentIndex(self.prompts.findData(self._compare.source))
        kinds = self.tr("Prompts (*.jsonl *.json *.parquet);;All files (*)")
        name, _ = QFileDialog.getOpenFileName(self, self.tr("Prompts"), "", kinds)
        if name:
            self._compare.read(Path(name))

    def _start(self) -> None:
        if self._compare.running:
            self._compare.cancel()
        else:
            self._compare.run()

    def _use(self) -> None:
        self._compare.use_fastest()
        self.close()

    def _export(self) -> None:
        kinds = "JSON (*.json);;CSV (*.csv);;PNG (*.png)"
        name, kind = QFileDialog.getSaveFileName(self, self.tr("Export"), "comparison.json", kinds)
        if not name:
            return
        file = Path(name)
        if file.suffix.lower() not in (".json", ".csv", ".png"):
            file = Path(f"{name}.{kind[:4].strip().lower()}")
        self._compare.export(file, self.picture() if file.suffix.lower() == ".png" else b"")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.table.set_narrow(self.width() < resources.scaled(NARROW))

    def picture(self) -> bytes:
        """Verdict, table and charts as a PNG."""
        data = QByteArray()
        buffer = QBuffer(data)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        self._results.grab().save(buffer, "PNG")
        return bytes(data.data())


def _field(name: str, widget: QWidget) -> QVBoxLayout:
    """A control, with its name above."""
    said = label(name, "section", "text2")
    said.setBuddy(widget)
    column = QVBoxLayout()
    column.setSpacing(4)
    column.addWidget(said)
    column.addWidget(widget)
    return column


class CommandCard(QFrame):
    """The fastest pair as the commands of other programs."""

    def __init__(self, compare: Compare) -> None:
        super().__init__()
        self.setObjectName("card")
        self._compare = compare
        self._shown: Peer = PEERS[0]
        self.text = label("", wrap=True)
        self.text.setFont(resources.code_font(0.92))
        self.text.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.text.setAccessibleName(self.tr("Command"))
        self.note = label("", "caption", "text2", wrap=True)
        self.buttons: dict[Peer, Button] = {}
        row = QHBoxLayout()
        row.setSpacing(8)
        texts = (self.tr("Copy as llama-server command"), self.tr("Copy as vLLM command"))
        for peer, said in zip(PEERS, texts, strict=True):
            button = Button(said, icon="copy")
            button.clicked.connect(lambda _=False, p=peer: self._copy(p))
            self.buttons[peer] = button
            row.addWidget(button)
        row.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 12)
        column.setSpacing(6)
        column.addWidget(self.text)
        column.addWidget(self.note)
        column.addLayout(row)

    def show_commands(self) -> None:
        """The command last copied, at first llama-server's, and which there are."""
        if self.isHidden():
            return
        for peer, button in self.buttons.items():
            offered = self._compare.offer(peer)
            button.setEnabled(bool(offered.text))
            button.setToolTip("" if offered.text else offered.note)
            if peer == self._shown:
                self.text.setText(offered.text)
                self.text.setVisible(bool(offered.text))
                self.note.setText(offered.note)

    def _copy(self, peer: Peer) -> None:
        self._shown = peer
        self.show_commands()
        QGuiApplication.clipboard().setText(self._compare.offer(peer).text)
