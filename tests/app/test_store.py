"""The history file: what is kept, found and wiped, and what may befall it."""

import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chats import plain, salvage, search, store, tables
from app.chats.conversation import (
    Attachment,
    ChatRecord,
    Choices,
    Entry,
    Facts,
    Round,
    Unsent,
    branch,
    new_id,
    versions,
)
from app.chats.store import Reader, Store
from engine.api import Finish, Sampling, Usage
from engine.errors import EngineError, Reason
from engine.past import Past

MARKER = "Zauberwort-Xylophon-4711"


@pytest.fixture
def path(tmp_path):
    """A folder as PER-4 has it."""
    return tmp_path / "田中　太郎 Ünï'x" / "данные #1%20&?" / "chats.db"


@pytest.fixture
def opened(path):
    """Opens stores on the same file, and closes them."""
    made = []

    def opening(clock=time.time, past=None):
        made.append(Store(path, clock, past))
        return made[-1]

    yield opening
    for each in made:
        each.close()


def question(text="What is it?", chat="c", parent=None, **more):
    return Entry(new_id(), chat, parent, "user", text, **more)


def answer(text, asked, **more):
    return Entry(new_id(), asked.chat, asked.id, "assistant", text, **more)


def talk(kept, chat="c", text="A question", reply="An answer"):
    """A chat with a question and its answer."""
    kept.put_chat(ChatRecord(chat, f"Title of {chat}"))
    asked = question(text, chat)
    kept.put(asked)
    kept.put(answer(reply, asked))
    return asked


def files(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def texts(kept, chat="c"):
    return [entry.text for entry in kept.entries(chat)]


FACTS = Facts(
    model="Kleines Modell",
    thinking=1.5,
    usage=Usage(tokens=3, drafted=2, accepted=1, drafted_at=(1, 1), accepted_at=(1, 0), seed=2**63),
    finish=Finish.STOP,
    drafted=True,
    rounds=(Round(2, 1, 0.25, ((3, True), (4, False))), Round(0, 0, 0.125)),
    times_plain=1.9,
    token_ids=(1, 2, 70000),
    vocabulary="abc",
    notices=(Reason("slow", "It took {seconds} s", {"seconds": 2.5}),),
    problem=Reason("bad", "Bad {what}", {"what": "luck"}),
    left_out=3,
)


def test_what_is_kept_comes_back_after_closing(opened):
    choices = Choices("Be brief.", Sampling(temperature=0.5, logit_bias={7: -1.5}, stop=("#",)))
    record = ChatRecord("c", "Title", True, 1.0, 2.0, replace(choices, target="/m", left_out="q"))
    asked = question(attachments=(Attachment("a b.txt", "text 田"),), written=5.0)
    replied = answer("It.", asked, reasoning="Hm.", facts=FACTS, written=6.0)
    first = opened()
    first.put_chat(record)
    first.put(asked)
    first.put(replied)
    first.put_chat(record)
    first.close()
    second = opened()
    assert second.chats() == [record]
    assert second.entries("c") == [asked, replied]
    assert second.notices == []


odd = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["abc\0def", "\x1b[31mred\x1b[0m", "ac\u200bcess \u202etrue\u202c", "a\u2028b", "\ud800x"]
)


@settings(max_examples=12, deadline=None)
@given(text=odd, name=odd, title=odd)
def test_every_character_is_kept_but_halves_of_one(tmp_path_factory, text, name, title):
    file = tmp_path_factory.mktemp("odd") / "chats.db"
    with closing(Store(file)) as kept:
        kept.put_chat(ChatRecord("c", title))
        kept.put(question(text, reasoning=text, attachments=(Attachment(name, text),)))
    with closing(Store(file)) as kept:
        (entry,) = kept.entries("c")
        assert entry.text == entry.reasoning == plain.sound(text)
        assert entry.attachments == (Attachment(plain.sound(name), plain.sound(text)),)
        assert kept.chats()[0].title == plain.sound(title)


