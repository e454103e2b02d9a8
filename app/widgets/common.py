"""Small widgets in the program's dress: labels, buttons, icons, lines.

They know colours and fonts by name (`app.resources`) and no view model.
"""

import html
import re
from typing import Literal

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFrame,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStyle,
    QToolButton,
    QWidget,
)

from app import resources

ICON = 16  # pixels at the usual font size
ROUND_ICON = 8  # pixels that a button has around its icon at least
# What changes the colour or the size of an icon.
LOOKS = (QEvent.Type.PaletteChange, QEvent.Type.FontChange)

_UNIT = re.compile(r"(?<=\d) (?=%|(?:[kMG]i?B|tok/s|ms|s|min)\b)")

Kind = Literal["plain", "primary", "small", "flat", "bare", "stop", "stop_right"]


def label(
    text: str,
    role: str = "body",
    tone: str = "text",
    *,
    wrap: bool = False,
    tabular: bool = False,
) -> QLabel:
    """Plain text in a font role and a colour tone; `tabular` where its numbers change."""
    made = Label()
    made.setFont(resources.font(role, tabular=tabular))
    made.setProperty("tone", tone)
    made.setWordWrap(wrap)
    made.setText(text)
    return made


class Label(QLabel):
    """Plain text. It stands on the side that the window's direction says, whatever that of its
    words: a list of German names in an Arabic window is still read from the right."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._given = ""
        self._asked = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        self.setAlignment(self._asked)

    def setText(self, text: str) -> None:
        self._given = text
        super().setText(unbroken(text) if self.wordWrap() else text)

    def text(self) -> str:
        """As it was given."""
        return self._given

    def setAlignment(self, alignment: Qt.AlignmentFlag) -> None:
        self._asked = alignment
        placed = QStyle.visualAlignment(self.layoutDirection(), alignment)
        super().setAlignment(placed | Qt.AlignmentFlag.AlignAbsolute)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self.setAlignment(self._asked)


def isolated(text: str) -> str:
    """`text` in its own direction: what ends a sentence stays at its end where the window's
    direction is another one."""
    mirrored = QApplication.layoutDirection() is Qt.LayoutDirection.RightToLeft
    return f"\u2068{text}\u2069" if mirrored and text else text


def unbroken(text: str) -> str:
    """`text` whose numbers stay beside their units where lines are broken: "78 %", "3.1 GB"."""
    return _UNIT.sub("\u00a0", text)


def tooltip(text: str) -> str:
    """`text` for a tooltip, which would take a tag in a model's name for one."""
    text = html.escape(unbroken(text))
    return f"<qt>{text.replace(chr(10), '<br>')}</qt>" if text else ""


def device_name(name: str) -> str:
    """A graphics card's name without its maker's, which all would begin with."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")


def set_tone(widget: QWidget, tone: str) -> None:
    """Another colour of a widget's text."""
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def rule(*, vertical: bool = False) -> QFrame:
    """A one-pixel line."""
    line = QFrame()
    line.setObjectName("rule")
    if vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line


class Glyph(QWidget):
    """An icon that follows the scheme."""

    def __init__(self, name: str, ink: str = "text2", size: int = 16) -> None:
        super().__init__()
        self._name, self._ink, self._size = name, ink, size
        self._fit()

    def _fit(self) -> None:
        size = resources.scaled(self._size)
        self.setFixedSize(size, size)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def set_icon(self, name: str, ink: str) -> None:
        """Another icon, in the colour named `ink`."""
        if (name, ink) != (self._name, self._ink):
            self._name, self._ink = name, ink
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        ink = resources.colour(self._ink)
        drawn = resources.pixmap(self._name, ink, self._size, self.devicePixelRatioF())
        QPainter(self).drawPixmap(0, 0, drawn)


