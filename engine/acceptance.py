"""How likely a drafted token is right: by what was judged of late, and by how sure the drafter is.

Knows counts and logits only: no token, no model, no clock. What is asked here is known before a
token is drawn (methods for drafting, the drop rule), and what is learnt was judged in rounds
already over.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Cell = tuple[int, ...]

# Believed before anything was seen: two of three drafted tokens are right.
BELIEF = (2.0, 3.0)
# What a round counts for after another one: about 25 of them count. Fewer give up a fair draft
# after an unlucky streak, more hold on to one that the text has left behind.
FADE = 0.96
# The same of what is remembered for good: about 300 rounds.
LASTING = 0.997
# As many tokens as these count for what a part inherits of the whole.
WEIGHT = 6.0
# Positions told apart; later ones count as the last.
PLACES = 16


class Acceptance:
    """The share of drafted tokens that were right where all before them were, by the length of
    the match that found them (0: none did) and by position.

    What was seldom seen inherits: a position of its match, a match of the whole.
    """

    def __init__(self) -> None:
        self._ever = self._whole = BELIEF
        self._cells: dict[Cell, tuple[float, float]] = {}

    @property
    def rate(self) -> float:
        """The share in the long run, whatever the match and position."""
        return self._ever[0] / self._ever[1]

    def restart(self) -> None:
        """Believe in the drafter anew, half as if nothing had been seen of it."""
        right, judged = BELIEF
        self._whole, self._cells = ((right + judged * self.rate) / 2, judged), {}

    def chance(self, match: int, place: int) -> float:
        """Of the token at `place`, from 0 on, of a draft found by `match` tokens."""
        right, judged = self._whole
        rate = right / judged
        for cell in _cells(match, place):
            right, judged = self._cells.get(cell, (0.0, 0.0))
            rate = (right + WEIGHT * rate) / (judged + WEIGHT)
        return rate

    def observe(self, match: int, accepted: int, judged: int) -> None:
        """Of one draft, `judged` tokens, of which the first `accepted` were right: all of them,
        or all but the last."""
        new: dict[Cell, tuple[float, float]] = {}
        for place in range(judged):
            for cell in _cells(match, place):
                right, seen = new.get(cell, (0.0, 0.0))
                new[cell] = right + (place < accepted), seen + 1
        for cell, counts in new.items():
            self._cells[cell] = _faded(self._cells.get(cell, (0.0, 0.0)), counts)
        if judged:
            self._whole = _faded(self._whole, (accepted, judged))
            self._ever = _faded(self._ever, (accepted, judged), LASTING)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        cells = [[*cell, *counts] for cell, counts in self._cells.items()]
        return {"ever": list(self._ever), "whole": list(self._whole), "cells": cells}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What `state` gave. Raises ValueError, TypeError or KeyError for anything else."""
        ever, whole = _counts(state["ever"]), _counts(state["whole"])
        cells = {tuple(map(int, row[:-2])): _counts(row[-2:]) for row in state["cells"]}
        if not whole[1] or not ever[1]:
            raise ValueError("nothing was judged")
        self._ever, self._whole, self._cells = ever, whole, cells


def _cells(match: int, place: int) -> tuple[Cell, Cell]:
    """Matches up to 7 tokens each, longer ones by powers of two."""
    found = match if match < 8 else 4 + match.bit_length()
    return (found,), (found, min(place, PLACES - 1))


def _faded(
    old: tuple[float, float], new: tuple[float, float], fade: float = FADE
) -> tuple[float, float]:
    return fade * old[0] + new[0], fade * old[1] + new[1]


def _counts(row: Any) -> tuple[float, float]:
    right, judged = map(float, row)
    if not 0 <= right <= judged < math.inf:
        raise ValueError("no share")
    return right, judged


# Rounds from one fit to the next.
EVERY = 100
DAMPING = 50.0
RIDGE = 1e-3


class Calibration:
    """The chance of acceptance by how sure a drafter is, f = logit(max q): sigmoid(w f + b[k]).

    Fitted by damped Newton steps on the log likelihood of what was judged (methods for drafting,
    section 11, where its constants come from).
    """

    def __init__(self) -> None:
        self.w = 0.5
        self.b = [-0.2] * PLACES
        self._rounds = 0
        # A, B, C, g0, g1, n of each position
        self._sums = np.zeros((PLACES, 6))

    def chance(self, place: int, sure: float) -> float:
        """Of the token at `place`, from 0 on."""
        x = self.w * sure + self.b[min(place, PLACES - 1)]
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, x))))

    def observe(self, sure: Sequence[float], accepted: int) -> None:
        """Of one draft, how sure each judged token was, and that the first `accepted` were
        right."""
        for place, f in enumerate(sure):
            p = self.chance(place, f)
            u, e = p * (1 - p), (place < accepted) - p
            sums = self._sums[min(place, PLACES - 1)]
            sums += (u * f * f, u * f, u, e * f, e, 1.0)
        self._rounds += 1
        if self._rounds % EVERY == 0:
            self._fit()

    def _fit(self) -> None:
        """One damped Newton step: w is common, each position has its own b."""
        a, b, c, g0, g1, n = self._sums.T
        c = c + RIDGE
        step = (g0.sum() - (b * g1 / c).sum()) / (a.sum() + RIDGE - (b * b / c).sum())
        dw = float(step * n.sum() / (n.sum() + DAMPING))
        if not math.isfinite(dw) or self.w + dw < 0:
            dw = 0.0
        self.w += dw
        db = (g1 - b * dw) / c * n / (n + DAMPING)
        self.b = [old + d if math.isfinite(d) else old for old, d in zip(self.b, db, strict=True)]
        self._sums[:] = 0

    def state(self) -> dict[str, Any]:
        """All of it but the sums of the fit to come, as JSON has it."""
        return {"w": self.w, "b": self.b}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What `state` gave. Raises ValueError, TypeError or KeyError for anything else."""
        w, b = float(state["w"]), [float(value) for value in state["b"]]
        if len(b) != PLACES or not w >= 0 or not all(map(math.isfinite, (w, *b))):
            raise ValueError("no calibration")
        self.w, self.b = w, b
