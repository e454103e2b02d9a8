"""Models got from the window: searched for, planned, fetched, paused, refused, repaired."""

import logging
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QListView

from app import paths, settings
from app.hub_token import Source
from app.viewmodels.downloads import Phase
from app.viewmodels.rows import target_rows
from app.widgets import folders
from engine.library import download, patience
from engine.library.begun import PARTIAL
from engine.library.scan import scan
from tests.fakes import FakeShelf, ScriptedSession
from tests.hub import serving

WEIGHTS = bytes(range(256)) * 8192  # 2 MiB
MODEL = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": WEIGHTS,
}
KEY = "org/model/model.safetensors"
SECRET = "hf_" + "s" * 34


@pytest.fixture
def served():
    repositories = {
        "org/model": dict(MODEL),
        "org/other": dict(MODEL),
        "org/many-GGUF": {"m-Q4.gguf": b"4" * 4_000_000, "m-Q8.gguf": b"8" * 8_000_000},
    }
    with serving(repositories) as hub:
        yield hub


class Desk:
    """The program with its dialog open, and short words for what a user does and sees."""

    def __init__(self, qtbot, program):
        self.qtbot, self.program = qtbot, program
        self.hub, self.dialog = program.hub, program.window.hub
        self.pane = self.dialog.detail
        self.hub.open()
        self.until(lambda: self.dialog.field.hasFocus())

    def until(self, condition):
        self.qtbot.waitUntil(condition, timeout=20_000)

    def search(self, text):
        self.dialog.field.setText(text)
        self.dialog.look.click()
        self.until(lambda: not self.hub.searching)

    def choose(self, repository="org/model"):
        self.hub.choose(repository)
        self.until(lambda: not self.hub.detail.reading)

    def item(self, key=KEY):
        return next((item for item in self.hub.downloads.items if item.key == key), None)

    def line(self, key=KEY):
        return self.dialog.downloads.lines[key]

    def becomes(self, phase, key=KEY):
        self.until(lambda: self.item(key) is not None and self.item(key).phase is phase)

    def get(self, repository="org/model"):
        self.choose(repository)
        self.pane.get.click()

    def get_some(self, served):
        """Have a part of the model fetched, slowly."""
        served.pause = 0.01
        self.get()
        self.until(lambda: self.item() is not None and 0.05 < self.item().share < 0.9)


@pytest.fixture
def desk(qtbot, open_program, served, monkeypatch):
    def opening(shelf=None):
        program = open_program(ScriptedSession(), shelf)
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        return Desk(qtbot, program)

    return opening


def folder(name="model"):
    return paths.model_folder() / "org" / name


def test_a_model_is_found_planned_and_fetched(desk, served, qtbot):
    served.facts["org/model"] = {"downloads": 1_234_567, "tags": ["license:apache-2.0"]}
    desk = desk()
    desk.search("model")
    rows = {row.key: row for row in desk.hub.results}
    assert rows["org/model"].detail == "1.2 million downloads, apache-2.0"
    assert rows["org/other"].detail == "7 downloads"
    desk.dialog.results.chosen.emit("org/model")
    desk.until(lambda: desk.pane.get.isEnabled())
    assert desk.pane.takes.text() == "2 MB in 3 files"
    assert desk.pane.room.text().startswith("Fits: ")
    assert served.asked("model.safetensors") == 0
    with qtbot.waitSignal(desk.hub.fetched, timeout=20_000) as fetched:
        desk.pane.get.click()
    assert fetched.args == [folder()]
    assert (folder() / "model.safetensors").read_bytes() == WEIGHTS
    assert desk.line().text.text() == "In the library"
    desk.until(lambda: desk.pane.room.text().startswith("All of it is here already"))


def test_what_was_fetched_is_looked_for_in_the_library(desk, served):
    shelf = FakeShelf()
    desk = desk(shelf)
    scans = []
    shelf.scan = lambda: scans.append(1) or list(shelf.found)
    desk.get()
    desk.becomes(Phase.FINISHED)
    desk.until(lambda: bool(scans))