KEYS = """usage rounds notices sampling stop logit_bias token_ids template values code problem
    thinking drafted_at accepted_at finish temperature 7""".split()


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=6,
            )
        ),
        max_leaves=20,
    )
)
def test_facts_and_choices_are_read_from_anything(value):
    facts = plain.facts_in(value)
    assert plain.facts_in(plain.load(plain.FactsWriter().text(facts))) == facts
    assert facts.usage.accepted_by_position is not None
    choices = plain.choices_in(value)
    assert plain.choices_in(plain.load(plain.dump(plain.choices_out(choices)))) == choices


def test_unknown_keys_are_left_aside_and_missing_ones_take_their_default():
    value = plain.load(plain.FactsWriter().text(FACTS)) | {"later": {"more": 1}}
    del value["usage"]["seed"], value["model"]
    expected = replace(FACTS, model="", usage=replace(FACTS.usage, seed=0))
    assert plain.facts_in(value) == expected


def test_a_version_is_chosen_and_the_others_are_kept(opened):
    kept = opened()
    kept.put_chat(ChatRecord("c", "Title"))
    asked = question()
    first, second = answer("one", asked), answer("two", asked)
    for entry in (asked, first, second):
        kept.put(entry)
    assert [e.text for e in branch(kept.entries("c"))] == ["What is it?", "two"]
    kept.choose(first.id)
    kept.put(replace(second, text="two and more"))
    entries = kept.entries("c")
    assert [e.text for e in branch(entries)] == ["What is it?", "one"]
    assert [e.text for e in versions(entries, entries[1])] == ["one", "two and more"]
    assert [e.chosen for e in entries] == [True, True, False]


def test_a_dropped_message_takes_what_follows_it_along(opened):
    kept = opened()
    asked = talk(kept)
    last = replace(question("More?"), parent=kept.entries("c")[1].id)
    kept.put(last)
    kept.put(answer("Yes.", last))
    other = replace(asked, id=new_id(), text="Another start")
    kept.put(other)
    kept.drop(kept.entries("c")[1].id)
    assert texts(kept) == ["A question", "Another start"]
    assert kept.search("Yes") == []


@pytest.mark.parametrize("clock", [(1000, 1060, -7200, -7140, -1e6), (5, 5, 5, 5, 5)])
def test_order_is_the_order_of_writing_whatever_the_clock_says(opened, clock):
    times = iter([*clock] * 9)
    kept = opened(lambda: next(times))
    for chat in ("old", "new"):
        kept.put_chat(ChatRecord(chat, chat))
    parent = None
    for n in range(5):
        entry = question(str(n), "new", parent)
        kept.put(entry)
        parent = entry.id
    kept.put(question("again", "old"))
    kept.close()
    again = opened()
    assert texts(again, "new") == list("01234")
    assert [entry.text for entry in branch(again.entries("new"))] == list("01234")
    assert [chat.id for chat in again.chats()] == ["old", "new"]
    again.put_chat(replace(again.chats()[1], pinned=True))
    assert [chat.id for chat in again.chats()] == ["new", "old"]


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("crocodile", 1),
        ("CROCO", 1),
        ("codil", 1),
        ("crocodile purple", 1),
        ("crocodile orange", 0),
        ("def", 1),
        ("田中", 1),
        ("中", 1),
        ("東京都", 1),
        ("strasse", 1),
        ("café", 1),
        ("cafe\u0301", 1),
        ('"; DROP', 1),
        ("Title", 1),
        ("notes.txt", 1),
        ("within the file", 1),
        ("pondering", 1),
        ("", 0),
        (" \0 ", 0),
        ("un* OR", 0),
    ],
)
def test_search_finds_words_parts_and_signs(opened, asked, count):
    kept = opened()
    kept.put_chat(ChatRecord("c", "Title"))
    kept.put(question('A purple Crocodile; abc\0def\n"; DROP TABLE', reasoning="pondering"))
    kept.put(question("田中 in 東京都, Straße, café"))
    kept.put(question("-", attachments=(Attachment("notes.txt", "within the file"),)))
    for _ in range(2):  # the second time from the index
        assert len(kept.search(asked)) == count


