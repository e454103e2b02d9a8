"""Failures in the bar above the composer, and what a bug report holds of them."""

import logging
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app import paths, report
from app.chats.conversation import Attachment, ChatRecord
from app.viewmodels.alerts import HELP, Action, Alert, Alerts
from app.widgets.error_bar import ErrorBar
from engine.api import Chunk
from engine.errors import Reason
from tests.fakes import ScriptedSession
from tests.reasons import said

FULL = Reason("context_full", "The context of {context} tokens is full.", {"context": 2048})
MEMORY = Reason("no_memory", "Memory ran out.")
STRANGE = Reason("unforeseen", "An error: {detail}", {"detail": "boom in line 3"})


@pytest.fixture
def bar(qtbot):
    alerts = Alerts()
    shown = ErrorBar(alerts)
    shown.alerts = alerts
    qtbot.addWidget(shown)
    shown.resize(720, 48)
    return shown


@pytest.fixture
def log():
    """Writes into the log file, as the program does."""
    written = logging.FileHandler(paths.ensure(paths.log_folder()) / report.LOG, encoding="utf-8")
    written.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    log = logging.getLogger("engine")
    log.addHandler(written)
    log.setLevel(logging.INFO)
    yield log
    log.removeHandler(written)
    written.close()


def offered(bar):
    return {action for action, button in bar.buttons.items() if not button.isHidden()}


def test_the_bar_is_there_while_something_is_wrong(bar):
    assert bar.isHidden()
    bar.alerts.show("It went wrong.")
    assert not bar.isHidden()
    assert bar.text.text() == "It went wrong."
    assert offered(bar) == set()
    assert bar.details.isHidden()
    bar.close_.click()
    assert bar.isHidden()


@pytest.mark.parametrize(
    ("reason", "actions"),
    [
        (FULL, {Action.NEW_CHAT}),
        (MEMORY, {Action.NEW_CHAT, Action.USE_SHORTER_CONTEXT, Action.NO_DRAFT}),
        (STRANGE, {Action.OPEN_LOG}),
        (Reason("fits", "Fits"), set()),
    ],
)
def test_each_kind_of_failure_offers_what_helps(bar, qtbot, reason, actions):
    bar.alerts.show_reason(reason)
    assert offered(bar) == actions
    for action in actions:
        with qtbot.waitSignal(bar.acted, check_params_cb=lambda asked, a=action: asked is a):
            bar.buttons[action].click()


def test_actions_that_are_asked_for_come_instead(bar):
    bar.alerts.show_reason(MEMORY, Action.NEW_CHAT)
    assert offered(bar) == {Action.NEW_CHAT}


def test_every_code_that_has_help_is_one_the_program_says():
    codes = {found.code for found in said()}
    assert {code for codes in HELP.values() for code in codes} <= codes
    by_the_chat = {Action.LOAD_CHATS_MODEL, Action.ANSWER}
    assert set(HELP) == set(Action) - by_the_chat


def test_details_are_shown_on_demand_and_folded_for_the_next(bar):
    bar.alerts.show_reason(STRANGE)
    assert bar.more.isHidden()
    bar.details.click()
    assert bar.more.text() == "unforeseen\ndetail: boom in line 3"
    assert not bar.copy.isHidden()
    bar.alerts.show_reason(FULL)
    assert bar.more.isHidden()
    assert not bar.details.isChecked()


def test_the_bar_says_no_tag_of_a_model_as_markup(bar):
    bar.alerts.show_reason(Reason("load_failed", "{name}", {"name": "<b>x</b>"}))
    assert bar.text.textFormat() is Qt.TextFormat.PlainText
    assert bar.more.textFormat() is Qt.TextFormat.PlainText


def test_narrow_the_buttons_stand_below_the_sentence(bar, qtbot):
    bar.alerts.show_reason(MEMORY)
    for width, below in ((1600, False), (420, True), (1600, False)):
        bar.resize(width, 80)
        bar.show()
        qtbot.waitExposed(bar)
        text, button = bar.text, bar.buttons[Action.NO_DRAFT]

        def stands(text=text, button=button):
            return button.mapTo(bar, QPoint()).y() >= text.y() + text.height()

        qtbot.waitUntil(lambda below=below, stands=stands: stands() == below)


