"""What is copied of a selected text: the marks of lists and the sources of formulas included."""

from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor, QTextDocument

from app.widgets import formula
from app.widgets.writer import INDENT, TASK

_LEFT_OUT = str.maketrans({"\u2066": None, "\u2069": None, "\u2028": "\n"})


def copied_text(document: QTextDocument, chosen: QTextCursor) -> str:
    """The selected text, a line for each of its blocks, cells of a row apart by tabs."""
    first, last = chosen.selectionStart(), chosen.selectionEnd()
    text, row = "", -1
    block = document.findBlock(first)
    while block.isValid() and block.position() < last:
        if not _is_gap(block):
            line = _line(block, first, last)
            before, row = row, _row(block)
            joint = "\t" if row >= 0 and row == before else "\n"
            text += joint + line
        block = block.next()
    return text[1:]


def _line(block: QTextBlock, first: int, last: int) -> str:
    start, end = max(first - block.position(), 0), min(last - block.position(), block.length() - 1)
    raw = block.text().encode("utf-16-le", "surrogatepass")
    line = raw[2 * start : 2 * end].decode("utf-16-le", "replace")
    if formula.OBJECT in line:
        line = _with_formulas(block, start, line)
    listed = block.textList()
    if listed is not None and start == 0:
        mark = f"{listed.format().start()}." if _is_numbered(block) else "-"
        box = str(block.blockFormat().property(TASK) or "")
        shape = block.blockFormat()
        depth = int(max(shape.leftMargin(), shape.rightMargin())) // INDENT
        line = f"{'  ' * depth}{mark} {box}{line}"
    return line.translate(_LEFT_OUT)


def _with_formulas(block: QTextBlock, start: int, line: str) -> str:
    cursor = QTextCursor(block)
    pieces = line.split(formula.OBJECT)
    text, at = pieces[0], block.position() + start + _units(pieces[0])
    for piece in pieces[1:]:
        cursor.setPosition(at + 1)
        text += str(cursor.charFormat().property(formula.SOURCE) or "") + piece
        at += 1 + _units(piece)
    return text


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_numbered(block: QTextBlock) -> bool:
    style = block.textList().format().style()
    return style == style.ListDecimal


def _is_gap(block: QTextBlock) -> bool:
    """The empty line that Qt keeps beside a frame."""
    fixed = QTextBlockFormat.LineHeightTypes.FixedHeight.value
    return block.length() == 1 and block.blockFormat().lineHeightType() == fixed


def _row(block: QTextBlock) -> int:
    """The row of a table that a block is in, as a number of its own; -1 outside."""
    table = QTextCursor(block).currentTable()
    if table is None:
        return -1
    return int(table.firstPosition()) * 1_000 + table.cellAt(block.position()).row()
