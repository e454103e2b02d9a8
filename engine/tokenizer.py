"""Text to ids and back, and a conversation to the ids of a prompt.

Wraps a tokenizer object that `loading` made, and the folder's chat template. Knows no model.
"""

import itertools
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api import Message
from engine.errors import Reason, TemplateError
from engine.template import Template
from engine.text import CLOSE, OPEN, Piece

if TYPE_CHECKING:
    import tokenizers

# The private-use characters of Unicode's three areas: far more than a conversation can hold.
PRIVATE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))

# Characters of encoded texts that are kept: a chat is written out anew for every question.
REMEMBERED = 1_000_000

FOLDED = Reason(
    "system_folded",
    "This model's template takes no system text, so it was put before the first message.",
)
MERGED = Reason(
    "roles_merged",
    "This model's template wants messages to alternate, so neighbouring ones were joined.",
)
NO_TEMPLATE = Reason(
    "no_template",
    "This model has no chat template: it continues the text, and may not answer it.",
)


@dataclass(frozen=True)
class Prompt:
    """The ids of a conversation, ready for an answer.

    `answers` are the positions that earlier answers take up, as generated; `thinking` says that
    the template has opened a thinking block.
    """

    ids: list[int]
    answers: tuple[range, ...] = ()
    thinking: bool = False
    notices: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Begun:
    """The part of an answer that is there already when it goes on: its ids, and what is seen of
    it. `known`: it was generated as these ids."""

    ids: list[int] = field(default_factory=list)
    shown: Piece = field(default_factory=Piece)
    known: bool = True


