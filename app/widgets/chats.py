"""The list of chats itself: keys, pointer, tooltips, a title changed in its place.

Up and Down move, typing goes to a title, Enter opens, F2 renames, Delete deletes, the menu key
shows all that can be done. Knows lines only, not what is done with them.
"""

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemDelegate, QAbstractItemView, QListView, QWidget

from app.viewmodels.chat_lines import Line
from app.widgets.chat_row import LINE, ROOT, Index, LinePainter, more_place, row_place

OPENING = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
OWN = (*OPENING, Qt.Key.Key_F2, Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class _Lines(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.lines: tuple[Line, ...] = ()

    def show(self, lines: tuple[Line, ...]) -> None:
        """Other lines; what is the same at both ends stays where it is, so nothing jumps."""
        before = self.lines
        shorter = min(len(before), len(lines))
        head = next((i for i in range(shorter) if not _same(before[i], lines[i])), shorter)
        rest = shorter - head
        tail = next((i for i in range(rest) if not _same(before[-1 - i], lines[-1 - i])), rest)
        if head + tail < len(before):
            self.beginRemoveRows(QModelIndex(), head, len(before) - tail - 1)
            self.lines = before[:head] + before[len(before) - tail :]
            self.endRemoveRows()
        if head + tail < len(lines):
            self.beginInsertRows(QModelIndex(), head, len(lines) - tail - 1)
            self.lines = lines
            self.endInsertRows()
        before, self.lines = self.lines, lines
        for i, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                self.dataChanged.emit(self.index(i), self.index(i))

    def place(self, chat: str) -> int | None:
        """Where the line of a chat is."""
        return next((i for i, line in enumerate(self.lines) if line.id == chat), None)

    def rowCount(self, parent: Index = ROOT) -> int:
        return len(self.lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line = self.lines[index.row()]
        if role == LINE:
            return line
        if role == Qt.ItemDataRole.DisplayRole:
            return line.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            opened = self.tr("Open") if line.current else ""
            pinned = self.tr("Pinned") if line.pinned else ""
            return ". ".join(part for part in (line.title, line.around, opened, pinned) if part)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not self.lines[index.row()].id:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsEditable


class Chats(QListView):
    """Lines to open; `asked` wants the menu of a chat at a place on the screen."""

    opened = Signal(object)  # Line
    renamed = Signal(str, str)  # id, title
    deleted = Signal(str)  # id
    asked = Signal(object, QPoint)  # Line
    undone = Signal()
    left = Signal()  # Up from the first line

    def __init__(self, name: str) -> None:
        super().__init__()
        self._model = _Lines()
        self._keyboard = False
        self._held: tuple[Line, ...] | None = None  # shown once no title is changed any more
        self.setModel(self._model)
        self.setItemDelegate(LinePainter(self, self.rings, self.renamed.emit))
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)

    def show_lines(self, lines: tuple[Line, ...]) -> None:
        """Show other lines; the one with the focus keeps it wherever it went."""
        if self.state() == QAbstractItemView.State.EditingState:
            self._held = lines
            return
        line, row = self.line(), self.currentIndex().row()
        self._model.show(lines)
        if line is None:
            return
        place = self._model.place(line.id)
        if place is None:  # deleted: the next one
            place = next((i for i, one in enumerate(lines) if one.id and i >= row), None)
        if place is None:
            place = next((i for i in reversed(range(len(lines))) if lines[i].id), None)
        self.setCurrentIndex(QModelIndex() if place is None else self._model.index(place))

    def line(self) -> Line | None:
        """The line with the focus, or that had it last."""
        index = self.currentIndex()
        return self._model.lines[index.row()] if index.isValid() else None

    def rename(self, chat: str) -> None:
        """Let the title of a chat be changed in its place."""
        place = self._model.place(chat)
        if place is not None:
            index = self._model.index(place)
            self.setCurrentIndex(index)
            self.scrollTo(index)
            self.edit(index)

    def enter(self) -> None:
        """Put the focus on the chat that is open, else on the first line."""
        self.setFocus(Qt.FocusReason.TabFocusReason)

    def rings(self, index: Index) -> bool:
        """Whether the row at `index` has the focus, and by keyboard."""
        return self._keyboard and self.hasFocus() and index == self.currentIndex()

    def _pick(self) -> None:
        lines = self._model.lines
        first = next((i for i, line in enumerate(lines) if line.id), None)
        place = next((i for i, line in enumerate(lines) if line.current), first)
        if place is not None:
            self.setCurrentIndex(self._model.index(place))

    def _act(self, key: int) -> None:
        line = self.line()
        if line is None:
            return
        if key in OPENING:
            self.opened.emit(line)
        elif key == Qt.Key.Key_F2:
            self.rename(line.id)
        elif key == Qt.Key.Key_Delete:
            self.deleted.emit(line.id)

    def _menu_at(self, index: QModelIndex) -> QPoint:
        place = more_place(self, row_place(self, self.visualRect(index)))
        corner = place.bottomRight() if self.isRightToLeft() else place.bottomLeft()
        return self.viewport().mapToGlobal(corner)

    def event(self, event: QEvent) -> bool:
        # Before the window's own shortcut for the same key.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            undo = event.key() == Qt.Key.Key_Z and _is_control(event)
            if undo or (event.key() in OWN and not event.modifiers()):
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._keyboard = True
        row = self.currentIndex().row()
        if event.key() in OWN:
            # A key that is held down must not delete one chat after the other.
            if not event.isAutoRepeat():
                self._act(event.key())
        elif event.key() == Qt.Key.Key_Z and _is_control(event):
            self.undone.emit()
        else:
            super().keyPressEvent(event)
            if event.key() == Qt.Key.Key_Up and row == self.currentIndex().row():
                self.left.emit()
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._keyboard = False
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        line: Line | None = index.data(LINE) if index.isValid() else None
        if event.button() != Qt.MouseButton.LeftButton or line is None or not line.id:
            return
        place = more_place(self, row_place(self, self.visualRect(index)))
        if place.contains(event.position().toPoint()):
            self.asked.emit(line, self._menu_at(index))
        else:
            self.opened.emit(line)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        line: Line | None = index.data(LINE) if index.isValid() else None
        if line is not None and line.id:
            self.asked.emit(line, self._menu_at(index) if by_key else event.globalPos())

    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._keyboard = True
        if not self.currentIndex().isValid():
            self._pick()
        super().focusInEvent(event)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        held, self._held = self._held, None
        if held is not None:
            self.show_lines(held)


def _same(some: Line, other: Line) -> bool:
    """Whether both are of one chat, or group, and of one height."""
    if some.id != other.id or bool(some.around) != bool(other.around):
        return False
    return bool(some.id) or some.title == other.title


def _is_control(event: QKeyEvent) -> bool:
    return event.modifiers() == Qt.KeyboardModifier.ControlModifier
