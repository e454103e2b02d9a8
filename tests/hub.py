"""A hub of our own on this machine, that answers as scripted and counts what it was asked."""

import contextlib
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from engine.library import patience

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """Repositories by name, each a table of files; what goes wrong is set before asking.

    `fail` answers every request whose path holds the key with (status, headers); `busy` does so
    with the first of its list, which then is gone; `says` with (type, bytes). `cut` ends the
    answer for a file after so many bytes, once for each number. `lies` gives other bytes than the
    listing says, `sizes` are announced in place of the real ones. `pause` is slept between pieces
    of a file. `facts` are told of a repository beside its files. A repository in `secrets` is
    gated: its files come only with that token.
    """

    repositories: dict[str, dict[str, bytes]]
    url: str = ""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    fail: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    busy: dict[str, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    says: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    lies: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    pause: float = 0.0
    tokens: list[str | None] = field(default_factory=list)
    agents: set[str | None] = field(default_factory=set)
    facts: dict[str, dict[str, object]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def asked(self, part: str) -> int:
        """Requests whose path holds `part`."""
        return sum(part in path for path, _ in self.requests)

    def listing(self, repository: str) -> dict[str, object]:
        """What the hub says of a repository."""
        siblings = []
        for name, data in self.repositories[repository].items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            size = self.sizes.get(name, len(data))
            entry: dict[str, object] = {"rfilename": name, "size": size, "blobId": blob}
            if name.endswith((".safetensors", ".gguf", ".bin")):
                sha = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"size": size, "sha256": sha, "pointerSize": 134}
            siblings.append(entry)
        facts = {"id": repository, "sha": COMMIT, "siblings": siblings, "downloads": 7}
        return facts | self.facts.get(repository, {})


@contextlib.contextmanager
def serving(
    repositories: dict[str, dict[str, bytes]],
    tls: ssl.SSLContext | None = None,
    kind: "type[Handler] | None" = None,
) -> Iterator[Hub]:
    """A hub with these repositories, until the block ends; over TLS where `tls` says how. `kind`
    answers as something else than a hub."""
    hub = Hub(repositories)
    patience._free_at = 0.0  # no other hub's

    class Answering(kind or Handler):  # type: ignore[misc]
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        hub.url = hub.url.replace("http:", "https:")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers as a hub does."""

    served: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _scripted(self, path: str) -> bool:
        """Give the answer that a test has written for this path, where it has."""
        hub = self.served
        for part, (status, headers) in hub.fail.items():
            if part in path:
                self._answer(status, b"{}", headers)
                return True
        for part, answers in hub.busy.items():
            if part in path and answers:
                status, headers = answers.pop(0)
                self._answer(status, b"{}", headers)
                return True
        for part, (kind, body) in hub.says.items():
            if part in path:
                self._answer(200, body, {"Content-Type": kind})
                return True
        return False

    def do_GET(self) -> None:
        hub, path = self.served, unquote(urlsplit(self.path).path)
        hub.requests.append((path, self.headers.get("Range")))
        hub.tokens.append(self.headers.get("Authorization"))
        hub.agents.add(self.headers.get("User-Agent"))
        if self._scripted(path):
            return None
        if path == "/api/models":
            found = [hub.listing(name) for name in hub.repositories]
            return self._answer(200, json.dumps(found).encode(), {})
        if path.startswith("/api/models/"):
            name = path.removeprefix("/api/models/").split("/revision/")[0]
            if name not in hub.repositories:
                return self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return self._answer(200, json.dumps(hub.listing(name)).encode(), {})
        repository, _, rest = path.lstrip("/").partition("/resolve/")
        file = rest.partition("/")[2]
        data = hub.repositories.get(repository, {}).get(file)
        if data is None:
            return self._answer(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        secret = hub.secrets.get(repository)
        if secret is not None and self.headers.get("Authorization") != f"Bearer {secret}":
            return self._answer(403, b"{}", {"X-Error-Code": "GatedRepo"})
        return self._file(file, hub.lies.get(file, data))

    def _file(self, name: str, data: bytes) -> None:
        start, status, headers = 0, 200, {}
        asked = self.headers.get("Range")
        if asked and self.served.ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) - start))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        cuts = self.served.cut.get(name)
        end = start + cuts.pop(0) if cuts else len(data)
        with contextlib.suppress(ConnectionError):  # who asked has gone
            for at in range(start, min(end, len(data)), 1 << 14):
                self.wfile.write(data[at : min(at + (1 << 14), end)])
                time.sleep(self.served.pause)
        if end < len(data):
            self.close_connection = True

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for key, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)
