"""Kept weights: what is read is what was written, or nothing; and nothing is ever half written."""

import contextlib
import json
import os

import pytest
import torch

from engine.kernels import store as module
from engine.kernels.store import Damaged, Store, key_of

SHAPES = {
    "a|levels": (torch.int8, (6, 10)),
    "a|scales": (torch.float32, (6,)),
    "b|levels": (torch.uint8, (4, 8)),
    "b|pairs": (torch.bfloat16, (1, 4, 2)),
    "c|weight": (torch.float16, (3, 3)),
    "d|weight": (torch.float32, ()),
}


def made(seed=0, shapes=SHAPES):
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randint(0, 100, shape, generator=generator).to(dtype)
        for name, (dtype, shape) in shapes.items()
    }


def keep(store, key="k", tensors=None, shapes=SHAPES):
    writer = store.writer(key, shapes)
    for tensor in (tensors or made(shapes=shapes)).values():
        writer.put(tensor)
    writer.finish()


def read(store, key="k", shapes=SHAPES):
    """What is kept, or None."""
    found = store.tensors(key, shapes)
    return found if found is None else dict(found)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "weights"


@pytest.fixture
def store(folder):
    return Store(folder)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_what_is_kept_is_what_was_written(store, folder):
    keep(store)
    assert same(read(store), made())
    assert list(read(store)) == list(SHAPES)
    assert sorted(f.suffix for f in folder.iterdir()) == [".json", ".safetensors"]


def test_it_is_a_safetensors_file_that_others_read_too(store, folder):
    from safetensors.torch import load_file

    keep(store)
    assert same(load_file(folder / "k.safetensors"), made())


def test_nothing_is_kept_of_what_was_never_written(store):
    assert read(store) is None
    assert store.facts("k") == {}


def test_a_transposed_tensor_is_written_as_it_is_read(store):
    shapes = {"t": (torch.float32, (5, 3))}
    tensor = torch.arange(15.0).view(3, 5).T
    keep(store, tensors={"t": tensor}, shapes=shapes)
    assert torch.equal(read(store, shapes=shapes)["t"], tensor)


@pytest.mark.parametrize("size", [0, 4, 100, -1])
def test_a_cut_off_file_is_dropped(store, folder, size):
    keep(store)
    file = folder / "k.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    assert read(store) is None
    assert not file.exists()


@pytest.mark.parametrize("place", [0, 3, 20, 200, -20, -1])
def test_a_file_that_was_altered_is_damaged(store, folder, place):
    """In its head or in any tensor; the last one too, whose numbers were handed out by then."""
    keep(store)
    file = folder / "k.safetensors"
    data = bytearray(file.read_bytes())
    data[place] ^= 0x40
    file.write_bytes(data)
    with pytest.raises(Damaged):
        read(store)


def test_a_foreign_file_in_its_place_is_not_taken(store, folder):
    from safetensors.torch import save_file

    keep(store)
    size = (folder / "k.safetensors").stat().st_size
    save_file({"x": torch.zeros(4)}, folder / "k.safetensors")
    assert read(store) is None
    (folder / "k.safetensors").write_bytes(os.urandom(size))
    keep(store, "other")
    (folder / "k.json").write_text((folder / "other.json").read_text())
    with pytest.raises(Damaged):
        read(store)


def test_weights_of_another_model_are_not_taken(store):
    """The same file for other shapes, or for the same shapes by other names."""
    keep(store)
    other = {name: (dtype, (*shape, 1)) for name, (dtype, shape) in SHAPES.items()}
    renamed = {f"z{name[1:]}": kind for name, kind in SHAPES.items()}
    for shapes in (other, renamed):
        keep(store)
        with contextlib.suppress(Damaged):
            assert read(store, shapes=shapes) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"sha256": 5}', "[" * 50_000])
def test_damaged_facts_are_none(store, folder, text):
    keep(store)
    (folder / "k.json").write_text(text)
    assert store.facts("k") in ({}, {"sha256": 5})
    assert read(store) is None
    keep(store)
    assert same(read(store), made())


