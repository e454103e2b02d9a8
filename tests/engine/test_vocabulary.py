"""What ids decode to, however a file spells it, and whether two vocabularies agree."""

import json

import pytest

from engine.errors import Incomplete, Unsupported
from engine.vocabulary import Difference, Vocabulary, difference, from_gguf, from_tokenizer_json
from tests.folders import SPECIAL, byte_alphabet, byte_tokenizer_json


def tokenizer_json(vocab, added=(), **sections):
    """A tokenizer.json with `added` as (id, text, special)."""
    entries = [{"id": i, "content": text, "special": special} for i, text, special in added]
    root = {"added_tokens": entries, "model": {"type": "BPE", "vocab": vocab}} | sections
    return json.dumps(root).encode()


def gguf(tokens, types=None, kind="llama"):
    metadata = {"tokenizer.ggml.model": kind, "tokenizer.ggml.tokens": list(tokens)}
    return metadata if types is None else metadata | {"tokenizer.ggml.token_type": list(types)}


def plain(*tokens, special=()):
    return Vocabulary(tuple(tokens), frozenset(special))


SENTENCEPIECE = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}


def test_byte_level_tokens_are_the_bytes_they_stand_for():
    vocabulary = from_tokenizer_json(byte_tokenizer_json().encode())
    assert vocabulary.tokens[:256] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.tokens[256:] == tuple(text.encode() for text in SPECIAL)
    assert vocabulary.special == frozenset(range(256, 262))


def test_byte_level_is_told_from_the_pre_tokenizer_where_there_is_no_decoder():
    steps = {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}
    data = tokenizer_json({"Ġa": 0, "ä½": 1}, decoder=None, pre_tokenizer=steps)
    assert from_tokenizer_json(data).tokens == (b" a", b"\xe4\xbd")


def test_added_tokens_stand_for_themselves():
    added = [(1, "Ġ<｜end｜>", True), (2, "é", False)]
    data = tokenizer_json({"Ġa": 0}, added, decoder={"type": "ByteLevel"})
    assert from_tokenizer_json(data).tokens == (b" a", "Ġ<｜end｜>".encode(), "é".encode())


def test_what_is_not_written_in_the_byte_alphabet_stands_for_itself():
    data = tokenizer_json({"Ġ x": 0, "Ġ龘": 1, "Ġ\xad": 2}, decoder={"type": "ByteLevel"})
    assert from_tokenizer_json(data).tokens == tuple(t.encode() for t in ("Ġ x", "Ġ龘", "Ġ\xad"))


def test_sentencepiece_marks_are_spaces_and_byte_tokens_bytes():
    vocab = {"▁a": 0, "<0x0A>": 1, "é": 2, "<0xff>": 3, "<0x0A>b": 4}
    added = [(5, "▁▁", False), (6, "<▁>", True)]
    vocabulary = from_tokenizer_json(tokenizer_json(vocab, added, decoder=SENTENCEPIECE))
    expected = (b" a", b"\n", "é".encode(), b"\xff", b"<0x0A>b", b"  ", "<▁>".encode())
    assert vocabulary == Vocabulary(expected, frozenset([6]))


def test_without_byte_fallback_a_byte_token_is_text():
    data = tokenizer_json({"<0x0A>": 0, "▁b": 1}, decoder={"type": "Metaspace"})
    assert from_tokenizer_json(data).tokens == (b"<0x0A>", b" b")


def test_unigram_word_pieces_and_word_level():
    unigram = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5]]}
    data = tokenizer_json({}, model=unigram, decoder={"type": "Metaspace"})
    assert from_tokenizer_json(data).tokens == (b"<unk>", b" a")
    pieces = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    data = tokenizer_json({"run": 0, "##ning": 1}, decoder=pieces)
    assert from_tokenizer_json(data).tokens == (b" run", b"ning")
    assert from_tokenizer_json(tokenizer_json({"Ġa": 0})).tokens == ("Ġa".encode(),)


def test_ids_without_a_token_are_holes():
    assert from_tokenizer_json(tokenizer_json({"a": 0, "b": 3})).tokens == (b"a", None, None, b"b")


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"{\"model\": 1}", b"\xff", b"[" * 10**6,
     tokenizer_json({"a": "0"}), tokenizer_json({"a": -1}), tokenizer_json({"a": 10**12}),
     tokenizer_json({"\ud800": 0}), tokenizer_json({}, model={"vocab": [["a", 0, 0]]}),
     tokenizer_json({"a": 0}, added_tokens=[{"id": 1}])],
)  # fmt: skip
def test_a_damaged_tokenizer_is_refused(data):
    with pytest.raises(Incomplete):
        from_tokenizer_json(data)


