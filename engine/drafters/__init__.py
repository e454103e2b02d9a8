"""Ways to guess tokens, one per file."""

from collections.abc import Callable

from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.ngram import NGramDrafter

# The drafters that need no model of their own, by the name the user types.
BUILT_IN: dict[str, Callable[[], Drafter]] = {"none": NoDrafter, "ngram": NGramDrafter}
