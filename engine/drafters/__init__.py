"""Ways to guess tokens, one per file."""

from collections.abc import Callable

from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.chain import ChainDrafter
from engine.drafters.ngram import NGramDrafter
from engine.drafters.suffix import SuffixDrafter
from engine.past import Texts

# The drafters that need no model of their own, by the name the user types.
BUILT_IN: dict[str, Callable[[], Drafter]] = {
    "none": NoDrafter,
    "ngram": NGramDrafter,
    "suffix": SuffixDrafter,
    "chain": ChainDrafter,
}
# Those of them that copy from other chats too.
LEARNED: dict[str, Callable[[Texts], Drafter]] = {
    "suffix": SuffixDrafter,
    "chain": ChainDrafter,
}


def built_in(name: str, past: Texts | None = None) -> Drafter:
    """The drafter of that name, which knows the `past` where it learns from it."""
    return LEARNED[name](past) if past is not None and name in LEARNED else BUILT_IN[name]()
