"""The program's icon as pictures of the sizes that desktops ask for, drawn by Qt from the SVG files
in `linux/icons`. The small sizes have drawings of their own, whose edges fall on pixels."""

import os
import sys
from pathlib import Path

DRAWINGS = Path(__file__).parent / "linux" / "icons"
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)


def drawing(size: int) -> Path:
    """The SVG file for that many pixels."""
    own = DRAWINGS / f"slipstream-{size}.svg"
    return own if own.exists() else DRAWINGS / "slipstream.svg"


def draw(size: int, path: Path) -> None:
    """Leave the icon at `path`, `size` pixels wide and high; the name's ending is the format."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QRectF, Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(drawing(size))).render(painter, QRectF(0, 0, size, size))
    painter.end()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not image.save(str(path)):
        raise OSError(f"{path} cannot be written")


def spread(hicolor: Path) -> None:
    """All sizes and the SVG, as the icon theme `hicolor` has them."""
    for size in SIZES:
        draw(size, hicolor / f"{size}x{size}" / "apps" / "slipstream.png")
    scalable = hicolor / "scalable" / "apps" / "slipstream.svg"
    scalable.parent.mkdir(parents=True, exist_ok=True)
    scalable.write_bytes(drawing(0).read_bytes())


if __name__ == "__main__":
    spread(Path(sys.argv[1]))
