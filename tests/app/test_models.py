"""Which model runs, what may draft, and the first start."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app import paths, settings
from app.lanes import Job
from app.viewmodels.alerts import Action
from app.viewmodels.shelf import Shelf
from engine.api import Chunk, Progress
from engine.errors import DownloadError, DraftRefused, LoadError, Reason
from engine.guidance import Level
from engine.library import index
from engine.library.index import Index
from engine.measured import LOOKUPS
from tests.fakes import DRAFT, FOREIGN, TARGET, FakeShelf, ScriptedSession, chunks_of, entries


def keys(rows):
    return [row.key for row in rows]


def test_the_first_start_offers_the_starter_and_ends_with_it_loaded(qtbot, open_program):
    shelf, session = FakeShelf([]), ScriptedSession()
    program = open_program(session, shelf, wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    assert program.window.first_run.isVisible()
    shelf.hold.clear()
    program.window.first_run.get.click()
    qtbot.waitUntil(lambda: program.models.starter.fetching is not None)
    qtbot.waitUntil(lambda: program.window.first_run.cancel.isVisible())
    qtbot.waitUntil(lambda: program.models.starter.fetching.share > 0.6)
    assert "60 of 98 MB" in program.models.starter.fetching.text
    assert "left" in program.models.starter.fetching.text
    shelf.hold.set()
    qtbot.waitUntil(lambda: program.models.loaded is not None)
    assert session.loads == [FOREIGN]
    assert not program.models.first_run


def test_a_cancelled_download_shows_the_offer_again(qtbot, open_program):
    shelf = FakeShelf([])
    program = open_program(ScriptedSession(), shelf, wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    shelf.hold.clear()
    program.models.starter.get()
    qtbot.waitUntil(lambda: program.models.starter.fetching is not None)
    program.window.first_run.cancel.click()
    qtbot.waitUntil(lambda: program.models.starter.fetching is None)
    assert program.window.first_run.get.isVisible()
    assert program.alerts.current is None


def test_a_failed_download_says_why(qtbot, open_program):
    shelf = FakeShelf([])
    shelf.fetch_error = DownloadError("no_network", "There is no connection.")
    program = open_program(ScriptedSession(), shelf, wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    program.models.starter.get()
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.window.first_run._error.text() == "There is no connection."
    assert program.window.first_run.get.isVisible()


def test_the_last_target_and_its_last_draft_come_back(open_program):
    folder = paths.ensure(paths.config_folder())
    kept = settings.Settings(target=str(DRAFT), drafts={str(DRAFT): "none", str(TARGET): "ngram"})
    settings.save(kept, folder)
    session = ScriptedSession()
    program = open_program(session)
    assert session.loads == [DRAFT]
    assert program.models.draft == "none"


def test_a_choice_is_remembered(qtbot, open_program):
    program = open_program(ScriptedSession())
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    qtbot.waitUntil(lambda: str(DRAFT) in settings.load(paths.config_folder()).drafts.values())
    kept = settings.load(paths.config_folder())
    assert kept.target == str(TARGET)
    assert kept.drafts[str(TARGET)] == str(DRAFT)


def test_a_draft_that_is_gone_is_not_asked_for(open_program):
    kept = settings.Settings(target=str(TARGET), drafts={str(TARGET): "/models/gone"})
    settings.save(kept, paths.ensure(paths.config_folder()))
    session = ScriptedSession()
    program = open_program(session)
    assert session.choices == ["ngram"]
    assert program.models.draft == "ngram"


def test_a_failed_load_leaves_the_old_model_running(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    before = program.models.loaded
    session.load_error = LoadError("cut_off", "The file is cut off.")
    program.models.choose_target(str(DRAFT))
    assert not program.chat.can_send
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.alerts.current.text == "The file is cut off."
    assert program.models.loaded is before
    assert program.models.target_key == str(TARGET)
    assert program.models.draft == "ngram"
    assert program.chat.can_send


def test_stopping_a_load_leaves_the_old_model_running(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    session.load_hold.clear()
    program.models.choose_target(str(DRAFT))
    said = "Loading Qwen2.5-Coder 0.5B Instruct, 46 %"
    qtbot.waitUntil(lambda: program.models.loading == said)
    program.window.escape()
    qtbot.waitUntil(lambda: not program.models.busy)
    assert program.models.target_key == str(TARGET)
    assert program.alerts.current is None
    session.load_hold.set()


def test_a_draft_that_fails_turns_drafting_off_and_says_so(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    session.draft_error = DraftRefused("refused", "Its vocabulary is another one.")
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.models.draft == "none"
    assert program.chat.can_send
    assert next(r for r in program.models.drafts if r.key == "none").checked


def test_stopping_a_draft_that_loads_turns_drafting_off_but_is_not_remembered(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    session.draft_hold.clear()
    program.models.choose_draft(str(DRAFT))
    row = next(r for r in program.models.drafts if r.key == str(DRAFT))
    assert (row.detail, row.checked) == ("Loading", True)
    program.window.escape()
    qtbot.waitUntil(lambda: not program.models.choosing)
    session.draft_hold.set()
    qtbot.waitUntil(lambda: session.choices == ["ngram", "none"])
    assert program.models.draft == "none"
    program.models.keep()
    assert settings.load(paths.config_folder()).drafts[str(TARGET)] == "ngram"


def test_usable_drafts_come_first_and_the_refused_below_with_their_reason(qtbot, open_program):
    program = open_program(ScriptedSession())
    qtbot.waitUntil(lambda: len([r for r in program.models.drafts if r.tone == "refused"]) == 2)
    rows, at = program.models.drafts, 2 + len(LOOKUPS)
    assert keys(rows)[: at + 4] == ["auto", "none", *LOOKUPS, str(DRAFT), "", str(FOREIGN), ""]
    good = rows[at]
    assert (good.word, good.detail) == ("Good:", "15 times smaller, same vocabulary")
    assert rows[at + 1].name == "Other vocabulary: translated"
    foreign = rows[at + 2]
    assert (foreign.word, foreign.detail, foreign.usable) == ("Good:", "56 times smaller", True)
    assert "Token 0 is “!” in the target and “<|endoftext|>” here." in foreign.tooltip
    divider = at + 3
    assert rows[divider].name == "Cannot draft for this target"
    assert all(not r.usable and (r.word or r.detail) for r in rows[divider + 1 :])


def test_a_draft_stands_as_being_checked_until_it_is_judged(qtbot, open_program):
    gate = threading.Event()

    class Slow(FakeShelf):
        def judge(self, target, draft, stopped):
            gate.wait(5)
            return super().judge(target, draft, stopped)

    program = open_program(ScriptedSession(), Slow())
    row = next(r for r in program.models.drafts if r.key == str(DRAFT))
    assert "Checking" in row.detail
    gate.set()
    qtbot.waitUntil(
        lambda: next(r for r in program.models.drafts if r.key == str(DRAFT)).tone == "good"
    )


def test_a_target_that_cannot_be_rewound_drafts_with_none_only(open_program):
    shelf = FakeShelf()
    shelf.refused = Reason("recurrent_target", "This model keeps a running state.")
    session = ScriptedSession()
    program = open_program(session, shelf)
    assert program.models.draft == "none"
    assert not session.choices
    usable = [row.key for row in program.models.drafts if row.usable]
    assert usable == ["none"]


def test_broken_models_are_listed_with_their_problem(open_program):
    program = open_program(ScriptedSession())
    broken = program.models.targets[-1]
    assert not broken.usable
    assert (broken.word, broken.detail) == ("", "model-2.safetensors is missing.")


def test_the_first_screen_names_the_models_that_cannot_be_loaded(qtbot, open_program):
    program = open_program(ScriptedSession(), FakeShelf(entries()[-1:]), wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    named = program.window.first_run.broken
    assert named.isVisible()
    assert named.text().splitlines() == [
        "Found, but cannot be loaded:",
        "Half a model. model-2.safetensors is missing.",
    ]


def test_the_first_screen_names_a_few_of_many_and_nothing_of_none(qtbot, open_program):
    many = [
        replace(entries()[-1], path=Path(f"/models/{n}"), name="A long name " * 6)
        for n in range(12)
    ]
    program = open_program(ScriptedSession(), FakeShelf(many), wait=False)
    qtbot.waitUntil(lambda: program.models.first_run)
    named = program.window.first_run.broken
    assert named.text().splitlines()[-1] == "and 7 more"
    qtbot.waitUntil(lambda: named.height() >= named.heightForWidth(named.width()))
    program.window.first_run.update_broken(())
    assert not program.window.first_run.broken.isVisible()


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("tokenizer", "Preparing the tokenizer (once per model)"),
        ("quality", "Measuring what 8 bits cost (once per model)"),
        ("exactness", "Checking that drafts change no bit (once per model)"),
    ],
)
def test_what_is_done_once_per_model_is_told(qtbot, open_program, stage, said):
    session = ScriptedSession()
    program = open_program(session)
    session.load_hold.clear()
    program.models.choose_target(str(DRAFT))
    qtbot.waitUntil(lambda: "46 %" in program.models.loading)
    program.worker.moved.emit(Job.LOAD, Progress(stage, 0, 1, "files"))
    assert program.models.loading == said
    assert program.models.loading_share > 0.4
    session.load_hold.set()


def test_stopping_an_answer_keeps_what_was_chosen_meanwhile(qtbot, open_program):
    endless = [Chunk(text="x")] * 10_000
    session = ScriptedSession(endless, endless, pause=0.002)
    program = open_program(session)
    program.models.choose_draft(str(DRAFT))
    qtbot.waitUntil(lambda: program.models.draft == str(DRAFT))
    program.chat.send("one")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    program.models.choose_draft("ngram")
    program.chat.stop()
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert program.models.draft == "ngram"
    program.chat.send("two")
    qtbot.waitUntil(lambda: bool(program.chat.turns[-1].text))
    program.models.choose_target(str(FOREIGN))
    program.window.new_chat()
    qtbot.waitUntil(lambda: program.models.target_key == str(FOREIGN))


def test_the_last_of_two_quick_choices_of_a_draft_holds(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    session.draft_hold.clear()
    program.models.choose_draft(str(DRAFT))
    program.models.choose_draft(str(FOREIGN))
    program.models.choose_draft("none")
    assert next(r for r in program.models.drafts if r.key == "none").checked
    session.draft_hold.set()
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert session.choices == ["ngram", DRAFT, "none"]
    assert program.models.draft == "none"
    assert program.models.settings.drafts[str(TARGET)] == "none"


def test_a_choice_made_while_another_draft_is_stopped_holds(qtbot, open_program):
    session = ScriptedSession()
    program = open_program(session)
    session.draft_hold.clear()
    program.models.choose_draft(str(DRAFT))
    program.models.choose_draft("ngram")
    program.window.escape()
    qtbot.waitUntil(lambda: not program.models.fitting)
    session.draft_hold.set()
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert session.choices == ["ngram", "ngram"]
    assert program.models.draft == "ngram"
    assert program.models.settings.drafts[str(TARGET)] == "ngram"


def test_a_draft_that_loads_can_be_stopped_and_does_not_hold_up_enter(qtbot, open_program):
    session = ScriptedSession(chunks_of(["ok"]))
    program = open_program(session)
    composer = program.window.composer
    session.draft_hold.clear()
    program.models.choose_draft(str(DRAFT))
    assert composer._button.accessibleName() == "Stop"
    composer._button.click()
    qtbot.waitUntil(lambda: not program.models.choosing)
    assert composer._button.accessibleName() == "Send"
    program.models.choose_draft(str(DRAFT))
    composer.edit.setPlainText("hi")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert program.chat.answering
    session.draft_hold.set()
    qtbot.waitUntil(lambda: not program.chat.answering)


def test_a_vocabulary_that_cannot_be_read_refuses_the_draft(monkeypatch, tmp_path: Path):
    def fail(path):
        raise ZeroDivisionError

    monkeypatch.setattr(index, "read_vocabulary", fail)
    shelf = Shelf([], tmp_path, {}, Index(None))
    target, draft = entries()[:2]
    verdict = shelf.judge(target, draft, lambda: False).verdict
    assert verdict.level is Level.REFUSED
    assert verdict.reason.text == "Its vocabulary could not be read: ZeroDivisionError"


def test_quick_changes_of_the_settings_are_one_write(qtbot, open_program, monkeypatch):
    program = open_program(ScriptedSession())
    program.models.keep()
    writes, save = [], settings.save

    def write(kept, folder):
        writes.append(kept.draft_length)
        save(kept, folder)

    monkeypatch.setattr(settings, "save", write)
    for length in range(17):
        program.models.draft_with(length=length, verification="coupled")
    assert writes == []
    qtbot.waitUntil(lambda: writes == [16])
    program.models.draft_with(length=3, verification="coupled")
    program.window.close()
    assert writes == [16, 3]


def test_settings_survive_and_damage_means_defaults(tmp_path: Path):
    folder = tmp_path / "config"
    kept = settings.Settings(
        target="/m/ü ö",
        drafts={"/m/ü ö": "none"},
        draft_length=7,
        verification="rejection",
        sidebar=False,
    )
    settings.save(kept, folder)
    assert settings.load(folder) == kept
    assert [path.name for path in folder.iterdir()] == [settings.FILE_NAME]
    (folder / settings.FILE_NAME).write_bytes(b"\xff\xfe target = [")
    assert settings.load(folder) == settings.Settings()
    (folder / settings.FILE_NAME).write_text('draft_length = 99\ntarget = 3\ndrafts = "x"\n')
    assert settings.load(folder) == settings.Settings()


def test_a_model_that_ended_the_program_is_not_loaded_unasked_again(qtbot, open_program):
    session = ScriptedSession()
    session.load_hold.clear()
    program = open_program(session, wait=False)
    qtbot.waitUntil(lambda: program.models.busy)
    assert paths.mark_file().read_text() == str(TARGET)  # here the system kills it
    left = paths.mark_file().read_bytes()
    session.load_hold.set()
    qtbot.waitUntil(lambda: not program.models.busy)
    assert not paths.mark_file().exists()

    paths.mark_file().write_bytes(left)
    session = ScriptedSession()
    program = open_program(session, wait=False)
    qtbot.waitUntil(lambda: program.alerts.current is not None)
    assert program.alerts.current.actions == (Action.CHOOSE_MODEL,)
    assert session.loads == []
    program.models.choose_target(str(TARGET))
    qtbot.waitUntil(lambda: session.loads == [TARGET])
    qtbot.waitUntil(lambda: not paths.mark_file().exists())


def test_leaving_while_a_model_is_loaded_leaves_no_mark(qtbot, open_program):
    session = ScriptedSession()
    session.load_hold.clear()
    program = open_program(session, wait=False)
    qtbot.waitUntil(lambda: paths.mark_file().exists())
    program.window.close()
    assert not paths.mark_file().exists()
    session.load_hold.set()
