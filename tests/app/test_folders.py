"""Folders that the user adds: kept, looked at by window and terminal, told of, removed."""

import json
import os
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton

from app import paths, places, settings, start
from app.__main__ import main
from app.settings import Settings
from app.terminal import find_model
from app.viewmodels import folders as words
from app.viewmodels.shelf import Shelf, guidance_table
from app.widgets import folders as dialogs
from engine.errors import DownloadError
from engine.library import begun
from engine.library.hub import RemoteFile
from engine.library.index import Index
from engine.library.plan import Plan
from tests.fakes import FakeShelf, ScriptedSession
from tests.folders import write_bare

PLAN = Plan("org/model", "0" * 40, (RemoteFile("model.safetensors", 1000, None, None),))


@pytest.fixture
def added(tmp_path):
    """A folder with two models, elsewhere."""
    folder = tmp_path / "added"
    for name in ("first", "org/second"):
        (folder / name).mkdir(parents=True)
        write_bare(folder / name)
    return folder


@pytest.fixture
def program(qtbot):
    """The program over what is really on the disk."""
    made = start.build(["test"], session_factory=ScriptedSession)
    made.window.show()
    made.models.start()
    yield made
    made.window.close()
    made.worker.close()
    made.window.deleteLater()
    for part in (made.hub, made.stats, made.chat, made.models, made.alerts, made.worker):
        part.deleteLater()
    qtbot.wait(1)


@pytest.fixture
def dialog(program):
    return program.window.findChild(dialogs.FoldersDialog)


def until(qtbot, condition):
    qtbot.waitUntil(condition, timeout=60_000)


def listed(program):
    return {Path(row.key).name for row in program.models.targets if row.key}


def row(program, folder):
    return next((r for r in program.folders.rows if r.key == str(folder)), None)


def test_folders_and_the_one_for_downloads_are_kept_in_their_order(tmp_path):
    kept = Settings().with_folder("/b").with_folder("/a").with_folder("/b").with_store("/c")
    assert (kept.folders, kept.store) == (("/b", "/a", "/c"), "/c")
    settings.save(kept, tmp_path)
    assert settings.load(tmp_path) == kept
    assert kept.with_store(None) == Settings(folders=("/b", "/a", "/c"))
    assert kept.without_folder("/c") == Settings(folders=("/b", "/a"))
    assert kept.without_folder("/a").store == "/c"


@pytest.mark.parametrize(
    ("text", "folders", "store"),
    [
        ('folders = "/a"', (), None),
        (
            'folders = [1, "", "relative", "/a", "/a\\u0000b", ["/b"], "/a", "/c"]',
            ("/a", "/c"),
            None,
        ),
        ("folders = {a = 1}\nstore = 3", (), None),
        ('store = "relative"', (), None),
        ('folders = ["/a"]\nstore = "/b"', ("/a", "/b"), "/b"),
    ],
)
def test_kept_folders_of_a_wrong_kind_are_passed_over(tmp_path, text, folders, store):
    (tmp_path / settings.FILE_NAME).write_text(text)
    loaded = settings.load(tmp_path)
    assert (loaded.folders, loaded.store) == (folders, store)


def test_added_folders_stand_between_ours_and_those_of_others_each_once(tmp_path):
    (Path.home() / ".lmstudio" / "models").mkdir(parents=True)
    foreign, own = Path.home() / ".lmstudio" / "models", paths.model_folder()
    assert paths.library_folders(("/b", str(own), "/a")) == [own, Path("/b"), Path("/a"), foreign]


def test_a_shelf_looks_in_other_folders_from_the_next_look_on(tmp_path, added):
    shelf = Shelf([], tmp_path, guidance_table(), Index(None))
    assert shelf.scan() == []
    shelf.look_in([added, added / "org"], added)
    assert [entry.path for entry in shelf.scan()] == [added / "first", added / "org" / "second"]
    assert shelf.look_again() is None
    shelf.look_in([added / "org"], added)
    assert [entry.path for entry in shelf.scan()] == [added / "org" / "second"]


def test_the_terminal_looks_there_too(added, capsys):
    settings.save(Settings().with_folder(str(added)), paths.config_folder())
    assert main(["models", "--json"]) == 0
    assert {Path(m["path"]) for m in json.loads(capsys.readouterr().out)} == {
        added / "first",
        added / "org" / "second",
    }
    assert find_model("second") == added / "org" / "second"
    assert main(["drafts", "first", "--json"]) == 0
    assert [d["path"] for d in json.loads(capsys.readouterr().out) if d["path"]] == [
        str(added / "org" / "second")
    ]
    assert main(["fit", "second", "--json"]) == 0


