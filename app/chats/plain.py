"""What is known of chats and answers as plain JSON values, and back.

Reading never fails: what is missing, of the wrong kind or without sense becomes the default, and
what a later version may have added is left aside. Knows neither database nor file.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, get_args

from app.chats.conversation import Attachment, Choices, Facts, Round, State
from engine.api import Finish, Role, Sampling, Usage
from engine.errors import Reason

ROLES: tuple[Role, ...] = get_args(Role)
STATES: tuple[State, ...] = get_args(State)
LARGEST = 2**64  # of any count, seed or time; far beyond what is measured
PENALTIES = ("presence_penalty", "frequency_penalty")
CHOSEN = ("temperature", "top_p", "min_p", "repetition_penalty")
_PLAIN = ("model", "thinking", "finish", "drafted", "times_plain", "vocabulary", "left_out")
_HALVES = re.compile("[\ud800-\udfff]")


def dump(value: Any) -> str:
    """JSON without blanks, which UTF-8 can hold."""
    return sound(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def load(text: Any) -> Any:
    """What `dump` wrote; None for what is no JSON."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def sound(text: str) -> str:
    """`text` that UTF-8 can hold: a lone half of a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def amount(value: Any) -> float:
    """`value` if it is a number that can be measured, else 0."""
    return float(value) if _is_amount(value) else 0.0


class FactsWriter:
    """Writes the facts of an answer again and again as it grows: of its rounds and tokens, which
    are thousands in a long one, only what is new is put into words."""

    def __init__(self) -> None:
        self._rounds = _Growing(_round_out)
        self._ids = _Growing(lambda id: id)

    def text(self, facts: Facts) -> str:
        """The facts as JSON."""
        rounds, ids = self._rounds.text(facts.rounds), self._ids.text(facts.token_ids)
        others = dump(facts_out(replace(facts, rounds=(), token_ids=())))
        return f'{others[:-1]},"rounds":[{rounds}],"token_ids":[{ids}]}}'


class _Growing:
    """Items of a list as JSON, with `write` for each."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self._write = write
        self._items: tuple[Any, ...] = ()
        self._text = ""

    def text(self, items: tuple[Any, ...]) -> str:
        known = len(self._items)
        if items[:known] != self._items:
            known, self._text = 0, ""
        if len(items) > known:
            more = dump([self._write(item) for item in items[known:]])[1:-1]
            self._text += f",{more}" if known else more
        self._items = items
        return self._text


def facts_out(facts: Facts) -> dict[str, Any]:
    """Facts as a JSON object, but for rounds and tokens."""
    known = {name: getattr(facts, name) for name in _PLAIN}
    return known | {
        "usage": {f.name: getattr(facts.usage, f.name) for f in fields(Usage)},
        "notices": [reason_out(reason) for reason in facts.notices],
        "problem": None if facts.problem is None else reason_out(facts.problem),
    }


def rounds_out(rounds: Iterable[Round]) -> list[list[float]]:
    """Rounds as JSON lists: [drafted, accepted, seconds, run, drafted?, run, drafted?, ...]."""
    return [_round_out(each) for each in rounds]


def _round_out(each: Round) -> list[float]:
    start = [each.drafted, each.accepted, round(each.seconds, 6)]
    return [*start, *(int(number) for run in each.runs for number in run)]


def facts_in(value: Any) -> Facts:
    """The facts of such an object."""
    table = _table(value)
    finish = table.get("finish")
    return Facts(
        model=_text(table.get("model")),
        thinking=_amount_in(table.get("thinking")),
        usage=_usage_in(table.get("usage")),
        finish=Finish(finish) if finish in list(Finish) else None,
        drafted=table.get("drafted") is True,
        rounds=_rounds_in(table.get("rounds")),
        times_plain=_amount_in(table.get("times_plain")),
        token_ids=_counts(table.get("token_ids")),
        vocabulary=_text(table.get("vocabulary")),
        notices=tuple(r for item in _list(table.get("notices")) if (r := reason_in(item))),
        problem=reason_in(table.get("problem")),
        left_out=_count_in(table.get("left_out")),
    )


def choices_out(choices: Choices) -> dict[str, Any]:
    """Choices as a JSON object."""
    sampling = {f.name: getattr(choices.sampling, f.name) for f in fields(Sampling)}
    return {
        "system": choices.system,
        "sampling": sampling | {"logit_bias": dict(choices.sampling.logit_bias)},
        "target": choices.target,
        "draft": choices.draft,
        "summary": choices.summary,
        "left_out": choices.left_out,
    }


