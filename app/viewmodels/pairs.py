"""What would be in memory together: a target beside its draft, as it runs or as it was asked for.

`fit` judges it. Knows no widget and loads nothing.
"""

from dataclasses import dataclass, replace

from app.settings import Settings
from app.viewmodels.fit import Fitting
from app.viewmodels.library import Library
from engine.api import Loaded, ModelInfo, Precision
from engine.fit import USUAL_CONTEXT, Fit, Pair
from engine.measured import NGRAM


@dataclass(frozen=True)
class Asked:
    """A model to load, in the precision that the user wants; None: in that which suits it."""

    key: str
    precision: Precision | None


@dataclass(frozen=True)
class Held(Asked):
    """A target or draft that was not loaded, since what it would make does not fit."""

    pair: Pair
    draft: bool


class Pairs:
    """`target` is the one that runs, where its layers lie, without a draft; `held` waits for the
    user."""

    def __init__(self, memory: Fitting, library: Library) -> None:
        self._memory, self._library = memory, library
        self.target: Pair | None = None
        self.held: Held | None = None

    def run(self, loaded: Loaded, context: int, agreed: Pair | None) -> None:
        """Another target runs, on graphics cards as it was `agreed`."""
        self.target = Pair(
            loaded.info,
            loaded.precision,
            context,
            layers_in_ram=loaded.layers_in_ram,
            on_cards=agreed.on_cards if agreed is not None else (),
        )

    def limit(self, context: int) -> None:
        """Let the target hold so many tokens, also beside the draft that is held."""
        if self.target is not None:
            self.target = replace(self.target, context=context)
        if self.held is not None:
            self.held = replace(self.held, pair=replace(self.held.pair, context=context))

    def of_target(self, asked: Asked, settings: Settings) -> Pair | None:
        """What loading it would make: with the draft last used beside it, which is loaded next,
        unless that is too much."""
        info = self._library.info(asked.key)
        if info is None:
            return None
        automatic: Precision = "int8" if self._memory.device == "cpu" else "bf16"
        context = wanted_context(settings, asked.key, info.context or USUAL_CONTEXT)
        alone = Pair(info, asked.precision or automatic, context)
        last = settings.drafts.get(asked.key, NGRAM)
        both = _beside(alone, self._library.info(last), settings.draft_precisions.get(last))
        return alone if self._is_too_much(both) else both

    def of_draft(self, asked: Asked) -> Pair | None:
        """What loading it would make; None where it takes no memory."""
        info = self._library.takes(asked.key)
        if self.target is None or info is None:
            return None
        return _beside(self.target, info, asked.precision)

    def is_running(self, pair: Pair) -> bool:
        """Whether the target of `pair` is the one that runs, in its precision and where it lies."""
        ours = self.target
        asked = pair.precision, pair.layers_in_ram, pair.on_cards
        return ours is not None and asked == (ours.precision, ours.layers_in_ram, ours.on_cards)

    def hold(self, asked: Asked, pair: Pair | None, *, draft: bool) -> bool:
        """Hold back what would make `pair` where that does not fit; whether it does not."""
        self.held = None
        if pair is not None and self._is_too_much(pair):
            self.held = Held(asked.key, asked.precision, pair, draft)
        return self.held is not None

    def fit(self, draft: ModelInfo, precision: Precision | None) -> Fit | None:
        """Whether `draft` fits beside the target; None while no device is known."""
        return self._memory.fit(_beside(self.target, draft, precision)) if self.target else None

    def show(self, draft: Asked) -> None:
        """Have it judged what runs with `draft`, or what is held."""
        info = self._library.takes(draft.key)
        running = _beside(self.target, info, draft.precision) if self.target else None
        self._memory.show(running, self.held.pair if self.held else None)

    def _is_too_much(self, pair: Pair) -> bool:
        fit = self._memory.fit(pair)
        return fit is not None and fit.word == "no"


def wanted_context(settings: Settings, target: str, most: int) -> int:
    """How many tokens the user wants the target to hold, of the `most` that it can."""
    return min(settings.contexts.get(target, USUAL_CONTEXT), most)


def _beside(target: Pair, draft: ModelInfo | None, precision: Precision | None) -> Pair:
    return replace(target, draft=draft, draft_precision=precision or target.precision)