def test_nothing_is_asked_before_the_user_asks(desk, served, qtbot):
    desk = desk()
    desk.dialog.field.setText("model")
    qtbot.wait(300)
    assert served.requests == []
    assert "Nothing is asked of the network before" in desk.dialog.said.text()


def test_a_search_without_result_says_so_and_a_name_can_still_be_opened(desk, served):
    served.repositories.clear()
    desk = desk()
    desk.search("nothing like it")
    assert desk.dialog.said.text() == "The hub has no model for “nothing like it”."
    assert desk.dialog.said.isVisible()
    desk.search("https://huggingface.co/org/private/tree/main")
    assert [row.key for row in desk.hub.results] == ["org/private"]


def test_the_answer_to_an_earlier_question_is_not_shown(desk, served, qtbot):
    desk = desk()
    desk.hub.search("first")
    desk.hub.choose("org/model")
    desk.hub.search("")
    desk.choose("org/many-GGUF")
    desk.hub.choose_file("m-Q4.gguf")
    desk.hub.choose_file("m-Q8.gguf")
    desk.until(lambda: desk.pane.get.isEnabled())
    qtbot.wait(100)
    assert served.asked("/api/models/org/model") == 1
    assert desk.hub.results == ()
    assert not desk.hub.searching
    assert desk.pane.takes.text() == "8 MB in 1 file"


def test_of_a_collection_one_file_is_chosen_by_its_size(desk, served):
    desk = desk()
    desk.choose("org/many-GGUF")
    assert [(r.name, r.aside) for r in desk.hub.detail.choices] == [
        ("m-Q4.gguf", "4 MB"),
        ("m-Q8.gguf", "8 MB"),
    ]
    assert not desk.pane.get.isEnabled()
    assert "Choose one" in desk.pane.state.text()
    desk.pane.choices.chosen.emit("m-Q8.gguf")
    desk.until(lambda: desk.pane.get.isEnabled())
    assert desk.pane.takes.text() == "8 MB in 1 file"
    desk.pane.get.click()
    desk.becomes(Phase.FINISHED, "org/many-GGUF/m-Q8.gguf")
    assert [f.name for f in folder("many-GGUF").glob("*.gguf")] == ["m-Q8.gguf"]


def test_a_download_shows_amount_rate_and_time_left(desk, served):
    served.pause = 0.02
    desk = desk()
    desk.get()
    desk.until(lambda: "left" in desk.line().text.text())
    text = desk.line().text.text()
    assert " of 2 MB, " in text
    assert " MB a second, " in text
    desk.until(lambda: desk.hub.word.endswith(" %"))
    assert desk.program.window.sidebar.target.state.text() == desk.hub.word


def test_a_paused_download_goes_on_where_it_was(desk, served):
    desk = desk()
    desk.get_some(served)
    assert desk.line().first.text() == "Pause"
    desk.line().first.click()
    desk.becomes(Phase.PAUSED)
    assert desk.line().text.text().startswith("Paused at ")
    had = (folder() / f"model.safetensors{PARTIAL}").stat().st_size
    assert 0 < had < len(WEIGHTS)
    served.requests.clear()
    served.pause = 0
    assert desk.line().first.text() == "Resume"
    desk.line().first.click()
    desk.becomes(Phase.FINISHED)
    assert [asked for path, asked in served.requests if path.endswith("model.safetensors")] == [
        f"bytes={had}-"
    ]
    assert (folder() / "model.safetensors").read_bytes() == WEIGHTS


def test_cancelling_leaves_nothing_behind(desk, served):
    desk = desk()
    desk.get_some(served)
    assert desk.line().second.text() == "Cancel"
    desk.line().second.click()
    desk.until(lambda: desk.item() is None)
    assert not folder().exists()
    assert KEY not in desk.dialog.downloads.lines
    desk.until(lambda: desk.pane.get.isEnabled())
    served.pause = 0
    desk.pane.get.click()
    desk.becomes(Phase.FINISHED)


