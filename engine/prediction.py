"""How fast a pair will be that was not tried here, from what was learnt of its parts.

Measures nothing and opens no files. What was measured of a pair outranks it.
"""

import contextlib
from collections.abc import Iterable
from itertools import accumulate

from engine.acceptance import Acceptance
from engine.costs import Costs
from engine.errors import Reason
from engine.learned import State

# Mean acceptance of a smaller model of the family over 13 kinds of text (methods for drafting,
# section 14: a 0.5B for a 1.5B).
TYPICAL = 0.6
LONGEST = 7
CONTEXT = 600  # tokens of a usual chat
ENOUGH = 50.0  # plain steps' time over which a drafter has shown what it brings


def times_plain(
    target: State,
    pair: State,
    alone: State,
    ratio: float | None = None,
    *,
    at_once: bool = False,
) -> float | None:
    """How many times faster than plain decoding a target will be with a draft model; None where
    too little is known.

    `target` is what was learnt of the target alone, `pair` of it with this draft, `alone` of the
    draft as a target of its own; `ratio` is how many times smaller the draft is. With g drafts it
    expects E / (g c + V(g)) (Leviathan et al. 2023), E being 1 + a + ... + a^g where one acceptance
    a is believed, and takes the best g; c is spent once where all are guessed `at_once`. Where none
    pays nothing will be drafted: 1.
    """
    passes, steps = _costs(target), _costs(pair)
    plain = passes.verify(1)
    step = steps.verify(1) or _costs(alone).verify(1) or (plain / ratio if ratio else 0.0)
    if not plain or not step:
        return None
    acceptance = _acceptance(pair)
    tokens = accumulate(acceptance**i for i in range(LONGEST + 1))
    best: float = max(
        e / ((min(g, 1) if at_once else g) * step + passes.verify(g + 1))
        for g, e in enumerate(tokens)
    )
    return plain * best


def looked_up(pair: State) -> float | None:
    """The same of a drafter without a model: what it has brought, drafting or not."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        tokens, steps = map(float, pair["alone"])
        if steps >= ENOUGH:
            return tokens / steps
    return None


def best(parts: Iterable[float | None]) -> float | None:
    """The same of Auto, by what each of its parts makes or is predicted to: it takes the best, and
    nothing where all are slower. None where nothing is known of any."""
    known = [times for times in parts if times is not None]
    return max(1.0, *known) if known else None


def said(times: float) -> Reason:
    """A prediction in words."""
    template = "about {times} times plain, predicted"
    return Reason("predicted", template, {"times": round(times, 1)})


def _costs(state: State) -> Costs:
    costs = Costs()
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        costs.restore(state["costs"])
    costs.at(CONTEXT)
    return costs


def _acceptance(pair: State) -> float:
    """What was seen in the long run: of late it is one chat's."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        known = Acceptance()
        known.restore(pair["acceptance"])
        return known.rate
    return TYPICAL
