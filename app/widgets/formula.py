"""Formulas within a document: each is one character that is drawn, its source while it waits.

They are set by another process (`app.latex`), one at a time, and kept. Knows no answer.
"""

from collections import OrderedDict
from dataclasses import dataclass
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
    QFont,
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


@dataclass(frozen=True)
class Size:
    """Pixels over the base line, below it and from side to side; the lines of a source.

    `small` is the height of the text's small letters.
    """

    above: float
    below: float
    width: float
    small: float
    lines: tuple[str, ...] = ()

    @property
    def room(self) -> QSizeF:
        """What Qt has to keep free: as it centres an object on the small letters, ascent and
        descent must differ by their height."""
        return QSizeF(self.width, max(2 * self.above - self.small, 2 * self.below + self.small))


class FormulaObject(QPyTextObject):
    """Measures and draws the formulas of one document."""

    def __init__(self, parent: QObject, made: Setter) -> None:
        super().__init__(parent)
        self._setter = made
        self._sizes: dict[tuple[object, ...], Size] = {}

    def intrinsicSize(self, document: QTextDocument, position: int, shape: QTextFormat) -> QSizeF:
        return self._size(document, shape, self._setter.picture(of(shape))).room

    def drawObject(
        self,
        painter: QPainter,
        rect: QRectF | QRect,
        document: QTextDocument,
        position: int,
        shape: QTextFormat,
    ) -> None:
        rect, picture = QRectF(rect), self._setter.picture(of(shape))
        size = self._size(document, shape, picture)
        top = rect.top() + (rect.height() + size.small) / 2 - size.above
        place = QRectF(
            rect.left() + PADDING, top, size.width - 2 * PADDING, size.above + size.below
        )
        ink = shape.toCharFormat().foreground().color()
        if picture is not None:
            _renderer(picture, ink.name()).render(painter, place)
            return
        painter.save()
        painter.setFont(resources.code_font())
        painter.setPen(ink)
        painter.drawText(place, int(Qt.AlignmentFlag.AlignTop), "\n".join(size.lines))
        painter.restore()

    def _size(self, document: QTextDocument, shape: QTextFormat, picture: Picture | None) -> Size:
        room = document.textWidth() - 8 - 2 * PADDING
        room = room if room > 50 else 600.0
        font, source = shape.toCharFormat().font(), str(shape.property(SOURCE))
        key = (source, font.pointSizeF(), room, picture is None)
        if key not in self._sizes:
            self._sizes[key] = (
                _size_of_source(source, font, room)
                if picture is None
                else _size_of(picture, font, room)
            )
        return self._sizes[key]


def _size_of(picture: Picture, font: QFont, room: float) -> Size:
    scale = min(QFontInfo(font).pixelSize() / latex.EM, room / picture.width)
    above = (picture.height - picture.depth) * scale
    width = picture.width * scale + 2 * PADDING
    return Size(above, picture.depth * scale, width, QFontMetricsF(font).xHeight())


def _size_of_source(source: str, font: QFont, room: float) -> Size:
    metrics = QFontMetricsF(resources.code_font())
    fitting = max(int(room / metrics.horizontalAdvance("x")), 10)
    lines = tuple(
        line[start : start + fitting]
        for line in source.split("\n")
        for start in range(0, max(len(line), 1), fitting)
    )
    width = max(map(metrics.horizontalAdvance, lines)) + 2 * PADDING
    height = metrics.height() * len(lines)
    below = metrics.descent() if len(lines) == 1 else height / 2
    return Size(height - below, below, width, QFontMetricsF(font).xHeight(), lines)


@lru_cache(maxsize=200)
def _renderer(picture: Picture, ink: str) -> QSvgRenderer:
    svg = picture.svg.replace('"black"', f'"{ink}"')
    return QSvgRenderer(QByteArray(svg.encode()))
