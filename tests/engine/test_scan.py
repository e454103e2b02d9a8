"""The library's folders: every model is found, and a broken one hides no other."""

import os
import shutil

import pytest

from engine.api import Kind
from engine.errors import LoadError
from engine.library.scan import find, scan
from engine.library.starter import STARTER
from tests.folders import write_bare, write_gguf, write_json, write_safetensors

SHAPES = {"token_embd.weight": [2, 2]}


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


def names(folder):
    return [entry.name for entry in scan([folder])]


def test_files_and_folders_are_found_two_levels_deep(library):
    write_gguf(library / "top.gguf", SHAPES)
    write_bare(library / "one")
    (library / "publisher" / "repository").mkdir(parents=True)
    write_bare(library / "publisher" / "two")
    write_gguf(library / "publisher" / "repository" / "deep.gguf", SHAPES)
    write_bare(library / "a" / "b" / "c" / "deeper")
    (library / "notes.txt").write_text("x")
    assert names(library) == ["deep", "one", "top", "two"]


def test_an_empty_or_missing_folder_holds_nothing(library):
    assert scan([library, library / "nowhere"]) == []


def test_a_broken_model_hides_no_other(library):
    write_bare(library / "ok")
    write_bare(library / "cut")
    (library / "cut" / "model.safetensors").write_bytes(b"\x08")
    write_gguf(library / "half.gguf", SHAPES)
    os.truncate(library / "half.gguf", 30)
    (library / "gone.gguf").symlink_to(library / "nowhere")
    write_bare(library / "pickled")
    (library / "pickled" / "model.safetensors").rename(library / "pickled" / "pytorch_model.bin")
    found = {entry.name: entry for entry in scan([library])}
    assert found["ok"].info is not None
    assert found["ok"].problem is None
    for name in ("cut", "half", "gone", "pickled"):
        assert found[name].info is None
        assert found[name].problem.text
    assert len(found) == 5


def test_partial_downloads_are_no_entries(library):
    for name in ("x.gguf.partial", "x.gguf.incomplete", "._x.gguf"):
        (library / name).write_bytes(b"GGUF")
    (library / ".x.gguf.download").mkdir()
    write_gguf(library / ".x.gguf.download" / "x.gguf", SHAPES)
    assert scan([library]) == []


def test_the_cache_shows_a_repository_once(library):
    entry = library / "models--org--Some-Model"
    write_bare(entry / "snapshots" / "old")
    os.utime(entry / "snapshots" / "old", (1, 1))
    newest = write_bare(entry / "snapshots" / "new")
    (entry / "snapshots" / ".DS_Store").write_bytes(b"x")
    write_bare(library / "models--b--half" / "snapshots" / "rev")
    link = library / "models--b--half" / "snapshots" / "rev" / "model.safetensors"
    link.unlink()
    link.symlink_to("../../blobs/gone")
    half, whole = scan([library])
    assert (whole.name, whole.path) == ("Some-Model", newest)
    assert (half.name, half.problem.text) == ("half", "model.safetensors is missing.")


def test_ggufs_of_a_cached_repository_are_entries(library):
    snapshot = library / "models--org--x-GGUF" / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    for name in ("x.q4.gguf", "x.q8.gguf"):
        write_gguf(snapshot / name, SHAPES)
    write_json(snapshot / "config.json", {})
    assert {entry.path.name for entry in scan([library])} == {"x.q4.gguf", "x.q8.gguf"}


def test_a_split_gguf_is_one_entry(library):
    for part in (1, 2, 3):
        write_gguf(library / f"x-0000{part}-of-00003.gguf", SHAPES)
    assert [entry.path.name for entry in scan([library])] == ["x-00001-of-00003.gguf"]


def test_an_adapter_is_labelled(library):
    (library / "lora").mkdir()
    write_json(library / "lora" / "adapter_config.json", {})
    write_safetensors(library / "lora" / "adapter_model.safetensors", {"a": [1]})
    assert [entry.info.kind for entry in scan([library])] == [Kind.ADAPTER]


def test_equal_names_are_told_apart(library, tmp_path):
    for name in ("q4", "q8"):
        write_gguf(library / f"{name}.gguf", SHAPES, general__name="Same")
    other = tmp_path / "other"
    write_bare(other / "same")
    write_bare(library / "unique")
    found = [entry.name for entry in scan([library, other])]
    assert found == ["Same (q4.gguf)", "Same (q8.gguf)", "same (same)", "unique"]


def test_equal_folder_names_are_told_apart_by_what_holds_them(tmp_path):
    for place in ("a", "b"):
        write_bare(tmp_path / place / "m")
    assert [e.name for e in scan([tmp_path / "a", tmp_path / "b"])] == ["m (a)", "m (b)"]


def test_a_folder_given_twice_is_scanned_once(library):
    write_bare(library / "m")
    assert [entry.name for entry in scan([library, library])] == ["m"]


def test_a_path_wins_over_a_name(library, tmp_path, monkeypatch):
    write_bare(library / "m")
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "m"
    elsewhere.mkdir()
    assert find("m", [library]).resolve() == elsewhere
    elsewhere.rmdir()
    assert find("m", [library]) == library / "m"


@pytest.mark.parametrize("name", ["Some Model", "some model", "FILE", "file.gguf"])
def test_names_files_and_stems_are_found_in_any_case(library, name):
    path = write_gguf(library / "file.gguf", SHAPES, general__name="Some Model")
    assert find(name, [library]) == path


def test_a_repository_is_found_by_its_name(library):
    folder = write_bare(library / "models--org--x" / "snapshots" / "rev")
    assert find("org/x", [library]) == find("X", [library]) == folder


def test_a_broken_model_is_found_so_that_loading_says_what_it_lacks(library):
    write_bare(library / "cut")
    (library / "cut" / "model.safetensors").unlink()
    assert find("cut", [library]) == library / "cut"


def test_starter_is_the_starters_file(library):
    with pytest.raises(LoadError, match="slipstream get starter"):
        find("starter", [library])
    path = write_gguf(library / STARTER.file, SHAPES, general__name="Odd Mix Ep2")
    assert find("Starter", [library]) == path
    assert names(library) == [STARTER.name]


def test_an_unknown_name_lists_what_is_there(library):
    with pytest.raises(LoadError, match="empty") as caught:
        find("x", [library])
    assert caught.value.code == "no_such_model"
    write_bare(library / "one")
    write_bare(library / "two")
    with pytest.raises(LoadError, match="one, two") as caught:
        find("x\0", [library])
    assert caught.value.code == "no_such_model"


def test_a_name_with_two_meanings_is_asked_back(library):
    write_gguf(library / "a.gguf", SHAPES, general__name="Same")
    write_gguf(library / "b.gguf", SHAPES, general__name="Same")
    with pytest.raises(LoadError, match=r"Same \(a\.gguf\), Same \(b\.gguf\)"):
        find("same", [library])
    assert find("Same (b.gguf)", [library]) == library / "b.gguf"


def test_awkward_characters_in_paths_do_no_harm(tmp_path):
    library = tmp_path / "田中　太郎 Ünï'x" / "данные #1%20&"
    write_bare(library / "модель")
    assert find("МОДЕЛЬ", [library]) == library / "модель"
    shutil.rmtree(library)
    assert scan([library]) == []
