"""Text in the ids of another vocabulary: as if it were cut anew, and only its end is."""

import random

import pytest

from engine import translation as module
from engine.translation import Translation
from tests.folders import IM_END, IM_START, byte_tokenizer_json
from tests.vocabularies import OTHERS, target_words, words

TEXT = (
    "the cat  sat on the mat,\n\nabcab the cat: 12 345 ü 中文 的 😀👩‍👩‍👧 abc  \n x y\n\n\n"
    "def f(a, b):\n    return a + b  # the cat\n\n1, 2, 3, \tthe\r\n"
)


@pytest.fixture(scope="module")
def ours():
    return target_words()


@pytest.fixture(scope="module", params=OTHERS)
def theirs(request):
    return words(OTHERS[request.param]())


def text_of(words, ids):
    return b"".join(words.bytes_of(i) for i in ids)


def fresh(ours, theirs, tokens):
    made = Translation(ours, theirs)
    made.follow(tokens)
    return made.ids


def test_bytes_are_kept(ours, theirs):
    data = TEXT.encode()
    ids, ends = theirs.cut(data)
    assert text_of(theirs, ids) == data
    assert ends == sorted(ends)
    assert ends[-1] == len(data)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"a\xf0\x9f\x98", b"\x98\x80b", b"x\xc3", b"\x80" * 9]
)
def test_bytes_that_are_no_character_are_kept(theirs, data):
    ids, ends = theirs.cut(data)
    assert text_of(theirs, ids) == data
    assert ends[-1] == len(data)


@pytest.mark.parametrize("seed", range(4))
def test_text_that_grows_and_is_rewound_is_cut_as_if_it_were_new(ours, theirs, seed):
    """And what is said to be unchanged is unchanged."""
    chance = random.Random(seed)
    tokens = list(TEXT.encode() * 2)
    for _ in range(6):
        tokens.insert(chance.randrange(len(tokens)), chance.choice([IM_START, 0x80, 0xFF, 257]))
    grown, length = Translation(ours, theirs), 0
    for _ in range(40):
        before = list(grown.ids)
        length = min(len(tokens), length + chance.choice([0, 1, 1, 2, 5, 40]))
        same = grown.follow(tokens[:length])
        assert grown.ids[:same] == before[:same]
        assert grown.ids == fresh(ours, theirs, tokens[:length])
        if chance.random() < 0.4:
            length = chance.randrange(max(0, length - 30), length + 1)
            grown.keep(length)
            grown.keep(length)
            assert before[: len(grown.ids)] == grown.ids or len(grown.ids) > len(before)


def test_a_text_without_blanks_keeps_its_characters_whole(ours, theirs):
    tokens = list(("中文的" * 60).encode())
    grown = Translation(ours, theirs)
    for end in range(0, len(tokens), 7):
        grown.follow(tokens[:end])
        assert text_of(theirs, grown.ids) == bytes(tokens[:end])


def test_drafted_ids_are_kept_as_far_as_what_they_stand_for(ours, theirs):
    text = Translation(ours, theirs)
    tokens = list(b"on the ca")
    text.follow(tokens)
    for token in theirs.cut(b"t sat")[0]:
        text.add(token)
    drafted = list(text.ids)
    text.expect(list(b"t sat"))
    text.keep(len(tokens) + 5)
    assert text.ids == drafted
    text.keep(len(tokens) + 1)
    assert text_of(theirs, text.ids) == b"on the cat"
    text.follow([*tokens, *b"t on"])
    assert text.ids == fresh(ours, theirs, [*tokens, *b"t on"])


def test_drafted_ids_that_stand_for_nothing_are_forgotten(ours, theirs):
    text = Translation(ours, theirs)
    tokens = list(b"on the cat")
    text.follow(tokens)
    before = list(text.ids)
    text.add(theirs.cut(b"s")[0][0])
    text.keep(len(tokens))
    assert text.ids == before


def test_only_the_end_of_a_long_text_is_cut(ours, theirs, monkeypatch):
    tokens = list(b"the cat sat on the mat. " * 400)
    text = Translation(ours, theirs)
    text.follow(tokens)
    cut = []
    real = module.Words.cut
    monkeypatch.setattr(module.Words, "cut", lambda w, data: cut.append(len(data)) or real(w, data))
    for byte in b"and the cat":
        tokens.append(byte)
        assert text.follow(tokens) >= len(text.ids) - 8
    assert max(cut) < 40
    unbroken = list(b"x" * 9000)
    text.keep(0)
    text.follow(unbroken)
    cut.clear()
    text.follow([*unbroken, *b"yz"])
    assert max(cut) <= 2 * module.LOOK_BACK


def test_control_tokens_are_those_of_the_same_name_and_others_are_left_out(ours):
    theirs = words(OTHERS["byte level"](special=("<s>", "</s>", "<|im_start|>")))
    tokens = [*b"a", IM_START, *b"b", IM_END, *b"c"]
    same = theirs.tokenizer.backend.token_to_id("<|im_start|>")
    (a,), (b,), (c,) = (theirs.cut(letter)[0] for letter in (b"a", b"b", b"c"))
    assert fresh(ours, theirs, tokens) == [a, same, b, c]


def test_what_ends_a_turn_is_what_ends_it_there():
    ours = words(byte_tokenizer_json(), end="<|im_end|>")
    theirs = words(OTHERS["byte level"](special=("<end>",)), end="<end>")
    end = theirs.tokenizer.backend.token_to_id("<end>")
    (a,), (b,) = (theirs.cut(letter)[0] for letter in (b"a", b"b"))
    assert fresh(ours, theirs, [*b"a", IM_END, *b"b"]) == [a, end, b]


def test_a_text_begins_once(ours):
    theirs = words(OTHERS["byte level"](), bos=True)
    bos = theirs.tokenizer.bos
    assert fresh(ours, theirs, list(b"a"))[0] == bos
    assert fresh(ours, theirs, [256, *b"a"]) == fresh(ours, theirs, list(b"a"))
    assert fresh(ours, theirs, [*b"a", 256]).count(bos) == 2