def test_all_that_has_the_focus_has_a_name(bar):
    bar.alerts.show_reason(MEMORY)
    for held in bar.findChildren(QWidget):
        if held.focusPolicy() != Qt.FocusPolicy.NoFocus:
            assert held.accessibleName()
    assert bar.accessibleName() == "Memory ran out."


def test_the_report_has_versions_the_code_and_the_logs_end(bar, log):
    log.warning("the card went away")
    for number in range(200):
        log.info("line %d", number)
    bar.alerts.show_reason(STRANGE)
    bar.details.click()
    bar.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "Python 3" in copied
    assert "PySide6" in copied
    assert "unforeseen\ndetail: boom in line 3" in copied
    assert "line 199" in copied
    assert "line 0\n" not in copied
    assert "the card went away" not in copied


@pytest.mark.parametrize(
    "chat",
    ["My doctor says it is nothing to worry about.", "pin 4711", "Zeile\neins und\nZeile zwei ü"],
)
def test_no_chat_text_stands_in_the_report(bar, log, chat):
    bar.alerts.private = lambda: ["Another message of the chat", chat]
    log.error("could not render %r", [{"content": chat}])
    log.error("could not render\n%s", chat)
    bar.alerts.show_reason(Reason("template_refused", "{message}", {"message": f"no: {chat}"}))
    told = bar.alerts.report()
    for word in chat.split():
        assert word not in told or len(word) < 4
    assert told.count(report.LEFT_OUT) >= 2


def test_no_token_and_no_user_stands_in_the_report(bar, log, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "abcdefgh")
    log.error("asked with hf_AbCdEf123456, Authorization: Bearer xyz.123 and abcdefgh")
    log.error("proxy http://me:secret@proxy:80 and %s", paths.log_folder())
    told = bar.alerts.report()
    for secret in ("hf_AbC", "xyz.123", "abcdefgh", "me:secret", str(paths.log_folder())):
        assert secret not in told


def test_without_a_log_there_is_a_report(bar):
    bar.alerts.show("Something.")
    assert "Log:\nempty" in bar.alerts.report()
    assert Alert("Something.").details == ()


def test_what_stands_comes_back_until_it_is_read_or_no_longer_true(bar, qtbot):
    damaged = Reason("history_mended", "The file was damaged.")
    full = Reason("history_disk_full", "The disk is full.")
    bar.alerts.stand(damaged)
    bar.alerts.stand(full)
    assert bar.text.text() == full.text
    bar.alerts.show("Loading failed.")
    assert bar.text.text() == "Loading failed."
    bar.alerts.dismiss()
    assert bar.text.text() == full.text
    bar.alerts.withdraw(full.code)
    assert bar.text.text() == damaged.text
    with qtbot.waitSignal(bar.alerts.closed) as read:
        bar.close_.click()
    assert read.args[0].is_about(damaged.code)
    assert bar.isHidden()


def test_nothing_of_any_chat_stands_in_the_report(qtbot, open_program, log):
    session = ScriptedSession([Chunk(reasoning="a secret plan of mine", text="the answer itself")])
    program = open_program(session)
    chat = program.chat
    chat.choose(replace(chat.choices, system="be a private tutor", summary="they met in Rome"))
    with qtbot.waitSignal(chat.answered):
        chat.send("my own question", [Attachment("diary-of-mine.txt", "dear diary, today")])
    program.conversations._records["x"] = ChatRecord("x", "Another chat's own title")
    program.window.composer.edit.setPlainText("not sent yet at all")
    texts = (
        *("my own question", "a secret plan of mine", "the answer itself", "be a private tutor"),
        *("they met in Rome", "diary-of-mine.txt", "dear diary, today", "Another chat's own title"),
        "not sent yet at all",
    )
    for text in texts:
        log.warning("failed at %s", text)
    program.alerts.show_reason(Reason("unforeseen", "It failed", {"path": f"/x/{texts[7]}.md"}))
    told = program.alerts.report()
    assert [text for text in texts if text in told] == []


def test_a_path_is_not_torn(bar):
    path = "/home/someone/.local/share/slip-stream/history.db"
    bar.alerts.show(f"The file of chats is damaged. It is in this folder of yours: {path}")
    bar.show()
    words = bar.text.fontMetrics().horizontalAdvance(path)
    assert bar.text.minimumSizeHint().width() >= words
    bar.alerts.show(f"The file {path * 3} is damaged.")
    assert bar.text.minimumSizeHint().width() < bar.width()
