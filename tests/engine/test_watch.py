"""A change in the library's folders is noticed, wherever it lies but where it is hidden."""

import os

import pytest

from engine.library import watch
from engine.library.watch import stamp

CACHE = "models--owner--name/snapshots/abc"


@pytest.fixture
def root(tmp_path):
    (tmp_path / CACHE).mkdir(parents=True)
    (tmp_path / CACHE / "model.safetensors").write_bytes(b"12")
    (tmp_path / "a.gguf").write_bytes(b"1")
    return tmp_path


@pytest.mark.parametrize(
    "path", ["b.gguf", "publisher/repository/b.gguf", f"{CACHE}/b.json", "m/r/library/name/latest"]
)
def test_what_is_added_or_removed_is_noticed(root, path):
    before = stamp([root])
    assert stamp([root]) == before
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(b"")
    added = stamp([root])
    assert added.names != before.names
    (root / path).unlink()
    assert stamp([root]).names != added.names


def test_a_file_that_grows_or_is_replaced_keeps_its_name(root):
    before = stamp([root])
    (root / "a.gguf").write_bytes(b"123")
    grown = stamp([root])
    os.utime(root / "a.gguf", ns=(5, 5))
    touched = stamp([root])
    assert len({before.sizes, grown.sizes, touched.sizes}) == 3
    assert {before.names, grown.names} == {touched.names}


def test_what_is_hidden_too_deep_or_too_much_is_not_looked_at(root, monkeypatch):
    before = stamp([root])
    (root / ".locks").mkdir()
    (root / CACHE / "1/2").mkdir(parents=True)
    seen = stamp([root])
    (root / CACHE / "1/2/3.gguf").write_bytes(b"")
    (root / ".locks/x").write_bytes(b"")
    assert stamp([root]) == seen != before
    monkeypatch.setattr(watch, "MOST", 1)
    assert stamp([root]) != seen


def test_folders_that_are_not_there_and_links_in_a_ring_are_no_obstacle(root):
    (root / "ring").symlink_to(root, target_is_directory=True)
    (root / "nowhere.gguf").symlink_to(root / "gone")
    assert stamp([root, root / "absent", root / "a.gguf"]) == stamp([root, root / "absent"])