class Button(QPushButton):
    """A push button; focus comes by keyboard only, so the ring shows only then."""

    def __init__(
        self,
        text: str,
        *,
        icon: str = "",
        ink: str = "text2",
        kind: Kind = "plain",
        role: str = "body",
    ) -> None:
        super().__init__()
        self._icon, self._ink = icon, ink
        self.set_words(text)
        self.setProperty("kind", kind)
        self.setFont(resources.font(role))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._dress()

    def set_words(self, text: str) -> None:
        """Another text. Beside an icon it keeps a distance that no style sheet can set."""
        self.setAccessibleName(text)
        told = isolated(text)
        self.setText(f"\u2009\u2009{told}" if self._icon else told)

    def set_icon(self, icon: str, ink: str) -> None:
        """Another icon, in the colour named `ink`."""
        self._icon, self._ink = icon, ink
        self._dress()

    def set_kind(self, kind: Kind) -> None:
        """Another look."""
        self.setProperty("kind", kind)
        self.style().unpolish(self)
        self.style().polish(self)

    def _dress(self) -> None:
        self.setIcon(resources.icon(self._icon, self._ink))
        size = resources.scaled(ICON)
        self.setIconSize(QSize(size, size))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in LOOKS:
            self._dress()


class IconButton(QToolButton):
    """An icon alone, with its name as tooltip and for screen readers."""

    def __init__(
        self, name: str, icon: str, *, size: int = 30, ink: str = "text2", drawn: int = ICON
    ) -> None:
        super().__init__()
        self._icon, self._ink = icon, ink
        self._size, self._drawn = size, drawn
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._dress()

    def set_icon(self, icon: str) -> None:
        """Another icon."""
        self._icon = icon
        self._dress()

    def _dress(self) -> None:
        self.setIcon(resources.icon(self._icon, self._ink, self._drawn))
        drawn = resources.scaled(self._drawn)
        self.setIconSize(QSize(drawn, drawn))
        side = max(self._size, drawn + ROUND_ICON)
        self.setFixedSize(side, side)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in LOOKS:
            self._dress()


def bar_height() -> int:
    """Pixels of the line over the list of chats and over the transcript."""
    return max(48, round(2.3 * resources.pixels()) + 16)


class CardButton(QAbstractButton):
    """A part of a card as one button; what it shows is in its layout."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("cardButton")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        held = self.layout()
        return held.sizeHint() if held is not None else QSize(200, 48)

    def heightForWidth(self, width: int) -> int:
        held = self.layout()
        return held.totalHeightForWidth(width) if held is not None else 48

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isDown() or self.underMouse():
            fill = "selected" if self.isDown() else "hover"
            painter.setBrush(resources.colour(fill))
            painter.drawRoundedRect(self.rect(), 7, 7)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(resources.colour("accent"), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 7, 7)


class Elided(Label):
    """One line of text, shortened where it must be; the tooltip then has all of it.

    Names are shortened in the middle, since they differ at both ends; sentences at the end.
    """

    def __init__(
        self,
        role: str = "body",
        tone: str = "text",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle,
    ) -> None:
        super().__init__()
        self._mode = mode
        self._full = ""
        self.setFont(resources.font(role))
        self.setProperty("tone", tone)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_text(self, text: str) -> None:
        """Show `text`, as much of it as there is room for."""
        self._full = text
        self.setAccessibleName(text)
        self._fit()

    def _fit(self) -> None:
        metrics = QFontMetrics(self.font())
        short = metrics.elidedText(self._full, self._mode, self.width())
        self.setText(short)
        self.setToolTip("" if short == self._full else tooltip(self._full))

    def fit_font(self) -> None:
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


def takes_escape(event: QEvent) -> bool:
    """Whether Escape was pressed; then it is not the window's, where it stops an answer."""
    if not isinstance(event, QKeyEvent) or event.key() != Qt.Key.Key_Escape:
        return False
    if event.type() != QEvent.Type.ShortcutOverride:
        return False
    event.accept()
    return True