def test_a_second_model_waits_for_the_first(desk, served):
    desk = desk()
    desk.get_some(served)
    desk.get("org/other")
    other = "org/other/model.safetensors"
    assert desk.item(other).phase is Phase.WAITING
    assert not desk.pane.get.isEnabled()
    served.pause = 0
    desk.becomes(Phase.FINISHED)
    desk.becomes(Phase.FINISHED, other)


def test_what_waits_can_be_paused_and_thrown_away(desk, served):
    desk = desk()
    desk.get_some(served)
    desk.get("org/other")
    other = "org/other/model.safetensors"
    desk.line(other).first.click()
    assert desk.item(other).phase is Phase.PAUSED
    desk.line(other).second.click()
    assert desk.item(other) is None
    assert desk.item().phase is Phase.RUNNING


def test_a_connection_that_is_cut_off_goes_on_by_itself(desk, served):
    served.cut["model.safetensors"] = [500_000, 700_000]
    desk = desk()
    desk.get()
    desk.becomes(Phase.FINISHED)
    assert (folder() / "model.safetensors").read_bytes() == WEIGHTS
    assert served.asked("model.safetensors") == 3


def test_a_wrong_hash_is_said_and_the_retry_is_right(desk, served):
    served.lies["model.safetensors"] = b"y" * len(WEIGHTS)
    desk = desk()
    desk.get()
    desk.becomes(Phase.FAILED)
    assert "is not the expected file: its SHA-256 is" in desk.line().text.text()
    assert not (folder() / "model.safetensors").exists()
    served.lies.clear()
    assert desk.line().first.text() == "Retry"
    desk.line().first.click()
    desk.becomes(Phase.FINISHED)


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (429, {"Retry-After": "1700"}, "The hub asks to wait 1700 seconds before the next"),
        (500, {}, "The hub answered 500 instead of org/model. Try again later."),
        (404, {"X-Error-Code": "RepoNotFound"}, "There is no org/model on the hub, or it is"),
    ],
)
def test_a_refused_plan_says_why_and_can_be_tried_again(desk, served, status, headers, said):
    served.fail["/api/models/org/model"] = (status, headers)
    desk = desk()
    desk.choose()
    assert desk.pane.problem.text().startswith(said)
    assert not desk.pane.get.isVisible()
    served.fail.clear()
    patience._free_at = 0.0
    desk.pane.again.click()
    desk.until(lambda: desk.pane.get.isEnabled())
    assert not desk.pane.problem.isVisible()


def test_the_hub_is_left_alone_as_long_as_it_asks_and_the_seconds_are_counted(desk, served):
    """DLD-1 (d), while searching, looking and fetching; nothing is clicked meanwhile."""
    later = (429, {"Retry-After": "1"})
    served.busy = {p: [later] for p in ("/api/models", "/api/models/org", "model.safetensors")}
    desk = desk()
    desk.dialog.field.setText("model")
    desk.dialog.look.click()
    desk.until(lambda: desk.dialog.said.text() == "The hub asks to wait, 1 s left")
    desk.until(lambda: bool(desk.hub.results))
    desk.hub.choose("org/model")
    desk.until(lambda: desk.pane.state.text() == "The hub asks to wait, 1 s left")
    desk.until(lambda: desk.pane.get.isEnabled())
    desk.pane.get.click()
    desk.until(lambda: desk.line().text.text() == "The hub asks to wait, 1 s left")
    desk.becomes(Phase.FINISHED)
    assert served.asked("model.safetensors") == 2


def test_who_wants_something_else_does_not_wait_for_the_first(desk, served):
    served.busy = {"/api/models": [(429, {"Retry-After": "600"})]}
    desk = desk()
    desk.hub.search("first")
    desk.until(lambda: "10 min" in desk.dialog.said.text())
    desk.hub.search("")
    patience._free_at = 0.0
    desk.search("model")
    assert desk.hub.results
    assert len(served.requests) == 2