def test_gguf_types_say_how_a_token_is_spelled():
    tokens = ["<s>", "▁a", "<0x0A>", "<0x0B>", "  ", "▁▁▁", "[PAD6]", "<unk>", "[PAD8]", "b"]
    types = [3, 1, 6, 1, 4, 4, 5, 2, 3, 1]
    expected = (b"<s>", b" a", b"\n", b"<0x0B>", b"  ", b"   ", None, b"<unk>", b"[PAD8]", b"b")
    assert from_gguf(gguf(tokens, types)) == Vocabulary(expected, frozenset([0, 8]))


def test_gguf_byte_level_equals_the_same_tokenizer_json():
    metadata = gguf([*byte_alphabet(), *SPECIAL], [1] * 256 + [3] * 6, "gpt2")
    assert from_gguf(metadata) == from_tokenizer_json(byte_tokenizer_json().encode())


def test_gguf_rows_that_fill_up_the_embedding_are_no_tokens():
    padded = gguf(["a", "b", "[PAD2]", "<unused>", "[PAD4]"], [1, 1, 5, 5, 5])
    assert from_gguf(padded).tokens == (b"a", b"b")
    assert from_gguf(gguf(["a", "[PAD1]"])).tokens == (b"a", b"[PAD1]")


def test_gguf_without_a_sound_vocabulary_is_refused():
    for metadata in (
        {"tokenizer.ggml.model": "llama"},
        gguf(["a"]) | {"tokenizer.ggml.tokens": [1]},
        gguf(["a", "b"], [1]),
        gguf(["a"], ["1"]),
    ):
        with pytest.raises(Incomplete):
            from_gguf(metadata)
    for kind in ("bert", "rwkv", None, ["gpt2"]):
        with pytest.raises(Unsupported):
            from_gguf(gguf(["a"], kind=kind))


def test_voc_1_the_same_tokens_with_more_rows_or_more_tokens_at_the_end_agree():
    shared = gguf(["a", "b", "[PAD2]", "[PAD3]"], [1, 1, 5, 5])
    longer = plain(b"a", b"b", b"<tool>", special=[2])
    for one, other in ((from_gguf(shared), plain(b"a", b"b")), (from_gguf(shared), longer)):
        assert difference(one, other) is None
        assert difference(other, one) is None


def test_voc_2_equal_sizes_with_other_tokens_differ_at_the_first_such_id():
    target, draft = plain(b"<s>", b" the", b"\xc3", special=[0]), plain(b"<s>", b" le", b"\xc3")
    assert difference(target, draft) == Difference(1, " the", " le")
    assert difference(plain(b"\xc3"), plain(b"\xc4")) == Difference(0, "\ufffd", "\ufffd")
    assert difference(plain(b"a", b"b"), plain(b"a", None, b"c")) == Difference(1, "b", "")


def test_voc_2_which_tokens_are_special_or_end_a_text_is_no_difference():
    target = json.loads(byte_tokenizer_json())
    draft = json.loads(byte_tokenizer_json())
    for entry in draft["added_tokens"]:
        entry["special"] = False
    one, other = (from_tokenizer_json(json.dumps(root).encode()) for root in (target, draft))
    assert one.special != other.special
    assert difference(one, other) is None


def test_the_fingerprint_tells_vocabularies_apart():
    different = [
        plain(), plain(b""), plain(None), plain(None, None), plain(b"ab", b"c"), plain(b"a", b"bc"),
        plain(b"a", b"bc", special=[0]), plain(b"a", b"bc", None),
    ]  # fmt: skip
    assert len({vocabulary.fingerprint for vocabulary in different}) == len(different)
    assert plain(b"a").fingerprint == plain(b"a").fingerprint


def test_of_a_long_text_the_beginning_is_said():
    e, face = "é".encode(), "😀".encode()
    found = difference(plain(b"x" * 10_000_000), plain(e * 10_000))
    assert found == Difference(0, "x" * 40 + "…", "é" * 40 + "…")
    assert difference(plain(e * 40), plain(b"y")).target == "é" * 40
    # four bytes each, and nothing is cut through
    assert difference(plain(face * 41), plain(b"y")).target == "😀" * 40 + "…"
