"""The composer: keys, input methods, pastes, drops, files, drafts; and the context meter."""

import time

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import (
    QAccessible,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QImage,
    QInputMethodEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app import resources
from app.chats.conversation import Attachment
from app.settings import Settings
from app.viewmodels.overflow import Overflow
from app.widgets import composer as module
from app.widgets.composer import Composer
from app.widgets.context_meter import ContextMeter, OverflowBar

KEY, MODIFIER = Qt.Key, Qt.KeyboardModifier


class Window(QWidget):
    """Composer, bar and meter as the window has them."""

    def __init__(self, desk):
        super().__init__()
        self.desk, self.chosen = desk, []
        self.composer = Composer(desk.chat, desk.models, desk.alerts, desk.writing, desk.presets)
        self.bar = OverflowBar(desk.chat)
        self.meter = ContextMeter(desk.chat, desk.models, desk.writing, self.chosen.append)
        column = QVBoxLayout(self)
        column.addStretch(1)
        for widget in (self.bar, self.composer, self.meter):
            column.addWidget(widget)
        self.edit = self.composer.edit

    @property
    def text(self):
        return self.edit.toPlainText()


@pytest.fixture
def window(qtbot, desk):
    made = Window(desk)
    qtbot.addWidget(made)
    made.resize(760, 500)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    made.edit.setFocus()
    qtbot.waitUntil(made.edit.hasFocus)
    return made


def name_of(widget):
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


# Keys


@pytest.mark.parametrize("key", [KEY.Key_Return, KEY.Key_Enter])
@pytest.mark.parametrize("modifier", [MODIFIER.NoModifier, MODIFIER.ControlModifier])
def test_enter_sends_with_control_too(qtbot, window, key, modifier):
    qtbot.keyClicks(window.edit, "hello")
    qtbot.keyClick(window.edit, key, modifier)
    assert window.desk.chat.sent == [("hello", ())]
    assert window.text == ""


def test_shift_enter_breaks_the_line(qtbot, window):
    qtbot.keyClicks(window.edit, "a")
    qtbot.keyClick(window.edit, KEY.Key_Return, MODIFIER.ShiftModifier)
    qtbot.keyClicks(window.edit, "b")
    assert window.text == "a\nb"
    assert window.desk.chat.sent == []


def test_an_input_method_keeps_its_keys(qtbot, window):
    window.desk.chat.show("c", "earlier")
    window.edit.setPlainText("予定は")
    window.edit.moveCursor(QTextCursor.MoveOperation.End)
    QApplication.sendEvent(window.edit, QInputMethodEvent("きょう", []))
    for key in (KEY.Key_Return, KEY.Key_Enter, KEY.Key_Up):
        with qtbot.assertNotEmitted(window.composer.sent):
            qtbot.keyClick(window.edit, key)
    commit = QInputMethodEvent("", [])
    commit.setCommitString("今日")
    QApplication.sendEvent(window.edit, commit)
    assert window.text == "予定は今日"
    with qtbot.waitSignal(window.composer.sent) as sent:
        qtbot.keyClick(window.edit, KEY.Key_Return)
    assert sent.args == ["予定は今日"]


def test_what_was_written_is_sent_and_kept_as_it_was(qtbot, window):
    text = "10\u00a0km\u202fand more"
    paste(text)
    window.edit.paste()
    window.desk.chat.show("another")
    window.desk.chat.show("")
    assert window.edit.text() == text
    qtbot.keyClick(window.edit, KEY.Key_Return)
    assert window.desk.chat.sent == [(text, ())]


def test_nothing_is_sent_while_it_answers_and_the_text_stays(qtbot, window):
    window.desk.chat.can_send, window.desk.chat.answering = False, True
    assert "while this one is answered" in window.edit.placeholderText()
    qtbot.keyClicks(window.edit, "next")
    qtbot.keyClick(window.edit, KEY.Key_Return)
    assert window.desk.chat.sent == []
    assert window.text == "next"


def test_tab_leaves_the_field_for_the_buttons_and_comes_round(qtbot, window):
    visited = []
    while (here := QApplication.focusWidget()) not in visited and len(visited) < 20:
        visited.append(here)
        qtbot.keyClick(here, KEY.Key_Tab)
    composer = window.composer
    assert {
        composer.edit,
        composer.attach,
        composer.prompt,
        composer.sampling,
        window.meter.when_full,
    } <= set(visited)
    assert "\t" not in window.text


def test_up_recalls_and_down_returns(qtbot, window):
    window.desk.chat.show("c", "first question", "second\nof two lines")
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "second\nof two lines"
    # The text has two lines: the first Up moves in it.
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "second\nof two lines"
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "first question"
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "first question"
    qtbot.keyClick(window.edit, KEY.Key_Down)
    assert window.text == "second\nof two lines"
    qtbot.keyClick(window.edit, KEY.Key_Down)
    assert window.text == ""


def test_up_in_what_is_being_written_only_moves(qtbot, window):
    window.desk.chat.show("c", "earlier")
    qtbot.keyClicks(window.edit, "mine")
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "mine"
    window.edit.clear()
    qtbot.keyClick(window.edit, KEY.Key_Up)
    qtbot.keyClicks(window.edit, "!")
    qtbot.keyClick(window.edit, KEY.Key_Down)
    qtbot.keyClick(window.edit, KEY.Key_Up)
    assert window.text == "earlier!"


def test_it_grows_to_eight_lines_and_no_further(qtbot, window):
    heights = []
    for count in (1, 2, 8, 9, 40):
        window.edit.setPlainText("\n".join("x" * count))
        qtbot.wait(1)
        heights.append(window.edit.height())
    one, two, eight, nine, forty = heights
    assert one < two < eight
    assert abs(eight - nine) <= 5
    assert nine == forty
    assert window.edit.verticalScrollBar().isVisible()


# Send and Stop


def test_send_and_stop_have_the_same_place_and_size(qtbot, window):
    button = window.composer._button
    window.edit.setPlainText("a")
    qtbot.wait(1)
    place = button.geometry()
    assert button.accessibleName() == "Send"
    window.desk.chat.can_send, window.desk.chat.answering = False, True
    qtbot.wait(1)
    assert button.accessibleName() == "Stop"
    assert button.geometry() == place
    button.click()
    assert window.desk.chat.calls == ["stop"]


def test_send_is_able_only_with_something_to_send(window):
    button = window.composer._button
    assert not button.isEnabled()
    window.edit.setPlainText("  \n")
    assert not button.isEnabled()
    window.edit.setPlainText("a")
    assert button.isEnabled()
    window.edit.clear()
    window.desk.writing.attach([Attachment("n", "x")])
    assert button.isEnabled()
    button.click()
    assert window.desk.chat.sent == [("", (Attachment("n", "x"),))]
    assert not window.composer.chips.isVisible()


# Pastes, drops and files


def paste(text):
    QGuiApplication.clipboard().setText(text)


def work_of(qtbot, act):
    """Seconds that the GUI thread works for `act` and what follows from it, in all: at least as
    long as it is ever blocked, however busy the machine is."""
    began = time.thread_time()
    act()
    qtbot.wait(60)
    return time.thread_time() - began


@pytest.mark.parametrize(
    "text",
    ["a" * 10**6, ("x" * 79 + "\n") * 12_500, "word " * 200_000, "😀" * 250_000],
    ids=["one word", "80 columns", "words", "emoji"],
)
def test_a_megabyte_pasted_becomes_a_file_and_blocks_nothing(qtbot, window, text):
    paste(text)
    assert work_of(qtbot, window.edit.paste) < 0.25
    (one,) = window.desk.writing.attached
    assert one.attachment == Attachment("Pasted text", text)
    assert one.about.startswith("1.0 MB, ")
    assert window.text == ""


@pytest.mark.parametrize("text", ["a" * 10**6, ("x" * 79 + "\n") * 12_500, "word " * 200_000])
def test_it_can_be_pasted_as_text_and_is_then_cut_with_a_notice(qtbot, window, text):
    paste(text)
    both = MODIFIER.ControlModifier | MODIFIER.ShiftModifier
    assert work_of(qtbot, lambda: qtbot.keyClick(window.edit, KEY.Key_V, both)) < 0.25
    assert window.text == text[:100_000]
    assert window.desk.alerts.current.text == "The text was cut at 100,000 characters."


def test_a_short_paste_is_text(window):
    paste("a\tb\nc")
    window.edit.paste()
    assert window.text == "a\tb\nc"
    assert window.desk.writing.attached == ()


def test_typing_beyond_the_limit_is_cut_and_said(qtbot, window):
    window.edit.most = 5
    qtbot.keyClicks(window.edit, "12345")
    assert window.desk.alerts.current is None
    qtbot.keyClicks(window.edit, "6")
    assert window.text == "12345"
    assert window.desk.alerts.current is not None


def files(tmp_path):
    (tmp_path / "a.txt").write_text("one two", encoding="utf-8")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.txt"))])
    data.setText(str(tmp_path / "a.txt"))
    return data


def test_files_that_were_copied_are_attached_and_their_names_not_pasted(qtbot, window, tmp_path):
    QGuiApplication.clipboard().setMimeData(files(tmp_path))
    window.edit.paste()
    qtbot.waitUntil(lambda: bool(window.desk.writing.attached))
    assert window.text == ""


def test_an_address_is_pasted_as_text_and_a_picture_refused(window):
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/")])
    data.setText("https://example.org/")
    window.edit.insertFromMimeData(data)
    assert window.text == "https://example.org/"
    picture = QMimeData()
    picture.setImageData(QImage(2, 2, QImage.Format.Format_RGB32))
    window.edit.insertFromMimeData(picture)
    assert window.desk.alerts.current.text == "Pictures cannot be attached. Only text can."


def drop(target, data, over=lambda: None):
    """What Qt sends: enter, then drop; `over` is called between."""
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    enter = QDragEnterEvent(QPointF(5, 5).toPoint(), actions, data, buttons, MODIFIER.NoModifier)
    QApplication.sendEvent(target, enter)
    over()
    if enter.isAccepted():
        event = QDropEvent(QPointF(5, 5), actions, data, buttons, MODIFIER.NoModifier)
        QApplication.sendEvent(target, event)
    return enter.isAccepted()


def test_files_are_dropped_on_the_composer_which_shows_it(qtbot, window, tmp_path):
    data = files(tmp_path)
    shown = []
    for target in (window.composer, window.edit.viewport()):
        assert drop(target, data, lambda: shown.append(window.composer._dragging))
        assert shown[-1]
        assert not window.composer._dragging
        qtbot.waitUntil(lambda: bool(window.desk.writing.attached))
        window.desk.writing.detach(window.desk.writing.attached[0])
        assert window.text == ""
    assert window.composer.take(data)


def test_words_are_dropped_in_the_field_only(window):
    words = QMimeData()
    words.setText("words")
    assert not drop(window.composer, words)
    assert not window.composer.take(words)
    assert drop(window.edit.viewport(), words)
    assert window.text == "words"


def test_the_button_attaches_what_the_dialog_gives(qtbot, window, tmp_path, monkeypatch):
    files(tmp_path)
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    monkeypatch.setattr(module, "ask_files", lambda *_: [tmp_path / "a.txt", tmp_path / "b.bin"])
    window.composer.attach.click()
    qtbot.waitUntil(lambda: bool(window.desk.writing.attached))
    assert window.edit.hasFocus()
    alert = window.desk.alerts.current
    assert alert.text == "“b.bin” is not a text file. Only text can be attached."


def test_it_waits_for_files_that_are_read(qtbot, window, tmp_path):
    files(tmp_path)
    window.edit.setPlainText("see there")
    window.desk.writing.attach_files([tmp_path / "a.txt"])
    qtbot.keyClick(window.edit, KEY.Key_Return)
    assert window.desk.chat.sent == []
    assert window.composer._tokens.text() == "Reading"
    qtbot.waitUntil(lambda: not window.desk.writing.reading)
    qtbot.keyClick(window.edit, KEY.Key_Return)
    assert window.desk.chat.sent == [("see there", (Attachment("a.txt", "one two"),))]


def test_chips_tell_and_are_removed_by_key_and_pointer(qtbot, window):
    names = ["a.txt", "b.txt", "c.txt"]
    window.desk.writing.attach([Attachment(name, "x y") for name in names])
    chips = window.composer.chips._chips
    assert name_of(chips[0].remove) == "Remove a.txt, 3 bytes, 5 tokens"
    chips[1].remove.setFocus()
    qtbot.keyClick(chips[1].remove, KEY.Key_Delete)
    assert [one.name for one in window.desk.writing.attached] == ["a.txt", "c.txt"]
    assert chips[1].remove.hasFocus()
    qtbot.keyClick(chips[1].remove, KEY.Key_Return)
    assert chips[0].remove.hasFocus()
    qtbot.mouseClick(chips[0].remove, Qt.MouseButton.LeftButton)
    assert window.desk.writing.attached == ()
    qtbot.waitUntil(window.edit.hasFocus)


def test_many_chips_scroll_and_lie_within(qtbot, window):
    window.desk.writing.attach(
        [Attachment(f"{'long name ' * 9}{number}.txt", "x") for number in range(20)]
    )
    qtbot.wait(10)
    chips = window.composer.chips
    assert chips.height() < 3 * 40
    for chip in chips._chips:
        assert chip.x() >= 0
        assert chip.geometry().right() < chips.width()
    chips._chips[-1].remove.setFocus(Qt.FocusReason.TabFocusReason)
    assert chips.verticalScrollBar().value() > 0


# Drafts


def test_drafts_follow_their_chats(qtbot, window):
    chat = window.desk.chat
    qtbot.keyClicks(window.edit, "for the new one")
    chat.show("a")
    assert window.text == ""
    qtbot.keyClicks(window.edit, "for a")
    chat.show("b")
    chat.show("a")
    assert window.text == "for a"
    chat.show("")
    assert window.text == "for the new one"
    qtbot.keyClick(window.edit, KEY.Key_Return)
    chat.show("")
    assert window.text == ""


def test_another_branch_of_the_chat_leaves_what_is_written(qtbot, window):
    window.desk.chat.show("a")
    qtbot.keyClicks(window.edit, "written")
    window.desk.chat.show("a", "other", "branch")
    assert window.text == "written"


def test_a_question_comes_back_with_its_files_before_what_came_since(window):
    window.edit.setPlainText("since")
    window.desk.chat.question_returned.emit("before", (Attachment("n", "x"),))
    assert window.text == "before\n\nsince"
    assert window.desk.writing.attachments == (Attachment("n", "x"),)
    window.desk.chat.question_returned.emit("", (Attachment("m", "x"),))
    assert window.text == "before\n\nsince"


# Tokens and the meter


def test_the_tokens_of_text_and_files_are_told(qtbot, window):
    qtbot.keyClicks(window.edit, "one two three")
    qtbot.waitUntil(lambda: window.composer._tokens.text() == "3 tokens")
    window.desk.writing.attach([Attachment("n", "x y")])
    qtbot.waitUntil(lambda: window.composer._tokens.text() == "8 tokens")
    window.edit.clear()
    window.desk.writing.detach(window.desk.writing.attached[0])
    assert window.composer._tokens.text() == ""


def test_the_number_changes_at_most_four_times_a_second(qtbot, window):
    seen = []
    began = time.monotonic()
    while time.monotonic() - began < 0.6:
        qtbot.keyClicks(window.edit, " a")
        shown = window.composer._tokens.text()
        if not seen or seen[-1] != shown:
            seen.append(shown)
    assert 1 < len(seen) <= 5


def test_the_meter_counts_what_is_being_written(qtbot, window):
    window.desk.chat.used = 642
    assert window.meter._text.text() == "642 of 8,192 tokens used"
    qtbot.keyClicks(window.edit, "a b c d e f g")
    assert window.meter._text.text() == "649 of 8,192 tokens used"
    assert not window.meter._warning.isVisible()
    window.desk.chat.used = 8_190
    assert window.meter._text.text() == "8,197 of 8,192 tokens: more than fits"
    assert window.meter._warning.isVisible()
    window.desk.models.loaded = None
    assert window.meter._text.text() == ""


def test_what_happens_when_it_is_full_is_said_and_chosen(qtbot, window):
    button = window.meter.when_full
    assert name_of(button) == "When full: ask me"
    button.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(button, KEY.Key_Space)
    rows = button.choices
    qtbot.waitUntil(lambda: button.popover.isVisible())
    qtbot.keyClick(rows, KEY.Key_Down)
    qtbot.keyClick(rows, KEY.Key_Return)
    assert not button.popover.isVisible()
    assert window.chosen == ["drop"]
    window.desk.models.settings = Settings(overflow="drop")
    assert name_of(button) == "When full: drop the oldest turns"
    assert "they stay in the chat" in button.accessibleDescription()


def test_a_full_chat_offers_three_ways(qtbot, window):
    bar, chat = window.bar, window.desk.chat
    assert not bar.isVisible()
    chat.overflow = Overflow(8_192, 8_192)
    assert bar.isVisible()
    assert bar._text.text() == "The chat has reached 8,192 tokens."
    chat.overflow = Overflow(9_100, 8_192)
    assert bar._text.text() == "The chat would have 9,100 tokens; 8,192 fit."
    chat.overflow = Overflow(9_100, 8_192, "summarise")
    assert bar._text.text() == "The model sums up the oldest turns. Esc stops it."
    assert not bar.summarise.isVisible()
    chat.overflow = Overflow(9_100, 8_192)
    for button in (bar.drop, bar.summarise, bar.end):
        assert button.accessibleDescription()
        button.click()
    assert chat.calls == ["drop_oldest", "summarise", "dismiss_overflow"]
    assert not bar.isVisible()


def test_every_control_has_a_name(qtbot, window):
    window.desk.writing.attach([Attachment("n", "x")])
    window.desk.chat.overflow = Overflow(8_192, 8_192)
    qtbot.wait(10)
    named = [
        name_of(widget)
        for widget in window.findChildren(QWidget)
        if widget.isVisible() and widget.focusPolicy() is not Qt.FocusPolicy.NoFocus
    ]
    assert len(named) >= 9
    assert all(named)


def test_colours_follow_the_scheme(qtbot, window):
    before = window.grab().toImage()
    resources.apply_theme(QApplication.instance(), "dark")
    QApplication.sendPostedEvents(None, QEvent.Type.PaletteChange)
    qtbot.wait(20)
    after = window.grab().toImage()
    resources.apply_theme(QApplication.instance(), "light")
    assert before.pixelColor(380, 480) != after.pixelColor(380, 480)


def test_the_cursor_stands_behind_a_text_that_was_put_in(window):
    window.desk.chat.question_returned.emit("before", ())
    assert window.edit.textCursor().position() == len("before")
