"""A conversation as turns: a question with its answers, and what it is without the oldest ones.

Knows neither tokens nor templates.
"""

from collections.abc import Sequence

from engine.api import Message


def turns(messages: Sequence[Message]) -> list[int]:
    """How many messages each turn has, system prompts not counted: a question begins one."""
    sizes: list[int] = []
    for message in messages:
        if message.role == "user" or (message.role == "assistant" and not sizes):
            sizes.append(1)
        elif message.role == "assistant":
            sizes[-1] += 1
    return sizes


def without(messages: Sequence[Message], count: int) -> list[Message]:
    """`messages` without the oldest `count` of those that are no system prompts."""
    at = _behind(messages, count)
    return [m for i, m in enumerate(messages) if m.role == "system" or i >= at]


def oldest(messages: Sequence[Message], count: int) -> list[Message]:
    """The oldest `count` of those that are no system prompts, and all system prompts."""
    at = _behind(messages, count)
    return [m for i, m in enumerate(messages) if m.role == "system" or i < at]


def _behind(messages: Sequence[Message], count: int) -> int:
    """Where the messages begin that are not among the oldest `count`."""
    said = [i for i, message in enumerate(messages) if message.role != "system"]
    return said[count] if count < len(said) else len(messages)