def test_a_download_goes_where_it_was_begun_as_long_as_it_fits(tmp_path, monkeypatch):
    own, other, plain = paths.model_folder(), tmp_path / "other", tmp_path / "plain"
    for folder in (own, other, plain):
        folder.mkdir(parents=True)
    kept = Settings().with_folder(str(plain)).with_store(str(other))
    assert places.choose(PLAN, kept)[0].folder == other
    target = plain / "org" / "model"
    target.mkdir(parents=True)
    (target / f"model.safetensors{begun.PARTIAL}").write_bytes(b"x" * 400)
    # what the user put there is no download of ours
    assert places.choose(PLAN, kept)[0].folder == other
    begun.note(PLAN, target, whole=False)
    chosen, space = places.choose(PLAN, kept)
    assert (chosen.folder, space.needed) == (plain, 600)
    usage = shutil.disk_usage(tmp_path)

    def free(path):
        return usage._replace(free=599 if Path(path).is_relative_to(plain) else 10**9)

    monkeypatch.setattr(shutil, "disk_usage", free)
    assert places.choose(PLAN, kept)[0].folder == other
    assert [wanted.folder for wanted in places.unfinished(kept)] == [plain]
    (target / "model.safetensors").write_bytes(b"x" * 1000)
    chosen, space = places.choose(PLAN, kept)
    assert (chosen.folder, space.needed) == (plain, 0)


def test_a_model_is_repaired_where_it_was_fetched_and_nowhere_else(tmp_path):
    own, other, plain = paths.model_folder(), tmp_path / "other", tmp_path / "plain"
    kept = Settings().with_folder(str(plain)).with_store(str(other))
    for folder in (own, other, plain):
        (folder / "org" / "model").mkdir(parents=True)
        root = own if folder == plain else folder
        assert places.root_of(folder / "org" / "model", kept) == root
        assert places.root_of(folder / "org" / "model" / "m.gguf", kept) == root
    begun.note(PLAN, plain / "org" / "model", whole=True)
    assert places.root_of(plain / "org" / "model", kept) == plain
    assert places.root_of(tmp_path / "org" / "model", kept) == own


def test_a_folder_for_downloads_that_is_gone_is_never_made(tmp_path):
    gone = tmp_path / "unplugged"
    kept = Settings().with_store(str(gone))
    with pytest.raises(DownloadError, match=r"unplugged, which is not there\. If it is on"):
        places.choose(PLAN, kept)
    assert not gone.exists()
    assert places.choose(PLAN, Settings())[0].folder == paths.model_folder()
    assert not paths.model_folder().exists()


def test_a_folder_is_added_looked_at_kept_and_removed(qtbot, program, added):
    until(qtbot, lambda: program.models.first_run)
    program.models._looks.stop()  # nothing is found by waiting
    program.folders.add(added)
    assert row(program, added).text == "Added by you: looking for models"
    until(qtbot, lambda: listed(program) == {"first", "second"})
    assert row(program, added).text == "Added by you: 2 models"
    assert row(program, added).added
    assert settings.load(paths.config_folder()).folders == (str(added),)
    program.models._looks.stop()
    program.folders.remove(str(added))
    assert row(program, added) is None
    assert settings.load(paths.config_folder()).folders == ()
    # what runs stays listed
    until(qtbot, lambda: listed(program) != {"first", "second"})
    assert (added / "first" / "model.safetensors").exists()


def test_a_folder_within_another_lists_no_model_twice(qtbot, program, added, tmp_path):
    program.folders.add(added)
    program.folders.add(added / "org")
    (tmp_path / "link").symlink_to(added / "org")
    program.folders.add(tmp_path / "link")
    assert program.folders.said == f"Models are looked for in {added / 'org'} already."
    program.folders.add(added)
    assert program.folders.said == f"Models are looked for in {added} already."
    assert program.models.settings.folders == (str(added), str(added / "org"))
    until(qtbot, lambda: len(listed(program)) == 2)
    keys = [r.key for r in program.models.targets if r.key]
    assert len(keys) == len(set(keys)) == 2
    until(qtbot, lambda: row(program, added).text == "Added by you: 2 models")
    assert row(program, added / "org").text == "Added by you: 1 model"


def test_each_row_says_whose_it_is_and_what_is_wrong(qtbot, program, added, tmp_path):
    for name in ("xdg_cache_home/huggingface/hub", ".lmstudio/models", ".ollama/models"):
        (Path.home() / name).mkdir(parents=True)
    gone = tmp_path / "gone"
    gone.mkdir()
    for folder in (gone, added / "first"):
        program.folders.add(folder)
    gone.rmdir()
    program.folders.open()
    until(qtbot, lambda: row(program, gone).wrong and row(program, added / "first").wrong)
    said = {Path(r.key).relative_to(tmp_path).as_posix(): r.text for r in program.folders.rows}
    assert said == {
        "home/slipstream/models": "Slipstream's own: no model was found. Downloads go here",
        "gone": "Added by you: it is not there. If it is on another disk, plug that in",
        "added/first": "Added by you: it is one model. Add the folder in which it lies",
        "home/xdg_cache_home/huggingface/hub": "Cache of the Hugging Face Hub: no model was found",
        "home/.lmstudio/models": "LM Studio: no model was found",
        "home/.ollama/models": "Ollama: no model was found",
    }
    assert not row(program, gone).there
    assert [r.key for r in program.folders.rows if r.added] == [str(gone), str(added / "first")]