def test_offline_ends_the_wait_for_the_hub_and_says_so(desk, served):
    served.fail["/api/models"] = (429, {"Retry-After": "600"})
    desk = desk()
    desk.hub.search("model")
    desk.until(lambda: "10 min" in desk.dialog.said.text())
    desk.dialog.offline.click()
    desk.until(lambda: not desk.hub.searching)
    assert desk.dialog.said.text() == "Offline is switched on, so nothing is asked of the network."
    assert len(served.requests) == 1


@pytest.mark.parametrize(("status", "said"), [(403, "is the token right"), (500, "answered 500")])
def test_a_refusal_in_the_middle_is_said_on_its_line(desk, served, status, said):
    served.fail["model.safetensors"] = (status, {})
    desk = desk()
    desk.get()
    desk.becomes(Phase.FAILED)
    assert said in desk.line().text.text()
    assert desk.program.alerts.current is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_comes_once_the_token_is_given(desk, served, status, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    served.secrets["org/model"] = SECRET
    served.fail["resolve"] = (status, {"X-Error-Code": "GatedRepo"})
    desk = desk()
    assert not desk.dialog.token.isVisible()
    desk.choose()
    assert "given only to those who asked its owner" in desk.pane.problem.text()
    assert desk.pane.page.isVisible()
    assert desk.dialog.token.isVisible()
    served.fail.clear()
    panel = desk.dialog.token
    assert panel.field.echoMode() is QLineEdit.EchoMode.Password
    panel.field.setText("hf_wrong")
    panel.keep.click()
    desk.until(lambda: desk.hub.token is Source.MEMORY and not desk.hub.detail.reading)
    assert desk.hub.detail.locked
    panel.field.setText(SECRET)
    panel.keep.click()
    desk.until(lambda: desk.pane.get.isEnabled())
    assert "forgotten when the program ends" in panel.state.text()
    assert panel.field.text() == ""
    desk.pane.get.click()
    desk.becomes(Phase.FINISHED)
    desk.program.models.keep()
    told = capfd.readouterr()
    assert SECRET not in caplog.text + told.out + told.err
    kept = [path for path in paths.model_folder().parent.rglob("*") if path.is_file()]
    assert kept
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)
    panel.remove.click()
    desk.until(lambda: desk.hub.token is Source.NONE)
    assert not panel.remove.isVisible()


def test_a_token_that_is_asked_for_in_the_middle_is_asked_for_in_the_dialog(desk, served):
    desk = desk()
    desk.choose()
    served.secrets["org/model"] = SECRET
    desk.pane.get.click()
    desk.becomes(Phase.FAILED)
    assert desk.dialog.token.isVisible()
    desk.dialog.token.field.setText(SECRET)
    desk.dialog.token.keep.click()
    desk.until(lambda: desk.hub.token is Source.MEMORY)
    desk.line().first.click()
    desk.becomes(Phase.FINISHED)


def test_a_full_disk_is_said_before_the_first_byte(desk, served, tmp_path, monkeypatch):
    desk = desk()
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    desk.choose()
    said = "Does not fit: 2 MB are needed, 1 MB are free on the disk"
    assert desk.pane.room.text() == said
    assert not desk.pane.get.isEnabled()
    assert served.asked("model.safetensors") == 0


@pytest.fixture
def full(tmp_path, monkeypatch):
    """Our own folder is on a disk with 1 MB free, `big` on another."""
    usage = shutil.disk_usage(tmp_path)
    home = tmp_path / "home"

    def free(path):
        return usage._replace(free=10**6 if Path(path).is_relative_to(home) else 5 * 10**9)

    monkeypatch.setattr(shutil, "disk_usage", free)
    big = tmp_path / "big"
    big.mkdir()
    monkeypatch.setattr(folders, "ask_folder", lambda parent, title: big)
    return big


