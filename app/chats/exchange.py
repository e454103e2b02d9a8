"""Chats as files for people and for other programs: Markdown and JSON, out and back in.

The forms are described in docs/chats.md. A file that is read is a stranger's: it is bounded, and
taken whole or not at all. Knows no database.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

from app.chats import plain
from app.chats.conversation import ChatRecord, Choices, Entry, Facts, branch, new_id
from engine.api import Role
from engine.errors import EngineError

Form = Literal["markdown", "json"]
Talk = tuple[ChatRecord, list[Entry]]

NAME, VERSION = "slipstream-chats", 1
LIMIT = 2**27  # bytes of a file
MOST_CHATS, MOST_MESSAGES, MOST_VALUES = 10_000, 200_000, 10_000_000
TITLE_LENGTH = 200
ROLE_WORDS: dict[Role, str] = {"system": "System", "user": "User", "assistant": "Assistant"}
THINKING = "> **Thinking**"

_ROLE_LINE = re.compile(r"## (System|User|Assistant)(?: · (.*))?")
# Lines of a message that would pass for ours bear one backslash more, so that it comes off again.
_OURS = re.compile(rf"(\\*)(?:## (?:System|User|Assistant)\b|{re.escape(THINKING)})")
# With a role's heading after it, such a last line would begin another chat.
_OURS_LAST = re.compile(rf"(\\*)(?:## (?:System|User|Assistant)\b|{re.escape(THINKING)}|# )")
# Control characters but tab and line end would act in a terminal. They are written as JSON writes
# them, and what looks like that with every backslash twice.
_CONTROLS = re.compile(
    r"(\\*)([\0-\x08\x0b-\x1f\x7f-\x9f]|u00(?:0[0-8b-f]|1[0-9a-f]|7f|[89][0-9a-f]))"
)
_LATE = re.compile(r"[\x7f-\x9f]")  # those that JSON leaves as they are
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def save(path: Path, talks: Iterable[Talk], form: Form) -> int:
    """Write chats into the file at `path`, readable by its owner only; how many there were.

    What was there before stays whole until the new file is. Raises EngineError.
    """
    beside = path.with_name(f"{path.name}.{new_id()}.partial")
    writers: dict[Form, Callable[[IO[str], Iterable[Talk]], int]] = {
        "markdown": _write_markdown,
        "json": _write_json,
    }
    try:
        kept = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(kept, "w", encoding="utf-8", newline="") as file:
            count = writers[form](file, talks)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise EngineError(
            "export_failed",
            "The chats could not be written to {path}: {detail}",
            path=str(path),
            detail=error.strerror or type(error).__name__,
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return count


def read(path: Path) -> list[Talk]:
    """The chats of a file of either form, under new ids, in the file's order. Raises EngineError.

    What a stranger's file could misuse is left aside: paths of models, and the tokens of answers.
    """
    text = _bounded(path)
    talks = _from_json(text) if text.lstrip()[:1] == "{" else list(_from_markdown(text))
    if not talks:
        raise _wrong("it holds no chat in a form that Slipstream writes")
    return talks


def _bounded(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LIMIT + 1)
    except OSError as error:
        raise _wrong(error.strerror or type(error).__name__) from error
    if len(raw) > LIMIT:
        raise EngineError(
            "import_too_large",
            "The file is larger than {limit} MB, the most that is read at once.",
            limit=LIMIT // 10**6,
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong("it is no text in UTF-8") from error


def _wrong(detail: str) -> EngineError:
    """Of the details those written here have German words (`values` in reasons_de.json)."""
    return EngineError(
        "import_refused", "The chats of this file cannot be read: {detail}.", detail=detail
    )


def _write_json(file: IO[str], talks: Iterable[Talk]) -> int:
    """One chat after the other, so that only one is held."""
    head = json.dumps({"format": NAME, "version": VERSION})
    file.write(f'{head[:-1]}, "chats": [')
    count = 0
    for count, talk in enumerate(talks, 1):
        file.write(",\n" if count > 1 else "\n")
        written = plain.dump(_chat_out(*talk))
        file.write(_LATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written))
    file.write("\n]}\n")
    return count


def _chat_out(chat: ChatRecord, entries: Iterable[Entry]) -> dict[str, Any]:
    choices = plain.choices_out(replace(chat.choices, target=None, draft=None))
    del choices["target"], choices["draft"]
    return {
        "title": chat.title,
        "pinned": chat.pinned,
        "made": chat.made,
        "changed": chat.changed,
        "choices": choices,
        "messages": [_entry_out(entry) for entry in entries],
    }


def _entry_out(entry: Entry) -> dict[str, Any]:
    facts = plain.facts_out(entry.facts) | {"rounds": plain.rounds_out(entry.facts.rounds)}
    for name in ("vocabulary", "notices", "problem"):
        del facts[name]
    notices = [*entry.facts.notices, *filter(None, [entry.facts.problem])]
    return {
        "id": entry.id,
        "parent": entry.parent,
        "chosen": entry.chosen,
        "role": entry.role,
        "text": entry.text,
        "reasoning": entry.reasoning,
        "attachments": plain.attachments_out(entry.attachments),
        "state": entry.state,
        "written": entry.written,
        "notices": [reason.text for reason in notices],
        "facts": facts,
    }


def _from_json(text: str) -> list[Talk]:
    if sum(map(text.count, "[{,")) > MOST_VALUES:
        raise _wrong("it holds too many values")
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise _wrong("it is nested too deep") from error
    except ValueError as error:
        raise _wrong("it is no sound JSON") from error
    if not isinstance(value, dict) or value.get("format") != NAME:
        raise _wrong("it was not written by Slipstream")
    if value.get("version") != VERSION:
        raise _wrong("it is of another version of the format")
    chats = _list(value, "chats", MOST_CHATS)
    return [_chat_in(chat) for chat in chats]


def _chat_in(value: Any) -> Talk:
    chat = new_id()
    messages = _list(value, "messages", MOST_MESSAGES)
    names: dict[str, str] = {}
    entries = [_entry_in(message, chat, names) for message in messages]
    choices = plain.choices_in(value.get("choices"))
    record = ChatRecord(
        chat,
        title(_kind(value, "title", str)),
        value.get("pinned") is True,
        plain.amount(value.get("made")),
        plain.amount(value.get("changed")),
        replace(choices, target=None, draft=None, left_out=names.get(choices.left_out or "")),
    )
    return record, entries


def _entry_in(value: Any, chat: str, names: dict[str, str]) -> Entry:
    """The message of such an object; `names` are the new ids of those before it. That a parent
    stands before its children leaves no room for circles."""
    old, role = _kind(value, "id", str), _kind(value, "role", str)
    parent = value.get("parent")
    if role not in plain.ROLES:
        raise _wrong("the role of a message is unknown")
    if old in names:
        raise _wrong("two messages have the same id")
    if parent is not None and (not isinstance(parent, str) or parent not in names):
        raise _wrong("the message before a message is missing")
    text = plain.sound(_kind(value, "text", str))
    facts = plain.facts_in(value.get("facts"))
    spans = sum(length for each in facts.rounds for length, _ in each.runs)
    state, reasoning = value.get("state"), value.get("reasoning")
    names[old] = new_id()
    return Entry(
        names[old],
        chat,
        None if parent is None else names[parent],
        role,
        text,
        plain.attachments_in(value.get("attachments")),
        plain.sound(reasoning) if isinstance(reasoning, str) else "",
        state if state in ("done", "interrupted", "failed") else "interrupted",
        replace(
            facts,
            rounds=facts.rounds if spans <= len(text) else (),
            token_ids=(),
            vocabulary="",
            notices=(),
            problem=None,
        ),
        plain.amount(value.get("written")),
        value.get("chosen") is True,
    )


def _kind(value: Any, name: str, kind: type) -> Any:
    found = value.get(name) if isinstance(value, dict) else None
    if type(found) is not kind:
        raise EngineError(
            "import_refused",
            "The chats of this file cannot be read: “{name}” is missing or of the wrong kind.",
            name=name,
        )
    return found


def _list(value: Any, name: str, most: int) -> list[Any]:
    found: list[Any] = _kind(value, name, list)
    if len(found) > most:
        raise EngineError(
            "import_refused",
            "The chats of this file cannot be read: “{name}” has more than {most} parts.",
            name=name,
            most=most,
        )
    return found


def title(text: str) -> str:
    """A title on one line and of a bounded length."""
    return " ".join(plain.sound(text).split())[:TITLE_LENGTH]


def _shown(text: str) -> str:
    """`text` with control characters as visible marks, which `_hidden` takes back."""

    def mark(found: re.Match[str]) -> str:
        before, what = found[1] * 2, found[2]
        if len(what) == 1:
            return f"{before}\\u{ord(what):04x}"
        return before + what

    return _CONTROLS.sub(mark, text)


def _hidden(text: str) -> str:
    """The text of which `_shown` made `text`."""

    def sign(found: re.Match[str]) -> str:
        before, what = found[1], found[2]
        if len(what) == 1:
            return found[0]
        half = before[: len(before) // 2]
        return half + (chr(int(what[1:], 16)) if len(before) % 2 else what)

    return _CONTROLS.sub(sign, text)


def _write_markdown(file: IO[str], talks: Iterable[Talk]) -> int:
    count = 0
    for count, (chat, entries) in enumerate(talks, 1):
        file.write("\n" if count > 1 else "")
        file.write(f"# {_shown(title(chat.title)) or 'Chat'}\n")
        if chat.choices.system:
            entries = [Entry("", chat.id, None, "system", chat.choices.system), *branch(entries)]
        else:
            entries = branch(entries)
        for entry in entries:
            file.write(f"\n{_shown(markdown(entry))}\n")
    return count


def markdown(entry: Entry) -> str:
    """A message under a heading with its role: what was attached, the thinking as a quote, the
    text."""
    heading = f"## {ROLE_WORDS[entry.role]}"
    if entry.facts.model:
        heading += f" · {title(entry.facts.model)}"
    parts = [heading]
    parts += [f"*Attached: {title(a.name)}*" for a in entry.attachments]
    if entry.reasoning:
        lines = plain.sound(entry.reasoning).split("\n")
        parts.append("\n".join([THINKING, *(f"> {line}".rstrip(" ") for line in ["", *lines])]))
    *lines, last = plain.sound(entry.text).strip("\n").split("\n")
    text = "\n".join([*(_escaped(line, _OURS) for line in lines), _escaped(last, _OURS_LAST)])
    return "\n\n".join([*parts, _closed(text)])


def _escaped(line: str, ours: re.Pattern[str]) -> str:
    return f"\\{line}" if ours.match(line) else line


def _bare(line: str, ours: re.Pattern[str]) -> str:
    found = ours.match(line)
    return line[1:] if found and found[1] else line


def _closed(text: str) -> str:
    """`text` with a code block that was left open closed, or what follows would be part of it."""
    opened = ""
    for line in text.split("\n"):
        mark, rest = found.groups() if (found := _FENCE.fullmatch(line)) else ("", "")
        if not opened:
            opened = mark if "`" not in rest or mark[:1] == "~" else ""
        elif mark.startswith(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _from_markdown(text: str) -> Iterator[Talk]:
    """The chats of our own Markdown. Raises EngineError."""
    lines = _hidden(text.replace("\r\n", "\n")).split("\n")
    starts = [i for i in range(len(lines)) if _starts_chat(lines, i)]
    if len(starts) > MOST_CHATS:
        raise _wrong("it has too many chats")
    for start, end in pairwise([*starts, len(lines)]):
        yield _chat_of(lines[start][2:], lines[start + 1 : end])


def _starts_chat(lines: list[str], index: int) -> bool:
    """Whether a chat's title stands here: a heading that a role's heading follows."""
    after = lines[index + 1 : index + 3]
    return (
        lines[index].startswith("# ")
        and len(after) == 2
        and not after[0]
        and _ROLE_LINE.fullmatch(after[1]) is not None
    )


def _chat_of(name: str, lines: list[str]) -> Talk:
    chat, system = ChatRecord(new_id(), title(name)), ""
    entries: list[Entry] = []
    starts = [i for i, line in enumerate(lines) if _ROLE_LINE.fullmatch(line)]
    if len(starts) > MOST_MESSAGES:
        raise _wrong("a chat has too many messages")
    for start, end in pairwise([*starts, len(lines)]):
        entry = _entry_of(lines[start], lines[start + 1 : end], chat.id)
        if entry.role == "system" and not entries:
            system = entry.text
        else:
            entries.append(replace(entry, parent=entries[-1].id if entries else None))
    return replace(chat, choices=Choices(system=system)), entries


def _entry_of(heading: str, lines: list[str], chat: str) -> Entry:
    word, _, model = heading.removeprefix("## ").partition(" · ")
    role = next(role for role, name in ROLE_WORDS.items() if name == word)
    rest, thought = _trimmed(lines), []
    if rest and rest[0] == THINKING:
        end = next((i for i, line in enumerate(rest) if line[:1] != ">"), len(rest))
        thought, rest = rest[2:end], _trimmed(rest[end:])
    *first, last = rest or [""]
    return Entry(
        new_id(),
        chat,
        None,
        role,
        "\n".join([*(_bare(line, _OURS) for line in first), _bare(last, _OURS_LAST)]),
        reasoning="\n".join(line.removeprefix(">").removeprefix(" ") for line in thought),
        facts=Facts(model=model),
    )


def _trimmed(lines: list[str]) -> list[str]:
    """`lines` without the blank ones around them."""
    whole = [i for i, line in enumerate(lines) if line]
    return lines[whole[0] : whole[-1] + 1] if whole else []