def test_a_hit_tells_where_it_is(opened):
    kept = opened()
    talk(kept, reply="first line\n" + "x" * 300 + " needle " + "y" * 300 + "\nlast")
    (hit,) = kept.search("NEEDLE")
    assert (hit.chat, hit.title) == ("c", "Title of c")
    assert hit.entry == kept.entries("c")[1].id
    assert " needle " in hit.around
    assert len(hit.around) <= search.AROUND + 1
    (by_title,) = kept.search("title of")
    assert by_title.entry is None


def test_search_follows_an_answer_that_changes_and_one_that_is_too_long(opened, monkeypatch):
    monkeypatch.setattr(search, "LONGEST", 2000)
    kept = opened()
    kept.put_chat(ChatRecord("c", "-"))
    asked = question("-")
    reply = answer("begins with apple", asked, state="running")
    kept.put(asked)
    kept.put(reply)
    assert kept.search("apple")
    kept.put(replace(reply, state="done"))
    assert kept.search("apple")
    kept.put(replace(reply, text="begins with banana", state="running"))
    assert not kept.search("apple")
    assert kept.search("banana")
    kept.put(replace(reply, text="cherry " * 1000, state="done"))
    for _ in range(2):
        assert len(kept.search("cherry")) == 1
        assert not kept.search("banana")


def test_a_growing_answer_of_64k_characters_is_cheap_to_write(opened):
    kept = opened()
    kept.put_chat(ChatRecord("c", "-"))
    asked = question()
    kept.put(asked)
    rounds = tuple(Round(4, 3, 0.05, ((12, True), (4, False))) for _ in range(4000))
    spent = []
    for n in range(1, 41):
        facts = Facts(rounds=rounds[: 100 * n], token_ids=tuple(range(400 * n)))
        began = time.process_time()
        reply = Entry("a", "c", asked.id, "assistant", "x" * 1600 * n, facts=facts, state="running")
        kept.put(reply)
        spent.append(time.process_time() - began)
    assert kept.entries("c")[1] == replace(reply, written=kept.entries("c")[1].written)
    assert sorted(spent)[20] < 0.02  # 2 ms on a quiet machine


GROW = """
    import sys
    from pathlib import Path
    from app.chats.conversation import ChatRecord, Entry
    from app.chats.store import Store
    kept = Store(Path(sys.argv[1]))
    kept.put_chat(ChatRecord("c", "Title"))
    kept.put(Entry("q", "c", None, "user", "The question"))
    for n in range(1, 10_000):
        kept.put(Entry("a", "c", "q", "assistant", "piece " * n, state="running"))
        print(n, flush=True)
"""


def child(code, *arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        **more,
    )


def test_a_kill_in_mid_answer_loses_nothing_that_was_written(path, opened):
    process = child(GROW, path)
    for _ in range(20):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with closing(sqlite3.connect(path)) as raw:  # as it lies there: nobody has mended it yet
        assert raw.execute("SELECT state FROM messages ORDER BY seq").fetchall()[1] == ("running",)
    kept = opened()
    asked, reply = kept.entries("c")
    assert asked.text == "The question"
    assert reply.text.count("piece ") >= 20
    assert reply.state == "interrupted"
    kept.put(replace(reply, text=reply.text + "more", state="done"))
    assert kept.entries("c")[1].state == "done"


HOLD = """
    import sqlite3, sys, time
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    db.execute("COMMIT")
"""


@pytest.mark.parametrize(
    ("held", "busy"), [(1.0, 0.2), pytest.param(10.0, 5.0, marks=pytest.mark.slow)]
)
def test_a_lock_of_another_process_is_waited_for(path, opened, monkeypatch, held, busy):
    monkeypatch.setattr(store, "BUSY_SECONDS", busy)
    kept = opened()
    talk(kept)
    process = child(HOLD, path, held)
    process.stdout.readline()
    assert texts(kept)  # reading goes on
    kept.put(question("Written meanwhile"))
    process.wait()
    process.stdout.close()
    assert texts(kept)[-1] == "Written meanwhile"