def test_what_does_not_fit_can_go_into_another_folder(desk, served, full, qtbot):
    """DLD-2 (a)."""
    shelf = FakeShelf()
    desk = desk(shelf)
    desk.choose()
    assert desk.pane.room.text().startswith("Does not fit: 2 MB are needed, 1 MB are free")
    assert desk.pane.place.text() == f"Goes into {paths.model_folder()}"
    assert not paths.model_folder().exists()
    asked = len(served.requests)
    assert desk.pane.elsewhere.isVisible()
    desk.pane.elsewhere.click()
    desk.until(lambda: desk.pane.get.isEnabled())
    assert desk.pane.room.text() == "Fits: 5.0 GB are free on the disk"
    assert desk.pane.place.text() == f"Goes into {full}"
    assert not desk.pane.elsewhere.isVisible()
    assert len(served.requests) == asked
    assert settings.load(paths.config_folder()).store == str(full)
    assert full in shelf.folders
    with qtbot.waitSignal(desk.hub.fetched, timeout=20_000) as fetched:
        desk.pane.get.click()
    assert fetched.args == [full / "org" / "model"]
    assert (full / "org" / "model" / "model.safetensors").read_bytes() == WEIGHTS
    assert not paths.model_folder().exists()


def test_another_folder_that_is_refused_or_not_chosen_changes_nothing(
    desk, served, full, monkeypatch
):
    desk = desk()
    desk.choose()
    monkeypatch.setattr(folders, "ask_folder", lambda parent, title: None)
    desk.pane.elsewhere.click()
    assert desk.pane.place.text() == f"Goes into {paths.model_folder()}"
    foreign = Path.home() / ".lmstudio" / "models"
    foreign.mkdir(parents=True)
    monkeypatch.setattr(folders, "ask_folder", lambda parent, title: foreign)
    desk.pane.elsewhere.click()
    assert desk.pane.place.text().endswith("is another program's; nothing is written there.")
    assert desk.program.models.settings.store is None
    assert not desk.pane.get.isEnabled()


def test_what_was_begun_stays_where_it_is_and_goes_on_there(desk, served, tmp_path):
    desk = desk()
    desk.get_some(served)
    desk.line().first.click()
    desk.becomes(Phase.PAUSED)
    other = tmp_path / "other"
    other.mkdir()
    desk.hub.move(other)
    desk.get("org/other")
    key = str(other / "org" / "other" / "model.safetensors")
    assert desk.item(key).name == f"org/other, in {other}"
    served.pause = 0
    desk.becomes(Phase.FINISHED, key)
    assert (other / "org" / "other" / "model.safetensors").read_bytes() == WEIGHTS
    had = (folder() / f"model.safetensors{PARTIAL}").stat().st_size
    served.requests.clear()
    desk.line().first.click()
    desk.becomes(Phase.FINISHED)
    assert (folder() / "model.safetensors").read_bytes() == WEIGHTS
    assert [asked for path, asked in served.requests if path.endswith("model.safetensors")] == [
        f"bytes={had}-"
    ]
    (folder() / "model.safetensors").write_bytes(b"x" * len(WEIGHTS))
    desk.hub.repair(folder())
    desk.until(lambda: (folder() / "model.safetensors").read_bytes() == WEIGHTS)
    desk.choose()
    assert desk.pane.room.text().startswith("All of it is here already")


def test_downloads_of_every_folder_are_listed_at_the_next_start(desk, served, tmp_path):
    first = desk()
    first.hub.move(tmp_path)
    key = str(tmp_path / "org" / "model" / "model.safetensors")
    served.pause = 0.01
    first.get()
    first.until(lambda: first.item(key) is not None and 0.05 < first.item(key).share < 0.9)
    first.hub.move(tmp_path / "home")  # downloads go elsewhere since
    first.program.worker.close()
    second = desk()
    second.becomes(Phase.PAUSED, key)
    second.line(key).second.click()
    second.until(lambda: not (tmp_path / "org").exists())