def test_facts_add_up_and_a_damaged_file_loses_them(store, folder):
    keep(store)
    store.note("k", rise=0.5)
    store.note("k", exact=["here", True])
    assert store.facts("k")["rise"] == 0.5
    assert store.facts("k")["exact"] == ["here", True]
    (folder / "k.safetensors").write_bytes(b"x")
    assert read(store) is None
    assert store.facts("k") == {}


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_a_full_disk_only_means_not_kept(store, folder, monkeypatch, after):
    """Whatever was being written when it filled up."""
    writer = store.writer("k", SHAPES)
    real, written = writer._out, []

    class Full:
        def write(self, data):
            written.append(1)
            if len(written) > after:
                raise OSError(28, "No space left on device")
            return real.write(data)

        def close(self):
            real.close()

    writer._out = Full()
    for tensor in made().values():
        writer.put(tensor)
    if after == 6:
        monkeypatch.setattr(module.Path, "replace", fail)
    writer.finish()
    assert read(store) is None
    assert list(folder.iterdir()) == []


def fail(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_full_disk_when_facts_are_noted_loses_only_those(store, monkeypatch):
    keep(store)
    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "write_text", fail)
        store.note("k", rise=0.5)
    assert "rise" not in store.facts("k")
    assert same(read(store), made())


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "weights")
    assert store.writer("k", SHAPES) is None
    store.note("k", rise=0.5)
    assert store.facts("k") == {}
    assert read(store) is None


def test_a_writer_given_up_leaves_nothing(store, folder):
    writer = store.writer("k", SHAPES)
    writer.put(made()["a|levels"])
    writer.cancel()
    writer.cancel()
    writer.finish()
    assert list(folder.iterdir()) == []


def test_a_writer_given_up_leaves_what_was_kept_before(store):
    keep(store)
    writer = store.writer("k", SHAPES)
    writer.put(made(1)["a|levels"])
    assert same(read(store), made())
    writer.cancel()
    assert same(read(store), made())


def test_two_writers_do_not_mix(store, monkeypatch):
    """Two programs that make the same weights at once: the last one's are kept whole."""
    first, second = made(1), made(2)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "getpid", lambda: 111)
        one = store.writer("k", SHAPES)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "getpid", lambda: 222)
        two = store.writer("k", SHAPES)
    for a, b in zip(first.values(), second.values(), strict=True):
        one.put(a)
        two.put(b)
    one.finish()
    assert same(read(store), first)
    two.finish()
    assert same(read(store), second)


def test_the_least_recently_used_weights_go_first(folder):
    size = module._size(SHAPES)
    store = Store(folder, limit=3 * size)
    for age, key in ((300, "a"), (200, "b"), (100, "c")):
        keep(store, key)
        for file in folder.glob(f"{key}.*"):
            os.utime(file, (10_000 - age, 10_000 - age))
    assert same(read(store, "a"), made())  # used now, so no longer the oldest
    keep(store, "d")
    assert {f.stem for f in folder.iterdir()} == {"a", "c", "d"}
    assert read(store, "b") is None


def test_what_a_killed_program_left_half_written_is_cleared_away(store, folder):
    keep(store)
    old, new = folder / "x.111.partial", folder / "y.222.partial"
    for file in (old, new):
        file.write_bytes(b"x" * 1000)
    os.utime(old, (10_000, 10_000))
    keep(store, "other")
    assert not old.exists()
    assert new.exists()


def test_weights_larger_than_the_limit_are_not_kept(folder):
    store = Store(folder, limit=module._size(SHAPES) - 1)
    assert store.writer("k", SHAPES) is None


def test_files_may_be_deleted_at_any_time(store, folder):
    keep(store)
    (folder / "k.json").unlink()
    assert read(store) is None
    keep(store)
    (folder / "k.safetensors").unlink()
    assert read(store) is None
    keep(store)
    store.drop("k")
    store.drop("k")
    assert list(folder.iterdir()) == []


def test_the_key_follows_the_files_and_the_way_of_quantising(tmp_path, monkeypatch):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"12345")
    os.utime(file, ns=(0, 1_000))
    key = key_of(tmp_path, [file], "int8")
    assert key_of(tmp_path, [file], "int8") == key
    keys = {key, key_of(tmp_path, [file], "int4"), key_of(tmp_path / "x", [file], "int8")}
    os.utime(file, ns=(0, 1_001))
    keys.add(key_of(tmp_path, [file], "int8"))
    file.write_bytes(b"123456")
    os.utime(file, ns=(0, 1_000))
    keys.add(key_of(tmp_path, [file], "int8"))
    file.write_bytes(b"12345")
    os.utime(file, ns=(0, 1_000))
    assert key_of(tmp_path, [file], "int8") == key
    monkeypatch.setattr(module, "RECIPE", module.RECIPE + 1)
    keys.add(key_of(tmp_path, [file], "int8"))
    assert len(keys) == 6


def test_facts_are_readable_by_others(store, folder):
    keep(store)
    assert set(json.loads((folder / "k.json").read_text())) == {"sha256"}