def test_what_is_not_there_is_not_added(program, tmp_path):
    program.folders.add(tmp_path / "nothing")
    assert program.folders.said == f"{tmp_path / 'nothing'} is not there, or cannot be read."
    (tmp_path / "file").write_bytes(b"")
    program.folders.add(tmp_path / "file")
    assert program.models.settings.folders == ()


def test_a_folder_that_may_not_be_read_is_told_from_one_that_is_gone(tmp_path, monkeypatch):
    assert words.state(tmp_path) == "there"
    assert words.state(tmp_path / "gone") == "missing"
    (tmp_path / "file").write_bytes(b"")
    assert words.state(tmp_path / "file") == "missing"

    def refuse(path):
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    assert words.state(tmp_path) == "unreadable"


def test_downloads_may_go_into_a_folder_of_the_users_alone(qtbot, program, tmp_path):
    other = tmp_path / "big"
    other.mkdir()
    assert program.folders.download_to(other) == ""
    assert program.models.settings.store == str(other)
    assert "Downloads go here" in row(program, other).text
    assert "Downloads go here" not in row(program, paths.model_folder()).text
    foreign = Path.home() / ".ollama" / "models"
    (foreign / "below").mkdir(parents=True)
    for folder in (foreign, foreign / "below"):
        assert "nothing is written there" in program.folders.download_to(folder)
    assert "is not there" in program.folders.download_to(tmp_path / "gone")
    assert program.models.settings.store == str(other)
    program.folders.remove(str(other))
    assert program.models.settings.store is None
    assert "Downloads go here" in row(program, paths.model_folder()).text
    paths.model_folder().mkdir(parents=True)
    program.folders.download_to(other)
    program.folders.download_to(paths.model_folder())
    assert (program.models.settings.store, program.models.settings.folders) == (None, (str(other),))


def test_the_shelf_is_told_of_folders_and_of_the_one_for_downloads(open_program, tmp_path):
    shelf = FakeShelf()
    program = open_program(ScriptedSession(), shelf)
    program.folders.download_to(tmp_path)
    assert (shelf.folders, shelf.store) == ((paths.model_folder(), tmp_path), tmp_path)


def test_the_target_picker_leads_to_the_dialog_and_all_works_by_keyboard(
    qtbot, program, dialog, added, monkeypatch
):
    asked = []
    monkeypatch.setattr(dialogs, "ask_folder", lambda parent, title: asked.append(title) or added)
    assert not dialog.isVisible()
    program.window.sidebar.target.folders.click()
    assert dialog.isVisible()
    assert not dialog.isModal()
    dialog.activateWindow()
    until(qtbot, dialog.more.hasFocus)
    qtbot.keyClick(dialog.more, Qt.Key.Key_Space)
    assert asked == ["Folder with models"]
    line = dialog.lines[str(added)]
    until(qtbot, line.remove.isVisible)
    assert not dialog.lines[str(paths.model_folder())].remove.isVisible()
    for button in dialog.findChildren(QAbstractButton):
        assert button.accessibleName(), button
    assert line.remove.accessibleDescription() == str(added)
    for _ in range(10):
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        if line.remove.hasFocus():
            break
    qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Space)
    assert str(added) not in dialog.lines
    assert program.models.settings.folders == ()
    until(qtbot, dialog.more.hasFocus)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_the_first_screen_leads_to_the_folders_and_to_the_hub(qtbot, program, dialog):
    """Who has models elsewhere need not get another."""
    until(qtbot, lambda: program.models.first_run)
    program.window.first_run.hub.click()
    until(qtbot, program.window.hub.isVisible)
    program.window.hub.close()
    assert not dialog.isVisible()
    program.window.first_run.folders.click()
    until(qtbot, dialog.isVisible)


def test_nothing_is_added_where_the_choice_was_cancelled(program, dialog, monkeypatch):
    monkeypatch.setattr(dialogs, "ask_folder", lambda parent, title: None)
    program.folders.open()
    dialog.more.click()
    assert program.models.settings.folders == ()
    assert not dialog.said.isVisible()
    monkeypatch.setattr(dialogs, "ask_folder", lambda parent, title: Path("/nowhere/at/all"))
    dialog.more.click()
    assert dialog.said.text() == "/nowhere/at/all is not there, or cannot be read."
    assert dialog.said.isVisible()
    dialog.close()
    program.folders.open()
    assert not dialog.said.isVisible()


def test_lines_stand_in_the_order_of_the_rows(program, dialog, added, tmp_path):
    (Path.home() / ".ollama" / "models").mkdir(parents=True)
    program.folders.open()
    program.folders.add(added)
    shown = [dialog._column.itemAt(i).widget() for i in range(len(program.folders.rows))]
    assert shown == [dialog.lines[row.key] for row in program.folders.rows]
    assert [r.key for r in program.folders.rows][1] == str(added)
    reached = [dialog.more]
    while reached[-1] is not dialog.lines[program.folders.rows[-1].key].remove:
        reached.append(reached[-1].nextInFocusChain())
    buttons = [button for line in shown for button in (line.show_it, line.remove)]
    assert [widget for widget in reached if isinstance(widget, QAbstractButton)][1:] == buttons
