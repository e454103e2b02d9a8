"""What is written: files as text, how they reach the model, drafts, earlier questions, tokens."""

import os
import re

import pytest

from app.chats.conversation import Attachment
from app.viewmodels import text_files, writing
from app.viewmodels.counting import Counting
from app.viewmodels.text_files import Refusal, decoded, plain_name, read, sentence
from app.viewmodels.writing import Tokens, Writing, fenced, with_attachments
from engine.counting import Count
from tests.composing import Desk


@pytest.fixture
def desk(qtbot, tmp_path):
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.fixture
def refused(desk):
    said = []
    desk.writing.refused.connect(said.append)
    return said


# How files reach the model


def test_without_files_the_question_is_as_it_was_written():
    assert with_attachments("  why?\n", ()) == "  why?\n"


def test_files_stand_before_the_question_under_their_names():
    files = [Attachment("a.txt", "one"), Attachment("b.txt", "two\n")]
    assert with_attachments("why?", files) == (
        "a.txt\n```\none\n```\n\nb.txt\n```\ntwo\n```\n\nwhy?"
    )
    assert with_attachments("", files[:1]) == "a.txt\n```\none\n```"


@pytest.mark.parametrize("inside", ["``", "```", "~~~", "x ````` y", "```\ncode\n```", "`" * 40])
def test_a_fence_is_longer_than_any_in_the_file(inside):
    lines = fenced(Attachment("n", inside)).split("\n")
    fence = lines[1]
    assert re.fullmatch("`{3,}", fence)
    assert lines[-1] == fence
    assert "\n".join(lines[2:-1]) == inside
    assert fence not in inside


# Files


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ä€😀\n".encode(), "ä€😀\n"),
        (b"\xef\xbb\xbfplain", "plain"),
        ("ä€😀".encode("utf-16"), "ä€😀"),
        (b"\xfe\xff" + "ä€😀".encode("utf-16-be"), "ä€😀"),
        ("ä€😀".encode("utf-32"), "ä€😀"),
        ("Größe – groß, “Maß” und Ähnliches".encode("cp1252"), "Größe – groß, “Maß” und Ähnliches"),
        ("Grüße".encode("cp1252"), "Grüße"),
        ("é".encode("cp1252"), "é"),
        (b"a\r\nb\rc", "a\nb\nc"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"", ""),
    ],
)
def test_text_is_read_in_the_usual_encodings(data, text):
    assert decoded(data) == text


@pytest.mark.parametrize(
    "data",
    [
        b"abc\0def",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n\x01\x02stream",
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n" * 9 + b"\xe9",
        b"%PDF-1.4\nplain",
        b"GIF89a and more",
        b"\xff\xd8\xff\xe0",
        bytes(range(128, 256)) * 4,
        b"\xff\xfea",  # half a character
        b"\xff\xfea\0\0\0",  # a NUL in UTF-16
        b"\xef\xbb\xbf\xff",
        b"caf\xe9 \x81\x8d",  # not in any
    ],
)
def test_what_is_no_text_is_not_taken_for_it(data):
    assert decoded(data) is None


def test_a_file_is_read_or_refused_with_a_reason(tmp_path):
    good, binary, empty = tmp_path / "a.txt", tmp_path / "b.png", tmp_path / "c.txt"
    good.write_text("one", encoding="utf-8")
    binary.write_bytes(b"\x89PNG\0\0")
    empty.write_text(" \n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    assert read(good) == Attachment("a.txt", "one")
    for path, why in (
        (binary, "binary"),
        (empty, "empty"),
        (tmp_path, "folder"),
        (tmp_path / "pipe", "special"),
        (tmp_path / "gone", "missing"),
        (tmp_path / "nul\0l", "failed"),
        (tmp_path / ("n" * 400), "failed"),
    ):
        refusal = read(path)
        assert isinstance(refusal, Refusal)
        assert refusal.why == why
        said = sentence(refusal)
        assert said[-1] in ".:" or refusal.detail
        assert refusal.name in said


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("x", encoding="utf-8")

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    assert sentence(read(tmp_path / "a")) == "“a” may not be read by this user."


def test_a_file_too_large_is_refused_with_both_numbers_and_not_read(tmp_path, monkeypatch):
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        file.truncate(3_400_000_000)
    refusal = read(large)
    assert sentence(refusal) == ("“large.log” has 3.4 GB; 2.0 MB is the most that can be attached.")
    monkeypatch.setattr(text_files, "MAX_BYTES", 4)
    exact = tmp_path / "exact"
    exact.write_bytes(b"1234")
    assert read(exact) == Attachment("exact", "1234")


def test_a_file_that_says_nothing_of_its_size_is_read_so_far_only(tmp_path, monkeypatch):
    """Those of /proc have size 0; others grow while they are read."""
    path = tmp_path / "a"
    path.write_bytes(b"123456")
    monkeypatch.setattr(text_files, "MAX_BYTES", 4)

    class Shy:
        st_mode, st_size = path.stat().st_mode, 0

    monkeypatch.setattr("pathlib.Path.stat", lambda self, **_: Shy)
    refusal = read(path)
    assert (refusal.why, refusal.size) == ("large", 5)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("田中　太郎 Ünï'x.txt", "田中　太郎 Ünï'x.txt"),
        ("a\nb\x00\x1b[31m.txt", "a\ufffdb\ufffd\ufffd[31m.txt"),
        ("evil\u202etxt.exe", "evil\ufffdtxt.exe"),
        ("bad\udcff.txt", "bad\ufffd.txt"),
    ],
)
def test_a_name_breaks_no_line_and_turns_no_direction(name, shown):
    assert plain_name(name) == shown
    plain_name(name).encode("utf-8")


