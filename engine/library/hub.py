"""What the Hugging Face Hub answers: models by name, a repository's files, the bytes of one.

Contacts the network only where a function is called, and only the hub's endpoint (`HF_ENDPOINT`)
and where that redirects to. Knows the hub's protocol by way of huggingface_hub. Does not know
which files a model needs nor where they are kept.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeGuard
from urllib.parse import quote

from engine.errors import DownloadError
from engine.library import formats
from engine.library.answers import BAD_ADDRESS, OFFLINE, OFFLINE_ENVIRONMENT, no_hubs, said
from engine.library.answers import endpoint as endpoint

# Instead of huggingface_hub's own, which lists what is installed here and in which version.
US = {"user-agent": "slipstream"}
SECONDS_TO_CONNECT, SECONDS_WITHOUT_DATA = 10.0, 30.0
# Of what the hub lists, the kinds that may write text; heads and drafts are often of none.
WRITERS = (None, "text-generation", "image-text-to-text", "any-to-any")
PART = r"\w([\w.-]{0,94}\w)?"
NAME = re.compile(rf"(?!.*(--|\.\.)){PART}/{PART}", re.ASCII)
EXPANDED = ("downloads", "gated", "pipeline_tag", "tags")  # what a listing shall say
MOST_FILES = 10_000  # of a repository
LARGEST_ANSWER = 32 * 2**20  # bytes of a listing
SHA1, SHA256 = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Access:
    """How the hub may be asked: with which token, or, where `offline`, not at all."""

    token: str | None = field(default=None, repr=False)
    offline: bool = False


ANYONE = Access()


@dataclass(frozen=True)
class Found:
    """A repository that a search found. `gated`: its files are given after asking its owner;
    `quantisation`: the format of its weights, as `formats` calls it, where it has no others."""

    repository: str
    downloads: int
    gated: bool
    licence: str | None
    quantisation: str | None = None


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository; `size` in bytes. Large ones have a `sha256`, the others are known
    by their `blob`: the SHA-1 that git gives them."""

    name: str
    size: int
    sha256: str | None = None
    blob: str | None = None


@dataclass(frozen=True)
class Contents:
    """The files in the root of a repository, at this `commit`."""

    repository: str
    commit: str
    files: tuple[RemoteFile, ...]


def is_offline() -> bool:
    """Whether the environment says so (`HF_HUB_OFFLINE`): then nothing can be switched on."""
    from huggingface_hub import constants

    return constants.is_offline_mode()


def require_online(access: Access) -> None:
    """Raises DownloadError where nothing may be asked for."""
    if is_offline():
        raise DownloadError("offline_environment", OFFLINE_ENVIRONMENT)
    if access.offline:
        raise DownloadError("offline", OFFLINE)


def is_name(repository: str) -> bool:
    """Whether it is the name of a repository, such as “owner/model”, as the hub would take it."""
    return NAME.fullmatch(repository) is not None and not repository.endswith(".git")


def search(text: str, access: Access = ANYONE, limit: int = 30) -> list[Found]:
    """Models on the hub whose name holds `text`, most fetched first. Raises DownloadError."""
    require_online(access)
    wanted = {"search": text, "sort": "downloads", "limit": 2 * limit, "expand": EXPANDED}
    with said(text):
        found = [one for one in map(_found, _listed(wanted, access)) if one is not None]
    return found[:limit]


def _listed(wanted: Mapping[str, Any], access: Access) -> list[Any]:
    """The first page of a listing. HfApi would ask again by itself, at once and up to five times,
    of a hub that asks to wait."""
    listed = _asked("/api/models", wanted, access)
    if not isinstance(listed, list):
        raise no_hubs()
    return listed


def _asked(path: str, wanted: Mapping[str, Any], access: Access) -> Any:
    """The JSON that the hub answers; None of what is none. Raises as `said` knows it."""
    with _opened(f"{endpoint()}{path}", _headers(access), wanted) as response:
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) > LARGEST_ANSWER:
                return None
    try:
        return json.loads(data)
    # json raises RecursionError for thousands of brackets, ValueError for numbers too long.
    except (ValueError, RecursionError):
        return None


@contextmanager
def _opened(url: str, headers: Mapping[str, str], wanted: Mapping[str, Any]) -> Iterator[Any]:
    """The answer to a request, wherever it is redirected to, its body not read yet."""
    import httpx2
    from huggingface_hub import get_session, hf_raise_for_status

    timeout = httpx2.Timeout(SECONDS_WITHOUT_DATA, connect=SECONDS_TO_CONNECT)
    try:
        session = get_session()
        request = session.build_request("GET", url, params=wanted, headers=headers, timeout=timeout)
        response = session.send(request, stream=True, follow_redirects=True)
    # An address or a proxy that is none; a proxy that needs a package which is not here.
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise DownloadError("bad_address", BAD_ADDRESS) from error
    with closing(response):
        if response.is_error:
            response.read()
        hf_raise_for_status(response)
        if not response.is_success:
            raise no_hubs()
        yield response


