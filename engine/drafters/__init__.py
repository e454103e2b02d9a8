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


def built_in(choice: str, past: Texts | None = None) -> list[Drafter]:
    """Those that `choice` names, newly built, which know the `past` where they learn from it;
    "auto" names all."""
    names = [choice] if choice in BUILT_IN else [name for name in BUILT_IN if name != "none"]
    return [
        LEARNED[name](past) if past is not None and name in LEARNED else BUILT_IN[name]()
        for name in names
    ]