def test_an_endless_name_keeps_both_ends():
    shown = plain_name("a" * 300 + ".py")
    assert len(shown) <= text_files.MAX_NAME + 1
    assert shown.startswith("aaa")
    assert shown.endswith("aa.py")


def test_files_are_read_in_the_files_lane_and_counted(qtbot, desk, tmp_path, monkeypatch):
    import threading

    seen = []
    monkeypatch.setattr(
        text_files,
        "read",
        lambda path: seen.append(threading.current_thread().name) or read(path),
    )
    path = tmp_path / "a.txt"
    path.write_text("one two three", encoding="utf-8")
    desk.writing.write("why not?")
    desk.writing.attach_files([path, path])
    assert desk.writing.reading
    qtbot.waitUntil(lambda: bool(desk.writing.attached))
    assert not desk.writing.reading
    assert seen == ["files"]
    (one,) = desk.writing.attached
    # the name and two fences are counted too: they are sent
    assert (one.name, one.size, one.tokens) == ("a.txt", 13, Tokens(6))
    assert one.about == "13 bytes, 6 tokens"
    assert desk.writing.tokens == Tokens(8)
    desk.writing.detach(one)
    assert desk.writing.tokens == Tokens(2)


def test_refusals_are_said_together_and_the_others_attached(qtbot, desk, refused, tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    paths = [tmp_path / "a.txt", *(tmp_path / f"gone {i}" for i in range(6))]
    desk.writing.attach_files(paths)
    qtbot.waitUntil(lambda: bool(refused))
    (said,) = refused
    assert said.count("no longer there") == 3
    assert said.endswith(" 3 more.")
    assert [one.name for one in desk.writing.attached] == ["a.txt"]


def test_reading_that_was_stopped_for_something_else_is_done_again(qtbot, desk, tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    desk.writing.attach_files([tmp_path / "a.txt"])
    desk.worker.stop_looking()
    qtbot.waitUntil(lambda: bool(desk.writing.attached))


def test_a_reading_that_fails_is_said_and_ends(qtbot, desk, refused, tmp_path, monkeypatch):
    def broken(path):
        raise RuntimeError("odd")

    monkeypatch.setattr(text_files, "read", broken)
    desk.writing.attach_files([tmp_path])
    qtbot.waitUntil(lambda: bool(refused))
    assert not desk.writing.reading
    assert "odd" in refused[0]


def test_no_more_files_than_fit_are_read_or_held(qtbot, desk, refused, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(text_files, "read", lambda p: asked.append(p) or Attachment(p.name, "x"))
    desk.writing.attach_files([tmp_path / f"{i}" for i in range(30)])
    qtbot.waitUntil(lambda: len(desk.writing.attached) == writing.MAX_FILES)
    assert len(asked) == writing.MAX_FILES
    assert refused == [
        "“20”, “21”, “22” … did not fit: at most 20 files with 4.0 MB together can be attached."
    ]
    desk.writing.detach(desk.writing.attached[0])
    monkeypatch.setattr(writing, "MAX_TOTAL", 20)
    desk.writing.attach([Attachment("big", "12")])
    assert len(desk.writing.attached) == 19
    assert "“big” did not fit" in refused[-1]


def test_the_same_file_is_attached_once_and_other_text_of_that_name_too(desk):
    for text in ("one", "one", "two"):
        desk.writing.attach([Attachment("a.txt", text)])
    assert [one.attachment.text for one in desk.writing.attached] == ["one", "two"]


def test_a_long_paste_has_a_name_of_its_own_and_a_limit(desk, refused):
    desk.writing.attach_text("Pasted text", "x" * 100)
    desk.writing.attach_text("Pasted text", "y" * 100)
    assert [one.name for one in desk.writing.attached] == ["Pasted text", "Pasted text 2"]
    desk.writing.attach_text("Pasted text", "x" * 5_000_000)
    assert refused == ["“Pasted text” has 5.0 MB; 2.0 MB is the most that can be attached."]


# Drafts


def test_each_chat_has_its_own_draft_with_its_files(desk):
    desk.writing.write("for a new chat")
    desk.writing.attach([Attachment("n", "x")])
    assert desk.writing.turn_to("b") == ""
    assert desk.writing.attached == ()
    desk.writing.write("for b")
    assert desk.writing.turn_to("") == "for a new chat"
    assert [one.name for one in desk.writing.attached] == ["n"]
    assert desk.writing.turn_to("b") == "for b"


def test_what_was_sent_is_no_draft(desk):
    desk.writing.write("question")
    desk.writing.attach([Attachment("n", "x")])
    desk.writing.sent("b")
    assert (desk.writing.attached, desk.writing.tokens) == ((), Tokens())
    assert desk.writing.turn_to("") == ""
    assert desk.writing.turn_to("b") == ""


def test_files_read_for_a_chat_that_was_left_wait_there(qtbot, desk, tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    desk.writing.write("see the file")
    desk.writing.attach_files([tmp_path / "a.txt"])
    desk.writing.turn_to("b")
    assert not desk.writing.reading
    qtbot.waitUntil(lambda: not desk.writing._waiting)
    assert desk.writing.attached == ()
    assert desk.writing.turn_to("") == "see the file"
    assert [one.name for one in desk.writing.attached] == ["a.txt"]


# Earlier questions


def test_questions_are_walked_back_and_forth(desk):
    recall, chat = desk.writing.recall, ["old", "new"]
    assert recall(False, chat) is None
    assert [recall(True, chat), recall(True, chat), recall(True, chat)] == ["new", "old", None]
    assert [recall(False, chat), recall(False, chat), recall(False, chat)] == ["new", "", None]


def test_what_is_being_written_is_never_replaced(desk):
    desk.writing.write("my own")
    assert desk.writing.recall(True, ["old"]) is None
    desk.writing.write("")
    assert desk.writing.recall(True, ["older", "old"]) == "old"
    desk.writing.write("old, changed")
    assert desk.writing.recall(True, ["older", "old"]) is None
    assert desk.writing.recall(False, ["older", "old"]) is None


def test_questions_of_other_chats_come_after_those_of_this_one(desk):
    for text in ("first", "second", "first"):
        desk.writing.write(text)
        desk.writing.sent("a")
    desk.writing.turn_to("b")
    walk = [desk.writing.recall(True, ["here"]) for _ in range(4)]
    assert walk == ["here", "first", "second", None]


# Tokens


def test_the_last_number_stands_until_there_is_another(desk):
    desk.writing.write("one two")
    assert desk.writing.tokens == Tokens(2)
    desk.counter.held = True
    desk.writing.write("one two three")
    assert desk.writing.tokens == Tokens(2)
    desk.counter.release()
    assert desk.writing.tokens == Tokens(3)


def test_where_nothing_can_count_no_number_is_shown(desk):
    desk.writing.write("one")
    desk.writing.write("")
    assert desk.writing.tokens == Tokens()
    desk.counter.held = True  # as where there is no tokenizer
    desk.writing.write("one two")
    assert desk.writing.tokens is None
    desk.writing.write("")
    assert desk.writing.tokens == Tokens()
    desk.writing.attach([Attachment("n", "a b c")])
    assert desk.writing.tokens is None


def test_text_typed_while_a_file_is_counted_comes_first_and_nothing_is_mixed_up(desk):
    desk.counter.held = True
    desk.writing.attach([Attachment("n", "a b c")])
    desk.writing.write("one two")
    assert desk.counter.counted[-1] == "one two"
    desk.counter.release()
    assert desk.writing.attached[0].tokens is None
    desk.counter.release()
    assert desk.writing.attached[0].tokens == Tokens(6)
    assert desk.writing.tokens == Tokens(8)


def test_files_are_not_counted_again_with_every_key(desk):
    desk.writing.attach([Attachment("n", "a b c")])
    before = len(desk.counter.counted)
    for text in ("o", "on", "one"):
        desk.writing.write(text)
    assert desk.counter.counted[before:] == ["o", "on", "one"]


def test_another_model_counts_all_anew(desk):
    desk.writing.attach([Attachment("n", "a b c")])
    desk.writing.write("one")
    desk.counter.held = True
    desk.writing.recount()
    assert desk.writing.tokens is None
    desk.counter.release()
    desk.counter.release()
    assert desk.writing.tokens == Tokens(7)


def test_an_estimate_says_that_it_is_one(desk):
    desk.counter.about = True
    desk.writing.attach([Attachment("n", "x " * 5_000)])
    desk.counter.about = False
    desk.writing.write("one")
    assert desk.writing.attached[0].about == "10 kB, about 5,003 tokens"
    assert desk.writing.tokens.words == "about 5,004 tokens"
    desk.writing.detach(desk.writing.attached[0])
    assert desk.writing.tokens.words == "1 token"


class Words:
    """A counter for which a word is a token; it takes the text in the counting lane."""

    def count(self, text, stopped):
        return Count(len(text.split()))

    def close(self):
        pass


def test_text_and_files_share_one_counter_and_its_lane(qtbot, desk):
    counting = Counting(desk.worker, desk.models, lambda loaded: Words())
    made = Writing(desk.worker, counting)
    made.attach([Attachment("n", "a b"), Attachment("m", "c d")])  # as many tokens in each
    for text in ("o", "one", "one two"):
        made.write(text)
    qtbot.waitUntil(lambda: made.tokens == Tokens(12), timeout=10_000)
    assert [one.tokens for one in made.attached] == [Tokens(5), Tokens(5)]
    desk.models.load()
    made.recount()
    qtbot.waitUntil(lambda: made.tokens == Tokens(12), timeout=10_000)