def _headers(access: Access) -> dict[str, str]:
    return {**US, "authorization": f"Bearer {access.token}"} if access.token else dict(US)


def _found(model: Any) -> Found | None:
    """A line of a listing; None of what writes no text, or is no such line."""
    if not isinstance(model, dict) or model.get("pipeline_tag") not in WRITERS:
        return None
    repository, downloads, tags = model.get("id"), model.get("downloads"), model.get("tags")
    if not isinstance(repository, str) or not is_name(repository):
        return None
    words = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    parts = (tag.partition(":") for tag in words)
    licence = next((value for kind, _, value in parts if kind == "license"), None)
    count = downloads if type(downloads) is int else 0
    # where there are GGUF files as well, those are chosen from
    kinds = () if "gguf" in words else (word for word in words if word in formats.PACKAGES)
    return Found(repository, count, bool(model.get("gated")), licence, next(iter(kinds), None))


def contents(repository: str, revision: str | None = None, access: Access = ANYONE) -> Contents:
    """What `repository` holds at `revision` (default: its newest). Raises DownloadError."""
    if not is_name(repository):
        raise DownloadError(
            "bad_repository",
            "“{name}” is not the name of a repository, such as “owner/model”.",
            name=repository,
        )
    require_online(access)
    where = "" if revision is None else f"/revision/{quote(revision, safe='')}"
    with said(repository):
        return _contents(
            repository, _asked(f"/api/models/{repository}{where}", {"blobs": True}, access)
        )


def _contents(repository: str, answer: Any) -> Contents:
    told = answer if isinstance(answer, dict) else {}
    commit, siblings = told.get("sha"), told.get("siblings")
    if not _is_hash(commit, SHA1) or not isinstance(siblings, list):
        raise no_hubs()
    every = map(_remote, siblings[:MOST_FILES])
    return Contents(repository, commit, tuple(file for file in every if file is not None))


def _remote(sibling: Any) -> RemoteFile | None:
    """A file of the repository's root; what lies in folders, or is named oddly, is left
    out, as is what has no size. Raises DownloadError for what is no line of the hub's."""
    told = sibling if isinstance(sibling, dict) else {}
    name, size, blob = told.get("rfilename"), told.get("size"), told.get("blobId")
    large = told.get("lfs")
    sha = large.get("sha256") if isinstance(large, dict) else None
    sound = (
        (size is None or (type(size) is int and size >= 0))
        and (blob is None or _is_hash(blob, SHA1))
        and (large is None or _is_hash(sha, SHA256))
    )
    if not isinstance(name, str) or not sound:
        raise no_hubs()
    if size is None or not is_plain(name):
        return None
    # The blob of a large file is that of the note which stands for it in git.
    return RemoteFile(name, size, sha, None if large is not None else blob)


def _is_hash(value: Any, kind: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(value, str) and kind.fullmatch(value) is not None


def is_plain(name: str) -> bool:
    """Whether it names a file of a folder itself, on every system, and no hidden one."""
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    return len(parts) == 1 and name.isprintable() and not name.startswith(".")


def stream(
    repository: str,
    commit: str,
    file: RemoteFile,
    start: int,
    access: Access,
    limit: int | None = None,
) -> Iterator[bytes | None]:
    """Pieces of a file from byte `start` on, as they come; None first where the server starts at
    0 instead. Raises DownloadError above `limit` bytes; see `said` for the rest."""
    require_online(access)
    from huggingface_hub import hf_hub_url

    # whole bytes are counted: no compression on the way
    headers = {**_headers(access), "accept-encoding": "identity"}
    if start:
        headers["range"] = f"bytes={start}-"
    url = hf_hub_url(repository, file.name, revision=commit, endpoint=endpoint())
    got = 0
    with _opened(url, headers, {}) as response:
        if response.headers.get("content-type", "").lower().startswith("text/html"):
            raise no_hubs()
        if start and response.status_code != 206:
            yield None
        # Not in pieces of a fixed size: of a broken connection, the last one would be lost.
        for piece in response.iter_bytes():
            got += len(piece)
            if limit is not None and got > limit:
                raise DownloadError(
                    "file_too_large_remote",
                    "{file} of {repository} is larger than such a file may be.",
                    file=file.name,
                    repository=repository,
                )
            yield piece
