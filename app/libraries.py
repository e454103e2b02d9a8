"""The system's libraries that a window needs: are they here, before Qt is asked for one?

Qt ends the program where it cannot open a window; this tells in words what is missing. Knows how
Qt chooses its platform and where its plugins lie. Imports no Qt.
"""

import ctypes
import importlib.util
import json
import os
import re
import socket
import sys
from pathlib import Path

from app import bundle

LISTED = "system-libraries.json"  # {soname: Debian's package}, written when the program is packaged
NO_DISPLAY, MISSING = 2, 1  # exit codes
NOT_THERE = "There is no display here. The terminal commands work: slipstream chat --model starter"
_SONAME = re.compile(r"^([^\s/]+?\.so[.\d]*): ")


def platforms() -> list[str]:
    """What Qt will try, in its order; empty where there is no display. On systems other than Linux
    it is not looked for."""
    named = os.environ.get("QT_QPA_PLATFORM")
    if named:
        return [part.partition(":")[0] for part in named.split(";") if part]
    found = [("WAYLAND_DISPLAY", "wayland"), ("DISPLAY", "xcb")]
    return [platform for variable, platform in found if os.environ.get(variable)]


def trouble() -> tuple[str, int] | None:
    """Why no window can open here, and the exit code for it; None where one can."""
    if not sys.platform.startswith("linux"):
        return None
    wanted = platforms()
    if not wanted:
        return NOT_THERE, NO_DISPLAY
    refused = [_refusal(platform) for platform in wanted]
    if None in refused:
        able = zip(wanted, refused, strict=True)
        return _silence([platform for platform, refusal in able if refusal is None])
    return explain(next(filter(None, refused))), MISSING


def explain(error: str) -> str:
    """A sentence on libraries that are missing, where the system's linker said `error`."""
    packages = missing()
    if packages:
        names = " ".join(sorted(set(packages.values())))
        return (
            f"The window needs libraries that are not here: {', '.join(sorted(packages))}. "
            f"On Debian and Ubuntu they come with: sudo apt install {names}"
        )
    found = _SONAME.match(error)
    if found is None:
        return f"The window cannot open: {error}."
    return (
        f"The window needs a library that is not here: {found[1]}. On Debian and Ubuntu, "
        "libxcb-cursor0 and libegl1 bring what is usually missing."
    )


def missing() -> dict[str, str]:
    """Those that the packaged program needs and the system lacks, with the package of each; empty
    where it is not known which are needed."""
    own = bundle.folder()
    try:
        listed = json.loads((own / LISTED).read_text(encoding="utf-8")) if own else {}
    except (OSError, ValueError):
        listed = {}
    return {soname: package for soname, package in listed.items() if _fault(soname)}


def _refusal(platform: str) -> str | None:
    """What the linker says against Qt's plugin for a platform; None if nothing."""
    folder = _qt()
    if folder is None:
        return "PySide6 is not installed"
    plugins = folder / "Qt" / "plugins" / "platforms"
    found = sorted(plugins.glob(f"libq{platform.partition('-')[0]}*.so"))
    if not found:
        return f"Qt has no platform “{platform}” here"
    return _fault(str(found[0]))


def _qt() -> Path | None:
    own = bundle.folder()
    if own is not None:
        return own / "PySide6"
    spec = importlib.util.find_spec("PySide6")
    found = spec.submodule_search_locations if spec is not None else None
    return Path(found[0]) if found else None


def _fault(library: str) -> str | None:
    """Why it cannot be loaded."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return None


def _silence(platforms: list[str]) -> tuple[str, int] | None:
    """What is to be said where a display is named for each of them, and none answers."""
    asked = {"xcb": ("DISPLAY", _x_answers), "wayland": ("WAYLAND_DISPLAY", _wayland_answers)}
    kinds = [platform.partition("-")[0] for platform in platforms]
    if not all(kind in asked for kind in kinds) or any(asked[kind][1]() for kind in kinds):
        return None
    names = [named for kind in kinds if (named := os.environ.get(asked[kind][0]))]
    if not names:
        return NOT_THERE, NO_DISPLAY
    said = [f"The display {name} does not answer." for name in names]
    return " ".join([*said, NOT_THERE.partition(". ")[2]]), NO_DISPLAY


def _x_answers() -> bool:
    if not os.environ.get("DISPLAY"):
        return False
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    refused = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not refused


def _wayland_answers() -> bool:
    if os.environ.get("WAYLAND_SOCKET"):  # open already
        return True
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    address = os.path.join(folder, os.environ.get("WAYLAND_DISPLAY") or "wayland-0")
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(address)
        except OSError:
            return False
    return True