def test_a_lock_that_never_ends_is_named(path, opened, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    kept = opened()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(EngineError) as refused:
            kept.put_chat(ChatRecord("c", "Title"))
        assert refused.value.code == "history_locked"
        other.execute("ROLLBACK")
    kept.put_chat(ChatRecord("c", "Title"))
    assert len(kept.chats()) == 1


def damage(path, start, end, by=b"\xff"):
    with path.open("r+b") as file:
        file.seek(start)
        file.write(by * (end - start))


def test_a_damaged_file_is_kept_announced_and_read_as_far_as_it_can_be(path, opened):
    kept = opened()
    talk(kept, reply="long " * 20_000)
    talk(kept, "d", reply="short")
    kept.put(question(parent=kept.entries("d")[-1].id, chat="d", attachments=FILE, facts=FACTS))
    before = kept.chats(), kept.entries("c"), kept.entries("d")
    kept.close()
    damage(path, 100, 4196)
    bad = path.read_bytes()
    again = opened()
    (notice,) = again.notices
    assert notice.code == "history_mended"
    aside = Path(notice.values["path"])
    assert aside.read_bytes() == bad
    assert str(aside) in notice.text
    assert (again.chats(), again.entries("c"), again.entries("d")) == before
    again.put(question("It goes on", "d"))
    again.close()
    again = opened()
    assert again.notices == []
    assert path.stat().st_mode & 0o777 == 0o600
    again.remove("d")
    again.purge()
    assert not aside.exists()


FILE = (Attachment("n.txt", "text"),)


def test_what_the_log_holds_is_read_too(path, opened):
    """A program that was killed leaves what it wrote last in the log."""
    process = child(GROW, path)
    for _ in range(20):
        process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    assert Path(f"{path}-wal").stat().st_size > 0
    damage(path, 0, path.stat().st_size)
    found = [row.values for row in salvage.rows(path) if len(row.values) == 12]
    assert max(values[8].count("piece ") for values in found) >= 20
    kept = opened()
    asked, reply = kept.entries("c")
    assert asked.text == "The question"
    assert reply.text.count("piece ") >= 20


@pytest.mark.parametrize("place", range(6))
def test_damage_anywhere_leaves_the_rest(path, opened, place):
    kept = opened()
    for n in range(30):
        talk(kept, f"c{n}", reply=f"answer {n} " * 100)
    kept.close()
    pages = path.stat().st_size // 4096
    start = 4096 * (place * pages // 6)
    damage(path, start, start + 4096)
    again = opened()
    read = [text for chat in again.chats() for text in texts(again, chat.id)]
    assert len(read) >= 30
    assert all(text == "A question" or text.startswith("answer ") for text in read)
    again.put(question("It goes on", again.chats()[0].id))


@pytest.mark.parametrize(
    "content", [b"no database at all" * 999, b"SQLite format 3\0", b"\0" * 9000]
)
def test_a_file_of_something_else_is_put_aside(path, opened, content):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    kept = opened()
    talk(kept)
    assert len(kept.notices) == 1
    assert Path(kept.notices[0].values["path"]).read_bytes() == content


def test_damage_that_shows_later_is_mended_without_losing_the_message(path, opened):
    kept = opened()
    for n in range(30):
        talk(kept, f"c{n}", reply=f"answer {n} " * 500)
    kept.close()
    kept = opened()
    kept._db.execute("PRAGMA cache_size = 5")
    kept._db.execute("PRAGMA shrink_memory")
    damage(path, 4096 * 12, path.stat().st_size)
    kept.put_chat(ChatRecord("new", "New"))
    kept.put(question("Written after it", "new"))
    for n in range(30):
        texts(kept, f"c{n}")
    assert texts(kept, "new") == ["Written after it"]
    assert [notice.code for notice in kept.notices] == ["history_mended"]


def test_a_program_that_ended_while_mending_loses_nothing(path, opened):
    kept = opened()
    talk(kept)
    kept.close()
    path.rename(path.with_name("chats.mending.db"))  # ended between the two renames
    assert texts(opened()) == ["A question", "An answer"]
    half = path.with_name("chats.mending.db")
    half.write_bytes(b"half")  # ended before them
    assert texts(opened()) == ["A question", "An answer"]
    assert not half.exists()


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(path, opened, monkeypatch):
    kept = opened()
    talk(kept)
    kept.close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {len(tables.STEPS) + 1}")
    before = path.read_bytes()
    for open_it in (Store, Reader):
        with pytest.raises(EngineError) as refused:
            open_it(path)
        assert refused.value.code == "history_newer"
    assert path.read_bytes() == before
    assert not [name for name in files(path) if "damaged" in name]


def test_an_older_schema_is_copied_before_it_is_changed(path, opened, monkeypatch):
    kept = opened()
    talk(kept)
    kept.close()
    monkeypatch.setattr(tables, "STEPS", (*tables.STEPS, "ALTER TABLE chats ADD COLUMN more TEXT"))
    kept = opened()
    assert texts(kept) == ["A question", "An answer"]
    (copy,) = [file for file in path.parent.iterdir() if ".before-3" in file.name]
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (2,)
        assert raw.execute("SELECT count(*) FROM messages").fetchone() == (2,)
    kept.close()
    opened()
    assert [file for file in path.parent.iterdir() if ".before-" in file.name] == [copy]


def test_a_message_that_was_taken_back_is_in_no_file_while_the_program_runs(path, opened):
    kept = opened()
    talk(kept)
    (chat,) = kept.chats()
    kept.put(Entry("q2", chat.id, kept.entries(chat.id)[-1].id, "user", "MARKER1 " * 40))
    kept.drop("q2")
    assert [name for name in files(path) if b"MARKER1" in (path.parent / name).read_bytes()] == []


def test_what_is_being_written_is_kept_and_goes_with_its_chat(path, opened):
    kept = opened()
    talk(kept)
    (chat,) = kept.chats()
    mine = Unsent("MARKER1 half a", (Attachment("notes.txt", "MARKER1"),))
    kept.put_unsent({"": Unsent("new"), chat.id: mine, "unknown": Unsent("x")})
    assert kept.unsent() == {"": Unsent("new"), chat.id: mine}
    kept.close()
    kept = opened()
    assert kept.unsent()[chat.id] == mine
    kept.remove(chat.id)
    kept.put_unsent({"": Unsent("new"), chat.id: mine})
    kept.purge()
    assert kept.unsent() == {"": Unsent("new")}
    kept.close()
    assert b"MARKER1" not in path.read_bytes()


def test_a_message_whose_parent_is_lost_is_seen_behind_the_one_before(opened):
    kept = opened()
    talk(kept)
    (chat,) = kept.chats()
    kept.put(Entry("q2", chat.id, "never written", "user", "Then?"))
    kept.put(Entry("a2", chat.id, "q2", "assistant", "So."))
    assert [entry.text for entry in branch(kept.entries(chat.id))] == [
        *("A question", "An answer"),
        *("Then?", "So."),
    ]


def test_a_step_that_fails_changes_nothing(path, opened, monkeypatch):
    kept = opened()
    talk(kept)
    kept.close()
    steps = tables.STEPS
    bad = "ALTER TABLE chats ADD COLUMN more TEXT; ALTER TABLE nothing ADD COLUMN more TEXT"
    monkeypatch.setattr(tables, "STEPS", (*steps, bad))
    with pytest.raises(EngineError):
        Store(path)
    monkeypatch.setattr(tables, "STEPS", steps)
    assert texts(opened()) == ["A question", "An answer"]


def test_a_full_disk_is_named_and_takes_nothing_along(opened):
    kept = opened()
    talk(kept)
    pages = kept._db.execute("PRAGMA page_count").fetchone()[0]
    kept._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(EngineError) as refused:
        kept.put(question("x" * 100_000))
    assert refused.value.code == "history_disk_full"
    assert texts(kept) == ["A question", "An answer"]
    kept._db.execute("PRAGMA max_page_count = 1000000")
    kept.put(question("There is room again"))
    assert len(texts(kept)) == 3


FILL = """
    import resource, sys
    from pathlib import Path
    from app.chats.conversation import ChatRecord, Entry
    from app.chats.store import Store
    from engine.errors import EngineError
    kept = Store(Path(sys.argv[1]))
    kept.put_chat(ChatRecord("c", "Title"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    n = 0
    try:
        for n in range(1000):
            kept.put(Entry(f"m{n}", "c", None, "user", "text " * 2000))
    except EngineError as error:
        print(n, error.code, flush=True)
"""


def test_a_disk_that_takes_no_more_leaves_all_that_was_kept(path, opened):
    process = child(FILL, path)
    count, code = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    assert code in (b"history_failed", b"history_disk_full")
    kept = opened()
    assert kept.notices == []
    assert len(texts(kept)) == int(count) > 3


def holders(path, word):
    needles = [word.encode(), word.casefold().encode()]
    return [name for name, data in files(path).items() if any(n in data for n in needles)]


def test_a_removed_chat_is_hidden_and_can_be_restored(opened):
    kept = opened()
    talk(kept, reply=MARKER)
    kept.remove("c")
    assert kept.chats() == []
    assert kept.search(MARKER) == []
    kept.restore("c")
    assert [chat.id for chat in kept.chats()] == ["c"]
    assert len(kept.search(MARKER)) == 1
    kept.remove("c")
    kept.purge()
    with pytest.raises(EngineError) as refused:
        kept.restore("c")
    assert refused.value.code == "chat_gone"


@pytest.mark.parametrize("searched", [False, True])
def test_deleted_means_gone_from_every_file(path, opened, monkeypatch, searched):
    kept = opened()
    for n in range(40):
        talk(kept, f"c{n}", reply=f"{n} and more " * 300)
    talk(kept, "gone", text=MARKER, reply=f"{MARKER} " * 3000)
    kept.put(question("q", "gone", attachments=(Attachment(MARKER, MARKER),), reasoning=MARKER))
    kept.put_chat(ChatRecord("gone", MARKER, choices=Choices(system=MARKER)))
    kept.close()
    monkeypatch.setattr(tables, "STEPS", (*tables.STEPS, "CREATE TABLE later (x)"))
    kept = opened()
    while searched and kept.search(MARKER) and not indexed(kept):
        pass
    assert len(holders(path, MARKER)) >= 2  # the file and the copy before the migration
    size = path.stat().st_size
    kept.remove("gone")
    kept.purge()
    assert holders(path, MARKER) == []
    assert not grams(kept) & {MARKER.casefold()[i : i + 3] for i in range(15, 22)}
    assert len(kept.chats()) == 40
    assert len(kept.search("39 and more")) == 1
    kept.close()
    assert path.stat().st_size < size - 50_000
    assert holders(path, MARKER) == []


def indexed(kept):
    count = "SELECT (SELECT count(*) FROM indexed) = (SELECT count(*) FROM messages)"
    return kept._db.execute(count).fetchone()[0]


def grams(kept):
    """What the index holds."""
    kept._db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab('main', 'found', 'row')")
    return {term for (term,) in kept._db.execute("SELECT term FROM temp.v")}


def test_what_was_removed_is_wiped_at_the_next_opening(path, opened):
    kept = opened()
    talk(kept, reply=MARKER)
    talk(kept, "d")
    kept.remove("c")
    kept.close()
    assert holders(path, MARKER)
    again = opened()
    assert holders(path, MARKER) == []
    assert [chat.id for chat in again.chats()] == ["d"]


def learned(past):
    return [text.chat for text in past.of("v").all]


@pytest.fixture
def past(tmp_path):
    """What drafts learned of two chats, and of one that is in no list."""
    past = Past(tmp_path / "past")
    for chat in ("c", "d", "e"):
        past.of("v").add(chat, [1, 2], 0)
    return past


def test_what_drafts_learned_of_a_chat_goes_with_it_and_comes_back_with_it(opened, past):
    kept = opened(past=past)
    talk(kept)
    talk(kept, "d")
    kept.remove("c")
    kept.restore("c")
    kept.purge()
    assert learned(past) == ["c", "d", "e"]
    kept.remove("c")
    assert learned(past) == ["c", "d", "e"]
    kept.purge()
    assert learned(past) == ["d", "e"]


def test_what_drafts_learned_is_forgotten_at_the_next_opening_at_the_latest(
    opened, past, tmp_path, monkeypatch
):
    kept = opened(past=past)
    talk(kept, reply=MARKER)
    kept.remove("c")

    def refuse(chat):
        raise PermissionError(13, "in use")

    monkeypatch.setattr(past, "forget", refuse)
    with pytest.raises(EngineError) as failed:
        kept.purge()
    assert "in use" in failed.value.reason.text
    kept.close()
    again = Past(tmp_path / "past")
    opened(past=again)
    assert learned(again) == ["d", "e"]


def test_what_drafts_learned_of_all_chats_is_forgotten_and_the_chats_stay(opened, past):
    kept = opened(past=past)
    talk(kept)
    kept.forget_learned()
    assert learned(past) == []
    assert [chat.id for chat in kept.chats()] == ["c"]


def test_a_reader_in_the_way_only_delays_the_wiping(path, opened, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    kept = opened()
    talk(kept, reply=MARKER)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM messages").fetchall()
        kept.remove("c")
        kept.purge()
        assert kept.chats() == []
    kept.purge()
    assert holders(path, MARKER) == []


def test_a_message_for_a_wiped_chat_does_not_bring_it_back(opened):
    kept = opened()
    asked = talk(kept)
    kept.remove("c")
    kept.purge()
    with pytest.raises(EngineError) as refused:
        kept.put(answer("late", asked))
    assert refused.value.code == "chat_gone"
    assert kept.chats() == []


def test_all_files_belong_to_their_owner_alone(path, opened):
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o644)
    kept = opened()
    talk(kept)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes) >= {"chats.db", "chats.db-wal", "chats.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_reader_reads_beside_the_window_and_changes_nothing(path, opened):
    kept = opened()
    talk(kept)
    with closing(Reader(path)) as beside:
        kept.put(question("Newer"))
        assert [e.text for e in beside.entries("c")] == ["A question", "An answer", "Newer"]
        with pytest.raises(sqlite3.OperationalError):
            beside._db.execute("DELETE FROM messages")


def test_a_reader_names_what_it_cannot_read(path, opened):
    with pytest.raises(EngineError) as refused:
        Reader(path)
    assert refused.value.code == "no_history"


def test_a_reader_reads_what_it_can_of_a_damaged_file_and_leaves_it_as_it_is(path, opened):
    kept = opened()
    talk(kept)
    kept.close()
    damage(path, 0, 4096)
    bad = path.read_bytes()
    with closing(Reader(path)) as reader:
        assert texts(reader) == ["A question", "An answer"]
        assert [notice.code for notice in reader.notices] == ["history_partly"]
    assert path.read_bytes() == bad
    assert not [name for name in files(path) if "damaged" in name]


def test_opening_500_messages_is_quick(opened):
    kept = opened()
    kept.put_chat(ChatRecord("c", "-"))
    rounds = tuple(Round(4, 3, 0.05, ((12, True), (4, False))) for _ in range(100))
    facts = replace(FACTS, rounds=rounds, token_ids=tuple(range(400)))
    kept._db.execute("BEGIN")
    writer = plain.FactsWriter()
    for n in range(500):
        entry = Entry(f"m{n}", "c", None, "assistant", "text " * 300, facts=(FACTS, facts)[n % 2])
        tables.add(kept._db, entry, writer)
    kept._db.execute("COMMIT")
    began = time.process_time()
    assert len(kept.entries("c")) == 500
    assert time.process_time() - began < 0.8  # 0.1 s on a quiet machine


def test_first_questions_are_the_newest_once_without_attachments_and_removed_chats(opened):
    kept = opened()
    for chat, text in (("a", "One?"), ("b", "Two?"), ("c", "One?"), ("d", "Gone?"), ("e", "  ")):
        talk(kept, chat, text, "An answer")
    first = question("First?", "f")
    kept.put_chat(ChatRecord("f", "F"))
    kept.put(first)
    said = answer("Yes.", first)
    kept.put(said)
    kept.put(question("Later?", "f", said.id))
    kept.put_chat(ChatRecord("g", "G"))
    kept.put(question("Read this?", "g", attachments=(Attachment("a.txt", "text"),)))
    kept.remove("d")
    assert kept.first_questions(9) == ["First?", "One?", "Two?"]
    assert kept.first_questions(1) == ["First?"]
