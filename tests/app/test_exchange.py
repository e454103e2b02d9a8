"""Chats as files: what comes back, what stays out, what a stranger's file cannot do."""

import json
import re
import stat
import time
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import paths
from app.__main__ import main
from app.chats import exchange
from app.chats.conversation import Attachment, ChatRecord, Choices, Entry, Facts, Round, branch
from app.chats.store import Reader, Store
from engine.api import Sampling, Usage
from engine.errors import EngineError, Reason

FACTS = Facts(
    model="Tiny · one",
    thinking=2.0,
    usage=Usage(tokens=9, seed=5),
    drafted=True,
    rounds=(Round(2, 1, 0.25, ((3, True), (2, False))),),
    token_ids=(1, 2),
    vocabulary="v",
    notices=(Reason("odd", "Odd: {what}", {"what": "it"}),),
    left_out=2,
)
CHOICES = Choices("Be brief.", Sampling(temperature=0.5), "/m/target", "ngram", "Before.", "q")
CHAT = ChatRecord("c", "About whales", True, 10.0, 20.0, CHOICES)
ENTRIES = [
    Entry("q", "c", None, "user", "How big?", (Attachment("w.txt", "whale"),), written=11.0),
    Entry("a", "c", "q", "assistant", "Very big.", (), "Hm.\n\nBig.", "done", FACTS, 12.0, False),
    Entry("b", "c", "q", "assistant", "Huge.", state="interrupted", written=13.0),
    Entry("r", "c", "b", "user", "And\n\nold?", written=14.0),
]


def anonymous(talk):
    """A chat without what an export leaves out, and with the places of ids instead of them."""
    chat, entries = talk
    places = {entry.id: n for n, entry in enumerate(entries)}
    choices = replace(
        chat.choices, target=None, draft=None, left_out=places.get(chat.choices.left_out)
    )
    bare = {"token_ids": (), "vocabulary": "", "notices": (), "problem": None}
    return replace(chat, id="", choices=choices), [
        replace(
            entry,
            id=places[entry.id],
            chat="",
            parent=places.get(entry.parent),
            facts=replace(entry.facts, **bare),
        )
        for entry in entries
    ]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "Blauwale 鯨.json"


def test_json_brings_back_all_versions_under_new_ids(file):
    other = ChatRecord("d", "Empty")
    assert exchange.save(file, [(CHAT, ENTRIES), (other, [])], "json") == 2
    first, second = exchange.read(file)
    assert anonymous(first) == anonymous((CHAT, ENTRIES))
    assert anonymous(second) == anonymous((other, []))
    chat, entries = first
    assert not {"c", "q", "a", "b", "r"} & {chat.id, *(entry.id for entry in entries)}
    assert all(entry.chat == chat.id for entry in entries)


def test_an_export_names_no_place_on_this_computer_and_no_tokens(file):
    exchange.save(file, [(CHAT, ENTRIES)], "json")
    text = file.read_text(encoding="utf-8")
    assert "/m/target" not in text
    assert "token_ids" not in text
    assert "Odd: it" in text


def test_json_is_what_its_description_says(file):
    exchange.save(file, [(CHAT, ENTRIES)], "json")
    value = json.loads(file.read_text(encoding="utf-8"))
    assert (value["format"], value["version"]) == (exchange.NAME, exchange.VERSION)
    described = (paths.Path(__file__).parents[2] / "docs/chats.md").read_text(encoding="utf-8")
    names = {*value["chats"][0], *value["chats"][0]["messages"][0]}
    names |= {*value["chats"][0]["choices"], *value["chats"][0]["messages"][0]["facts"]}
    assert names <= set(re.findall(r"`(\w+)`", described))