def choices_in(value: Any) -> Choices:
    """The choices of such an object."""
    table = _table(value)
    return Choices(
        system=_text(table.get("system")),
        sampling=_sampling_in(table.get("sampling")),
        target=_text(table.get("target")) or None,
        draft=_text(table.get("draft")) or None,
        summary=_text(table.get("summary")),
        left_out=_text(table.get("left_out")) or None,
    )


def attachments_out(attachments: Sequence[Attachment]) -> list[dict[str, str]]:
    """Attachments as a JSON list."""
    return [{"name": a.name, "text": a.text} for a in attachments]


def attachments_in(value: Any) -> tuple[Attachment, ...]:
    """The attachments of such a list."""
    tables = [_table(item) for item in _list(value)]
    return tuple(Attachment(_text(t.get("name")), _text(t.get("text"))) for t in tables if t)


def reason_out(reason: Reason) -> dict[str, Any]:
    """A reason as a JSON object."""
    return {"code": reason.code, "template": reason.template, "values": dict(reason.values)}


def reason_in(value: Any) -> Reason | None:
    """The reason of such an object, if its sentence can be made."""
    table = _table(value)
    values = {
        name: item
        for name, item in _table(table.get("values")).items()
        if isinstance(item, str | int | float)
    }
    reason = Reason(_text(table.get("code")), _text(table.get("template")), values)
    try:
        return reason if reason.code and reason.text else None
    except (LookupError, ValueError, AttributeError, TypeError):
        return None


def _usage_in(value: Any) -> Usage:
    table = _table(value)
    known: dict[str, Any] = {}
    for field in fields(Usage):
        item = table.get(field.name)
        if field.name == "by_drafter":
            known[field.name] = _drafters_in(item)
        elif isinstance(field.default, tuple):
            known[field.name] = _counts(item)
        elif (_is_count if type(field.default) is int else _is_amount)(item):
            known[field.name] = item
    if len(known["drafted_at"]) != len(known["accepted_at"]):
        del known["drafted_at"], known["accepted_at"]
    return Usage(**known)


def _drafters_in(value: Any) -> tuple[tuple[str, int, int, int], ...]:
    rows = [row for row in _list(value) if type(row) is list and len(row) == 4]
    return tuple(
        (name, rounds, drafted, accepted)
        for name, rounds, drafted, accepted in rows
        if isinstance(name, str) and _are_counts([rounds, drafted, accepted])
    )


def _rounds_in(value: Any) -> tuple[Round, ...]:
    """All rounds, or none: one that is left out would shift the runs of those after it.

    A long chat has tens of thousands, so numbers are looked at all together.
    """
    items = _list(value)
    if not all(type(item) is list and len(item) > 2 and len(item) % 2 for item in items):
        return ()
    seconds = [item[2] for item in items]
    counts = [number for item in items for number in (*item[:2], *item[3:])]
    if not _are_counts(counts) or not all(map(_is_amount, seconds)):
        return ()
    return tuple(
        Round(item[0], item[1], item[2], tuple(zip(item[3::2], map(bool, item[4::2]), strict=True)))
        for item in items
    )


def _sampling_in(value: Any) -> Sampling:
    table = _table(value)
    known: dict[str, Any] = {n: v for n in CHOSEN if _is_amount(v := table.get(n))}
    known |= {n: v for n in PENALTIES if _is_number(v := table.get(n))}
    known |= {n: v for n in ("top_k", "seed", "max_tokens") if _is_count(v := table.get(n))}
    known["stop"] = tuple(s for s in _list(table.get("stop")) if isinstance(s, str) and s)
    known["logit_bias"] = {
        int(token): bias
        for token, bias in _table(table.get("logit_bias")).items()
        if token.isdecimal() and len(token) < 10 and _is_number(bias)
    }
    return Sampling(**known)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return sound(value) if isinstance(value, str) else ""


def _count_in(value: Any) -> int:
    return value if _is_count(value) else 0


def _amount_in(value: Any) -> float | None:
    return value if _is_amount(value) else None


def _counts(value: Any) -> tuple[int, ...]:
    """All of a list of counts, or none of it."""
    items = _list(value)
    return tuple(items) if _are_counts(items) else ()


def _are_counts(items: list[Any]) -> bool:
    return not items or (
        set(map(type, items)) == {int} and min(items) >= 0 and max(items) < LARGEST
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) < LARGEST


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0
