"""Whatever a file holds: its header is read as it stands, or refused with an error of ours."""

import random
import struct
import subprocess
import sys

import pytest

from engine.errors import Incomplete, LoadError, Unsupported
from engine.library import gguf as module
from engine.library.gguf import BLOCKS, TensorInfo, read_header
from tests.gguf_files import ARRAY, F32, STRING, U32, pair, raw_file, tensor, text, texts

NAME = pair("general.name", STRING, text("tiny"))
LONG = texts("tokenizer.ggml.tokens", [f"token {i}" for i in range(2000)])
Q8_0 = 8


def small_file(path):
    """Two tensors: 2 x 3 numbers in F32, then one Q8_0 row of 32."""
    tensors = [tensor("a.weight", [3, 2]), tensor("b.weight", [32], Q8_0, offset=32)]
    pairs = [NAME, pair("x.count", U32, struct.pack("<I", 7)), texts("x.tags", ["a", "ü"])]
    return raw_file(path, pairs, tensors, data=bytes(32 + 34))


def test_metadata_and_tensors_are_read(tmp_path):
    path = small_file(tmp_path / "m.gguf")
    header = read_header(path)
    assert header.metadata == {"general.name": "tiny", "x.count": 7, "x.tags": ["a", "ü"]}
    start = path.stat().st_size - 66
    assert header.tensors == (
        TensorInfo("a.weight", (2, 3), 0, start, 24),
        TensorInfo("b.weight", (32,), Q8_0, start + 32, 34),
    )


@pytest.mark.parametrize(
    ("kind", "code", "value"),
    [(0, "B", 200), (1, "b", -3), (2, "H", 60_000), (3, "h", -9), (4, "I", 2**31), (5, "i", -5),
     (6, "f", 0.5), (7, "?", True), (10, "Q", 2**60), (11, "q", -(2**60)), (12, "d", 0.1)],
)  # fmt: skip
def test_every_kind_of_number_is_read_alone_and_in_arrays(tmp_path, kind, code, value):
    one = struct.pack("<" + code, value)
    array = pair("many", ARRAY, struct.pack("<IQ", kind, 3) + one * 3)
    header = read_header(raw_file(tmp_path / "m.gguf", [pair("one", kind, one), array]))
    assert header.metadata == {"one": value, "many": [value] * 3}


def test_long_arrays_can_be_left_out(tmp_path):
    scores = pair("scores", ARRAY, struct.pack("<IQ", F32, 2000) + bytes(8000))
    short = texts("general.tags", ["x"])
    path = raw_file(tmp_path / "m.gguf", [NAME, LONG, scores, short], [tensor("a", [1])], bytes(4))
    assert read_header(path).metadata["tokenizer.ggml.tokens"][1999] == "token 1999"
    light = read_header(path, arrays={})
    assert light.metadata == {"general.name": "tiny", "general.tags": ["x"]}
    assert light.tensors == read_header(path).tensors
    one = read_header(path, arrays={"scores": 1500}).metadata
    assert len(one["scores"]) == 1500
    assert "tokenizer.ggml.tokens" not in one


def test_a_vocabulary_that_was_walked_is_passed_over_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_walked", module._Walked())
    walked = []
    real = module._Cursor._strings

    def strings(self, count, part, *, keep):
        walked.append(count)
        return real(self, count, part, keep=keep)

    monkeypatch.setattr(module._Cursor, "_strings", strings)
    count, tensors = pair("x", U32, bytes(4)), [tensor("a", [1])]
    one = raw_file(tmp_path / "one.gguf", [LONG], tensors, bytes(4))
    two = raw_file(tmp_path / "two.gguf", [count, LONG], tensors, bytes(4))
    read_header(one, arrays={})
    assert 2000 in walked
    walked.clear()
    light = read_header(two, arrays={})
    assert 2000 not in walked
    assert light.tensors == read_header(two).tensors


def test_a_vocabulary_that_only_looks_like_one_walked_is_walked(tmp_path, monkeypatch):
    """Another length between the same count, beginning, end and size: damaged, and said to be."""
    monkeypatch.setattr(module, "_walked", module._Walked())
    path = raw_file(tmp_path / "m.gguf", [LONG], [tensor("a", [1])], bytes(4))
    read_header(path, arrays={})
    data = bytearray(path.read_bytes())
    data[data.index(b"token 1000") - 1] = 255
    path.write_bytes(data)
    with pytest.raises(Incomplete):
        read_header(path, arrays={})
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(Incomplete, match="cut off"):
        read_header(cut, arrays={})


