"""The list of chats: groups, search, deleting with undo, exports."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale

from app.chats.conversation import Hit
from app.viewmodels import chat_lines, conversations
from app.viewmodels.chat_lines import clean, file_name, grouped, marks
from app.viewmodels.turns import Turn
from engine.errors import EngineError, Reason
from tests.chats import NOW, at, drawn, made, record, took
from tests.fakes import ScriptedSession


@pytest.fixture(autouse=True)
def _english(qapp):
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.English))
    yield
    QLocale.setDefault(before)


def shown(lines):
    """Names of groups with a colon, titles without."""
    return [line.title if line.id else f"{line.title}:" for line in lines]


def test_chats_are_grouped_as_drawn():
    groups = [name for name in shown(grouped(drawn(), NOW, "")) if name.endswith(":")]
    assert groups == ["Pinned:", "Today:", "Yesterday:", "Last 7 days:", "October:"]
    assert len(grouped(drawn(), NOW, "")) == len(drawn()) + len(groups)


def test_months_go_back_and_older_years_say_so():
    records = [record("a", 8), record("b", 60), record("c", 330), record("d", 700)]
    assert shown(grouped(records, NOW, "")) == [
        "November:", "a", "September:", "b", "December 2025:", "c", "December 2024:", "d",
    ]  # fmt: skip


def test_a_day_begins_at_midnight_here():
    night = datetime(2026, 11, 18, 0, 5).timestamp()
    late = replace(record("late"), changed=night - 600)
    assert shown(grouped([late], night, "")) == ["Yesterday:", "late"]
    assert shown(grouped([late], night - 301, "")) == ["Today:", "late"]


def test_inside_a_group_the_order_is_the_stores():
    records = [record("older", 0.2), record("newer", 0.1), record("oldest", 0.3)]
    assert shown(grouped(records, NOW, ""))[1:] == ["older", "newer", "oldest"]


@pytest.mark.parametrize("changed", [NOW + 9e6, 1e300, float("inf"), float("nan"), -1e18])
def test_a_clock_that_jumps_loses_no_chat(changed):
    lines = grouped([replace(record("x"), changed=changed), record("y")], NOW, "x")
    assert {line.title for line in lines if line.id} == {"x", "y"}


def test_what_is_still_to_come_is_today():
    assert shown(grouped([record("x", -300)], NOW, "")) == ["Today:", "x"]


def test_at_midnight_today_becomes_yesterday():
    part = made([record("x")])
    part.conversations._clock = lambda: at(-1)
    part.conversations._minutes.timeout.emit()
    assert shown(part.conversations.lines) == ["Yesterday:", "x"]


def test_the_chat_in_the_window_is_marked():
    part = made(drawn())
    part.conversations.open("Letter to the landlord")
    part.lane.run()
    assert [line.title for line in part.conversations.lines if line.current] == [
        "Letter to the landlord"
    ]


def test_words_are_marked_whatever_their_case_and_accents():
    assert marks("Ein Häuschen, HAUSBAU", "haus bau") == ((4, 8), (14, 21))
    assert marks("naïve Café", "cafe") == ((6, 10),)
    assert marks("the cathode", "at") == ((5, 7),)  # nowhere at a beginning
    assert marks("at the cathode", "at") == ((0, 2),)
    assert marks("Straße", "strasse") == ((0, 6),)
    assert marks("text", '"*(') == ()


def test_results_take_the_place_of_groups_and_say_where(qtbot):
    text = "the quick brown fox jumps over a lazy dog and then meets the walrus at the shore"
    part = made([record("Animals"), record("Other")], {"Animals": text})
    part.conversations.search("  walrus ")
    assert shown(part.conversations.lines) == ["Today:", "Animals", "Other"]
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    part.lane.run()
    (line,) = part.conversations.lines
    assert line.entry == "in Animals"
    assert line.around.startswith("… ")
    (mark,) = line.marks
    assert line.around[slice(*mark)] == "walrus"
    part.conversations.search("")
    assert shown(part.conversations.lines) == ["Today:", "Animals", "Other"]


def test_typing_asks_once(qtbot):
    part = made([record("x")])
    for text in ("w", "wa", "wal"):
        part.conversations.search(text)
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    qtbot.wait(2 * conversations.SEARCH_MS)
    part.lane.run()
    assert part.store.calls == ["search wal"]
    assert part.conversations.said == "No chat has “wal” in it."


def test_an_answer_to_an_older_search_is_not_shown(qtbot):
    part = made([record("x")])
    part.conversations.search("x")
    part.conversations._ask()
    part.conversations.search("y")
    part.lane.run()
    assert shown(part.conversations.lines) == ["Today:", "x"]


def test_what_is_found_follows_what_is_written_and_imported(qtbot):
    part = made([record("Sewing"), record("Haystack")], {"Sewing": "a needle"})
    part.conversations.search("needle")
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    part.lane.run()
    assert shown(part.conversations.lines) == ["Sewing"]
    part.store.texts["Haystack"] = "needle"
    part.chat.answered.emit()
    part.lane.run()
    assert shown(part.conversations.lines) == ["Sewing", "Haystack"]
    part.store.texts["imported"] = "one more needle"
    part.conversations.take_in(Path("chats.json"))
    part.lane.run()
    assert shown(part.conversations.lines) == ["Sewing", "Haystack", "An imported chat"]


def test_many_changes_lead_to_one_search_at_a_time(qtbot):
    part = made([record("x")])
    part.chat.answered.emit()  # nothing is searched for
    assert not part.lane.tasks
    part.conversations.search("x")
    part.chat.answered.emit()  # while it is typed
    assert not part.lane.tasks
    qtbot.waitUntil(lambda: bool(part.lane.tasks))
    for _ in range(20):
        part.chat.answered.emit()
    assert len(part.lane.tasks) == 1
    part.lane.run()
    assert part.store.calls == ["search x", "search x"]
    part.conversations.search("")
    part.chat.answered.emit()
    assert not part.lane.tasks


def test_a_search_that_fails_is_not_waited_for(qtbot, monkeypatch):
    part = made([record("x")])

    def fails(text):
        part.store.calls.append("fails")
        raise EngineError("history_failed", "The file of chats could not be used.")

    with monkeypatch.context() as broken:
        broken.setattr(part.store, "search", fails)
        part.conversations.search("x")
        qtbot.waitUntil(lambda: bool(part.lane.tasks))
        part.chat.answered.emit()
        part.lane.run()
        assert part.store.calls == ["fails", "fails"]
    part.chat.answered.emit()
    part.lane.run()
    assert shown(part.conversations.lines) == ["x"]


def test_a_chat_found_often_has_one_line_with_the_first_text():
    records = {"x": record("x")}
    hits = [
        Hit("x", "x", None, "x"),
        Hit("x", "x", "1", "first x"),
        Hit("x", "x", "2", "second x"),
        Hit("gone", "gone", "3", "x"),
    ]
    lines = chat_lines.found(hits, "x", records, "")
    assert [(line.id, line.entry, line.around) for line in lines] == [("x", "1", "first x")]


def test_a_result_opens_where_it_was_found(qtbot):
    part = made([record("x")])
    with qtbot.waitSignal(part.conversations.sought) as caught:
        part.conversations.open("x", "in x")
        part.lane.run()
    assert caught.args == ["in x"]
    with qtbot.waitSignal(part.conversations.sought):
        part.conversations.open("x", "again")  # it is open already
    part.chat.opened.emit()  # another branch: nothing is sought any more


def test_an_empty_list_says_something():
    part = made()
    assert part.conversations.said.startswith("No chats yet.")
    assert part.conversations.lines == ()


def test_a_title_is_one_clean_line():
    assert clean("  a\n b\t\u202ec\x00 ") == "a b c"
    assert clean("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"
    assert len(clean("x" * 5_000)) == 200


def test_a_chat_is_renamed_and_pinned_at_once():
    part = made([record("x"), record("y", 3)])
    part.conversations.rename("x", "z")
    part.conversations.pin("y", True)
    assert shown(part.conversations.lines) == ["Pinned:", "y", "Today:", "z"]
    part.lane.run()
    assert part.store.records["x"].title == "z"
    assert part.store.records["y"].pinned
    part.conversations.rename("x", " \n ")
    assert part.store.records["x"].title == "z"


def test_the_chat_in_the_window_is_renamed_there():
    part = made([record("x")])
    part.conversations.open("x")
    part.lane.run()
    part.conversations.rename("x", "y")
    part.conversations.pin("x", True)
    assert part.chat.title == "y"
    assert shown(part.conversations.lines) == ["Pinned:", "y"]
    part.lane.run()
    assert part.store.records["x"] == replace(record("x"), title="y", pinned=True)


def test_a_deleted_chat_is_gone_at_once_and_comes_back():
    part = made([record("x"), record("y")])
    part.conversations.delete("x")
    assert shown(part.conversations.lines) == ["Today:", "y"]
    assert part.conversations.note == conversations.Note("Deleted “{title}”.", undo=True, title="x")
    assert part.conversations.note.text == "Deleted “x”."
    part.history.listed.emit([record("x"), record("y")])  # one that was on its way
    assert shown(part.conversations.lines) == ["Today:", "y"]
    part.lane.run()
    part.conversations.undo()
    part.lane.run()
    assert {line.title for line in part.conversations.lines if line.id} == {"x", "y"}
    assert part.conversations.note is None
    assert part.store.calls == ["remove x", "restore x"]
    part.conversations.undo()
    part.conversations.close()
    part.lane.run()
    assert part.store.calls == ["remove x", "restore x"]


def test_deleted_text_is_wiped_when_the_offer_ends():
    part = made([record("x"), record("y"), record("z")])
    part.conversations.delete("x")
    assert part.conversations._expiry.isActive()
    assert part.conversations._expiry.interval() == 10_000
    part.conversations._expiry.timeout.emit()
    part.lane.run()
    assert part.store.calls == ["remove x", "purge"]
    assert part.conversations.note is None
    part.conversations.delete("y")
    part.conversations.delete("z")
    part.lane.run()
    assert part.store.calls[2:] == ["remove y", "purge", "remove z"]
    part.conversations.close()
    part.lane.run()
    assert part.store.calls[5:] == ["purge"]


def test_after_the_chat_in_the_window_the_next_one_opens():
    part = made([record("a"), record("b"), record("c")])
    part.conversations.open("b")
    part.lane.run()
    for deleted, after in (("b", "c"), ("c", "a"), ("a", "")):
        part.conversations.delete(deleted)
        assert part.chat.chat_id == ""  # what was deleted is not seen any more
        part.lane.run()
        assert part.chat.chat_id == after
    part.conversations.undo()
    part.lane.run()
    assert part.chat.chat_id == "a"


def test_a_chat_deleted_while_it_is_opened_does_not_open():
    part = made([record("a"), record("b")])
    part.conversations.open("a")
    part.conversations.delete("a")
    part.lane.run()
    assert part.chat.chat_id == "b"


def test_another_chat_is_deleted_without_leaving_this_one():
    part = made([record("a"), record("b")])
    part.conversations.open("a")
    part.lane.run()
    part.conversations.delete("b")
    assert part.chat.chat_id == "a"
    part.conversations.undo()
    part.lane.run()
    assert part.chat.chat_id == "a"


def test_a_deletion_that_fails_shows_the_chat_again():
    part = made([record("x")])
    part.store.error = EngineError("disk_full", "The disk is full.")
    part.conversations.delete("x")
    part.lane.run()
    assert shown(part.conversations.lines) == ["Today:", "x"]


def test_what_drafts_learned_is_forgotten_and_it_is_said():
    part = made([record("x")])
    part.conversations.forget_learned()
    assert part.conversations.note is None
    part.lane.run()
    assert part.store.calls == ["forget"]
    assert part.conversations.note.text == "What was learned is forgotten."


def test_where_it_cannot_be_forgotten_nothing_else_is_said():
    part, failed = made([record("x")]), []
    part.history.failed.connect(failed.append)
    part.store.error = EngineError("history_failed", "It is in use.")
    part.conversations.forget_learned()
    part.lane.run()
    assert [reason.code for reason in failed] == ["history_failed"]
    assert part.conversations.note is None


def test_chats_are_exported_and_it_is_said():
    part = made([record("x"), record("y")])
    part.conversations.export(None, Path("all.json"), "json")
    part.conversations.export(["x", "gone"], Path("x.md"), "markdown")
    part.lane.run()
    assert part.store.calls == ["export 2 all.json json", "export 1 x.md markdown"]
    assert part.conversations.note.text == "Exported to x.md."


def test_only_a_title_is_put_into_a_note():
    assert conversations.Note("Exported to {title}.md.").text == "Exported to {title}.md."
    assert conversations.Note("“{title}”", title="{0} {title}").text == "“{0} {title}”"


def test_a_note_does_not_take_the_undo_away():
    part = made([record("x"), record("y")])
    part.conversations.delete("x")
    part.conversations.export(None, Path("all.json"), "json")
    part.lane.run()
    assert part.conversations.note.undo
    part.conversations.dismiss_note()
    assert part.conversations.note.text == "Exported to all.json."
    part.conversations.dismiss_note()
    assert part.conversations.note is None


def test_an_imported_chat_opens_unless_an_answer_would_be_stopped():
    part = made([record("x")])
    part.chat.answering = True
    part.conversations.take_in(Path("chats.json"))
    part.lane.run()
    assert part.chat.chat_id == ""
    part.chat.answering = False
    part.conversations.take_in(Path("chats.json"))
    part.lane.run()
    assert part.chat.chat_id == "imported"
    assert part.conversations.note.text == "Imported 1 chat."


def test_the_whole_chat_is_copied_as_it_is_shown():
    part = made()
    part.chat.title = "Sums"
    part.chat.turns = [Turn("1", "user", "1 + 1?"), Turn("2", "assistant", "**2**", model="M")]
    assert part.conversations.markdown() == (
        "# Sums\n\n## User\n\n1 + 1?\n\n## Assistant · M\n\n**2**\n"
    )


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Letter to the landlord", "Letter to the landlord.md"),
        ("a/b\\c: d?", "a b c d.md"),
        ("../..", "Chat.md"),
        ("...", "Chat.md"),
        ("x" * 200, "x" * 60 + ".md"),
    ],
)
def test_a_file_is_named_after_its_chat(qapp, title, name):
    assert file_name(title, "md") == name


def test_five_hundred_chats_cost_little():
    records = [record(f"Chat number {n}", n / 3, id=str(n)) for n in range(500)]
    assert took(lambda: grouped(records, NOW, "7")) < 0.05
    around = "Über die Brücke, schön und groß wie sonst nichts " * 5
    hits = [Hit(str(n), "x", "e", around) for n in range(500)]
    by_id = {one.id: one for one in records}
    assert took(lambda: chat_lines.found(hits, "brücke groß", by_id, "")) < 0.2


def test_a_file_that_is_mended_later_is_told_of_too(qtbot, open_program):
    program = open_program(ScriptedSession())
    qtbot.waitUntil(lambda: program.history._store is not None)
    for number in (1, 2):
        program.history._store.notices.append(Reason("mended", "Mended {n}", {"n": number}))
        with qtbot.waitSignal(program.history.noticed) as told:
            program.history.look()
        assert told.args[0].values == {"n": number}
    assert program.alerts.current.text == "Mended 2"
