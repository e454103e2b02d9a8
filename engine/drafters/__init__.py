"""Ways to guess tokens, one per file."""

from collections.abc import Callable

from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.ngram import NGramDrafter

# The drafters that need no model of their own, by the name the user types.
BUILT_IN: dict[str, Callable[[], Drafter]] = {"none": NoDrafter, "ngram": NGramDrafter}


def built_in(choice: str) -> list[Drafter]:
    """Those that `choice` names, newly built; "auto" names all."""
    names = [choice] if choice in BUILT_IN else [name for name in BUILT_IN if name != "none"]
    return [BUILT_IN[name]() for name in names]
