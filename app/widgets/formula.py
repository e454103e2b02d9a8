"""Formulas within a document: each is one character that is drawn, its source while it waits.

They are set by another process (`app.latex`), one at a time, and kept. Knows no answer.
"""

from collections import OrderedDict
from functools import lru_cache

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QObject,
    QRect,
    QRectF,
    QSizeF,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QFontInfo,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from app import latex, resources
from app.latex import Formula, Picture
from engine.child import Child

KIND = QTextFormat.ObjectTypes.UserObject.value + 1
SOURCE = QTextFormat.Property.UserProperty.value + 11
LATEX = QTextFormat.Property.UserProperty.value + 12
DISPLAY = QTextFormat.Property.UserProperty.value + 13
OBJECT = "\ufffc"

MAX_CHARACTERS = 400  # a longer formula is shown as its source
MAX_FORMULAS = 300  # of one message
KEPT = 2_000
POLL_MS = 15
START_SECONDS = 30.0
IDLE_MS = 60_000
PADDING = 3.0


class Setter(QObject):
    """Has formulas set one after another; `done` when one is, or cannot be."""

    done = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept: OrderedDict[Formula, Picture | None] = OrderedDict()
        self._waiting: OrderedDict[Formula, None] = OrderedDict()
        self._child: Child | None = None
        self._ready = False
        self._spent = 0.0
        self._now: Formula | None = None
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._look)
        self._idle = QTimer(self, interval=IDLE_MS, singleShot=True)
        self._idle.timeout.connect(self.close)

    def picture(self, formula: Formula) -> Picture | None:
        """The picture if there is one by now; otherwise it is asked for."""
        if formula in self._kept:
            self._kept.move_to_end(formula)
            return self._kept[formula]
        if formula not in self._waiting and formula != self._now:
            self._waiting[formula] = None
            self._idle.stop()
            self._poll.start()
        return None

    def close(self) -> None:
        """End the other process; it starts again when it is needed."""
        if self._child is not None:
            self._child.close()
        self._child, self._ready, self._spent = None, False, 0.0

    def _look(self) -> None:
        """Take what has been set, give up what takes too long, hand out the next."""
        try:
            if self._child is None:
                self._child = latex.start()
            elif self._ready and self._now is None:
                self._hand_out(self._child)
            else:
                self._take(self._child.receive(0))
        except TimeoutError:
            self._spent += POLL_MS / 1_000
            if self._spent > (latex.SECONDS if self._ready else START_SECONDS):
                self._give_up()
        except (EOFError, OSError):
            self._give_up()

    def _hand_out(self, child: Child) -> None:
        self._spent = 0.0
        if self._waiting:
            self._now, _ = self._waiting.popitem(last=False)
            child.send(self._now)
        else:
            self._poll.stop()
            self._idle.start()

    def _take(self, answer: Picture | None) -> None:
        """The first thing that comes says that the process is ready."""
        done, self._now = self._now, None
        self._ready = True
        if done is not None:
            self._keep(done, answer)

    def _give_up(self) -> None:
        """The formula in hand, or without a process that starts all that wait, stay source."""
        lost = [self._now] if self._now is not None else list(self._waiting)
        self._now = None
        self.close()
        for formula in lost:
            self._waiting.pop(formula, None)
            self._keep(formula, None)
        if not self._waiting:
            self._poll.stop()

    def _keep(self, formula: Formula, picture: Picture | None) -> None:
        self._kept[formula] = picture
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.done.emit(formula)


def setter() -> Setter:
    """The program's one setter."""
    app = QCoreApplication.instance()
    assert app is not None
    return app.findChild(Setter) or Setter(app)


def character(
    source: str, latex_source: str, *, display: bool, base: QTextCharFormat
) -> QTextCharFormat:
    """The format that makes `OBJECT` stand for a formula; `source` is what it was written as."""
    shape = QTextCharFormat(base)
    shape.setObjectType(KIND)
    shape.setProperty(SOURCE, source)
    shape.setProperty(LATEX, latex_source)
    shape.setProperty(DISPLAY, display)
    # Qt centres the object on the small letters, so that it can lie on the base line.
    shape.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignMiddle)
    return shape


def of(shape: QTextFormat) -> Formula:
    """What a formula's format holds."""
    return Formula(str(shape.property(LATEX)), bool(shape.property(DISPLAY)))


class FormulaObject(QPyTextObject):
    """Measures and draws the formulas of one document."""

    def __init__(self, parent: QObject, made: Setter) -> None:
        super().__init__(parent)
        self._setter = made

    def intrinsicSize(self, document: QTextDocument, position: int, shape: QTextFormat) -> QSizeF:
        above, below, width = _measures(document, shape, self._setter.picture(of(shape)))
        small = QFontMetricsF(shape.toCharFormat().font()).xHeight()
        # Room is added on one side: ascent and descent must differ by the small letters' height.
        return QSizeF(width, max(2 * above - small, 2 * below + small))

    def drawObject(
        self,
        painter: QPainter,
        rect: QRectF | QRect,
        document: QTextDocument,
        position: int,
        shape: QTextFormat,
    ) -> None:
        rect = QRectF(rect)
        picture = self._setter.picture(of(shape))
        above, below, width = _measures(document, shape, picture)
        small = QFontMetricsF(shape.toCharFormat().font()).xHeight()
        base = rect.top() + (rect.height() + small) / 2
        place = QRectF(rect.left() + PADDING, base - above, width - 2 * PADDING, above + below)
        if picture is None:
            _draw_source(painter, place, document, shape)
        else:
            ink = shape.toCharFormat().foreground().color().name()
            _renderer(picture, ink).render(painter, place)


def _measures(
    document: QTextDocument, shape: QTextFormat, picture: Picture | None
) -> tuple[float, float, float]:
    """Pixels over the base line, below it, and from side to side."""
    room = document.textWidth() - 8
    room = room if room > 50 else 600.0
    if picture is None:
        lines, metrics = _source_lines(shape, room), QFontMetricsF(resources.code_font())
        width = max(map(metrics.horizontalAdvance, lines))
        height = metrics.height() * len(lines)
        below = metrics.descent() if len(lines) == 1 else height / 2
        return height - below, below, width + 2 * PADDING
    em = QFontInfo(shape.toCharFormat().font()).pixelSize()
    scale = min(em / latex.EM, (room - 2 * PADDING) / picture.width)
    above = (picture.height - picture.depth) * scale
    return above, picture.depth * scale, picture.width * scale + 2 * PADDING


def _source_lines(shape: QTextFormat, room: float) -> list[str]:
    source = str(shape.property(SOURCE))
    wide = QFontMetricsF(resources.code_font()).horizontalAdvance("x")
    fitting = max(int((room - 2 * PADDING) / wide), 10)
    return [
        line[start : start + fitting]
        for line in source.split("\n")
        for start in range(0, max(len(line), 1), fitting)
    ]


def _draw_source(
    painter: QPainter, place: QRectF, document: QTextDocument, shape: QTextFormat
) -> None:
    painter.save()
    painter.setFont(resources.code_font())
    painter.setPen(shape.toCharFormat().foreground().color())
    room = document.textWidth() - 8
    lines = _source_lines(shape, room if room > 50 else 600.0)
    painter.drawText(place, int(Qt.AlignmentFlag.AlignTop), "\n".join(lines))
    painter.restore()


@lru_cache(maxsize=200)
def _renderer(picture: Picture, ink: str) -> QSvgRenderer:
    svg = picture.svg.replace('"black"', f'"{ink}"')
    return QSvgRenderer(QByteArray(svg.encode()))
