"""Where an answer goes on: a thin line behind its last sign while it is written."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QTextDocument

from app.widgets.tint import x_of

WIDTH = 2
APART = 1  # pixels between the sign and the line


def caret_place(document: QTextDocument, position: int) -> QRectF:
    """The line's place in the document; nothing where the position is not laid out."""
    block = document.findBlock(position)
    line = block.layout().lineForTextPosition(position - block.position())
    if not line.isValid():
        return QRectF()
    corner = document.documentLayout().blockBoundingRect(block).topLeft()
    left = corner.x() + x_of(line, position - block.position()) + APART
    return QRectF(left, corner.y() + line.y(), WIDTH, line.ascent() + line.descent())