def test_a_folder_for_downloads_that_is_gone_is_a_sentence_and_another_is_offered(
    desk, served, tmp_path, monkeypatch
):
    disk, other = tmp_path / "disk", tmp_path / "other"
    disk.mkdir()
    other.mkdir()
    desk = desk()
    desk.choose()
    desk.hub.move(disk)
    desk.until(lambda: desk.pane.get.isEnabled())
    disk.rmdir()
    desk.pane.get.click()
    key = str(disk / "org" / "model" / "model.safetensors")
    desk.becomes(Phase.FAILED, key)
    said = f"Downloads go into {disk}, which is not there. If it is on another disk, plug that in"
    assert desk.line(key).text.text().startswith(said)
    desk.choose()
    assert desk.pane.room.text().startswith(said)
    assert not desk.pane.get.isEnabled()
    monkeypatch.setattr(folders, "ask_folder", lambda parent, title: other)
    assert desk.pane.elsewhere.isVisible()
    desk.pane.elsewhere.click()
    desk.until(lambda: desk.pane.get.isEnabled())
    assert not disk.exists()
    assert served.asked("model.safetensors") == 0


def test_a_disk_that_fills_up_is_said_too(desk, served, tmp_path, monkeypatch):
    desk = desk()
    desk.choose()
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    desk.pane.get.click()
    desk.becomes(Phase.FAILED)
    assert "MB are needed, 1 MB are free" in desk.line().text.text()


def test_offline_means_that_nothing_is_asked_of_the_network(desk, served, qtbot):
    shelf = FakeShelf()
    desk = desk(shelf)
    desk.dialog.offline.click()
    assert desk.program.window.sidebar.target.state.text() == "Offline"
    assert desk.dialog.note.isVisible()
    desk.search("model")
    assert "Offline is switched on" in desk.dialog.said.text()
    desk.choose()
    assert "Offline is switched on" in desk.pane.problem.text()
    (folder()).mkdir(parents=True)
    desk.hub.repair(folder())
    desk.becomes(Phase.FAILED, str(folder()))
    shelf.fetch = lambda report, stopped: pytest.fail("the starter was fetched")
    desk.program.models.starter.get()
    desk.until(lambda: desk.program.alerts.current is not None)
    assert "Offline" in desk.program.alerts.current.text
    assert served.requests == []
    assert settings.load(paths.config_folder()).offline
    desk.dialog.offline.click()
    desk.search("model")
    assert len(desk.hub.results) == 3
    assert not settings.load(paths.config_folder()).offline


def test_switching_offline_pauses_what_comes(desk, served):
    desk = desk()
    desk.get_some(served)
    desk.dialog.offline.click()
    desk.becomes(Phase.PAUSED)
    served.requests.clear()
    desk.line().first.click()
    desk.becomes(Phase.FAILED)
    assert "Offline" in desk.line().text.text()
    assert served.requests == []


def test_offline_by_the_environment_cannot_be_switched_off_and_says_why(qtbot, served):
    """As started with HF_HUB_OFFLINE=1, which huggingface_hub reads when it is imported."""
    from app import start

    assert constants.HF_HUB_OFFLINE
    program = start.build(["test"], session_factory=ScriptedSession, shelf=FakeShelf())
    try:
        program.window.show()
        desk = Desk(qtbot, program)
        desk.dialog.offline.click()
        assert desk.hub.offline
        assert desk.dialog.offline.isChecked()
        assert "HF_HUB_OFFLINE is set" in desk.dialog.note.text()
        desk.search("model")
        assert "HF_HUB_OFFLINE is set" in desk.dialog.said.text()
        assert served.requests == []
    finally:
        program.window.close()
        program.worker.close()
        program.window.deleteLater()


def test_what_was_begun_earlier_is_listed_with_resume_and_throw_away(desk, served):
    first = desk()
    first.get_some(served)
    first.program.worker.close()
    served.pause = 0
    second = desk()
    second.becomes(Phase.PAUSED)
    assert second.line().first.text() == "Resume"
    assert second.line().second.text() == "Throw away"
    second.line().first.click()
    second.becomes(Phase.FINISHED)
    second.hub.open()
    second.until(lambda: second.item() is None)


