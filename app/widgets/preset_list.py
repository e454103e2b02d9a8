"""A list of presets to choose from, and the row that saves, renames and deletes one's own.

Also the frame that opens over a button of the composer. Knows what presets are called, not what
they hold.
"""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.viewmodels.binding import bind
from app.viewmodels.presets import PresetList
from app.viewmodels.rows import Row
from app.widgets.choices import ChoiceList
from app.widgets.common import Button, label
from app.widgets.input_method import InputMethod
from app.widgets.popover import GAP, Popover

EDGE = 12  # pixels from the window's sides
LIST_HEIGHT = 236  # pixels; from here on it scrolls


class Flyout(Popover):
    """Opens over a control that stands low in the window, left edges in line."""

    def __init__(self, parent: QWidget, name: str, width: int) -> None:
        super().__init__(parent, name, width)
        self._width = width

    def open_over(self, anchor: QWidget, *, right: bool = False) -> None:
        """Show above `anchor`, or below it where the screen leaves no room, and within the window
        as far as it reaches; with `right` the right edges are in line."""
        self._widen()
        self.adjustSize()
        mirrored = anchor.layoutDirection() == Qt.LayoutDirection.RightToLeft
        at_right = right != mirrored
        x = anchor.width() - self.width() if at_right else 0
        corner = anchor.mapToGlobal(QPoint(x, -self.height() - GAP))
        screen = anchor.screen().availableGeometry()
        if corner.y() < screen.top():
            corner.setY(anchor.mapToGlobal(QPoint(0, anchor.height() + GAP)).y())
        corner.setY(max(screen.top(), min(corner.y(), screen.bottom() - self.height())))
        window = anchor.window().geometry().adjusted(EDGE, 0, -EDGE, 0)
        for room in (window, screen):
            corner.setX(max(room.left(), min(corner.x(), room.right() - self.width())))
        self.move(corner)
        self.show()
        self.setFocus(Qt.FocusReason.PopupFocusReason)

    def _widen(self) -> None:
        """As wide as it was made for, or as its words need in a large font."""
        self.setFixedWidth(max(self._width, self.column.minimumSize().width()))


class PresetChooser(QWidget):
    """The presets as rows; `value` is asked for what is saved. As wide as `least` pixels, or as
    its buttons need."""

    chosen = Signal(object)  # the value of a preset

    def __init__(
        self,
        name: str,
        presets: PresetList[Any],
        value: Callable[[], Any],
        about: Callable[[Any], str] = lambda value: "",
        *,
        least: int = 0,
    ) -> None:
        super().__init__()
        self._least = least
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self._presets, self._value, self._about = presets, value, about
        self._shown: Any = None
        self._build(name)
        self.choices.chosen.connect(self._choose)
        self.field.textEdited.connect(self._update_buttons)
        self.field.returnPressed.connect(self._save)
        self._save_button.clicked.connect(self._save)
        self._rename_button.clicked.connect(self._rename)
        self._delete_button.clicked.connect(self._delete)
        bind(presets, PresetList.presets, self._update_rows)

    def _build(self, name: str) -> None:
        self.choices = ChoiceList(name, Qt.TextElideMode.ElideRight)
        self.choices.limit_height(LIST_HEIGHT)
        self.field = QLineEdit()
        InputMethod(self.field)
        self.field.setMaxLength(200)
        self.field.setPlaceholderText(self.tr("Name of an own preset"))
        self.field.setAccessibleName(self.tr("Name of an own preset"))
        self._save_button = Button(self.tr("Save"), kind="small")
        self._rename_button = Button(self.tr("Rename"), kind="small")
        self._delete_button = Button(self.tr("Delete"), kind="small")
        self._problem = label("", "caption", "bad", wrap=True)
        self._problem.hide()
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        for button in (self._save_button, self._rename_button, self._delete_button):
            buttons.addWidget(button)
        buttons.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.choices)
        column.addWidget(self.field)
        column.addLayout(buttons)
        column.addWidget(self._problem)
        column.addStretch()

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(max(self._least, super().minimumSizeHint().width()), hint.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width(), super().minimumSizeHint().height())

    def show_value(self, value: Any) -> None:
        """Mark the preset that holds `value`, if one does."""
        self._shown = value
        self._say("")
        self._update_rows()

    def _update_rows(self, *_: object) -> None:
        current = self._presets.holding(self._shown)
        self.choices.show_rows(
            tuple(
                Row(
                    preset.name,
                    preset.name,
                    detail=self._about(preset.value),
                    checked=preset is current,
                )
                for preset in self._presets.presets
            )
        )
        if current is not None and current.own:
            self.field.setText(current.name)
        self._update_buttons()

    def _update_buttons(self, *_: object) -> None:
        current = self._presets.holding(self._shown)
        name = " ".join(self.field.text().split())
        own = current is not None and current.own
        self._save_button.setEnabled(bool(name))
        self._rename_button.setEnabled(
            current is not None and own and bool(name) and name != current.name
        )
        self._delete_button.setEnabled(own)

    def _choose(self, name: str) -> None:
        preset = self._presets.find(name)
        if preset is not None:
            self.chosen.emit(preset.value)

    def _save(self) -> None:
        self._shown = self._value()
        self._say(self._presets.save(self.field.text(), self._shown))
        self._update_rows()

    def _rename(self) -> None:
        current = self._presets.holding(self._shown)
        if current is not None:
            self._say(self._presets.rename(current.name, self.field.text()))

    def _delete(self) -> None:
        current = self._presets.holding(self._shown)
        if current is not None:
            self._say(self._presets.delete(current.name))

    def _say(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        popover = self.window()
        if isinstance(popover, Popover):
            popover.adjustSize()