def test_markdown_shows_the_chosen_messages_under_headings(file):
    exchange.save(file, [(CHAT, ENTRIES)], "markdown")
    assert file.read_text(encoding="utf-8") == (
        "# About whales\n\n## System\n\nBe brief.\n\n## User\n\n*Attached: w.txt*\n\nHow big?\n\n"
        "## Assistant\n\nHuge.\n\n## User\n\nAnd\n\nold?\n"
    )
    exchange.save(file, [(CHAT, ENTRIES[:2])], "markdown")
    thought = "> **Thinking**\n>\n> Hm.\n>\n> Big.\n\nVery big.\n"
    assert file.read_text(encoding="utf-8").endswith(f"## Assistant · Tiny · one\n\n{thought}")


LINES = """
text
# Title
## User
\\## User
\\\\## Assistant · x
> **Thinking**
>
    code
- item
## Userland
\\# x
a\0b
\\u001b
\\\\u001b and \\\x1b
\x9b31m\x7f
c\r
\x1b[0m\u2028
*Attached: x*"""
lines = st.sampled_from(LINES.split("\n"))
bodies = st.lists(lines, min_size=1, max_size=6).map("\n".join).map(lambda text: text.strip("\n"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(bodies, bodies, bodies), min_size=1, max_size=3))
def test_markdown_comes_back_whatever_the_texts_look_like(tmp_path_factory, texts):
    talks = []
    for asked, thought, said in texts:
        entries = [
            Entry("q", "c", None, "user", asked),
            Entry("a", "c", "q", "assistant", said, reasoning=thought, facts=Facts(model="m")),
        ]
        talks.append((ChatRecord("c", "Title"), entries))
    file = tmp_path_factory.mktemp("md") / "chats.md"
    exchange.save(file, talks, "markdown")
    found = exchange.read(file)
    assert [anonymous(talk) for talk in found] == [anonymous(talk) for talk in talks]


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_nothing_in_an_export_acts_in_a_terminal(file, form):
    odd = "\x1b[31mred\x1b[0m \x1b]52;c;QUJD\x07end a\0b \x9b31m \x7f\r!"
    entries = [
        Entry("q", "c", None, "user", odd, (Attachment(odd, odd),)),
        Entry("a", "c", "q", "assistant", odd, reasoning=odd, facts=Facts(model=odd)),
    ]
    talk = (ChatRecord("c", odd, choices=Choices(odd)), entries)
    exchange.save(file, [talk], form)
    raw = file.read_bytes().decode()
    assert not set(raw) & {chr(c) for c in (*range(9), *range(11, 32), *range(127, 160))}
    assert "\\u001b[31mred" in raw
    ((chat, found),) = exchange.read(file)
    assert all(entry.text.endswith(odd) for entry in found)
    assert (found[1].reasoning, chat.choices.system) == (odd, odd)


@pytest.mark.parametrize("opened", ["```python\nx", "~~~\n```", "```\na\n```\n````x\n```"])
def test_an_open_code_block_is_closed_in_markdown(file, opened):
    entries = [Entry("q", "c", None, "user", opened), Entry("a", "c", "q", "assistant", "Next")]
    exchange.save(file, [(ChatRecord("c", "Title"), entries)], "markdown")
    heading = file.read_text(encoding="utf-8").split("\n\n## Assistant")[0]
    assert heading.split("\n")[-1] in ("```", "~~~", "````")


@pytest.mark.parametrize("closed", ["```\nx\n```", "``` a`b ```", "text", "    ```"])
def test_what_is_closed_stays_as_it_is(closed):
    assert exchange.markdown(Entry("q", "c", None, "user", closed)) == f"## User\n\n{closed}"


def chats_of(*messages, **chat):
    whole = {"title": "T", "messages": list(messages), **chat}
    return {"format": exchange.NAME, "version": exchange.VERSION, "chats": [whole]}


