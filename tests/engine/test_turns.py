"""A conversation is cut between turns, and its system prompts stay."""

import pytest

from engine.api import Message
from engine.turns import oldest, turns, without

SYSTEM, ASKED, TOLD = Message("system", "s"), Message("user", "u"), Message("assistant", "a")


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        ([], []),
        ([SYSTEM], []),
        ([SYSTEM, ASKED, TOLD, ASKED], [2, 1]),
        ([ASKED, ASKED, TOLD, TOLD], [1, 3]),
        ([TOLD, ASKED], [1, 1]),
        ([ASKED, SYSTEM, TOLD], [2]),
    ],
)
def test_a_question_begins_a_turn(messages, sizes):
    assert turns(messages) == sizes


def test_the_oldest_messages_go_and_system_prompts_stay():
    chat = [SYSTEM, ASKED, TOLD, SYSTEM, Message("user", "last")]
    assert without(chat, 0) == chat
    assert without(chat, 2) == [SYSTEM, SYSTEM, Message("user", "last")]
    assert without(chat, 9) == [SYSTEM, SYSTEM]
    assert oldest(chat, 0) == [SYSTEM, SYSTEM]
    assert oldest(chat, 2) == [*chat[:3], SYSTEM]