def test_few_vocabularies_are_remembered(tmp_path, monkeypatch):
    memory = module._Walked()
    monkeypatch.setattr(module, "_walked", memory)
    for i in range(module.MOST_WALKED + 5):
        words = texts("tokens", [f"{i} {j}" for j in range(module.SHORT_ARRAY + 1)])
        read_header(raw_file(tmp_path / "m.gguf", [words], [], b""), arrays={})
    assert len(memory._known) == module.MOST_WALKED


@pytest.mark.parametrize("arrays", [None, {}])
def test_a_file_cut_off_anywhere_is_incomplete(tmp_path, arrays):
    whole = small_file(tmp_path / "m.gguf").read_bytes()
    for length in range(len(whole)):
        path = tmp_path / "cut.gguf"
        path.write_bytes(whole[:length])
        with pytest.raises(Incomplete) as caught:
            read_header(path, arrays=arrays)
        assert caught.value.code == ("gguf_magic" if length < 24 else "gguf_cut_off")


def test_a_damaged_file_never_fails_otherwise(tmp_path):
    """Random bytes changed: the header is read, or refused with an error of ours."""
    whole = bytearray(small_file(tmp_path / "m.gguf").read_bytes())
    chance, refused = random.Random(1), 0
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 127, 255))
        path = tmp_path / "damaged.gguf"
        path.write_bytes(damaged)
        try:
            header = read_header(path)
            assert all(t.offset + t.nbytes <= len(damaged) for t in header.tensors)
        except LoadError:
            refused += 1
    assert refused > 50


HUGE = 2**63
BAD = {
    "tensors beyond the file": {"counts": (HUGE, 0)},
    "pairs beyond the file": {"counts": (0, HUGE)},
    "array beyond the file": {"pairs": [pair("k", ARRAY, struct.pack("<IQ", STRING, HUGE))]},
    "numbers beyond the file": {"pairs": [pair("k", ARRAY, struct.pack("<IQ", F32, HUGE))]},
    "text beyond the file": {"pairs": [pair("k", STRING, struct.pack("<Q", HUGE))]},
    "text in an array beyond the file": {
        "pairs": [pair("k", ARRAY, struct.pack("<IQQ", STRING, 1, HUGE))]
    },
    "array of arrays": {"pairs": [pair("k", ARRAY, struct.pack("<IQ", ARRAY, 0))]},
    "unknown value": {"pairs": [pair("k", 99, b"")]},
    "key twice": {"pairs": [NAME, NAME]},
    "key that is no text": {"pairs": [text(b"\xff") + struct.pack("<II", U32, 1)]},
    "token that is no text": {"pairs": [texts("k", [b"\xff"])]},
    "alignment of 24": {"pairs": [pair("general.alignment", U32, struct.pack("<I", 24))]},
    "alignment of 0": {"pairs": [pair("general.alignment", U32, struct.pack("<I", 0))]},
    "alignment in words": {"pairs": [pair("general.alignment", STRING, text("32"))]},
    "parts in words": {"pairs": [pair("split.count", STRING, text("2"))]},
    "sizes that overflow": {"tensors": [tensor("a", [2**40, 2**40, 2**40])]},
    "empty tensor": {"tensors": [tensor("a", [0])]},
    "five axes": {"tensors": [tensor("a", [1] * 5)]},
    "offset beyond the file": {"tensors": [tensor("a", [1], offset=2**62)]},
    "offset out of step": {"tensors": [tensor("a", [1], offset=4)]},
    "half a block": {"tensors": [tensor("a", [16], Q8_0)]},
    "tensor twice": {"tensors": [tensor("a", [1]), tensor("a", [1])]},
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_right_is_incomplete(tmp_path, case):
    with pytest.raises(Incomplete) as caught:
        read_header(raw_file(tmp_path / "m.gguf", data=bytes(256), **BAD[case]))
    assert "m.gguf" in str(caught.value)


def test_a_cut_off_array_is_named(tmp_path):
    array = pair("x.tags", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + struct.pack("<Q", 9))
    with pytest.raises(Incomplete, match=r"x\.tags"):
        read_header(raw_file(tmp_path / "m.gguf", [array], alignment=1))


def test_a_cut_off_tensor_is_named(tmp_path):
    path = raw_file(tmp_path / "m.gguf", [], [tensor("blk.0.big", [1024])], data=bytes(4095))
    with pytest.raises(Incomplete, match=r"blk\.0\.big"):
        read_header(path)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"version": 1}, "version 1"),
        ({"version": 4}, "version 4"),
        ({"version": 0x03000000}, "version"),  # written for a big-endian machine
        ({"tensors": [tensor("odd", [32], 250)]}, "250"),
    ],
)
def test_what_is_sound_but_not_supported_is_said(tmp_path, changes, word):
    with pytest.raises(Unsupported, match=word):
        read_header(raw_file(tmp_path / "m.gguf", data=bytes(64), **changes))