def message(id="1", parent=None, **more):
    return {"id": id, "parent": parent, "role": "user", "text": "x", **more}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\0",
        b"just some notes\n\n# With a heading\n",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format": "slipstream-chats", "version": ' + b"1" * 10_000 + b"}",
        {"format": "other"},
        {"format": exchange.NAME, "version": 99, "chats": []},
        {"format": exchange.NAME, "version": exchange.VERSION},
        {"format": exchange.NAME, "version": exchange.VERSION, "chats": {}},
        {"format": exchange.NAME, "version": exchange.VERSION, "chats": [1]},
        {"format": exchange.NAME, "version": exchange.VERSION, "chats": []},
        chats_of(title=None),
        chats_of(messages="x"),
        chats_of(message(), message()),
        chats_of(message("1", "2"), message("2", "1")),
        chats_of(message("1", "1")),
        chats_of(message("1", "gone")),
        chats_of(message(parent=5)),
        chats_of(message(parent=["1"])),
        chats_of(message(role="tool")),
        chats_of(message(role=["user"])),
        chats_of(message(text=None)),
        chats_of(message(id=1)),
        chats_of(message(), None),
    ],
    ids=range(26),
)
def test_a_file_of_another_kind_is_refused_and_nothing_is_taken_in(file, content):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    good = json.dumps(chats_of(message())["chats"][0]).encode()
    for data in (raw, raw.replace(b'"chats": [{', b'"chats": [' + good + b", {")):
        file.write_bytes(data)
        with closing(Store(paths.history_file())) as kept:
            with pytest.raises(EngineError) as refused:
                kept.take_in(file)
            assert refused.value.code == "import_refused"
            assert kept.chats() == []


def test_a_file_that_is_too_large_is_not_read(file, monkeypatch):
    monkeypatch.setattr(exchange, "LIMIT", 1_000_000)
    with file.open("wb") as sparse:
        sparse.truncate(10**12)
    began = time.monotonic()
    with pytest.raises(EngineError) as refused:
        exchange.read(file)
    assert refused.value.code == "import_too_large"
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", ["MOST_CHATS", "MOST_MESSAGES", "MOST_VALUES"])
@pytest.mark.parametrize("form", ["json", "markdown"])
def test_too_many_parts_are_refused(file, monkeypatch, name, form):
    exchange.save(file, [(CHAT, ENTRIES)] * 3, form)
    if (name, form) == ("MOST_VALUES", "markdown"):
        return
    monkeypatch.setattr(exchange, name, 2)
    with pytest.raises(EngineError) as refused:
        exchange.read(file)
    assert refused.value.code == "import_refused"


def test_what_a_stranger_could_misuse_is_left_aside(file):
    facts = {
        "token_ids": [99999999],
        "vocabulary": "v",
        "rounds": [[1, 1, 0.5, 50, 1]],
        "notices": [{"code": "x", "template": "{a:>999999999}", "values": {"a": 1}}],
        "usage": {"seconds": -5, "tokens": 1e400, "drafted": True},
        "thinking": "long",
    }
    sent = message(facts=facts, state="running", attachments=[{"name": 5}, 7], written="now")
    choices = {"target": "//evil/share", "draft": "/x", "sampling": {"temperature": -1}}
    file.write_text(json.dumps(chats_of(sent, title="a\nb" * 999, choices=choices)))
    ((chat, (entry,)),) = exchange.read(file)
    assert entry.facts == Facts()
    assert entry.state == "interrupted"
    assert entry.attachments == (Attachment("", ""),)
    assert chat.choices == Choices()
    assert "\n" not in chat.title
    assert len(chat.title) <= exchange.TITLE_LENGTH


def test_imported_chats_stand_in_the_list_as_they_stood_in_the_file(file):
    with closing(Store(paths.history_file())) as kept:
        kept.put_chat(ChatRecord("c", "First"))
        kept.put_chat(ChatRecord("d", "Second"))
        kept.put(Entry("q", "d", None, "user", "Whale"))
        names = [chat.title for chat in kept.chats()]
        assert kept.export([chat.id for chat in kept.chats()], file, "json") == 2
        taken = kept.take_in(file)
        assert [chat.id for chat in kept.chats()][:2] == taken
        assert [chat.title for chat in kept.chats()] == names * 2
        assert len(kept.search("whale")) == 2
        assert [entry.text for entry in kept.entries(taken[0])] == ["Whale"]


