"""Ids become text while they stream: whole characters, stop strings, thinking tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text import Detokenizer, Piece, Reading, StopStrings, Thinking

AWKWARD = "👩‍👩‍👧‍👦 龘 नमस्ते"


def decode(ids):
    return bytes(ids).decode("utf-8", errors="replace")


@pytest.mark.parametrize("run", [1, 2, 3, 5, 8])
def test_no_half_character_is_ever_shown(run):
    """STR-2, with the bytes committed in runs."""
    stream = Detokenizer(decode)
    ids = AWKWARD.encode()
    shown = ""
    for start in range(0, len(ids), run):
        shown += "".join(stream.push(i) for i in ids[start : start + run])
        assert "\ufffd" not in shown
        assert AWKWARD.startswith(shown)
    assert shown + stream.flush() == AWKWARD


@given(st.lists(st.integers(0, 255), max_size=60))
def test_pieces_join_to_the_full_decode_of_any_bytes(ids):
    stream = Detokenizer(decode)
    assert "".join(map(stream.push, ids)) + stream.flush() == decode(ids)


def test_half_a_character_at_the_end_is_flushed():
    stream = Detokenizer(decode)
    shown = "".join(map(stream.push, "a😀".encode()[:-1]))
    assert shown == "a"
    assert stream.flush() == "\ufffd"


@given(
    text=st.text(alphabet="ab\n", max_size=40),
    cuts=st.lists(st.integers(1, 4), max_size=40),
    stops=st.lists(st.text(alphabet="ab\n", min_size=1, max_size=5), max_size=3),
)
def test_text_ends_before_the_first_stop_string_however_it_is_cut(text, cuts, stops):
    stage = StopStrings(stops)
    shown, rest = "", text
    for cut in [*cuts, 100]:
        shown += stage.push(rest[:cut])
        rest = rest[cut:]
        if stage.hit:
            break
        assert text.startswith(shown)
    shown += "" if stage.hit else stage.flush()
    # the stop string that is complete first ends the text
    ends = [(text.find(s) + len(s), text.find(s)) for s in stops if s in text]
    if not ends:
        assert shown == text
        return
    assert stage.hit
    assert text.startswith(shown)
    assert any(text.startswith(s, len(shown)) for s in stops)
    assert not any(s in shown for s in stops)


def test_the_beginning_of_a_stop_string_is_held_back():
    stage = StopStrings(["END"])
    assert stage.push("text E") == "text "
    assert stage.push("N") == ""
    assert stage.push("x") == "ENx"


def feed(chunks, *, open_at_start=False):
    """What the thinking stage gives per chunk, and at the end."""
    stage = Thinking(open_at_start)
    pieces = [stage.push(c) for c in chunks]
    return pieces, sum(pieces, Piece()), sum([*pieces, stage.flush()], Piece())


@pytest.mark.parametrize(
    ("chunks", "opened"),
    [
        pytest.param(["<th", "ink>plan", " more</thi", "nk>\n\nAnswer 42"], False, id="a"),
        pytest.param(["<think>plan more</think>Answer 42"], False, id="b"),
        pytest.param(["plan more</th", "ink>Answer 42"], True, id="c"),
        pytest.param(list("\n<think>\nplan more\n</think>\n\nAnswer 42"), False, id="letters"),
        pytest.param(list("\nplan more\n</think>\nAnswer 42"), True, id="letters, opened"),
    ],
)
def test_thinking_is_split_off_and_no_tag_is_ever_shown(chunks, opened):
    """STR-1 a to c."""
    pieces, _, whole = feed(chunks, open_at_start=opened)
    assert whole == Piece("Answer 42", "plan more")
    shown = reasoning = ""
    for piece in pieces:
        shown, reasoning = shown + piece.text, reasoning + piece.reasoning
        assert "Answer 42".startswith(shown)
        assert "plan more".startswith(reasoning)


def test_stopped_in_the_middle_of_thinking():
    """STR-1 d."""
    assert feed(["<think>plan"])[2] == Piece("", "plan")


@pytest.mark.parametrize(
    "text", ["Use <think> in HTML", "a </think> b", "<thinker>", "<th", "  x", "", "<", "a<think>b"]
)
def test_text_that_only_looks_like_a_tag_stays(text):
    assert feed(list(text))[2] == Piece(text, "")


TAGGED = ["<think>", "a", " plan", "</think>", "so", " it", " is"]


def tagged(ids):
    return "".join(TAGGED[i] for i in ids)


@pytest.mark.parametrize("begun", range(8))
def test_thinking_is_counted_with_its_tags_and_from_where_the_answer_goes_on(begun):
    reading = Reading(tagged, (), thinking=False)
    reading.begin(range(begun), Piece())
    for token in range(begun, 7):
        reading.push(token)
    assert reading.thought == max(0, 4 - begun)


@pytest.mark.parametrize("begun", range(8))
def test_nothing_that_was_seen_is_shown_again_and_nothing_is_left_out(begun):
    """Also of what these stages would have held back: here the start of a stop string."""
    reading = Reading(tagged, ("so it will",), thinking=False)
    seen = Piece("".join(TAGGED[4:begun]), "".join(TAGGED[1 : min(begun, 3)]))
    reading.begin(range(begun), seen)
    pieces = [reading.push(i) for i in range(begun, 7)]
    assert sum([*pieces, reading.flush()], seen) == Piece("so it is", "a plan")