def test_what_was_begun_earlier_can_be_thrown_away(desk, served):
    first = desk()
    first.get_some(served)
    first.program.worker.close()
    second = desk()
    second.becomes(Phase.PAUSED)
    second.line().second.click()
    second.until(lambda: not folder().exists())
    assert second.item() is None


def test_a_damaged_model_is_repaired_by_what_is_wrong_alone(desk, served):
    desk = desk()
    desk.get()
    desk.becomes(Phase.FINISHED)
    (folder() / "model.safetensors").write_bytes(b"x")
    served.requests.clear()
    (entry,) = scan([paths.model_folder()])
    assert (entry.path, entry.fetched) == (folder(), True)
    desk.program.models.targets = target_rows([entry], "")
    desk.program.window.sidebar.target.choices.acted.emit(str(folder()))
    desk.until(lambda: (folder() / "model.safetensors").read_bytes() == WEIGHTS)
    assert [path.rpartition("/")[2] for path, _ in served.requests] == ["model.safetensors"]


def test_what_cannot_be_repaired_says_so(desk, served, tmp_path):
    desk = desk()
    desk.hub.repair(tmp_path / "elsewhere")
    key = str(tmp_path / "elsewhere")
    desk.becomes(Phase.FAILED, key)
    assert "was not fetched by this program" in desk.line(key).text.text()
    desk.line(key).second.click()
    assert desk.item(key) is None


def test_a_get_button_elsewhere_opens_the_dialog_with_its_repository(desk, served):
    desk = desk()
    desk.dialog.close()
    desk.program.models.get_asked.emit("org/other")
    assert desk.dialog.isVisible()
    desk.until(lambda: desk.pane.get.isEnabled())
    assert desk.hub.detail.repository == "org/other"


def test_everything_works_by_keyboard(desk, served, qtbot):
    desk = desk()
    dialog, window = desk.dialog, desk.program.window
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    window.activateWindow()
    desk.until(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    assert dialog.isVisible()
    assert not dialog.isModal()
    qtbot.waitUntil(lambda: dialog.field.hasFocus())
    qtbot.keyClicks(dialog.field, "model")
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    assert dialog.isVisible()
    desk.until(lambda: len(desk.hub.results) == 3)
    assert not dialog.token.isVisible()
    dialog.results.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(dialog.results, Qt.Key.Key_Down)
    qtbot.keyClick(dialog.results, Qt.Key.Key_Space)
    desk.until(lambda: desk.hub.detail is not None and not desk.hub.detail.reading)
    assert desk.hub.detail.repository == desk.hub.results[1].key
    qtbot.keyClick(desk.pane.get, Qt.Key.Key_Space)
    desk.becomes(Phase.FINISHED, f"{desk.hub.detail.repository}/model.safetensors")


def test_closing_the_dialog_does_not_end_a_download(desk, served, qtbot):
    desk = desk()
    desk.get_some(served)
    qtbot.keyClick(desk.dialog, Qt.Key.Key_Escape)
    assert not desk.dialog.isVisible()
    desk.becomes(Phase.FINISHED)


def test_everything_that_takes_the_focus_has_a_name(desk, served):
    desk = desk()
    desk.get_some(served)
    for kind in (QAbstractButton, QLineEdit, QListView):
        for widget in desk.dialog.findChildren(kind):
            assert widget.accessibleName() or widget.text(), widget


def test_the_target_picker_leads_to_the_dialog(desk, served):
    desk = desk()
    desk.dialog.close()
    desk.program.window.sidebar.target.get.click()
    assert desk.dialog.isVisible()


def test_an_error_nobody_foresaw_ends_the_search(desk, served, monkeypatch):
    from engine.library import hub

    desk = desk()
    monkeypatch.setattr(hub, "search", lambda *_: 1 / 0)
    desk.search("model")
    assert "ZeroDivisionError" in desk.dialog.said.text()
    monkeypatch.setattr(download, "space", lambda *_: 1 / 0)
    desk.choose()
    assert "ZeroDivisionError" in desk.pane.problem.text()