@dataclass
class Tokenizer:
    """A vocabulary with its chat template.

    `eos_ids` end an answer; `special_tokens` are the names a template may read, such as
    "bos_token", with their text. `fingerprint` names the vocabulary: ids are only worth something
    together with it.
    """

    backend: "tokenizers.Tokenizer"
    eos_ids: frozenset[int] = frozenset()
    template: Template | None = None
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    add_bos: bool = False

    def __post_init__(self) -> None:
        added = self.backend.get_added_tokens_decoder()
        self._special = {i for i, token in added.items() if token.special} | self.eos_ids
        self._special -= {i for i, token in added.items() if token.content in (OPEN, CLOSE)}
        self._thought = self.backend.token_to_id(CLOSE)
        self._lately = _Lately()
        source = self.template.source if self.template else ""
        # What a user may not type into being: special tokens, and others the template gives a
        # meaning to.
        # Vocabularies such as Llama 2's write a blank before the text they are given.
        first = self.backend.encode("x", add_special_tokens=False).tokens[:1]
        self._prefixes = bool(first) and first[0].startswith("\u2581")
        names = {t.content for t in added.values() if t.special or t.content in source}
        longest_first = sorted((n for n in names if len(n) > 1), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """The ids of `text`; names of control tokens in it become those tokens."""
        # a batch, since only then the window's thread is not kept waiting
        return list(self.backend.encode_batch([text], add_special_tokens=False)[0].ids)

    def _encode_part(self, text: str, first: bool) -> Sequence[int]:
        """The ids of a part of a prompt, which seldom changes from one question to the next."""
        ids = self._lately.find(text, first)
        if ids is None:
            ids = array("i", self.encode(text) if first else self._encode_on(text))
            self._lately.add(text, first, ids)
        return ids

    def _encode_on(self, text: str) -> list[int]:
        """The ids of `text` where it goes on after other text: without a blank before it."""
        if not self._prefixes:
            return self.encode(text)
        guard = self.encode("\n")
        ids = self.encode("\n" + text)
        return ids[len(guard) :] if ids[: len(guard)] == guard else self.encode(text)

    def cut(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of `text` where it goes on after other text, and the character each ends at."""
        guard = "\n" if self._prefixes else ""
        skipped = self.encode(guard)
        found = self.backend.encode_batch([guard + text], add_special_tokens=False)[0]
        if found.ids[: len(skipped)] != skipped:  # text that joins the guard
            guard, skipped = "", []
            found = self.backend.encode_batch([text], add_special_tokens=False)[0]
        ends = [end - len(guard) for _, end in found.offsets[len(skipped) :]]
        return list(found.ids[len(skipped) :]), ends

    @property
    def bos(self) -> int | None:
        """What every text begins with, where the model wants that."""
        found = self.backend.token_to_id(self.special_tokens.get("bos_token", ""))
        return found if self.add_bos else None

    @property
    def end(self) -> int | None:
        """What ends an answer: the end token that is named, else any."""
        named = self.backend.token_to_id(self.special_tokens.get("eos_token", ""))
        return named if named in self.eos_ids else max(self.eos_ids, default=None)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, control tokens left out; thinking tags stay."""
        kept = [i for i in ids if i not in self._special]
        return str(self.backend.decode(kept, skip_special_tokens=False))

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The conversation as the model's template writes it, with what typed text may not do.

        An answer that still has the ids it was generated as keeps them, unless it was thought
        about: the template then says what stays of the thinking. Text in a message never becomes
        a control token. Raises TemplateError when the template takes the conversation in no form.
        """
        if self.template is None:
            return self._without_template(messages)
        marks = _Marks(messages, self._control)
        problem: TemplateError | None = None
        for shape, notices in _shapes(messages):
            turns = [self._turn(message, marks) for message in shape]
            try:
                text = self.template.render(turns, **self.special_tokens)
            except TemplateError as error:
                if error.code != "template_refused":
                    raise
                problem = problem or error
                continue
            ids, answers = self._spliced(text, marks)
            thinking = text.rstrip().endswith(OPEN)
            return Prompt(ids, answers, thinking, notices)
        assert problem is not None
        raise problem

    def begun(self, message: Message, thinking: bool) -> Begun:
        """What there is of an answer that is to go on; `thinking` as its prompt says. Its text is
        encoded where its ids are not known. Raises ValueError for another message than an answer.
        """
        if message.role != "assistant":
            raise ValueError("only an answer can go on")
        shown = Piece(message.content, message.reasoning)
        if message.token_ids and message.vocabulary == self.fingerprint:
            return Begun(self._without_end(message.token_ids), shown)
        marks = _Marks([message], self._control)
        text = marks.protect(message.content)
        if message.reasoning:
            opened = "" if thinking else f"{OPEN}\n"
            closed = f"\n{CLOSE}\n\n" if message.content else ""
            text = f"{opened}{marks.protect(message.reasoning)}{closed}{text}"
        parts = [self._encode_on(part) for part, _ in marks.split(text)]
        return Begun(list(itertools.chain(*parts)), shown, known=not parts)

    def _turn(self, message: Message, marks: "_Marks") -> dict[str, str]:
        """A message as templates know it; thinking has one of two names there."""
        turn = {"role": message.role, "content": self._content(message, marks)}
        if message.role == "assistant" and message.reasoning:
            turn["reasoning_content"] = turn["thinking"] = marks.protect(message.reasoning)
        return turn

    def _content(self, message: Message, marks: "_Marks") -> str:
        """The text of a message, or a mark for its ids."""
        ids = message.token_ids
        if not ids or message.vocabulary != self.fingerprint:
            return marks.protect(message.content)
        if message.reasoning or self._thought in ids:
            return marks.protect(message.content)
        return marks.quote(message)

    def _without_end(self, ids: Sequence[int]) -> list[int]:
        kept = list(ids)
        while kept and kept[-1] in self.eos_ids:
            kept.pop()
        return kept

    def _without_template(self, messages: Sequence[Message]) -> Prompt:
        marks = _Marks(messages, self._control)
        parts = [self._content(m, marks) for m in messages]
        ids, answers = self._spliced("\n".join(parts), marks)
        if self.bos is not None:
            ids = [self.bos, *ids]
            answers = tuple(range(r.start + 1, r.stop + 1) for r in answers)
        return Prompt(ids, answers, False, (NO_TEMPLATE,))

    def _spliced(self, text: str, marks: "_Marks") -> tuple[list[int], tuple[range, ...]]:
        """Ids of a rendered prompt: generated answers as they were, broken tokens as text."""
        ids: list[int] = []
        answers = []
        for part, message in marks.split(text):
            if message is None:
                ids += self._encode_part(part, first=not ids)
                continue
            kept = self._without_end(message.token_ids or ())
            answers.append(range(len(ids), len(ids) + len(kept)))
            ids += kept
        return ids, tuple(answers)


class _Lately:
    """The ids of texts that were encoded lately, REMEMBERED characters in all."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, bool], array[int]] = {}
        self._size = 0

    def find(self, text: str, first: bool) -> "array[int] | None":
        """The ids of `text`, `first` of a prompt or not."""
        ids = self._ids.pop((text, first), None)
        if ids is not None:
            self._ids[text, first] = ids  # the latest again
        return ids

    def add(self, text: str, first: bool, ids: "array[int]") -> None:
        """Keep them, in place of those that were not asked for longest."""
        self._ids[text, first] = ids
        self._size += len(text)
        while self._size > REMEMBERED:
            oldest = next(iter(self._ids))
            del self._ids[oldest]
            self._size -= len(oldest[0])


class _Marks:
    """Private-use characters that stand in a prompt for what the template must not touch.

    One breaks the names of control tokens that a user typed; others stand for whole answers
    whose ids are known. Characters that occur in no message are chosen, so nothing is mistaken.
    """

    def __init__(self, messages: Sequence[Message], control: re.Pattern[str]) -> None:
        used = set().union(*(m.content for m in messages), *(m.reasoning for m in messages))
        unused = (chr(c) for c in itertools.chain(*PRIVATE) if chr(c) not in used)
        self._break, self._quote = itertools.islice(unused, 2)
        self._control = control
        self._mark = re.compile(f"{self._quote}([0-9]{{1,6}}){self._quote}")
        self._answers: list[Message] = []

    def protect(self, text: str) -> str:
        """`text` with no control token in it."""
        return self._control.sub(lambda m: m[0][:1] + self._break + m[0][1:], _whole(text))

    def quote(self, answer: Message) -> str:
        """What stands for the ids of `answer`."""
        if answer not in self._answers:
            self._answers.append(answer)
        return f"{self._quote}{self._answers.index(answer)}{self._quote}"

    def split(self, text: str) -> list[tuple[str, Message | None]]:
        """The rendered text in order: (text, None) or ("", the answer to splice in).

        A template may write marks of its own; what names no answer is left out.
        """
        parts: list[tuple[str, Message | None]] = []
        for i, piece in enumerate(self._mark.split(_whole(text))):
            if i % 2 == 0:
                parts += [(part, None) for part in piece.split(self._break) if part]
            elif int(piece) < len(self._answers):
                parts.append(("", self._answers[int(piece)]))
        return parts


def _whole(text: str) -> str:
    """`text` without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shapes(messages: Sequence[Message]) -> list[tuple[list[Message], tuple[Reason, ...]]]:
    """The conversation in forms a stricter template may take, mildest first."""
    system = [m.content for m in messages if m.role == "system"]
    rest = [m for m in messages if m.role != "system"]
    joined = "\n\n".join(system)
    whole = [Message("system", joined), *rest] if system else rest
    shapes: list[tuple[list[Message], tuple[Reason, ...]]] = [(whole, ())]
    if system and rest and rest[0].role == "user":
        first = Message("user", f"{joined}\n\n{rest[0].content}")
        rest = [first, *rest[1:]]
        shapes.append((rest, (FOLDED,)))
    merged = _merged(rest)
    if len(merged) < len(rest):
        shapes.append((merged, (FOLDED, MERGED) if system else (MERGED,)))
    return shapes


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of the same role made one."""
    return [
        group[0] if len(group) == 1 else Message(role, "\n\n".join(m.content for m in group))
        for role, group in (
            (role, list(members))
            for role, members in itertools.groupby(messages, key=lambda m: m.role)
        )
    ]
