"""LaTeX as SVG, set in a process of its own: nested input takes time without end.

Knows ziamath and what may be in its pictures. Knows no document and no colour: they are drawn
in black, in units of which an em has `EM`.
"""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from multiprocessing.connection import Connection

from engine.child import Child

EM = 20.0
SECONDS = 2.0
MAX_SVG = 400_000  # characters
_DRAWN = {"svg", "g", "path", "rect", "line", "polyline", "polygon"}


@dataclass(frozen=True)
class Formula:
    """What is to be set: LaTeX, and whether it stands on a line of its own."""

    source: str
    display: bool


@dataclass(frozen=True)
class Picture:
    """A formula as SVG; `width`, `height` and `depth` below the base line in units of `EM`."""

    svg: str
    width: float
    height: float
    depth: float


def start() -> Child:
    """A process that answers each `Formula` it is sent with a `Picture`, or None if it cannot.

    It sends None once it is ready.
    """
    return Child(_serve)


def _serve(connection: Connection) -> None:
    draw(Formula("x", False))
    connection.send(None)  # what takes long at first is done
    while True:
        try:
            formula = connection.recv()
        except EOFError:
            return
        connection.send(draw(formula))


def draw(formula: Formula) -> Picture | None:
    """The picture of a formula, or None where it cannot be read. Takes as long as it takes."""
    from ziamath.config import config
    from ziamath.zmath import Latex

    config.svg2 = False
    try:
        made = Latex(formula.source, size=EM, inline=not formula.display)
        svg = made.svg()
        root = ElementTree.fromstring(svg)
        _, top, width, height = map(float, root.attrib["viewBox"].split())
    except Exception:  # a library for trusted input raises whatever it stumbles over
        return None
    if len(svg) > MAX_SVG or not _harmless(root) or not (0 < width < 1e4 and 0 < height < 1e4):
        return None
    return Picture(svg, width, height, top + height)


def _harmless(root: ElementTree.Element) -> bool:
    """Whether a picture consists of shapes alone, without anything that points elsewhere."""
    return all(
        node.tag.rpartition("}")[2] in _DRAWN
        and not any("href" in name or "url(" in value for name, value in node.attrib.items())
        for node in root.iter()
    )
