"""About the program: what it says, the notice, and a newer version, only when asked."""

import json
import socket
import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QRect, Qt

from app import notice, release
from app.release import Place
from app.viewmodels.about import About
from app.widgets.about import AboutDialog
from app.worker import Worker
from engine.errors import EngineError
from tests.fakes import ScriptedSession


class Feed(ThreadingHTTPServer):
    """Announces `body`; `asked` has the paths of all requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = []
        self.status, self.body, self.location = 200, b"", ""

    @property
    def place(self):
        home = f"http://127.0.0.1:{self.server_port}"
        return Place(f"{home}/latest.json", f"{home}/page")

    def announce(self, **values):
        self.body = json.dumps(values).encode()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        feed = self.server
        feed.asked.append((self.path, dict(self.headers)))
        self.send_response(feed.status)
        if feed.location:
            self.send_header("Location", feed.location)
        self.send_header("Content-Length", str(len(feed.body)))
        self.end_headers()
        self.wfile.write(feed.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def feed():
    made = Feed()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def about_of(qtbot, light, monkeypatch):
    """Makes the view model for a place; it is version 0.1.0."""
    monkeypatch.setattr("app.viewmodels.about._version", lambda _: "0.1.0")
    workers = []

    def making(place, online=lambda: None):
        workers.append(Worker(ScriptedSession))
        return About(workers[-1], online, lambda: "", place)

    yield making
    for worker in workers:
        worker.close()


def looked(qtbot, about):
    about.look()
    qtbot.waitUntil(lambda: not about.looking)
    return about.said


def test_nothing_is_asked_until_the_button_is_pressed(feed, about_of, qtbot):
    feed.announce(version="0.2.0", page=f"{feed.place.page}/0.2.0")
    dialog = AboutDialog(about_of(feed.place), None)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.wait(50)
    assert feed.asked == []
    dialog.look.click()
    qtbot.waitUntil(lambda: dialog.look.isEnabled())
    assert dialog.said.text() == "Version 0.2.0 is there."
    assert [path for path, _ in feed.asked] == ["/latest.json"]
    assert dialog.page.text() == f"{feed.place.page}/0.2.0"


def test_a_page_is_opened_on_click_only(feed, about_of, qtbot, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "app.widgets.about.QDesktopServices.openUrl", lambda url: not opened.append(url)
    )
    feed.announce(version="1.0")
    about = about_of(feed.place)
    dialog = AboutDialog(about, None)
    qtbot.addWidget(dialog)
    looked(qtbot, about)
    assert opened == []
    dialog.visit.click()
    assert [url.toString() for url in opened] == [feed.place.page]


def test_a_page_that_nothing_opens_is_said_and_can_be_copied(feed, about_of, qtbot, monkeypatch):
    monkeypatch.setattr("app.widgets.about.QDesktopServices.openUrl", lambda _: False)
    feed.announce(version="1.0")
    about = about_of(feed.place)
    dialog = AboutDialog(about, None)
    qtbot.addWidget(dialog)
    looked(qtbot, about)
    dialog.visit.click()
    assert dialog.said.text().startswith("No program here opens")
    assert dialog.page.text() == feed.place.page
    assert dialog.page.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse


def test_with_the_notice_it_fits_the_screen(about_of, qtbot, monkeypatch):
    monkeypatch.setattr(notice, "text", lambda: "Licence")
    low = QRect(0, 20, 1366, 600)
    monkeypatch.setattr(
        AboutDialog, "screen", lambda _: SimpleNamespace(availableGeometry=lambda: low)
    )
    dialog = AboutDialog(about_of(None), None)
    qtbot.addWidget(dialog)
    dialog.move(10, 400)
    dialog.show()
    dialog.notice.click()
    assert low.contains(dialog.geometry())


def test_nothing_of_the_user_is_told(feed):
    feed.announce(version="0.2.0")
    release.look(feed.place, "0.1.0")
    ((_, headers),) = feed.asked
    assert headers["User-Agent"] == "slipstream"
    assert set(headers) <= {"Host", "User-Agent", "Connection", "Accept-Encoding"}


@pytest.mark.parametrize(
    ("announced", "newer"),
    [("0.1.0", False), ("0.0.9", False), ("0.10.0", True), ("0.1.0rc1", False), ("1!0.1", True)],
)
def test_versions_are_compared_as_versions(feed, announced, newer):
    feed.announce(version=announced)
    assert release.look(feed.place, "0.1.0").newer is newer


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[", b"[]", b"null", b"{}", b'{"version": null}', b'{"version": "newest"}'),
        *(b"\xff\xfe", b'{"version": "9' + b"9" * 200 + b'x"}', b" " * (release.LONGEST + 1)),
        b"[" * 60_000,
    ],
)
def test_what_is_no_announcement_is_said_to_be_none(feed, body):
    feed.body = body
    with pytest.raises(EngineError) as raised:
        release.look(feed.place, "0.1.0")
    assert raised.value.code == "release_unreadable"


@pytest.mark.parametrize("status", [404, 500, 302])
def test_a_feed_that_is_gone_or_leads_away_is_told(feed, status):
    feed.status = status
    feed.location = "http://example.invalid/latest.json" if status == 302 else ""
    with pytest.raises(EngineError) as raised:
        release.look(feed.place, "0.1.0")
    refused = status == 302  # before that address is asked
    assert raised.value.code == ("release_unreadable" if refused else "release_unreachable")
    assert len(feed.asked) == 1


def test_a_server_that_cannot_be_reached_is_told(about_of, qtbot):
    place = Place("http://127.0.0.1:9/latest.json", "http://127.0.0.1:9")
    assert "could not be reached" in looked(qtbot, about_of(place))


@pytest.mark.parametrize(
    "address",
    [
        *("http://example.com/x", "ftp://example.com", "file:///etc/passwd", "javascript:x", ""),
        *("https://example.com@127.0.0.1/", "http://me:word@127.0.0.1/"),
        *(None, 7, "https://", "https://a b", "https://e\n", "https://" + "a" * 600),
    ],
)
def test_only_https_is_safe_and_another_page_gives_way_to_the_builds_own(feed, address):
    assert not release.is_safe(address)
    feed.announce(version="2", page=address)
    assert release.look(feed.place, "0.1.0").page == feed.place.page


@pytest.mark.parametrize("answer", [b"no http\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000])
def test_an_answer_that_is_no_http_is_told(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            asked = server.accept()[0]
            asked.recv(4096)
            asked.sendall(answer)
            asked.close()

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError) as raised:
            release.look(Place(address, address), "0.1.0")
        thread.join()
    assert raised.value.code == "release_unreachable"


def test_a_page_of_another_host_gives_way_to_the_builds_own(feed):
    feed.announce(version="2", page="https://example.com/get")
    assert release.look(feed.place, "0.1.0").page == feed.place.page


def test_offline_forbids_it_and_says_so(feed, about_of, qtbot):
    def online():
        raise EngineError("offline", "Offline is switched on.")

    assert looked(qtbot, about_of(feed.place, online)) == "Offline is switched on."
    assert feed.asked == []


def test_a_build_without_a_place_has_no_button_and_says_so(about_of, qtbot):
    about = about_of(release.place())
    dialog = AboutDialog(about, None)
    qtbot.addWidget(dialog)
    assert dialog.look.isHidden()
    assert "names no place" in dialog.said.text()
    about.look()
    assert not about.looking


def test_the_packaged_program_names_its_place(monkeypatch, tmp_path):
    monkeypatch.setattr("app.bundle.folder", lambda: tmp_path)
    assert release.place() is None
    for written, found in (
        ('{"feed": "https://x.org/l.json", "page": "https://x.org"}', True),
        ('{"feed": "http://x.org/l.json", "page": "https://x.org"}', False),
        ("{}", False),
        ("[", False),
    ):
        (tmp_path / release.FILE).write_text(written)
        assert (release.place() is not None) is found


def test_the_notice_is_read_when_asked_for_and_shown_whole(about_of, qtbot, monkeypatch):
    told = "".join(f"Licence of package {n}, in a line of its own\n" for n in range(30_000))
    read = []
    monkeypatch.setattr(notice, "text", lambda: read.append(1) or told)
    dialog = AboutDialog(about_of(None), None)
    qtbot.addWidget(dialog)
    dialog.show()
    assert read == []
    dialog.notice.click()
    qtbot.waitUntil(lambda: dialog.text.toPlainText() == told, timeout=20_000)
    assert len(read) == 1


def test_the_settings_lead_to_it(open_program, qtbot):
    window = open_program(ScriptedSession()).window
    window.settings.open_up()
    window.settings.about.click()
    assert window.about.isVisible()


class Package:
    """A distribution as `importlib.metadata` gives it."""

    def __init__(self, fields, files):
        self.metadata = Message()
        for name, value in fields:
            self.metadata[name] = value
        self.version, self._files = dict(fields)["Version"], files
        self.files = [f"{self.metadata['Name']}.dist-info/{name}" for name in files]

    def read_text(self, name):
        return self._files.get(name)


def test_the_notice_has_name_version_licence_home_and_texts_of_each_package():
    free = {"licenses/LICENSE": "Do as you\nlike.", "RECORD": "x", "licenses/sub/NOTICE": "By me."}
    packages = [
        Package(
            [
                ("Name", "one"),
                ("Version", "1.2"),
                ("License-Expression", "MIT"),
                ("Project-URL", "Homepage, https://one.example"),
            ],
            free,
        ),
        Package(
            [
                ("Name", "two"),
                ("Version", "3"),
                ("Home-page", "https://two.example"),
                ("Classifier", "License :: OSI Approved :: BSD License"),
            ],
            {"LICENSE.txt": "Do as  you like.", "COPYING": "Copy it.", "METADATA": "hidden"},
        ),
        Package([("Name", "three"), ("Version", "4"), ("License", "Long\ntext")], {}),
    ]
    told = notice.collect(packages)
    for words in (
        *("one 1.2\nLicence: MIT\nhttps://one.example", "Do as you\nlike.", "By me."),
        *("two 3\nLicence: BSD License\nhttps://two.example", "Copy it."),
        *("LICENSE.txt: as LICENSE of one", "three 4\nLicence: not stated", "brings no licence"),
        *("Lucide", "SmolLM2", "Lesser General Public License", "code.qt.io"),
    ):
        assert words in told
    assert "hidden" not in told
    assert told.count("Do as") == 1


def test_the_notice_of_what_is_installed_has_every_package_that_is_needed():
    names = {found.metadata["Name"].lower() for found in notice.runtime()}
    assert {"torch", "transformers", "pyside6_essentials", "shiboken6", "numpy", "jinja2"} <= names
    assert not {"pytest", "ruff", "mypy"} & names


def test_the_packaged_programs_own_notice_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr("app.bundle.folder", lambda: tmp_path)
    (tmp_path / notice.FILE).write_text("all of them", encoding="utf-8")
    assert notice.text() == "all of them"
