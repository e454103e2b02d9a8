"""The messages of the open chat: all versions of them as a tree, and the turns that are shown.

Has every change kept by the history. Knows no signal, no widget and no model.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.chats.conversation import Entry, branch, new_id, versions
from app.viewmodels.history import History
from app.viewmodels.turns import Turn, turn_of
from engine.api import Role


class Branch:
    """`turns` are shown, oldest first. `chat` is the id of the chat that they are kept under."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._entries: dict[str, Entry] = {}  # in the order of writing
        self.turns: list[Turn] = []
        self.chat = ""

    def show(self, chat: str, entries: Sequence[Entry]) -> None:
        """Show the chosen versions of a chat's messages."""
        self.chat = chat
        self._entries = {entry.id: entry for entry in entries}
        self._rebuild()

    def choose(self, name: str) -> bool:
        """Show this version of a message, and what followed it; whether there is one."""
        chosen = self._entries.get(name)
        if chosen is None:
            return False
        for other in versions(list(self._entries.values()), chosen):
            self._entries[other.id] = replace(other, chosen=other.id == name)
        self._history.choose(name)
        self._rebuild()
        return True

    def new(self, role: Role, parent: str | None, **values: Any) -> Turn:
        """A turn behind the message `parent`, a version of those that are there; not yet shown."""
        turn = Turn(new_id(), role, parent=parent, **values)
        siblings = (entry.id for entry in self._entries.values() if entry.parent == parent)
        turn.versions = (*siblings, turn.id)
        return turn

    def add(self, turn: Turn) -> None:
        """Show `turn` last, as the chosen version."""
        self.turns.append(turn)
        self.keep(turn)
        self._history.choose(turn.id)

    def keep(self, turn: Turn) -> None:
        """Write what has become of `turn`."""
        self._entries[turn.id] = entry = turn.entry(self.chat)
        self._history.put(entry)

    def cut(self, turn: Turn) -> list[Turn]:
        """Show `turn` and all behind it no more, and return them; they stay as versions."""
        at = self.turns.index(turn)
        gone, self.turns = self.turns[at:], self.turns[:at]
        for sibling in turn.versions:
            self._entries[sibling] = replace(self._entries[sibling], chosen=False)
        return gone

    def forget(self, turn: Turn) -> list[Turn]:
        """Forget `turn` and all behind it, and return them."""
        at = self.turns.index(turn)
        gone, self.turns = self.turns[at:], self.turns[:at]
        for one in gone:
            self._entries.pop(one.id, None)
        self._history.drop(turn.id)
        return gone

    def find(self, name: str) -> Turn | None:
        """The shown turn with this id."""
        return next((turn for turn in self.turns if turn.id == name), None)

    @property
    def last(self) -> str | None:
        """The id of the last turn, None while there is none."""
        return self.turns[-1].id if self.turns else None

    @property
    def used(self) -> int:
        """Tokens of the chat, as its last answer counted them."""
        counted = [turn.usage for turn in self.turns if turn.usage.prompt_tokens]
        return counted[-1].prompt_tokens + counted[-1].tokens if counted else 0

    def _rebuild(self) -> None:
        siblings: dict[str | None, list[str]] = {}
        for entry in self._entries.values():
            siblings.setdefault(entry.parent, []).append(entry.id)
        shown = branch(self._entries.values())
        self.turns = [turn_of(entry, tuple(siblings[entry.parent])) for entry in shown]
