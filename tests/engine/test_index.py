"""What was read before is not read again, unless a file changed; a broken index costs only time."""

import json
import os
from pathlib import Path

import pytest

from engine.errors import Incomplete
from engine.library import index as module
from engine.library.index import Index, identity
from engine.library.scan import scan
from engine.vocabulary import Difference
from tests.folders import write_bare, write_gguf, write_json

SHAPES = {"token_embd.weight": [256, 64], "blk.0.attn_q.weight": [64, 64]}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "cache" / "models.json"


@pytest.fixture
def reads(monkeypatch):
    """Paths that were really read."""
    seen = []
    real = module.inspect

    def inspect(path):
        seen.append(path.name)
        return real(path)

    monkeypatch.setattr(module, "inspect", inspect)
    return seen


def test_an_unchanged_model_is_read_once_and_says_the_same(tmp_path, file, reads):
    gguf, folder = write_gguf(tmp_path / "a.gguf", SHAPES), write_bare(tmp_path / "b")
    first = Index(file)
    infos = [first.info(path) for path in (gguf, folder)]
    first.save()
    again = Index(file)
    assert [again.info(path) for path in (gguf, folder)] == infos
    assert reads == ["a.gguf", "b"]


def test_a_changed_file_is_read_again(tmp_path, file, reads):
    path = write_gguf(tmp_path / "a.gguf", SHAPES)
    index = Index(file)
    index.info(path)
    write_gguf(path, SHAPES, general__name="Renamed")
    os.utime(path, ns=(1, 1))
    assert index.info(path).name == "Renamed"
    folder = write_bare(tmp_path / "b")
    before = identity(folder)
    write_json(folder / "generation_config.json", {})
    assert identity(folder) != before


def test_a_name_that_is_no_text_is_a_name(tmp_path, file):
    """On Linux any bytes are."""
    path = write_gguf(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.gguf")), SHAPES)
    index = Index(file)
    info = index.info(path)
    assert info.name == "bad\ufffd"
    assert info.path == path
    index.save()
    assert Index(file).info(path) == info
    folder = write_bare(path.with_suffix(""))
    names = [entry.name for entry in scan([tmp_path], index.info)]
    assert names == ["bad\ufffd (bad\ufffd)", "bad\ufffd (bad\ufffd.gguf)"]
    assert index.difference(folder, folder) is None


def test_a_model_is_the_same_by_every_way_to_it(tmp_path, file, monkeypatch):
    gguf, folder = write_gguf(tmp_path / "a.gguf", SHAPES), write_bare(tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "c.gguf").symlink_to(gguf)
    monkeypatch.chdir(tmp_path)
    assert identity(Path("a.gguf")) == identity(gguf) == identity(tmp_path / "link" / "a.gguf")
    assert identity(gguf) == identity(tmp_path / "c.gguf")
    assert identity(Path("b")) == identity(folder) == identity(tmp_path / "link" / "b")
    index = Index(file)
    assert [index.info(tmp_path / f"{n}.gguf").name for n in "aca"] == ["a", "c", "a"]


def test_a_broken_model_is_looked_at_every_time(tmp_path, file, reads):
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF")
    index = Index(file)
    for _ in range(2):
        with pytest.raises(Incomplete):
            index.info(path)
    assert reads == ["a.gguf"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 0}',
        '{"format": 1, "infos": 3, "pairs": {"a b": "x"}, "fingerprints": []}',
    ],
)
def test_a_damaged_index_is_made_anew(tmp_path, file, text):
    path = write_gguf(tmp_path / "a.gguf", SHAPES)
    file.parent.mkdir()
    file.write_text(text)
    index = Index(file)
    assert index.info(path).vocab_size == 256
    index.save()
    assert json.loads(file.read_text())["infos"]


@pytest.mark.parametrize("change", [{"kind": "nonsense"}, {"more": 1}])
def test_an_entry_that_no_longer_fits_is_read_anew(tmp_path, file, reads, change):
    path = write_gguf(tmp_path / "a.gguf", SHAPES)
    index = Index(file)
    expected = index.info(path)
    index.save()
    kept = json.loads(file.read_text())
    kept["infos"] = {key: value | change for key, value in kept["infos"].items()}
    file.write_text(json.dumps(kept))
    assert Index(file).info(path) == expected
    assert len(reads) == 2


def test_vocabularies_are_read_once_for_all_programs_to_come(tmp_path, file, monkeypatch):
    reads = []
    real = module.read_vocabulary
    monkeypatch.setattr(module, "read_vocabulary", lambda *a: reads.append(a[0].name) or real(*a))
    same, twin = write_bare(tmp_path / "same"), write_bare(tmp_path / "twin")
    other = write_gguf(
        tmp_path / "other.gguf",
        SHAPES,
        tokenizer__ggml__model="gpt2",
        tokenizer__ggml__tokens=["x", "y"],
    )
    index = Index(file)
    assert index.difference(same, twin) is None
    found = index.difference(same, other)
    assert isinstance(found, Difference)
    index.save()
    count = len(reads)
    again = Index(file)
    assert again.difference(same, twin) is None
    assert again.difference(same, other) == found
    assert len(reads) == count


def test_of_another_vocabulary_only_the_beginning_is_read(tmp_path, file, monkeypatch):
    """And of one that differs later on, all; the answer is that of the whole either way."""
    reads = []
    real = module.read_vocabulary

    def noted(path, *most):
        reads.append((path.name, most))
        return real(path, *most)

    monkeypatch.setattr(module, "read_vocabulary", noted)
    words = [f"w{i}" for i in range(3000)]

    def of(name, tokens):
        keys = {"tokenizer__ggml__model": "gpt2", "tokenizer__ggml__tokens": tokens}
        return write_gguf(tmp_path / name, SHAPES, **keys)

    target = of("target.gguf", words)
    late = of("late.gguf", [*words[:2500], "x", *words[2501:]])
    soon = of("soon.gguf", [*words[:900], "x", *words[901:]])
    index = Index(file)
    assert index.difference(target, soon) == Difference(900, "w900", "x")
    assert [most for name, most in reads if name == "soon.gguf"] == [(module.BEGINNING,)]
    assert index.difference(target, late) == Difference(2500, "w2500", "x")
    assert index.difference(target, of("twin.gguf", words)) is None
    assert [name for name, _ in reads].count("target.gguf") == 1


def test_a_full_disk_only_means_reading_again(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "a.gguf", SHAPES)
    blocked = tmp_path / "file"
    blocked.write_text("")
    index = Index(blocked / "models.json")
    index.info(path)
    index.save()


def test_two_hundred_models_are_listed_at_once(tmp_path, file):
    """The second time in well under a second: nothing is read but names and times."""
    import time

    library = tmp_path / "library"
    library.mkdir()
    for number in range(200):
        write_gguf(library / f"m{number:03d}.gguf", SHAPES, general__name=f"Model {number:03d}")
    index = Index(file)
    began = time.monotonic()
    assert len(scan([library], index.info)) == 200
    first = time.monotonic() - began
    index.save()
    again = Index(file)
    began = time.monotonic()
    assert len(scan([library], again.info)) == 200
    second = time.monotonic() - began
    assert first < 3
    assert second < 1
