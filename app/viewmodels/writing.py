"""What is being written: the files that go with it, drafts of other chats, earlier questions.

Decides how files are put into what the model reads and counts the tokens of all of it. Knows no
chat beyond its name and no widget.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QCoreApplication, QObject, Signal

from app import resources
from app.chats.conversation import Attachment, Unsent
from app.lanes import Job
from app.viewmodels import text_files, words
from app.viewmodels.binding import Property
from app.viewmodels.text_files import Refusal
from app.worker import Worker
from engine.errors import Reason

MAX_FILES = 20
MAX_TOTAL = 4_000_000  # bytes of all files of a message
MAX_ASKED = 200


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """A question as the model reads it: each file's name and text between fences, then `text`."""
    return "\n\n".join([*map(fenced, attachments), *([text] if text else [])])


def fenced(attachment: Attachment) -> str:
    """A file's name, and its text in a fence that is longer than any in it."""
    longest = max(map(len, re.findall("`{3,}", attachment.text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if attachment.text.endswith("\n") else "\n"
    return f"{attachment.name}\n{fence}\n{attachment.text}{end}{fence}"


class Counter(Protocol):
    """Counts tokens apart from the engine: `tokens` tells of the text last given to `count`, None
    while that is not known, `about` that it is an estimate; `tokens_changed(object)` is a signal
    and comes last."""

    tokens_changed: Any

    @property
    def tokens(self) -> int | None: ...

    @property
    def about(self) -> bool: ...

    def count(self, text: str) -> None: ...


@dataclass(frozen=True)
class Tokens:
    """How many tokens something has; `about`: too long to count all of it."""

    count: int = 0
    about: bool = False

    @property
    def words(self) -> str:
        """ "7 tokens", "about 164,000 tokens"."""
        if not self.about:
            return words.tokens(self.count)
        return _tr("about {count} tokens").format(count=words.grouped(self.count))


@dataclass(frozen=True)
class Attached:
    """A file as a chip shows it. `size` in bytes; `tokens` None while they are not counted."""

    attachment: Attachment
    size: int
    tokens: Tokens | None = None

    @property
    def name(self) -> str:
        return self.attachment.name

    @property
    def about(self) -> str:
        """ "12 kB, 3,104 tokens"."""
        held = text_files.size(self.size)
        return held if self.tokens is None else f"{held}, {self.tokens.words}"


@dataclass(frozen=True)
class _Draft:
    text: str
    attached: tuple[Attached, ...]


class Writing(QObject):
    """The message that is not sent yet."""

    attached_changed = Signal(object)
    tokens_changed = Signal(object)
    reading_changed = Signal(object)
    changed = Signal()  # what is being written, here or in another chat
    restored = Signal(str)  # the text that is written here
    refused = Signal(str)  # a sentence: what was not attached, and why

    attached = Property[tuple[Attached, ...]](())
    tokens = Property[Tokens | None](None)  # of the text and its files
    reading = Property[bool](False)  # files that belong to it

    def __init__(self, worker: Worker, counter: Counter, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker, self._counter = worker, counter
        self._text = ""
        self._text_tokens: Tokens | None = Tokens()
        self._counted: Attached | None = None  # None: the text is counted
        self._chat = ""
        self._drafts: dict[str, _Draft] = {}
        self._asked: list[str] = []  # newest last
        self._walk: list[str] = []
        self._at: int | None = None  # in the walk, 0 is the newest
        self._waiting: list[tuple[str, tuple[Path, ...]]] = []  # chat, files that are read
        worker.finished.connect(self._finished)
        worker.failed.connect(self._failed)
        counter.tokens_changed.connect(self._count_came)

    # Files

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What goes with the question."""
        return tuple(one.attachment for one in self.attached)

    def attach_files(self, paths: Iterable[Path]) -> None:
        """Have files read; they are attached, or refused with a sentence, when they are."""
        dropped = list(dict.fromkeys(paths))
        files = tuple(dropped[: MAX_FILES - len(self.attached)])
        self._refuse([], [text_files.plain_name(path.name) for path in dropped[len(files) :]])
        if files:
            self._waiting.append((self._chat, files))
            self._show_reading()
            if len(self._waiting) == 1:
                self._read()

    def attach_text(self, name: str, text: str) -> None:
        """Attach a long text that was pasted, under a name that no other has."""
        size = text_files.size_of(text)
        if size > text_files.MAX_BYTES:
            self._refuse([Refusal(name, "large", size)])
        elif text.strip():
            self.attach([Attachment(self._free_name(name), text)])

    def attach(self, attachments: Iterable[Attachment]) -> None:
        """Attach what was read; what is attached already is not attached twice."""
        self._attach(attachments, [])

    def detach(self, attached: Attached) -> None:
        """Take a file away."""
        self._show([one for one in self.attached if one.attachment != attached.attachment])

    def _free_name(self, name: str) -> str:
        taken = {one.name for one in self.attached}
        names = (name if n == 1 else f"{name} {n}" for n in range(1, MAX_FILES + 2))
        return next(free for free in names if free not in taken)

    def _read(self) -> None:
        files = self._waiting[0][1]
        self._worker.look(Job.READ, lambda _, __: [text_files.read(path) for path in files])

    def _finished(self, job: Job, result: object) -> None:
        if job is not Job.READ or not self._waiting:
            return
        if not isinstance(result, list):  # what else is looked for there was stopped
            self._read()
            return
        chat, _ = self._waiting.pop(0)
        if self._waiting:
            self._read()
        read = [one for one in result if isinstance(one, Attachment)]
        refused = [one for one in result if isinstance(one, Refusal)]
        if chat == self._chat:
            self._attach(read, refused)
        else:
            self._leave_with(chat, read)
            self._refuse(refused)
        self._show_reading()

    def _failed(self, job: Job, reason: Reason) -> None:
        if job is Job.READ:
            self._finished(job, [])
            self.refused.emit(resources.translate(reason))

    def _show_reading(self) -> None:
        self.reading = any(chat == self._chat for chat, _ in self._waiting)

    def _attach(self, attachments: Iterable[Attachment], refused: list[Refusal]) -> None:
        held, over = _joined(self.attached, attachments)
        self._show(held)
        self._refuse(refused, over)

    def _leave_with(self, chat: str, attachments: Iterable[Attachment]) -> None:
        """The files of a chat that is no longer shown wait with its draft."""
        draft = self._drafts.get(chat, _Draft("", ()))
        held, _ = _joined(draft.attached, attachments)
        self._drafts[chat] = replace(draft, attached=tuple(held))

    def _refuse(self, refused: Iterable[Refusal], over: Sequence[str] = ()) -> None:
        said = [text_files.sentence(one) for one in refused]
        if over:
            told = self.tr(
                "{names} did not fit: at most {count} files with {most} together can be attached."
            )
            names = ", ".join(f"“{name}”" for name in over[:3]) + (" …" if len(over) > 3 else "")
            most = text_files.size(MAX_TOTAL)
            said.append(told.format(names=names, count=MAX_FILES, most=most))
        if len(said) > 3:
            more = words.counted(len(said) - 3, self.tr("{count} more."), self.tr("{count} more."))
            said = [*said[:3], more]
        if said:
            self.refused.emit(" ".join(said))

    def _show(self, attached: Sequence[Attached]) -> None:
        self.attached = tuple(attached)
        self.changed.emit()
        self._count_next()

    # Text, drafts and earlier questions

    def write(self, text: str) -> None:
        """The text is now this."""
        if text != self._text:
            self._text = text
            self.changed.emit()
            if self._at is not None and text != self._walk[self._at]:
                self._at = None
            self._text_tokens = _unless_counted(text)
            self._count_next()

    @property
    def unsent(self) -> dict[str, Unsent]:
        """What is being written, by chat; "" is the chat that is none yet."""
        drafts = {**self._drafts, self._chat: _Draft(self._text, self.attached)}
        return {
            chat: Unsent(draft.text, tuple(one.attachment for one in draft.attached))
            for chat, draft in drafts.items()
            if draft.text.strip() or draft.attached
        }

    @property
    def texts(self) -> list[str]:
        """All that is being written, in words."""
        held = self.unsent.values()
        attached = [one for each in held for one in each.attachments]
        return [each.text for each in held] + [p for one in attached for p in (one.name, one.text)]

    def restore(self, unsent: Mapping[str, Unsent]) -> None:
        """Go on with what was being written when the program ended, where nothing is yet."""
        for chat, one in unsent.items():
            if chat not in {*self._drafts, self._chat}:
                held, _ = _joined((), one.attachments)
                self._drafts[chat] = _Draft(one.text, tuple(held))
        here = unsent.get(self._chat)
        if here is not None and not self._text and not self.attached:
            self.attach(here.attachments)
            self.restored.emit(here.text)

    def turn_to(self, chat: str) -> str:
        """Another chat is shown: what was written for the old one waits; the new one's text."""
        if chat == self._chat:
            return self._text
        self._drafts[self._chat] = _Draft(self._text, self.attached)
        draft = self._drafts.pop(chat, _Draft("", ()))
        self._chat, self._at = chat, None
        self._show(draft.attached)
        self._show_reading()
        return draft.text

    def move_to(self, chat: str) -> None:
        """What is being written is for `chat` from now on."""
        self._chat = chat

    def sent(self, chat: str) -> None:
        """What was written is asked now, in `chat`: nothing is being written."""
        text = self._text.strip()
        if text:
            self._asked = [*(one for one in self._asked if one != text), text][-MAX_ASKED:]
        self._chat, self._text, self._text_tokens, self._at = chat, "", Tokens(), None
        self._show(())

    def recall(self, back: bool, questions: Sequence[str]) -> str | None:
        """The question before (`back`) or after the one that is shown, of those of the chat and
        those asked since the start; None where there is none, or the text is one's own."""
        if self._at is None:
            if not back or self._text:
                return None
            self._walk = _newest_first([*self._asked, *questions])
        at = (-1 if self._at is None else self._at) + (1 if back else -1)
        if at >= len(self._walk):
            return None
        self._at = at if at >= 0 else None
        # `write` must not take what is now shown for one's own
        self._text = self._walk[at] if at >= 0 else ""
        self._text_tokens = _unless_counted(self._text)
        self._count_next()
        return self._text

    @property
    def walking(self) -> bool:
        """Whether an earlier question is shown as it was asked."""
        return self._at is not None

    # Tokens

    def recount(self, *_: object) -> None:
        """Another model counts otherwise."""
        self.attached = tuple(replace(one, tokens=None) for one in self.attached)
        self.tokens = None
        self._text_tokens = _unless_counted(self._text)
        self._count_next()

    def _count_next(self) -> None:
        """Have counted what is not: the text first, then one file after another."""
        self._sum()
        if self._text_tokens is None:
            self._counted = None
            self._counter.count(self._text)
            return
        self._counted = next((one for one in self.attached if one.tokens is None), None)
        if self._counted is not None:
            self._counter.count(fenced(self._counted.attachment))

    def _count_came(self, tokens: int | None) -> None:
        if tokens is None:
            return
        came = Tokens(tokens, self._counter.about)
        if self._text_tokens is None and self._counted is None:
            self._text_tokens = came
        elif self._counted is not None:
            counted, self._counted = self._counted, None
            self.attached = tuple(
                replace(one, tokens=came) if one.attachment == counted.attachment else one
                for one in self.attached
            )
        else:
            return
        self._count_next()

    def _sum(self) -> None:
        """The last number stands until there is another, so that it does not flicker. That of
        nothing does not: with no tokenizer at hand, none would ever take its place."""
        counts = [self._text_tokens, *(one.tokens for one in self.attached)]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            self.tokens = Tokens(
                sum(count.count for count in known), any(count.about for count in known)
            )
        elif self.tokens == Tokens():
            self.tokens = None


def _unless_counted(text: str) -> Tokens | None:
    """Nothing has no tokens; all else is to be counted."""
    return None if text.strip() else Tokens()


def _tr(text: str) -> str:
    return QCoreApplication.translate("writing", text)


def _joined(
    held: Sequence[Attached], attachments: Iterable[Attachment]
) -> tuple[list[Attached], list[str]]:
    """`held` with what is new of `attachments`, and the names of those for which was no room."""
    joined, over = list(held), []
    for attachment in attachments:
        size = text_files.size_of(attachment.text)
        if any(one.attachment == attachment for one in joined):
            continue
        if len(joined) >= MAX_FILES or sum(one.size for one in joined) + size > MAX_TOTAL:
            over.append(attachment.name)
        else:
            joined.append(Attached(attachment, size))
    return joined, over


def _newest_first(questions: Sequence[str]) -> list[str]:
    """Each question once, where it was asked last."""
    return list(dict.fromkeys(question for question in reversed(questions) if question))
