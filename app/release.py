"""Is there a newer version? Asked of the one place that a build names, when the user asks.

What comes back is a stranger's: it is bounded, and nothing of it is opened or fetched unasked. A
build without a place (`release.json` in its folder) asks nobody.
"""

import contextlib
import http.client
import json
import ssl
import time
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app import bundle
from engine.errors import EngineError

FILE = "release.json"
SECONDS = 10.0  # for all of it
LONGEST = 65_536  # bytes of an answer
LONGEST_ADDRESS, LONGEST_VERSION = 500, 50  # characters
LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Place:
    """Where versions are announced: for programs and for people."""

    feed: str
    page: str


@dataclass(frozen=True)
class Release:
    """The newest version, whether it is `newer` than this one, and its page."""

    version: str
    newer: bool
    page: str


def place() -> Place | None:
    """The one that this build names; None where it names none."""
    own = bundle.folder()
    if own is None:
        return None
    try:
        named = json.loads((own / FILE).read_text(encoding="utf-8"))
        found = Place(named["feed"], named["page"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if is_safe(found.feed) and is_safe(found.page) else None


def is_safe(address: Any) -> bool:
    """Whether it is an https address; http will do within this computer."""
    if not isinstance(address, str) or len(address) > LONGEST_ADDRESS:
        return False
    if not address.isascii() or not address.isprintable() or " " in address:
        return False
    try:
        split = urlsplit(address)
        if "@" in split.netloc:  # what stands before it can be taken for the host
            return False
        return bool(split.hostname) and (
            split.scheme == "https" or (split.scheme == "http" and split.hostname in LOCAL)
        )
    except ValueError:
        return False


def look(at: Place, own: str) -> Release:
    """What is announced, compared with the version `own`. Raises EngineError."""
    from packaging.version import Version

    try:
        told = json.loads(_fetch(at.feed))
        if len(told["version"]) > LONGEST_VERSION:
            raise ValueError("it is too long")
        newest, ours = Version(told["version"]), Version(own)
        page = told.get("page")
    except (OSError, http.client.HTTPException) as error:
        raise EngineError(
            "release_unreachable",
            "{address} could not be reached: {detail}",
            address=at.feed,
            detail=str(getattr(error, "reason", error) or type(error).__name__)[:200],
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise EngineError(
            "release_unreadable",
            "What {address} answers does not announce a version.",
            address=at.feed,
        ) from error
    return Release(str(newest), newest > ours, page if _is_beside(page, at.page) else at.page)


def _is_beside(page: Any, own: str) -> bool:
    """Whether it can be opened as what the build's `own` page can: of the same host."""
    return is_safe(page) and urlsplit(page).hostname == urlsplit(own).hostname


class _Guarded(urllib.request.HTTPRedirectHandler):
    """Follows to safe addresses only."""

    def redirect_request(self, *asked: Any) -> Any:
        if not is_safe(asked[-1]):
            raise ValueError("led to an address that is not safe")
        return super().redirect_request(*asked)


def _fetch(address: str) -> bytes:
    """What is there. Raises OSError, and ValueError where it is too long."""
    asked = urllib.request.Request(address, headers={"User-Agent": "slipstream"})
    opener = urllib.request.build_opener(
        _Guarded, urllib.request.HTTPSHandler(context=_certificates())
    )
    deadline, got = time.monotonic() + SECONDS, b""
    with opener.open(asked, timeout=SECONDS) as answer:
        while piece := answer.read1(8192):
            got += piece
            if len(got) > LONGEST:
                raise ValueError("it is too long")
            if time.monotonic() > deadline:
                raise TimeoutError("it took too long")
    return got


def _certificates() -> ssl.SSLContext:
    """The system's, and those that came with the program."""
    context = ssl.create_default_context()
    with contextlib.suppress(ImportError, OSError):
        import certifi

        context.load_verify_locations(certifi.where())
    return context
