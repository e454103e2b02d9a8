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
    kept: list[Message] = []
    for message in messages:
        if message.role != "system" and count > 0:
            count -= 1
        else:
            kept.append(message)
    return kept