def test_an_import_that_fails_at_its_end_takes_nothing_in(file, monkeypatch):
    exchange.save(file, [(CHAT, ENTRIES), (replace(CHAT, id="d"), ENTRIES)], "json")
    with closing(Store(paths.history_file())) as kept:
        pages = kept._db.execute("PRAGMA page_count").fetchone()[0]
        large = replace(ENTRIES[0], text="x" * 100_000)
        exchange.save(file, [(CHAT, [large]), (replace(CHAT, id="d"), ENTRIES)], "json")
        kept._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(EngineError) as refused:
            kept.take_in(file)
        assert refused.value.code == "history_disk_full"
        assert kept.chats() == []


def test_an_export_is_private_and_leaves_the_old_file_whole_if_it_fails(file):
    exchange.save(file, [(CHAT, ENTRIES)], "json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()

    def broken():
        yield CHAT, ENTRIES
        raise OSError(28, "No space left on device")

    with pytest.raises(EngineError) as refused:
        exchange.save(file, broken(), "json")
    assert refused.value.code == "export_failed"
    assert file.read_bytes() == before
    assert {each.name for each in file.parent.iterdir()} <= {"home", file.name}


@pytest.fixture
def history():
    with closing(Store(paths.history_file())) as kept:
        kept.put_chat(CHAT)
        for entry in ENTRIES:
            kept.put(entry)
        yield kept


def test_the_command_exports_all_chats_while_the_window_has_them_open(history, tmp_path, capsys):
    target = tmp_path / "all.json"
    assert main(["export", "--all", "-o", str(target)]) == 0
    assert capsys.readouterr().out.strip() == str(target)
    ((chat, entries),) = exchange.read(target)
    assert chat.title == CHAT.title
    assert [entry.text for entry in entries] == [entry.text for entry in ENTRIES]
    history.put(Entry("z", "c", "r", "assistant", "Still writing"))


def test_the_command_names_a_file_and_replaces_none_unasked(history, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "--all"]) == 0
    (made,) = tmp_path.glob("slipstream-chats-*.md")
    assert made.read_text(encoding="utf-8").startswith("# About whales\n")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    made.write_text("mine", encoding="utf-8")
    assert main(["export", "--all"]) == 1
    assert "--force" in capsys.readouterr().err
    assert made.read_text(encoding="utf-8") == "mine"
    assert main(["export", "--all", "--force", "--format", "json", "-o", str(made)]) == 0
    assert len(branch(exchange.read(made)[0][1])) == 3


def test_the_command_says_that_there_are_no_chats(capsys):
    assert main(["export", "--all"]) == 1
    assert str(paths.history_file()) in capsys.readouterr().err
    assert not paths.history_file().exists()


def test_a_reader_exports_what_a_killed_window_left(history, tmp_path):
    """Its log is not yet part of the file."""
    copy = tmp_path / "copy" / "chats.db"
    copy.parent.mkdir()
    for part in ("", "-wal"):
        source = paths.history_file().with_name(f"chats.db{part}")
        copy.with_name(f"chats.db{part}").write_bytes(source.read_bytes())
    with closing(Reader(copy)) as reader:
        assert reader.export(["c", "unknown"], tmp_path / "x.md", "markdown") == 1
    assert "How big?" in (tmp_path / "x.md").read_text(encoding="utf-8")


def test_the_command_writes_no_file_where_there_is_no_chat(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(paths, "history_file", lambda: tmp_path / "chats.db")
    Store(tmp_path / "chats.db").close()
    assert main(["export", "--all", "-o", str(tmp_path / "out.md")]) == 1
    assert "There are no chats yet." in capsys.readouterr().err
    assert not (tmp_path / "out.md").exists()
