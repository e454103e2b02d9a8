"""Read-only texts of the transcript: they grow while they stream, and never fetch anything.

One document per message. Finished blocks of an answer are written once; only the open tail is
parsed again, the less often the longer it is, and an open fence grows line by line. Knows no turn
and no view model.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from PySide6.QtCore import QEvent, QMimeData, QPointF, QRectF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFocusEvent,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QToolTip

from app import resources
from app.chats.conversation import Round
from app.widgets import formula
from app.widgets.card import Colouring, CopyCode, paint_card, paint_task
from app.widgets.caret import caret_place
from app.widgets.markdown import Block, Fence, legible, open_fence, rich, split, visible, whole
from app.widgets.selection import copied_text
from app.widgets.tint import Tint
from app.widgets.writer import CARD_PADDING, INDENT, Card, Mark, Writer, card_head

# Below this length (characters) the tail is parsed with every piece.
SHORT_TAIL = 1_500
TAIL_GROWTH = 1.2
LONGEST = 5_000  # characters in a line of plain text
NEW_COPIES = 3  # buttons that are made at once
OPENED = ("http", "https", "mailto")


class Text(QTextBrowser):
    """Plain text, selectable, as high as its content; opens web links on click only."""

    opened = Signal(QUrl)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFont(resources.font("reading"))
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(self.follow)
        self.ringed = False
        self._plain, self._column = "", 0  # what is shown; characters in its last line

    def show_plain(self, text: str) -> None:
        """Show `text` as it is. Where it only grew, what was there is left alone, and a selection
        in it."""
        _in_gui_thread()
        shown, grew = self._plain, bool(self._plain) and text.startswith(self._plain)
        self._plain = text
        if not grew:
            self.setPlainText(self._broken(text, 0))
        elif text != shown:
            kept = self.textCursor()
            kept.setKeepPositionOnInsert(True)  # nothing new joins a selection of all
            end = QTextCursor(self.document())
            end.movePosition(QTextCursor.MoveOperation.End)
            end.insertText(self._broken(text[len(shown) :], self._column))
            self.setTextCursor(kept)

    def _broken(self, text: str, column: int) -> str:
        """`text` as it can be seen, after a line of `column` characters. Qt lays out a line in
        quadratic time; a very long one is broken for the eye only."""
        lines = (" " * column + legible(text)).split("\n")
        pieces = [line[at : at + LONGEST] for line in lines for at in _steps(len(line))]
        self._column = len(pieces[-1])
        return "\n".join(pieces)[column:]

    def follow(self, url: QUrl, opener: Callable[[QUrl], object] | None = None) -> None:
        """Open a web or mail address outside; nothing else is opened by anything."""
        if url.scheme().lower() in OPENED and (url.host() or url.scheme() == "mailto"):
            self.opened.emit(url)
            (opener or QDesktopServices.openUrl)(url)

    def _fit(self, *_: object) -> None:
        height = self.document().size().height()
        self.setFixedHeight(max(round(height + 0.49), 1))

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing is loaded: an image's address may carry what was said (REM-1)."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The transcript scrolls, never one message.
        event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        keys = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.ringed = event.reason() in keys
        super().focusInEvent(event)
        self._ring()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.ringed = False
        super().focusOutEvent(event)
        self._ring()

    def _ring(self) -> None:
        """The ring is drawn by what holds the text: there is room for it."""
        holder = self.parentWidget()
        if holder is not None:
            holder.update()


class Answer(Text):
    """Markdown that grows. The rounds that made it can be shown behind it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._source = ""  # as it can be seen
        self._given = 0  # characters of it as they were given
        self._returns: list[int] = []  # where in them carriage returns are, which are not shown
        self._growing = False
        self._seen = False  # one of its cards was: before, they need no buttons
        self._copies: list[CopyCode] = []
        self._caret = QRectF()  # where it was seen last
        self._tint = Tint()
        self._later = QTimer(self, interval=0, singleShot=True)
        self._later.timeout.connect(self._tidy)
        setter = formula.setter()
        setter.done.connect(self._set_formula)
        self._formulas = formula.FormulaObject(self, setter)
        layout = self.document().documentLayout()
        layout.registerHandler(formula.KIND, self._formulas)
        layout.documentSizeChanged.connect(self._resized)
        self.viewport().setMouseTracking(True)
        self._restart()

    def grow(self, source: str, *, finished: bool) -> None:
        """Show `source`, which begins with what was shown before."""
        _in_gui_thread()
        new = source[self._given :]
        if "\r" in new:
            self._returns += [self._given + at for at, sign in enumerate(new) if sign == "\r"]
        self._given = len(source)
        self._write(visible(new), finished)

    def show_rounds(self, rounds: Sequence[Round], tinted: bool) -> None:
        """The rounds that made the text, whose runs count its characters; `tinted`: to be seen."""
        seen = self._tint.shown or tinted
        if self._returns:
            rounds = [_without(self._returns, r, at) for r, at in _begun(rounds)]
        self._tint.show_rounds(rounds, tinted=tinted)
        if seen:
            self.viewport().update()

    def rich(self) -> str:
        """The answer as safe HTML for the clipboard."""
        return rich(self._source)

    def redraw(self) -> None:
        """Write everything again, in other colours or another size."""
        selected = self.textCursor()
        anchor, position = selected.anchor(), selected.position()
        source, self._source = self._source, ""
        while self._copies:
            self._copies.pop().deleteLater()
        self.clear()
        self._restart()
        self._write(source, not self._growing)
        self._reselect(anchor, position)

    def fit_font(self) -> None:
        """The fonts stand in the document, piece by piece."""
        if self._source:
            self.redraw()

    def _restart(self) -> None:
        self._writer = Writer(self.document())
        self._colouring = Colouring(self.document())
        self._committed = 0  # characters in finished blocks
        self._parsed = 0  # characters of the tail when it was last parsed
        self._last: Block | None = None
        self._fence: Fence | None = None
        self._line = self._written = 0  # the open fence's last line, and what is written of it
        self._mark: Mark = self._writer.mark()
        self._rects: list[QRectF] = []

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            self._rects.clear()
            self._later.start()
        super().resizeEvent(event)

    # Writing.

    def _write(self, new: str, finished: bool) -> None:
        self._source += new
        changed = bool(new) or (finished and self._growing)
        self._growing = not finished
        if not changed:
            return
        edited = QTextCursor(self.document())
        edited.beginEditBlock()
        if self._fence is not None:
            self._write_code(self._fence, finished)
        if self._fence is None:
            self._write_tail(new, finished)
        edited.endEditBlock()
        kept = sum(card.position < self._mark.position for card in self._writer.cards)
        del self._rects[kept:]
        if finished:
            # Only now: within an edit a table is not known as one.
            self._writer.finish()
            self._describe()
        self._move_caret()

    def _move_caret(self) -> None:
        """Where it goes to is painted in any case: what was written is there."""
        if not self._caret.isEmpty():
            self.viewport().update(self._caret.toAlignedRect())
            self._caret = QRectF()

    def _write_tail(self, new: str, finished: bool) -> None:
        tail = len(self._source) - self._committed
        if not finished and SHORT_TAIL < tail < TAIL_GROWTH * self._parsed:
            self._writer.append(new, len(self._source) - len(new))
            return
        selection = self.textCursor()
        anchor, position = selection.anchor(), selection.position()
        self._writer.rewind(self._mark)
        self._write_blocks(finished)
        self._parsed = len(self._source) - self._committed
        self._reselect(anchor, position)

    def _write_blocks(self, finished: bool) -> None:
        tail = self._source[self._committed :]
        blocks = split(tail, after=self._last, growing=not finished)
        fence = open_fence(blocks[-1]) if blocks and not finished else None
        if fence is not None:
            # Only as far as its first line; its text is written line by line.
            begun = sum(len(block.source) for block in blocks[:-1]) + fence.begun
            blocks = split(tail[:begun], after=self._last, growing=True)
        count = len(blocks) if finished else whole(blocks)
        at = self._committed
        for index, block in enumerate(blocks):
            self._writer.write(block, at, last=finished and index == len(blocks) - 1)
            at += len(block.source)
            if index < count:
                self._commit(block, at)
        if fence is not None:
            self._fence, self._line, self._written = fence, at, at
            self._write_code(fence, finished)

    def _commit(self, block: Block, end: int) -> None:
        self._last, self._committed = block, end
        self._mark = self._writer.mark()

    def _write_code(self, fence: Fence, finished: bool) -> None:
        """Write the lines of the open fence that have come, and leave it at its end."""
        source, ended = self._source, False
        upto = self._written
        while not ended:
            end = source.find("\n", self._line)
            line = source[self._line : end if end >= 0 else len(source)]
            ended = (end >= 0 or finished) and fence.closed_by(line)
            if ended or (end >= 0 and fence.left_by(line)):
                ended = True
                break
            if end < 0:
                held = not line or (fence.may_end(line) and not finished)
                upto = upto if held else len(source)
                break
            upto, self._line = end, end + 1
        self._code(fence, upto)
        if ended or finished:
            self._leave(fence, ended)

    def _code(self, fence: Fence, upto: int) -> None:
        """The end of a line is written with the next one: the last has none."""
        if upto > self._written:
            text = self._source[self._written : upto]
            self._writer.append_code(text, self._written, indent=fence.indent)
            self._written = upto

    def _leave(self, fence: Fence, ended: bool) -> None:
        self._fence, self._parsed = None, 0
        self._writer.leave_code()
        if fence.floor:
            return  # the list around it is parsed again
        end = self._source.find("\n", self._line) + 1 if ended else 0
        end = end or len(self._source)
        self._commit(Block(self._source[self._committed : end], None), end)

    def _reselect(self, anchor: int, position: int) -> None:
        """What was selected stays so, though its block was written again."""
        end = self.document().characterCount() - 1
        cursor = self.textCursor()
        if anchor != position and max(anchor, position) <= end:
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(cursor)

    def _describe(self) -> None:
        """Screen readers are told the formulas, which are no text."""
        sources = [found.source for _, found in self._writer.formulas]
        self.setAccessibleDescription("; ".join(sources)[:2_000])

    def _set_formula(self, done: object) -> None:
        """A formula can be drawn by now: it takes another size."""
        places = [position for position, found in self._writer.formulas if found == done]
        if places:
            self.document().markContentsDirty(places[0], places[-1] - places[0] + 1)
            self._rects.clear()

    # Cards and colours.

    def _see(self, card: Card) -> None:
        if not card.seen:
            card.seen = self._seen = True
            self._later.start()

    def _resized(self) -> None:
        if self._seen:
            self._later.start()

    def _tidy(self) -> None:
        """Colour the code for a moment and see to the buttons; the rest comes a little later."""
        left = self._colouring.go_on(self._writer.cards, growing=self._growing)
        if self._place_copies() or left:
            self._later.start()

    def _rect(self, index: int) -> QRectF:
        """The card around the lines of a code block, with its head."""
        while len(self._rects) <= index:
            card = self._writer.cards[len(self._rects)]
            top = self._block_rect(card.position).top() - CARD_PADDING - card_head()
            bottom = self._block_rect(card.last).bottom() + CARD_PADDING
            width = self.document().textWidth() - card.left
            self._rects.append(QRectF(card.left, top, width, bottom - top))
        return self._rects[index]

    def _place_copies(self) -> bool:
        """A copy button over the corner of each code card; whether some are still to come."""
        cards = self._writer.cards
        while len(self._copies) > len(cards):
            self._copies.pop().deleteLater()
        missing = len(cards) - len(self._copies)
        self._copies += [CopyCode(self) for _ in range(min(missing, NEW_COPIES))]
        for index, button in enumerate(self._copies):
            button.show_card(cards[index], self._rect(index).topRight().toPoint())
        return missing > NEW_COPIES

    # Painting.

    def paintEvent(self, event: QPaintEvent) -> None:
        seen = QRectF(event.rect())
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index, card in enumerate(self._writer.cards):
            if self._rect(index).intersects(seen):
                paint_card(painter, self._rect(index), card, seen)
                self._see(card)
        if self._tint.shown or self._writer.quotes or self._writer.tasks:
            first, last = self._position(seen.topLeft()), self._position(seen.bottomRight()) + 1
            self._paint_marks(painter, first, last)
            document, places = self.document(), self._writer.places
            self._tint.paint(painter, document, places, first, last)
            self._tint.underline(painter, document, places)
        painter.end()
        super().paintEvent(event)
        if self._growing:
            # Laid out anew, as in another width, it is elsewhere.
            self._caret = caret_place(self.document(), self._writer.end)
            QPainter(self.viewport()).fillRect(self._caret, resources.colour("accent"))

    def _paint_marks(self, painter: QPainter, first: int, last: int) -> None:
        """The bars of quotes and the boxes of tasks between two positions."""
        for begin, end, depth in self._writer.quotes:
            if begin <= last and end >= first:
                painter.fillRect(self._bar(begin, end, depth), resources.colour("control"))
        for position, done in self._writer.tasks:
            if first <= position <= last:
                block = self.document().findBlock(position)
                line = block.layout().lineAt(0)
                shape, right = block.blockFormat(), self.viewport().width() - 17
                mirrored = block.textDirection() == Qt.LayoutDirection.RightToLeft
                left = right - shape.rightMargin() if mirrored else shape.leftMargin() + 3
                top = self._block_rect(position).top() + line.y()
                height = line.ascent() + line.descent()
                paint_task(painter, QRectF(left, top, 14, height), done=done)

    def _bar(self, first: int, last: int, depth: int) -> QRectF:
        """Beside a quote, from its first line to its last: Qt keeps a line's room above it."""
        block, end = self.document().findBlock(first), self.document().findBlock(last)
        top = self._block_rect(first).top() + block.layout().lineAt(0).y()
        line = end.layout().lineAt(max(end.layout().lineCount() - 1, 0))
        bottom = self._block_rect(last).top() + line.y() + line.height()
        mirrored = block.textDirection() == Qt.LayoutDirection.RightToLeft
        inset = INDENT * depth + 2
        left = self.viewport().width() - inset - 3 if mirrored else inset
        return QRectF(left, top, 3, bottom - top)

    def _block_rect(self, position: int) -> QRectF:
        layout = self.document().documentLayout()
        return layout.blockBoundingRect(self.document().findBlock(position))

    def _position(self, point: QPointF) -> int:
        layout = self.document().documentLayout()
        return layout.hitTest(point, Qt.HitTestAccuracy.FuzzyHit)

    # The round under the pointer.

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(None)

    def _hover(self, point: QPointF | None) -> None:
        source = None
        if point is not None and self._tint.shown:
            layout = self.document().documentLayout()
            position = layout.hitTest(point, Qt.HitTestAccuracy.ExactHit)
            source = self._writer.places.source_at(position) if position >= 0 else None
        if self._tint.hover(source):
            self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            said = self._tint.words()
            if said and not self.anchorAt(event.pos()):
                QToolTip.showText(event.globalPos(), said, self.viewport())
                return True
        return super().viewportEvent(event)

    # Copying what is selected.

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text: colours of a dark window would be unreadable on white paper."""
        copied = QMimeData()
        copied.setText(copied_text(self.document(), self.textCursor()))
        return copied


def _begun(rounds: Sequence[Round]) -> Iterator[tuple[Round, int]]:
    """Each round with where its text begins."""
    at = 0
    for told in rounds:
        yield told, at
        at += sum(length for length, _ in told.runs)


def _without(returns: list[int], told: Round, at: int) -> Round:
    """A round whose runs do not count the carriage returns."""
    runs = []
    for length, drafted in told.runs:
        left_out = bisect_left(returns, at + length) - bisect_left(returns, at)
        runs.append((length - left_out, drafted))
        at += length
    return replace(told, runs=tuple(runs))


def _steps(length: int) -> range:
    return range(0, max(length, 1), LONGEST)


def _in_gui_thread() -> None:
    """Widgets are touched by the GUI thread alone; another one would corrupt them silently."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a widget was touched off the GUI thread")