def split_set(folder, count=3, **changes):
    """A set of `count` parts with a tensor each; `changes` to a part's number or count."""
    for number in range(count):
        stated = {"no": number, "count": count} | changes.get(f"part{number}", {})
        pairs = [pair(f"split.{k}", U32, struct.pack("<I", v)) for k, v in stated.items()]
        pairs += [NAME] if number == 0 else []
        path = folder / f"x-{number + 1:05d}-of-{count:05d}.gguf"
        raw_file(path, pairs, [tensor(changes.get("name", f"t{number}"), [8])], data=bytes(32))
    return folder / f"x-00001-of-{count:05d}.gguf"


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_a_split_set_is_read_as_one_whichever_part_is_named(tmp_path, asked):
    split_set(tmp_path)
    header = read_header(tmp_path / f"x-0000{asked}-of-00003.gguf")
    assert header.metadata["general.name"] == "tiny"
    assert [(t.name, t.part) for t in header.tensors] == [("t0", 0), ("t1", 1), ("t2", 2)]
    assert [f.name for f in header.files] == [f"x-0000{n}-of-00003.gguf" for n in (1, 2, 3)]


@pytest.mark.parametrize("part", [1, 2, 3])
def test_a_missing_part_is_named(tmp_path, part):
    first = split_set(tmp_path)
    (tmp_path / f"x-0000{part}-of-00003.gguf").unlink()
    with pytest.raises(Incomplete, match=f"Part {part} of x-00001"):
        read_header(first)


def test_a_part_under_another_name_lacks_the_others(tmp_path):
    path = split_set(tmp_path).rename(tmp_path / "renamed.gguf")
    with pytest.raises(Incomplete, match="Part 2"):
        read_header(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"part1": {"no": 2}},
        {"part1": {"count": 4}},
        {"part2": {"no": 0}},
        {"name": "same"},
        {"part0": {"tensors.count": 7}},
    ],
)
def test_parts_that_do_not_belong_together_are_damaged(tmp_path, changes):
    with pytest.raises(Incomplete, match="damaged"):
        read_header(split_set(tmp_path, **changes))


def test_a_file_that_is_only_named_like_a_part_of_one_is_itself(tmp_path):
    path = small_file(tmp_path / "x-00001-of-00001.gguf")
    assert read_header(path).files == (path,)


def test_other_files_are_no_gguf(tmp_path):
    for name, content in (("empty", b""), ("short", b"GGUF"), ("zip", b"PK\3\4" + bytes(99))):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(Incomplete, match="not a GGUF"):
            read_header(path)
    for path in (tmp_path / "absent.gguf", tmp_path):
        with pytest.raises(Incomplete, match=r"cannot be read|is missing"):
            read_header(path)


def test_a_name_with_a_broken_character_is_shown_with_a_mark(tmp_path):
    path = raw_file(tmp_path / "m.gguf", [pair("general.name", STRING, text(b"caf\xe9"))])
    assert read_header(path).metadata["general.name"] == "caf\ufffd"


def test_reading_a_header_loads_neither_torch_nor_transformers(tmp_path):
    path = small_file(tmp_path / "m.gguf")
    script = (
        "import sys, pathlib, engine.vocabulary\nfrom engine.library.gguf import read_header\n"
        "read_header(pathlib.Path(sys.argv[1]))\n"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)]).returncode == 0


def test_the_sizes_of_blocks_are_the_librarys():
    from gguf.constants import GGML_QUANT_SIZES

    assert {int(kind): sizes for kind, sizes in GGML_QUANT_SIZES.items()} == BLOCKS
