"""The library's folders: every model is found, and a broken one hides no other."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

import pytest

from engine.api import Kind
from engine.errors import LoadError
from engine.library import begun, download, heads, watch
from engine.library.hub import RemoteFile
from engine.library.index import Index
from engine.library.inspect import inspect, read_vocabulary, repository_of, template_text
from engine.library.plan import Plan
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


def begin(library, repository, *names, whole=False):
    """A download by us that was broken off."""
    target = begun.folder_of(repository, library)
    target.mkdir(parents=True, exist_ok=True)
    remote = tuple(RemoteFile(name, 1000, None, None) for name in names)
    wanted = Plan(repository, "a" * 40, remote)
    begun.note(wanted, target, whole=whole)
    return wanted, target


def test_partial_downloads_that_are_not_ours_are_no_entries(library):
    for name in ("x.gguf.partial", "x.gguf.incomplete", "._x.gguf"):
        (library / name).write_bytes(b"GGUF")
    _, ended = begin(library, "org/ended", "q.gguf", whole=True)
    (ended / "q.gguf.partial").write_bytes(b"GGUF")
    _, elsewhere = begin(library, "org/moved", "q.gguf")
    elsewhere.rename(library / "org" / "other")
    (library / ".x.gguf.download").mkdir()
    write_gguf(library / ".x.gguf.download" / "x.gguf", SHAPES)
    assert scan([library]) == []


def test_a_download_of_ours_that_was_broken_off_can_be_resumed(library):
    """Of a folder and of one file of a collection, which hides no other file of it."""
    plans = {}
    plans["Folder-1B"], folder = begin(library, "org/Folder-1B", "config.json", "model.safetensors")
    (folder / "model.safetensors.partial").write_bytes(b"x")
    plans["q8"], files = begin(library, "org/Files-GGUF", "q8.gguf")
    (files / "q8.gguf.partial").write_bytes(b"GGUF")
    write_gguf(files / "q4.gguf", SHAPES)
    shards = [f"s-0000{n}-of-00002.gguf" for n in (1, 2)]
    plans["s-00001-of-00002"], split = begin(library, "org/Split", *shards)
    (split / shards[1]).write_bytes(bytes(1000))
    plans["Bare"], _ = begin(library, "org/Bare", "config.json")
    found = {entry.name: entry for entry in scan([library])}
    assert found.pop("q4").problem is None
    assert found.keys() == plans.keys()
    for name, entry in found.items():
        assert (entry.info, entry.problem.code) == (None, "download_unfinished"), name
        assert download.plan_of(entry.path, library) == plans[name]
    assert found["Folder-1B"].path == folder
    assert found["q8"].path == files / "q8.gguf"
    with pytest.raises(LoadError) as caught:
        inspect(find("q8", [library]))
    assert caught.value.code == "download_unfinished"


def test_a_repair_that_was_broken_off_can_be_resumed(library):
    file = noted_and_whole(library)
    (file.parent / "q.gguf.partial").write_bytes(b"GGUF")
    (entry,) = scan([library])
    assert (entry.path, entry.problem.code) == (file, "download_unfinished")


def noted_and_whole(library):
    """A file that has come, whose note still says that it is on its way."""
    begun.folder_of("org/m", library).mkdir(parents=True)
    file = write_gguf(begun.folder_of("org/m", library) / "q.gguf", SHAPES)
    wanted = Plan("org/m", "a" * 40, (RemoteFile("q.gguf", file.stat().st_size, None, None),))
    begun.note(wanted, file.parent, whole=False)
    return file


def test_what_is_whole_is_an_entry_though_its_note_was_not_closed(library):
    file = noted_and_whole(library)
    (entry,) = scan([library])
    assert (entry.path, entry.problem) == (file, None)


def test_a_cache_entry_without_a_snapshot_is_a_download_that_has_not_finished(library):
    entry = library / "models--org--New-1B"
    (entry / "blobs").mkdir(parents=True)
    (entry / "refs").mkdir()
    (entry / "blobs" / "cafe.incomplete").write_bytes(b"x")
    (found,) = scan([library])
    assert (found.name, found.path) == ("New-1B", entry)
    assert found.problem.code == "download_unfinished"
    assert found.problem.text == "The download of New-1B has not finished."
    snapshot = entry / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    (snapshot / "q.gguf").symlink_to("../../blobs/cafe")
    (found,) = scan([library])
    assert (found.path, found.problem.code) == (snapshot / "q.gguf", "download_unfinished")


def lock(monkeypatch, folder):
    """As if `folder` could be listed and not entered, which does not hold for who runs as root."""

    def guarded(real):
        def look(path, *args, **kwargs):
            if not isinstance(path, int) and folder in Path(os.fsdecode(path)).parents:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(path, *args, **kwargs)

        return look

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))


@pytest.mark.parametrize("read", [inspect, Index(None).info])
def test_a_folder_that_cannot_be_entered_hides_nothing(library, monkeypatch, read):
    write_bare(library / "good")
    write_bare(library / "locked" / "m")
    write_gguf(library / "locked" / "x.gguf", SHAPES)
    write_gguf(library / "locked" / "y-00002-of-00002.gguf", SHAPES)
    write_bare(library / "sealed")
    (library / "models--a--shut" / "snapshots" / "rev").mkdir(parents=True)
    for name in ("locked", "sealed", "models--a--shut"):
        lock(monkeypatch, library / name)
    found = {entry.name: entry for entry in scan([library, library / "locked"], read)}
    assert found["good"].problem is None
    for name in ("x", "sealed"):
        assert "Permission denied" in found[name].problem.text
    assert "y-00002-of-00002" in found
    with pytest.raises(LoadError):
        find("nothing", [library], read)
    watch.stamp([library])


@pytest.mark.parametrize("read", [read_vocabulary, template_text, heads.made_for])
def test_what_cannot_be_entered_is_refused_by_every_reader(library, monkeypatch, read):
    write_bare(library / "locked")
    write_gguf(library / "locked" / "x.gguf", SHAPES)
    lock(monkeypatch, library / "locked")
    for path in (library / "locked", library / "locked" / "x.gguf"):
        with contextlib.suppress(LoadError):
            read(path)


def test_a_folder_to_look_through_may_be_a_model_or_a_file(library):
    model = write_bare(library / "one")
    file = write_gguf(library / "x.gguf", SHAPES)
    part = library / "y-00002-of-00002.gguf"
    part.write_bytes(file.read_bytes())
    cached = write_bare(library / "models--org--cached" / "snapshots" / "rev")
    for root, path in ((model, model), (file, file), (part, part), (cached.parents[1], cached)):
        assert [entry.path for entry in scan([root])] == [path]
    assert [e.path for e in scan([library, model, file, cached])].count(model) == 1
    assert len(scan([library, model, file, cached])) == 4


def test_a_library_with_a_stray_configuration_hides_nothing(library):
    write_bare(library)
    write_bare(library / "one")
    write_gguf(library / "x.gguf", SHAPES)
    assert {entry.name for entry in scan([library])} >= {"one", "x"}


@pytest.mark.parametrize("digits", [90, 4000, 4300, 5000])
def test_a_number_without_end_hides_nothing(library, digits):
    """Python refuses to read and to write out such numbers; here the message names one."""
    write_bare(library / "good")
    number = "9" * digits
    header = '{"a":{"dtype":"U8","shape":[%s],"data_offsets":[0,%s]}}' % (number, number)  # noqa: UP031
    write_bare(library / "bad")
    weights = len(header).to_bytes(8, "little") + header.encode()
    (library / "bad" / "model.safetensors").write_bytes(weights)
    bad, good = scan([library])
    assert good.problem is None
    assert len(bad.problem.text) < 300


def test_the_folder_in_which_the_program_runs_has_its_own_name(library, monkeypatch):
    monkeypatch.chdir(write_bare(library / "here"))
    assert names(Path(".")) == ["here"]


def test_a_model_that_is_reached_by_several_ways_is_listed_once(library, monkeypatch):
    write_bare(library / "sub" / "m")
    write_gguf(library / "sub" / "x.gguf", SHAPES)
    (library / "again").symlink_to(library / "sub")
    (library / "linked").symlink_to(library / "sub" / "m")
    monkeypatch.chdir(library)
    roots = [library, library / "sub", library / "again", Path("sub")]
    real = [library / "sub" / "m", library / "sub" / "x.gguf"]
    for order in (roots, roots[::-1]):
        assert [entry.path for entry in scan(order)] == real


def test_links_of_a_file_are_names_that_somebody_gave_it(library):
    file = write_gguf(library / "x.gguf", SHAPES)
    (library / "usual.gguf").symlink_to(file)
    assert names(library) == ["usual", "x"]


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


def test_a_cache_with_all_that_can_be_wrong_hides_nothing(library):
    """WGT-2."""
    snapshots = "snapshots/rev"
    whole = write_bare(library / "models--a--ok" / snapshots)
    (library / "models--a--ok" / "snapshots" / ".DS_Store").write_bytes(b"x")
    half = write_bare(library / "models--b--half" / snapshots)
    (library / "models--b--half" / "blobs").mkdir()
    (library / "models--b--half" / "blobs" / "cafe.incomplete").write_bytes(b"x")
    (half / "model.safetensors").unlink()
    (half / "model.safetensors").symlink_to("../../blobs/cafe")
    for folder, parts in (("set", (1, 2, 3)), ("lacking", (1, 3))):
        (library / folder).mkdir()
        for part in parts:
            split = {"split__no": part - 1, "split__count": 3, "split__tensors__count": 3}
            shapes = {f"blk.{part}.attn_q.weight": [64, 64]}
            write_gguf(library / folder / f"{folder}-0000{part}-of-00003.gguf", shapes, **split)
    (library / "adapter").mkdir()
    write_json(library / "adapter" / "adapter_config.json", {})
    write_safetensors(library / "adapter" / "adapter_model.safetensors", {"a": [1]})
    found = {entry.path.name if "gguf" in entry.path.name else entry.name: entry
             for entry in scan([library])}  # fmt: skip
    assert len(found) == 5
    assert found["ok"].path == whole
    assert found["ok"].problem is None
    assert found["half"].problem.code == "download_unfinished"
    assert repository_of(found["half"].path) == "b/half"
    assert found["set-00001-of-00003.gguf"].problem is None
    assert "Part 2" in found["lacking-00001-of-00003.gguf"].problem.text
    assert found["adapter"].info.kind is Kind.ADAPTER


def test_ggufs_of_a_cached_repository_are_entries(library):
    snapshot = library / "models--org--x-GGUF" / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    for name in ("x.q4.gguf", "x.q8.gguf"):
        write_gguf(snapshot / name, SHAPES)
    write_json(snapshot / "config.json", {})
    assert {entry.path.name for entry in scan([library])} == {"x.q4.gguf", "x.q8.gguf"}


def test_a_split_gguf_is_one_entry(library):
    for part in (1, 2, 3):
        write_gguf(
            library / f"x-0000{part}-of-00003.gguf",
            SHAPES if part == 1 else {f"blk.{part}.attn_q.weight": [64, 64]},
            split__no=part - 1,
            split__count=3,
        )
    (entry,) = scan([library])
    assert entry.path.name == "x-00001-of-00003.gguf"
    assert entry.info.file_bytes == sum(f.stat().st_size for f in library.iterdir())
    (library / "x-00002-of-00003.gguf").unlink()
    (entry,) = scan([library])
    assert entry.problem.text == "Part 2 of x-00001-of-00003.gguf is missing."


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
    """PER-4."""
    library = tmp_path / "田中　太郎 Ünï'x" / "данные #1%20&"
    write_bare(library / "модель")
    assert find("МОДЕЛЬ", [library]) == library / "модель"
    shutil.rmtree(library)
    assert scan([library]) == []
